//! Assignment of values to stores.

use std::rc::Rc;

use super::expr::Value;
use super::places::Places;
use super::store::Store;
use super::{Lowerer, build};
use crate::ir::{
    BinOp, Expr, ExprKind, Header, HeaderId, HeaderRef, Place, Program, Stack, StackId, Stmt, VarHome, VarId,
};

/// Where an `out` argument goes back to.
#[derive(Debug, Clone)]
pub(super) enum Dest {
    Store(Store),
    /// Bits hi..=lo of a scalar.
    Slice {
        place: Place,
        width: u32,
        hi: u32,
        lo: u32,
    },
}

impl Lowerer<'_> {
    pub(super) fn assign_dest(&mut self, dest: &Dest, value: Value) {
        match dest {
            Dest::Store(store) => self.assign(store, value),
            Dest::Slice { place, width, hi, lo } => {
                let Some(new) = self.value_scalar(value) else { return };
                let old = build::read(place.clone(), *width);
                let mut src = build::resize(new, hi - lo + 1, false);
                if *lo > 0 {
                    src = build::concat(src, build::slice(old.clone(), lo - 1, 0));
                }
                if hi + 1 < *width {
                    src = build::concat(build::slice(old, width - 1, hi + 1), src);
                }
                self.emit(Stmt::Assign { dst: place.clone(), src });
            }
        }
    }

    pub(super) fn assign(&mut self, dst: &Store, value: Value) {
        if let Store::Struct(items) | Store::Union(items) = dst
            && !matches!(&value, Value::Store(Store::Struct(from) | Store::Union(from)) if Rc::ptr_eq(items, from))
        {
            self.budget.work(items.len());
        }
        let value = match value {
            // All parts are read from one element, whatever the first of them changes.
            Value::Store(src)
                if matches!(dst, Store::Struct(_) | Store::Union(_)) && self.index_in(&src, dst) =>
            {
                Value::Store(self.keep_index(src))
            }
            other => other,
        };
        match (dst, value) {
            (Store::Unit, _) | (_, Value::Unit | Value::Str) => {}
            (_, Value::Store(src)) if src == *dst => {}
            (Store::Scalar(place, width), Value::Default) => {
                self.emit(Stmt::Assign { dst: place.clone(), src: build::constant(0u8, *width) });
            }
            (Store::Scalar(place, width), value) => {
                if let Some(src) = self.value_scalar(value) {
                    self.emit(Stmt::Assign { dst: place.clone(), src: build::resize(src, *width, false) });
                }
            }
            (Store::Varbit(place), Value::Store(Store::Varbit(src))) => {
                self.emit(Stmt::CopyVarbit { dst: place.clone(), src })
            }
            (Store::Varbit(place), _) => {
                let src = self.empty_varbit(self.varbit_width(place));
                self.emit(Stmt::CopyVarbit { dst: place.clone(), src });
            }
            (
                Store::Header { header, valid, siblings, .. },
                Value::Store(Store::Header { header: src, .. }),
            ) => {
                self.copy_header(header, &src);
                self.keep_one(valid, siblings);
            }
            (Store::Header { fields, valid, siblings, .. }, Value::Header(items) | Value::Struct(items)) => {
                self.assign_all(fields, items);
                self.set_valid(valid, siblings);
            }
            (Store::Header { header, .. }, _) => self.emit(Stmt::ResetHeader(header.clone())),
            (Store::Struct(items) | Store::Union(items), Value::Default) => {
                for item in &**items {
                    self.assign(item, Value::Default);
                }
            }
            (Store::Struct(items), Value::Struct(values)) => self.assign_all(items, values),
            (Store::Struct(items), Value::Store(Store::Struct(from))) => {
                for (item, from) in items.iter().zip(&*from) {
                    self.assign(item, Value::Store(from.clone()));
                }
            }
            (Store::Union(items), Value::Store(Store::Union(from))) => {
                // As copies of headers, not as assignments to members, which would invalidate one another.
                for (item, from) in items.iter().zip(&*from) {
                    if let (Store::Header { header: dst, .. }, Store::Header { header: src, .. }) =
                        (item, from)
                    {
                        self.copy_header(dst, src);
                    }
                }
            }
            (Store::Stack { elements, next, .. }, value) => {
                let next = Place::Var(*next);
                match value {
                    Value::Store(Store::Stack { elements: from, next: from_next, .. }) => {
                        for (item, from) in elements.iter().zip(&*from) {
                            self.assign(item, Value::Store(from.clone()));
                        }
                        let src = build::read(Place::Var(from_next), 32);
                        self.emit(Stmt::Assign { dst: next, src });
                    }
                    Value::Struct(values) => self.assign_all(elements, values),
                    _ => {
                        for item in &**elements {
                            self.assign(item, Value::Default);
                        }
                        self.emit(Stmt::Assign { dst: next, src: build::constant(0u8, 32) });
                    }
                }
            }
            // The checker lets no other pair through.
            (Store::Struct(_) | Store::Union(_), _) => {}
        }
    }

    /// The checker lets only headers of one type through; executors rely on it.
    fn copy_header(&mut self, dst: &HeaderRef, src: &HeaderRef) {
        let [to, from] = [dst, src].map(|header| {
            let (HeaderRef::Header(id) | HeaderRef::Elem { header: id, .. }) = header;
            self.program[*id].ty
        });
        if to != from {
            let wanted = self.program[to].name.clone();
            let message = format!("a `{}` cannot be copied to a `{wanted}`", self.program[from].name);
            let around = self.current.map(|id| self.def(self.instances[id.0].def).span);
            let error = crate::diag::Diagnostic::error("type-mismatch", around.unwrap_or_default(), message);
            self.diagnostics.push(error);
            return;
        }
        self.emit(Stmt::CopyHeader { dst: dst.clone(), src: src.clone() });
    }

    /// Field by field, as if all values had been read before the first is written.
    fn assign_all(&mut self, items: &[Store], values: Vec<Value>) {
        let mut kept = Vec::with_capacity(values.len());
        let mut written = Places::default();
        for (index, value) in values.into_iter().enumerate() {
            kept.push(self.kept(value, &written));
            if let Some(item) = items.get(index) {
                written.add(item);
            }
        }
        for (item, value) in items.iter().zip(kept) {
            self.assign(item, value);
        }
    }

    /// A header or other composite copied aside.
    pub(super) fn copy_of(&mut self, store: &Store) -> Store {
        match store {
            Store::Header { header, .. } => {
                let base = match header {
                    HeaderRef::Header(h) | HeaderRef::Elem { header: h, .. } => *h,
                };
                let copy = self.clone_header(base);
                if let Store::Header { header: dst, .. } = &copy {
                    self.emit(Stmt::CopyHeader { dst: dst.clone(), src: header.clone() });
                }
                copy
            }
            Store::Struct(items) => Store::Struct(Rc::new(items.iter().map(|s| self.copy_of(s)).collect())),
            Store::Union(items) => Store::Union(Rc::new(items.iter().map(|s| self.copy_of(s)).collect())),
            Store::Scalar(place, width) => {
                let kept = self.temp(*width);
                self.emit(Stmt::Assign { dst: kept.clone(), src: build::read(place.clone(), *width) });
                Store::Scalar(kept, *width)
            }
            Store::Varbit(place) => {
                let width = self.varbit_width(place);
                let kept = Place::Var(self.var("kept", width, true, VarHome::Local));
                self.emit(Stmt::CopyVarbit { dst: kept.clone(), src: place.clone() });
                Store::Varbit(kept)
            }
            Store::Stack { id, elements, .. } => {
                let copy = self.clone_stack(*id, elements);
                self.assign(&copy, Value::Store(store.clone()));
                copy
            }
            Store::Unit => Store::Unit,
        }
    }

    /// A local stack laid out as another one.
    fn clone_stack(&mut self, base: StackId, elements: &[Store]) -> Store {
        let id = StackId(self.program.stacks.len() as u32);
        let of = self.program[base].clone();
        let headers = self.program.headers.len() as u32;
        let vars = self.program.vars.len() as u32;
        let first_var = self.program[of.first_header].first_field.0;
        let header = |h: HeaderId| HeaderId(h.0 - of.first_header.0 + headers);
        let var = |v: VarId| VarId(v.0 - first_var + vars);
        for index in 0..of.len * of.header_stride {
            let base = &self.program[HeaderId(of.first_header.0 + index)];
            let (ty, first_field, valid) = (base.ty, var(base.first_field), var(base.valid));
            let name = format!("copy{}", headers + index);
            self.budget.bytes(name.len());
            self.program.headers.push(Header { name, ty, first_field, valid, local: true });
        }
        for index in 0..of.len * of.var_stride {
            let base = self.program[VarId(first_var + index)].clone();
            let home = match base.home {
                VarHome::Field { header: h, field } => VarHome::Field { header: header(h), field },
                VarHome::Valid(h) => VarHome::Valid(header(h)),
                other => other,
            };
            self.var(format!("copy{}", vars + index), base.width, base.varbit, home);
        }
        let next = self.var(format!("copy{}.nextIndex", id.0), 32, false, VarHome::NextIndex(id));
        let name = format!("copy{}", id.0);
        self.program.stacks.push(Stack { name, first_header: HeaderId(headers), next, ..of });
        let place = |p: &Place| {
            let (Place::Var(v) | Place::Elem { var: v, .. }) = p;
            Place::Var(var(*v))
        };
        let of_header = |h: &HeaderRef| {
            let (HeaderRef::Header(h) | HeaderRef::Elem { header: h, .. }) = h;
            HeaderRef::Header(header(*h))
        };
        let elements = elements.iter().map(|e| e.moved(&place, &of_header)).collect();
        Store::Stack { id, elements: Rc::new(elements), next }
    }

    /// A local header laid out as `base`.
    fn clone_header(&mut self, base: HeaderId) -> Store {
        let ty = self.program[base].ty;
        let id = HeaderId(self.program.headers.len() as u32);
        let first_field = VarId(self.program.vars.len() as u32);
        self.program.headers.push(Header {
            name: format!("copy{}", id.0),
            ty,
            first_field,
            valid: VarId(0),
            local: true,
        });
        let fields = self.program[ty].fields.clone();
        let stores = fields
            .iter()
            .enumerate()
            .map(|(i, f)| {
                let var = self.var(
                    format!("copy{}.{}", id.0, f.name),
                    f.width,
                    f.varbit,
                    VarHome::Field { header: id, field: i as u32 },
                );
                if f.varbit {
                    Store::Varbit(Place::Var(var))
                } else {
                    Store::Scalar(Place::Var(var), f.width)
                }
            })
            .collect();
        let valid = self.var(format!("copy{}.$valid$", id.0), 1, false, VarHome::Valid(id));
        self.program.headers[id.index()].valid = valid;
        Store::Header {
            header: HeaderRef::Header(id),
            valid: Place::Var(valid),
            fields: Rc::new(stores),
            siblings: Rc::default(),
        }
    }

    /// Makes a header valid; a union has room for one.
    pub(super) fn set_valid(&mut self, valid: &Place, siblings: &[Place]) {
        self.emit(Stmt::Assign { dst: valid.clone(), src: build::bit(true) });
        for other in siblings.iter().filter(|other| *other != valid) {
            self.emit(Stmt::Assign { dst: other.clone(), src: build::bit(false) });
        }
    }

    /// After a copy into a member of a union: if it is valid the others are not.
    fn keep_one(&mut self, valid: &Place, siblings: &[Place]) {
        for other in siblings.iter().filter(|other| *other != valid) {
            let src = build::binary(
                BinOp::And,
                build::read(other.clone(), 1),
                build::not(build::read(valid.clone(), 1)),
            );
            self.emit(Stmt::Assign { dst: other.clone(), src });
        }
    }

    pub(super) fn varbit_width(&self, varbit: &Place) -> u32 {
        let (Place::Var(var) | Place::Elem { var, .. }) = varbit;
        self.program[*var].width
    }

    /// A varbit that is never written, and so empty.
    pub(super) fn empty_varbit(&mut self, width: u32) -> Place {
        let id = match self.empty_varbits.get(&width) {
            Some(known) => *known,
            None => self.var(format!("empty varbit<{width}>"), width, true, VarHome::Global),
        };
        self.empty_varbits.insert(width, id);
        Place::Var(id)
    }
}

