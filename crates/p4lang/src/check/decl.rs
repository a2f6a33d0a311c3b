//! Declarations (P4_16 sections 7, 10, 11, 14); types and parsers have files of their own.

use super::params::Owner;
use super::{Checker, Place};
use crate::ast::{self, DeclKind as D, Direction, Ident};
use crate::hir::{
    ActionDef, ControlDef, DefId, DefKind, ExternDef, FunctionDef, ParamDef, SignatureDef, Type,
};

/// New types made of new types.
const MAX_NEW_TYPES: usize = 64;

impl Checker {
    pub(super) fn top_level(&mut self, decl: &ast::Decl) -> Option<DefId> {
        match &decl.kind {
            D::Empty => None,
            D::Const { ty, name, value } => self.constant(decl, ty, name, value),
            D::Variable { name, .. } => {
                self.error("wrong-place", name.span, "a variable cannot be declared at top level");
                None
            }
            D::Instantiation { ty, args, name, body } => {
                self.instantiation(decl, ty, args, name, body.as_deref())
            }
            D::Function(function) => self.function_decl(decl, function),
            D::Action { name, params, body } => self.action(decl, name, params, body),
            D::Header(s) => self.struct_like(decl, s, DefKind::Header),
            D::Struct(s) => self.struct_like(decl, s, DefKind::Struct),
            D::HeaderUnion(s) => self.struct_like(decl, s, DefKind::Union),
            D::Enum { name, underlying, members } => self.enum_decl(decl, name, underlying.as_ref(), members),
            D::Typedef { name, ty } => {
                let span = type_span(ty);
                let ty = self.type_source(ty)?;
                if matches!(ty, Type::Void | Type::DontCare | Type::String | Type::MatchKind)
                    || self.lacks_arguments(&ty)
                {
                    let shown = self.show(&ty);
                    self.error("bad-type", span, format!("a typedef cannot name `{shown}`")).help =
                        Some("name a type that has values, with all its type arguments".into());
                }
                Some(self.named(name, decl, DefKind::Typedef { ty }))
            }
            D::NewType { name, ty } => {
                let span = type_span(ty);
                let ty = self.type_source(ty)?;
                if self.new_type_levels(&ty) >= MAX_NEW_TYPES {
                    self.error("too-large", span, format!("more than {MAX_NEW_TYPES} new types in a row"))
                        .help = Some("make it from a `bit` type".into());
                    return None;
                }
                if !matches!(ty, Type::Bits { .. } | Type::Bool | Type::New(_) | Type::Unknown) {
                    let shown = self.show(&ty);
                    self.error("bad-type", span, format!("a new type cannot be made from `{shown}`")).help =
                        Some("it is made from `bit<W>`, `int<W>`, `bool` or another new type".into());
                }
                Some(self.named(name, decl, DefKind::NewType { ty }))
            }
            D::Error { members } => {
                for member in members {
                    if self.stop(member.span, self.hir.errors.len() / 4) {
                        break;
                    }
                    if self.hir.errors.contains(&member.name) {
                        self.error(
                            "duplicate",
                            member.span,
                            format!("`error.{}` is declared twice", member.name),
                        );
                    } else {
                        self.hir.errors.push(member.name.clone());
                    }
                }
                None
            }
            D::MatchKind { members } => {
                for (member, _) in members {
                    if self.stop(member.span, self.hir.match_kinds.len() / 4) {
                        break;
                    }
                    if self.hir.match_kinds.contains(&member.name) {
                        self.error(
                            "duplicate",
                            member.span,
                            format!("match kind `{}` is declared twice", member.name),
                        );
                    } else {
                        self.hir.match_kinds.push(member.name.clone());
                    }
                }
                None
            }
            D::ParserType { name, type_params, params } => {
                let signature = self.block_params(Owner::BlockType, type_params, params);
                Some(self.named(name, decl, DefKind::ParserType(signature)))
            }
            D::ControlType { name, type_params, params } => {
                let signature = self.block_params(Owner::BlockType, type_params, params);
                Some(self.named(name, decl, DefKind::ControlType(signature)))
            }
            D::Package { name, type_params, params } => {
                let signature = self.block_params(Owner::Package, type_params, params);
                Some(self.named(name, decl, DefKind::Package(signature)))
            }
            D::Extern { name, type_params, methods } => self.extern_decl(decl, name, type_params, methods),
            D::ExternFunction(proto) => {
                let signature = self.scoped(|c| c.prototype(Owner::Extern, proto));
                Some(self.named(&proto.name, decl, DefKind::ExternFn(signature)))
            }
            D::Parser(parser) => self.parser(decl, parser),
            D::Control(control) => self.control(decl, control),
            D::Table(table) => {
                self.error("wrong-place", table.name.span, "a table can be declared only in a control");
                None
            }
            D::ValueSet { name, .. } => {
                self.error("wrong-place", name.span, "a value set can be declared only in a parser");
                None
            }
        }
    }

