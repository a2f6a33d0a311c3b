//! Externs: those of core.p4, and the way to those of the architecture.

use super::expr::Value;
use super::instance::Object;
use super::store::{Life, Store};
use super::{Binding, Lowered, Lowerer, build};
use crate::hir::{Call, Construct, DefId, Expr, ExprKind as K, Type};
use crate::ir::{self, Place, Stmt};

impl Lowerer<'_> {
    pub(super) fn extern_function(&mut self, id: DefId, call: &Call) -> Lowered<Value> {
        let name = self.def(id).name.clone();
        if &*name == "verify" {
            let [cond, error] = self.arg_scalars(call, [0, 1])?;
            self.emit(Stmt::Verify { cond, error });
            return Ok(Value::Unit);
        }
        let arch = self.arch;
        match arch.function(self, &name, call)? {
            Some(value) => Ok(value),
            None => self.own_extern(call.span, format!("{} has no extern function `{name}`", arch.name())),
        }
    }

    /// Makes the object that a constructor call of an extern stands for.
    pub(super) fn extern_object(
        &mut self,
        construct: &Construct,
        ty: &Type,
        info: ir::Info,
    ) -> Lowered<Object> {
        let name = self.def(construct.def).name.clone();
        let (arch, span) = (self.arch, info.span);
        match arch.object(self, &name, (construct, ty), info)? {
            Some(object) => Ok(object),
            None => self.own_extern(span, format!("{} has no extern object `{name}`", arch.name())),
        }
    }

    pub(super) fn extern_method(&mut self, object: &Expr, method: DefId, call: &Call) -> Lowered<Value> {
        let name = self.def(method).name.clone();
        let binding = match &object.kind {
            K::Ref(id) => match self.env.get(id) {
                Some(binding) => binding.clone(),
                None => Binding::Instance(self.global_instance(*id)?),
            },
            _ => Binding::Instance(self.instance_of(object)?),
        };
        let instance = match binding {
            Binding::Packet => return self.packet_method(&name, call),
            Binding::Instance(id) => id,
            _ => return self.fail("unsupported", call.span, "this is not an object"),
        };
        let arch = self.arch;
        match arch.method(self, instance, &name, call)? {
            Some(value) => Ok(value),
            None => {
                self.own_extern(call.span, format!("this object has no method `{name}` in {}", arch.name()))
            }
        }
    }

    fn packet_method(&mut self, name: &str, call: &Call) -> Lowered<Value> {
        match name {
            "extract" => self.extract(call),
            "lookahead" => {
                let ty = self.ty(&call.ty);
                let store = self.alloc(&ty, "lookahead", Life::Local);
                if !has_fixed_size(&store) {
                    let shown = crate::check::display(self.hir, &ty);
                    let message = format!("`lookahead` reads a type of fixed size, not `{shown}`");
                    return self.fail("bad-call", call.span, message);
                }
                let mut into = Vec::new();
                scalars(&store, &mut into);
                self.emit(Stmt::Lookahead { into });
                let mut headers = Vec::new();
                store.headers(&mut headers);
                for header in headers {
                    if let Store::Header { valid, .. } = header {
                        self.set_valid(valid, &[]);
                    }
                }
                Ok(Value::Store(store))
            }
            "advance" => {
                let bits = self.arg_scalar(call, 0)?;
                self.emit(Stmt::Advance { bits });
                Ok(Value::Unit)
            }
            "length" => Ok(Value::Scalar(ir::Expr { width: 32, kind: ir::ExprKind::PacketLength })),
            "emit" => {
                if let Some(Some(arg)) = call.args.first() {
                    let value = self.value(arg)?;
                    let ty = self.ty(&arg.ty);
                    self.emit_value(value, &ty);
                }
                Ok(Value::Unit)
            }
            other => self.own_extern(call.span, format!("a packet has no method `{other}`")),
        }
    }

    fn extract(&mut self, call: &Call) -> Lowered<Value> {
        let Some(Some(arg)) = call.args.first() else {
            return self.fail("bad-call", call.span, "`extract` needs a header");
        };
        // A length that is written before the header is evaluated before it.
        let first = match call.order.indices(call.args.len()).next() {
            Some(1) => {
                let length = self.arg_scalar(call, 1)?;
                Some(self.freeze(length))
            }
            _ => None,
        };
        // `stack.next`, or a member of it where the stack is one of unions.
        let next_of = match &arg.kind {
            K::StackNext(base) => Some(base),
            K::Field(element, _) => match &element.kind {
                K::StackNext(base) => Some(base),
                _ => None,
            },
            _ => None,
        };
        let store = if Self::is_dont_care(arg) {
            let ty = call.type_args.first().map(|t| self.ty(t)).unwrap_or(Type::Unknown);
            self.alloc(&ty, "skipped", Life::Local)
        } else {
            self.place(arg, false)?
        };
        let outer = std::mem::take(&mut self.out);
        let varbit_bits = match call.args.get(1) {
            Some(Some(_)) if first.is_some() => Ok(first),
            Some(Some(_)) => self.arg_scalar(call, 1).map(Some),
            _ => Ok(None),
        };
        let block = std::mem::replace(&mut self.out, outer);
        let varbit_bits = varbit_bits?;
        // What is extracted might change the index before the other members of a union are made invalid.
        let again = matches!(&store, Store::Header { siblings, .. } if !siblings.is_empty());
        let moves = self.moved_by(&block, &store) || again && self.index_in(&store, &store);
        let store = if moves { self.keep_index(store) } else { store };
        self.out.extend(block);
        let Store::Header { header, valid, siblings, .. } = store else {
            return self.fail("bad-call", arg.span, "`extract` needs a header");
        };
        // Of a type parameter it is known only here.
        let fields = self.fields(&self.ty(call.type_args.first().unwrap_or(&arg.ty)));
        let varbit = fields.iter().any(|(_, ty)| matches!(ty, Type::Varbit(_)));
        if varbit != varbit_bits.is_some() {
            let what =
                if varbit { "needs the length of the varbit field" } else { "has no varbit field to size" };
            return self.fail("bad-call", arg.span, format!("`extract` {what}"));
        }
        self.emit(Stmt::Extract { header, varbit_bits });
        for other in siblings.iter().filter(|other| **other != valid) {
            self.emit(Stmt::Assign { dst: other.clone(), src: build::bit(false) });
        }
        if let Some(base) = next_of
            && let Store::Stack { next, .. } = self.place(base, false)?
        {
            let next = Place::Var(next);
            let src = build::binary(ir::BinOp::Add, build::read(next.clone(), 32), build::constant(1u8, 32));
            self.emit(Stmt::Assign { dst: next, src });
        }
        Ok(Value::Unit)
    }

    fn emit_value(&mut self, value: Value, ty: &Type) {
        match (value, ty) {
            (Value::Store(Store::Header { header, .. }), _) => self.emit(Stmt::Emit(header)),
            (
                Value::Store(
                    Store::Struct(items) | Store::Union(items) | Store::Stack { elements: items, .. },
                ),
                _,
            ) => {
                // What is stored says itself where its headers are.
                items.iter().for_each(|s| self.emit_value(Value::Store(s.clone()), &Type::Unknown));
            }
            // A header that is nowhere is put into storage of its own.
            (value @ (Value::Header(_) | Value::Struct(_)), Type::Header(..)) => {
                let store = self.alloc(ty, "emitted", Life::Local);
                self.assign(&store, value);
                self.emit_value(Value::Store(store), ty);
            }
            (Value::Struct(items), Type::Stack(element, _)) => {
                items.into_iter().for_each(|v| self.emit_value(v, element));
            }
            (Value::Struct(items), _) => {
                let types: Vec<Type> = match ty {
                    Type::Tuple(types) => types.clone(),
                    ty => self.fields(ty).into_iter().map(|(_, ty)| ty).collect(),
                };
                let types = types.into_iter().chain(std::iter::repeat(Type::Unknown));
                items.into_iter().zip(types).for_each(|(v, ty)| self.emit_value(v, &ty));
            }
            _ => {}
        }
    }
}

fn has_fixed_size(store: &Store) -> bool {
    match store {
        Store::Varbit(_) | Store::Union(_) => false,
        Store::Struct(items) | Store::Header { fields: items, .. } | Store::Stack { elements: items, .. } => {
            items.iter().all(has_fixed_size)
        }
        _ => true,
    }
}

fn scalars(store: &Store, out: &mut Vec<Place>) {
    match store {
        Store::Scalar(place, _) => out.push(place.clone()),
        Store::Struct(items) | Store::Header { fields: items, .. } | Store::Stack { elements: items, .. } => {
            items.iter().for_each(|s| scalars(s, out))
        }
        _ => {}
    }
}
