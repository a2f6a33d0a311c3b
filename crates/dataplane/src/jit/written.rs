//! Which header fields a program assigns, and how the bytes of a header are best read after that.
//!
//! A processor hands a stored value to a later load only if the store covers all of what is loaded; else the load waits until
//! the store has reached the cache. So what is read soon after (emission, checksums) is read in the pieces in which
//! it was written.

use std::collections::HashSet;
use std::ops::Range;

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
    for table in &program.tables {
        block(&table.prelude, &mut found);
        table.direct_meter.iter().flat_map(|meter| &meter.dst).for_each(|dst| place(dst, &mut found));
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
            Stmt::Apply { hit, action_run, .. } => found.extend([*hit, *action_run].into_iter().flatten()),
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

/// Offsets and sizes (powers of two up to 16) that cover the packed bytes of a header: assigned fields in the pieces in which they are
/// stored, the others within those in which the parser has copied them.
pub(super) fn pieces(program: &Program, written: &HashSet<VarId>, header: HeaderId) -> Vec<(u32, u32)> {
    let declared = &program[header];
    let ty = &program[declared.ty];
    let bytes = ty.fixed_bits.div_ceil(8);
    let mut found = Vec::new();
    let mut done = 0;
    for (index, field) in ty.fields.iter().enumerate() {
        if field.varbit || !written.contains(&VarId(declared.first_field.0 + index as u32)) {
            continue;
        }
        let first = (field.bit_offset / 8).max(done);
        let last = (field.bit_offset + field.width).div_ceil(8).max(first);
        cover(done..first, |at| copied(bytes, at), &mut found);
        cover(first..last, |_| 8, &mut found);
        done = last.max(done);
    }
    cover(done..bytes, |at| copied(bytes, at), &mut found);
    found
}

/// Bytes from `at` on that [`Gen::copy`](super::function::Gen::copy) of so many bytes copies at once.
pub(super) fn copied(bytes: u32, at: u32) -> u32 {
    let mut end = bytes / 16 * 16;
    if at < end {
        return 16 - at % 16;
    }
    while end <= at && end < bytes {
        end += 1 << (bytes - end).ilog2();
    }
    end.saturating_sub(at)
}

/// Covers bytes with the largest pieces first, each within as many as `most` says there are from its place on.
fn cover(bytes: Range<u32>, most: impl Fn(u32) -> u32, found: &mut Vec<(u32, u32)>) {
    let mut from = bytes.start;
    while from < bytes.end {
        let size = 1 << (bytes.end - from).min(most(from)).ilog2();
        found.push((from, size));
        from += size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_piece_lies_in_two_that_were_copied() {
        let mut found = Vec::new();
        cover(0..14, |at| copied(14, at), &mut found);
        assert_eq!(found, [(0, 8), (8, 4), (12, 2)]);
        found.clear();
        cover(6..20, |at| copied(20, at), &mut found);
        assert_eq!(found, [(6, 8), (14, 2), (16, 4)]);
        for bytes in 1..80 {
            let whole = (0..bytes).filter(|at| *at == 0 || copied(bytes, at - 1) == 1);
            let mut sizes: Vec<u32> = whole.map(|at| copied(bytes, at)).collect();
            assert_eq!(sizes.iter().sum::<u32>(), bytes);
            sizes.retain(|size| *size != 16);
            assert!(sizes.is_sorted_by(|a, b| a > b), "{bytes}: {sizes:?}");
        }
    }
}
