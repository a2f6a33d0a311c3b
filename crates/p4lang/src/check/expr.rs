//! Expressions (P4_16 section 8).

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};

use super::scope::Entry;
use super::types::type_weight;
use super::{Checker, Place, consts};
use crate::ast::{self, Direction, Ident};
use crate::diag::counted;
use crate::hir::{DefId, DefKind, Expr, ExprKind, Type};
use crate::source::Span;

fn make(ty: Type, kind: ExprKind, span: Span) -> Expr {
    Expr { ty, kind, span }
}

impl Checker {
    /// Checks an expression. `expected` guides literals and braces; the result may still have another type (see
    /// [`Checker::coerce`]).
    pub(super) fn expr(&mut self, e: &ast::Expr, expected: Option<&Type>) -> Expr {
        if self.stop(e.span, 16) {
            return Self::unknown(e.span);
        }
        let made = self.expr_inner(e, expected);
        let constant = match &made.kind {
            ExprKind::Int(_) | ExprKind::Str(_) => consts::weight(&made),
            _ => 0,
        };
        let weight = constant + type_weight(&made.ty);
        self.budget.work(weight / 32);
        self.budget.bytes(weight);
        made
    }

    fn expr_inner(&mut self, e: &ast::Expr, expected: Option<&Type>) -> Expr {
        let span = e.span;
        match &e.kind {
            ast::ExprKind::Int { value, width: None, .. } => {
                make(Type::Int, ExprKind::Int(value.clone()), span)
            }
            ast::ExprKind::Int { value, width: Some(width), signed } => {
                self.sized(value, *width, *signed, span)
            }
            ast::ExprKind::Bool(value) => make(Type::Bool, ExprKind::Bool(*value), span),
            ast::ExprKind::Str(text) => make(Type::String, ExprKind::Str(text.clone()), span),
            ast::ExprKind::Name(path) => self.name(path, span),
            ast::ExprKind::Type(ty) => {
                self.error("not-a-value", ty.span, "a type is not a value here");
                Self::unknown(span)
            }
            ast::ExprKind::Member { base, name } => self.member(base, name, span),
            ast::ExprKind::Index { base, index } => self.index(base, index, span),
            ast::ExprKind::Slice { base, hi, lo } => self.slice(base, hi, lo, span),
            ast::ExprKind::PlusSlice { base, lo, width } => self.plus_slice(base, lo, width, span),
            ast::ExprKind::Unary { op, operand } => self.unary(*op, operand, expected, span),
            ast::ExprKind::Binary { op, left, right } => self.binary(*op, left, right, span),
            ast::ExprKind::Ternary { cond, then, otherwise } => {
                self.ternary(cond, then, otherwise, expected, span)
            }
            ast::ExprKind::Cast { ty, operand } => self.cast(ty, operand, span),
            ast::ExprKind::Call { callee, type_args, args } => self.call(callee, type_args, args, span),
            ast::ExprKind::List { items, ellipsis } => self.list(items, *ellipsis, expected, span),
            ast::ExprKind::StructInit { fields, ellipsis } => {
                self.struct_init(fields, *ellipsis, expected, span)
            }
            ast::ExprKind::Invalid => match expected {
                Some(ty @ (Type::Header(..) | Type::Union(..))) => make(ty.clone(), ExprKind::Invalid, span),
                _ => {
                    self.error("initializer", span, "`{#}` needs a header type to be one of").help =
                        Some("cast it: `(header_type) {#}`".into());
                    Self::unknown(span)
                }
            },
            ast::ExprKind::Ellipsis => match expected {
                Some(
                    ty @ (Type::MatchKind
                    | Type::Extern(..)
                    | Type::Parser(..)
                    | Type::Control(..)
                    | Type::Package(..)),
                ) => {
                    let shown = self.show(ty);
                    self.error("initializer", span, format!("a `{shown}` has no default value")).help =
                        Some("write a value".into());
                    Self::unknown(span)
                }
                Some(ty) => make(ty.clone(), ExprKind::Default, span),
                None => {
                    self.error("initializer", span, "`...` needs a type to take its values from");
                    Self::unknown(span)
                }
            },
            ast::ExprKind::Mask { .. } | ast::ExprKind::Range { .. } | ast::ExprKind::Default => {
                self.error(
                    "not-a-value",
                    span,
                    "a set of values may stand only in `select` and in table entries",
                );
                Self::unknown(span)
            }
            ast::ExprKind::DontCare => {
                self.error("not-a-value", span, "`_` may stand only for an argument or in a keyset");
                Self::unknown(span)
            }
            ast::ExprKind::This => {
                self.error(
                    "unsupported",
                    span,
                    "`this` may stand only in abstract methods, which no extern of this architecture has",
                );
                Self::unknown(span)
            }
        }
    }

