//! Declarations of externs, and instances that implement abstract methods (P4_16 sections 7.2.10, 11.3.1).

use std::collections::HashMap;

use super::types::{Subst, substitute};
use super::{Checker, type_rules};
use crate::ast::{self, Ident, Name};
use crate::hir::{DefId, DefKind, SignatureDef, Type};
use crate::source::Span;

impl Checker {
    /// Rules on the methods of an extern, as they are written.
    pub(super) fn extern_rules(&mut self, name: &Ident, methods: &[ast::Method]) {
        let mut seen: HashMap<(&Name, Vec<&Name>), Span> = HashMap::new();
        let mut overloads: HashMap<&Name, (bool, Span)> = HashMap::new();
        for method in methods {
            let proto = &method.proto;
            let params = proto.params.iter().map(|p| &p.name.name).collect();
            if let Some(first) = seen.insert((&proto.name.name, params), proto.name.span) {
                let message = format!("`{}` is declared twice with the same parameters", proto.name.name);
                self.error("duplicate", proto.name.span, message)
                    .related
                    .push((first, "first declared here".into()));
            }
            if let Some(returns) = &proto.return_type
                && proto.name.name == name.name
            {
                self.error("bad-method", returns.span, "a constructor has no return type").help =
                    Some("remove it, or give the method another name".into());
            }
            if method.is_abstract && proto.return_type.is_none() {
                self.error("bad-method", proto.name.span, "a constructor cannot be abstract").help =
                    Some("remove `abstract`".into());
            }
            if let Some(first) = overloads.insert(&proto.name.name, (method.is_abstract, proto.name.span))
                && (method.is_abstract || first.0)
            {
                let message = format!("the abstract method `{}` has a second form", proto.name.name);
                let diagnostic = self.error("bad-method", proto.name.span, message);
                diagnostic.related.push((first.1, "the first one".into()));
                diagnostic.help = Some("give one of them another name".into());
            }
            self.result_rule("method", proto);
            let own = proto.return_type.iter().chain(proto.params.iter().map(|p| &p.ty));
            if let Some(span) = own.into_iter().find_map(|t| type_rules::names(t, &name.name)) {
                let message = format!("a method of `{}` cannot mention the extern itself", name.name);
                self.error("recursion", span, message).help =
                    Some("make it a function outside of the extern".into());
            }
        }
    }

    /// Abstract methods of an extern type.
    fn abstract_methods(&self, ty: &Type) -> Vec<DefId> {
        let Type::Extern(id, _) = ty else { return Vec::new() };
        let DefKind::Extern(def) = &self.def(*id).kind else { return Vec::new() };
        let is_abstract =
            |m: &&DefId| self.def(**m).annotations.iter().any(|a| &*a.name.name == "__abstract");
        def.methods.iter().filter(is_abstract).copied().collect()
    }

    /// An unnamed object cannot implement abstract methods.
    pub(super) fn no_abstract_methods(&mut self, ty: &Type, span: Span) {
        if !self.abstract_methods(ty).is_empty() {
            let shown = self.show(ty);
            self.error(
                "missing-method",
                span,
                format!("`{shown}` has abstract methods, which nothing implements here"),
            )
            .help = Some("make an instance with a name, and implement them: `E() e = { ... };`".into());
        }
    }

    /// What stands in the braces after an instance: only implementations of its abstract methods, with their types.
    pub(super) fn implementation_rules(&mut self, ty: &Type, body: &[ast::Decl], made: &[DefId], span: Span) {
        let wanted = self.abstract_methods(ty);
        if !matches!(ty, Type::Extern(..)) || wanted.is_empty() {
            let shown = self.show(ty);
            self.error("bad-method", span, format!("`{shown}` has no abstract methods to implement")).help =
                Some("remove the braces".into());
            return;
        }
        for decl in body {
            let ast::DeclKind::Function(function) = &decl.kind else { continue };
            let name = &function.proto.name;
            if !function.proto.type_params.is_empty() {
                self.error(
                    "bad-method",
                    name.span,
                    "the implementation of a method has no type parameters",
                )
                .help = Some("write the types".into());
                continue;
            }
            let Some(method) = wanted.iter().copied().find(|m| self.def(*m).name == name.name) else {
                let shown = self.show(ty);
                let message = format!("`{shown}` has no abstract method `{}`", name.name);
                self.error("bad-method", name.span, message).help = Some("remove it".into());
                continue;
            };
            let Some(own) = made.iter().copied().find(|m| self.def(*m).span == name.span) else { continue };
            if !self.implements(ty, method, own) {
                let declared = self.def(method).span;
                let message =
                    format!("`{}` differs from the abstract method in its parameters or result", name.name);
                let diagnostic = self.error("bad-method", name.span, message);
                diagnostic.related.push((declared, "the abstract method".into()));
                diagnostic.help = Some("directions, types and result must be the same".into());
            }
        }
    }

    fn implements(&self, ty: &Type, method: DefId, own: DefId) -> bool {
        let Type::Extern(id, args) = ty else { return true };
        let DefKind::Extern(def) = &self.def(*id).kind else { return true };
        let subst: Subst = def.type_params.iter().copied().zip(args.iter().cloned()).collect();
        let (Some(wanted), Some(own)) = (self.signature(method), self.signature(own)) else { return true };
        let known = |t: &Type| *t != Type::Unknown;
        let same = |a: &Type, b: &Type| {
            let a = substitute(a, &subst);
            a == *b || !known(&a) || !known(b)
        };
        let SignatureDef { params, returns, .. } = &wanted;
        params.len() == own.params.len()
            && same(returns, &own.returns)
            && params.iter().zip(&own.params).all(|(a, b)| {
                let (a, b) = (self.param(*a), self.param(*b));
                a.direction == b.direction && same(&a.ty, &b.ty)
            })
    }
}
