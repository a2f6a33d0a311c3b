//! Parsers: states of sub-parsers are inlined, and go on in the caller when they accept (P4_16 section 13.10).

use super::architecture::KeyUse;
use super::expr::Value;
use super::instance::InstanceId;
use super::{Binding, Flow, Lowered, Lowerer};
use crate::hir::{self, Call, Callee, DefId, DefKind, KeysetElem, StmtKind as S, Type};
use crate::ir::{self, Block, Match, MatchKind, SelectCase, StateRef, Transition};
use crate::limits::Resource;

/// States made so far; `None` while a number is taken but the state is not done.
#[derive(Default)]
struct States(Vec<Option<ir::State>>);

impl States {
    fn reserve(&mut self) -> u32 {
        self.0.push(None);
        self.0.len() as u32 - 1
    }

    fn fill(&mut self, index: u32, name: String, body: Block, next: Transition) {
        self.0[index as usize] = Some(ir::State { name, body, next });
    }
}

impl Lowerer<'_> {
    /// The top-level parser of the package; its parameters are bound.
    pub(super) fn top_parser(&mut self, id: InstanceId) -> Lowered<ir::Parser> {
        let mut states = States::default();
        let name = self.def(self.instances[id.0].def).name.to_string();
        let entry = states.reserve();
        self.inside(id, |l| l.parser_states(id, entry, "", StateRef::Accept, &mut states))?;
        let states = states
            .0
            .into_iter()
            .map(|s| {
                s.unwrap_or(ir::State {
                    name: String::new(),
                    body: Vec::new(),
                    next: Transition::Direct(StateRef::Reject),
                })
            })
            .collect();
        Ok(ir::Parser { name, states, start: StateRef::State(entry) })
    }

    /// Lowers all states of an instance. `entry` is where it starts, `accept` where it goes when it accepts.
    fn parser_states(
        &mut self,
        id: InstanceId,
        entry: u32,
        prefix: &str,
        accept: StateRef,
        states: &mut States,
    ) -> Lowered<()> {
        let def = self.def(self.instances[id.0].def);
        let DefKind::Parser(parser) = &def.kind else { return Ok(()) };
        // The start state may be entered again by a loop, so the initial values are set in a state before it.
        self.budget.spend(Resource::States, parser.states.len() as u64 + 2);
        self.bounded(def.span)?;
        let numbers: Vec<u32> = parser.states.iter().map(|_| states.reserve()).collect();
        let init = self.in_block(|l| parser.locals.iter().try_for_each(|local| l.init_local(*local)))?;
        let start = StateRef::State(numbers[parser.start]);
        states.fill(entry, String::new(), init, Transition::Direct(start));
        for (index, state) in parser.states.iter().enumerate() {
            self.bounded(state.span)?;
            let name = format!("{prefix}{}", state.name);
            self.budget.bytes(name.len());
            let (at, body) = self.state_body(&state.body, numbers[index], &name, prefix, states)?;
            let name = if at == numbers[index] { name } else { String::new() };
            let outer = std::mem::replace(&mut self.out, body);
            let next = self.transition(&state.transition, &numbers, accept);
            let body = std::mem::replace(&mut self.out, outer);
            states.fill(at, name, body, next?);
        }
        Ok(())
    }

    /// Statements of a state; a sub-parser's application ends it and starts another, and so does an `if` around one.
    /// Gives the state that is open at the end, and its statements. Only the first one has the name.
    fn state_body(
        &mut self,
        stmts: &[hir::Stmt],
        number: u32,
        mut name: &str,
        prefix: &str,
        states: &mut States,
    ) -> Lowered<(u32, Block)> {
        let mut at = number;
        let mut body = Block::new();
        let mut stmts: Vec<&hir::Stmt> = stmts.iter().rev().collect();
        while let Some(stmt) = stmts.pop() {
            if let S::Block(block) = &stmt.kind {
                stmts.extend(block.stmts.iter().rev());
                continue;
            }
            if let S::Call(call @ Call { callee: Callee::Apply(_) | Callee::DirectApply(_), .. }) = &stmt.kind
            {
                let outer = std::mem::replace(&mut self.out, std::mem::take(&mut body));
                let done = self.sub_parser(call, at, name, prefix, states);
                self.out = outer;
                let (next, rest) = done?;
                (at, name) = (next, "");
                body = rest;
                continue;
            }
            let outer = std::mem::replace(&mut self.out, std::mem::take(&mut body));
            if let S::If { cond, then, otherwise } = &stmt.kind
                && (applies(&then.stmts) || applies(&otherwise.stmts))
            {
                self.budget.spend(Resource::States, 3);
                let cond = self.scalar(cond);
                let before = std::mem::replace(&mut self.out, outer);
                let paths = [states.reserve(), states.reserve()];
                let after = states.reserve();
                let case =
                    |m, path: usize| SelectCase { matches: vec![m], next: StateRef::State(paths[path]) };
                let cases = vec![case(Match::Value(super::build::bit(true)), 0), case(Match::Any, 1)];
                let next = Transition::Select { keys: vec![cond?], cases };
                states.fill(at, name.to_owned(), before, next);
                for (path, stmts) in paths.into_iter().zip([&then.stmts, &otherwise.stmts]) {
                    let (end, rest) = self.state_body(stmts, path, "", prefix, states)?;
                    states.fill(end, String::new(), rest, Transition::Direct(StateRef::State(after)));
                }
                (at, name) = (after, "");
                continue;
            }
            let done = self.stmt(stmt);
            body = std::mem::replace(&mut self.out, outer);
            done?;
        }
        Ok((at, body))
    }

    fn sub_parser(
        &mut self,
        call: &Call,
        at: u32,
        name: &str,
        prefix: &str,
        states: &mut States,
    ) -> Lowered<(u32, Block)> {
        let (id, label) = match &call.callee {
            Callee::Apply(object) => {
                let id = self.instance_of(object)?;
                let label = match &object.kind {
                    hir::ExprKind::Ref(def) => self.def(*def).name.to_string(),
                    _ => String::new(),
                };
                (id, label)
            }
            Callee::DirectApply(def) => (self.direct_instance(*def, call)?, self.def(*def).name.to_string()),
            _ => return Ok((at, Block::new())),
        };
        self.bounded(call.span)?;
        let def = self.def(self.instances[id.0].def);
        let DefKind::Parser(parser) = &def.kind else {
            return self.fail("unsupported", call.span, "only a parser can be applied in a parser");
        };
        let types: Vec<_> = parser
            .signature
            .type_params
            .iter()
            .copied()
            .zip(call.type_args.iter().map(|t| self.ty(t)))
            .collect();
        if self.instances[id.0].types.is_empty() {
            self.instances[id.0].types = types.clone();
        }
        self.types.extend(types);
        let copies = self.bind_params(&call.arguments(&parser.signature.params), false, call.span)?;
        let bound: Vec<(DefId, Binding)> =
            parser.signature.params.iter().filter_map(|p| self.env.get(p).map(|b| (*p, b.clone()))).collect();
        let params = &parser.signature.params;
        let instance = &mut self.instances[id.0];
        instance.bindings.retain(|(def, _)| !params.contains(def));
        instance.bindings.extend(bound);
        let (entry, after) = (states.reserve(), states.reserve());
        let before = std::mem::take(&mut self.out);
        states.fill(at, name.to_owned(), before, Transition::Direct(StateRef::State(entry)));
        self.depth += 1;
        let done = self.inside(id, |l| {
            l.parser_states(id, entry, &format!("{prefix}{label}."), StateRef::State(after), states)
        });
        self.depth -= 1;
        done?;
        // Bindings of the caller may have been hidden by the callee's.
        if let Some(current) = self.current {
            self.budget.work(4 * self.instances[current.0].bindings.len());
            self.env.extend(self.instances[current.0].bindings.clone());
        }
        let rest = self.in_block(|l| {
            l.copy_out(copies);
            Ok(())
        })?;
        Ok((after, rest))
    }

    fn state_ref(numbers: &[u32], accept: StateRef, state: hir::StateRef) -> StateRef {
        match state {
            hir::StateRef::Accept => accept,
            hir::StateRef::Reject => StateRef::Reject,
            hir::StateRef::State(index) => StateRef::State(numbers[index]),
        }
    }

    fn transition(
        &mut self,
        transition: &hir::Transition,
        numbers: &[u32],
        accept: StateRef,
    ) -> Lowered<Transition> {
        let (keys, cases) = match transition {
            hir::Transition::Direct(next) => {
                return Ok(Transition::Direct(Self::state_ref(numbers, accept, *next)));
            }
            hir::Transition::Select { keys, cases, .. } => (keys, cases),
        };
        let mut lowered = Vec::new();
        for key in keys {
            let value = self.operand(&mut lowered, |l| l.scalar(key))?;
            lowered.push(Value::Scalar(value));
        }
        let lowered: Vec<ir::Expr> = lowered.into_iter().map(|value| self.number(value)).collect();
        let mut out = Vec::new();
        for (keyset, next) in cases {
            self.budget.bytes(size_of::<SelectCase>());
            let mut matches = Vec::new();
            match (&keyset.elems[..], keys.len()) {
                ([KeysetElem::Any], n) => {
                    self.budget.bytes(n * size_of::<Match>());
                    matches = vec![Match::Any; n];
                }
                ([KeysetElem::ValueSet(set)], n) => {
                    let set = self.value_set_id(*set, keyset.span)?;
                    self.fits_keys(set, &lowered, keyset.span)?;
                    matches = (0..n as u32).map(|field| Match::ValueSet { set, field }).collect();
                }
                (elems, _) => {
                    for ((elem, key), value) in elems.iter().zip(keys).zip(&lowered) {
                        matches.push(self.select_match(elem, key, value, keyset.span)?);
                    }
                }
            }
            out.push(SelectCase { matches, next: Self::state_ref(numbers, accept, *next) });
        }
        Ok(Transition::Select { keys: lowered, cases: out })
    }

    fn select_match(
        &mut self,
        elem: &KeysetElem,
        key: &hir::Expr,
        value: &ir::Expr,
        span: crate::source::Span,
    ) -> Lowered<Match> {
        Ok(match elem {
            KeysetElem::Any => Match::Any,
            KeysetElem::Value(e) => Match::Value(self.scalar(e)?),
            KeysetElem::Mask(value, mask) => {
                Match::Mask { value: self.scalar(value)?, mask: self.scalar(mask)? }
            }
            KeysetElem::Range(lo, hi) => Match::Range {
                lo: self.scalar(lo)?,
                hi: self.scalar(hi)?,
                signed: self.is_signed(&self.ty(&key.ty)),
            },
            KeysetElem::ValueSet(set) => {
                let set = self.value_set_id(*set, span)?;
                self.fits_keys(set, std::slice::from_ref(value), span)?;
                Match::ValueSet { set, field: 0 }
            }
        })
    }

    /// A value set has a field for each of the keys in whose place it stands, as wide as the key. Executors rely on it.
    fn fits_keys(
        &mut self,
        set: ir::ValueSetId,
        keys: &[ir::Expr],
        span: crate::source::Span,
    ) -> Lowered<()> {
        let held = self.program[set].fields.iter().map(|(_, width, _)| (*width).max(1));
        if held.eq(keys.iter().map(|key| key.width)) {
            return Ok(());
        }
        let message = "the value set holds values of other widths than the keys have";
        self.fail_help("type-mismatch", span, message, "declare the value set with the types of the keys")
    }

    fn value_set_id(&mut self, id: DefId, span: crate::source::Span) -> Lowered<ir::ValueSetId> {
        match self.env.get(&id) {
            Some(Binding::ValueSet(set)) => Ok(*set),
            _ => self.fail("unsupported", span, "this value set has no instance here"),
        }
    }

    pub(super) fn value_set(&mut self, id: DefId, ty: &Type, size: u64) -> Lowered<ir::ValueSetId> {
        let def = self.def(id);
        let info = self.info(def);
        let ty = self.ty(ty);
        let mut fields = Vec::new();
        let mut described = Vec::new();
        let mut type_names = Vec::new();
        match &ty {
            Type::Struct(..) => {
                for (field, ty) in self.fields(&ty) {
                    let rest: Vec<_> =
                        field.annotations.iter().filter(|a| &*a.name.name != "match").cloned().collect();
                    described.push(ir::FieldInfo {
                        id: super::id_annotation(&field.annotations),
                        annotations: self.written(&rest),
                    });
                    let kind = field.annotations.iter().find(|a| &*a.name.name == "match").and_then(|a| {
                        match &a.body {
                            crate::ast::AnnotationBody::Free { text, .. } => self.match_kind(text.trim()),
                            _ => None,
                        }
                    });
                    let Some(width) = self.scalar_width(&ty) else {
                        return self.fail(
                            "unsupported",
                            field.span,
                            "fields of a value set's struct must be numbers",
                        );
                    };
                    fields.push((field.name.to_string(), width, kind.unwrap_or(MatchKind::Exact)));
                    type_names.push(self.control_type(&ty));
                }
            }
            Type::Tuple(types) => {
                for (index, ty) in elements(types).into_iter().enumerate() {
                    fields.push((format!("f{index}"), self.scalar_width(ty).unwrap_or(1), MatchKind::Exact));
                    type_names.push(self.control_type(ty));
                }
            }
            other => match self.scalar_width(other) {
                Some(width) => {
                    fields.push(("f".to_owned(), width, MatchKind::Exact));
                    type_names.push(self.control_type(other));
                }
                None => {
                    return self.fail("unsupported", def.span, "a value set of this type is not supported");
                }
            },
        }
        self.program.value_sets.push(ir::ValueSet { info, size, fields, described, type_names });
        Ok(ir::ValueSetId(self.program.value_sets.len() as u32 - 1))
    }

    fn match_kind(&self, name: &str) -> Option<MatchKind> {
        self.arch.match_kinds().iter().find_map(|(known, key)| match key {
            KeyUse::Match(kind) if *known == name => Some(*kind),
            _ => None,
        })
    }

    /// Parsers have no `return` or `exit`.
    pub(super) fn parser_flow() -> Flow {
        Flow::default()
    }
}

/// Whether a sub-parser is applied in the statements, loops aside.
fn applies(stmts: &[hir::Stmt]) -> bool {
    stmts.iter().any(|s| match &s.kind {
        S::Call(call) => matches!(call.callee, Callee::Apply(_) | Callee::DirectApply(_)),
        S::Block(block) => applies(&block.stmts),
        S::If { then, otherwise, .. } => applies(&then.stmts) || applies(&otherwise.stmts),
        _ => false,
    })
}

/// What a tuple consists of, tuples in it taken apart.
fn elements(types: &[Type]) -> Vec<&Type> {
    let mut out = Vec::new();
    for ty in types {
        match ty {
            Type::Tuple(inner) => out.extend(elements(inner)),
            _ => out.push(ty),
        }
    }
    out
}
