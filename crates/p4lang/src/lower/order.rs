//! The order of evaluation (P4_16 sections 6.8, 8.1 and 18.4): operands and arguments are evaluated from left to right.
//!
//! Expressions of the lowered program are pure, and are evaluated where they stand. So what an operand reads is kept in
//! storage of its own where the statements of a later one may change it, and only there.

use std::cell::RefCell;

use super::expr::Value;
use super::places::Places;
use super::store::Store;
use super::{Binding, Lowered, Lowerer, build};
use crate::ast::Direction;
use crate::check::find;
use crate::hir::{self, Call, Callee, DefId, DefKind, ExprKind as K, Order, Type};
use crate::ir::{Expr, ExternCall, HeaderRef, Place, StackId, Stmt};

/// What an argument of a call touches.
pub(super) struct Touched {
    /// The parameter is not written.
    pub reads: bool,
    /// The variable, or part of one, that it is.
    pub named: Option<Store>,
    /// Where a result is copied back to, if it names none.
    pub back: Option<Store>,
    /// What evaluating it may change; `None` if that may be anything.
    pub changed: Option<Vec<Store>>,
}

impl Touched {
    /// Parts of all that it touches.
    pub(super) fn size(&self) -> usize {
        let stores = self.named.iter().chain(&self.back).chain(self.changed.iter().flatten());
        stores.map(Store::size).sum()
    }
}

