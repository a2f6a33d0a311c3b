//! What may stand in a type, and what its fields may be once its type arguments are known (P4_16 section 7.2).

use super::Checker;
use super::types::parts;
use crate::ast::{self, TypeRef};
use crate::hir::{DefKind, Expr, Type};
use crate::source::Span;

impl Checker {
    /// Whether a generic extern, parser, control or package is named without type arguments.
    pub(super) fn lacks_arguments(&self, ty: &Type) -> bool {
        let (Type::Extern(id, args)
        | Type::Parser(id, args)
        | Type::Control(id, args)
        | Type::Package(id, args)) = ty
        else {
            return false;
        };
        let params = match &self.def(*id).kind {
            DefKind::Extern(e) => e.type_params.len(),
            _ => self.block_signature(*id).map_or(0, |(params, _)| params.len()),
        };
        args.is_empty() && params > 0
    }

    /// Elements of a tuple, list or stack: types that have values.
    pub(super) fn element_rules(&mut self, written: &TypeRef, ty: &Type) -> bool {
        let bad = ty.has_no_values();
        if bad {
            let shown = self.show(ty);
            self.error("bad-type", written.span, format!("`{shown}` cannot be part of another type")).help =
                Some("use a type that has values".into());
        }
        !bad
    }

    /// Whether all of these can be elements of a list or the results of a choice; reports the first that cannot.
    pub(super) fn have_values(&mut self, items: &[&Expr]) -> bool {
        let bad = items.iter().find(|e| {
            matches!(
                e.ty,
                Type::Void
                    | Type::Extern(..)
                    | Type::Parser(..)
                    | Type::Control(..)
                    | Type::Package(..)
                    | Type::Table(_)
                    | Type::Action
                    | Type::ApplyResult(_)
                    | Type::ActionRun(_)
                    | Type::ValueSet(_)
            )
        });
        if let Some(e) = bad {
            let (span, shown) = (e.span, self.show(&e.ty));
            self.error("bad-operand", span, format!("a `{shown}` is no value, which is wanted here"));
        }
        bad.is_none()
    }

    /// Type arguments of a named type, and what they make of its fields. False if something was reported.
    pub(super) fn type_argument_rules(&mut self, ty: &Type, written: &[TypeRef], span: Span) -> bool {
        let (Type::Struct(id, args)
        | Type::Header(id, args)
        | Type::Union(id, args)
        | Type::Extern(id, args)
        | Type::Parser(id, args)
        | Type::Control(id, args)
        | Type::Package(id, args)) = ty
        else {
            return true;
        };
        let data = matches!(ty, Type::Struct(..) | Type::Header(..) | Type::Union(..));
        for (arg, written) in args.iter().zip(written) {
            let shown = self.show(arg);
            let (message, help) = match arg {
                Type::Parser(..) | Type::Control(..) | Type::Package(..) | Type::Extern(..) => {
                    (format!("`{shown}` cannot be a type argument"), "use a type that has values")
                }
                Type::Void | Type::DontCare if data => {
                    (format!("`{shown}` cannot be a type argument here"), "use a type that has values")
                }
                _ if matches!(ty, Type::Extern(..)) && contains(arg, *id) => {
                    let name = &self.def(*id).name;
                    (format!("`{name}` cannot be its own type argument"), "use a type declared before it")
                }
                _ => continue,
            };
            self.error("type-arguments", written.span, message).help = Some(help.into());
            return false;
        }
        if !data || args.is_empty() {
            return true;
        }
        let bad = self.fields(ty).unwrap_or_default().into_iter().find(|(_, field)| match ty {
            Type::Header(..) => !self.allowed_in_header(field),
            Type::Union(..) => !matches!(field, Type::Header(..) | Type::Param(_) | Type::Unknown),
            _ => !self.storable(field) && !matches!(field, Type::String | Type::Int | Type::List(_)),
        });
        if matches!(ty, Type::Header(..)) && self.varbits(ty) > 1 {
            let shown = self.show(ty);
            self.error("varbit", span, format!("the header `{shown}` has a second varbit field")).help =
                Some("a header can have one at most".into());
            return false;
        }
        if let Some((name, field)) = bad {
            let (shown, field) = (self.show(ty), self.show(&field));
            self.error("bad-type", span, format!("in `{shown}` the field `{name}` cannot be a `{field}`"))
                .help = Some("give another type argument".into());
            return false;
        }
        true
    }
}

/// Whether a type is made from the definition, somewhere.
fn contains(ty: &Type, def: crate::hir::DefId) -> bool {
    let itself = match ty {
        Type::Struct(id, _)
        | Type::Header(id, _)
        | Type::Union(id, _)
        | Type::Extern(id, _)
        | Type::Parser(id, _)
        | Type::Control(id, _)
        | Type::Package(id, _) => *id == def,
        _ => false,
    };
    itself || parts(ty).iter().any(|t| contains(t, def))
}

/// Where a written type names `name`.
pub(super) fn names(ty: &TypeRef, name: &str) -> Option<Span> {
    use ast::TypeKind as K;
    match &ty.kind {
        K::Named { path, args } => (&*path.ident.name == name)
            .then_some(path.ident.span)
            .or_else(|| args.iter().find_map(|t| names(t, name))),
        K::Tuple(items) => items.iter().find_map(|t| names(t, name)),
        K::Stack { element, .. } | K::List(element) => names(element, name),
        _ => None,
    }
}
