//! Statements (P4_16 section 12).

use std::collections::HashMap;

use num_bigint::BigInt;

use super::table_rules::applied_table;
use super::{Checker, Place, consts};
use crate::ast::{self, StmtKind as S};
use crate::diag::Diagnostic;
use crate::hir::{Block, DefKind, Expr, ExprKind, Stmt, StmtKind, Type};
use crate::source::Span;

impl Checker {
    pub(super) fn block(&mut self, block: &ast::Block) -> Block {
        self.scoped(|c| Block {
            stmts: c.stmts(&block.stmts),
            annotations: c.annotations(&block.annotations),
            span: block.span,
        })
    }

    /// Statements in the scope that is open.
    pub(super) fn stmts(&mut self, stmts: &[ast::Stmt]) -> Vec<Stmt> {
        stmts.iter().filter_map(|s| self.stmt(s).map(|kind| Stmt { kind, span: s.span })).collect()
    }

    fn stmt_block(&mut self, stmt: &ast::Stmt) -> Block {
        match &stmt.kind {
            S::Block(block) => self.block(block),
            _ => self.scoped(|c| Block {
                stmts: c.stmts(std::slice::from_ref(stmt)),
                annotations: Vec::new(),
                span: stmt.span,
            }),
        }
    }

    fn stmt(&mut self, stmt: &ast::Stmt) -> Option<StmtKind> {
        let span = stmt.span;
        if self.stop(span, 16) {
            return None;
        }
        Some(match &stmt.kind {
            S::Empty => return None,
            S::Block(block) => StmtKind::Block(self.block(block)),
            S::Assign { left, op, right } => self.assign(left, *op, right, span)?,
            S::Call(e) => {
                let expr = self.expr(e, None);
                match expr.kind {
                    ExprKind::Call(call) => StmtKind::Call(*call),
                    ExprKind::Construct(_) => {
                        self.error("bad-statement", span, "an instance needs a name").help =
                            Some("write `Type(args) name;`".into());
                        return None;
                    }
                    _ => return None,
                }
            }
            S::Decl(decl) => StmtKind::Decl(self.local(decl)?),
            S::If { cond, then, otherwise } => {
                let cond = self.condition(cond);
                let then = self.stmt_block(then);
                let otherwise = match otherwise {
                    Some(stmt) => self.stmt_block(stmt),
                    None => Block { stmts: Vec::new(), annotations: Vec::new(), span },
                };
                StmtKind::If { cond, then, otherwise }
            }
            S::Switch { on, cases } => self.switch(on, cases, span)?,
            S::For { annotations, init, cond, update, body } => self.scoped(|c| {
                c.annotations(annotations);
                let init = c.stmts(init);
                let cond = c.condition(cond);
                let update = c.stmts(update);
                c.loops += 1;
                let body = c.stmt_block(body);
                c.loops -= 1;
                StmtKind::For { init, cond, update, body }
            }),
            S::ForIn { annotations, ty, name, over, body } => {
                self.annotations(annotations);
                return self.for_in(ty.as_ref(), name, over, body);
            }
            S::Break | S::Continue => {
                if self.loops == 0 {
                    self.error("wrong-place", span, "there is no loop around this to leave or continue");
                }
                if matches!(stmt.kind, S::Break) { StmtKind::Break } else { StmtKind::Continue }
            }
            S::Return(value) => self.return_stmt(value.as_ref(), span)?,
            S::Exit => {
                if matches!(self.place, Place::Function | Place::Parser) {
                    self.error("wrong-place", span, "`exit` is allowed only in controls and actions");
                }
                StmtKind::Exit
            }
        })
    }

    fn return_stmt(&mut self, value: Option<&ast::Expr>, span: Span) -> Option<StmtKind> {
        if self.place == Place::Parser {
            self.error("wrong-place", span, "`return` is not allowed in a parser");
            return None;
        }
        let wanted = self.returns.clone().unwrap_or(Type::Void);
        match value {
            None if wanted == Type::Void => Some(StmtKind::Return(None)),
            None => {
                let shown = self.show(&wanted);
                self.error("type-mismatch", span, format!("this must return a `{shown}`"));
                Some(StmtKind::Return(None))
            }
            Some(value) if wanted == Type::Void => {
                self.error("type-mismatch", value.span, "nothing can be returned here");
                None
            }
            Some(value) => Some(StmtKind::Return(Some(self.expr_as(value, &wanted)))),
        }
    }