impl Places {
    /// Whether evaluating the value reads one of them.
    pub(super) fn read_by(&self, program: &Program, value: &Value) -> bool {
        match value {
            Value::Store(from) => {
                let mut found = false;
                from.places(&mut |place| found |= self.may_have(program, place));
                found || from.index(&mut 0).is_some_and(|(_, index)| self.read_by_expr(program, index))
            }
            Value::Scalar(e) => self.read_by_expr(program, e),
            Value::Struct(items) | Value::Header(items) => items.iter().any(|v| self.read_by(program, v)),
            _ => false,
        }
    }

    pub(super) fn read_by_expr(&self, program: &Program, e: &Expr) -> bool {
        self.look();
        let by = |e: &Expr| self.read_by_expr(program, e);
        let from = |place: &Place| {
            self.may_have(program, place) || matches!(place, Place::Elem { index, .. } if by(index))
        };
        match &e.kind {
            ExprKind::Const(_) | ExprKind::PacketLength => false,
            ExprKind::Read(p) => from(p),
            ExprKind::Not(a)
            | ExprKind::Neg(a)
            | ExprKind::ZeroExtend(a)
            | ExprKind::SignExtend(a)
            | ExprKind::Slice { base: a, .. } => by(a),
            ExprKind::Binary(_, a, b) | ExprKind::Concat(a, b) => by(a) || by(b),
            ExprKind::Select(c, a, b) => by(c) || by(a) || by(b),
            ExprKind::VarbitEq(a, b) => from(a) || from(b),
        }
    }
}
