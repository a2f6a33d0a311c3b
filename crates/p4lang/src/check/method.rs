//! Methods: of headers, stacks, tables, parsers, controls, extern objects, and of types (P4_16 sections 8.20, 8.21, 9).

use num_traits::ToPrimitive;

use super::types::{Subst, is_header, substitute};
use super::{Checker, Place};
use crate::ast::{self, Ident};
use crate::hir::{Call, Callee, DefId, DefKind, Expr, ExprKind, Order, Type, TypeParamId};
use crate::source::Span;

impl Checker {
    pub(super) fn method(
        &mut self,
        base: &ast::Expr,
        name: &Ident,
        type_args: &[ast::TypeRef],
        args: &[ast::Arg],
        span: Span,
    ) -> Expr {
        if let Some(ty) = self.as_type(base) {
            return self.type_method(&ty, name, args, span);
        }
        let object = self.expr(base, None);
        if object.ty == Type::Unknown {
            self.check_loose(args);
            return object;
        }
        if let Some(result) = self.size_method(&object.ty.clone(), name, args, span) {
            return result;
        }
        if matches!(object.kind, ExprKind::Construct(_)) {
            self.error("wrong-place", object.span, "no object can be constructed where it is used").help =
                Some("make an instance, and call its method".into());
        }
        let own = matches!(object.ty, Type::Extern(..) | Type::Parser(..) | Type::Control(..));
        if let Some(written) = type_args.first().filter(|_| !own) {
            self.error("type-arguments", written.span, format!("`{}` takes no type arguments", name.name))
                .help = Some("remove them".into());
        }
        let simple = |callee, ty: Type| {
            let order = Order::default();
            Self::result(Call { callee, type_args: Vec::new(), args: Vec::new(), order, ty, span })
        };
        match (object.ty.clone(), &*name.name) {
            (Type::Table(id), "apply") => {
                if self.place != Place::Control {
                    self.error(
                        "wrong-place",
                        span,
                        "a table may be applied only in a control's `apply` block",
                    );
                }
                self.no_arguments(args, name);
                simple(Callee::Table(id), Type::ApplyResult(id))
            }
            (Type::Header(..) | Type::Union(..), "isValid") => {
                self.no_arguments(args, name);
                simple(Callee::IsValid(object), Type::Bool)
            }
            (Type::Header(..), "setValid" | "setInvalid") => {
                self.no_arguments(args, name);
                self.require_writable(&object);
                let callee = if &*name.name == "setValid" {
                    Callee::SetValid(object)
                } else {
                    Callee::SetInvalid(object)
                };
                simple(callee, Type::Void)
            }
            (Type::Stack(element, _), "push_front" | "pop_front") if is_header(&element) => {
                self.require_writable(&object);
                if self.place == Place::Parser {
                    self.error(
                        "wrong-place",
                        span,
                        format!("`{}` cannot be called in a parser", name.name),
                    )
                    .help = Some("use `next` and `last`".into());
                }
                let [arg] = args else {
                    self.error("bad-call", span, format!("`{}` takes one argument", name.name));
                    return Self::unknown(span);
                };
                let Some(value) = self.const_int(&arg.value) else { return Self::unknown(span) };
                let Some(count) = value.to_u32().filter(|count| *count > 0) else {
                    self.error("bad-call", arg.value.span, "the number of elements must be positive");
                    return Self::unknown(span);
                };
                let callee = if &*name.name == "push_front" {
                    Callee::PushFront(object, count)
                } else {
                    Callee::PopFront(object, count)
                };
                simple(callee, Type::Void)
            }
            (Type::Parser(id, types) | Type::Control(id, types), "apply") => {
                self.apply(object, id, &types, args, span)
            }
            (Type::Extern(id, types), _) => {
                self.extern_method(object, (id, &types), name, type_args, args, span)
            }
            (other, _) => {
                let shown = self.show(&other);
                self.error("unknown-method", name.span, format!("`{shown}` has no method `{}`", name.name));
                self.check_loose(args);
                Self::unknown(span)
            }
        }
    }

    fn no_arguments(&mut self, args: &[ast::Arg], name: &Ident) {
        if let Some(arg) = args.first() {
            self.error("bad-call", arg.value.span, format!("`{}` takes no arguments", name.name));
        }
    }

