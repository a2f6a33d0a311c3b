//! Statements.

use super::assign::Dest;
use super::expr::{Value, parts};
use super::places::Places;
use super::store::Store;
use super::{Binding, Lowered, Lowerer, build};
use crate::hir::{self, DefKind, ExprKind as K, StmtKind as S, Type};
use crate::ir::{BinOp, Block, Expr, ExprKind, Place, Stmt};
use crate::source::Span;

impl Lowerer<'_> {
    pub(super) fn block(&mut self, block: &hir::Block) -> Lowered<()> {
        self.stmts(&block.stmts)
    }

    pub(super) fn stmts(&mut self, stmts: &[hir::Stmt]) -> Lowered<()> {
        for stmt in stmts {
            self.stmt(stmt)?;
            // What follows never runs; as in the reference compiler, actions and tables there are not the program's.
            if leaves(stmt) {
                break;
            }
        }
        Ok(())
    }

    fn sub_block(&mut self, block: &hir::Block) -> Lowered<Block> {
        self.in_block(|l| l.block(block))
    }

    pub(super) fn stmt(&mut self, stmt: &hir::Stmt) -> Lowered<()> {
        self.bounded(stmt.span)?;
        match &stmt.kind {
            S::Block(block) => self.block(block)?,
            S::Assign { left, op, right } => self.assign_stmt(left, *op, right)?,
            S::Call(call) => {
                self.call(call)?;
            }
            S::Decl(id) => self.declare(*id)?,
            S::If { cond, then, otherwise } => {
                let cond = self.scalar(cond)?;
                if let ExprKind::Const(value) = &cond.kind {
                    return self.block(if *value == 1u8.into() { then } else { otherwise });
                }
                let then = self.sub_block(then)?;
                let otherwise = self.sub_block(otherwise)?;
                if !then.is_empty() || !otherwise.is_empty() {
                    self.emit(Stmt::If { cond, then, otherwise });
                }
            }
            S::SwitchAction { table, cases, default } => {
                let run = self.temp(32);
                self.apply_table(table, None, Some(&run))?;
                let mut out = Vec::new();
                for (labels, body) in cases {
                    let labels = labels.iter().map(|l| (*l as u32).into()).collect();
                    out.push((labels, self.sub_block(body)?));
                }
                let default = match default {
                    Some(body) => self.sub_block(body)?,
                    None => Block::new(),
                };
                self.emit(Stmt::Switch { on: build::read(run, 32), cases: out, default });
            }
            S::Switch { on, cases, default } => self.switch(on, cases, default.as_ref())?,
            S::For { init, cond, update, body } => {
                self.stmts(init)?;
                self.for_loop(cond, update, body)?;
            }
            S::ForRange { var, lo, hi, body } => self.for_range(*var, lo, hi, body)?,
            S::ForIn { var, over, body } => self.for_in(*var, over, body)?,
            S::Break => {
                if let Some((label, _)) = self.flow.loops.last().copied() {
                    self.leave(label);
                }
            }
            S::Continue => {
                if let Some((_, label)) = self.flow.loops.last().copied() {
                    self.leave(label);
                }
            }
            S::Return(value) => {
                let Some((label, result)) = self.flow.ret.clone() else {
                    return self.fail("unsupported", stmt.span, "`return` has nothing to return from here");
                };
                if let (Some(value), Some(store)) = (value, result) {
                    let value = self.value(value)?;
                    self.assign(&store, value);
                }
                self.leave(label);
            }
            S::Exit => self.exit(stmt.span)?,
        }
        Ok(())
    }

    /// Leaves the pipeline block, after the copies that the calls around still owe.
    pub(super) fn exit(&mut self, span: Span) -> Lowered<()> {
        let Some((label, flag)) = self.flow.exit else {
            return self.fail("unsupported", span, "`exit` has nothing to leave here");
        };
        let copies: Vec<_> = self.flow.copy_outs.iter().rev().flat_map(|c| c.iter()).cloned().collect();
        for (dest, from) in copies {
            self.assign_dest(&dest, Value::Store(from));
        }
        if let Some(flag) = flag {
            self.emit(Stmt::Assign { dst: Place::Var(flag), src: build::bit(true) });
        }
        self.leave(label);
        Ok(())
    }

    /// A declaration among statements.
    pub(super) fn declare(&mut self, id: hir::DefId) -> Lowered<()> {
        let def = self.def(id);
        match &def.kind {
            DefKind::Variable { ty, init } => {
                let ty = self.ty(ty);
                let value = match init {
                    Some(init) => Some(self.value(init)?),
                    None => None,
                };
                let name = self.qualified(&def.name);
                let store = self.alloc(&ty, &name, super::store::Life::Local);
                match value {
                    Some(value) => {
                        // A list may leave elements of a stack out.
                        if matches!(store, Store::Stack { .. }) && !matches!(value, Value::Store(_)) {
                            self.assign(&store, Value::Default);
                        }
                        self.assign(&store, value);
                    }
                    None => self.assign(&store, Value::Default),
                }
                self.env.insert(id, Binding::Store(store));
            }
            DefKind::Const { value, .. } => {
                let value = self.constant(value).unwrap_or_else(|| value.clone());
                self.env.insert(id, Binding::Value(value));
            }
            DefKind::Instance(_) => {
                let instance = self.instantiate_def(id)?;
                self.env.insert(id, Binding::Instance(instance));
            }
            _ => {}
        }
        Ok(())
    }

    fn dest(&mut self, e: &hir::Expr, keep: bool) -> Lowered<Dest> {
        let (base, hi, lo) = match &e.kind {
            K::Slice { base, hi, lo } => (base, *hi, *lo),
            // A serializable enum or new type is seen through a cast.
            _ => return Ok(Dest::Store(self.place(e, keep)?)),
        };
        Ok(match self.dest(base, keep)? {
            Dest::Store(Store::Scalar(place, width)) => Dest::Slice { place, width, hi, lo },
            Dest::Slice { place, width, lo: below, .. } => {
                Dest::Slice { place, width, hi: hi + below, lo: lo + below }
            }
            Dest::Store(_) => Dest::Store(Store::Unit),
        })
    }

    fn assign_stmt(
        &mut self,
        left: &hir::Expr,
        op: Option<crate::ast::BinaryOp>,
        right: &hir::Expr,
    ) -> Lowered<()> {
        let mut dest = self.dest(left, false)?;
        let outer = std::mem::take(&mut self.out);
        let value = self.value(right);
        let block = std::mem::replace(&mut self.out, outer);
        let value = value?;
        // The right side might change the index, and so might the first of several writes.
        dest = match dest {
            Dest::Store(store) if self.moved_by(&block, &store) || self.index_in_itself(&store, &value) => {
                Dest::Store(self.keep_index(store))
            }
            Dest::Slice { place, width, hi, lo } => {
                let whole = Store::Scalar(place, width);
                let whole = if self.moved_by(&block, &whole) { self.keep_index(whole) } else { whole };
                let Store::Scalar(place, width) = whole else { return Ok(()) };
                Dest::Slice { place, width, hi, lo }
            }
            other => other,
        };
        if let Some(op) = op {
            let width = dest.width();
            let old = dest.read();
            let old = if block.is_empty() { old } else { self.freeze(old) };
            self.out.extend(block);
            let Some(right_value) = self.value_scalar(value) else { return Ok(()) };
            self.shift_amount(op, right, &right_value);
            let ty = self.ty(&left.ty);
            let result = self.combine(op, old, right_value, &ty);
            self.assign_dest(&dest, Value::Scalar(build::resize(result, width, false)));
            return Ok(());
        }
        self.out.extend(block);
        self.assign_dest(&dest, value);
        Ok(())
    }

    /// Whether assigning the value takes several statements, of which the first may change where the others go.
    fn index_in_itself(&self, store: &Store, value: &Value) -> bool {
        let several = match store {
            Store::Unit | Store::Scalar(..) | Store::Varbit(_) => false,
            Store::Header { siblings, .. } => {
                !siblings.is_empty() || !matches!(value, Value::Store(_) | Value::Default)
            }
            Store::Struct(_) | Store::Union(_) | Store::Stack { .. } => true,
        };
        several && self.index_in(store, store)
    }

    fn switch(
        &mut self,
        on: &hir::Expr,
        cases: &[(Vec<hir::Expr>, hir::Block)],
        default: Option<&hir::Block>,
    ) -> Lowered<()> {
        let on = self.scalar(on)?;
        let mut out = Vec::new();
        for (labels, body) in cases {
            let mut values = Vec::new();
            for label in labels {
                match self.scalar(label)?.kind {
                    ExprKind::Const(value) => values.push(value),
                    _ => {
                        return self.fail(
                            "not-constant",
                            label.span,
                            "a label must be known at compile time",
                        );
                    }
                }
            }
            out.push((values, self.sub_block(body)?));
        }
        let default = match default {
            Some(body) => self.sub_block(body)?,
            None => Block::new(),
        };
        self.emit(Stmt::Switch { on, cases: out, default });
        Ok(())
    }

    /// `loop { if !cond break; body; update }`
    fn for_loop(&mut self, cond: &hir::Expr, update: &[hir::Stmt], body: &hir::Block) -> Lowered<()> {
        let (out, next) = (self.label(), self.label());
        let mut block = self.in_block(|l| {
            let cond = l.scalar(cond)?;
            l.emit(Stmt::If { cond, then: Vec::new(), otherwise: vec![Stmt::Break(out)] });
            Ok(())
        })?;
        self.flow.loops.push((out, next));
        let inner = self.sub_block(body);
        self.flow.loops.pop();
        let inner = inner?;
        let rest = self.in_block(|l| {
            l.emit_labeled(next, inner);
            l.stmts(update)
        })?;
        block.extend(rest);
        self.emit(Stmt::Loop { label: out, body: block });
        Ok(())
    }

    fn loop_var(&mut self, id: hir::DefId) -> Lowered<Store> {
        if let Some(Binding::Store(store)) = self.env.get(&id) {
            return Ok(store.clone());
        }
        self.declare(id)?;
        self.loop_var_declared(id)
    }

    fn loop_var_declared(&mut self, id: hir::DefId) -> Lowered<Store> {
        match self.env.get(&id) {
            Some(Binding::Store(store)) => Ok(store.clone()),
            _ => {
                let span = self.def(id).span;
                self.fail("unsupported", span, "this cannot be a loop's variable")
            }
        }
    }

    /// Both ends included; a counter one bit wider cannot wrap.
    fn for_range(
        &mut self,
        var: hir::DefId,
        lo: &hir::Expr,
        hi: &hir::Expr,
        body: &hir::Block,
    ) -> Lowered<()> {
        let sign = self.is_signed(&self.ty(&lo.ty));
        let [lo, hi] = self.scalars([lo, hi])?;
        let width = lo.width;
        let store = self.loop_var(var)?;
        let wide = width + 1;
        let counter = self.temp(wide);
        self.emit(Stmt::Assign { dst: counter.clone(), src: build::resize(lo, wide, sign) });
        let end = self.freeze(build::resize(hi, wide, sign));
        let (out, next) = (self.label(), self.label());
        self.flow.loops.push((out, next));
        let inner = self.sub_block(body);
        self.flow.loops.pop();
        let inner = inner?;
        let block = self.in_block(|l| {
            let at = build::read(counter.clone(), wide);
            let less = if sign { BinOp::LeS } else { BinOp::LeU };
            let cond = build::binary(less, at.clone(), end);
            l.emit(Stmt::If { cond, then: Vec::new(), otherwise: vec![Stmt::Break(out)] });
            l.assign(&store, Value::Scalar(build::resize(at.clone(), width, false)));
            l.emit_labeled(next, inner);
            let one = build::constant(1u8, wide);
            l.emit(Stmt::Assign { dst: counter.clone(), src: build::binary(BinOp::Add, at, one) });
            Ok(())
        })?;
        self.emit(Stmt::Loop { label: out, body: block });
        Ok(())
    }

    /// Over the elements of a list or stack, unrolled. All elements are those from before the first round.
    fn for_in(&mut self, var: hir::DefId, over: &hir::Expr, body: &hir::Block) -> Lowered<()> {
        let items = parts(self.value(over)?);
        let store = self.loop_var(var)?;
        let out = self.label();
        let mut rounds = Vec::new();
        let mut written = Places::default();
        for item in items {
            let item = self.kept(item, &written);
            let next = self.label();
            self.flow.loops.push((out, next));
            let round = self.sub_block(body);
            self.flow.loops.pop();
            let round = round?;
            self.bounded(over.span)?;
            written.add(&store);
            self.effects(&round, &mut written);
            self.budget.work(1 + written.looked());
            rounds.push((item, next, round));
        }
        let whole = self.in_block(|l| {
            for (item, next, round) in rounds {
                let body = l.in_block(|l| {
                    l.assign(&store, item);
                    l.out.extend(round);
                    Ok(())
                })?;
                l.emit_labeled(next, body);
            }
            Ok(())
        })?;
        self.emit_labeled(out, whole);
        Ok(())
    }
}

