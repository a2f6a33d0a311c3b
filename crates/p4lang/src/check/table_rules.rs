//! Rules on tables as a whole: the order of properties, bound arguments, priorities, keys and their names
//! (P4_16 section 14.2).

use std::collections::HashMap;

use num_traits::ToPrimitive;

use super::{Checker, name_annotation, walk};
use crate::ast::{self, PropertyKind};
use crate::diag::Diagnostic;
use crate::hir::{Callee, DefKind, Expr, ExprKind, Keyset, KeysetElem, TableAction, TableDef, TableKey};
use crate::source::Span;

fn name_of(property: &ast::Property) -> &str {
    match &property.kind {
        PropertyKind::Key(_) => "key",
        PropertyKind::Actions(_) => "actions",
        PropertyKind::Entries(_) => "entries",
        PropertyKind::Other { name, .. } => &name.name,
    }
}

impl Checker {
    /// Before anything of a table is checked: order, and mentions of the table in itself.
    pub(super) fn table_form(&mut self, table: &ast::Table) {
        let place = |name: &str| table.properties.iter().position(|p| name_of(p) == name);
        for (later, earlier) in [("entries", "key"), ("entries", "actions"), ("default_action", "actions")] {
            if let (Some(a), Some(b)) = (place(later), place(earlier))
                && a < b
            {
                let (span, other) = (table.properties[a].span, table.properties[b].span);
                let diagnostic =
                    self.error("bad-table", span, format!("`{later}` must come after `{earlier}`"));
                diagnostic.related.push((other, format!("`{earlier}`")));
                diagnostic.help = Some(format!("move it below `{earlier}`"));
            }
        }
        for property in &table.properties {
            let exprs: Vec<&ast::Expr> = match &property.kind {
                PropertyKind::Key(keys) => keys.iter().map(|k| &k.expr).collect(),
                PropertyKind::Other { name, value } if &*name.name != "default_action" => vec![value],
                _ => continue,
            };
            if let Some(span) = exprs.into_iter().find_map(|e| walk::mention(e, &table.name.name)) {
                let message = format!("the table `{}` cannot refer to itself", table.name.name);
                let declared = table.name.span;
                let diagnostic = self.error("recursion", span, message);
                diagnostic.related.push((declared, "this table".into()));
                diagnostic.help = Some("if something else is meant, give the table another name".into());
            }
        }
    }

    /// A table without a default action runs `NoAction`, which must be there.
    pub(super) fn default_action_rule(&mut self, table: &ast::Table) {
        if !table.properties.iter().any(|p| name_of(p) == "default_action") {
            self.require_no_action(table.name.span, "a table without a default action");
        }
    }

    /// `what` needs core.p4's `NoAction`.
    pub(super) fn require_no_action(&mut self, span: crate::source::Span, what: &str) {
        use super::scope::Entry;
        let found = match self.scopes[0].names.get("NoAction") {
            Some(Entry::Defs(ids)) => {
                matches!(&self.def(ids[0]).kind, DefKind::Action(a) if a.params.is_empty() && a.body.stmts.is_empty())
            }
            _ => false,
        };
        if !found {
            self.error("missing-action", span, format!("{what} needs core.p4's `NoAction`")).help =
                Some("include core.p4 or the file of an architecture".into());
        }
    }

    /// A key without `@name` must be an expression that names itself (section 14.2.1.1).
    pub(super) fn key_name_rule(&mut self, key: &ast::KeyElement, expr: &Expr) {
        if key.annotations.iter().any(|a| &*a.name.name == "name") || nameable(expr) {
            return;
        }
        self.error("key-name", key.expr.span, "the control plane has no name for this key").help =
            Some("add one: `@name(\"...\")` after the match kind".into());
    }