    /// `minSizeInBits` and its kin (section 9).
    fn size_method(&mut self, ty: &Type, name: &Ident, args: &[ast::Arg], span: Span) -> Option<Expr> {
        let pick: fn((u64, u64)) -> u64 = match &*name.name {
            "minSizeInBits" => |s| s.0,
            "maxSizeInBits" => |s| s.1,
            "minSizeInBytes" => |s| s.0.div_ceil(8),
            "maxSizeInBytes" => |s| s.1.div_ceil(8),
            _ => return None,
        };
        self.no_arguments(args, name);
        Some(match self.size_bits(ty) {
            Some(size) => Expr { ty: Type::Int, kind: ExprKind::Int(pick(size).into()), span },
            None => {
                let shown = self.show(ty);
                self.error("bad-operand", span, format!("`{shown}` has no size"));
                Self::unknown(span)
            }
        })
    }

    fn type_method(&mut self, ty: &Type, name: &Ident, args: &[ast::Arg], span: Span) -> Expr {
        if let Some(result) = self.size_method(ty, name, args, span) {
            return result;
        }
        match (ty, &*name.name) {
            (Type::Parser(id, types) | Type::Control(id, types), "apply") => {
                let constructor = match &self.def(*id).kind {
                    DefKind::Parser(p) => p.ctor_params.clone(),
                    DefKind::Control(c) => c.ctor_params.clone(),
                    _ => {
                        self.error(
                            "not-callable",
                            span,
                            "only a parser or control with a body can be applied",
                        );
                        return Self::unknown(span);
                    }
                };
                if !constructor.is_empty() {
                    self.error(
                        "bad-call",
                        span,
                        "a parser or control with constructor parameters cannot be applied directly",
                    )
                    .help = Some("make an instance first".into());
                }
                let object = Expr { ty: ty.clone(), kind: ExprKind::DontCare, span };
                self.apply(object, *id, types, args, span)
            }
            (Type::Unknown, _) => {
                self.check_loose(args);
                Self::unknown(span)
            }
            _ => {
                let shown = self.show(ty);
                self.error(
                    "unknown-method",
                    name.span,
                    format!("the type `{shown}` has no method `{}`", name.name),
                );
                self.check_loose(args);
                Self::unknown(span)
            }
        }
    }

    /// Applies an instance of a parser or control, or (`object` is a don't-care) a fresh one.
    fn apply(&mut self, object: Expr, id: DefId, types: &[Type], args: &[ast::Arg], span: Span) -> Expr {
        let is_parser = matches!(object.ty, Type::Parser(..));
        match (is_parser, self.place) {
            (true, Place::Parser) | (false, Place::Control) => {}
            (true, _) => {
                self.error("wrong-place", span, "a parser may be applied only in a parser state");
            }
            (false, _) => {
                self.error("wrong-place", span, "a control may be applied only in a control's `apply` block");
            }
        }
        let Some((type_params, params)) = self.block_signature(id) else { return Self::unknown(span) };
        let outer: Subst = type_params.iter().copied().zip(types.iter().cloned()).collect();
        let open: Vec<TypeParamId> = if types.is_empty() { type_params } else { Vec::new() };
        let Some((found, args, order)) = self.arguments(&open, &params, &[], args, &outer, span) else {
            return Self::unknown(span);
        };
        self.argument_rules(&params, &args);
        let type_args = if types.is_empty() { found } else { types.to_vec() };
        let callee = if matches!(object.kind, ExprKind::DontCare) {
            Callee::DirectApply(id)
        } else {
            Callee::Apply(object)
        };
        Self::result(Call { callee, type_args, args, order, ty: Type::Void, span })
    }

