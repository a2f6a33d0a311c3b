//! Paths through statements: branches, loops and what conditions tell.

use super::{Exits, Pass, Paths};
use crate::hir::{Block, Callee, Expr, ExprKind, Stmt, StmtKind};

impl Pass<'_> {
    pub(super) fn block(
        &mut self,
        block: &Block,
        mut paths: Option<Paths>,
        exits: &mut Exits,
    ) -> Option<Paths> {
        for stmt in &block.stmts {
            paths = self.stmt(stmt, paths, exits);
        }
        paths
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt, paths: Option<Paths>, exits: &mut Exits) -> Option<Paths> {
        let mut paths = paths?;
        if self.stop(&paths) {
            return None;
        }
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
    pub(super) fn decide(&mut self, cond: &Expr, paths: &Paths) -> (Paths, Paths) {
        if self.stop(paths) {
            return (Paths::default(), Paths::default());
        }
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
                let first = self.decide(a, paths).0;
                yes = self.decide(b, &first).0;
            }
            ExprKind::Binary(crate::ast::BinaryOp::Or, a, b) => {
                let first = self.decide(a, paths).1;
                no = self.decide(b, &first).1;
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
}
