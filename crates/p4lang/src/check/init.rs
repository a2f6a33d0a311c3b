//! Conversions: implicit ones, casts, and brace initialisers (P4_16 sections 8.12, 8.13, 8.15, 8.26).

use super::{Checker, consts};
use crate::ast::{self, Ident};
use crate::diag::{Diagnostic, counted};
use crate::hir::{DefId, DefKind, Expr, ExprKind, Hir, Order, Type};
use crate::source::Span;

/// Fields of `standard_metadata_t` that v1model.p4 has no more.
const GONE: [&str; 6] =
    ["clone_spec", "drop", "lf_field_list", "recirculate_flag", "recirculate_port", "resubmit_flag"];

/// What a header has beside its fields.
const METHODS: [&str; 3] = ["isValid", "setInvalid", "setValid"];

impl Checker {
    /// Makes `expr` a value of type `to` where the language converts without being asked; else reports.
    pub(super) fn coerce(&mut self, expr: Expr, to: &Type) -> Expr {
        if expr.ty == *to || matches!(to, Type::DontCare) {
            return expr;
        }
        if expr.ty == Type::Unknown || *to == Type::Unknown {
            return Expr { ty: to.clone(), ..expr };
        }
        let span = expr.span;
        match (expr.kind, &expr.ty, to) {
            (ExprKind::Int(value), Type::Int, Type::Bits { .. }) => {
                if !consts::fits(&value, to) {
                    let (shown, wrapped) = (self.show(to), consts::wrap(value.clone(), to));
                    // A negative literal for an unsigned type is how all ones are often written.
                    let message = format!(
                        "{} does not fit in `{shown}` and becomes {}",
                        consts::brief(&value),
                        consts::brief(&wrapped)
                    );
                    self.report(Diagnostic::warning("overflow", span, message));
                }
                Expr { ty: to.clone(), kind: ExprKind::Int(consts::wrap(value, to)), span }
            }
            (ExprKind::Ternary(cond, then, otherwise), Type::Tuple(_), _) => {
                let (then, otherwise) = (self.coerce(*then, to), self.coerce(*otherwise, to));
                Expr {
                    ty: to.clone(),
                    kind: ExprKind::Ternary(cond, Box::new(then), Box::new(otherwise)),
                    span,
                }
            }
            (kind, Type::Int, Type::Bits { .. }) => {
                let inner = Expr { ty: Type::Int, kind, span };
                Expr { ty: to.clone(), kind: ExprKind::Cast(Box::new(inner)), span }
            }
            // The specification wants a cast here; the reference compiler does not, and programs make use of that.
            (kind, Type::Int, Type::New(id)) if self.is_number(to) => {
                let base = self.underlying(*id).unwrap_or(Type::Unknown);
                if matches!(base, Type::Bits { .. }) {
                    let shown = self.show(to);
                    let message = format!("a number becomes a `{shown}` without a cast");
                    let warning = Diagnostic::warning("implicit-cast", span, message);
                    self.report(warning.help(format!("cast it: `({shown}) ...`")));
                }
                let inner = self.coerce(Expr { ty: Type::Int, kind, span }, &base);
                self.cast_to(inner, to)
            }
            (ExprKind::Int(value), Type::Bits { .. }, Type::Int) => {
                let message = "a number with a width becomes an `int` without a cast";
                self.report(Diagnostic::warning("implicit-cast", span, message).help("cast it: `(int) ...`"));
                Expr { ty: Type::Int, kind: ExprKind::Int(value), span }
            }
            (ExprKind::List(items), _, _) => self.coerce_list(items, &expr.ty, to, span),
            (ExprKind::Invalid, _, Type::Header(..) | Type::Union(..)) => {
                Expr { ty: to.clone(), kind: ExprKind::Invalid, span }
            }
            (ExprKind::Default, _, _) => Expr { ty: to.clone(), kind: ExprKind::Default, span },
            (kind, Type::Enum(id), Type::Bits { .. }) if self.underlying(*id).as_ref() == Some(to) => {
                let inner = Expr { ty: expr.ty, kind, span };
                self.cast_to(inner, to)
            }
            (kind, from, _) => {
                let expr = Expr { ty: from.clone(), kind, span };
                self.type_mismatch(&expr, to);
                Self::unknown(span)
            }
        }
    }

    /// Whether a type is a number below all its new names.
    pub(super) fn is_number(&self, ty: &Type) -> bool {
        is_number(&self.hir, ty)
    }

    fn type_mismatch(&mut self, expr: &Expr, to: &Type) {
        let (from, wanted) = (self.show(&expr.ty), self.show(to));
        let castable = castable(&self.hir, &expr.ty, to);
        let diagnostic =
            self.error("type-mismatch", expr.span, format!("expected `{wanted}`, found `{from}`"));
        diagnostic.label = format!("this is a `{from}`");
        if castable {
            diagnostic.help = Some(format!("cast it: `({wanted}) ...`"));
        }
    }