    fn assign(
        &mut self,
        left: &ast::Expr,
        op: Option<ast::BinaryOp>,
        right: &ast::Expr,
        span: Span,
    ) -> Option<StmtKind> {
        let plus_slice = matches!(left.kind, ast::ExprKind::PlusSlice { .. });
        let left = self.expr(left, None);
        if plus_slice && let Some(place) = super::plus_slice::place(&left) {
            return self.assign_run_time_slice(place, &left, (op, right), span);
        }
        let writable = self.require_writable(&left);
        let Some(op) = op else {
            let ty = left.ty.clone();
            if matches!(ty, Type::Unknown) || !writable {
                self.expr(right, None);
                return None;
            }
            if !self.storable(&ty) {
                let shown = self.show(&ty);
                self.error("not-assignable", span, format!("a `{shown}` cannot be assigned"));
                return None;
            }
            let right = self.expr_as(right, &ty);
            return Some(StmtKind::Assign { left, op: None, right });
        };
        let right = self.expr(right, None);
        if left.ty == Type::Unknown || right.ty == Type::Unknown {
            return None;
        }
        let shift = matches!(op, ast::BinaryOp::Shl | ast::BinaryOp::Shr);
        let right = if shift {
            self.numeric(right)
        } else {
            let ty = left.ty.clone();
            self.coerce(right, &ty)
        };
        // Checked as the binary operation that it is.
        let probe = if shift {
            self.shift(op, Expr { kind: ExprKind::DontCare, ..left.clone() }, right.clone(), span)
        } else {
            self.combine(op, Expr { kind: ExprKind::DontCare, ..left.clone() }, right.clone(), span)
        };
        (probe.ty != Type::Unknown && right.ty != Type::Unknown).then_some(StmtKind::Assign {
            left,
            op: Some(op),
            right,
        })
    }

    fn for_in(
        &mut self,
        ty: Option<&ast::TypeRef>,
        name: &ast::Ident,
        over: &ast::Expr,
        body: &ast::Stmt,
    ) -> Option<StmtKind> {
        let declared = ty.map(|t| self.ty(t));
        self.scoped(|c| {
            let var = |c: &mut Self, ty: Type| match &declared {
                Some(_) => {
                    let id =
                        c.define(name.name.clone(), name.span, &[], DefKind::Variable { ty, init: None });
                    c.declare(name, id);
                    Some(id)
                }
                None => {
                    let e = c.expr(
                        &ast::Expr {
                            kind: ast::ExprKind::Name(ast::Path { rooted: false, ident: name.clone() }),
                            span: name.span,
                        },
                        None,
                    );
                    c.require_writable(&e);
                    match e.kind {
                        ExprKind::Ref(id) => Some(id),
                        _ => None,
                    }
                }
            };
            let known = match (&declared, c.find(&ast::Path { rooted: false, ident: name.clone() })) {
                (Some(ty), _) => Some(ty.clone()),
                (None, Some(super::scope::Entry::Defs(ids))) => match &c.def(ids[0]).kind {
                    DefKind::Variable { ty, .. } => Some(ty.clone()),
                    DefKind::Param(p) => Some(p.ty.clone()),
                    _ => None,
                },
                _ => None,
            };
            if let ast::ExprKind::Range { lo, hi } = &over.kind {
                let lo = c.expr(lo, known.as_ref());
                let hi = c.expr(hi, known.as_ref());
                let ty =
                    known.unwrap_or_else(|| if lo.ty == Type::Int { hi.ty.clone() } else { lo.ty.clone() });
                if !matches!(ty, Type::Bits { .. } | Type::Unknown) {
                    c.error("type-mismatch", over.span, "a range runs over fixed-width numbers");
                    return None;
                }
                let (lo, hi) = (c.coerce(lo, &ty), c.coerce(hi, &ty));
                let var = var(c, ty)?;
                c.loops += 1;
                let body = c.stmt_block(body);
                c.loops -= 1;
                return Some(StmtKind::ForRange { var, lo, hi, body });
            }
            let list = match (&over.kind, &known) {
                (ast::ExprKind::List { items, .. }, Some(ty)) => {
                    Some(Type::Tuple(vec![ty.clone(); items.len()]))
                }
                _ => None,
            };
            let written = matches!(over.kind, ast::ExprKind::List { .. });
            let over = match &list {
                Some(ty) => c.expr_as(over, ty),
                None => c.expr(over, None),
            };
            let element = match &over.ty {
                Type::Stack(element, _) | Type::List(element) => (**element).clone(),
                Type::Tuple(items) if written => items.first().cloned().unwrap_or(Type::Unknown),
                Type::Unknown => return None,
                other => {
                    let shown = c.show(other);
                    c.error("type-mismatch", over.span, format!("cannot loop over a `{shown}`"));
                    return None;
                }
            };
            if let Some(ty) = &known
                && *ty != element
                && !matches!((ty, &element), (Type::Unknown, _) | (_, Type::Unknown | Type::Int))
            {
                let (shown, of) = (c.show(ty), c.show(&element));
                let message = format!("the loop variable is a `{shown}`, the elements are `{of}`");
                c.error("type-mismatch", over.span, message).help =
                    Some("declare the variable with the elements' type".into());
                return None;
            }
            let ty = known.unwrap_or(element);
            let var = var(c, ty)?;
            c.loops += 1;
            let body = c.stmt_block(body);
            c.loops -= 1;
            Some(StmtKind::ForIn { var, over, body })
        })
    }