/// Whether no statement after this one in its block can run.
fn leaves(stmt: &hir::Stmt) -> bool {
    let block_leaves = |block: &hir::Block| block.stmts.iter().any(leaves);
    match &stmt.kind {
        S::Return(_) | S::Exit | S::Break | S::Continue => true,
        S::Block(block) => block_leaves(block),
        S::If { then, otherwise, .. } => block_leaves(then) && block_leaves(otherwise),
        _ => false,
    }
}

impl Dest {
    fn width(&self) -> u32 {
        match self {
            Dest::Store(Store::Scalar(_, width)) => *width,
            Dest::Store(_) => 1,
            Dest::Slice { hi, lo, .. } => hi - lo + 1,
        }
    }

    /// The scalar that is there now.
    pub(super) fn read(&self) -> Expr {
        match self {
            Dest::Store(Store::Scalar(place, width)) => build::read(place.clone(), *width),
            Dest::Store(_) => build::constant(0u8, 1),
            Dest::Slice { place, width, hi, lo } => {
                build::slice(build::read(place.clone(), *width), *hi, *lo)
            }
        }
    }
}

/// The l-value of an `out` or `inout` argument.
impl Lowerer<'_> {
    pub(super) fn out_dest(&mut self, e: &hir::Expr) -> Lowered<Dest> {
        self.dest(e, true)
    }

    pub(super) fn is_dont_care(e: &hir::Expr) -> bool {
        matches!(e.kind, K::DontCare) || e.ty == Type::DontCare
    }
}
