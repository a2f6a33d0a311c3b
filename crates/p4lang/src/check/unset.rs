//! Warnings about values that are read before they are set: variables and `out` parameters that may have no value on some
//! path, fields of headers that are certainly invalid, `out` parameters that are not set when a block ends.
//!
//! A forward data-flow pass over the checked program. A path through the code carries two sets of leaves: scalars that may be
//! unset, and headers that must be invalid. Only local variables and `out` parameters are followed; what an action or table
//! sets is taken as set by calling it, so that there are no alarms where the control plane decides.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::types::{Subst, substitute};
use crate::ast::Direction;
use crate::diag::Diagnostic;
use crate::hir::{
    Block, Call, Callee, ControlDef, DefId, DefKind, Expr, ExprKind, Hir, ParserDef, StateRef, Stmt,
    StmtKind, Transition, Type,
};
use crate::source::Span;

/// Variables with more leaves are not followed.
const MAX_LEAVES: usize = 256;

/// A variable and the fields that lead to a part of it.
type Place = (DefId, Vec<u16>);

#[derive(Clone, Default, PartialEq)]
struct Paths {
    unset: BTreeSet<Place>,
    invalid: BTreeSet<Place>,
}

impl Paths {
    /// After one or the other way; `None` is a way that does not come here.
    fn join(a: Option<Paths>, b: Option<Paths>) -> Option<Paths> {
        match (a, b) {
            (Some(mut a), Some(b)) => {
                a.unset.extend(b.unset);
                a.invalid.retain(|p| b.invalid.contains(p));
                Some(a)
            }
            (a, b) => a.or(b),
        }
    }

    fn set(&mut self, place: &Place) {
        let (var, path) = place;
        let below = |p: &Place| p.0 == *var && p.1.starts_with(path);
        self.unset.retain(|p| !below(p));
        self.invalid.retain(|p| !below(p));
    }
}

/// Where `break`, `continue` and `return` of the code around have led.
#[derive(Default)]
struct Exits {
    breaks: Option<Paths>,
    continues: Option<Paths>,
}

struct Pass<'a> {
    hir: &'a Hir,
    diagnostics: &'a mut Vec<Diagnostic>,
    /// Off while a loop is being settled.
    reporting: bool,
    reported: HashSet<Span>,
    /// `out` parameters of the block, to be set when it ends.
    outs: Vec<DefId>,
    /// Variables that are followed, with their leaves.
    leaves: HashMap<DefId, (Vec<Place>, Vec<Place>)>,
    /// What each action may set.
    effects: HashMap<DefId, BTreeSet<DefId>>,
}

pub(super) fn warn(hir: &Hir, diagnostics: &mut Vec<Diagnostic>) {
    for (index, def) in hir.defs.iter().enumerate() {
        let mut pass = Pass {
            hir,
            diagnostics,
            reporting: true,
            reported: HashSet::new(),
            outs: Vec::new(),
            leaves: HashMap::new(),
            effects: HashMap::new(),
        };
        match &def.kind {
            DefKind::Function(f) => pass.body(&f.signature.params, &f.body),
            DefKind::Action(a) => pass.body(&a.params, &a.body),
            DefKind::Control(c) => pass.control(c),
            DefKind::Parser(p) => pass.parser(p, DefId(index as u32)),
            _ => {}
        }
    }
}