    /// Checks an expression and converts it to `ty`.
    pub(super) fn expr_as(&mut self, e: &ast::Expr, ty: &Type) -> Expr {
        let expr = self.expr(e, Some(ty));
        self.coerce(expr, ty)
    }

    fn sized(&mut self, value: &BigInt, width: u32, signed: bool, span: Span) -> Expr {
        if width > super::types::MAX_WIDTH || (signed && width == 0) {
            self.error("bad-size", span, format!("the width {width} is out of range"));
            return Self::unknown(span);
        }
        let ty = Type::Bits { width, signed };
        // The text gives a bit pattern; with `s` the top bit is the sign.
        let unsigned = Type::Bits { width, signed: false };
        if !consts::fits(value, &unsigned) || (signed && !consts::fits(value, &ty)) {
            let message = format!("{} does not fit in {width} bits", consts::brief(value));
            self.report(crate::diag::Diagnostic::warning("overflow", span, message));
        }
        let value = consts::wrap(value.clone(), &ty);
        make(ty, ExprKind::Int(value), span)
    }

    fn name(&mut self, path: &ast::Path, span: Span) -> Expr {
        let Some(entry) = self.lookup(path) else { return Self::unknown(span) };
        let Entry::Defs(ids) = entry else {
            self.error("not-a-value", span, format!("`{}` is a type, not a value", path.ident.name));
            return Self::unknown(span);
        };
        let id = ids[0];
        self.require_value_name(path, id);
        let reference = |ty: Type| make(ty, ExprKind::Ref(id), span);
        match &self.def(id).kind {
            DefKind::Const { value, .. } if consts::is_const(value) => {
                let weight = consts::weight(value);
                self.budget.work(weight / 8);
                if !self.budget.bytes(weight) {
                    return Self::unknown(span);
                }
                Expr { span, ..value.clone() }
            }
            DefKind::Const { ty, .. } | DefKind::Variable { ty, .. } => reference(ty.clone()),
            DefKind::Param(p) => reference(p.ty.clone()),
            DefKind::Instance(i) => reference(i.ty.clone()),
            DefKind::Table(_) => reference(Type::Table(id)),
            DefKind::ValueSet { ty, .. } => reference(Type::ValueSet(Box::new(ty.clone()))),
            DefKind::Action(_) => make(Type::Action, ExprKind::ActionRef(id), span),
            DefKind::Function(_) | DefKind::ExternFn(_) => {
                self.error("not-a-value", span, format!("`{}` is a function", path.ident.name)).help =
                    Some("call it".into());
                Self::unknown(span)
            }
            _ => {
                self.error("not-a-value", span, format!("`{}` is a type, not a value", path.ident.name));
                Self::unknown(span)
            }
        }
    }

    /// The type that an expression names, if it names one.
    pub(super) fn as_type(&mut self, e: &ast::Expr) -> Option<Type> {
        match &e.kind {
            ast::ExprKind::Type(ty) => Some(self.ty(ty)),
            ast::ExprKind::Name(path) => {
                let is_type = match self.find(path)? {
                    Entry::TypeParam(_) => true,
                    Entry::Defs(ids) => self.def(ids[0]).kind.is_type(),
                };
                if !is_type {
                    return None;
                }
                let kind = ast::TypeKind::Named { path: path.clone(), args: Vec::new() };
                Some(self.ty(&ast::TypeRef { kind, span: e.span }))
            }
            _ => None,
        }
    }

