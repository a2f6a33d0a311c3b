//! What a program reads: the variables whose value some part of it, or a field list, can look at. What nobody reads need not be set.

use std::collections::HashSet;

use p4lang::ir::{
    Block, ControlId, Expr, ExprKind, ExternCall, HeaderRef, Match, Place, Program, Stmt, Table, Transition,
    VarId,
};

use crate::cost::each_stmt;

/// The variables that are read; of stacks those of element 0.
pub(crate) fn reads(program: &Program) -> HashSet<VarId> {
    let mut reads = Reads::default();
    for state in program.parsers.iter().flat_map(|parser| &parser.states) {
        reads.block(&state.body);
        reads.transition(&state.next);
    }
    program.controls.iter().for_each(|control| reads.block(&control.body));
    program.actions.iter().for_each(|action| reads.block(&action.body));
    for table in &program.tables {
        reads.block(&table.prelude);
        reads.table(table);
    }
    let mut found = reads.0;
    found.extend(program.field_lists.iter().flat_map(|list| &list.vars));
    found
}

/// As [`reads`], of what these controls run alone: their statements, and those of the tables that they apply.
pub(crate) fn reads_of(program: &Program, controls: &[ControlId]) -> HashSet<VarId> {
    let mut reads = Reads::default();
    let mut tables = HashSet::new();
    let mut blocks: Vec<&Block> = controls.iter().map(|control| &program[*control].body).collect();
    while let Some(block) = blocks.pop() {
        reads.block(block);
        each_stmt(block, &mut |stmt| {
            let Stmt::Apply { table, .. } = stmt else { return };
            if tables.insert(*table) {
                let table = &program[*table];
                reads.table(table);
                blocks.push(&table.prelude);
                blocks.extend(table.actions.iter().map(|listed| &program[listed.action].body));
            }
        });
    }
    reads.0
}

#[derive(Default)]
struct Reads(HashSet<VarId>);

impl Reads {
    /// Keys, and what goes with them.
    fn table(&mut self, table: &Table) {
        table.keys.iter().for_each(|key| self.expr(&key.expr));
        table.selector.iter().for_each(|expr| self.expr(expr));
        table.direct_meter.iter().flat_map(|meter| &meter.dst).for_each(|dst| self.index(dst));
    }

    fn block(&mut self, block: &[Stmt]) {
        block.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign { dst, src } => {
                self.index(dst);
                self.expr(src);
            }
            Stmt::CopyVarbit { dst, src } => {
                self.index(dst);
                self.place(src);
            }
            Stmt::CopyHeader { dst, src } => {
                self.header(dst);
                self.header(src);
            }
            Stmt::ResetHeader(header) | Stmt::Emit(header) => self.header(header),
            Stmt::If { cond, then, otherwise } => {
                self.expr(cond);
                self.block(then);
                self.block(otherwise);
            }
            Stmt::Switch { on, cases, default } => {
                self.expr(on);
                cases.iter().for_each(|(_, body)| self.block(body));
                self.block(default);
            }
            Stmt::Labeled { body, .. } | Stmt::Loop { body, .. } => self.block(body),
            Stmt::Break(_) | Stmt::Continue(_) | Stmt::Apply { .. } => {}
            Stmt::Extern(call) => self.call(call),
            Stmt::Extract { header, varbit_bits } => {
                self.header(header);
                varbit_bits.iter().for_each(|bits| self.expr(bits));
            }
            Stmt::Lookahead { into } => into.iter().for_each(|dst| self.index(dst)),
            Stmt::Advance { bits } => self.expr(bits),
            Stmt::Verify { cond, error } => {
                self.expr(cond);
                self.expr(error);
            }
        }
    }

    fn call(&mut self, call: &ExternCall) {
        match call {
            ExternCall::CounterCount { index, .. } => self.expr(index),
            ExternCall::MeterExecute { index, dst, .. } | ExternCall::RegisterRead { index, dst, .. } => {
                self.expr(index);
                self.index(dst);
            }
            ExternCall::RegisterWrite { index, value, .. } => {
                self.expr(index);
                self.expr(value);
            }
            ExternCall::Random { dst, lo, hi } => {
                self.index(dst);
                self.expr(lo);
                self.expr(hi);
            }
            ExternCall::Hash { dst, base, data, max, .. } => {
                self.index(dst);
                self.expr(base);
                self.expr(max);
                data.iter().for_each(|item| self.expr(item));
            }
            ExternCall::VerifyChecksum { cond, data, checksum, .. } => {
                self.expr(cond);
                self.expr(checksum);
                data.iter().for_each(|item| self.expr(item));
            }
            ExternCall::UpdateChecksum { cond, data, dst, .. } => {
                self.expr(cond);
                self.index(dst);
                data.iter().for_each(|item| self.expr(item));
            }
            ExternCall::Digest { receiver, fields, .. } => {
                self.expr(receiver);
                fields.iter().for_each(|field| self.expr(field));
            }
            ExternCall::Clone { session, .. } => self.expr(session),
            ExternCall::Resubmit { .. } | ExternCall::Recirculate { .. } => {}
            ExternCall::Truncate { bytes } => self.expr(bytes),
            ExternCall::LogMsg { args, .. } => args.iter().for_each(|(arg, _)| self.expr(arg)),
            ExternCall::Assert { cond, .. } | ExternCall::Assume { cond, .. } => self.expr(cond),
        }
    }

    fn transition(&mut self, next: &Transition) {
        let Transition::Select { keys, cases } = next else { return };
        keys.iter().for_each(|key| self.expr(key));
        for matched in cases.iter().flat_map(|case| &case.matches) {
            match matched {
                Match::Any | Match::ValueSet { .. } => {}
                Match::Value(value) => self.expr(value),
                Match::Mask { value: a, mask: b } | Match::Range { lo: a, hi: b, .. } => {
                    self.expr(a);
                    self.expr(b);
                }
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Const(_) | ExprKind::PacketLength => {}
            ExprKind::Read(place) => self.place(place),
            ExprKind::VarbitEq(a, b) => {
                self.place(a);
                self.place(b);
            }
            ExprKind::Not(a) | ExprKind::Neg(a) | ExprKind::ZeroExtend(a) | ExprKind::SignExtend(a) => {
                self.expr(a);
            }
            ExprKind::Slice { base, .. } => self.expr(base),
            ExprKind::Binary(_, a, b) | ExprKind::Concat(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Select(a, b, c) => {
                self.expr(a);
                self.expr(b);
                self.expr(c);
            }
        }
    }

    fn place(&mut self, place: &Place) {
        let (Place::Var(var) | Place::Elem { var, .. }) = place;
        self.0.insert(*var);
        self.index(place);
    }

    /// What is read to know which place it is.
    fn index(&mut self, place: &Place) {
        if let Place::Elem { index, .. } = place {
            self.expr(index);
        }
    }

    fn header(&mut self, header: &HeaderRef) {
        if let HeaderRef::Elem { index, .. } = header {
            self.expr(index);
        }
    }
}