    fn switch(&mut self, on: &ast::Expr, cases: &[ast::SwitchCase], span: Span) -> Option<StmtKind> {
        let on = self.expr(on, None);
        if let Some(case) =
            cases.iter().rev().skip(1).find(|c| matches!(c.label.kind, ast::ExprKind::Default))
        {
            self.error("bad-switch", case.label.span, "`default` must be the last case");
            return None;
        }
        match on.ty {
            Type::Unknown => {
                for case in cases {
                    if let Some(body) = &case.body {
                        self.block(body);
                    }
                }
                None
            }
            Type::ActionRun(table) => self.switch_action(on, table, cases),
            _ => self.switch_value(on, cases, span),
        }
    }

    fn switch_action(
        &mut self,
        on: Expr,
        table: crate::hir::DefId,
        cases: &[ast::SwitchCase],
    ) -> Option<StmtKind> {
        let ExprKind::Call(call) = on.kind else { return None };
        let DefKind::Table(def) = &self.def(table).kind else { return None };
        let actions: Vec<_> = def.actions.iter().map(|a| self.def(a.action).name.clone()).collect();
        self.budget.work(actions.len() * (cases.len() + 1));
        let mut seen: Vec<usize> = Vec::new();
        let mut out = Vec::new();
        let mut default = None;
        let mut pending = Vec::new();
        for case in cases {
            let is_default = matches!(case.label.kind, ast::ExprKind::Default);
            if !is_default {
                let name = match &case.label.kind {
                    ast::ExprKind::Name(path) => path.ident.clone(),
                    _ => {
                        self.error(
                            "bad-switch",
                            case.label.span,
                            "a label here is the name of an action of the table",
                        );
                        continue;
                    }
                };
                match actions.iter().position(|a| *a == name.name) {
                    Some(index) if seen.contains(&index) => {
                        self.error("bad-switch", name.span, format!("`{}` is a label twice", name.name));
                    }
                    Some(index) => {
                        seen.push(index);
                        pending.push(index);
                    }
                    None => {
                        let similar = self.similar(&name.name, actions.iter());
                        let diagnostic = self.error(
                            "bad-switch",
                            name.span,
                            format!("`{}` is not an action of this table", name.name),
                        );
                        diagnostic.help = similar.map(|s| format!("did you mean `{s}`?"));
                    }
                }
            }
            if let Some(body) = &case.body {
                let body = self.block(body);
                if is_default {
                    // Labels that fall into `default` need no case of their own.
                    default = Some(body);
                    pending.clear();
                } else if !pending.is_empty() {
                    out.push((std::mem::take(&mut pending), body));
                }
            }
        }
        Some(StmtKind::SwitchAction { table: *call, cases: out, default })
    }

    fn switch_value(&mut self, on: Expr, cases: &[ast::SwitchCase], span: Span) -> Option<StmtKind> {
        self.require_no_action(span, "a `switch` on a value");
        let on = if on.ty == Type::Int {
            self.error("bad-switch", on.span, "a number without a width cannot be switched on");
            return None;
        } else {
            on
        };
        if !matches!(on.ty, Type::Bits { .. } | Type::Enum(_) | Type::Error | Type::Bool | Type::New(_)) {
            let shown = self.show(&on.ty);
            self.error("bad-switch", span, format!("a `{shown}` cannot be switched on"));
            return None;
        }
        let mut seen: HashMap<BigInt, Span> = HashMap::new();
        let mut out = Vec::new();
        let mut default = None;
        let mut pending: Vec<Expr> = Vec::new();
        for case in cases {
            let is_default = matches!(case.label.kind, ast::ExprKind::Default);
            if !is_default {
                let label = self.expr_as(&case.label, &on.ty);
                if label.ty == Type::Unknown {
                    continue;
                }
                let value = match &label.kind {
                    ExprKind::Int(value) => value.clone(),
                    ExprKind::Bool(value) => u8::from(*value).into(),
                    ExprKind::Error(index) => (*index).into(),
                    ExprKind::EnumMember(id, index) => self.member_value(*id, *index),
                    _ => {
                        if !self.compile_time(&label) {
                            self.error("not-constant", label.span, "a label must be known at compile time");
                            continue;
                        }
                        pending.push(label);
                        continue;
                    }
                };
                if let Some(first) = seen.get(&value) {
                    let first = *first;
                    self.error("bad-switch", label.span, "this label is there twice")
                        .related
                        .push((first, "first here".into()));
                    continue;
                }
                seen.insert(value, label.span);
                pending.push(label);
            }
            if let Some(body) = &case.body {
                let body = self.block(body);
                if is_default {
                    default = Some(body);
                    pending.clear();
                } else if !pending.is_empty() {
                    out.push((std::mem::take(&mut pending), body));
                }
            }
        }
        Some(StmtKind::Switch { on, cases: out, default })
    }