    /// New types that a type is made of, one below the other.
    fn new_type_levels(&self, ty: &Type) -> usize {
        let mut at = ty.clone();
        let mut levels = 0;
        while let Type::New(id) = at {
            levels += 1;
            at = self.underlying(id).unwrap_or(Type::Unknown);
        }
        levels
    }

    pub(super) fn named(&mut self, name: &Ident, decl: &ast::Decl, kind: DefKind) -> DefId {
        let id = self.define(name.name.clone(), name.span, &decl.annotations, kind);
        self.declare(name, id);
        id
    }

    fn type_source(&mut self, source: &ast::TypeSource) -> Option<Type> {
        match source {
            ast::TypeSource::Type(ty) => Some(self.ty(ty)),
            ast::TypeSource::Decl(decl) => {
                let id = self.top_level(decl)?;
                Some(match self.def(id).kind {
                    DefKind::Struct(_) => Type::Struct(id, Vec::new()),
                    DefKind::Header(_) => Type::Header(id, Vec::new()),
                    DefKind::Union(_) => Type::Union(id, Vec::new()),
                    _ => Type::Enum(id),
                })
            }
        }
    }

    pub(super) fn params(&mut self, params: &[ast::Param]) -> Vec<DefId> {
        params
            .iter()
            .map(|p| {
                let ty = self.ty(&p.ty);
                if p.direction != Direction::None
                    && matches!(
                        ty,
                        Type::Extern(..) | Type::Parser(..) | Type::Control(..) | Type::Package(..)
                    )
                {
                    let shown = self.show(&ty);
                    self.error(
                        "bad-param",
                        p.span,
                        format!("a parameter of type `{shown}` takes no direction"),
                    );
                }
                let default = p.default.as_ref().map(|e| {
                    if matches!(p.direction, Direction::Out | Direction::InOut) {
                        self.error("bad-param", e.span, "an `out` parameter cannot have a default value");
                    }
                    self.expr_as(e, &ty)
                });
                let optional = p.annotations.iter().any(|a| &*a.name.name == "optional");
                let kind = DefKind::Param(ParamDef { direction: p.direction, ty, default, optional });
                let id = self.define(p.name.name.clone(), p.name.span, &p.annotations, kind);
                self.declare(&p.name, id);
                id
            })
            .collect()
    }

    fn block_params(&mut self, owner: Owner, type_params: &[Ident], params: &[ast::Param]) -> SignatureDef {
        self.scoped(|c| {
            let type_params = c.declare_type_params(type_params);
            let ids = c.params(params);
            c.param_rules(owner, params, &ids);
            SignatureDef { type_params, params: ids, returns: Type::Void }
        })
    }

    /// In the scope that is open, so that a body sees the parameters.
    fn prototype(&mut self, owner: Owner, proto: &ast::Prototype) -> SignatureDef {
        let type_params = self.declare_type_params(&proto.type_params);
        let returns = proto.return_type.as_ref().map_or(Type::Void, |t| self.ty(t));
        if let (Type::Parser(..) | Type::Control(..) | Type::Package(..), Some(given)) =
            (&returns, &proto.return_type)
        {
            let shown = self.show(&returns);
            self.error("bad-type", given.span, format!("`{shown}` cannot be the result of a function"))
                .help = Some("return a type that has values".into());
        }
        let params = self.params(&proto.params);
        self.param_rules(owner, &proto.params, &params);
        SignatureDef { type_params, params, returns }
    }

    fn extern_decl(
        &mut self,
        decl: &ast::Decl,
        name: &Ident,
        type_params: &[Ident],
        methods: &[ast::Method],
    ) -> Option<DefId> {
        self.extern_rules(name, methods);
        // Known in its own methods, so that what they say of it is not reported twice.
        let id = self.named(
            name,
            decl,
            DefKind::Extern(ExternDef {
                type_params: Vec::new(),
                constructors: Vec::new(),
                methods: Vec::new(),
            }),
        );
        let def = self.scoped(|c| {
            let type_params = c.declare_type_params(type_params);
            if let DefKind::Extern(def) = &mut c.hir.defs[id.0 as usize].kind {
                def.type_params = type_params.clone();
            }
            let mut def = ExternDef { type_params, constructors: Vec::new(), methods: Vec::new() };
            let outer = c.parent.replace(id);
            for method in methods {
                let signature = c.scoped(|c| c.prototype(Owner::Extern, &method.proto));
                let mut annotations = method.annotations.clone();
                if method.is_abstract {
                    annotations.push(ast::Annotation {
                        name: Ident { name: "__abstract".into(), span: method.span },
                        body: ast::AnnotationBody::None,
                        span: method.span,
                    });
                }
                let made = c.define(
                    method.proto.name.name.clone(),
                    method.proto.name.span,
                    &annotations,
                    DefKind::ExternFn(signature),
                );
                if method.proto.return_type.is_none() {
                    def.constructors.push(made)
                } else {
                    def.methods.push(made)
                }
            }
            c.parent = outer;
            def
        });
        self.hir.defs[id.0 as usize].kind = DefKind::Extern(def);
        Some(id)
    }

