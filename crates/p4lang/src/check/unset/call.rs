//! What calls read and set: arguments by direction, and what actions and tables change from inside.

use std::collections::BTreeSet;

use super::{Pass, Paths};
use crate::ast::Direction;
use crate::hir::{Block, Call, Callee, DefId, DefKind, Expr, ExprKind, StmtKind, Type};
use crate::limits::Resource;

impl Pass<'_> {
    pub(super) fn call(&mut self, call: &Call, paths: &mut Paths) {
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
        for index in call.order.indices(call.args.len()) {
            if let Some(arg) = &call.args[index]
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
            self.spent |= !self.budget.spend(Resource::Analysis, known.len() as u64);
            if self.spent {
                return BTreeSet::new();
            }
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
        self.spent |= !self.budget.spend(Resource::Analysis, block.stmts.len() as u64);
        if self.spent {
            return;
        }
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
