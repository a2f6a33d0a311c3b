//! Tables (P4_16 section 14.2).

use std::collections::HashMap;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::scope::Entry;
use super::{Checker, consts, walk};
use crate::ast::{self, Direction, PropertyKind};
use crate::diag::counted;
use crate::hir::{
    DefId, DefKind, EntryAction, Expr, ExprKind, Order, TableAction, TableDef, TableEntry, TableKey,
    TableProperty, Type,
};
use crate::source::Span;

impl Checker {
    pub(super) fn table(&mut self, decl: &ast::Decl, table: &ast::Table) -> Option<DefId> {
        let mut def = TableDef {
            keys: Vec::new(),
            actions: Vec::new(),
            default_action: None,
            const_default: false,
            entries: Vec::new(),
            const_entries: false,
            complete: true,
            size: None,
            largest_priority_wins: true,
            priority_delta: 1,
            properties: Vec::new(),
        };
        self.table_form(table);
        self.default_action_rule(table);
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for property in &table.properties {
            let name = match &property.kind {
                PropertyKind::Key(_) => "key",
                PropertyKind::Actions(_) => "actions",
                PropertyKind::Entries(_) => "entries",
                PropertyKind::Other { name, .. } => &*name.name,
            };
            if let Some(first) = seen.get(name).copied() {
                self.error("duplicate", property.span, format!("the property `{name}` is given twice"))
                    .related
                    .push((first, "first here".into()));
            }
            seen.entry(name).or_insert(property.span);
        }
        for property in &table.properties {
            match &property.kind {
                PropertyKind::Key(keys) => {
                    def.keys = keys.iter().filter_map(|k| self.table_key(k)).collect();
                    def.complete &= def.keys.len() == keys.len();
                    self.key_names_rule(&def.keys);
                }
                PropertyKind::Actions(actions) if seen["actions"] == property.span => {
                    for action in actions {
                        if self.stop(action.span, 1) {
                            break;
                        }
                        match self.table_action(action, &def.actions) {
                            Some(action) => def.actions.push(action),
                            None => def.complete = false,
                        }
                    }
                }
                _ => {}
            }
        }
        if !seen.contains_key("actions") {
            self.error(
                "bad-table",
                table.name.span,
                format!("the table `{}` has no `actions`", table.name.name),
            );
        }
        for property in &table.properties {
            let annotations = self.annotations(&property.annotations);
            match &property.kind {
                PropertyKind::Entries(entries) => {
                    def.const_entries = property.is_const;
                    self.entries(&mut def, entries, property.is_const);
                }
                PropertyKind::Other { name, value } => {
                    self.property(&mut def, property, annotations, name, value);
                }
                _ => {}
            }
        }
        for property in table.properties.iter().filter(|p| !p.is_const) {
            self.priority_warnings(&def, property);
        }
        let id = self.define(
            table.name.name.clone(),
            table.name.span,
            &decl.annotations,
            DefKind::Table(Box::new(def)),
        );
        self.declare(&table.name, id);
        Some(id)
    }