    /// Numbers without a width and strings exist only at compile time: `what`, a function or a method, returns none.
    pub(super) fn result_rule(&mut self, what: &str, proto: &ast::Prototype) {
        if let Some(given) = &proto.return_type
            && matches!(given.kind, ast::TypeKind::Int | ast::TypeKind::String)
        {
            let message = format!("a {what} cannot return a value that exists only at compile time");
            self.error("bad-type", given.span, message).help = Some("return a type with a width".into());
        }
    }

    fn function_decl(&mut self, decl: &ast::Decl, function: &ast::Function) -> Option<DefId> {
        let name = &function.proto.name;
        self.declaring.push(name.name.clone());
        let place = std::mem::replace(&mut self.place, Place::Function);
        let loops = std::mem::take(&mut self.loops);
        let def = self.scoped(|c| {
            let signature = c.prototype(Owner::Function, &function.proto);
            c.result_rule("function", &function.proto);
            let outer = c.returns.replace(signature.returns.clone());
            let body = c.block(&function.body);
            c.returns = outer;
            if !matches!(signature.returns, Type::Void | Type::Unknown) && !Self::always_returns(&body.stmts)
            {
                c.error(
                    "missing-return",
                    name.span,
                    format!("`{}` does not return a value on every path", name.name),
                );
            }
            FunctionDef { signature, body }
        });
        self.place = place;
        self.loops = loops;
        self.declaring.pop();
        Some(self.named(name, decl, DefKind::Function(def)))
    }

    fn action(
        &mut self,
        decl: &ast::Decl,
        name: &Ident,
        params: &[ast::Param],
        body: &ast::Block,
    ) -> Option<DefId> {
        self.declaring.push(name.name.clone());
        let place = std::mem::replace(&mut self.place, Place::Action);
        let around = self.action.replace(self.scopes.len());
        let def = self.scoped(|c| {
            let ids = c.params(params);
            c.param_rules(Owner::Action, params, &ids);
            let mut bare = false;
            for (param, id) in params.iter().zip(&ids) {
                if param.direction == Direction::None {
                    bare = true;
                    let ty = c.param(*id).ty;
                    // No action has a parameter without values.
                    if !ty.has_no_values()
                        && !matches!(
                            ty,
                            Type::Bits { .. }
                                | Type::Bool
                                | Type::Enum(_)
                                | Type::Error
                                | Type::New(_)
                                | Type::Struct(..)
                                | Type::Header(..)
                                | Type::Varbit(_)
                                | Type::Unknown
                        )
                    {
                        let shown = c.show(&ty);
                        c.error(
                            "bad-param",
                            param.span,
                            format!("a control plane cannot supply a `{shown}`"),
                        );
                    }
                } else if bare {
                    c.error("bad-param", param.span, "parameters without a direction must come last");
                }
            }
            let outer = c.returns.replace(Type::Void);
            let body = c.block(body);
            c.returns = outer;
            ActionDef { params: ids, body }
        });
        self.action = around;
        self.place = place;
        self.declaring.pop();
        Some(self.named(name, decl, DefKind::Action(def)))
    }

    fn control(&mut self, decl: &ast::Decl, control: &ast::Control) -> Option<DefId> {
        self.declaring.push(control.name.name.clone());
        let place = std::mem::replace(&mut self.place, Place::Control);
        let def = self.scoped(|c| {
            let type_params = c.declare_type_params(&control.type_params);
            let params = c.params(&control.params);
            let ctor_params = c.params(&control.ctor_params);
            c.param_rules(Owner::Block, &control.params, &params);
            c.param_rules(Owner::ControlConstructor, &control.ctor_params, &ctor_params);
            let signature = SignatureDef { type_params, params, returns: Type::Void };
            let mut locals = Vec::new();
            c.scoped(|c| {
                for local in &control.locals {
                    locals.extend(c.control_local(local));
                }
                let outer = c.returns.replace(Type::Void);
                let body = c.block(&control.apply);
                c.returns = outer;
                ControlDef { signature, ctor_params, locals, body }
            })
        });
        self.place = place;
        self.declaring.pop();
        Some(self.named(&control.name, decl, DefKind::Control(Box::new(def))))
    }

    fn control_local(&mut self, decl: &ast::Decl) -> Option<DefId> {
        match &decl.kind {
            D::Variable { ty, name, init } => self.variable(decl, ty, name, init.as_ref()),
            D::Table(table) => self.table(decl, table),
            D::Const { .. } | D::Instantiation { .. } | D::Action { .. } => self.top_level(decl),
            _ => {
                self.error("wrong-place", decl.span, "this cannot be declared in a control");
                None
            }
        }
    }
}

fn type_span(ty: &ast::TypeSource) -> crate::source::Span {
    match ty {
        ast::TypeSource::Type(ty) => ty.span,
        ast::TypeSource::Decl(decl) => decl.span,
    }
}
