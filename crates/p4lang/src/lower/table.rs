//! Tables and actions.

use std::rc::Rc;

use num_traits::ToPrimitive;

use super::architecture::KeyUse;
use super::expr::Value;
use super::store::{Life, Store};
use super::{Binding, Flow, Lowered, Lowerer, build, has_annotation};
use crate::ast::Direction;
use crate::hir::{Call, Callee, DefId, DefKind, Expr, ExprKind as K, Order, TableDef, TableProperty, Type};
use crate::ir::{self, ActionId, Place, Stmt, TableId};
use crate::source::Span;

/// Entries that a table may have unless the program says so (v1model's default).
const DEFAULT_SIZE: u64 = 1024;

impl Lowerer<'_> {
    /// `t.apply()`.
    pub(super) fn apply_table(
        &mut self,
        call: &Call,
        hit: Option<&Place>,
        run: Option<&Place>,
    ) -> Lowered<()> {
        let Callee::Table(id) = call.callee else { return Ok(()) };
        let table = match self.current.and_then(|c| self.instances[c.0].tables.get(&id).copied()) {
            Some(table) => table,
            None => return self.fail("unsupported", call.span, "this table cannot be applied here"),
        };
        let var = |p: &Place| match p {
            Place::Var(var) | Place::Elem { var, .. } => *var,
        };
        self.program.tables[table.index()].applied = true;
        let exits = self.program[table].actions.iter().any(|a| self.exiting.contains(&a.action));
        let flag = if exits { self.exited } else { None };
        if let Some(flag) = flag {
            self.emit(Stmt::Assign { dst: Place::Var(flag), src: build::bit(false) });
        }
        self.emit(Stmt::Apply { table, hit: hit.map(var), action_run: run.map(var) });
        if let Some(flag) = flag {
            let then = self.in_block(|l| l.exit(call.span))?;
            self.emit(Stmt::If { cond: build::read(Place::Var(flag), 1), then, otherwise: Vec::new() });
        }
        Ok(())
    }

    pub(super) fn table(&mut self, id: DefId) -> Lowered<TableId> {
        let def = self.def(id);
        let DefKind::Table(table) = &def.kind else {
            return self.fail("unsupported", def.span, "this is not a table");
        };
        self.bounded(def.span)?;
        self.budget.bytes(64 * (table.keys.len() + table.actions.len() + table.entries.len()));
        let info = self.info(def);
        let size = match &table.size {
            Some(size) => match self.const_int(size)?.to_u64() {
                Some(number) => number,
                None => {
                    return self.fail(
                        "bad-size",
                        size.span,
                        "the size of a table must be from 0 to 18446744073709551615",
                    );
                }
            },
            None => 0,
        };
        // As in the reference compiler, 0 is no size at all.
        let size = if size == 0 { DEFAULT_SIZE } else { size };
        let mut out = ir::Table {
            info,
            applied: false,
            prelude: Vec::new(),
            keys: Vec::new(),
            selector: Vec::new(),
            actions: Vec::new(),
            default_action: ir::ActionCall { action: 0, args: Vec::new() },
            const_default: table.const_default,
            entries: Vec::new(),
            const_entries: table.const_entries,
            largest_priority_wins: table.largest_priority_wins,
            size,
            implementation: None,
            direct_counter: None,
            direct_meter: None,
            action_names: ir::ByName::default(),
            support_timeout: false,
        };
        out.size = out.size.max(table.entries.len() as u64);
        self.keys(table, &mut out)?;
        for action in &table.actions {
            let lowered = self.table_action(action.action, &action.bound, &action.order)?;
            out.actions.push(ir::TableAction {
                action: lowered,
                default_only: has_annotation(&action.annotations, "defaultonly"),
                table_only: has_annotation(&action.annotations, "tableonly"),
                annotations: self.written(&action.annotations),
            });
        }
        match &table.default_action {
            Some(default) => {
                out.default_action = self.action_data(table, default)?;
            }
            None => {
                let known = table.actions.iter().position(|a| {
                    &*self.def(a.action).name == "NoAction" && self.def(a.action).parent.is_none()
                });
                let index = match known {
                    Some(index) => index,
                    None => {
                        let action = self.no_action(def.span)?;
                        out.actions.push(ir::TableAction {
                            action,
                            default_only: true,
                            table_only: false,
                            annotations: vec![ir::Annotation::Free("@defaultonly".into())],
                        });
                        out.actions.len() - 1
                    }
                };
                out.default_action = ir::ActionCall { action: index as u32, args: Vec::new() };
            }
        }
        self.entries(table, &mut out)?;
        self.properties(table, &mut out)?;
        self.selector_rule(&out)?;
        self.profile_rule(&out)?;
        self.program.tables.push(out);
        Ok(TableId(self.program.tables.len() as u32 - 1))
    }

    /// Tables that share an action selector hash the same fields, as the reference switch needs: there the fields are the
    /// selector's. Fields that are computed before the table is applied are not compared.
    fn selector_rule(&mut self, table: &ir::Table) -> Lowered<()> {
        let Some((profile, other)) = self.sharing(table) else { return Ok(()) };
        let other = &self.program[other];
        let plain = table.prelude.is_empty() && other.prelude.is_empty();
        if self.program[profile].selector.is_none() || !plain || table.selector == other.selector {
            return Ok(());
        }
        let message = format!(
            "`{}` and `{}` share an action selector and have different `selector` keys",
            other.info.name, table.info.name
        );
        self.fail_help(
            "bad-table",
            table.info.span,
            message,
            "give each its own action selector, or the same keys",
        )
    }

    /// Tables that share an action profile list the same actions in the same order: a member is one of them by its place, as the
    /// Portable Switch Architecture has it (section 7.9).
    fn profile_rule(&mut self, table: &ir::Table) -> Lowered<()> {
        self.budget.work(table.actions.len());
        let Some((_, other)) = self.sharing(table) else { return Ok(()) };
        let other = &self.program[other];
        let listed = |table: &ir::Table| -> Vec<(usize, String)> {
            let all = table.actions.iter().enumerate().filter(|(_, action)| !action.default_only);
            all.map(|(place, action)| (place, self.program[action.action].info.name.clone())).collect()
        };
        if listed(table) == listed(other) {
            return Ok(());
        }
        let message = format!(
            "`{}` and `{}` share an action profile or selector and list different actions",
            other.info.name, table.info.name
        );
        self.fail_help(
            "bad-table",
            table.info.span,
            message,
            "give both the same actions in the same order, or each its own profile",
        )
    }

    /// The profile or selector of a table, and the first table before it that has the same one.
    fn sharing(&mut self, table: &ir::Table) -> Option<(ir::ProfileId, TableId)> {
        let profile = table.implementation?;
        self.budget.work(self.program.tables.len());
        let first = self.program.tables.iter().position(|other| other.implementation == Some(profile))?;
        Some((profile, TableId(first as u32)))
    }

    fn no_action(&mut self, span: Span) -> Lowered<ActionId> {
        self.budget.work(self.hir.top.len());
        let found = self.hir.top.iter().copied().find(|id| {
            &*self.def(*id).name == "NoAction" && matches!(self.def(*id).kind, DefKind::Action(_))
        });
        match found {
            Some(id) => self.table_action(id, &[], &Order::default()),
            None => self.fail_help(
                "missing-action",
                span,
                "a table without a default action needs `NoAction`",
                "include core.p4",
            ),
        }
    }

    fn keys(&mut self, table: &TableDef, out: &mut ir::Table) -> Lowered<()> {
        let outer = std::mem::take(&mut self.out);
        let result = self.keys_inner(table, out);
        out.prelude = std::mem::replace(&mut self.out, outer);
        result
    }

    fn keys_inner(&mut self, table: &TableDef, out: &mut ir::Table) -> Lowered<()> {
        let mut values = Vec::new();
        for key in &table.keys {
            let value = self.operand(&mut values, |l| l.scalar(&key.expr))?;
            values.push(Value::Scalar(value));
        }
        for (key, value) in table.keys.iter().zip(values) {
            let expr = self.number(value);
            let known = self.arch.match_kinds();
            let kind = match known.iter().find(|(name, _)| *name == &*key.match_kind) {
                Some((_, KeyUse::Match(kind))) => *kind,
                Some((_, KeyUse::Selector)) => {
                    out.selector.push(expr);
                    continue;
                }
                None => {
                    let message = format!("{} has no match kind `{}`", self.arch.name(), key.match_kind);
                    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                    let help = match names.split_last() {
                        Some((last, others)) => format!("use {} or {last}", others.join(", ")),
                        None => "it has none".to_owned(),
                    };
                    return self.fail_help("unsupported", key.span, message, help);
                }
            };
            let name = match crate::check::name_annotation(&key.annotations) {
                Some(name) => name.to_string(),
                None => match self.key_name(&key.expr) {
                    Some(name) => name,
                    // Nothing else names a complex key.
                    None => self.sources.text(key.span).split_whitespace().collect::<Vec<_>>().join(" "),
                },
            };
            let ty = self.ty(&key.expr.ty);
            let type_name = self.control_type(&ty);
            out.keys.push(ir::Key {
                name,
                expr,
                kind,
                annotations: self.written(&key.annotations),
                type_name,
                shown_width: self.shown_width(&ty),
                id: super::id_annotation(&key.annotations),
            });
        }
        Ok(())
    }

    /// The control-plane name of a key expression (section 14.2.1.1).
    fn key_name(&self, e: &Expr) -> Option<String> {
        Some(match &e.kind {
            K::Ref(id) => self.def(*id).name.to_string(),
            K::Field(base, index) => {
                let fields = self.fields(&self.ty(&base.ty));
                let field = &fields.get(*index)?.0;
                let given = crate::check::name_annotation(&field.annotations);
                match given.as_ref().unwrap_or(&field.name).strip_prefix('.') {
                    Some(complete) => complete.to_owned(),
                    None => format!("{}.{}", self.key_name(base)?, given.as_ref().unwrap_or(&field.name)),
                }
            }
            K::Index(base, index) => match &index.kind {
                K::Int(value) => format!("{}[{value}]", self.key_name(base)?),
                _ => return None,
            },
            K::Slice { base, hi, lo } => format!("{}[{hi}:{lo}]", self.key_name(base)?),
            K::Call(call) => match &call.callee {
                Callee::IsValid(header) => format!("{}.$valid$", self.key_name(header)?),
                _ => return None,
            },
            K::Cast(inner) => return self.key_name(inner),
            K::Binary(crate::ast::BinaryOp::BitAnd, a, b) => match &b.kind {
                K::Int(_) => format!("{} & {}", self.key_name(a)?, number_text(self.sources.text(b.span))),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn properties(&mut self, table: &TableDef, out: &mut ir::Table) -> Lowered<()> {
        let arch = self.arch;
        for property in &table.properties {
            if !arch.property(self, property, out)? {
                let message =
                    format!("{} has no table property `{}`; it has no effect", arch.name(), property.name);
                let warning = crate::diag::Diagnostic::warning("unknown-property", property.span, message);
                self.diagnostics.push(warning);
            }
        }
        arch.table(self, table, out)
    }

    /// What an object is called that is made in the property itself: as its `@name` says, which as in the reference
    /// compiler is not below the control, else after the property.
    pub(super) fn made_in_place(&self, property: &TableProperty, table: &ir::Table) -> Option<ir::Info> {
        let K::Construct(_) = property.value.kind else { return None };
        let name = match crate::check::name_annotation(&property.annotations) {
            Some(name) => name.trim_start_matches('.').to_owned(),
            None => format!("{}.{}", table.info.name, property.name),
        };
        Some(ir::Info { name, ..self.described(&property.annotations, property.span) })
    }

    /// What no entry of a table can have among its action's data: all but scalars, and structs and headers of them.
    fn unsupplied(&self, ty: &Type) -> Option<Type> {
        match ty {
            Type::Struct(..) | Type::Header(..) => {
                self.fields(ty).iter().find_map(|(_, part)| self.unsupplied(part))
            }
            Type::Tuple(parts) => parts.iter().find_map(|part| self.unsupplied(part)),
            _ => self.scalar_width(ty).is_none().then(|| ty.clone()),
        }
    }

    /// The IR action for one entry of a table's action list.
    fn table_action(&mut self, id: DefId, bound: &[Option<Expr>], order: &Order) -> Lowered<ActionId> {
        let plain = bound.iter().all(Option::is_none);
        let owner = if self.is_local(id) { self.current } else { None };
        if plain && let Some(known) = self.actions.get(&(owner, id)) {
            return Ok(*known);
        }
        let def = self.def(id);
        let DefKind::Action(action) = &def.kind else {
            return self.fail("unsupported", def.span, "this is not an action");
        };
        let info = self.action_info(id);
        let label = self.label();
        let flag = match self.exited {
            Some(flag) => flag,
            None => {
                let flag = self.var("exited", 1, false, ir::VarHome::Local);
                self.exited = Some(flag);
                flag
            }
        };
        let flow = Flow {
            ret: Some((label, None)),
            exit: Some((label, Some(flag))),
            loops: Vec::new(),
            copy_outs: Vec::new(),
        };
        let outer = std::mem::replace(&mut self.flow, flow);
        let outer_action = std::mem::replace(&mut self.in_action, true);
        let mut params = Vec::new();
        let lowered = self.in_block(|l| {
            // Directed parameters are bound by the list, the others come from the control plane.
            let mut copies = Vec::new();
            for index in order.indices(action.params.len()) {
                let param = &action.params[index];
                let p = l.param(*param);
                let ty = l.ty(&p.ty);
                let def = l.def(*param);
                let name = crate::check::name_annotation(&def.annotations)
                    .map_or_else(|| def.name.to_string(), |given| given.trim_start_matches('.').to_owned());
                if let Some(Some(arg)) = bound.get(index) {
                    copies.extend(l.bind_params(&[(*param, Some(arg))], true, arg.span)?);
                    continue;
                }
                if p.direction == Direction::None
                    && let Some(part) = l.unsupplied(&ty)
                {
                    let shown = crate::check::display(l.hir, &part);
                    let message = format!("a control plane cannot supply a `{shown}`");
                    return l.fail_help(
                        "bad-param",
                        def.span,
                        message,
                        "give it numbers, and structs of numbers",
                    );
                }
                let full = format!("{}.{name}", info.name);
                let store = l.alloc(&ty, &full, Life::Local);
                let before = params.len();
                control_params(&store, &name, &mut params, l);
                if let Some(only) = params.get_mut(before) {
                    only.annotations = l.written(&l.def(*param).annotations);
                    only.id = super::id_annotation(&l.def(*param).annotations);
                    only.type_name = l.control_type(&ty);
                    only.shown_width = l.shown_width(&ty);
                    if l.is_plain_enum(&ty)
                        && let Type::Enum(id) = ty
                    {
                        only.type_name = Some(l.def(id).name.to_string());
                        only.shown_width = 0;
                    }
                }
                // A header given by the control plane is valid.
                let mut headers = Vec::new();
                store.headers(&mut headers);
                let valid: Vec<Place> = headers
                    .iter()
                    .filter_map(|h| match h {
                        Store::Header { valid, .. } => Some(valid.clone()),
                        _ => None,
                    })
                    .collect();
                for place in valid {
                    l.set_valid(&place, &[]);
                }
                if p.direction != Direction::None {
                    l.assign(&store, Value::Default);
                }
                l.env.insert(*param, Binding::Store(store));
            }
            l.flow.copy_outs.push(Rc::new(copies.clone()));
            let inner = l.in_block(|l| l.block(&action.body))?;
            l.flow.copy_outs.pop();
            if exits(&inner, flag) {
                l.flow.exit = Some((label, Some(flag)));
            }
            let end = l.label();
            // `return` skips to the copies; `exit` has made them and skips them too.
            if copies.is_empty() {
                l.emit_labeled(label, inner);
            } else {
                let body = l.in_block(|l| {
                    let renamed = rename(inner, label, end, flag);
                    l.emit_labeled(end, renamed);
                    l.copy_out(copies);
                    Ok(())
                })?;
                l.emit_labeled(label, body);
            }
            Ok(())
        });
        self.flow = outer;
        self.in_action = outer_action;
        let body = lowered?;
        let out = ActionId(self.program.actions.len() as u32);
        if exits(&body, flag) {
            self.exiting.insert(out);
        }
        self.program.actions.push(ir::Action { info, params, body });
        if plain {
            self.actions.insert((owner, id), out);
        }
        Ok(out)
    }

    /// Name and annotations of an action for the control plane; one at top level has no path.
    pub(super) fn action_info(&mut self, id: DefId) -> ir::Info {
        let def = self.def(id);
        if self.is_local(id) {
            return self.info(def);
        }
        let path = std::mem::take(&mut self.path);
        let info = self.info(def);
        self.path = path;
        info
    }

    /// Whether an action is declared in the control around rather than at top level.
    pub(super) fn is_local(&self, id: DefId) -> bool {
        let Some(current) = self.current else { return false };
        match &self.def(self.instances[current.0].def).kind {
            DefKind::Control(c) => c.locals.contains(&id),
            _ => false,
        }
    }
}

/// Whether the block raises the exit flag.
fn exits(block: &[Stmt], flag: ir::VarId) -> bool {
    block.iter().any(|s| match s {
        Stmt::Assign { dst: Place::Var(var), .. } => *var == flag,
        Stmt::If { then, otherwise, .. } => exits(then, flag) || exits(otherwise, flag),
        Stmt::Switch { cases, default, .. } => {
            cases.iter().any(|(_, b)| exits(b, flag)) || exits(default, flag)
        }
        Stmt::Labeled { body, .. } | Stmt::Loop { body, .. } => exits(body, flag),
        _ => false,
    })
}

/// Sends every `Break(from)` that does not follow the raising of the exit flag to `to`.
fn rename(block: Vec<Stmt>, from: ir::LabelId, to: ir::LabelId, flag: ir::VarId) -> Vec<Stmt> {
    let mut raised = false;
    block
        .into_iter()
        .map(|s| {
            let out = match s {
                Stmt::Break(label) if label == from && !raised => Stmt::Break(to),
                Stmt::If { cond, then, otherwise } => Stmt::If {
                    cond,
                    then: rename(then, from, to, flag),
                    otherwise: rename(otherwise, from, to, flag),
                },
                Stmt::Switch { on, cases, default } => Stmt::Switch {
                    on,
                    cases: cases.into_iter().map(|(l, b)| (l, rename(b, from, to, flag))).collect(),
                    default: rename(default, from, to, flag),
                },
                Stmt::Labeled { label, body } => Stmt::Labeled { label, body: rename(body, from, to, flag) },
                Stmt::Loop { label, body } => Stmt::Loop { label, body: rename(body, from, to, flag) },
                other => other,
            };
            raised = matches!(&out, Stmt::Assign { dst: Place::Var(var), .. } if *var == flag);
            out
        })
        .collect()
}

/// One control-plane parameter per scalar.
fn control_params(store: &Store, name: &str, out: &mut Vec<ir::ActionParam>, l: &Lowerer<'_>) {
    match store {
        Store::Scalar(Place::Var(var), _) | Store::Varbit(Place::Var(var)) => {
            out.push(ir::ActionParam {
                name: name.to_owned(),
                var: *var,
                annotations: Vec::new(),
                type_name: None,
                shown_width: l.program[*var].width,
                id: None,
            });
        }
        Store::Struct(items) | Store::Header { fields: items, .. } => {
            for (index, item) in items.iter().enumerate() {
                let sub = match item {
                    Store::Scalar(Place::Var(var), _) => {
                        let full = &l.program[*var].name;
                        full.rsplit('.').next().unwrap_or("").to_owned()
                    }
                    _ => index.to_string(),
                };
                control_params(item, &format!("{name}.{sub}"), out, l);
            }
        }
        _ => {}
    }
}

/// A number as it is written, without underscores and leading zeros; a constant's name is left as it is.
fn number_text(text: &str) -> String {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return text.to_owned();
    }
    let text = text.replace('_', "").to_lowercase();
    let at = text.find(['w', 's']).map_or(0, |sign| sign + 1);
    let base = if text[at..].starts_with("0x") || text[at..].starts_with("0o") || text[at..].starts_with("0b")
    {
        at + 2
    } else {
        at
    };
    let digits = text[base..].trim_start_matches('0');
    format!("{}{}", &text[..base], if digits.is_empty() { "0" } else { digits })
}