    /// The value of an enum's member, or which it is if it has none.
    fn member_value(&self, id: crate::hir::DefId, index: usize) -> BigInt {
        let DefKind::Enum(def) = &self.def(id).kind else { return index.into() };
        def.members.get(index).and_then(|(_, value)| value.clone()).unwrap_or_else(|| index.into())
    }

    /// A variable, constant or instance among statements.
    fn local(&mut self, decl: &ast::Decl) -> Option<crate::hir::DefId> {
        match &decl.kind {
            ast::DeclKind::Variable { ty, name, init } => self.variable(decl, ty, name, init.as_ref()),
            ast::DeclKind::Const { ty, name, value } => self.constant(decl, ty, name, value),
            ast::DeclKind::Instantiation { ty, args, name, body } => {
                if matches!(self.place, Place::Control | Place::Parser) {
                    let block = if self.place == Place::Control { "`apply`" } else { "the states" };
                    self.error("wrong-place", decl.span, "an instance cannot be made among statements")
                        .help = Some(format!("move it before {block}"));
                }
                self.instantiation(decl, ty, args, name, body.as_deref())
            }
            _ => {
                self.error("wrong-place", decl.span, "this cannot be declared here");
                None
            }
        }
    }

    pub(super) fn variable(
        &mut self,
        decl: &ast::Decl,
        ty: &ast::TypeRef,
        name: &ast::Ident,
        init: Option<&ast::Expr>,
    ) -> Option<crate::hir::DefId> {
        let span = ty.span;
        let mut ty = self.ty(ty);
        if !self.storable(&ty) {
            let shown = self.show(&ty);
            let diagnostic = self.error("bad-type", span, format!("a variable cannot be a `{shown}`"));
            if ty == Type::Int {
                diagnostic.help = Some("give it a width, as in `bit<32>`; or make it a `const`".into());
            }
            ty = Type::Unknown;
        }
        let init = init.map(|e| self.expr_as(e, &ty));
        if self.place == Place::Control
            && self.returns.is_none()
            && let Some(span) = init.as_ref().and_then(applied_table)
        {
            self.error("wrong-place", span, "a table may be applied only in a control's `apply` block")
                .help = Some("assign to the variable there".into());
        }
        let id = self.define(name.name.clone(), name.span, &decl.annotations, DefKind::Variable { ty, init });
        self.declare(name, id);
        Some(id)
    }

    pub(super) fn constant(
        &mut self,
        decl: &ast::Decl,
        ty: &ast::TypeRef,
        name: &ast::Ident,
        value: &ast::Expr,
    ) -> Option<crate::hir::DefId> {
        let written = ty.span;
        let ty = self.ty(ty);
        if matches!(
            ty,
            Type::Extern(..) | Type::Parser(..) | Type::Control(..) | Type::Package(..) | Type::Void
        ) {
            let shown = self.show(&ty);
            self.error("bad-type", written, format!("a constant cannot be a `{shown}`")).help =
                Some("make an instance: `Type(...) name;`".into());
        }
        let value = self.expr_as(value, &ty);
        if value.ty != Type::Unknown && !consts::is_const(&value) && !self.compile_time(&value) {
            self.error(
                "not-constant",
                value.span,
                format!("the value of `{}` is not known at compile time", name.name),
            );
        }
        let id = self.define(name.name.clone(), name.span, &decl.annotations, DefKind::Const { ty, value });
        self.declare(name, id);
        Some(id)
    }

    /// Whether every path through the statements returns (or exits).
    pub(super) fn always_returns(stmts: &[Stmt]) -> bool {
        stmts.iter().any(|s| match &s.kind {
            StmtKind::Return(_) | StmtKind::Exit => true,
            StmtKind::Block(b) => Self::always_returns(&b.stmts),
            StmtKind::If { then, otherwise, .. } => {
                Self::always_returns(&then.stmts) && Self::always_returns(&otherwise.stmts)
            }
            StmtKind::Switch { cases, default: Some(default), .. } => {
                cases.iter().all(|(_, b)| Self::always_returns(&b.stmts))
                    && Self::always_returns(&default.stmts)
            }
            StmtKind::SwitchAction { cases, default: Some(default), .. } => {
                cases.iter().all(|(_, b)| Self::always_returns(&b.stmts))
                    && Self::always_returns(&default.stmts)
            }
            _ => false,
        })
    }

    pub(super) fn warn(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::warning(code, span, message));
    }
}
