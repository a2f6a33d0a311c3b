//! Calls of functions, actions and constructors (P4_16 sections 6.8, 8.20).

use super::scope::Entry;
use super::types::{Subst, substitute};
use super::{Checker, Place};
use crate::ast::{self, Ident};
use crate::hir::{Call, Callee, DefId, DefKind, Expr, ExprKind, SignatureDef, Type};
use crate::source::Span;

impl Checker {
    pub(super) fn call(
        &mut self,
        callee: &ast::Expr,
        type_args: &[ast::TypeRef],
        args: &[ast::Arg],
        span: Span,
    ) -> Expr {
        match &callee.kind {
            ast::ExprKind::Name(path) => {
                let Some(entry) = self.lookup(path) else {
                    self.check_loose(args);
                    return Self::unknown(span);
                };
                let Entry::Defs(ids) = entry else {
                    self.error("not-callable", span, format!("`{}` is a type parameter", path.ident.name));
                    return Self::unknown(span);
                };
                match self.def(ids[0]).kind {
                    DefKind::Function(_) | DefKind::ExternFn(_) => {
                        self.function(&ids, &path.ident, type_args, args, span)
                    }
                    DefKind::Action(_) => {
                        self.require_value_name(path, ids[0]);
                        if let Some(written) = type_args.first() {
                            self.error("type-arguments", written.span, "an action takes no type arguments");
                        }
                        self.action_call(ids[0], args, span)
                    }
                    _ => match self.as_type(callee) {
                        Some(_) => {
                            let kind = ast::TypeKind::Named { path: path.clone(), args: type_args.to_vec() };
                            let ty = self.ty(&ast::TypeRef { kind, span: callee.span });
                            self.construct_expr(&ty, args, span)
                        }
                        None => {
                            self.error(
                                "not-callable",
                                callee.span,
                                format!("`{}` cannot be called", path.ident.name),
                            );
                            self.check_loose(args);
                            Self::unknown(span)
                        }
                    },
                }
            }
            ast::ExprKind::Type(ty) => {
                let ty = self.ty(ty);
                self.construct_expr(&ty, args, span)
            }
            ast::ExprKind::Member { base, name } => self.method(base, name, type_args, args, span),
            _ => {
                self.error("not-callable", callee.span, "this cannot be called");
                self.check_loose(args);
                Self::unknown(span)
            }
        }
    }

    pub(super) fn result(call: Call) -> Expr {
        Expr { ty: call.ty.clone(), span: call.span, kind: ExprKind::Call(Box::new(call)) }
    }

    fn function(
        &mut self,
        ids: &[DefId],
        name: &Ident,
        type_args: &[ast::TypeRef],
        args: &[ast::Arg],
        span: Span,
    ) -> Expr {
        let Some(id) = self.resolve(ids, name, args, span) else { return Self::unknown(span) };
        if &*name.name == "verify"
            && self.place != Place::Parser
            && matches!(self.def(id).kind, DefKind::ExternFn(_))
        {
            self.error("wrong-place", span, "`verify` may be called only in a parser state");
        }
        let Some(signature) = self.signature(id) else { return Self::unknown(span) };
        if &*name.name == "static_assert" && matches!(self.def(id).kind, DefKind::ExternFn(_)) {
            return self.static_assert(&signature, args, span);
        }
        let Some((types, args, order)) =
            self.arguments(&signature.type_params, &signature.params, type_args, args, &Subst::new(), span)
        else {
            return Self::unknown(span);
        };
        self.argument_rules(&signature.params, &args);
        // The type of a parameter that is an extern's was refused where it is declared, but for a type parameter.
        if matches!(self.def(id).kind, DefKind::Function(_))
            && let Some(object) = args.iter().flatten().find(|a| matches!(a.ty, Type::Extern(..)))
        {
            self.error("bad-call", object.span, "an extern object cannot be the argument of a function")
                .help = Some("call the object's methods where it is declared, and pass their results".into());
        }
        let subst: Subst = signature.type_params.iter().copied().zip(types.iter().cloned()).collect();
        let ty = substitute(&signature.returns, &subst);
        let callee = match self.def(id).kind {
            DefKind::Function(_) => Callee::Function(id),
            _ => Callee::ExternFn(id),
        };
        Self::result(Call { callee, type_args: types, args, order, ty, span })
    }

    fn static_assert(&mut self, signature: &SignatureDef, args: &[ast::Arg], span: Span) -> Expr {
        let Some((_, values, _)) = self.arguments(&[], &signature.params, &[], args, &Subst::new(), span)
        else {
            return Self::unknown(span);
        };
        if let Some(Some(message)) = values.get(1)
            && message.ty != Type::Unknown
            && !self.compile_time(message)
        {
            self.error(
                "not-constant",
                message.span,
                "the message of an assertion must be known at compile time",
            );
        }
        let text = match values.get(1) {
            Some(Some(Expr { kind: ExprKind::Str(text), .. })) => format!(": {text}"),
            _ => String::new(),
        };
        match values.first() {
            Some(Some(Expr { kind: ExprKind::Bool(true), .. })) => {}
            Some(Some(Expr { kind: ExprKind::Bool(false), .. })) => {
                self.error("static-assert", span, format!("static assertion failed{text}"));
            }
            Some(Some(Expr { ty: Type::Unknown, .. })) => {}
            _ => {
                self.error("not-constant", span, "a static assertion must be known at compile time");
            }
        }
        Expr { ty: Type::Bool, kind: ExprKind::Bool(true), span }
    }

    /// A direct call of an action: an argument for every parameter.
    fn action_call(&mut self, id: DefId, args: &[ast::Arg], span: Span) -> Expr {
        if !matches!(self.place, Place::Control | Place::Action) {
            self.error("wrong-place", span, "an action may be called only in a control or another action");
        }
        let DefKind::Action(action) = &self.def(id).kind else { return Self::unknown(span) };
        let params = action.params.clone();
        let Some((_, args, order)) = self.arguments(&[], &params, &[], args, &Subst::new(), span) else {
            return Self::unknown(span);
        };
        self.no_table_in_arguments(&args);
        let (callee, type_args) = (Callee::Action(id), Vec::new());
        Self::result(Call { callee, type_args, args, order, ty: Type::Void, span })
    }
}
