//! Batches that are done whole or not at all.
//!
//! Before an operation changes an object, what it changes is kept; if an operation is refused, it goes back. Nothing else changes
//! between packets, so that what goes back is what was there: entries with their counters, meters and last hits, free handles, the
//! order of entries of one priority. Of tables each change of an entry is kept, of multicast groups and mirror sessions each
//! change, of action profiles the members and groups that are changed, of registers, counters and meters the cells. Of value sets,
//! and of what an operation changes in all places, a copy is made, once in a batch.

use std::collections::BTreeMap;

use control::{
    ArrayOp, At, Cells, Error, Kind, MOST_IN_ALL, Op, ProfileOp, Result, StateOp, TableOp, Target, ValueSetOp,
};
use p4lang::ir::{EntryMatch, TableId};
use units::Time;

use super::Answer;
use crate::pipeline::Pipeline;
use crate::state::meter::MeterCell;
use crate::state::profile::{Group, Member, Profile};
use crate::state::table::TableState;
use crate::state::table::undo::Step;
use crate::state::{CounterCell, Register, State};

/// Objects as they were before the batch, by index.
#[derive(Default)]
struct Saved {
    /// Changes of tables, in the order in which they were made.
    steps: Vec<(usize, Step)>,
    /// Whole tables, as they were when an operation was to change all of it; later ones need not be prepared for.
    tables: BTreeMap<usize, TableState>,
    members: SavedParts<Member>,
    groups: SavedParts<Group>,
    /// The numbers that members and groups are given next, of profiles.
    numbers: BTreeMap<usize, (u32, u32)>,
    registers: BTreeMap<usize, Register>,
    counters: BTreeMap<usize, Vec<CounterCell>>,
    meters: BTreeMap<usize, Vec<MeterCell>>,
    register_cells: SavedCells<Vec<u64>>,
    counter_cells: SavedCells<CounterCell>,
    meter_cells: SavedCells<MeterCell>,
    value_sets: BTreeMap<usize, Vec<Vec<EntryMatch>>>,
    /// All of it, as it was when an operation was to change all of it; later ones need not be prepared for.
    state: Option<State>,
}

fn keep<T: Clone>(saved: &mut BTreeMap<usize, T>, index: usize, objects: &[T]) {
    saved.entry(index).or_insert_with(|| objects[index].clone());
}

/// Cells by object and place, as they were before any of the batch's operations.
type SavedCells<C> = BTreeMap<(usize, usize), C>;

/// Copies a cell, unless it or its whole object has been copied; one that is not there is refused later.
fn keep_cell<W, C>(
    whole: &BTreeMap<usize, W>,
    cells: &mut SavedCells<C>,
    index: usize,
    at: u32,
    cell: Option<C>,
) {
    if let (false, Some(cell)) = (whole.contains_key(&index), cell) {
        cells.entry((index, at as usize)).or_insert(cell);
    }
}

/// Parts of a profile by its index and theirs, as they were before any of the batch's operations; `None`: there was none.
type SavedParts<P> = BTreeMap<(usize, u32), Option<P>>;

fn put_back<T>(saved: BTreeMap<usize, T>, objects: &mut [T]) {
    for (index, object) in saved {
        objects[index] = object;
    }
}

impl Saved {
    fn keep_member(&mut self, profile: usize, number: u32, of: &Profile) {
        let member = || of.member(number).map(|(action, args)| (action, args.into()));
        self.members.entry((profile, number)).or_insert_with(member);
    }

    fn keep_group(&mut self, profile: usize, number: u32, of: &Profile) {
        self.groups.entry((profile, number)).or_insert_with(|| of.group(number).cloned());
    }
}