    fn member(&mut self, base: &ast::Expr, name: &Ident, span: Span) -> Expr {
        if let Some(ty) = self.as_type(base) {
            return self.type_member(&ty, name, span);
        }
        let base = self.expr(base, None);
        match &base.ty {
            Type::Unknown => Self::unknown(span),
            Type::Struct(..) | Type::Header(..) | Type::Union(..) => match self.field(&base.ty, &name.name) {
                Some((index, ty)) => {
                    if let Some(part) = consts::part(&self.hir, &base, index, &ty) {
                        return Expr { span, ..part };
                    }
                    make(ty, ExprKind::Field(Box::new(base), index), span)
                }
                None => {
                    let ty = base.ty.clone();
                    self.no_such_field(&ty, name);
                    Self::unknown(span)
                }
            },
            Type::Stack(element, size) => {
                let (element, size) = ((**element).clone(), *size);
                let kind = match &*name.name {
                    "size" => {
                        return make(
                            Type::Bits { width: 32, signed: false },
                            ExprKind::Int(size.into()),
                            span,
                        );
                    }
                    "lastIndex" => ExprKind::StackLastIndex(Box::new(base)),
                    "next" => ExprKind::StackNext(Box::new(base)),
                    "last" => ExprKind::StackLast(Box::new(base)),
                    _ => {
                        self.error(
                            "unknown-field",
                            name.span,
                            format!("a header stack has no `{}`", name.name),
                        )
                        .help = Some(
                            "it has `next`, `last`, `lastIndex`, `size`, `push_front` and `pop_front`".into(),
                        );
                        return Self::unknown(span);
                    }
                };
                if !super::types::is_header(&element) {
                    let shown = self.show(&element);
                    let what = format!("an array of `{shown}` has no `{}`", name.name);
                    self.error("unknown-field", name.span, what).help = Some("use an index".into());
                    return Self::unknown(span);
                }
                if self.place != Place::Parser && &*name.name != "size" {
                    self.error(
                        "wrong-place",
                        span,
                        format!("`{}` of a stack exists only in parsers", name.name),
                    )
                    .help = Some("use an index".into());
                    return Self::unknown(span);
                }
                let ty = if &*name.name == "lastIndex" {
                    Type::Bits { width: 32, signed: false }
                } else {
                    element
                };
                make(ty, kind, span)
            }
            Type::ApplyResult(table) => {
                let table = *table;
                let ExprKind::Call(call) = base.kind else { return Self::unknown(span) };
                match &*name.name {
                    "hit" | "miss" => make(
                        Type::Bool,
                        ExprKind::TableHit { apply: call, miss: &*name.name == "miss" },
                        span,
                    ),
                    "action_run" => make(Type::ActionRun(table), ExprKind::Call(call), span),
                    _ => {
                        self.error(
                            "unknown-field",
                            name.span,
                            format!("the result of `apply` has no `{}`", name.name),
                        )
                        .help = Some("it has `hit`, `miss` and `action_run`".into());
                        Self::unknown(span)
                    }
                }
            }
            other => {
                let shown = self.show(other);
                self.error("unknown-field", name.span, format!("`{shown}` has no field `{}`", name.name));
                Self::unknown(span)
            }
        }
    }

    fn type_member(&mut self, ty: &Type, name: &Ident, span: Span) -> Expr {
        match ty {
            Type::Error if self.stop(span, self.hir.errors.len() / 4) => Self::unknown(span),
            Type::Error => match self.hir.errors.iter().position(|e| *e == name.name) {
                Some(code) => make(Type::Error, ExprKind::Error(code), span),
                None => {
                    let similar = self.similar(&name.name, self.hir.errors.iter());
                    let diagnostic =
                        self.error("unknown-name", name.span, format!("there is no error `{}`", name.name));
                    diagnostic.help = similar.map(|s| format!("did you mean `error.{s}`?"));
                    Self::unknown(span)
                }
            },
            Type::Enum(id) => {
                let DefKind::Enum(def) = &self.def(*id).kind else { return Self::unknown(span) };
                self.budget.work(def.members.len() / 4);
                match def.members.iter().position(|(n, _)| *n == name.name) {
                    Some(index) => make(ty.clone(), ExprKind::EnumMember(*id, index), span),
                    None => {
                        let names: Vec<_> = def.members.iter().map(|(n, _)| n.clone()).collect();
                        let similar = self.similar(&name.name, names.iter());
                        let shown = self.show(ty);
                        let diagnostic = self.error(
                            "unknown-name",
                            name.span,
                            format!("`{shown}` has no member `{}`", name.name),
                        );
                        diagnostic.help = similar.map(|s| format!("did you mean `{s}`?"));
                        Self::unknown(span)
                    }
                }
            }
            Type::Unknown => Self::unknown(span),
            _ => {
                let shown = self.show(ty);
                self.error(
                    "unknown-field",
                    name.span,
                    format!("the type `{shown}` has no member `{}`", name.name),
                );
                Self::unknown(span)
            }
        }
    }