    /// No two keys have the same `@name` (section 18.3).
    pub(super) fn key_names_rule(&mut self, keys: &[TableKey]) {
        let mut seen = HashMap::new();
        for key in keys {
            let Some(name) = name_annotation(&key.annotations) else { continue };
            let message = format!("a second key is called `{name}` in the control plane");
            if let Some(first) = seen.insert(name, key.span) {
                let diagnostic = self.error("duplicate", key.span, message);
                diagnostic.related.push((first, "the first one".into()));
                diagnostic.help = Some("give one of them another `@name`".into());
            }
        }
    }

    /// Arguments that the action list binds are the same wherever the action is named (section 14.2.1.2).
    pub(super) fn bound_arguments_rule(&mut self, listed: &TableAction, given: &[Option<Expr>]) {
        for (bound, given) in listed.bound.iter().zip(given) {
            let (Some(bound), Some(given)) = (bound, given) else { continue };
            if walk::same(bound, given) {
                continue;
            }
            let (first, span) = (bound.span, given.span);
            let diagnostic = self.error("bad-call", span, "this argument differs from the action list's");
            diagnostic.related.push((first, "the action list".into()));
            diagnostic.help = Some("repeat the argument of the action list".into());
        }
    }

    /// Which entries have a priority (section 14.2.1.4).
    pub(super) fn priority_rules(&mut self, def: &TableDef, entries: &[ast::Entry], all_const: bool) {
        let Some(first) = entries.iter().find(|e| e.priority.is_some()) else { return };
        let span = first.priority.as_ref().map_or(first.span, |p| p.span);
        if all_const {
            self.error("bad-table", span, "`const` entries have no priorities").help =
                Some("order them: the first that matches wins; or remove `const` before `entries`".into());
        } else if !def.keys.is_empty() && def.keys.iter().all(|k| matches!(&*k.match_kind, "exact" | "lpm")) {
            self.error("bad-table", span, "no key of this table needs priorities").help =
                Some("remove the priorities: exact and lpm keys decide by themselves".into());
        } else if let Some(entry) = entries.first()
            && entry.priority.is_none()
        {
            let entry = entry.span;
            let diagnostic = self.error("bad-table", entry, "the first entry has no priority, others have");
            diagnostic.related.push((span, "a priority".into()));
            diagnostic.help = Some("give the first entry one: `priority = n :`".into());
        }
    }

    /// Warns of equal priorities, and of entries in another order than their priorities (section 14.2.1.4.1).
    pub(super) fn priority_warnings(&mut self, def: &TableDef, property: &ast::Property) {
        let PropertyKind::Entries(written) = &property.kind else { return };
        if written.iter().all(|e| e.priority.is_none()) || written.len() != def.entries.len() {
            return;
        }
        let silenced = |name: &str| property.annotations.iter().any(|a| is_no_warn(a, name));
        let (equal, order) = (!silenced("duplicate_priorities"), !silenced("entries_out_of_priority_order"));
        let step = i64::from(def.priority_delta) * if def.largest_priority_wins { -1 } else { 1 };
        let mut seen: HashMap<i64, Span> = HashMap::new();
        let mut last: Option<(i64, Span)> = None;
        for entry in &def.entries {
            let given = entry.priority.as_ref().map(|p| p.to_i64());
            let Some(priority) = given.unwrap_or(last.map(|(before, _)| before + step)) else { return };
            if let Some(first) = seen.insert(priority, entry.span)
                && equal
            {
                let message = format!("a second entry of priority {priority}: which of them wins is open");
                self.report(Diagnostic::warning("duplicate-priorities", entry.span, message))
                    .related
                    .push((first, "another one".into()));
            }
            if let Some((before, place)) = last
                && order
                && priority != before
                && (priority > before) == def.largest_priority_wins
            {
                let message = "this entry wins over the one before it";
                self.report(Diagnostic::warning("entries-out-of-priority-order", entry.span, message))
                    .related
                    .push((place, format!("of priority {before}")));
            }
            last = Some((priority, entry.span));
        }
    }

