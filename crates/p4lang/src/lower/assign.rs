//! Assignment of values to stores.

use std::rc::Rc;

use super::expr::Value;
use super::store::{Places, Store};
use super::{Lowerer, build};
use crate::ir::{BinOp, Expr, ExprKind, HeaderRef, Place, Stmt, VarHome, VarId};

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
                let src = self.empty_varbit(place);
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
            (Store::Stack { id, elements }, value) => {
                let next = Place::Var(self.program[*id].next);
                match value {
                    Value::Store(Store::Stack { id: from_id, elements: from }) => {
                        for (item, from) in elements.iter().zip(&*from) {
                            self.assign(item, Value::Store(from.clone()));
                        }
                        let src = build::read(Place::Var(self.program[from_id].next), 32);
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
            let clash = written.read_by(&value);
            if let Some(item) = items.get(index) {
                written.add(item);
            }
            kept.push(match value {
                Value::Scalar(e) if clash => Value::Scalar(self.freeze(e)),
                Value::Store(Store::Scalar(place, width)) if clash => {
                    Value::Scalar(self.freeze(build::read(place, width)))
                }
                Value::Store(store) if clash => Value::Store(self.copy_of(&store)),
                other => other,
            });
        }
        for (item, value) in items.iter().zip(kept) {
            self.assign(item, value);
        }
    }

    /// A header or other composite copied aside.
    fn copy_of(&mut self, store: &Store) -> Store {
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
            other => other.clone(),
        }
    }

    /// A local header laid out as `base`.
    fn clone_header(&mut self, base: crate::ir::HeaderId) -> Store {
        use crate::ir::{Header, HeaderId};
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

    /// A varbit that is never written, and so empty.
    fn empty_varbit(&mut self, like: &Place) -> Place {
        let (Place::Var(var) | Place::Elem { var, .. }) = like;
        let width = self.program[*var].width;
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
    fn read_by(&self, value: &Value) -> bool {
        match value {
            Value::Store(from) => {
                let mut found = false;
                from.places(&mut |place| found |= self.may_have(place));
                found
            }
            Value::Scalar(e) => self.read_by_expr(e),
            Value::Struct(items) | Value::Header(items) => items.iter().any(|v| self.read_by(v)),
            _ => false,
        }
    }

    fn read_by_expr(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Const(_) | ExprKind::PacketLength => false,
            ExprKind::Read(p) => self.may_have(p),
            ExprKind::Not(a)
            | ExprKind::Neg(a)
            | ExprKind::ZeroExtend(a)
            | ExprKind::SignExtend(a)
            | ExprKind::Slice { base: a, .. } => self.read_by_expr(a),
            ExprKind::Binary(_, a, b) | ExprKind::Concat(a, b) => {
                self.read_by_expr(a) || self.read_by_expr(b)
            }
            ExprKind::Select(c, a, b) => self.read_by_expr(c) || self.read_by_expr(a) || self.read_by_expr(b),
            ExprKind::VarbitEq(a, b) => self.may_have(a) || self.may_have(b),
        }
    }
}