    fn property(
        &mut self,
        def: &mut TableDef,
        property: &ast::Property,
        annotations: Vec<ast::Annotation>,
        name: &ast::Ident,
        value: &ast::Expr,
    ) {
        match &*name.name {
            "default_action" => {
                def.const_default = property.is_const;
                let action = match &value.kind {
                    ast::ExprKind::Name(path) => Some((path.clone(), Vec::new())),
                    ast::ExprKind::Call { callee, args, .. } => match &callee.kind {
                        ast::ExprKind::Name(path) => Some((path.clone(), args.clone())),
                        _ => None,
                    },
                    _ => None,
                };
                match action {
                    Some((path, args)) => {
                        def.default_action = self.entry_action(def, &path, &args, value.span, true)
                    }
                    None => {
                        self.error(
                            "bad-table",
                            value.span,
                            "the default action must be an action of the table",
                        );
                    }
                }
            }
            "size" => {
                let size = self.expr(value, None);
                let number = matches!(size.ty, Type::Int | Type::Bits { .. });
                if size.ty == Type::Unknown {
                    return;
                }
                if !number || !self.compile_time(&size) {
                    self.error("not-constant", value.span, "this must be an integer known at compile time");
                } else if consts::int_value(&size).is_some_and(|size| size.to_u64().is_none()) {
                    self.error(
                        "bad-size",
                        value.span,
                        "the size of a table must be from 0 to 18446744073709551615",
                    );
                } else {
                    def.size = Some(size);
                }
            }
            "largest_priority_wins" => {
                let checked = self.expr_as(value, &Type::Bool);
                match checked.kind {
                    ExprKind::Bool(yes) => def.largest_priority_wins = yes,
                    _ => {
                        self.error("not-constant", value.span, "this must be `true` or `false`");
                    }
                }
            }
            "priority_delta" => {
                if let Some(delta) = self.const_int(value) {
                    match delta.to_u32().filter(|d| *d > 0) {
                        Some(delta) => def.priority_delta = delta,
                        None => {
                            self.error("bad-size", value.span, "`priority_delta` must be positive");
                        }
                    }
                }
            }
            _ => {
                let value = self.expr(value, None);
                def.properties.push(TableProperty {
                    name: name.name.clone(),
                    annotations,
                    value,
                    span: name.span,
                });
            }
        }
    }

    fn table_key(&mut self, key: &ast::KeyElement) -> Option<TableKey> {
        let expr = self.expr(&key.expr, None);
        let kind = key.match_kind.name.clone();
        self.budget.work(self.hir.match_kinds.len());
        if !self.hir.match_kinds.contains(&kind) {
            let similar = self.similar(&kind, self.hir.match_kinds.iter());
            let diagnostic =
                self.error("unknown-name", key.match_kind.span, format!("there is no match kind `{kind}`"));
            diagnostic.help = similar.map(|s| format!("did you mean `{s}`?"));
        }
        let expr = if expr.ty == Type::Int && consts::int_value(&expr).is_some() {
            self.error("bad-table", key.expr.span, "a key needs a width").help = Some("write `8w5`".into());
            return None;
        } else {
            expr
        };
        if !matches!(
            expr.ty,
            Type::Bits { .. } | Type::Bool | Type::Enum(_) | Type::Error | Type::New(_) | Type::Unknown
        ) {
            let shown = self.show(&expr.ty);
            self.error("bad-table", key.expr.span, format!("a `{shown}` cannot be a key")).help =
                Some("use its fields".into());
            return None;
        }
        if expr.ty == Type::Unknown {
            return None;
        }
        if let Some(applied) = walk::find(&expr, &|e| matches!(e.kind, ExprKind::TableHit { .. })) {
            self.error(
                "unsupported",
                applied.span,
                "Tidegate does not support applying a table in another's key",
            )
            .help = Some("apply it before, and keep the result in a variable".into());
            return None;
        }
        self.key_name_rule(key, &expr);
        let annotations = self.annotations(&key.annotations);
        Some(TableKey { expr, match_kind: kind, annotations, span: key.expr.span })
    }

    fn find_action(&mut self, path: &ast::Path) -> Option<DefId> {
        match self.lookup(path)? {
            Entry::Defs(ids) if matches!(self.def(ids[0]).kind, DefKind::Action(_)) => {
                self.require_value_name(path, ids[0]);
                Some(ids[0])
            }
            _ => {
                self.error("bad-table", path.ident.span, format!("`{}` is not an action", path.ident.name));
                None
            }
        }
    }

    fn action_params(&self, action: DefId) -> Vec<DefId> {
        match &self.def(action).kind {
            DefKind::Action(a) => a.params.clone(),
            _ => Vec::new(),
        }
    }

