//! Constructor calls and instances (P4_16 sections 8.23, 11.3).

use super::types::{Subst, substitute};
use super::{Checker, Place};
use crate::ast;
use crate::hir::{Construct, DefId, DefKind, Expr, ExprKind, InstanceDef, Type, TypeParamId};
use crate::source::Span;

impl Checker {
    pub(super) fn construct_expr(&mut self, ty: &Type, args: &[ast::Arg], span: Span) -> Expr {
        match self.construct(ty, args, span) {
            Some((ty, construct)) => {
                if self.action.is_some() {
                    self.error("wrong-place", span, "no object can be constructed in an action").help =
                        Some("make an instance in the control".into());
                }
                self.no_abstract_methods(&ty, span);
                Expr { ty, kind: ExprKind::Construct(Box::new(construct)), span }
            }
            None => Self::unknown(span),
        }
    }

    /// Checks a constructor call; gives the type with its type arguments complete.
    pub(super) fn construct(
        &mut self,
        ty: &Type,
        args: &[ast::Arg],
        span: Span,
    ) -> Option<(Type, Construct)> {
        let (id, given) = match ty {
            Type::Extern(id, a) | Type::Parser(id, a) | Type::Control(id, a) | Type::Package(id, a) => {
                (*id, a.clone())
            }
            Type::Unknown => return None,
            _ => {
                let shown = self.show(ty);
                self.error("not-callable", span, format!("`{shown}` cannot be instantiated"));
                return None;
            }
        };
        self.deprecated(id, span);
        let (type_params, ctor, params): (Vec<TypeParamId>, Option<DefId>, Vec<DefId>) = match &self
            .def(id)
            .kind
        {
            DefKind::Extern(e) => {
                let type_params = e.type_params.clone();
                let constructors = e.constructors.clone();
                if constructors.is_empty() {
                    self.error("not-callable", span, format!("`{}` has no constructor", self.def(id).name));
                    return None;
                }
                let fitting = self.select_overload(&constructors, args);
                let chosen = fitting.first().copied().unwrap_or(constructors[0]);
                let params = match &self.def(chosen).kind {
                    DefKind::ExternFn(s) => s.params.clone(),
                    _ => Vec::new(),
                };
                (type_params, Some(chosen), params)
            }
            DefKind::Parser(p) => (p.signature.type_params.clone(), None, p.ctor_params.clone()),
            DefKind::Control(c) => (c.signature.type_params.clone(), None, c.ctor_params.clone()),
            DefKind::Package(s) => (s.type_params.clone(), None, s.params.clone()),
            _ => {
                let name = self.def(id).name.clone();
                self.error("not-callable", span, format!("`{name}` has no body to instantiate"));
                return None;
            }
        };
        let outer: Subst = type_params.iter().copied().zip(given.iter().cloned()).collect();
        // A parser or control without arguments stays open: its parameters are known when it is applied.
        let open: Vec<TypeParamId> = if given.is_empty() { type_params.clone() } else { Vec::new() };
        let block = matches!(ty, Type::Parser(..) | Type::Control(..));
        let infer: &[TypeParamId] = if block { &[] } else { &open };
        let place = std::mem::replace(&mut self.place, Place::Top);
        let checked = self.arguments(infer, &params, &[], args, &outer, span);
        self.place = place;
        let (found, values, _) = checked?;
        for value in values.iter().flatten() {
            if value.ty != Type::Unknown && !self.compile_time(value) {
                self.error(
                    "not-constant",
                    value.span,
                    "a constructor's argument must be known at compile time",
                );
                return None;
            }
        }
        let type_args = if given.is_empty() { found } else { given };
        let full = match ty {
            Type::Extern(..) => Type::Extern(id, type_args.clone()),
            Type::Parser(..) => Type::Parser(id, type_args.clone()),
            Type::Control(..) => Type::Control(id, type_args.clone()),
            _ => Type::Package(id, type_args.clone()),
        };
        Some((full, Construct { def: id, type_args, ctor, args: values }))
    }

