//! Which header fields a program assigns, and how the bytes of a header are best read after that.
//!
//! A processor hands a stored value to a later load only if the store covers all of what is loaded; else the load waits until
//! the store has reached the cache. So what is read soon after (emission, checksums) is read in the pieces in which
//! it was written.

use std::collections::HashSet;

use p4lang::ir::{ExternCall, HeaderId, Place, Program, Stmt, VarId};

/// The variables that are assigned one by one, of stacks those of element 0.
pub(super) fn written(program: &Program) -> HashSet<VarId> {
    let mut found = HashSet::new();
    for control in &program.controls {
        block(&control.body, &mut found);
    }
    for action in &program.actions {
        block(&action.body, &mut found);
    }
    for state in program.parsers.iter().flat_map(|parser| &parser.states) {
        block(&state.body, &mut found);
    }
    found
}

fn block(stmts: &[Stmt], found: &mut HashSet<VarId>) {
    for stmt in stmts {
        match stmt {
            Stmt::Assign { dst, .. } => place(dst, found),
            Stmt::If { then, otherwise, .. } => {
                block(then, found);
                block(otherwise, found);
            }
            Stmt::Switch { cases, default, .. } => {
                cases.iter().for_each(|(_, body)| block(body, found));
                block(default, found);
            }
            Stmt::Labeled { body, .. } | Stmt::Loop { body, .. } => block(body, found),
            Stmt::Lookahead { into } => into.iter().for_each(|dst| place(dst, found)),
            Stmt::Extern(
                ExternCall::MeterExecute { dst, .. }
                | ExternCall::RegisterRead { dst, .. }
                | ExternCall::Random { dst, .. }
                | ExternCall::Hash { dst, .. }
                | ExternCall::UpdateChecksum { dst, .. },
            ) => place(dst, found),
            _ => {}
        }
    }
}

fn place(dst: &Place, found: &mut HashSet<VarId>) {
    let (Place::Var(var) | Place::Elem { var, .. }) = dst;
    found.insert(*var);
}

/// Offsets and sizes (powers of two up to 16) that cover the packed bytes of a header, assigned fields in the pieces in
/// which they are stored.
pub(super) fn pieces(program: &Program, written: &HashSet<VarId>, header: HeaderId) -> Vec<(u32, u32)> {
    let declared = &program[header];
    let ty = &program[declared.ty];
    let mut found = Vec::new();
    let mut done = 0;
    for (index, field) in ty.fields.iter().enumerate() {
        if field.varbit || !written.contains(&VarId(declared.first_field.0 + index as u32)) {
            continue;
        }
        let first = (field.bit_offset / 8).max(done);
        let last = (field.bit_offset + field.width).div_ceil(8);
        cover(done, first, 16, &mut found);
        cover(first, last.max(first), 8, &mut found);
        done = last.max(done);
    }
    cover(done, ty.fixed_bits.div_ceil(8), 16, &mut found);
    found
}

/// Covers bytes with the largest pieces first.
fn cover(mut from: u32, to: u32, most: u32, found: &mut Vec<(u32, u32)>) {
    while from < to {
        let size = (1 << (to - from).ilog2()).min(most);
        found.push((from, size));
        from += size;
    }
}