    /// What the core library's match kinds take (section 14.2.1.4); the architecture looks at the others.
    pub(super) fn entry_kinds(&mut self, def: &TableDef, keyset: &Keyset) {
        if keyset.elems.len() != def.keys.len() {
            return;
        }
        for (elem, key) in keyset.elems.iter().zip(&def.keys) {
            let (what, first) = match (elem, &*key.match_kind) {
                (KeysetElem::Mask(value, _), "exact") => ("a mask", value),
                (KeysetElem::Range(lo, _), "exact" | "lpm" | "ternary") => ("a range", lo),
                _ => continue,
            };
            let span = first.span;
            let message = format!("{what} cannot be matched by a key of kind `{}`", key.match_kind);
            let declared = key.span;
            self.error("bad-entry", span, message).related.push((declared, "the key".into()));
        }
    }

    /// The second of two equal entries could never match.
    pub(super) fn duplicate_entries(&mut self, def: &TableDef) {
        if !def.keys.iter().all(|k| &*k.match_kind == "exact") {
            return;
        }
        let values = |elems: &'_ [KeysetElem]| -> Option<Vec<String>> {
            let text = |e: &KeysetElem| match e {
                KeysetElem::Value(Expr { kind: kind @ (ExprKind::Int(_) | ExprKind::Bool(_)), .. }) => {
                    Some(format!("{kind:?}"))
                }
                _ => None,
            };
            elems.iter().map(text).collect()
        };
        let mut seen = HashMap::new();
        for entry in &def.entries {
            let Some(values) = values(&entry.keyset.elems) else { continue };
            if let Some(first) = seen.insert(values, entry.span) {
                self.error("duplicate", entry.span, "an entry with this key is there already")
                    .related
                    .push((first, "the first one".into()));
            }
        }
    }

    /// No table may be applied in an action's argument.
    pub(super) fn no_table_in_arguments(&mut self, args: &[Option<Expr>]) {
        if let Some(span) = args.iter().flatten().find_map(applied_table) {
            self.error("wrong-place", span, "a table cannot be applied in an action's argument").help =
                Some("apply it before, and keep the result in a variable".into());
        }
    }
}

/// Whether an annotation is `@noWarn("name")`.
fn is_no_warn(annotation: &ast::Annotation, name: &str) -> bool {
    let ast::AnnotationBody::Free { exprs: Some(exprs), .. } = &annotation.body else { return false };
    &*annotation.name.name == "noWarn"
        && matches!(exprs.first().map(|e| &e.kind), Some(ast::ExprKind::Str(text)) if text == name)
}

/// Where an expression applies a table.
pub(super) fn applied_table(e: &Expr) -> Option<Span> {
    let applies = |e: &Expr| {
        matches!(&e.kind, ExprKind::TableHit { .. })
            || matches!(&e.kind, ExprKind::Call(call) if matches!(call.callee, Callee::Table(_)))
    };
    walk::find(e, &applies).map(|e| e.span)
}

/// Whether a control-plane name follows from the expression: a path of fields, indices, slices, masks, and
/// `isValid()`. Constants are looked at elsewhere.
fn nameable(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Ref(_)
        | ExprKind::Int(_)
        | ExprKind::Bool(_)
        | ExprKind::EnumMember(..)
        | ExprKind::Error(_) => true,
        ExprKind::Field(base, _)
        | ExprKind::Slice { base, .. }
        | ExprKind::StackNext(base)
        | ExprKind::StackLast(base)
        | ExprKind::StackLastIndex(base) => nameable(base),
        ExprKind::Index(base, index) => nameable(base) && nameable(index),
        ExprKind::Binary(ast::BinaryOp::BitAnd, a, b) => nameable(a) && nameable(b),
        ExprKind::Call(call) => matches!(&call.callee, Callee::IsValid(object) if nameable(object)),
        // What the checker put there, not the program.
        ExprKind::Cast(inner) => matches!(inner.ty, crate::hir::Type::Enum(_)) && nameable(inner),
        _ => false,
    }
}