    pub(super) fn underlying(&self, id: DefId) -> Option<Type> {
        underlying(&self.hir, id)
    }

    fn coerce_list(&mut self, items: Vec<Option<Expr>>, from: &Type, to: &Type, span: Span) -> Expr {
        self.budget.work(items.len());
        let targets: Vec<Type> = match to {
            Type::Struct(..) | Type::Header(..) => {
                self.fields(to).unwrap_or_default().into_iter().map(|(_, t)| t).collect()
            }
            Type::Tuple(types) => types.clone(),
            Type::Stack(element, size) => vec![(**element).clone(); (*size as usize).min(items.len().max(1))],
            Type::List(element) => vec![(**element).clone(); items.len()],
            _ => {
                let expr = Expr { ty: from.clone(), kind: ExprKind::List(items), span };
                self.type_mismatch(&expr, to);
                return Self::unknown(span);
            }
        };
        if items.len() != targets.len() || matches!(to, Type::Stack(_, n) if items.len() > *n as usize) {
            let shown = self.show(to);
            let message = format!("`{shown}` takes {}, not {}", counted(targets.len(), "value"), items.len());
            self.error("initializer", span, message);
            return Self::unknown(span);
        }
        let items =
            items.into_iter().zip(&targets).map(|(item, ty)| item.map(|e| self.coerce(e, ty))).collect();
        let kind = if matches!(to, Type::Struct(..) | Type::Header(..)) {
            ExprKind::Struct(items, Order::default())
        } else {
            ExprKind::List(items)
        };
        Expr { ty: to.clone(), kind, span }
    }

    /// `{ a, b }`, with the type that the context wants if that is known.
    pub(super) fn list(
        &mut self,
        items: &[ast::Expr],
        ellipsis: bool,
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        let targets: Option<Vec<Type>> = match expected {
            Some(ty @ (Type::Struct(..) | Type::Header(..))) => {
                self.fields(ty).map(|f| f.into_iter().map(|(_, t)| t).collect())
            }
            Some(Type::Tuple(types)) => Some(types.clone()),
            Some(Type::Stack(element, size)) => Some(vec![(**element).clone(); *size as usize]),
            Some(Type::List(element)) => Some(vec![(**element).clone(); items.len()]),
            _ => None,
        };
        let Some(targets) = targets else {
            if ellipsis {
                self.error("initializer", span, "`...` needs a type to take its values from").help =
                    Some("assign to a variable of a struct or header type, or cast".into());
                return Self::unknown(span);
            }
            let items: Vec<Expr> = items.iter().map(|e| self.expr(e, None)).collect();
            if items.iter().any(|e| e.ty == Type::Unknown)
                || !self.have_values(&items.iter().collect::<Vec<_>>())
            {
                return Self::unknown(span);
            }
            let ty = Type::Tuple(items.iter().map(|e| e.ty.clone()).collect());
            return Expr { ty, kind: ExprKind::List(items.into_iter().map(Some).collect()), span };
        };
        self.budget.work(targets.len());
        if !self.budget.bytes(targets.len() * 64) {
            return Self::unknown(span);
        }
        let ty = expected.cloned().unwrap_or(Type::Unknown);
        if items.len() > targets.len() || (items.len() < targets.len() && !ellipsis) {
            let shown = self.show(&ty);
            let diagnostic = self.error(
                "initializer",
                span,
                format!("`{shown}` takes {}, not {}", counted(targets.len(), "value"), items.len()),
            );
            if items.len() < targets.len() {
                diagnostic.help =
                    Some("end the list with `...` to give the rest their default values".into());
            }
            return Self::unknown(span);
        }
        let mut values: Vec<Option<Expr>> = items
            .iter()
            .zip(&targets)
            .map(|(e, t)| {
                let value = self.expr(e, Some(t));
                Some(self.coerce(value, t))
            })
            .collect();
        values.resize_with(targets.len(), || None);
        let kind = if matches!(ty, Type::Struct(..) | Type::Header(..)) {
            ExprKind::Struct(values, Order::default())
        } else {
            ExprKind::List(values)
        };
        Expr { ty, kind, span }
    }

