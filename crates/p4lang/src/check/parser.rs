//! Parsers: their states, transitions and value sets (P4_16 section 13).

use std::collections::HashMap;

use num_traits::ToPrimitive;

use super::keyset::{flat_keyset, flatten_key};
use super::params::Owner;
use super::scope::Entry;
use super::{Checker, Place};
use crate::ast::{self, DeclKind as D, Ident};
use crate::hir::{DefId, DefKind, KeysetElem, ParserDef, SignatureDef, State, StateRef, Transition, Type};

/// Numbers of a parser's states by name.
type States = HashMap<ast::Name, usize>;

impl Checker {
    pub(super) fn parser(&mut self, decl: &ast::Decl, parser: &ast::Parser) -> Option<DefId> {
        self.declaring.push(parser.name.name.clone());
        let place = std::mem::replace(&mut self.place, Place::Parser);
        let def = self.scoped(|c| {
            let type_params = c.declare_type_params(&parser.type_params);
            let params = c.params(&parser.params);
            let ctor_params = c.params(&parser.ctor_params);
            c.param_rules(Owner::Block, &parser.params, &params);
            c.param_rules(Owner::ParserConstructor, &parser.ctor_params, &ctor_params);
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
                let names = c.state_names(parser);
                let states: Vec<State> = parser.states.iter().map(|s| c.state(s, &names)).collect();
                let start = names.get("start").copied().unwrap_or(0);
                ParserDef { signature, ctor_params, locals, states, start }
            })
        });
        self.place = place;
        self.declaring.pop();
        Some(self.named(&parser.name, decl, DefKind::Parser(Box::new(def))))
    }

    /// Numbers of the states by name.
    fn state_names(&mut self, parser: &ast::Parser) -> States {
        let mut names = States::new();
        for (index, state) in parser.states.iter().enumerate() {
            if matches!(&*state.name.name, "accept" | "reject") {
                self.error(
                    "bad-state",
                    state.name.span,
                    format!("the state `{}` is built in", state.name.name),
                );
            }
            let local = match self.scopes.last().and_then(|s| s.names.get(&state.name.name)) {
                Some(Entry::Defs(ids)) => ids.first().map(|id| self.def(*id).span),
                _ => None,
            };
            let first = names.get(&state.name.name).map(|index| parser.states[*index].name.span).or(local);
            if let Some(span) = first {
                self.error(
                    "duplicate",
                    state.name.span,
                    format!("`{}` is declared twice in this parser", state.name.name),
                )
                .related
                .push((span, "first declared here".into()));
            }
            names.entry(state.name.name.clone()).or_insert(index);
        }
        if !names.contains_key("start") {
            self.error(
                "bad-state",
                parser.name.span,
                format!("the parser `{}` has no state `start`", parser.name.name),
            );
        }
        names
    }

    fn value_set(
        &mut self,
        decl: &ast::Decl,
        ty: &ast::TypeRef,
        size: &ast::Expr,
        name: &Ident,
    ) -> Option<DefId> {
        let written = ty;
        let ty = self.ty(ty);
        // The control plane has no numbers for the members of a plain enum.
        let plain = matches!(ty, Type::Enum(id) if self.underlying(id).is_none());
        if plain
            || !matches!(
                ty,
                Type::Bits { .. }
                    | Type::Bool
                    | Type::Enum(_)
                    | Type::New(_)
                    | Type::Struct(..)
                    | Type::Tuple(_)
                    | Type::Unknown
            )
        {
            let shown = self.show(&ty);
            self.error("bad-type", written.span, format!("a value set cannot hold a `{shown}`")).help =
                Some("it holds numbers with a width, Booleans, enums of such numbers, and structs and tuples of them".into());
        }
        self.match_annotations(&ty);
        let size = self.const_int(size)?;
        let Some(size) = size.to_u64().filter(|s| *s > 0) else {
            self.error("bad-size", name.span, "the size of a value set must be positive");
            return None;
        };
        Some(self.named(name, decl, DefKind::ValueSet { ty, size }))
    }

    /// The fields of a value set's struct name match kinds that there are.
    fn match_annotations(&mut self, ty: &Type) {
        let Type::Struct(id, _) = ty else { return };
        let DefKind::Struct(def) = &self.def(*id).kind else { return };
        let named: Vec<_> = def.fields.iter().flat_map(|f| &f.annotations).filter_map(match_kind).collect();
        for ident in named {
            if !self.hir.match_kinds.contains(&ident.name) {
                let message = format!("there is no match kind `{}`", ident.name);
                let similar = self.similar(&ident.name, self.hir.match_kinds.iter());
                self.error("unknown-name", ident.span, message).help =
                    similar.map(|s| format!("did you mean `{s}`?"));
            }
        }
    }

    fn state(&mut self, state: &ast::State, names: &States) -> State {
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
                annotations: c.annotations(&state.annotations),
                span: state.name.span,
                body,
                transition,
            }
        })
    }

    fn state_ref(&mut self, name: &Ident, names: &States) -> StateRef {
        match &*name.name {
            "accept" => StateRef::Accept,
            "reject" => StateRef::Reject,
            _ => match names.get(&name.name) {
                Some(index) => StateRef::State(*index),
                None => {
                    let similar = self.similar(&name.name, names.keys());
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
        names: &States,
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
        let mut types = Vec::new();
        for key in &keys {
            let mut ty = key.ty.clone();
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
                ty = Type::Unknown;
            }
            types.push(ty);
        }
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
}

/// What `@match(...)` names.
fn match_kind(annotation: &ast::Annotation) -> Option<Ident> {
    let ast::AnnotationBody::Free { exprs: Some(exprs), .. } = &annotation.body else { return None };
    match exprs.first().map(|e| &e.kind) {
        Some(ast::ExprKind::Name(path)) if &*annotation.name.name == "match" => Some(path.ident.clone()),
        _ => None,
    }
}