    fn table_action(&mut self, written: &ast::ActionRef, known: &[TableAction]) -> Option<TableAction> {
        let action = self.find_action(&written.path)?;
        self.budget.work(known.len());
        let named = self.def(action).name.clone();
        if let Some(first) = known.iter().find(|a| self.def(a.action).name == named) {
            let span = first.span;
            self.error("duplicate", written.span, format!("an action `{named}` is listed twice"))
                .related
                .push((span, "first here".into()));
            return None;
        }
        let params = self.action_params(action);
        let args = written.args.as_deref().unwrap_or_default();
        let directed = params.iter().filter(|p| self.param(**p).direction != Direction::None).count();
        if args.len() > params.len() || args.len() < directed {
            let name = &written.path.ident.name;
            self.error(
                "bad-call",
                written.span,
                format!(
                    "`{name}` needs {} here, one for each parameter with a direction, not {}",
                    counted(directed, "argument"),
                    args.len()
                ),
            );
            return None;
        }
        let mut bound: Vec<Option<Expr>> = vec![None; params.len()];
        let mut order = Vec::new();
        for (index, arg) in args.iter().enumerate() {
            let at = match &arg.name {
                Some(name) => match params.iter().position(|p| self.def(*p).name == name.name) {
                    Some(at) => at,
                    None => {
                        self.error("bad-call", name.span, format!("there is no parameter `{}`", name.name));
                        return None;
                    }
                },
                None => index,
            };
            let param = self.param(params[at]);
            if param.direction == Direction::None {
                self.error(
                    "bad-call",
                    arg.value.span,
                    "parameters without a direction get their values from the control plane",
                )
                .help = Some("leave this argument out".into());
                return None;
            }
            let value = self.expr(&arg.value, Some(&param.ty));
            let value = if param.direction == Direction::In { self.coerce(value, &param.ty) } else { value };
            if param.direction != Direction::In {
                if value.ty != param.ty && value.ty != Type::Unknown {
                    let (want, have) = (self.show(&param.ty), self.show(&value.ty));
                    self.error(
                        "type-mismatch",
                        value.span,
                        format!(
                            "{} argument must be exactly `{want}`, this is `{have}`",
                            param.direction.with_article()
                        ),
                    );
                }
                self.require_writable(&value);
            }
            if bound[at].replace(value).is_some() {
                let name = self.def(params[at]).name.clone();
                self.error("bad-call", arg.value.span, format!("argument `{name}` is given twice"));
                return None;
            }
            order.push(at);
        }
        self.no_table_in_arguments(&bound);
        let order = Order::new(order, params.len());
        let annotations = self.annotations(&written.annotations);
        Some(TableAction { action, bound, order, annotations, span: written.span })
    }

    /// The action of an entry or the default action: one of the table's, with all its control-plane arguments.
    fn entry_action(
        &mut self,
        table: &TableDef,
        path: &ast::Path,
        args: &[ast::Arg],
        span: Span,
        default: bool,
    ) -> Option<EntryAction> {
        let actions = &table.actions;
        let action = self.find_action(path)?;
        self.budget.work(actions.len());
        let Some(index) = actions.iter().position(|a| a.action == action) else {
            // It may be the one that was refused.
            if !table.complete {
                return None;
            }
            let names: Vec<_> = actions.iter().map(|a| format!("`{}`", self.def(a.action).name)).collect();
            self.error(
                "bad-table",
                span,
                format!("`{}` is not among the table's actions", path.ident.name),
            )
            .help = Some(format!("the table has {}", names.join(", ")));
            return None;
        };
        let listed = &actions[index];
        let only = |name: &str| listed.annotations.iter().any(|a| &*a.name.name == name);
        if default && only("tableonly") {
            self.error("bad-table", span, format!("`{}` is marked @tableonly", path.ident.name));
        } else if !default && only("defaultonly") {
            self.error("bad-table", span, format!("`{}` is marked @defaultonly", path.ident.name));
        }
        let params = self.action_params(action);
        let open: Vec<usize> =
            (0..params.len()).filter(|i| self.param(params[*i]).direction == Direction::None).collect();
        // Arguments with a direction are repeated; they must be those of the list.
        if open.len() < params.len() && args.len() != params.len() {
            self.error(
                "bad-call",
                span,
                format!("`{}` needs all of its {} arguments here", path.ident.name, params.len()),
            )
            .help = Some("repeat those that the action list gives".into());
            return None;
        }
        let skip = if args.len() == params.len() { params.len() - open.len() } else { 0 };
        let mut repeated = vec![None; params.len()];
        for (index, arg) in args[..skip].iter().enumerate() {
            let named =
                arg.name.as_ref().and_then(|n| params.iter().position(|p| self.def(*p).name == n.name));
            let at = named.unwrap_or(index);
            let param = self.param(params[at]);
            let value = self.expr(&arg.value, Some(&param.ty));
            repeated[at] =
                Some(if param.direction == Direction::In { self.coerce(value, &param.ty) } else { value });
        }
        self.bound_arguments_rule(listed, &repeated);
        let given = &args[skip..];
        if given.len() != open.len() {
            self.error(
                "bad-call",
                span,
                format!(
                    "`{}` takes {} here, not {}",
                    path.ident.name,
                    counted(open.len(), "value"),
                    given.len()
                ),
            );
            return None;
        }
        let mut values = vec![None; params.len()];
        for (position, arg) in given.iter().enumerate() {
            let at = match &arg.name {
                Some(name) => match open.iter().copied().find(|i| self.def(params[*i]).name == name.name) {
                    Some(at) => at,
                    None => {
                        self.error("bad-call", name.span, format!("there is no parameter `{}`", name.name));
                        return None;
                    }
                },
                None => open[position],
            };
            let ty = self.param(params[at]).ty;
            let value = self.expr_as(&arg.value, &ty);
            if value.ty != Type::Unknown && !self.compile_time(&value) {
                self.error("not-constant", value.span, "this argument must be known at compile time");
            }
            values[at] = Some(value);
        }
        Some(EntryAction { index, args: values, span })
    }