impl Pipeline {
    pub(super) fn act_on_all(
        &mut self,
        now: Time,
        ops: &[Op],
    ) -> std::result::Result<Vec<Answer>, (usize, Error)> {
        if ops.len() > MOST_IN_ALL {
            let why = format!("a batch of {} operations is too large to be done whole", ops.len());
            let cure = format!("give {MOST_IN_ALL} at most, or let each be done by itself");
            return Err((MOST_IN_ALL, Error::new(Kind::Unsupported, why).cure(cure)));
        }
        let mut saved = Saved::default();
        self.replication.watch();
        let mut answers = Vec::with_capacity(ops.len());
        for (index, op) in ops.iter().enumerate() {
            match self.save(op, &mut saved).and_then(|step| Ok((step, self.act(now, op)?))) {
                Ok((step, answer)) => {
                    saved.steps.extend(step.map(|(table, step)| (table, step.of(&answer))));
                    answers.push(answer);
                }
                Err(error) => {
                    self.restore(saved);
                    return Err((index, error));
                }
            }
        }
        self.replication.settle(true);
        Ok(answers)
    }

    /// Copies what an operation may change, but for what it changes in a table alone: how that is taken back comes with the table.
    fn save(&self, op: &Op, saved: &mut Saved) -> Result<Option<(usize, Step)>> {
        let (program, state) = (self.program(), &self.state);
        if saved.state.is_some() && !matches!(op, Op::Copies(_)) {
            return undoable(op).map(|()| None);
        }
        let mut step = None;
        match op {
            Op::Table(
                change @ (TableOp::Add { table, .. }
                | TableOp::Set { table, .. }
                | TableOp::Delete { table, .. }
                | TableOp::SetDefault { table, .. }
                | TableOp::ResetDefault { table }),
            ) => {
                step = self.step(table.table(program)?, change);
            }
            Op::Table(TableOp::Clear { table }) => {
                keep(&mut saved.tables, table.table(program)?.index(), &state.tables);
            }
            Op::Profile(ProfileOp::AddMember { profile, member, .. }) => {
                let index = profile.profile(program)?;
                let known = &state.profiles[index];
                saved.numbers.entry(index).or_insert_with(|| known.next_numbers());
                saved.keep_member(index, member.unwrap_or_else(|| known.free_member()), known);
            }
            Op::Profile(
                ProfileOp::SetMember { profile, member, .. } | ProfileOp::DeleteMember { profile, member },
            ) => {
                let index = profile.profile(program)?;
                saved.keep_member(index, *member, &state.profiles[index]);
            }
            Op::Profile(ProfileOp::AddGroup { profile }) => {
                let index = profile.profile(program)?;
                let known = &state.profiles[index];
                saved.numbers.entry(index).or_insert_with(|| known.next_numbers());
                saved.keep_group(index, known.free_group(), known);
            }
            Op::Profile(
                ProfileOp::SetGroup { profile, group, .. }
                | ProfileOp::JoinGroup { profile, group, .. }
                | ProfileOp::LeaveGroup { profile, group, .. }
                | ProfileOp::DeleteGroup { profile, group },
            ) => {
                let index = profile.profile(program)?;
                saved.keep_group(index, *group, &state.profiles[index]);
            }
            Op::Array(ArrayOp::SetRegister { register, at: At::Index(at), .. }) => {
                let index = register.register(program)?;
                let cell = state.registers[index].cell(*at as usize).map(<[u64]>::to_vec);
                keep_cell(&saved.registers, &mut saved.register_cells, index, *at, cell);
            }
            Op::Array(ArrayOp::WriteRegister { register, .. } | ArrayOp::SetRegister { register, .. }) => {
                keep(&mut saved.registers, register.register(program)?, &state.registers);
            }
            Op::Array(ArrayOp::SetCounter { counter, at, .. }) => match (counter.counter(program)?, at) {
                (Cells::Array(index), At::Index(at)) => {
                    let cell = state.counters[index].get(*at as usize).copied();
                    keep_cell(&saved.counters, &mut saved.counter_cells, index, *at, cell);
                }
                (Cells::Array(index), At::All) => keep(&mut saved.counters, index, &state.counters),
                (Cells::Direct(table), At::Index(handle)) => {
                    step = state.tables[table.index()].changed(*handle).map(|step| (table.index(), step));
                }
                (Cells::Direct(table), At::All) => keep(&mut saved.tables, table.index(), &state.tables),
            },
            Op::Array(ArrayOp::SetMeter { meter, at, .. }) => match (meter.meter(program)?, at) {
                (Cells::Array(index), At::Index(at)) => {
                    let cell = state.meters[index].get(*at as usize).cloned();
                    keep_cell(&saved.meters, &mut saved.meter_cells, index, *at, cell);
                }
                (Cells::Array(index), At::All) => keep(&mut saved.meters, index, &state.meters),
                (Cells::Direct(table), At::Index(handle)) => {
                    step = state.tables[table.index()].changed(*handle).map(|step| (table.index(), step));
                }
                (Cells::Direct(table), At::All) => keep(&mut saved.tables, table.index(), &state.tables),
            },
            Op::ValueSet(
                ValueSetOp::Add { value_set, .. }
                | ValueSetOp::Remove { value_set, .. }
                | ValueSetOp::Set { value_set, .. },
            ) => keep(&mut saved.value_sets, value_set.value_set(program)?, &state.value_sets),
            // It keeps its changes by itself.
            Op::Copies(_) => {}
            Op::State(StateOp::SetCrc { .. } | StateOp::Reset {}) => saved.state = Some(state.clone()),
            op => undoable(op)?,
        }
        Ok(step.filter(|(table, _)| !saved.tables.contains_key(table)))
    }

