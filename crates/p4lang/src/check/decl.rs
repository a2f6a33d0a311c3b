//! Declarations (P4_16 sections 7, 10, 11, 13, 14).

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::{Checker, Place, consts};
use crate::ast::{self, DeclKind as D, Direction, Ident};
use crate::hir::{
    ActionDef, ControlDef, DefId, DefKind, EnumDef, ExternDef, FieldDef, FunctionDef, Keyset, KeysetElem,
    ParamDef, ParserDef, SignatureDef, State, StateRef, StructDef, Transition, Type,
};

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
                let ty = self.type_source(ty)?;
                Some(self.named(name, decl, DefKind::Typedef { ty }))
            }
            D::NewType { name, ty } => {
                let span = match ty {
                    ast::TypeSource::Type(ty) => ty.span,
                    ast::TypeSource::Decl(decl) => decl.span,
                };
                let ty = self.type_source(ty)?;
                let serializable = matches!(ty, Type::Enum(id) if self.underlying(id).is_some());
                if !matches!(
                    ty,
                    Type::Bits { .. }
                        | Type::Bool
                        | Type::New(_)
                        | Type::Unknown
                        | Type::Varbit(_)
                        | Type::Error
                ) && !serializable
                {
                    let shown = self.show(&ty);
                    self.error("bad-type", span, format!("a new type cannot be made from `{shown}`"));
                }
                Some(self.named(name, decl, DefKind::NewType { ty }))
            }
            D::Error { members } => {
                for member in members {
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
                let signature = self.block_params(type_params, params);
                Some(self.named(name, decl, DefKind::ParserType(signature)))
            }
            D::ControlType { name, type_params, params } => {
                let signature = self.block_params(type_params, params);
                Some(self.named(name, decl, DefKind::ControlType(signature)))
            }
            D::Package { name, type_params, params } => {
                let signature = self.block_params(type_params, params);
                Some(self.named(name, decl, DefKind::Package(signature)))
            }
            D::Extern { name, type_params, methods } => self.extern_decl(decl, name, type_params, methods),
            D::ExternFunction(proto) => {
                let signature = self.scoped(|c| c.prototype(proto));
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

    fn named(&mut self, name: &Ident, decl: &ast::Decl, kind: DefKind) -> DefId {
        let id = self.define(name.name.clone(), name.span, decl.annotations.clone(), kind);
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

    fn struct_like(
        &mut self,
        decl: &ast::Decl,
        s: &ast::StructLike,
        kind: fn(StructDef) -> DefKind,
    ) -> Option<DefId> {
        self.declaring.push(s.name.name.clone());
        let def = self.scoped(|c| {
            let type_params = c.declare_type_params(&s.type_params);
            let mut fields: Vec<FieldDef> = Vec::new();
            for field in &s.fields {
                let ty = c.ty(&field.ty);
                if let Some(first) = fields.iter().find(|f| f.name == field.name.name) {
                    let span = first.span;
                    c.error(
                        "duplicate",
                        field.name.span,
                        format!("field `{}` is declared twice", field.name.name),
                    )
                    .related
                    .push((span, "first declared here".into()));
                    continue;
                }
                c.field_rules(&decl.kind, &ty, field);
                fields.push(FieldDef {
                    name: field.name.name.clone(),
                    ty,
                    annotations: field.annotations.clone(),
                    span: field.name.span,
                });
            }
            if matches!(decl.kind, D::Header(_)) {
                let second = fields.iter().filter(|f| matches!(f.ty, Type::Varbit(_))).nth(1);
                if let Some(span) = second.map(|f| f.span) {
                    let message = format!("the header `{}` has a second varbit field", s.name.name);
                    c.error("varbit", span, message).help = Some("a header can have one at most".into());
                }
            }
            StructDef { type_params, fields }
        });
        self.declaring.pop();
        Some(self.named(&s.name, decl, kind(def)))
    }

    fn field_rules(&mut self, container: &D, ty: &Type, field: &ast::Field) {
        let (good, help) = match container {
            D::Header(_) => {
                (self.allowed_in_header(ty), "bit, int, varbit, bool, serializable enums and structs of them")
            }
            D::HeaderUnion(_) => (matches!(ty, Type::Header(..) | Type::Param(_) | Type::Unknown), "headers"),
            _ => (
                self.storable(ty) || matches!(ty, Type::String | Type::Int | Type::List(_)),
                "types with run-time values",
            ),
        };
        if !good {
            let shown = self.show(ty);
            let what = match container {
                D::Header(_) => "header",
                D::HeaderUnion(_) => "header union",
                _ => "struct",
            };
            self.error(
                "bad-type",
                field.ty.span,
                format!("a {what} cannot have a field of type `{shown}`"),
            )
            .help = Some(format!("its fields may be {help}"));
        }
    }

    fn enum_decl(
        &mut self,
        decl: &ast::Decl,
        name: &Ident,
        underlying: Option<&ast::TypeRef>,
        members: &[(Ident, Option<ast::Expr>, Vec<ast::Annotation>)],
    ) -> Option<DefId> {
        let under = underlying.map(|t| {
            let ty = self.ty(t);
            let base = match &ty {
                Type::New(id) => self.underlying(*id).unwrap_or(Type::Unknown),
                other => other.clone(),
            };
            if !matches!(base, Type::Bits { .. } | Type::Unknown) {
                let shown = self.show(&ty);
                self.error("bad-type", t.span, format!("an enum cannot be represented by `{shown}`")).help =
                    Some("use `bit<W>` or `int<W>`".into());
                return Type::Unknown;
            }
            base
        });
        let mut out: Vec<(ast::Name, Option<BigInt>)> = Vec::new();
        for (member, value, _) in members {
            if out.iter().any(|(n, _)| *n == member.name) {
                self.error("duplicate", member.span, format!("member `{}` is declared twice", member.name));
                continue;
            }
            let value = match (&under, value) {
                (Some(ty), Some(value)) => {
                    let checked = self.expr_as(value, ty);
                    let known = consts::int_value(&checked).cloned();
                    if known.is_none() && checked.ty != Type::Unknown {
                        self.error(
                            "not-constant",
                            value.span,
                            "the value of a member must be known at compile time",
                        );
                    }
                    known
                }
                (Some(_), None) => {
                    self.error(
                        "missing-value",
                        member.span,
                        format!("member `{}` needs a value", member.name),
                    )
                    .help = Some("an enum with a representation gives every member one".into());
                    None
                }
                (None, Some(value)) => {
                    self.error("bad-type", value.span, "only an enum with a representation has values")
                        .help = Some("write `enum bit<8> ...`".into());
                    None
                }
                (None, None) => None,
            };
            out.push((member.name.clone(), value));
        }
        if out.is_empty() {
            self.error("bad-type", name.span, format!("the enum `{}` has no members", name.name));
        }
        Some(self.named(name, decl, DefKind::Enum(EnumDef { underlying: under, members: out })))
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
                let id = self.define(p.name.name.clone(), p.name.span, p.annotations.clone(), kind);
                self.declare(&p.name, id);
                id
            })
            .collect()
    }

    fn block_params(&mut self, type_params: &[Ident], params: &[ast::Param]) -> SignatureDef {
        self.scoped(|c| {
            let type_params = c.declare_type_params(type_params);
            let params = c.params(params);
            SignatureDef { type_params, params, returns: Type::Void }
        })
    }

    /// In the scope that is open, so that a body sees the parameters.
    fn prototype(&mut self, proto: &ast::Prototype) -> SignatureDef {
        let type_params = self.declare_type_params(&proto.type_params);
        let returns = proto.return_type.as_ref().map_or(Type::Void, |t| self.ty(t));
        let params = self.params(&proto.params);
        SignatureDef { type_params, params, returns }
    }

    fn extern_decl(
        &mut self,
        decl: &ast::Decl,
        name: &Ident,
        type_params: &[Ident],
        methods: &[ast::Method],
    ) -> Option<DefId> {
        // Its own methods may mention it.
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
                let signature = c.scoped(|c| c.prototype(&method.proto));
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
                    annotations,
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

    fn function_decl(&mut self, decl: &ast::Decl, function: &ast::Function) -> Option<DefId> {
        let name = &function.proto.name;
        self.declaring.push(name.name.clone());
        let place = std::mem::replace(&mut self.place, Place::Function);
        let loops = std::mem::take(&mut self.loops);
        let def = self.scoped(|c| {
            let signature = c.prototype(&function.proto);
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
        let def = self.scoped(|c| {
            let ids = c.params(params);
            let mut bare = false;
            for (param, id) in params.iter().zip(&ids) {
                if param.direction == Direction::None {
                    bare = true;
                    let ty = c.param(*id).ty;
                    if !matches!(
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
                    ) {
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

    fn parser(&mut self, decl: &ast::Decl, parser: &ast::Parser) -> Option<DefId> {
        self.declaring.push(parser.name.name.clone());
        let place = std::mem::replace(&mut self.place, Place::Parser);
        let def = self.scoped(|c| {
            let type_params = c.declare_type_params(&parser.type_params);
            let params = c.params(&parser.params);
            let ctor_params = c.params(&parser.ctor_params);
            let signature = SignatureDef { type_params, params, returns: Type::Void };
            c.scoped(|c| {
                let mut locals = Vec::new();
                for local in &parser.locals {
                    locals.extend(match &local.kind {
                        D::Variable { ty, name, init } => c.variable(local, ty, name, init.as_ref()),
                        D::ValueSet { ty, size, name } => c.value_set(local, ty, size, name),
                        _ => c.top_level(local),
                    });
                }
                let names: Vec<ast::Name> = parser.states.iter().map(|s| s.name.name.clone()).collect();
                c.state_names(parser, &names);
                let states: Vec<State> = parser.states.iter().map(|s| c.state(s, &names)).collect();
                let start = names.iter().position(|n| &**n == "start").unwrap_or(0);
                ParserDef { signature, ctor_params, locals, states, start }
            })
        });
        self.place = place;
        self.declaring.pop();
        Some(self.named(&parser.name, decl, DefKind::Parser(Box::new(def))))
    }

    fn state_names(&mut self, parser: &ast::Parser, names: &[ast::Name]) {
        for (index, state) in parser.states.iter().enumerate() {
            if matches!(&*state.name.name, "accept" | "reject") {
                self.error(
                    "bad-state",
                    state.name.span,
                    format!("the state `{}` is built in", state.name.name),
                );
            }
            if let Some(first) = names[..index].iter().position(|n| *n == state.name.name) {
                let span = parser.states[first].name.span;
                self.error(
                    "duplicate",
                    state.name.span,
                    format!("state `{}` is declared twice", state.name.name),
                )
                .related
                .push((span, "first declared here".into()));
            }
        }
        if !names.iter().any(|n| &**n == "start") {
            self.error(
                "bad-state",
                parser.name.span,
                format!("the parser `{}` has no state `start`", parser.name.name),
            );
        }
    }

    fn value_set(
        &mut self,
        decl: &ast::Decl,
        ty: &ast::TypeRef,
        size: &ast::Expr,
        name: &Ident,
    ) -> Option<DefId> {
        let ty = self.ty(ty);
        let size = self.const_int(size)?;
        let Some(size) = size.to_u64().filter(|s| *s > 0) else {
            self.error("bad-size", name.span, "the size of a value set must be positive");
            return None;
        };
        Some(self.named(name, decl, DefKind::ValueSet { ty, size }))
    }

    fn state(&mut self, state: &ast::State, names: &[ast::Name]) -> State {
        self.scoped(|c| {
            let body = c.stmts(&state.body);
            let transition = match &state.transition {
                None => {
                    c.warn(
                        "no-transition",
                        state.name.span,
                        format!("state `{}` has no transition, so it rejects", state.name.name),
                    );
                    Transition::Direct(StateRef::Reject)
                }
                Some(ast::Transition::Direct(name)) => Transition::Direct(c.state_ref(name, names)),
                Some(ast::Transition::Select { keys, cases, span }) => c.select(keys, cases, *span, names),
            };
            State {
                name: state.name.name.clone(),
                annotations: state.annotations.clone(),
                span: state.name.span,
                body,
                transition,
            }
        })
    }

    fn state_ref(&mut self, name: &Ident, names: &[ast::Name]) -> StateRef {
        match &*name.name {
            "accept" => StateRef::Accept,
            "reject" => StateRef::Reject,
            _ => match names.iter().position(|n| *n == name.name) {
                Some(index) => StateRef::State(index),
                None => {
                    let similar = self.similar(&name.name, names.iter());
                    let diagnostic =
                        self.error("unknown-name", name.span, format!("there is no state `{}`", name.name));
                    diagnostic.help = similar.map(|s| format!("did you mean `{s}`?"));
                    StateRef::Reject
                }
            },
        }
    }

    fn select(
        &mut self,
        keys: &[ast::Expr],
        cases: &[ast::SelectCase],
        span: crate::source::Span,
        names: &[ast::Name],
    ) -> Transition {
        // A tuple among the keys stands for its elements, and so it does in the cases.
        let written = keys;
        let mut flat = Vec::new();
        keys.iter().for_each(|k| flatten_key(k, &mut flat));
        if flat.len() != keys.len() && flat.len() > 256 {
            self.error("bad-select", span, "tuples of more than 256 keys in all");
            return Transition::Select { keys: Vec::new(), cases: Vec::new(), span };
        }
        let keys: Vec<_> = flat.into_iter().map(|k| self.expr(k, None)).collect();
        for key in &keys {
            if !matches!(
                key.ty,
                Type::Bits { .. }
                    | Type::Bool
                    | Type::Enum(_)
                    | Type::Error
                    | Type::New(_)
                    | Type::Int
                    | Type::Unknown
                    | Type::Param(_)
            ) {
                let shown = self.show(&key.ty);
                self.error("bad-select", key.span, format!("a `{shown}` cannot be selected on"));
            }
        }
        let types: Vec<Type> = keys.iter().map(|k| k.ty.clone()).collect();
        let mut out = Vec::new();
        let mut decided = false;
        for case in cases {
            if decided {
                self.warn(
                    "unreachable",
                    case.span,
                    "no packet gets to this case: one before it takes everything",
                );
            }
            let next = self.state_ref(&case.next, names);
            let keyset = if written.len() == keys.len() {
                self.keyset(&case.keyset, &types, true)
            } else {
                self.keyset(&flat_keyset(&case.keyset, written), &types, true)
            };
            if let Some(keyset) = keyset {
                decided |= keyset.elems.iter().all(|e| matches!(e, KeysetElem::Any));
                out.push((keyset, next));
            }
        }
        Transition::Select { keys, cases: out, span }
    }

    /// A keyset against the types of its keys. `select`: value sets and run-time values may stand in it.
    pub(super) fn keyset(&mut self, e: &ast::Expr, types: &[Type], select: bool) -> Option<Keyset> {
        let span = e.span;
        let elems = match &e.kind {
            ast::ExprKind::Default | ast::ExprKind::DontCare if types.len() != 1 => vec![KeysetElem::Any],
            ast::ExprKind::List { items, .. } if types.len() > 1 || items.len() != 1 => {
                if items.len() != types.len() {
                    self.error(
                        "bad-keyset",
                        span,
                        format!("expected {} keys, found {}", types.len(), items.len()),
                    );
                    return None;
                }
                let elems: Option<Vec<_>> =
                    items.iter().zip(types).map(|(item, ty)| self.keyset_elem(item, ty, select)).collect();
                elems?
            }
            ast::ExprKind::Name(path)
                if types.len() > 1
                    && matches!(self.find(path), Some(super::scope::Entry::Defs(ids)) if matches!(self.def(ids[0]).kind, DefKind::ValueSet { .. })) =>
            {
                vec![self.keyset_elem(e, &Type::Unknown, select)?]
            }
            _ if types.len() != 1 => {
                self.error("bad-keyset", span, format!("expected {} keys, found 1", types.len())).help =
                    Some("write them as `(a, b)`".into());
                return None;
            }
            // `{k}` for a single key.
            ast::ExprKind::List { items, ellipsis: false } if items.len() == 1 => {
                vec![self.keyset_elem(&items[0], &types[0], select)?]
            }
            _ => vec![self.keyset_elem(e, &types[0], select)?],
        };
        Some(Keyset { elems, span })
    }

    fn keyset_elem(&mut self, e: &ast::Expr, ty: &Type, select: bool) -> Option<KeysetElem> {
        let value = |c: &mut Self, e: &ast::Expr| {
            let v = c.expr_as(e, ty);
            if v.ty == Type::Unknown && *ty != Type::Unknown {
                return None;
            }
            if !select && v.ty != Type::Unknown && !c.compile_time(&v) {
                c.error("not-constant", v.span, "the keys of an entry must be known at compile time");
                return None;
            }
            Some(v)
        };
        match &e.kind {
            ast::ExprKind::Default | ast::ExprKind::DontCare => Some(KeysetElem::Any),
            ast::ExprKind::Mask { value: v, mask } => {
                let base = match ty {
                    Type::Enum(id) | Type::New(id) => self.underlying(*id),
                    _ => None,
                };
                if !matches!(base.as_ref().unwrap_or(ty), Type::Bits { .. } | Type::Unknown) {
                    let shown = self.show(ty);
                    self.error("bad-keyset", e.span, format!("a `{shown}` cannot be masked"));
                    return None;
                }
                let wide = base.unwrap_or_else(|| ty.clone());
                let masked = |c: &mut Self, e: &ast::Expr| {
                    let v = c.expr(e, Some(&wide));
                    let v = c.numeric(v);
                    let v = c.coerce(v, &wide);
                    (v.ty != Type::Unknown || wide == Type::Unknown).then_some(v)
                };
                Some(KeysetElem::Mask(masked(self, v)?, masked(self, mask)?))
            }
            ast::ExprKind::Range { lo, hi } => {
                if !matches!(ty, Type::Bits { .. } | Type::Unknown) {
                    let shown = self.show(ty);
                    self.error("bad-keyset", e.span, format!("a `{shown}` has no ranges"));
                    return None;
                }
                let (lo, hi) = (value(self, lo)?, value(self, hi)?);
                if let (Some(a), Some(b)) = (consts::int_value(&lo), consts::int_value(&hi))
                    && a > b
                {
                    self.error("bad-keyset", e.span, "this range ends before it starts");
                    return None;
                }
                Some(KeysetElem::Range(lo, hi))
            }
            ast::ExprKind::Name(path) => {
                if let Some(super::scope::Entry::Defs(ids)) = self.find(path)
                    && matches!(self.def(ids[0]).kind, DefKind::ValueSet { .. })
                {
                    if !select {
                        self.error("bad-keyset", e.span, "a value set cannot stand in a table's entries");
                        return None;
                    }
                    return Some(KeysetElem::ValueSet(ids[0]));
                }
                Some(KeysetElem::Value(value(self, e)?))
            }
            _ => Some(KeysetElem::Value(value(self, e)?)),
        }
    }
}

fn flatten_key<'e>(key: &'e ast::Expr, out: &mut Vec<&'e ast::Expr>) {
    match &key.kind {
        ast::ExprKind::List { items, .. } => items.iter().for_each(|item| flatten_key(item, out)),
        _ => out.push(key),
    }
}

/// A keyset for keys with tuples among them, as one for their elements: a tuple gives those of its key, `_` as many as
/// there are. What does not fit is left for [`Checker::keyset`] to say.
fn flat_keyset(keyset: &ast::Expr, keys: &[ast::Expr]) -> ast::Expr {
    fn element(item: &ast::Expr, key: &ast::Expr, out: &mut Vec<ast::Expr>) {
        match (&item.kind, &key.kind) {
            (ast::ExprKind::Default | ast::ExprKind::DontCare, ast::ExprKind::List { items, .. }) => {
                items.iter().for_each(|key| element(item, key, out));
            }
            (ast::ExprKind::List { items: parts, .. }, ast::ExprKind::List { items, .. })
                if parts.len() == items.len() =>
            {
                parts.iter().zip(items).for_each(|(part, key)| element(part, key, out));
            }
            _ => out.push(item.clone()),
        }
    }
    let items = match &keyset.kind {
        ast::ExprKind::List { items, .. } if items.len() == keys.len() => items.as_slice(),
        _ if keys.len() == 1 => std::slice::from_ref(keyset),
        _ => return keyset.clone(),
    };
    let mut out = Vec::new();
    items.iter().zip(keys).for_each(|(item, key)| element(item, key, &mut out));
    ast::Expr { kind: ast::ExprKind::List { items: out, ellipsis: false }, span: keyset.span }
}
