//! Which cells of registers lie next to each other.
//!
//! Where a program has several values for each flow, port or queue, each is a register of its own, and all have the same index: as
//! arrays one behind the other, a packet touches a line of the cache for each. So the cells of one index of up to [`LINE`]
//! words of such registers are one line. They are found by the variable that is their index, in registers of one size; groups
//! have 2, 4 or 8 words, so that none lies on two lines and no memory is lost. A program that takes another one's place with its state
//! has its registers where that one's are ([`Program::registers_as`]): its code is made for them.

use std::collections::HashMap;

use p4lang::ir::{BinOp, Expr, ExprKind, ExternCall, Place as Var, Program, Stmt, VarId};

use super::words::words;
use crate::cost::{blocks, each_stmt};

/// Words of a line of the cache.
pub(crate) const LINE: usize = 8;

/// Where a register's cells are in words: the first, and how far one is from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub start: usize,
    pub stride: usize,
}

/// The places of a program's registers, by their index. The first word is at the beginning of a line.
pub(crate) fn places(program: &Program) -> Vec<Place> {
    let width = |register: usize| words(program.registers[register].width);
    let mut groups = Vec::new();
    for alike in alike(program.registers_as.as_deref().unwrap_or(program)) {
        let mut left = &alike[..];
        while !left.is_empty() {
            let count = (1..=left.len().min(LINE)).rev().find(|count| {
                let all = left[..*count].iter().try_fold(0usize, |sum, one| sum.checked_add(width(*one)));
                all.is_some_and(|all| all <= LINE && all.is_power_of_two())
            });
            let (group, rest) = left.split_at(count.unwrap_or(1));
            groups.push((group.iter().map(|one| width(*one)).sum::<usize>(), group.to_vec()));
            left = rest;
        }
    }
    // Those that fill lines first: what comes behind them begins where its own words do.
    groups.sort_by_key(|(all, _)| std::cmp::Reverse(if all.is_power_of_two() { *all } else { 0 }));
    let mut found = vec![Place { start: 0, stride: 1 }; program.registers.len()];
    let mut start = 0usize;
    for (stride, group) in groups {
        let mut at = start;
        for register in &group {
            found[*register] = Place { start: at, stride };
            at = at.saturating_add(width(*register));
        }
        let size = group.first().map_or(0, |first| program.registers[*first].size as usize);
        // Too many are refused by who asks for the memory.
        start = start.saturating_add(size.saturating_mul(stride));
    }
    found
}

