//! What a switch remembers between packets: tables, action profiles, counters, meters, registers, value sets, digests.
//!
//! Indices are those of the program's lists. Nothing here locks: whoever owns the pipeline writes between packets.

mod aging;
pub(crate) mod exact;
#[allow(unsafe_code, reason = "memory that begins where a line of the cache does")]
pub(crate) mod lines;
#[allow(unsafe_code, reason = "instructions that the processor has, as was asked")]
pub mod lpm;
pub mod meter;
mod order;
mod pieces;
pub(crate) mod places;
pub mod profile;
pub mod registers;
mod room;
pub use room::Counted;
pub(crate) use room::SLOT;
pub(crate) mod rows;
pub mod table;
mod target;
mod ternary;
pub mod words;

use std::collections::VecDeque;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use num_bigint::BigUint;
use p4lang::ir::{DigestId, EntryMatch, Program, TableId};
use p4lang::sizes;

use crate::cost;
use crate::hash::Hashes;
use crate::jit::native::zeroed;
use meter::MeterCell;
use profile::Profile;
use registers::Registers;
use table::TableState;

/// Digests that wait to be fetched; more are dropped and counted.
pub const MAX_DIGESTS: usize = sizes::DIGESTS as usize;

// What the compiler counts them as.
const _: () = assert!(size_of::<CounterCell>() as u128 == sizes::COUNTER);
const _: () = assert!(size_of::<MeterCell>() as u128 == sizes::METER);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterCell {
    pub packets: u64,
    pub bytes: u64,
}

/// A message to the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestMessage {
    pub digest: DigestId,
    pub receiver: BigUint,
    pub fields: Vec<BigUint>,
}

#[derive(Debug, Clone)]
pub struct State {
    pub tables: Counted<TableState>,
    pub profiles: Counted<Profile>,
    pub counters: Vec<Vec<CounterCell>>,
    pub meters: Vec<Vec<MeterCell>>,
    pub registers: Registers,
    /// Members of each value set: one match per field.
    pub value_sets: Vec<Vec<Vec<EntryMatch>>>,
    pub digests: VecDeque<DigestMessage>,
    pub digests_lost: u64,
    pub hashes: Hashes,
    /// The table, by its index, in which idle entries are looked for first.
    pub(crate) idle_first: usize,
    /// See [`shape`].
    pub(crate) shape: u64,
    /// See [`State::provide`].
    provided: bool,
}

/// What native code relies on of a program's state, in one number: the widths of keys and of action data, the kinds of indexes, the sizes of registers,
/// counters and meters, and where registers lie. A state of another shape is refused before a packet is run on it.
pub(crate) fn shape(program: &Program) -> u64 {
    let mut all = DefaultHasher::new();
    for table in &program.tables {
        table.keys.len().hash(&mut all);
        table.keys.iter().for_each(|key| key.expr.width.hash(&mut all));
        table.actions.len().hash(&mut all);
        for action in &table.actions {
            let params = &program[action.action].params;
            params.len().hash(&mut all);
            params.iter().for_each(|param| program[param.var].width.hash(&mut all));
        }
        (table.direct_counter.is_some(), table.direct_meter.is_some(), table.support_timeout).hash(&mut all);
        (exact::direct(table), exact::grouped(table.size as usize)).hash(&mut all);
    }
    (program.tables.len(), program.profiles.len(), program.value_sets.len()).hash(&mut all);
    for register in &program.registers {
        (register.width, register.size).hash(&mut all);
    }
    places::places(program).hash(&mut all);
    program.counters.iter().for_each(|counter| counter.size.hash(&mut all));
    program.counters.len().hash(&mut all);
    program.meters.iter().for_each(|meter| meter.size.hash(&mut all));
    all.finish()
}

/// Writes to each page of cells that are all as they were made.
fn touch_pages<T: Default>(cells: &mut [T]) {
    const PAGE: usize = 4096;
    for cell in cells.iter_mut().step_by((PAGE / size_of::<T>()).max(1)) {
        *cell = std::hint::black_box(T::default());
    }
    if let Some(last) = cells.last_mut() {
        *last = std::hint::black_box(T::default());
    }
}

impl State {
    pub fn new(program: &Program) -> State {
        State {
            shape: shape(program),
            tables: Counted::new(
                (0..program.tables.len()).map(|i| TableState::new(program, TableId(i as u32))).collect(),
            ),
            profiles: Counted::new(program.profiles.iter().map(|p| Profile::new(p.size)).collect()),
            counters: program.counters.iter().map(|c| zeroed(c.size as usize)).collect(),
            meters: program.meters.iter().map(|m| zeroed(m.size as usize)).collect(),
            registers: Registers::new(program),
            provided: false,
            value_sets: program.value_sets.iter().map(|_| Vec::new()).collect(),
            digests: VecDeque::new(),
            digests_lost: 0,
            hashes: Hashes::default(),
            idle_first: 0,
        }
    }

    /// As it was at the start. Each part is given up before it is made anew, so that no two are there at a time.
    pub fn reset(&mut self, program: &Program) {
        let (empty, provided) = (Program::default(), self.provided);
        *self = State::new(&empty);
        *self = State::new(program);
        if provided {
            self.provide(program);
        }
    }

    /// Has the system provide the memory of registers, counters and meters now, if they take no more than [`cost::NEAR`]: packets are
    /// not charged for touching it first. Of a state that nobody has used; 64 MiB take some ten milliseconds.
    pub fn provide(&mut self, program: &Program) {
        if !cost::is_near(program) {
            return;
        }
        self.registers.provide();
        self.counters.iter_mut().for_each(|cells| touch_pages(cells));
        self.meters.iter_mut().for_each(|cells| touch_pages(cells));
        self.provided = true;
    }

    /// Has the age of all entries, and their idle timeouts, begin at `now`, in picoseconds.
    pub fn begin(&mut self, now: u64) {
        self.tables.each(|table| table.begin(now));
    }

    pub fn push_digest(&mut self, message: DigestMessage) {
        if self.digests.len() < MAX_DIGESTS {
            self.digests.push_back(message);
        } else {
            self.digests_lost += 1;
        }
    }
}