    /// `T(args) name;`
    pub(super) fn instantiation(
        &mut self,
        decl: &ast::Decl,
        ty: &ast::TypeRef,
        args: &[ast::Arg],
        name: &ast::Ident,
        body: Option<&[ast::Decl]>,
    ) -> Option<DefId> {
        match self.place {
            Place::Action | Place::Function => {
                self.error("wrong-place", decl.span, "instances cannot be made in actions and functions");
            }
            Place::Top | Place::Parser | Place::Control => {}
        }
        let ty = self.ty(ty);
        let place = self.place;
        let built = self.construct(&ty, args, decl.span);
        let (full, value) = match built {
            Some(built) => built,
            None => {
                // Known by name, so that its uses are not reported as well.
                let id = self.define(
                    name.name.clone(),
                    name.span,
                    &decl.annotations,
                    DefKind::Variable { ty: Type::Unknown, init: None },
                );
                self.declare(name, id);
                return None;
            }
        };
        if place == Place::Top && matches!(full, Type::Parser(..) | Type::Control(..)) {
            self.error(
                "wrong-place",
                decl.span,
                "parsers and controls cannot be instantiated at top level",
            )
            .help =
                Some("pass the constructor call to the package, or instantiate it where it is used".into());
        }
        if let Some((what, within)) = match (place, &full) {
            (Place::Parser, Type::Control(..)) => Some(("control", "parser")),
            (Place::Control, Type::Parser(..)) => Some(("parser", "control")),
            _ => None,
        } {
            let message = format!("a {what} cannot be instantiated in a {within}");
            self.error("wrong-place", decl.span, message).help =
                Some(format!("pass it to the package beside the {within}"));
        }
        if place != Place::Top && matches!(full, Type::Package(..)) {
            self.error("wrong-place", decl.span, "a package cannot be instantiated in a control or parser")
                .help = Some("instantiate it at top level".into());
        }
        let methods = self.instance_methods(&full, name, body);
        let kind = DefKind::Instance(InstanceDef { ty: full, value, body: methods });
        let id = self.define(name.name.clone(), name.span, &decl.annotations, kind);
        self.declare(name, id);
        if place == Place::Top && &*name.name == "main" {
            if let DefKind::Instance(InstanceDef { ty: Type::Extern(..), .. }) = self.def(id).kind {
                self.error("bad-main", name.span, "`main` must be a package, this is an extern object")
                    .help = Some("give the object another name".into());
            }
            self.hir.main = Some(id);
        }
        Some(id)
    }

    /// Implementations of an extern's abstract methods.
    fn instance_methods(&mut self, ty: &Type, name: &ast::Ident, body: Option<&[ast::Decl]>) -> Vec<DefId> {
        let mut methods = Vec::new();
        if let Some(body) = body {
            // They see nothing of the control or parser around them (section 11.3.1).
            let around = self.scopes.split_off(1);
            self.scopes.push(Default::default());
            for decl in body {
                methods.extend(self.top_level(decl));
            }
            self.scopes.pop();
            self.scopes.extend(around);
            self.implementation_rules(ty, body, &methods, name.span);
        }
        if let Type::Extern(id, args) = ty
            && let DefKind::Extern(def) = &self.def(*id).kind
        {
            let _: Subst = def
                .type_params
                .iter()
                .copied()
                .zip(args.iter().map(|a| substitute(a, &Subst::new())))
                .collect();
            let wanted: Vec<_> = def
                .methods
                .iter()
                .filter(|m| self.def(**m).annotations.iter().any(|a| &*a.name.name == "__abstract"))
                .map(|m| self.def(*m).name.clone())
                .collect();
            self.budget.work(wanted.len() * methods.len() + def.methods.len());
            for method in wanted {
                if !methods.iter().any(|m| self.def(*m).name == method) {
                    self.error(
                        "missing-method",
                        name.span,
                        format!("`{}` must implement the abstract method `{method}`", name.name),
                    );
                }
            }
        }
        methods
    }
}
