//! Calls: arguments bound or copied in, the body inlined, results copied out (P4_16 section 6.8).
//!
//! A parameter stands for its argument itself where nobody can tell the difference: the argument is at a fixed place
//! that nothing else in the call touches. Otherwise it gets storage of its own.

use std::rc::Rc;

use super::assign::Dest;
use super::expr::Value;
use super::order::Touched;
use super::store::{Life, Store};
use super::{Binding, Flow, Lowered, Lowerer, build};
use crate::ast::Direction;
use crate::check::consts;
use crate::hir::{Call, Callee, DefId, DefKind, Expr, ExprKind as K, ParamDef, Type, TypeParamId};
use crate::ir::{Place, Stmt};
use crate::source::Span;

/// A copy back to an `out` argument.
pub(super) type CopyOut = (Dest, Store);
/// Where an extern may write a number, of how many bits, and what to do after.
pub(super) type OutPlace = (Place, u32, Option<CopyOut>);

impl Lowerer<'_> {
    pub(super) fn param(&self, id: DefId) -> ParamDef {
        match &self.def(id).kind {
            DefKind::Param(p) => {
                let weight = p.default.as_ref().map_or(0, consts::weight);
                self.budget.work(weight / 32);
                p.clone()
            }
            _ => ParamDef { direction: Direction::None, ty: Type::Unknown, default: None, optional: true },
        }
    }

    pub(super) fn call(&mut self, call: &Call) -> Lowered<Value> {
        self.bounded(call.span)?;
        match &call.callee {
            Callee::Function(id) => self.function(*id, call),
            Callee::Action(id) => self.direct_action(*id, call),
            Callee::ExternFn(id) => self.extern_function(*id, call),
            Callee::Method { object, method } => self.extern_method(object, *method, call),
            Callee::Table(_) => {
                self.apply_table(call, None, None)?;
                Ok(Value::Unit)
            }
            Callee::Apply(object) => {
                let instance = self.instance_of(object)?;
                self.apply_instance(instance, call)?;
                Ok(Value::Unit)
            }
            Callee::DirectApply(id) => {
                let instance = self.direct_instance(*id, call)?;
                self.apply_instance(instance, call)?;
                Ok(Value::Unit)
            }
            Callee::IsValid(e) => {
                let value = self.value(e)?;
                Ok(Value::Scalar(self.validity(&value)))
            }
            Callee::SetValid(e) => {
                if let Store::Header { valid, siblings, .. } = self.place(e, true)? {
                    self.set_valid(&valid, &siblings);
                }
                Ok(Value::Unit)
            }
            Callee::SetInvalid(e) => {
                if let Store::Header { valid, .. } = self.place(e, true)? {
                    self.emit(Stmt::Assign { dst: valid, src: build::bit(false) });
                }
                Ok(Value::Unit)
            }
            Callee::PushFront(e, count) => self.push(e, *count as usize, true),
            Callee::PopFront(e, count) => self.push(e, *count as usize, false),
        }
    }

    /// A header's validity; a union is valid if a member is.
    pub(super) fn validity(&self, value: &Value) -> crate::ir::Expr {
        match value {
            Value::Store(Store::Header { valid, .. }) => build::read(valid.clone(), 1),
            Value::Header(_) => build::bit(true),
            Value::Store(Store::Union(items)) => {
                let bits = items.iter().map(|s| self.validity(&Value::Store(s.clone()))).collect();
                build::balanced(bits, build::or).unwrap_or(build::bit(false))
            }
            _ => build::bit(false),
        }
    }

    /// Section 8.19: moves the elements, fills with invalid ones, and keeps nextIndex in step.
    fn push(&mut self, e: &Expr, count: usize, front: bool) -> Lowered<Value> {
        let Store::Stack { elements, next, .. } = self.place(e, true)? else { return Ok(Value::Unit) };
        let len = elements.len();
        let count = count.min(len);
        let copies: Vec<(usize, Option<usize>)> = if front {
            (0..len).rev().map(|i| (i, i.checked_sub(count))).collect()
        } else {
            (0..len).map(|i| (i, Some(i + count).filter(|j| *j < len))).collect()
        };
        for (to, from) in copies {
            match from {
                Some(from) => self.assign(&elements[to], Value::Store(elements[from].clone())),
                None => self.assign(&elements[to], Value::Default),
            }
        }
        use crate::ir::BinOp;
        let next = Place::Var(next);
        let at = build::read(next.clone(), 32);
        let n = build::constant(count as u32, 32);
        let src = if front {
            let room = build::constant((len - count) as u32, 32);
            let fits = build::binary(BinOp::LeU, at.clone(), room);
            build::select(fits, build::binary(BinOp::Add, at, n), build::constant(len as u32, 32))
        } else {
            let enough = build::binary(BinOp::LeU, n.clone(), at.clone());
            build::select(enough, build::binary(BinOp::Sub, at, n), build::constant(0u8, 32))
        };
        self.emit(Stmt::Assign { dst: next, src });
        Ok(Value::Unit)
    }

    /// Binds the parameters of something inlined to their arguments, in order. Gives what is to be copied out. `shared`:
    /// the body can also reach variables of the code around (an action) or is applied again elsewhere, so no parameter
    /// stands for its argument.
    pub(super) fn bind_params(
        &mut self,
        arguments: &[(DefId, Option<&Expr>)],
        shared: bool,
        span: Span,
    ) -> Lowered<Vec<(Dest, Store)>> {
        let mut copy_outs = Vec::new();
        let mut bindings = Vec::new();
        let mut outputs = Vec::new();
        // What arguments name and change, to find those that meet.
        let mut touched = Vec::new();
        if !shared {
            for (param, arg) in arguments {
                touched.push(self.touched(*param, *arg)?);
            }
        }
        let size: usize = touched.iter().map(Touched::size).sum();
        self.budget.work(size * (touched.len() + 1) / 4);
        for (index, (param, arg)) in arguments.iter().enumerate() {
            let def = self.param(*param);
            let ty = self.ty(&def.ty);
            let name = self.qualified(&self.def(*param).name.clone());
            let alone = self.alone(index, &touched);
            let binding = match (&ty, def.direction, arg) {
                (Type::Extern(..), _, Some(arg)) => self.object_binding(arg)?,
                (Type::Parser(..) | Type::Control(..), _, Some(arg)) => {
                    Binding::Instance(self.instance_of(arg)?)
                }
                (_, Direction::In | Direction::None, Some(arg)) => {
                    if let Some(value) = self.constant(arg) {
                        Binding::Value(value)
                    } else if let Some(store) = alone {
                        Binding::Store(store)
                    } else {
                        let value = self.value(arg)?;
                        let store = self.alloc(&ty, &name, Life::Local);
                        self.assign(&store, value);
                        Binding::Store(store)
                    }
                }
                (_, direction, Some(arg)) if !Self::is_dont_care(arg) => {
                    if let Some(store) = alone {
                        if direction == Direction::Out {
                            outputs.push(store.clone());
                        }
                        Binding::Store(store)
                    } else {
                        let dest = self.out_dest(arg)?;
                        let store = self.alloc(&ty, &name, Life::Local);
                        if direction == Direction::InOut {
                            let value = match &dest {
                                Dest::Store(from) => Value::Store(from.clone()),
                                slice => Value::Scalar(slice.read()),
                            };
                            self.assign(&store, value);
                        } else {
                            self.assign(&store, Value::Default);
                        }
                        copy_outs.push((dest, store.clone()));
                        Binding::Store(store)
                    }
                }
                _ => {
                    let store = self.alloc(&ty, &name, Life::Local);
                    self.assign(&store, Value::Default);
                    Binding::Store(store)
                }
            };
            bindings.push((*param, binding));
        }
        // Arguments after them may read what was there.
        for store in &outputs {
            self.invalidate(store);
        }
        self.bounded(span)?;
        self.env.extend(bindings);
        Ok(copy_outs)
    }

    /// The place that argument `index` names, if nothing else in the call touches it: no other parameter stands for a
    /// part of it or is copied back to one, and evaluating the arguments after it does not change it.
    fn alone(&self, index: usize, touched: &[Touched]) -> Option<Store> {
        let Touched { reads, named: Some(mine), .. } = touched.get(index)? else { return None };
        let meets = |store: &Store| {
            store.is_near(mine) && {
                self.budget.work(4 * (store.size() + mine.size()));
                store.overlaps(&self.program, mine)
            }
        };
        let free = touched.iter().enumerate().filter(|(at, _)| *at != index).all(|(at, other)| {
            let both_read = *reads && other.reads;
            let changed = at > index
                && match &other.changed {
                    Some(stores) => stores.iter().any(meets),
                    None => true,
                };
            !changed
                && (both_read || !other.named.as_ref().is_some_and(meets))
                && (*reads || !other.back.as_ref().is_some_and(meets))
        });
        free.then(|| mine.clone())
    }

    /// An `out` parameter starts with invalid headers, and stacks without a next element (section 6.8).
    fn invalidate(&mut self, store: &Store) {
        match store {
            Store::Header { header, .. } => self.emit(Stmt::ResetHeader(header.clone())),
            Store::Struct(items) | Store::Union(items) => items.iter().for_each(|item| self.invalidate(item)),
            Store::Stack { elements, next, .. } => {
                elements.iter().for_each(|element| self.invalidate(element));
                self.emit(Stmt::Assign { dst: Place::Var(*next), src: build::constant(0u8, 32) });
            }
            Store::Unit | Store::Scalar(..) | Store::Varbit(_) => {}
        }
    }

    pub(super) fn object_binding(&mut self, arg: &Expr) -> Lowered<Binding> {
        match &arg.kind {
            K::Ref(id) => match self.env.get(id) {
                Some(binding) => Ok(binding.clone()),
                None => Ok(Binding::Instance(self.global_instance(*id)?)),
            },
            K::Construct(_) => Ok(Binding::Instance(self.instance_of(arg)?)),
            _ => self.fail("unsupported", arg.span, "this cannot be passed as an object"),
        }
    }

    pub(super) fn copy_out(&mut self, copies: Vec<(Dest, Store)>) {
        for (dest, from) in copies {
            self.assign_dest(&dest, Value::Store(from));
        }
    }

    /// Puts type arguments in place; gives what was there.
    fn bind_types(
        &mut self,
        params: &[TypeParamId],
        args: impl IntoIterator<Item = Option<Type>>,
    ) -> Vec<Option<Type>> {
        let each = params.iter().zip(args);
        each.map(|(param, arg)| match arg {
            Some(ty) => self.types.insert(*param, ty),
            None => self.types.remove(param),
        })
        .collect()
    }

    fn function(&mut self, id: DefId, call: &Call) -> Lowered<Value> {
        let DefKind::Function(function) = &self.def(id).kind else { return Ok(Value::Unit) };
        // Parameters are of the types that these arguments give them. An argument may be another call of the function, which
        // puts them back.
        let types: Vec<_> = call.type_args.iter().map(|t| Some(self.ty(t))).collect();
        let before = self.bind_types(&function.signature.type_params, types);
        let copies = self.bind_params(&call.arguments(&function.signature.params), false, call.span)?;
        let ty = self.ty(&function.signature.returns);
        let result = if ty == Type::Void {
            None
        } else {
            Some(self.alloc(&ty, &format!("{}.return", self.def(id).name), Life::Local))
        };
        let label = self.label();
        self.inlined(label, result.clone(), copies, |l| l.block(&function.body))?;
        self.bind_types(&function.signature.type_params, before);
        Ok(result.map_or(Value::Unit, Value::Store))
    }

    fn direct_action(&mut self, id: DefId, call: &Call) -> Lowered<Value> {
        let DefKind::Action(action) = &self.def(id).kind else { return Ok(Value::Unit) };
        // What another action calls is part of that one.
        let owner = if self.is_local(id) { self.current } else { None };
        if !self.in_action && self.called.insert((owner, id)) {
            let info = self.action_info(id);
            self.program.direct_actions.push(info);
        }
        let copies = self.bind_params(&call.arguments(&action.params), true, call.span)?;
        let label = self.label();
        let outer = std::mem::replace(&mut self.in_action, true);
        let done = self.inlined(label, None, copies, |l| l.block(&action.body));
        self.in_action = outer;
        done.map(|()| Value::Unit)
    }

    /// Inlines a body that `return` leaves at `label`, then copies out.
    pub(super) fn inlined(
        &mut self,
        label: crate::ir::LabelId,
        result: Option<Store>,
        copies: Vec<(Dest, Store)>,
        body: impl FnOnce(&mut Self) -> Lowered<()>,
    ) -> Lowered<()> {
        let mut copy_outs = self.flow.copy_outs.clone();
        copy_outs.push(Rc::new(copies.clone()));
        let flow = Flow { ret: Some((label, result)), exit: self.flow.exit, loops: Vec::new(), copy_outs };
        let outer = std::mem::replace(&mut self.flow, flow);
        self.depth += 1;
        let block = self.in_block(body);
        self.depth -= 1;
        self.flow = outer;
        self.emit_labeled(label, block?);
        self.copy_out(copies);
        Ok(())
    }

    /// A compile-time index, string or enum among an extern's arguments.
    pub(super) fn const_arg(&mut self, call: &Call, index: usize) -> Lowered<Expr> {
        match call.args.get(index).and_then(|a| a.as_ref()) {
            Some(e) => match self.constant(e) {
                Some(value) => Ok(value),
                None => self.fail("not-constant", e.span, "this must be known at compile time"),
            },
            None => self.fail("bad-call", call.span, "an argument is missing"),
        }
    }

    pub(super) fn arg_scalar(&mut self, call: &Call, index: usize) -> Lowered<crate::ir::Expr> {
        match call.args.get(index).and_then(|a| a.as_ref()) {
            Some(e) => self.scalar(e),
            None => self.fail("bad-call", call.span, "an argument is missing"),
        }
    }

    /// All scalars of an argument, in order.
    pub(super) fn arg_list(&mut self, call: &Call, index: usize) -> Lowered<Vec<crate::ir::Expr>> {
        let Some(e) = call.args.get(index).and_then(|a| a.as_ref()) else { return Ok(Vec::new()) };
        let value = self.value(e)?;
        Ok(self.list(call, index, value))
    }

    /// All scalars of the value of an argument, in order.
    pub(super) fn list(&mut self, call: &Call, index: usize, value: Value) -> Vec<crate::ir::Expr> {
        let mut out = Vec::new();
        let ty = self.arg_type(call, index);
        self.flatten(value, &ty, &mut out);
        out
    }

    pub(super) fn arg_type(&self, call: &Call, index: usize) -> Type {
        call.args.get(index).and_then(|a| a.as_ref()).map_or(Type::Void, |e| self.ty(&e.ty))
    }

    fn arg_value(&mut self, call: &Call, index: usize) -> Lowered<Value> {
        let Some(e) = call.args.get(index).and_then(|a| a.as_ref()) else {
            return self.fail("bad-call", call.span, "an argument is missing");
        };
        match self.scalar_width(&e.ty) {
            Some(_) => self.scalar(e).map(Value::Scalar),
            None => self.value(e),
        }
    }

    /// Several arguments that an extern reads, evaluated in order.
    pub(super) fn arg_values<const N: usize>(
        &mut self,
        call: &Call,
        indices: [usize; N],
    ) -> Lowered<[Value; N]> {
        let mut values = [const { Value::Unit }; N];
        for index in call.order.indices(call.args.len()) {
            if let Some(at) = indices.iter().position(|read| *read == index) {
                values[at] = self.operand(&mut values, |l| l.arg_value(call, index))?;
            }
        }
        Ok(values)
    }

    /// Several arguments that an extern reads, and the place of the one that it writes, evaluated in order.
    pub(super) fn arg_values_out<const N: usize>(
        &mut self,
        call: &Call,
        indices: [usize; N],
        out: usize,
    ) -> Lowered<([Value; N], OutPlace)> {
        let mut values = [const { Value::Unit }; N];
        let mut place = None;
        for index in call.order.indices(call.args.len()) {
            if index == out {
                place = Some(self.operand(&mut values, |l| l.arg_out(call, index))?);
            } else if let Some(at) = indices.iter().position(|read| *read == index) {
                values[at] = self.operand(&mut values, |l| l.arg_value(call, index))?;
            }
        }
        match place {
            Some(place) => Ok((values, place)),
            None => self.fail("bad-call", call.span, "an argument is missing"),
        }
    }

    /// Several arguments that are numbers, evaluated in order.
    pub(super) fn arg_scalars<const N: usize>(
        &mut self,
        call: &Call,
        indices: [usize; N],
    ) -> Lowered<[crate::ir::Expr; N]> {
        Ok(self.arg_values(call, indices)?.map(|value| self.number(value)))
    }

    pub(super) fn number(&self, value: Value) -> crate::ir::Expr {
        self.value_scalar(value).unwrap_or(build::bit(false))
    }

    /// A scalar `out` argument.
    pub(super) fn arg_out(&mut self, call: &Call, index: usize) -> Lowered<OutPlace> {
        let Some(e) = call.args.get(index).and_then(|a| a.as_ref()) else {
            return self.fail("bad-call", call.span, "an argument is missing");
        };
        if Self::is_dont_care(e) {
            return Ok((self.temp(32), 32, None));
        }
        let dest = self.out_dest(e)?;
        if let Dest::Store(Store::Scalar(place, width)) = &dest {
            return Ok((place.clone(), *width, None));
        }
        let Dest::Slice { hi, lo, .. } = dest else {
            return self.fail("unsupported", e.span, "the result must be a number");
        };
        let width = hi - lo + 1;
        let place = self.temp(width);
        // An `inout` argument is read as well.
        self.emit(Stmt::Assign { dst: place.clone(), src: dest.read() });
        Ok((place.clone(), width, Some((dest, Store::Scalar(place, width)))))
    }

    pub(super) fn finish_out(&mut self, back: Option<(Dest, Store)>) {
        if let Some(copy) = back {
            self.copy_out(vec![copy]);
        }
    }
}
