//! Expressions: to pure IR expressions, with the statements that their calls need emitted before them.
//!
//! Operands are evaluated from left to right (see `order`); statements of operands that may not be evaluated (`&&`, `||`,
//! `?:`) go under an `if`.

use num_bigint::BigInt;

use super::store::{Life, Store};
use super::{Binding, Failed, Lowered, Lowerer, build};
use crate::ast::{BinaryOp, UnaryOp};
use crate::check::{castable, display};
use crate::diag::Diagnostic;
use crate::hir::{self, DefKind, ExprKind as K, Type};
use crate::ir::{self, BinOp, Expr, ExprKind, Place, Stmt};
use crate::limits::Resource;

/// What an expression comes to.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Unit,
    Scalar(Expr),
    /// What is stored there now.
    Store(Store),
    /// Struct, tuple or list.
    Struct(Vec<Value>),
    /// A valid header with these fields.
    Header(Vec<Value>),
    /// Zero, invalid: the default value of whatever type is wanted.
    Default,
    /// A string; has no run-time form.
    Str,
}

impl Lowerer<'_> {
    pub(super) fn scalar(&mut self, e: &hir::Expr) -> Lowered<Expr> {
        let value = self.value(e)?;
        match self.value_scalar(value) {
            Some(expr) => Ok(expr),
            None => match self.scalar_width(&self.ty(&e.ty)) {
                Some(width) => Ok(build::constant(0u8, width.max(1))),
                None => {
                    let shown = display(self.hir, &e.ty);
                    self.fail("unsupported", e.span, format!("a value of type `{shown}` cannot be used here"))
                }
            },
        }
    }

    pub(super) fn value_scalar(&self, value: Value) -> Option<Expr> {
        match value {
            Value::Scalar(expr) => Some(expr),
            Value::Store(Store::Scalar(place, width)) => Some(build::read(place, width)),
            _ => None,
        }
    }

    /// Keeps a value that a later statement might change.
    pub(super) fn freeze(&mut self, expr: Expr) -> Expr {
        if matches!(expr.kind, ExprKind::Const(_)) {
            return expr;
        }
        let place = self.temp(expr.width);
        let width = expr.width;
        self.emit(Stmt::Assign { dst: place.clone(), src: expr });
        build::read(place, width)
    }

    pub(super) fn value(&mut self, e: &hir::Expr) -> Lowered<Value> {
        self.budget.work(8);
        self.budget.spend(Resource::Expressions, 1);
        if self.budget.exhausted().is_some() {
            self.bounded(e.span)?;
        }
        let width = self.scalar_width(&e.ty);
        Ok(match &e.kind {
            K::Int(value) => self.int(value, width),
            K::Bool(value) => Value::Scalar(build::bit(*value)),
            K::Str(_) => Value::Str,
            K::Error(code) => Value::Scalar(build::constant(*code as u32, 32)),
            K::EnumMember(id, index) => match &self.def(*id).kind {
                DefKind::Enum(def) => match &def.members[*index].1 {
                    Some(value) => self.int(value, width),
                    None => Value::Scalar(build::constant(*index as u32, 32)),
                },
                _ => Value::Unit,
            },
            K::Ref(id) => match self.env.get(id).cloned() {
                Some(Binding::Store(store)) => Value::Store(store),
                Some(Binding::Value(value)) => self.value(&value)?,
                _ => match &self.def(*id).kind {
                    DefKind::Const { value, .. } => self.value(value)?,
                    _ => {
                        let name = &self.def(*id).name;
                        return self.fail("unsupported", e.span, format!("`{name}` is not a value here"));
                    }
                },
            },
            K::Field(base, index) => match project(self.value(base)?, *index) {
                Value::Default => self.default_value(&e.ty),
                part => part,
            },
            K::Index(..) | K::StackNext(_) | K::StackLast(_) => Value::Store(self.place(e, false)?),
            K::StackLastIndex(base) => {
                let Store::Stack { next, .. } = self.place(base, false)? else { return Ok(Value::Unit) };
                let next = build::read(Place::Var(next), 32);
                Value::Scalar(build::binary(BinOp::Sub, next, build::constant(1u8, 32)))
            }
            K::Slice { base, hi, lo } => Value::Scalar(build::slice(self.scalar(base)?, *hi, *lo)),
            K::Unary(op, operand) => {
                if let Some(value) = self.folded(e) {
                    return Ok(self.int(&value, width));
                }
                let operand = match self.value(operand)? {
                    // A number of no bits.
                    Value::Unit | Value::Store(Store::Unit) => return Ok(Value::Unit),
                    value => self.number(value),
                };
                Value::Scalar(match op {
                    UnaryOp::Not | UnaryOp::Complement => build::not(operand),
                    UnaryOp::Neg => build::neg(operand),
                    UnaryOp::Plus => operand,
                })
            }
            K::Binary(BinaryOp::And | BinaryOp::Or, ..) => self.logical(e)?,
            K::Binary(op, a, b) => {
                if let Some(value) = self.folded(e) {
                    return Ok(self.int(&value, width));
                }
                self.binary(*op, a, b)?
            }
            K::Ternary(cond, then, otherwise) => self.ternary(cond, then, otherwise, &e.ty)?,
            K::Cast(inner) => {
                if !self.cast_fits(inner, e) {
                    let [from, to] = [inner, e].map(|e| display(self.hir, &self.ty(&e.ty)));
                    let message = format!("the type arguments make this a cast of `{from}` to `{to}`");
                    return self.fail_help("bad-cast", e.span, message, "give other type arguments");
                }
                if let Some(value) = self.folded(e) {
                    return Ok(self.int(&value, width));
                }
                let sign = self.is_signed(&self.ty(&inner.ty));
                let Some(width) = width else { return self.value(inner) };
                if width == 0 {
                    return Ok(Value::Unit);
                }
                let value = self.scalar(inner)?;
                Value::Scalar(build::resize(value, width, sign))
            }
            K::Struct(items, order) => {
                let items = self.in_order(items, order)?;
                let items = self.with_defaults(items, &e.ty);
                if matches!(self.ty(&e.ty), Type::Header(..)) {
                    Value::Header(items)
                } else {
                    Value::Struct(items)
                }
            }
            K::List(items) => {
                let items = self.in_order(items, &hir::Order::default())?;
                Value::Struct(self.with_defaults(items, &e.ty))
            }
            K::Default => self.default_value(&e.ty),
            K::Invalid | K::DontCare => Value::Default,
            K::Call(call) => self.call(call)?,
            K::TableHit { apply, miss } => {
                let hit = self.temp(1);
                self.apply_table(apply, Some(&hit), None)?;
                let hit = build::read(hit, 1);
                Value::Scalar(if *miss { build::not(hit) } else { hit })
            }
            K::Construct(_) | K::ActionRef(_) => {
                return self.fail("unsupported", e.span, "this is not a value");
            }
        })
    }

    /// What `...` stands for. [`Value::Default`] stays for what is no number.
    pub(super) fn default_value(&self, ty: &Type) -> Value {
        match self.scalar_width(ty) {
            Some(0) => Value::Unit,
            Some(width) => Value::Scalar(build::constant(0u8, width)),
            None => Value::Default,
        }
    }

    /// The parts of a value of type `ty`, with zeros for the numbers that `...` stands for.
    fn with_defaults(&self, mut items: Vec<Value>, ty: &Type) -> Vec<Value> {
        if items.iter().any(|item| matches!(item, Value::Default)) {
            for (item, ty) in items.iter_mut().zip(self.part_types(ty)) {
                if matches!(item, Value::Default) {
                    *item = self.default_value(&ty);
                }
            }
        }
        items
    }

    /// Types of the fields or elements of a type.
    pub(super) fn part_types(&self, ty: &Type) -> Vec<Type> {
        match self.ty(ty) {
            Type::Tuple(types) => types,
            Type::Stack(element, len) => {
                self.budget.work(len as usize);
                vec![*element; len as usize]
            }
            other => self.fields(&other).into_iter().map(|(_, ty)| ty).collect(),
        }
    }

    /// Whether a cast is one that exists. To and from type parameters that is known only once they stand for types.
    pub(super) fn cast_fits(&self, from: &hir::Expr, to: &hir::Expr) -> bool {
        let open = matches!(from.ty, Type::Param(_)) || matches!(to.ty, Type::Param(_));
        let real = || (self.ty(&from.ty), self.ty(&to.ty));
        !open || matches!(real(), (from, to) if from == to || castable(self.hir, &from, &to))
    }

    /// The value of arithmetic on numbers without a width, which exist only at compile time.
    fn folded(&self, e: &hir::Expr) -> Option<BigInt> {
        let unsized_operand = match &e.kind {
            K::Unary(_, a) | K::Cast(a) => a.ty == Type::Int,
            K::Binary(_, a, b) => a.ty == Type::Int || b.ty == Type::Int,
            _ => false,
        };
        if !unsized_operand && e.ty != Type::Int {
            return None;
        }
        match self.constant(e)?.kind {
            K::Int(value) => Some(value),
            K::Bool(value) => Some(u8::from(value).into()),
            _ => None,
        }
    }

    /// A number; one without a width gets as many bits as it needs, at least 32.
    fn int(&self, value: &BigInt, width: Option<u32>) -> Value {
        let bits = width.map_or(value.bits() as usize, |width| width as usize);
        self.budget.work(bits / 512);
        self.budget.bytes(bits / 8);
        match width {
            Some(0) => Value::Unit,
            Some(width) => Value::Scalar(build::signed_constant(value, width)),
            None => Value::Scalar(build::signed_constant(value, (value.bits() as u32 + 1).max(32))),
        }
    }

    fn logical(&mut self, e: &hir::Expr) -> Lowered<Value> {
        // Long chains lean to the left; a loop keeps the stack short.
        let K::Binary(op, a, b) = &e.kind else { return Err(Failed) };
        let left = self.scalar(a)?;
        let outer = std::mem::take(&mut self.out);
        let right = self.scalar(b);
        let mut block = std::mem::replace(&mut self.out, outer);
        let right = right?;
        let is_and = *op == BinaryOp::And;
        if block.is_empty() {
            return Ok(Value::Scalar(if is_and { build::and(left, right) } else { build::or(left, right) }));
        }
        let result = self.temp(1);
        self.emit(Stmt::Assign { dst: result.clone(), src: left });
        block.push(Stmt::Assign { dst: result.clone(), src: right });
        let cond = build::read(result.clone(), 1);
        let cond = if is_and { cond } else { build::not(cond) };
        self.emit(Stmt::If { cond, then: block, otherwise: Vec::new() });
        Ok(Value::Scalar(build::read(result, 1)))
    }

    fn ternary(
        &mut self,
        cond: &hir::Expr,
        then: &hir::Expr,
        otherwise: &hir::Expr,
        ty: &Type,
    ) -> Lowered<Value> {
        let cond = self.scalar(cond)?;
        if let ExprKind::Const(value) = &cond.kind {
            return if *value == 1u8.into() { self.value(then) } else { self.value(otherwise) };
        }
        let outer = std::mem::take(&mut self.out);
        let a = self.value(then);
        let mut then_block = std::mem::take(&mut self.out);
        let b = self.value(otherwise);
        let mut else_block = std::mem::replace(&mut self.out, outer);
        let (a, b) = (a?, b?);
        let ty = self.ty(ty);
        if then_block.is_empty()
            && else_block.is_empty()
            && let (Some(x), Some(y)) = (self.value_scalar(a.clone()), self.value_scalar(b.clone()))
        {
            let width = self.scalar_width(&ty).unwrap_or_else(|| x.width.max(y.width));
            let (x, y) = (build::resize(x, width, false), build::resize(y, width, false));
            return Ok(Value::Scalar(build::select(cond, x, y)));
        }
        let ty = if ty == Type::Int { Type::Bits { width: 32, signed: false } } else { ty };
        let store = self.alloc(&ty, "chosen", Life::Local);
        then_block.extend(self.in_block(|l| {
            l.assign(&store, a);
            Ok(())
        })?);
        else_block.extend(self.in_block(|l| {
            l.assign(&store, b);
            Ok(())
        })?);
        self.emit(Stmt::If { cond, then: then_block, otherwise: else_block });
        Ok(Value::Store(store))
    }

    fn binary(&mut self, op: BinaryOp, a: &hir::Expr, b: &hir::Expr) -> Lowered<Value> {
        let mut left = [self.value(a)?];
        let right = self.operand(&mut left, |l| l.value(b))?;
        let [left] = left;
        if matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
            let equal = self.equal(left, right);
            return Ok(Value::Scalar(if op == BinaryOp::Eq { equal } else { build::not(equal) }));
        }
        let ty = self.ty(&a.ty);
        let (left, right) = match (self.value_scalar(left), self.value_scalar(right)) {
            (Some(l), Some(r)) => (l, r),
            // A zero-width side adds nothing to a concatenation, and has no other use.
            (Some(only), None) | (None, Some(only)) if op == BinaryOp::Concat => {
                return Ok(Value::Scalar(only));
            }
            (Some(only), None) => return Ok(Value::Scalar(only)),
            // Of two numbers of no bits, which are equal.
            _ if matches!(op, BinaryOp::Le | BinaryOp::Ge | BinaryOp::Lt | BinaryOp::Gt) => {
                return Ok(Value::Scalar(build::bit(matches!(op, BinaryOp::Le | BinaryOp::Ge))));
            }
            _ => return Ok(Value::Unit),
        };
        if !matches!(left.kind, ExprKind::Const(_)) {
            self.shift_amount(op, b, &right);
        }
        Ok(Value::Scalar(self.combine(op, left, right, &ty)))
    }

    /// Warns of an amount by which the reference compiler does not shift.
    pub(super) fn shift_amount(&mut self, op: BinaryOp, written: &hir::Expr, amount: &Expr) {
        let Some(bits) = self.arch.shift_bits() else { return };
        let wide = match (self.ty(&written.ty), &amount.kind) {
            (Type::Bits { width, .. }, _) => width > bits,
            (_, ExprKind::Const(amount)) => *amount > num_bigint::BigUint::from(1u64 << bits),
            _ => false,
        };
        if wide && matches!(op, BinaryOp::Shl | BinaryOp::Shr) && self.warned.insert(written.span) {
            let arch = self.arch.name();
            let what = format!(
                "the reference compiler has no shifts by amounts of more than {bits} bits for {arch}"
            );
            let help = format!("shift by a `bit<{bits}>`, in several steps if need be");
            self.diagnostics.push(Diagnostic::warning("wide-shift", written.span, what).help(help));
        }
    }

    /// An operation on two scalars; `ty` is the left one's type.
    pub(super) fn combine(&mut self, op: BinaryOp, left: Expr, right: Expr, ty: &Type) -> Expr {
        let sign = self.is_signed(ty);
        if matches!((&left.kind, &right.kind), (ExprKind::Const(_), ExprKind::Const(_))) {
            let words = left.width.max(right.width) as usize / 64 + 1;
            let multiplies = matches!(op, BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod);
            self.budget.work(if multiplies { words * words } else { words } / 8);
            self.budget.bytes(8 * words);
        }
        let op = match (op, sign) {
            (BinaryOp::Concat, _) => return build::concat(left, right),
            (BinaryOp::And, _) => return build::and(left, right),
            (BinaryOp::Or, _) => return build::or(left, right),
            (BinaryOp::Eq, _) => BinOp::Eq,
            (BinaryOp::Ne, _) => BinOp::Ne,
            (BinaryOp::Mul, _) => BinOp::Mul,
            (BinaryOp::Div, _) => BinOp::Div,
            (BinaryOp::Mod, _) => BinOp::Mod,
            (BinaryOp::Add, _) => BinOp::Add,
            (BinaryOp::Sub, _) => BinOp::Sub,
            (BinaryOp::BitAnd, _) => BinOp::And,
            (BinaryOp::BitOr, _) => BinOp::Or,
            (BinaryOp::BitXor, _) => BinOp::Xor,
            (BinaryOp::Shl, _) => BinOp::Shl,
            (BinaryOp::Shr, false) => BinOp::Shr,
            (BinaryOp::Shr, true) => BinOp::Sar,
            (BinaryOp::AddSat, false) => BinOp::AddSatU,
            (BinaryOp::AddSat, true) => BinOp::AddSatS,
            (BinaryOp::SubSat, false) => BinOp::SubSatU,
            (BinaryOp::SubSat, true) => BinOp::SubSatS,
            (BinaryOp::Lt, false) => BinOp::LtU,
            (BinaryOp::Lt, true) => BinOp::LtS,
            (BinaryOp::Le, false) => BinOp::LeU,
            (BinaryOp::Le, true) => BinOp::LeS,
            (BinaryOp::Gt, false) => return build::binary(BinOp::LtU, right, left),
            (BinaryOp::Gt, true) => return build::binary(BinOp::LtS, right, left),
            (BinaryOp::Ge, false) => return build::binary(BinOp::LeU, right, left),
            (BinaryOp::Ge, true) => return build::binary(BinOp::LeS, right, left),
        };
        if matches!(op, BinOp::Shl | BinOp::Shr | BinOp::Sar) {
            return build::binary(op, left, right);
        }
        // Sides differ only where one is a number that had no width of its own.
        let width = left.width.max(right.width);
        build::binary(op, build::resize(left, width, sign), build::resize(right, width, sign))
    }

    /// Equality of two values of one type (section 8.? of each type): headers are equal if both are invalid, or both
    /// valid with equal fields.
    fn equal(&mut self, a: Value, b: Value) -> Expr {
        if !self.budget.spend(Resource::Expressions, 4) {
            return build::bit(true);
        }
        // A number by the side of nothing is compared with what `...` stands for.
        let zero = |x: &Expr| build::constant(0u8, x.width);
        let scalars = match (self.value_scalar(a.clone()), self.value_scalar(b.clone())) {
            (Some(x), Some(y)) => Some((x, y)),
            (Some(x), None) | (None, Some(x)) => Some((x.clone(), zero(&x))),
            (None, None) => None,
        };
        if let Some((x, y)) = scalars {
            let width = x.width.max(y.width);
            let (x, y) = (build::resize(x, width, false), build::resize(y, width, false));
            return match width {
                // Whether a truth value is true is itself.
                1 if y == build::bit(true) => x,
                1 if y == build::bit(false) => build::not(x),
                _ => build::binary(BinOp::Eq, x, y),
            };
        }
        let varbits = match (&a, &b) {
            (Value::Store(Store::Varbit(x)), Value::Store(Store::Varbit(y))) => Some((x.clone(), y.clone())),
            (Value::Store(Store::Varbit(x)), _) | (_, Value::Store(Store::Varbit(x))) => {
                Some((x.clone(), self.empty_varbit(self.varbit_width(x))))
            }
            _ => None,
        };
        if let Some((x, y)) = varbits {
            return Expr { width: 1, kind: ExprKind::VarbitEq(x, y) };
        }
        let validity = |v: &Value| match v {
            Value::Store(Store::Header { valid, .. }) => Some(build::read(valid.clone(), 1)),
            Value::Header(_) => Some(build::bit(true)),
            _ => None,
        };
        match (validity(&a), validity(&b)) {
            (Some(va), Some(vb)) => {
                let fields = self.all_equal(parts(a), parts(b));
                let both = build::and(build::and(va.clone(), vb.clone()), fields);
                let neither = build::and(build::not(va), build::not(vb));
                build::or(neither, both)
            }
            // The other side is `{#}`.
            (Some(valid), None) | (None, Some(valid)) => build::not(valid),
            (None, None) => self.all_equal(parts(a), parts(b)),
        }
    }

    fn all_equal(&mut self, a: Vec<Value>, b: Vec<Value>) -> Expr {
        let same: Vec<Expr> = if a.len() != b.len() {
            // One side is a default value: so must be each part of the other.
            a.into_iter().chain(b).map(|v| self.equal(v, Value::Default)).collect()
        } else {
            a.into_iter().zip(b).map(|(x, y)| self.equal(x, y)).collect()
        };
        build::balanced(same, build::and).unwrap_or(build::bit(true))
    }

    /// The place that an l-value names. `keep`: run-time indices are kept in temporaries.
    pub(super) fn place(&mut self, e: &hir::Expr, keep: bool) -> Lowered<Store> {
        Ok(match &e.kind {
            K::Ref(id) => match self.env.get(id) {
                Some(Binding::Store(store)) => store.clone(),
                // An array that is known at compile time, with an index that is not.
                Some(Binding::Value(_)) => self.stored(e)?,
                _ if matches!(self.def(*id).kind, DefKind::Const { .. }) => self.stored(e)?,
                _ => {
                    return self.fail(
                        "unsupported",
                        e.span,
                        format!("`{}` has no storage here", self.def(*id).name),
                    );
                }
            },
            K::Field(base, index) => match self.place(base, keep)? {
                Store::Struct(items) | Store::Union(items) | Store::Header { fields: items, .. } => {
                    items[*index].clone()
                }
                _ => Store::Unit,
            },
            K::Index(base, index) => {
                let base = self.place(base, keep)?;
                let Store::Stack { id, elements, .. } = base else { return Ok(Store::Unit) };
                let index = self.scalar(index)?;
                if let ExprKind::Const(value) = &index.kind
                    && let Some(element) = usize::try_from(value).ok().and_then(|i| elements.get(i))
                {
                    return Ok(element.clone());
                }
                let index = if keep { self.freeze(index) } else { index };
                self.element(id, &elements[0], &index)
            }
            K::StackNext(base) => {
                let Store::Stack { id, elements, next } = self.place(base, keep)? else {
                    return Ok(Store::Unit);
                };
                let next = build::read(Place::Var(next), 32);
                let len = build::constant(self.program[id].len, 32);
                self.stack_bound(build::binary(BinOp::LtU, next.clone(), len));
                let next = if keep { self.freeze(next) } else { next };
                self.element(id, &elements[0], &next)
            }
            K::StackLast(base) => {
                let Store::Stack { id, elements, next } = self.place(base, keep)? else {
                    return Ok(Store::Unit);
                };
                let next = build::read(Place::Var(next), 32);
                self.stack_bound(build::binary(BinOp::Ne, next.clone(), build::constant(0u8, 32)));
                let last = build::binary(BinOp::Sub, next, build::constant(1u8, 32));
                let last = if keep { self.freeze(last) } else { last };
                self.element(id, &elements[0], &last)
            }
            _ => self.stored(e)?,
        })
    }

    /// Where a value is, which is put into storage of its own if it is nowhere.
    fn stored(&mut self, e: &hir::Expr) -> Lowered<Store> {
        Ok(match self.value(e)? {
            Value::Store(store) => store,
            value => {
                let ty = self.ty(&e.ty);
                let store = self.alloc(&ty, "value", Life::Local);
                self.assign(&store, value);
                store
            }
        })
    }

    fn element(&self, stack: ir::StackId, first: &Store, index: &Expr) -> Store {
        self.budget.work(4 * first.size());
        first.at(stack, index)
    }

    fn stack_bound(&mut self, cond: Expr) {
        let code = self.hir.errors.iter().position(|e| &**e == "StackOutOfBounds").unwrap_or(0);
        self.emit(Stmt::Verify { cond, error: build::constant(code as u32, 32) });
    }

    /// All scalars and varbits of a value of type `ty`, in order.
    pub(super) fn flatten(&mut self, value: Value, ty: &Type, out: &mut Vec<Expr>) {
        if !self.budget.spend(Resource::Expressions, 1) {
            return;
        }
        match (value, ty) {
            (Value::Scalar(e), _) => out.push(e),
            (Value::Store(Store::Scalar(place, width)), _) => out.push(build::read(place, width)),
            (Value::Store(Store::Varbit(place)), _) => {
                let width = self.varbit_width(&place);
                out.push(build::read(place, width));
            }
            (Value::Unit | Value::Str | Value::Store(Store::Unit), _) | (Value::Default, Type::Varbit(0)) => {
            }
            (Value::Default, Type::Varbit(width)) => {
                let empty = self.empty_varbit(*width);
                out.push(build::read(empty, *width));
            }
            (value, ty) => {
                let mut parts = parts(value).into_iter();
                for ty in self.part_types(ty) {
                    let part = parts.next().unwrap_or_else(|| self.default_value(&ty));
                    self.flatten(part, &ty, out);
                }
                parts.for_each(|part| self.flatten(part, &Type::Unknown, out));
            }
        }
    }
}

/// Field `index` of a value.
fn project(value: Value, index: usize) -> Value {
    match value {
        Value::Default => Value::Default,
        Value::Store(
            Store::Struct(items)
            | Store::Union(items)
            | Store::Stack { elements: items, .. }
            | Store::Header { fields: items, .. },
        ) => items.get(index).map_or(Value::Unit, |part| Value::Store(part.clone())),
        other => parts(other).into_iter().nth(index).unwrap_or(Value::Unit),
    }
}

/// Fields or elements of a value.
pub(super) fn parts(value: Value) -> Vec<Value> {
    match value {
        Value::Struct(items) | Value::Header(items) => items,
        Value::Store(
            Store::Struct(items)
            | Store::Union(items)
            | Store::Stack { elements: items, .. }
            | Store::Header { fields: items, .. },
        ) => items.iter().cloned().map(Value::Store).collect(),
        _ => Vec::new(),
    }
}