    /// How an operation on one entry or the default of a table is taken back; `None`: it will be refused.
    fn step(&self, id: TableId, op: &TableOp) -> Option<(usize, Step)> {
        let state = &self.state.tables[id.index()];
        let handle = |entry| self.handle(self.program(), id, entry).ok();
        let step = match op {
            TableOp::Add { .. } => Some(state.adding()),
            TableOp::Set { entry, .. } => handle(entry).and_then(|handle| state.changed(handle)),
            TableOp::Delete { entry, .. } => handle(entry).and_then(|handle| state.removed(handle)),
            _ => Some(state.defaulted()),
        };
        step.map(|step| (id.index(), step))
    }

    fn restore(&mut self, saved: Saved) {
        if let Some(state) = saved.state {
            self.state = state;
        }
        self.replication.settle(false);
        // Whole tables were copied after the changes of theirs that were kept one by one.
        put_back(saved.tables, &mut self.state.tables);
        for (table, step) in saved.steps.into_iter().rev() {
            self.state.tables[table].take_back(step);
        }
        for ((profile, number), member) in saved.members {
            self.state.profiles[profile].put_member(number, member);
        }
        for ((profile, number), group) in saved.groups {
            self.state.profiles[profile].put_group(number, group);
        }
        for (profile, numbers) in saved.numbers {
            self.state.profiles[profile].number_from(numbers);
        }
        put_back(saved.registers, &mut self.state.registers);
        put_back(saved.counters, &mut self.state.counters);
        put_back(saved.meters, &mut self.state.meters);
        put_back(saved.value_sets, &mut self.state.value_sets);
        // These were copied before their whole objects were, if those were at all.
        for ((index, at), words) in saved.register_cells {
            if let Some(cell) = self.state.registers[index].cell_mut(at) {
                cell.copy_from_slice(&words);
            }
        }
        for ((index, at), cell) in saved.counter_cells {
            self.state.counters[index][at] = cell;
        }
        for ((index, at), cell) in saved.meter_cells {
            self.state.meters[index][at] = cell;
        }
    }
}

/// Refuses what takes messages away or goes beyond the program.
fn undoable(op: &Op) -> Result<()> {
    match op {
        Op::Fixed(_) | Op::Table(TableOp::TakeIdle {}) | Op::State(StateOp::TakeDigests {}) => {
            let why = format!("`{}` cannot be undone", op.name());
            Err(Error::new(Kind::Unsupported, why).cure("leave it out of a batch that is to be done whole"))
        }
        _ => Ok(()),
    }
}