impl Pass<'_> {
    fn enter(&mut self, params: &[DefId]) -> Paths {
        let mut paths = Paths::default();
        for id in params {
            if let DefKind::Param(p) = &self.hir.def(*id).kind
                && p.direction == Direction::Out
            {
                self.follow(*id, &p.ty, &mut paths);
                self.outs.push(*id);
            }
        }
        paths
    }

    fn body(&mut self, params: &[DefId], body: &Block) {
        let paths = self.enter(params);
        let end = self.block(body, Some(paths), &mut Exits::default());
        if let Some(end) = end {
            self.finish(&end);
        }
    }

    fn control(&mut self, control: &ControlDef) {
        let mut paths = self.enter(&control.signature.params);
        for local in &control.locals {
            paths = self.declare(*local, paths);
        }
        let end = self.block(&control.body, Some(paths), &mut Exits::default());
        if let Some(end) = end {
            self.finish(&end);
        }
    }

    fn parser(&mut self, parser: &ParserDef, id: DefId) {
        let mut paths = self.enter(&parser.signature.params);
        for local in &parser.locals {
            paths = self.declare(*local, paths);
        }
        let mut entries: Vec<Option<Paths>> = vec![None; parser.states.len()];
        let mut accepted = None;
        entries[parser.start] = Some(paths);
        let mut todo = vec![parser.start];
        self.reporting = false;
        while let Some(index) = todo.pop() {
            let (out, targets) = self.state(parser, index, entries[index].clone());
            for target in targets {
                let StateRef::State(next) = target else { continue };
                let joined = Paths::join(entries[next].clone(), out.clone());
                if joined != entries[next] {
                    entries[next] = joined;
                    todo.push(next);
                }
            }
        }
        self.reporting = true;
        for (index, entry) in entries.into_iter().enumerate() {
            if entry.is_some() {
                let (out, targets) = self.state(parser, index, entry);
                if targets.iter().any(|t| matches!(t, StateRef::Accept)) {
                    accepted = Paths::join(accepted, out);
                }
            }
        }
        if let Some(end) = accepted
            && self.hir.def(id).parent.is_none()
        {
            self.finish(&end);
        }
    }

    fn state(
        &mut self,
        parser: &ParserDef,
        index: usize,
        entry: Option<Paths>,
    ) -> (Option<Paths>, Vec<StateRef>) {
        let state = &parser.states[index];
        let mut paths = entry;
        for stmt in &state.body {
            paths = self.stmt(stmt, paths, &mut Exits::default());
        }
        match &state.transition {
            Transition::Direct(next) => (paths, vec![*next]),
            Transition::Select { keys, cases, .. } => {
                if let Some(p) = &mut paths {
                    keys.iter().for_each(|key| self.read(key, p));
                }
                (paths, cases.iter().map(|(_, next)| *next).collect())
            }
        }
    }

    /// Begins to follow a variable that has no value.
    fn follow(&mut self, id: DefId, ty: &Type, paths: &mut Paths) {
        if !self.leaves.contains_key(&id) {
            let (mut scalars, mut headers) = (Vec::new(), Vec::new());
            self.collect(ty, &mut (id, Vec::new()), &mut scalars, &mut headers);
            if scalars.len() + headers.len() > MAX_LEAVES {
                (scalars, headers) = (Vec::new(), Vec::new());
            }
            self.leaves.insert(id, (scalars, headers));
        }
        if let Some((scalars, headers)) = self.leaves.get(&id) {
            paths.unset.extend(scalars.iter().cloned());
            paths.invalid.extend(headers.iter().cloned());
        }
    }

    fn collect(&self, ty: &Type, place: &mut Place, scalars: &mut Vec<Place>, headers: &mut Vec<Place>) {
        if scalars.len() + headers.len() > MAX_LEAVES {
            return;
        }
        let each =
            |types: Vec<Type>, place: &mut Place, scalars: &mut Vec<Place>, headers: &mut Vec<Place>| {
                for (index, ty) in types.iter().enumerate() {
                    place.1.push(index as u16);
                    self.collect(ty, place, scalars, headers);
                    place.1.pop();
                }
            };
        match ty {
            Type::Bool | Type::Bits { .. } | Type::Varbit(_) | Type::Error | Type::Enum(_) | Type::New(_) => {
                scalars.push(place.clone());
            }
            Type::Header(..) => headers.push(place.clone()),
            Type::Tuple(types) => each(types.clone(), place, scalars, headers),
            Type::Struct(id, args) => {
                if let DefKind::Struct(def) = &self.hir.def(*id).kind {
                    let subst: Subst = def.type_params.iter().copied().zip(args.iter().cloned()).collect();
                    let types = def.fields.iter().map(|f| substitute(&f.ty, &subst)).collect();
                    each(types, place, scalars, headers);
                }
            }
            _ => {}
        }
    }

    fn declare(&mut self, id: DefId, mut paths: Paths) -> Paths {
        if let DefKind::Variable { ty, init } = &self.hir.def(id).kind {
            match init {
                None => self.follow(id, ty, &mut paths),
                Some(init) => {
                    self.read(init, &mut paths);
                    self.follow(id, ty, &mut paths);
                    self.copy(&(id, Vec::new()), init, &mut paths);
                }
            }
        }
        paths
    }

    /// What `place` is after `value` was assigned to it.
    fn copy(&mut self, place: &Place, value: &Expr, paths: &mut Paths) {
        let copied = |from: &Place, set: &BTreeSet<Place>| -> Vec<Place> {
            let below = set.iter().filter(|p| p.0 == from.0 && p.1.starts_with(&from.1));
            below.map(|p| (place.0, [&place.1[..], &p.1[from.1.len()..]].concat())).collect()
        };
        let source = self.place(value);
        let (unset, invalid) = match &source {
            Some(from) => (copied(from, &paths.unset), copied(from, &paths.invalid)),
            None if matches!(value.kind, ExprKind::Invalid) => (Vec::new(), vec![place.clone()]),
            None => (Vec::new(), Vec::new()),
        };
        paths.set(place);
        if self.leaves.contains_key(&place.0) {
            paths.unset.extend(unset);
            paths.invalid.extend(invalid);
        }
    }

    fn place(&self, e: &Expr) -> Option<Place> {
        match &e.kind {
            ExprKind::Ref(id) => Some((*id, Vec::new())),
            ExprKind::Field(base, index) => {
                let mut place = self.place(base)?;
                place.1.push(*index as u16);
                Some(place)
            }
            _ => None,
        }
    }

    fn block(&mut self, block: &Block, mut paths: Option<Paths>, exits: &mut Exits) -> Option<Paths> {
        for stmt in &block.stmts {
            paths = self.stmt(stmt, paths, exits);
        }
        paths
    }

    fn stmt(&mut self, stmt: &Stmt, paths: Option<Paths>, exits: &mut Exits) -> Option<Paths> {
        let mut paths = paths?;
        match &stmt.kind {
            StmtKind::Block(block) => return self.block(block, Some(paths), exits),
            StmtKind::Decl(id) => return Some(self.declare(*id, paths)),
            StmtKind::Assign { left, op, right } => {
                self.read(right, &mut paths);
                if op.is_some() {
                    self.read(left, &mut paths);
                }
                self.write(left, Some(right), &mut paths);
            }
            StmtKind::Call(call) => self.call(call, &mut paths),
            StmtKind::If { cond, then, otherwise } => {
                self.read(cond, &mut paths);
                let (yes, no) = self.decide(cond, &paths);
                let a = self.block(then, Some(yes), exits);
                let b = self.block(otherwise, Some(no), exits);
                return Paths::join(a, b);
            }
            StmtKind::SwitchAction { table, cases, default } => {
                self.call(table, &mut paths);
                return self.cases(cases.iter().map(|(_, b)| b), default.as_ref(), paths, exits);
            }
            StmtKind::Switch { on, cases, default } => {
                self.read(on, &mut paths);
                return self.cases(cases.iter().map(|(_, b)| b), default.as_ref(), paths, exits);
            }
            StmtKind::For { init, cond, update, body } => {
                let mut entry = Some(paths);
                for stmt in init {
                    entry = self.stmt(stmt, entry, exits);
                }
                let mut entry = entry?;
                return self.turns(&mut entry, |pass, at, inner| {
                    pass.read(cond, at);
                    let after = Some(at.clone());
                    let mut end = pass.block(body, Some(at.clone()), inner);
                    end = Paths::join(end, inner.continues.take());
                    for stmt in update {
                        end = pass.stmt(stmt, end, inner);
                    }
                    (end, after)
                });
            }
            StmtKind::ForRange { lo, hi, body, .. } => {
                self.read(lo, &mut paths);
                self.read(hi, &mut paths);
                return self.turns(&mut paths, |pass, at, inner| {
                    let after = Some(at.clone());
                    let end = pass.block(body, Some(at.clone()), inner);
                    (Paths::join(end, inner.continues.take()), after)
                });
            }
            StmtKind::ForIn { over, body, .. } => {
                self.read(over, &mut paths);
                return self.turns(&mut paths, |pass, at, inner| {
                    let after = Some(at.clone());
                    let end = pass.block(body, Some(at.clone()), inner);
                    (Paths::join(end, inner.continues.take()), after)
                });
            }
            StmtKind::Break => {
                exits.breaks = Paths::join(exits.breaks.take(), Some(paths));
                return None;
            }
            StmtKind::Continue => {
                exits.continues = Paths::join(exits.continues.take(), Some(paths));
                return None;
            }
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.read(value, &mut paths);
                }
                self.finish(&paths);
                return None;
            }
            StmtKind::Exit => return None,
        }
        Some(paths)
    }

    /// What a condition tells: behind `h.isValid()` the header is valid.
    fn decide(&self, cond: &Expr, paths: &Paths) -> (Paths, Paths) {
        let mut yes = paths.clone();
        let mut no = paths.clone();
        match &cond.kind {
            ExprKind::Call(call) => {
                if let Callee::IsValid(e) = &call.callee
                    && let Some(place) = self.place(e)
                {
                    yes.invalid.remove(&place);
                }
            }
            ExprKind::Unary(crate::ast::UnaryOp::Not, inner) => {
                (no, yes) = self.decide(inner, paths);
            }
            ExprKind::Binary(crate::ast::BinaryOp::And, a, b) => {
                yes = self.decide(b, &self.decide(a, paths).0).0;
            }
            ExprKind::Binary(crate::ast::BinaryOp::Or, a, b) => {
                no = self.decide(b, &self.decide(a, paths).1).1;
            }
            _ => {}
        }
        (yes, no)
    }

    fn cases<'b>(
        &mut self,
        cases: impl Iterator<Item = &'b Block>,
        default: Option<&Block>,
        paths: Paths,
        exits: &mut Exits,
    ) -> Option<Paths> {
        let mut end = None;
        for case in cases {
            let after = self.block(case, Some(paths.clone()), exits);
            end = Paths::join(end, after);
        }
        let other = match default {
            Some(default) => self.block(default, Some(paths), exits),
            None => Some(paths),
        };
        Paths::join(end, other)
    }

    /// A loop: one silent turn to know what comes around, then one that reports. `turn` gives what comes around and what
    /// goes on behind the loop.
    fn turns(
        &mut self,
        entry: &mut Paths,
        mut turn: impl FnMut(&mut Self, &mut Paths, &mut Exits) -> (Option<Paths>, Option<Paths>),
    ) -> Option<Paths> {
        let reporting = std::mem::replace(&mut self.reporting, false);
        let (around, _) = turn(self, &mut entry.clone(), &mut Exits::default());
        self.reporting = reporting;
        let mut at = Paths::join(Some(entry.clone()), around)?;
        let mut inner = Exits::default();
        let (around, after) = turn(self, &mut at, &mut inner);
        Paths::join(Paths::join(after, around), inner.breaks)
    }

    fn write(&mut self, left: &Expr, value: Option<&Expr>, paths: &mut Paths) {
        match &left.kind {
            // A part of a number: taken as the whole.
            ExprKind::Slice { base, .. } => self.write(base, None, paths),
            ExprKind::Index(base, index) => {
                self.read(index, paths);
                if let ExprKind::Index(..) = base.kind {
                    self.write(base, None, paths);
                }
            }
            _ => {
                if let Some(place) = self.place(left) {
                    match value {
                        Some(value) => self.copy(&place, value, paths),
                        None => paths.set(&place),
                    }
                } else if let ExprKind::Field(base, _) = &left.kind {
                    self.write(base, None, paths);
                }
            }
        }
    }

    fn read(&mut self, e: &Expr, paths: &mut Paths) {
        match &e.kind {
            ExprKind::Ref(_) | ExprKind::Field(..) => match self.place(e) {
                Some(place) => self.use_of(&place, e, paths),
                None => {
                    if let ExprKind::Field(base, _) = &e.kind {
                        self.read(base, paths);
                    }
                }
            },
            ExprKind::Index(base, index) => {
                self.read(index, paths);
                if self.place(base).is_none() {
                    self.read(base, paths);
                }
            }
            ExprKind::Slice { base: e, .. }
            | ExprKind::StackNext(e)
            | ExprKind::StackLast(e)
            | ExprKind::StackLastIndex(e)
            | ExprKind::Unary(_, e)
            | ExprKind::Cast(e) => self.read(e, paths),
            ExprKind::Binary(op, a, b) => {
                self.read(a, paths);
                // What the left side shows holds on the right.
                let mut right = match op {
                    crate::ast::BinaryOp::And => self.decide(a, paths).0,
                    crate::ast::BinaryOp::Or => self.decide(a, paths).1,
                    _ => return self.read(b, paths),
                };
                self.read(b, &mut right);
            }
            ExprKind::Ternary(cond, a, b) => {
                self.read(cond, paths);
                let (mut yes, mut no) = self.decide(cond, paths);
                self.read(a, &mut yes);
                self.read(b, &mut no);
            }
            ExprKind::Struct(items) | ExprKind::List(items) => {
                items.iter().flatten().for_each(|item| self.read(item, paths));
            }
            ExprKind::Call(call) => self.call(call, paths),
            ExprKind::TableHit { apply, .. } => self.call(apply, paths),
            _ => {}
        }
    }

    fn use_of(&mut self, place: &Place, e: &Expr, paths: &Paths) {
        let Some((scalars, _)) = self.leaves.get(&place.0) else { return };
        let below = |p: &Place| p.0 == place.0 && p.1.starts_with(&place.1);
        let all = scalars.iter().filter(|p| below(p)).count();
        let unset = paths.unset.iter().filter(|p| below(p)).count();
        let name = &self.hir.def(place.0).name;
        // A structure of which a part is set is fine to copy.
        if all > 0 && unset == all {
            self.report(e.span, format!("`{name}` may be read here before it is set"), place.0);
        }
        let header = |p: &&Place| p.0 == place.0 && p.1.len() < place.1.len() && place.1.starts_with(&p.1);
        if paths.invalid.iter().any(|p| header(&p)) {
            self.report(e.span, format!("a field of a header that is not valid here, in `{name}`"), place.0);
        }
    }

    fn report(&mut self, span: Span, message: String, var: DefId) {
        if self.reporting && self.reported.insert(span) {
            let mut diagnostic = Diagnostic::warning("uninitialized-read", span, message)
                .help("set it on every path that leads here, or give it a value where it is declared");
            diagnostic.related.push((self.hir.def(var).span, "declared here".into()));
            self.diagnostics.push(diagnostic);
        }
    }

    /// The block ends here.
    fn finish(&mut self, paths: &Paths) {
        for id in self.outs.clone() {
            let span = self.hir.def(id).span;
            if paths.unset.iter().any(|p| p.0 == id) && self.reporting && self.reported.insert(span) {
                let name = &self.hir.def(id).name;
                let message = format!("the `out` parameter `{name}` may not be set on every path");
                let help = "set it, or make it `inout`";
                self.diagnostics.push(Diagnostic::warning("uninitialized-out", span, message).help(help));
            }
        }
    }

    fn call(&mut self, call: &Call, paths: &mut Paths) {
        let params: Vec<DefId> = match &call.callee {
            Callee::Function(id) | Callee::Action(id) | Callee::ExternFn(id) | Callee::DirectApply(id) => {
                self.params(*id)
            }
            Callee::Method { object, method } => {
                self.read(object, paths);
                self.params(*method)
            }
            Callee::Apply(object) => match &object.ty {
                Type::Parser(id, _) | Type::Control(id, _) => self.params(*id),
                _ => Vec::new(),
            },
            Callee::Table(table) => {
                self.table(*table, paths);
                return;
            }
            Callee::SetValid(e) => {
                if let Some(place) = self.place(e) {
                    paths.invalid.remove(&place);
                }
                return;
            }
            Callee::SetInvalid(e) => {
                if let Some(place) = self.place(e)
                    && self.leaves.get(&place.0).is_some_and(|(_, headers)| headers.contains(&place))
                {
                    paths.invalid.insert(place);
                }
                return;
            }
            Callee::IsValid(_) | Callee::PushFront(..) | Callee::PopFront(..) => return,
        };
        let direction = |pass: &Self, index: usize| match params.get(index).map(|p| &pass.hir.def(*p).kind) {
            Some(DefKind::Param(p)) => p.direction,
            _ => Direction::None,
        };
        for (index, arg) in call.args.iter().enumerate() {
            if let Some(arg) = arg
                && direction(self, index) != Direction::Out
            {
                self.read(arg, paths);
            }
        }
        for (index, arg) in call.args.iter().enumerate() {
            if let Some(arg) = arg
                && matches!(direction(self, index), Direction::Out | Direction::InOut)
            {
                self.write(arg, None, paths);
            }
        }
        if let Callee::Action(id) = &call.callee {
            for var in self.effects_of(*id) {
                paths.set(&(var, Vec::new()));
            }
        }
    }

    fn params(&self, id: DefId) -> Vec<DefId> {
        match &self.hir.def(id).kind {
            DefKind::Function(f) => f.signature.params.clone(),
            DefKind::Action(a) => a.params.clone(),
            DefKind::ExternFn(s) | DefKind::ParserType(s) | DefKind::ControlType(s) => s.params.clone(),
            DefKind::Parser(p) => p.signature.params.clone(),
            DefKind::Control(c) => c.signature.params.clone(),
            _ => Vec::new(),
        }
    }

    fn table(&mut self, id: DefId, paths: &mut Paths) {
        let hir = self.hir;
        let DefKind::Table(table) = &hir.def(id).kind else { return };
        for key in &table.keys {
            self.read(&key.expr, paths);
        }
        for action in &table.actions {
            for bound in action.bound.iter().flatten() {
                self.write(bound, None, paths);
            }
            for var in self.effects_of(action.action) {
                paths.set(&(var, Vec::new()));
            }
        }
    }

    /// Variables from outside that an action may set.
    fn effects_of(&mut self, id: DefId) -> BTreeSet<DefId> {
        if let Some(known) = self.effects.get(&id) {
            return known.clone();
        }
        let mut set = BTreeSet::new();
        if let DefKind::Action(action) = &self.hir.def(id).kind {
            self.effects.insert(id, BTreeSet::new());
            self.effects_of_block(&action.body, &mut set);
        }
        self.effects.insert(id, set.clone());
        set
    }

    fn effects_of_block(&mut self, block: &Block, set: &mut BTreeSet<DefId>) {
        for stmt in &block.stmts {
            match &stmt.kind {
                StmtKind::Block(b) => self.effects_of_block(b, set),
                StmtKind::Assign { left, .. } => set.extend(root(left)),
                StmtKind::Call(call) => {
                    set.extend(call.args.iter().flatten().filter_map(root));
                    if let Callee::SetValid(e) | Callee::PushFront(e, _) = &call.callee {
                        set.extend(root(e));
                    }
                    if let Callee::Action(inner) = &call.callee {
                        set.extend(self.effects_of(*inner));
                    }
                }
                StmtKind::If { then, otherwise, .. } => {
                    self.effects_of_block(then, set);
                    self.effects_of_block(otherwise, set);
                }
                StmtKind::Switch { cases, default, .. } => {
                    cases.iter().for_each(|(_, b)| self.effects_of_block(b, set));
                    default.iter().for_each(|b| self.effects_of_block(b, set));
                }
                StmtKind::For { body, .. }
                | StmtKind::ForRange { body, .. }
                | StmtKind::ForIn { body, .. } => self.effects_of_block(body, set),
                _ => {}
            }
        }
    }
}

/// The variable that an l-value is a part of.
fn root(e: &Expr) -> Option<DefId> {
    match &e.kind {
        ExprKind::Ref(id) => Some(*id),
        ExprKind::Field(base, _) | ExprKind::Index(base, _) | ExprKind::Slice { base, .. } => root(base),
        _ => None,
    }
}