    fn index(&mut self, base: &ast::Expr, index: &ast::Expr, span: Span) -> Expr {
        let base = self.expr(base, None);
        let index = self.expr(index, None);
        let index = self.numeric(index);
        if base.ty == Type::Unknown || index.ty == Type::Unknown {
            return Self::unknown(span);
        }
        let constant = consts::int_value(&index).cloned();
        let out_of_range = |size: usize| {
            constant.as_ref().is_some_and(|v| v.is_negative() || v.to_usize().is_none_or(|v| v >= size))
        };
        match base.ty.clone() {
            Type::Stack(element, size) => {
                if !matches!(index.ty, Type::Bits { .. } | Type::Int) {
                    let shown = self.show(&index.ty);
                    self.error("type-mismatch", index.span, format!("an index is a number, not `{shown}`"));
                    return Self::unknown(span);
                }
                if out_of_range(size as usize) {
                    self.error(
                        "bad-index",
                        index.span,
                        format!("the stack has {}", counted(size as usize, "element")),
                    )
                    .help = Some(format!("indices run from 0 to {}", size - 1));
                    return Self::unknown(span);
                }
                make(*element, ExprKind::Index(Box::new(base), Box::new(index)), span)
            }
            Type::Tuple(items) => {
                let Some(at) = constant.as_ref().and_then(ToPrimitive::to_usize) else {
                    self.error(
                        "not-constant",
                        index.span,
                        "the index of a tuple must be known at compile time",
                    );
                    return Self::unknown(span);
                };
                if at >= items.len() {
                    self.error(
                        "bad-index",
                        index.span,
                        format!("the tuple has {}", counted(items.len(), "element")),
                    );
                    return Self::unknown(span);
                }
                if let Some(part) = consts::part(&self.hir, &base, at, &items[at]) {
                    return Expr { span, ..part };
                }
                make(items[at].clone(), ExprKind::Field(Box::new(base), at), span)
            }
            other => {
                let shown = self.show(&other);
                self.error("bad-operand", base.span, format!("`{shown}` cannot be indexed"));
                Self::unknown(span)
            }
        }
    }

    fn slice(&mut self, base: &ast::Expr, hi: &ast::Expr, lo: &ast::Expr, span: Span) -> Expr {
        let base = self.expr(base, None);
        let base = self.numeric(base);
        let (hi, lo) = (self.const_int(hi), self.const_int(lo));
        if base.ty == Type::Unknown {
            return Self::unknown(span);
        }
        let (Some(hi), Some(lo)) = (hi, lo) else { return Self::unknown(span) };
        self.slice_of(base, &hi, &lo, span)
    }

    /// Bits hi..=lo of a value.
    pub(super) fn slice_of(&mut self, base: Expr, hi: &BigInt, lo: &BigInt, span: Span) -> Expr {
        let limit = match base.ty {
            Type::Bits { width, .. } => width,
            Type::Int if consts::int_value(&base).is_some() => super::types::MAX_WIDTH,
            _ => {
                let shown = self.show(&base.ty);
                self.error("bad-operand", base.span, format!("`{shown}` cannot be sliced"));
                return Self::unknown(span);
            }
        };
        let (Some(h), Some(l)) = (hi.to_u32().filter(|h| *h < limit), lo.to_u32()) else {
            let message = format!(
                "the slice [{}:{}] reaches outside of the {limit} bits",
                consts::brief(hi),
                consts::brief(lo)
            );
            self.error("bad-slice", span, message);
            return Self::unknown(span);
        };
        if l > h {
            self.error("bad-slice", span, format!("the slice [{h}:{l}] ends before it starts")).help =
                Some(format!("the higher bit comes first: [{l}:{h}]"));
            return Self::unknown(span);
        }
        let ty = Type::Bits { width: h - l + 1, signed: false };
        if let Some(value) = consts::int_value(&base) {
            return make(ty, ExprKind::Int(consts::slice(value, h, l)), span);
        }
        make(ty, ExprKind::Slice { base: Box::new(base), hi: h, lo: l }, span)
    }