impl Lowerer<'_> {
    /// Lowers the next of several operands, and keeps of those before it what its statements may change.
    pub(super) fn operand<T>(
        &mut self,
        earlier: &mut [Value],
        lower: impl FnOnce(&mut Self) -> Lowered<T>,
    ) -> Lowered<T> {
        let outer = std::mem::take(&mut self.out);
        let value = lower(self);
        let block = std::mem::replace(&mut self.out, outer);
        let value = value?;
        if !block.is_empty() {
            let mut written = Places::default();
            self.effects(&block, &mut written);
            for value in earlier {
                let before = std::mem::replace(value, Value::Unit);
                *value = self.kept(before, &written);
                self.budget.work(1 + written.looked());
            }
            self.out.extend(block);
        }
        Ok(value)
    }

    /// The values of several expressions, evaluated in `order`.
    pub(super) fn in_order(&mut self, items: &[Option<hir::Expr>], order: &Order) -> Lowered<Vec<Value>> {
        let mut out = vec![Value::Default; items.len()];
        for index in order.indices(items.len()) {
            if let Some(e) = &items[index] {
                out[index] = self.operand(&mut out, |l| l.value(e))?;
            }
        }
        Ok(out)
    }

    /// Several numbers, in order.
    pub(super) fn scalars<const N: usize>(&mut self, items: [&hir::Expr; N]) -> Lowered<[Expr; N]> {
        let mut out = [const { Value::Unit }; N];
        for (index, item) in items.into_iter().enumerate() {
            let value = self.operand(&mut out[..index], |l| l.scalar(item))?;
            out[index] = Value::Scalar(value);
        }
        Ok(out.map(|value| self.number(value)))
    }

    /// The value, with copies of those parts that read one of `written`.
    pub(super) fn kept(&mut self, value: Value, written: &Places) -> Value {
        match value {
            Value::Struct(items) => Value::Struct(items.into_iter().map(|v| self.kept(v, written)).collect()),
            Value::Header(items) => Value::Header(items.into_iter().map(|v| self.kept(v, written)).collect()),
            value if !written.read_by(&self.program, &value) => value,
            Value::Scalar(e) => Value::Scalar(self.freeze(e)),
            Value::Store(Store::Scalar(place, width)) => {
                Value::Scalar(self.freeze(build::read(place, width)))
            }
            Value::Store(store) => Value::Store(self.copy_of(&store)),
            other => other,
        }
    }

    /// See [`Store::index`].
    pub(super) fn index_of<'s>(&self, store: &'s Store) -> Option<(StackId, &'s Expr)> {
        let mut looked = 0;
        let found = store.index(&mut looked);
        self.budget.work(looked);
        found
    }

    /// The same place, with its run-time index, if it has one, as it is now.
    pub(super) fn keep_index(&mut self, store: Store) -> Store {
        let Some((stack, index)) = self.index_of(&store) else { return store };
        let kept = self.freeze(index.clone());
        self.budget.work(4 * store.size());
        store.at(stack, &kept)
    }

    /// Whether the run-time index of `store`, if it has one, changes while the parts of `dst` are written.
    pub(super) fn index_in(&self, store: &Store, dst: &Store) -> bool {
        let Some((_, index)) = self.index_of(store) else { return false };
        let mut written = Places::default();
        written.add(dst);
        written.read_by_expr(&self.program, index)
    }

    /// Whether statements change the run-time index of `store`, if it has one.
    pub(super) fn moved_by(&self, block: &[Stmt], store: &Store) -> bool {
        let Some((_, index)) = self.index_of(store) else { return false };
        let mut written = Places::default();
        self.effects(block, &mut written);
        written.read_by_expr(&self.program, index)
    }

    /// What statements write.
    pub(super) fn effects(&self, block: &[Stmt], out: &mut Places) {
        self.budget.work(block.len());
        for stmt in block {
            match stmt {
                Stmt::Assign { dst, .. } | Stmt::CopyVarbit { dst, .. } => out.add_place(dst),
                Stmt::CopyHeader { dst: header, .. }
                | Stmt::ResetHeader(header)
                | Stmt::Extract { header, .. } => self.header_written(header, out),
                Stmt::If { then, otherwise, .. } => {
                    self.effects(then, out);
                    self.effects(otherwise, out);
                }
                Stmt::Switch { cases, default, .. } => {
                    cases.iter().for_each(|(_, body)| self.effects(body, out));
                    self.effects(default, out);
                }
                Stmt::Labeled { body, .. } | Stmt::Loop { body, .. } => self.effects(body, out),
                // By its actions.
                Stmt::Apply { .. } => out.add_all(),
                Stmt::Lookahead { into } => into.iter().for_each(|place| out.add_place(place)),
                Stmt::Extern(call) => match call {
                    ExternCall::MeterExecute { dst, .. }
                    | ExternCall::RegisterRead { dst, .. }
                    | ExternCall::Random { dst, .. }
                    | ExternCall::Hash { dst, .. }
                    | ExternCall::UpdateChecksum { dst, .. } => out.add_place(dst),
                    ExternCall::VerifyChecksum { flag, .. } => {
                        flag.iter().for_each(|var| out.add_place(&Place::Var(*var)));
                    }
                    ExternCall::CounterCount { .. }
                    | ExternCall::RegisterWrite { .. }
                    | ExternCall::Digest { .. }
                    | ExternCall::Clone { .. }
                    | ExternCall::Resubmit { .. }
                    | ExternCall::Recirculate { .. }
                    | ExternCall::Truncate { .. }
                    | ExternCall::LogMsg { .. }
                    | ExternCall::Assert { .. }
                    | ExternCall::Assume { .. } => {}
                },
                Stmt::Break(_)
                | Stmt::Continue(_)
                | Stmt::Advance { .. }
                | Stmt::Verify { .. }
                | Stmt::Emit(_) => {}
            }
        }
    }

    fn header_written(&self, header: &HeaderRef, out: &mut Places) {
        let id = match header {
            HeaderRef::Header(id) => id,
            HeaderRef::Elem { stack, .. } => return out.add_element(*stack),
        };
        let header = &self.program[*id];
        let fields = self.program[header.ty].fields.len() as u32;
        self.budget.work(fields as usize);
        out.add_place(&Place::Var(header.valid));
        for index in 0..fields {
            out.add_place(&Place::Var(crate::ir::VarId(header.first_field.0 + index)));
        }
    }

    /// The variable that an l-value is or is a part of: the smallest at a place that is known here.
    fn around(&mut self, e: &hir::Expr) -> Lowered<Option<Store>> {
        let mut e = e;
        loop {
            if let Some(store) = self.named(e)? {
                return Ok(Some(store));
            }
            e = match &e.kind {
                K::Field(base, _)
                | K::Index(base, _)
                | K::Slice { base, .. }
                | K::StackNext(base)
                | K::StackLast(base) => base,
                _ => return Ok(None),
            };
        }
    }

    /// The store of an expression that is a variable, or a part of one, at a fixed place.
    fn named(&mut self, e: &hir::Expr) -> Lowered<Option<Store>> {
        if !is_plain_place(e) || !self.bound_store(e) {
            return Ok(None);
        }
        Ok(Some(self.place(e, false)?).filter(Store::fixed))
    }

    fn bound_store(&self, e: &hir::Expr) -> bool {
        match &e.kind {
            K::Ref(id) => matches!(self.env.get(id), Some(Binding::Store(_))),
            K::Field(base, _) | K::Index(base, _) => self.bound_store(base),
            _ => false,
        }
    }

    /// What the argument for a parameter touches.
    pub(super) fn touched(&mut self, param: DefId, arg: Option<&hir::Expr>) -> Lowered<Touched> {
        let reads = self.reads_only(param);
        let nothing = Touched { reads, named: None, back: None, changed: Some(Vec::new()) };
        let Some(e) = arg else { return Ok(nothing) };
        if let Some(store) = self.named(e)? {
            return Ok(Touched { named: Some(store), ..nothing });
        }
        let back = if reads { None } else { self.around(e)? };
        Ok(Touched { back, changed: self.changed(e)?, ..nothing })
    }

    /// What evaluating `e` may change; `None` if that may be anything.
    fn changed(&mut self, e: &hir::Expr) -> Lowered<Option<Vec<Store>>> {
        let written = RefCell::new(Vec::new());
        let anything = find(e, &|part| {
            self.budget.work(1);
            let K::Call(call) = &part.kind else { return matches!(part.kind, K::TableHit { .. }) };
            let Some(params) = self.params_of(call) else { return true };
            let args = params.into_iter().zip(&call.args).filter(|(param, _)| !self.reads_only(*param));
            let places = args.filter_map(|(_, arg)| arg.as_ref()).filter(|arg| !Self::is_dont_care(arg));
            written.borrow_mut().extend(places.cloned());
            false
        });
        if anything.is_some() {
            return Ok(None);
        }
        let mut stores = Vec::new();
        for place in written.into_inner() {
            let Some(store) = self.around(&place)? else { return Ok(None) };
            stores.push(store);
        }
        Ok(Some(stores))
    }

    /// Parameters of what an expression calls; `None` if it can reach more than its arguments.
    fn params_of(&self, call: &Call) -> Option<Vec<DefId>> {
        let id = match &call.callee {
            Callee::IsValid(_) => return Some(Vec::new()),
            Callee::Function(id) | Callee::ExternFn(id) | Callee::Method { method: id, .. } => *id,
            _ => return None,
        };
        match &self.def(id).kind {
            DefKind::Function(function) => Some(function.signature.params.clone()),
            DefKind::ExternFn(signature) => Some(signature.params.clone()),
            _ => None,
        }
    }

    fn reads_only(&self, param: DefId) -> bool {
        matches!(self.param(param).direction, Direction::In | Direction::None)
    }
}

/// A variable or a field of one, at a fixed index.
fn is_plain_place(e: &hir::Expr) -> bool {
    match &e.kind {
        K::Ref(_) => true,
        K::Field(base, _) => !matches!(base.ty, Type::Tuple(_)) && is_plain_place(base),
        K::Index(base, index) => is_plain_place(base) && matches!(index.kind, K::Int(_)),
        _ => false,
    }
}