    fn entries(&mut self, def: &mut TableDef, entries: &[ast::Entry], all_const: bool) {
        // Entries are of keys and actions; where one of these was refused, they are not at fault.
        if !def.complete {
            return;
        }
        if def.keys.is_empty() {
            if let Some(entry) = entries.first() {
                self.error("bad-table", entry.span, "a table without keys has no entries");
            }
            return;
        }
        self.priority_rules(def, entries, all_const);
        let types: Vec<Type> = def.keys.iter().map(|k| k.expr.ty.clone()).collect();
        // The reference compiler's `@priority(n)`, older than `priority = n`: the smaller number wins, and an entry
        // without it has its position.
        let by_annotation = entries.iter().all(|e| e.priority.is_none())
            && entries.iter().any(|e| priority_annotation(e).is_some());
        if by_annotation {
            def.largest_priority_wins = false;
        }
        for (index, entry) in entries.iter().enumerate() {
            let keyset = self.keyset(&entry.keyset, &types, false);
            let args = entry.action.args.clone().unwrap_or_default();
            let action = self.entry_action(def, &entry.action.path, &args, entry.action.span, false);
            let given = if by_annotation { priority_annotation(entry) } else { entry.priority.as_ref() };
            let mut priority: Option<BigInt> = given.and_then(|p| self.const_int(p));
            if let Some(value) = &priority {
                if value.to_u32().is_none() {
                    self.error("bad-size", entry.span, "a priority must lie between 0 and 4294967295");
                }
                if all_const && entry.is_const {
                    self.warn("redundant", entry.span, "all entries are already `const`");
                }
            }
            if by_annotation && given.is_none() {
                priority = Some(BigInt::from(index + 1));
            }
            let (Some(mut keyset), Some(action)) = (keyset, action) else { continue };
            self.entry_kinds(def, &keyset);
            if keyset.elems.len() == 1 && types.len() > 1 {
                keyset.elems = vec![crate::hir::KeysetElem::Any; types.len()];
            }
            def.entries.push(TableEntry {
                keyset,
                action,
                priority,
                is_const: all_const || entry.is_const,
                annotations: self.annotations(&entry.annotations),
                span: entry.span,
            });
        }
        self.duplicate_entries(def);
    }
}

/// The number in `@priority(n)`.
fn priority_annotation(entry: &ast::Entry) -> Option<&ast::Expr> {
    entry.annotations.iter().find(|a| &*a.name.name == "priority").and_then(|a| match &a.body {
        ast::AnnotationBody::Free { exprs: Some(exprs), .. } => exprs.first(),
        _ => None,
    })
}