    fn ternary(
        &mut self,
        cond: &ast::Expr,
        then: &ast::Expr,
        otherwise: &ast::Expr,
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        let cond = self.condition(cond);
        let then = self.expr(then, expected);
        let otherwise = self.expr(otherwise, expected);
        if cond.ty == Type::Unknown || then.ty == Type::Unknown || otherwise.ty == Type::Unknown {
            return Self::unknown(span);
        }
        if !self.have_values(&[&then, &otherwise]) {
            return Self::unknown(span);
        }
        let (then, otherwise) = match (&then.ty, &otherwise.ty) {
            (a, b) if a == b => (then, otherwise),
            (Type::Int | Type::Tuple(_), _) => {
                let ty = otherwise.ty.clone();
                (self.coerce(then, &ty), otherwise)
            }
            _ => {
                let ty = then.ty.clone();
                let otherwise = self.coerce(otherwise, &ty);
                (then, otherwise)
            }
        };
        if then.ty == Type::Unknown || otherwise.ty == Type::Unknown {
            return Self::unknown(span);
        }
        if let ExprKind::Bool(value) = cond.kind {
            return Expr { span, ..if value { then } else { otherwise } };
        }
        if then.ty == Type::Int && otherwise.ty == Type::Int {
            self.error("bad-operand", span, "a choice at run time between two numbers without a width")
                .help = Some("give one of them a width, as in `8w1`".into());
            return Self::unknown(span);
        }
        make(then.ty.clone(), ExprKind::Ternary(Box::new(cond), Box::new(then), Box::new(otherwise)), span)
    }

    /// A condition: must be `bool`.
    pub(super) fn condition(&mut self, e: &ast::Expr) -> Expr {
        let cond = self.expr(e, Some(&Type::Bool));
        if !matches!(cond.ty, Type::Bool | Type::Unknown) {
            let shown = self.show(&cond.ty);
            let diagnostic =
                self.error("type-mismatch", cond.span, format!("a condition must be `bool`, not `{shown}`"));
            if matches!(cond.ty, Type::Bits { .. } | Type::Int) {
                diagnostic.help = Some("compare it: `... != 0`".into());
            }
            return Self::unknown(cond.span);
        }
        cond
    }

    /// Whether the expression can be assigned to; why not, if not.
    pub(super) fn writable(&self, e: &Expr) -> Result<(), String> {
        match &e.kind {
            ExprKind::Ref(id) => self.writable_def(*id),
            ExprKind::Field(base, _) | ExprKind::Index(base, _) | ExprKind::Slice { base, .. } => {
                self.writable(base)
            }
            ExprKind::StackNext(base) => self.writable(base),
            ExprKind::StackLast(_) => Err("`last` of a stack can only be read".into()),
            _ => Err("this is a value, not a place".into()),
        }
    }

    fn writable_def(&self, id: DefId) -> Result<(), String> {
        let def = self.def(id);
        match &def.kind {
            DefKind::Variable { .. } => Ok(()),
            DefKind::Param(p) => match p.direction {
                Direction::Out | Direction::InOut => Ok(()),
                Direction::In => Err(format!("`{}` is an `in` parameter", def.name)),
                Direction::None => Err(format!("`{}` is a parameter without a direction", def.name)),
            },
            DefKind::Const { .. } => Err(format!("`{}` is a constant", def.name)),
            _ => Err(format!("`{}` is not a variable", def.name)),
        }
    }

    /// Reports unless the expression can be assigned to.
    pub(super) fn require_writable(&mut self, e: &Expr) -> bool {
        if e.ty == Type::Unknown {
            return true;
        }
        match self.writable(e) {
            Ok(()) => true,
            Err(why) => {
                self.error("not-assignable", e.span, format!("cannot assign: {why}"));
                false
            }
        }
    }
}