    /// `{ f = e, ... }`.
    pub(super) fn struct_init(
        &mut self,
        fields: &[(Ident, ast::Expr)],
        ellipsis: bool,
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        let Some(ty @ (Type::Struct(..) | Type::Header(..))) = expected else {
            // Without a type to go by, the values in their order are all there is.
            let items: Vec<Expr> = fields.iter().map(|(_, e)| self.expr(e, None)).collect();
            if ellipsis || items.iter().any(|e| e.ty == Type::Unknown) {
                if ellipsis {
                    self.error("initializer", span, "`...` needs a type to take its values from");
                }
                return Self::unknown(span);
            }
            if !self.have_values(&items.iter().collect::<Vec<_>>()) {
                return Self::unknown(span);
            }
            let ty = Type::Tuple(items.iter().map(|e| e.ty.clone()).collect());
            return Expr { ty, kind: ExprKind::List(items.into_iter().map(Some).collect()), span };
        };
        let targets = self.fields(ty).unwrap_or_default();
        if !self.budget.bytes(targets.len() * 64) {
            return Self::unknown(span);
        }
        let mut values: Vec<Option<Expr>> = targets.iter().map(|_| None).collect();
        let mut written = Vec::with_capacity(fields.len());
        let mut failed = false;
        for (name, value) in fields {
            let Some((index, _)) = self.field(ty, &name.name) else {
                self.no_such_field(ty, name);
                failed = true;
                continue;
            };
            let checked = self.expr(value, Some(&targets[index].1));
            let checked = self.coerce(checked, &targets[index].1);
            written.push(index);
            if values[index].replace(checked).is_some() {
                self.error("initializer", name.span, format!("field `{}` is given twice", name.name));
                failed = true;
            }
        }
        let missing: Vec<String> = targets
            .iter()
            .zip(&values)
            .filter(|(_, v)| v.is_none())
            .map(|((n, _), _)| format!("`{n}`"))
            .collect();
        if !missing.is_empty() && !ellipsis && !failed {
            self.error("initializer", span, format!("no value for {}", missing.join(", "))).help =
                Some("end the initialiser with `...` to give them their default values".into());
            failed = true;
        }
        if failed {
            return Expr { ty: ty.clone(), kind: ExprKind::Default, span };
        }
        let order = Order::new(written, values.len());
        Expr { ty: ty.clone(), kind: ExprKind::Struct(values, order), span }
    }

