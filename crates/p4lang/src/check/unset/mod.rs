//! Warnings about values that are read before they are set: variables and `out` parameters that may have no value on some
//! path, fields of headers that are certainly invalid, `out` parameters that are not set when a block ends.
//!
//! A forward data-flow pass over the checked program. A path through the code carries two sets of leaves: scalars that may be
//! unset, and headers that must be invalid. Only local variables and `out` parameters are followed; what an action or table
//! sets is taken as set by calling it, so that there are no alarms where the control plane decides.

mod call;
mod stmt;
mod values;

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::ast::Direction;
use crate::diag::Diagnostic;
use crate::hir::{Block, ControlDef, DefId, DefKind, Hir, ParserDef, StateRef, Transition};
use crate::limits::{Budget, Resource};
use crate::source::Span;

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
        // They stand side by side: a path's extensions follow it.
        let below = |p: &&Place| p.0 == *var && p.1.starts_with(path);
        for set in [&mut self.unset, &mut self.invalid] {
            let found: Vec<Place> = set.range(place..).take_while(below).cloned().collect();
            for place in found {
                set.remove(&place);
            }
        }
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
    budget: &'a Budget,
    /// There is no budget left for it.
    spent: bool,
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

pub(super) fn warn(hir: &Hir, budget: &Budget, diagnostics: &mut Vec<Diagnostic>) {
    for (index, def) in hir.defs.iter().enumerate() {
        let mut pass = Pass {
            hir,
            budget,
            spent: false,
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
        if pass.spent {
            let limit = budget.limits.analysis;
            let message = format!("`{}` takes more than {limit} steps to analyse", def.name);
            let help = "values that are read before they are set were not looked for from here on; make it \
                        smaller, or raise the limit `analysis`";
            diagnostics.push(Diagnostic::warning("not-analysed", def.span, message).help(help));
            return;
        }
    }
}

impl Pass<'_> {
    /// Counts steps; whether to stop, because there were too many.
    fn stop(&mut self, paths: &Paths) -> bool {
        let steps = 2 + (paths.unset.len() + paths.invalid.len()) as u64;
        self.spent |= !self.budget.spend(Resource::Analysis, steps);
        self.spent
    }

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
            if self.spent {
                break;
            }
            let (out, targets) = self.state(parser, index, entries[index].clone());
            for target in targets {
                let StateRef::State(next) = target else { continue };
                if out.as_ref().is_some_and(|paths| self.stop(paths)) {
                    break;
                }
                let joined = Paths::join(entries[next].clone(), out.clone());
                if joined != entries[next] {
                    entries[next] = joined;
                    todo.push(next);
                }
            }
        }
        self.reporting = true;
        for (index, entry) in entries.into_iter().enumerate() {
            if entry.is_some() && !self.spent {
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
}