    fn extern_method(
        &mut self,
        object: Expr,
        (id, types): (DefId, &[Type]),
        name: &Ident,
        type_args: &[ast::TypeRef],
        args: &[ast::Arg],
        span: Span,
    ) -> Expr {
        let DefKind::Extern(def) = &self.def(id).kind else { return Self::unknown(span) };
        let outer: Subst = def.type_params.iter().copied().zip(types.iter().cloned()).collect();
        self.budget.work(def.methods.len());
        let methods = def.methods.clone();
        let named: Vec<DefId> = methods.iter().copied().filter(|m| self.def(*m).name == name.name).collect();
        if named.is_empty() {
            let names: Vec<_> = methods.iter().map(|m| self.def(*m).name.clone()).collect();
            let similar = self.similar(&name.name, names.iter());
            let shown = self.show(&object.ty);
            let diagnostic =
                self.error("unknown-method", name.span, format!("`{shown}` has no method `{}`", name.name));
            diagnostic.help = similar.map(|s| format!("did you mean `{s}`?"));
            self.check_loose(args);
            return Self::unknown(span);
        }
        let Some(method) = self.resolve(&named, name, args, span) else { return Self::unknown(span) };
        let Some(signature) = self.signature(method) else { return Self::unknown(span) };
        let Some((types, args, order)) =
            self.arguments(&signature.type_params, &signature.params, type_args, args, &outer, span)
        else {
            return Self::unknown(span);
        };
        self.argument_rules(&signature.params, &args);
        let mut subst: Subst = outer;
        subst.extend(signature.type_params.iter().copied().zip(types.iter().cloned()));
        let ty = substitute(&signature.returns, &subst);
        self.packet_rules(&object, name, &args, &types);
        let callee = Callee::Method { object, method };
        Self::result(Call { callee, type_args: types, args, order, ty, span })
    }

    /// What `extract`, `lookahead` and `emit` can work on (sections 13.8, 16.1).
    fn packet_rules(&mut self, object: &Expr, name: &Ident, args: &[Option<Expr>], types: &[Type]) {
        let Type::Extern(id, _) = object.ty else { return };
        let object_name = self.def(id).name.clone();
        if &*object_name == "packet_in" && &*name.name != "length" && self.place != Place::Parser {
            let message = format!("`{}` reads the packet, which only a parser can do", name.name);
            self.error("wrong-place", name.span, message).help = Some("call it in a parser state".into());
            return;
        }
        let Some(ty) = types.first() else { return };
        let shown = self.show(ty);
        match (&*object_name, &*name.name) {
            ("packet_in", "extract") => {
                let span = args.first().and_then(|a| a.as_ref()).map_or(name.span, |a| a.span);
                if !matches!(ty, Type::Header(..) | Type::Param(_)) {
                    self.error("bad-call", span, format!("`extract` fills a header, not `{shown}`"));
                    return;
                }
                let varbits = self.varbits(ty);
                if args.len() == 1 && varbits > 0 {
                    self.error("bad-call", span, format!("`{shown}` has a varbit field")).help =
                        Some("give its length in bits as a second argument".into());
                } else if args.len() == 2 && varbits != 1 && !matches!(ty, Type::Param(_)) {
                    self.error(
                        "bad-call",
                        span,
                        format!("`{shown}` has no varbit field for the second argument to size"),
                    );
                }
            }
            ("packet_in", "lookahead") if !matches!(ty, Type::Param(_)) && !self.fixed_size(ty) => {
                self.error(
                    "bad-call",
                    name.span,
                    format!("`lookahead` reads a type of fixed size, not `{shown}`"),
                );
            }
            ("packet_out", "emit") if !self.emittable(ty) => {
                let span = args.first().and_then(|a| a.as_ref()).map_or(name.span, |a| a.span);
                self.error(
                    "bad-call",
                    span,
                    format!("`emit` writes headers, and stacks, unions and structs of them, not `{shown}`"),
                );
            }
            _ => {}
        }
    }

    /// Whether all values of the type have the same bits in the same places: there is no varbit or header union in it.
    fn fixed_size(&self, ty: &Type) -> bool {
        self.size_bits(ty).is_some_and(|(min, max)| min == max) && !self.has_union(ty)
    }

    fn has_union(&self, ty: &Type) -> bool {
        match ty {
            Type::Union(..) => true,
            Type::Stack(element, _) => self.has_union(element),
            Type::Struct(..) => self.fields(ty).is_some_and(|f| f.iter().any(|(_, t)| self.has_union(t))),
            Type::Tuple(items) => items.iter().any(|t| self.has_union(t)),
            _ => false,
        }
    }

    fn emittable(&self, ty: &Type) -> bool {
        match ty {
            Type::Header(..) | Type::Union(..) | Type::Param(_) => true,
            Type::Stack(element, _) => self.emittable(element),
            Type::Struct(..) => self.fields(ty).is_some_and(|f| f.iter().all(|(_, t)| self.emittable(t))),
            Type::Tuple(items) => items.iter().all(|t| self.emittable(t)),
            _ => false,
        }
    }
}