    pub(super) fn no_such_field(&mut self, ty: &Type, name: &Ident) {
        let fields = self.fields(ty).unwrap_or_default();
        let names: Vec<ast::Name> = fields.into_iter().map(|(n, _)| n).collect();
        let similar = self.similar(&name.name, names.iter());
        let shown = self.show(ty);
        let diagnostic =
            self.error("unknown-field", name.span, format!("`{shown}` has no field `{}`", name.name));
        diagnostic.help = Some(match similar {
            _ if shown == "standard_metadata_t" && GONE.contains(&&*name.name) => {
                "older versions of v1model.p4 had this field; today's has not".into()
            }
            _ if matches!(ty, Type::Header(..) | Type::Union(..)) && METHODS.contains(&&*name.name) => {
                format!("it is a method: `{}()`", name.name)
            }
            Some(other) => format!("did you mean `{other}`?"),
            None if names.is_empty() => "it has no fields".into(),
            None => {
                format!("it has {}", names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "))
            }
        });
    }

    /// `(T) e`.
    pub(super) fn cast(&mut self, ty: &ast::TypeRef, operand: &ast::Expr, span: Span) -> Expr {
        let to = self.ty(ty);
        let expr = self.expr(operand, Some(&to));
        if expr.ty == Type::Unknown || to == Type::Unknown {
            return Self::unknown(span);
        }
        if matches!(
            to,
            Type::MatchKind
                | Type::Void
                | Type::DontCare
                | Type::Extern(..)
                | Type::Parser(..)
                | Type::Control(..)
                | Type::Package(..)
        ) {
            let shown = self.show(&to);
            self.error("bad-cast", span, format!("nothing can be cast to `{shown}`"));
            return Self::unknown(span);
        }
        if to == Type::Bool
            && expr.ty == Type::Int
            && consts::int_value(&expr).is_some_and(|v| *v != 0.into() && *v != 1.into())
        {
            self.error("bad-cast", span, "only 0 and 1 can be cast to `bool`").help =
                Some("compare it: `... != 0`".into());
            return Self::unknown(span);
        }
        let braces = matches!(
            expr.kind,
            ExprKind::List(_) | ExprKind::Struct(..) | ExprKind::Invalid | ExprKind::Default
        );
        if expr.ty == to
            || (braces
                && matches!(
                    to,
                    Type::Struct(..)
                        | Type::Header(..)
                        | Type::Union(..)
                        | Type::Tuple(_)
                        | Type::Stack(..)
                        | Type::List(_)
                ))
        {
            return Expr { span, ..self.coerce(expr, &to) };
        }
        if to == Type::Int && !self.compile_time(&expr) {
            self.error("not-constant", span, "a number without a width is known at compile time").help =
                Some("cast to a type with a width, as in `(bit<32>)`".into());
            return Self::unknown(span);
        }
        if matches!(to, Type::Param(_)) || matches!(expr.ty, Type::Param(_)) {
            return Expr { ty: to, kind: ExprKind::Cast(Box::new(expr)), span };
        }
        if !castable(&self.hir, &expr.ty, &to) {
            let (from, wanted) = (self.show(&expr.ty), self.show(&to));
            let diagnostic = self.error("bad-cast", span, format!("cannot cast `{from}` to `{wanted}`"));
            if let (Type::Bits { width: a, signed: s }, Type::Bits { signed: t, .. }) = (&expr.ty, &to)
                && s != t
            {
                let sign = if *t { "int" } else { "bit" };
                diagnostic.help = Some(format!(
                    "change the sign and the width one at a time: `({wanted}) ({sign}<{a}>) ...`"
                ));
            }
            return Self::unknown(span);
        }
        Expr { span, ..self.cast_to(expr, &to) }
    }

    /// A cast that is known to be legal.
    pub(super) fn cast_to(&mut self, expr: Expr, to: &Type) -> Expr {
        let span = expr.span;
        let value = match (&expr.kind, &expr.ty) {
            (ExprKind::Int(value), _) => Some(value.clone()),
            (ExprKind::Bool(value), _) if *to != Type::Bool => Some(u8::from(*value).into()),
            (ExprKind::EnumMember(id, index), _) => match &self.def(*id).kind {
                DefKind::Enum(def) => def.members.get(*index).and_then(|(_, v)| v.clone()),
                _ => None,
            },
            _ => None,
        };
        let kind = match (value, to) {
            (Some(value), Type::Bits { .. }) => ExprKind::Int(consts::wrap(value, to)),
            (Some(value), Type::Int) => ExprKind::Int(value),
            (Some(value), Type::Bool) => ExprKind::Bool(value != 0.into()),
            (Some(value), Type::Enum(id) | Type::New(id)) => {
                let under = self.underlying(*id).unwrap_or(Type::Int);
                ExprKind::Int(consts::wrap(value, &under))
            }
            _ => ExprKind::Cast(Box::new(expr)),
        };
        Expr { ty: to.clone(), kind, span }
    }
}

/// What an enum or new type is made from.
fn underlying(hir: &Hir, id: DefId) -> Option<Type> {
    match &hir.def(id).kind {
        DefKind::Enum(def) => def.underlying.clone(),
        DefKind::NewType { ty } => Some(ty.clone()),
        _ => None,
    }
}

fn is_number(hir: &Hir, ty: &Type) -> bool {
    match ty {
        Type::Bits { .. } => true,
        Type::New(id) => underlying(hir, *id).is_some_and(|base| is_number(hir, &base)),
        _ => false,
    }
}

/// Explicit casts (section 8.12.1), between types without type parameters.
pub(crate) fn castable(hir: &Hir, from: &Type, to: &Type) -> bool {
    let underlying = |id: &DefId| underlying(hir, *id);
    match (from, to) {
        (Type::Bits { width: 1, signed: false }, Type::Bool)
        | (Type::Bool, Type::Bits { width: 1, signed: false }) => true,
        (Type::Bits { width: a, signed: s }, Type::Bits { width: b, signed: t }) => s == t || a == b,
        (Type::Int, Type::Bits { .. }) | (Type::Int, Type::Bool) | (Type::Bits { .. }, Type::Int) => true,
        (Type::New(_), Type::New(_)) => from == to || chain(hir, from, to) || chain(hir, to, from),
        (Type::New(id), _) => underlying(id).is_some_and(|u| u == *to || castable(hir, &u, to)),
        (Type::Int, Type::New(_)) => is_number(hir, to),
        (_, Type::New(id)) => underlying(id).is_some_and(|u| u == *from),
        (Type::Enum(id), Type::Bits { .. } | Type::Int) => {
            underlying(id).is_some_and(|u| u == *to || castable(hir, &u, to))
        }
        (Type::Enum(a), Type::Enum(b)) if a != b => match (underlying(a), underlying(b)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        },
        (Type::Bits { .. } | Type::Int, Type::Enum(id)) => {
            underlying(id).is_some_and(|u| u == *from || *from == Type::Int)
        }
        _ => from == to,
    }
}

/// Whether one new type is made from the other.
fn chain(hir: &Hir, from: &Type, to: &Type) -> bool {
    let mut at = from.clone();
    for _ in 0..64 {
        match &at {
            Type::New(id) => match underlying(hir, *id) {
                Some(next) if next == *to => return true,
                Some(next) => at = next,
                None => return false,
            },
            _ => return false,
        }
    }
    false
}