/// Registers of one size that the program indexes by the same variable, in groups, in the order of their declaration.
fn alike(program: &Program) -> Vec<Vec<usize>> {
    let mut copies: HashMap<VarId, Option<VarId>> = HashMap::new();
    let mut indexed = Vec::new();
    for block in blocks(program) {
        each_stmt(block, &mut |stmt| match stmt {
            Stmt::Assign { dst: Var::Var(dst), src } => {
                let source = variable(src);
                copies.entry(*dst).and_modify(|known| *known = None).or_insert(source);
            }
            Stmt::Extern(
                ExternCall::RegisterRead { register, index, .. }
                | ExternCall::RegisterWrite { register, index, .. },
            ) => indexed.extend(variable(index).map(|index| (register.index(), index))),
            _ => {}
        });
    }
    let mut first: Vec<usize> = (0..program.registers.len()).collect();
    let mut known: HashMap<(u64, VarId), usize> = HashMap::new();
    for (register, mut index) in indexed {
        // A variable that is set once, to another, is that one. Longer chains are none of a program.
        for _ in 0..LINE {
            let Some(Some(source)) = copies.get(&index) else { break };
            index = *source;
        }
        let other = *known.entry((program.registers[register].size, index)).or_insert(register);
        let (a, b) = (leader(&mut first, register), leader(&mut first, other));
        first[a.max(b)] = a.min(b);
    }
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); first.len()];
    for register in 0..first.len() {
        groups[leader(&mut first, register)].push(register);
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// The least register of a group.
fn leader(first: &mut [usize], mut register: usize) -> usize {
    while first[register] != register {
        first[register] = first[first[register]];
        register = first[register];
    }
    register
}

/// The variable that an index is, or is next to.
fn variable(mut index: &Expr) -> Option<VarId> {
    loop {
        index = match &index.kind {
            ExprKind::Read(Var::Var(var)) => return Some(*var),
            ExprKind::ZeroExtend(inner) | ExprKind::Slice { base: inner, lo: 0, .. } => inner,
            ExprKind::Binary(BinOp::Add | BinOp::Or | BinOp::Xor, inner, by)
                if matches!(by.kind, ExprKind::Const(_)) =>
            {
                inner
            }
            _ => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with these registers, as size, name and width, and with these indexes read.
    fn program(registers: &[(u64, &str, u32)], reads: &[(&str, &str)]) -> Program {
        let declared: String = registers
            .iter()
            .map(|(size, name, width)| format!("register<bit<{width}>>({size}) {name};\n"))
            .collect();
        let reads: String = reads
            .iter()
            .map(|(name, index)| {
                let (_, _, width) = registers.iter().find(|(_, other, _)| other == name).unwrap();
                format!("{{ bit<{width}> v; {name}.read(v, {index}); {name}.write({index}, v + 1); }}\n")
            })
            .collect();
        let text = format!(
            "#include <core.p4>
#include <v1model.p4>
struct H {{}} struct M {{ bit<32> a; bit<32> b; bit<32> c; bit<16> d; }}
{declared}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{ state start {{ transition accept; }} }}
control V(inout H h, inout M m) {{ apply {{}} }}
control I(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{ m.c = m.a; {reads} }} }}
control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
control D(packet_out p, in H h) {{ apply {{}} }}
V1Switch(P(), V(), I(), E(), V(), D()) main;"
        );
        let compiled = p4lang::compile_str("places.p4", &text, None, &p4lang::Options::default());
        compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
    }

    /// The registers of each line's groups, by name.
    fn groups(program: &Program) -> Vec<Vec<&str>> {
        let places = places(program);
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by_key(|register| places[*register].start);
        let mut found: Vec<(usize, Vec<&str>)> = Vec::new();
        for register in order {
            let Place { start, stride } = places[register];
            let name = program.registers[register].info.name.as_str();
            match found.last_mut() {
                Some((first, group)) if start < *first + stride => group.push(name),
                _ => found.push((start, vec![name])),
            }
        }
        let mut groups: Vec<Vec<&str>> = found.into_iter().map(|(_, group)| group).collect();
        groups.sort_unstable();
        groups
    }

    #[test]
    fn what_has_one_index_is_one_group() {
        let registers =
            [(16, "r0", 32), (16, "r1", 64), (16, "r2", 9), (8, "r3", 32), (16, "r4", 32), (16, "r5", 32)];
        let reads = [
            ("r0", "m.a"),
            ("r4", "m.c"),
            ("r3", "m.a"),
            ("r2", "m.b ^ 1"),
            ("r5", "m.b"),
            ("r1", "(bit<32>) m.d"),
        ];
        // By the variable, whatever is added to it, and by that of which it is a copy; not by another one, and not those of another size.
        let program = program(&registers, &reads);
        assert_eq!(groups(&program), [vec!["r0", "r4"], vec!["r1"], vec!["r2", "r5"], vec!["r3"]]);
    }

    /// No word is that of two cells, none lies beyond those that are declared, and no group on two lines.
    #[test]
    fn cells_have_words_of_their_own() {
        let widths = [32, 64, 65, 128, 8, 300, 1, 64, 129, 32, 64, 500, 7, 9, 32, 600, 64, 65];
        let names: Vec<String> = (0..widths.len()).map(|at| format!("r{at}")).collect();
        let registers: Vec<(u64, &str, u32)> = (0..)
            .zip(names.iter().zip(widths))
            .map(|(at, (name, width))| (if at % 5 == 4 { 3 } else { 17 }, name.as_str(), width))
            .collect();
        let reads: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "m.a")).collect();
        let program = program(&registers, &reads);
        let places = places(&program);
        let all: usize = registers.iter().map(|(size, _, width)| *size as usize * words(*width)).sum();
        let mut taken = vec![false; all];
        for ((size, _, width), Place { start, stride }) in registers.iter().zip(&places) {
            for cell in 0..*size as usize {
                let from = start + cell * stride;
                for (word, taken) in taken.iter_mut().enumerate().skip(from).take(words(*width)) {
                    assert!(!std::mem::replace(taken, true), "word {word}");
                }
                if *stride <= LINE && *stride > words(*width) {
                    assert_eq!(from / stride * stride / LINE, (from / stride * stride + stride - 1) / LINE);
                    assert_eq!(from / LINE, (from + words(*width) - 1) / LINE);
                }
            }
        }
        assert!(taken.iter().all(|taken| *taken));
        // Two, five and one word.
        assert!(groups(&program).contains(&vec!["r3", "r5", "r6"]), "{:?}", groups(&program));
    }
}
