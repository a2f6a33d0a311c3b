//! Headers that stay in the packet as they came.
//!
//! A deparser puts the headers in front of what the parser has not read. Where they are the same bytes that the parser has read, and
//! nothing is to be moved, they need not be written. That is so if
//!
//! - the parser reads the headers of the deparser alone, each at most once and in the deparser's order, and skips nothing, so that what
//!   is valid behind it is what stands in the packet ([`in_order`]);
//! - no other statement has written to a header since ([`Gen::writes`]): none of the half in front of the queue does so at all, and for
//!   those of the half behind it code keeps count in a variable;
//! - the packet is that which was parsed. A clone that egress makes has the headers as they are then, and the packet as it came; and a
//!   field list can bring headers from an earlier pass.

use cranelift_codegen::ir::Value;
use cranelift_frontend::Variable;
use p4lang::ir::{HeaderId, HeaderRef, Parser, Program, StateRef, Stmt, Transition, VarHome};

use super::function::{Gen, Region};

/// Ways through a parser that are looked at, at most.
const MOST_WAYS: usize = 1 << 14;

/// Whether a parser reads the headers of a list alone, on each way through it at most once and in their order, and skips nothing;
/// and each is in the list once.
fn in_order(parser: &Parser, list: &[HeaderId]) -> bool {
    if !list.iter().all(|header| list.iter().filter(|other| *other == header).count() == 1) {
        return false;
    }
    // Of each state, how much of the list may be behind.
    let mut behind = vec![None; parser.states.len()];
    let mut open = vec![(parser.start, 0)];
    let mut ways = 0;
    while let Some((state, mut at)) = open.pop() {
        let StateRef::State(index) = state else { continue };
        let index = index as usize;
        if behind[index].is_some_and(|known| known >= at) {
            continue;
        }
        behind[index] = Some(at);
        let state = &parser.states[index];
        for stmt in &state.body {
            match stmt {
                Stmt::Extract { header: HeaderRef::Header(header), varbit_bits: None } => {
                    match list[at..].iter().position(|listed| listed == header) {
                        Some(further) => at += further + 1,
                        None => return false,
                    }
                }
                stmt if moves(stmt) => return false,
                _ => {}
            }
        }
        match &state.next {
            Transition::Direct(next) => open.push((*next, at)),
            Transition::Select { cases, .. } => open.extend(cases.iter().map(|case| (case.next, at))),
        }
        ways += 1;
        if ways > MOST_WAYS {
            return false;
        }
    }
    true
}

/// Whether a statement moves on in the packet.
fn moves(stmt: &Stmt) -> bool {
    let any = |block: &[Stmt]| block.iter().any(moves);
    match stmt {
        Stmt::Extract { .. } | Stmt::Advance { .. } => true,
        Stmt::If { then, otherwise, .. } => any(then) || any(otherwise),
        Stmt::Switch { cases, default, .. } => cases.iter().any(|(_, body)| any(body)) || any(default),
        Stmt::Labeled { body, .. } | Stmt::Loop { body, .. } => any(body),
        _ => false,
    }
}

/// Whether a field list can bring headers.
fn listed(program: &Program) -> bool {
    let of_header =
        |home: VarHome| matches!(home, VarHome::Field { .. } | VarHome::Valid(_) | VarHome::NextIndex(_));
    program
        .field_lists
        .iter()
        .any(|list| !list.headers.is_empty() || list.vars.iter().any(|var| of_header(program[*var].home)))
}

/// What a function under construction knows of that.
#[derive(Default)]
pub(crate) struct InPlace {
    /// Whether code so far writes to a header, but for what the parser reads.
    pub written: bool,
    /// While the parser reads a header.
    pub extracting: bool,
    /// Whether code so far makes clones of packets in egress.
    pub clones: bool,
    /// 1 where code has written to a header, where that is counted.
    changed: Option<Variable>,
}

impl Gen<'_, '_> {
    /// Counts from here on what is written to headers.
    pub fn count_changes(&mut self) {
        let changed = self.variable();
        let none = self.iconst(0);
        self.b.def_var(changed, none);
        self.in_place.changed = Some(changed);
    }

    /// To be told of each region that is written to.
    pub fn writes(&mut self, region: Region) {
        if self.in_place.extracting || !matches!(region, Region::Header(_) | Region::Stack(_)) {
            return;
        }
        self.in_place.written = true;
        if let Some(changed) = self.in_place.changed {
            let one = self.iconst(1);
            self.b.def_var(changed, one);
        }
    }

    /// If the headers of a deparser may stay where they are: whether code has changed one.
    pub fn may_stay(&mut self, parser: &Parser, list: &[HeaderId]) -> Option<Value> {
        let changed = self.in_place.changed?;
        if self.in_place.clones || listed(self.program) || !in_order(parser, list) {
            return None;
        }
        Some(self.b.use_var(changed))
    }
}
