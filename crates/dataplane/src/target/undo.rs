//! Batches that are done whole or not at all.
//!
//! Before an operation changes an object, what it changes is kept; if an operation is refused, it goes back. Nothing else changes
//! between packets, so that what goes back is what was there: entries with their counters, meters and last hits, free handles, the
//! order of entries of one priority. Of tables each change of an entry is kept, of multicast groups and mirror sessions each
//! change, of action profiles the members and groups that are changed, of registers, counters and meters the cells. Of value sets,
//! and of all state, a copy is made, once in a batch.

use std::collections::BTreeMap;
use std::ops::{IndexMut, Range};

use control::{
    ArrayOp, At, Cells, CopiesOp, EntryRef, Error, Kind, Leads, MOST_AT_A_TIME, MOST_CELLS_IN_ALL,
    MOST_IN_ALL, Op, ProfileOp, Result, StateOp, TableOp, Target, ValueSetOp,
};
use p4lang::ir::{EntryMatch, TableId};
use units::Time;

use super::Answer;
use super::array::span;
use crate::pipeline::Pipeline;
use crate::state::meter::MeterCell;
use crate::state::profile::{Group, Member, Profile};
use crate::state::table::TableState;
use crate::state::table::undo::Step;
use crate::state::{CounterCell, State};

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
    registers: SavedCells<u64>,
    counters: SavedCells<CounterCell>,
    meters: SavedCells<MeterCell>,
    value_sets: BTreeMap<usize, Vec<Vec<EntryMatch>>>,
    /// All of it, as it was when an operation was to change all of it; later ones need not be prepared for.
    state: Option<State>,
    /// Bytes of all this that were added at run time.
    added: u64,
}

fn keep<T: Clone>(saved: &mut BTreeMap<usize, T>, index: usize, objects: &[T]) {
    saved.entry(index).or_insert_with(|| objects[index].clone());
}

/// Cells (of a register their words) as each operation found them, in order: of which object, from which cell on.
type SavedCells<C> = Vec<(usize, usize, Vec<C>)>;

fn keep_cells<C: Clone>(saved: &mut SavedCells<C>, index: usize, at: Range<usize>, cells: &[C]) {
    saved.push((index, at.start, cells[at].to_vec()));
}

fn put_cells_back<C: Clone>(all: &mut [C], start: usize, cells: &[C]) {
    all[start..start + cells.len()].clone_from_slice(cells);
}

/// Parts of a profile by its index and theirs, as they were before any of the batch's operations; `None`: there was none.
type SavedParts<P> = BTreeMap<(usize, u32), Option<P>>;

fn put_back<T>(saved: BTreeMap<usize, T>, objects: &mut impl IndexMut<usize, Output = T>) {
    for (index, object) in saved {
        objects[index] = object;
    }
}

impl Saved {
    fn keep_member(&mut self, profile: usize, number: u32, of: &Profile) {
        self.members.entry((profile, number)).or_insert_with(|| {
            let member = of.member(number);
            self.added += member.map_or(0, |(_, args)| of.member_bytes(args));
            member.map(|(action, args)| (action, args.into()))
        });
    }

    fn keep_group(&mut self, profile: usize, number: u32, of: &Profile) {
        self.groups.entry((profile, number)).or_insert_with(|| {
            let group = of.group(number).cloned();
            self.added += group.as_ref().map_or(0, Group::bytes);
            group
        });
    }

    fn keep_table(&mut self, index: usize, tables: &[TableState]) {
        self.tables.entry(index).or_insert_with(|| {
            self.added += tables[index].added_bytes();
            tables[index].clone()
        });
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
        let mut cells = 0;
        for (index, op) in ops.iter().enumerate() {
            cells += self.cells_of(op).unwrap_or(0);
            if cells > MOST_CELLS_IN_ALL {
                let why = format!("a batch that sets {cells} cells is too large to be done whole");
                let cure = format!("set {MOST_CELLS_IN_ALL} at most, or let each be done by itself");
                return Err((index, Error::new(Kind::Unsupported, why).cure(cure)));
            }
        }
        let mut saved = Saved::default();
        self.replication.watch();
        let mut answers = Vec::with_capacity(ops.len());
        for (index, op) in ops.iter().enumerate() {
            match self.act_one(now, op, &mut saved) {
                Ok(answer) => answers.push(answer),
                Err(error) => {
                    self.restore(saved);
                    self.kept = 0;
                    return Err((index, error));
                }
            }
        }
        self.replication.settle(true);
        self.kept = 0;
        Ok(answers)
    }

    /// Does an operation, with what takes it back in `saved`.
    fn act_one(&mut self, now: Time, op: &Op, saved: &mut Saved) -> Result<Answer> {
        let step = self.save(op, saved)?;
        self.kept = saved.added;
        let answer = self.act(now, op)?;
        saved.steps.extend(step.map(|(table, step)| (table, step.of(&answer))));
        let (bytes, room) = (self.added_bytes(), self.program().room);
        if bytes > room {
            let why = format!(
                "the batch comes to {bytes} bytes with what it replaces, more than the {room} that are there for it"
            );
            return Err(Error::new(Kind::Full, why).cure("do it in several batches, or raise `state_bytes`"));
        }
        Ok(answer)
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
                saved.keep_table(table.table(program)?.index(), &state.tables);
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
            // Cells that are not there are refused later.
            Op::Array(
                op @ (ArrayOp::WriteRegister { register, .. } | ArrayOp::SetRegister { register, .. }),
            ) => {
                let index = register.register(program)?;
                let register = state.registers.get(index);
                let at = match op {
                    ArrayOp::SetRegister { at, .. } => *at,
                    ArrayOp::WriteRegister { start, words, .. } => {
                        let count = (words.0.len() / (8 * register.words_per_cell())) as u32;
                        At::Cells { start: *start, count }
                    }
                    _ => At::All,
                };
                if let Ok(cells) = span("", "", register.len(), at) {
                    saved.registers.push((index, cells.start, register.words(cells).collect()));
                }
            }
            Op::Array(ArrayOp::SetCounter { counter, at, .. }) => match counter.counter(program)? {
                Cells::Array(index) => {
                    let cells = &state.counters[index];
                    if let Ok(at) = span("", "", cells.len(), *at) {
                        keep_cells(&mut saved.counters, index, at, cells);
                    }
                }
                Cells::Direct(table) => step = self.direct_step(table, *at, saved),
            },
            Op::Array(ArrayOp::SetMeter { meter, at, .. }) => match meter.meter(program)? {
                Cells::Array(index) => {
                    let cells = &state.meters[index];
                    if let Ok(at) = span("", "", cells.len(), *at) {
                        keep_cells(&mut saved.meters, index, at, cells);
                    }
                }
                Cells::Direct(table) => step = self.direct_step(table, *at, saved),
            },
            Op::ValueSet(
                ValueSetOp::Add { value_set, .. }
                | ValueSetOp::Remove { value_set, .. }
                | ValueSetOp::Set { value_set, .. },
            ) => keep(&mut saved.value_sets, value_set.value_set(program)?, &state.value_sets),
            // It keeps its changes by itself.
            Op::Copies(_) => {}
            Op::State(StateOp::SetCrc { .. } | StateOp::Reset {}) => {
                saved.added += state.added();
                saved.state = Some(state.clone());
            }
            op => undoable(op)?,
        }
        let step = step.filter(|(table, _)| !saved.tables.contains_key(table));
        saved.added += step.as_ref().map_or(0, |(_, step)| step.added());
        Ok(step)
    }

    /// What an operation counts for of [`control::MOST_AT_A_TIME`]: the cells that it changes, or a 64th of all, if it is done.
    pub fn parts_of(&self, op: &Op) -> usize {
        self.cells_of(op).unwrap_or(0).max(MOST_AT_A_TIME / 64)
    }

    /// How many cells an operation changes: those beyond 8 words are several, and so are members of a value set by their fields.
    /// Members of groups, copies and actions of sets count as well, also those that are replaced.
    fn cells_of(&self, op: &Op) -> Result<usize> {
        let (program, state) = (self.program(), &self.state);
        let of = |len: usize, at: At| span("", "", len, at).map(|cells| cells.len());
        Ok(match op {
            Op::Array(ArrayOp::WriteRegister { register, words, .. }) => {
                let words_per_cell = state.registers.get(register.register(program)?).words_per_cell();
                words.0.len() / (8 * words_per_cell) * words_per_cell.div_ceil(8)
            }
            Op::Array(ArrayOp::SetRegister { register, at, .. }) => {
                let register = state.registers.get(register.register(program)?);
                of(register.len(), *at)? * register.words_per_cell().div_ceil(8)
            }
            Op::Array(ArrayOp::SetCounter { counter, at, .. }) => match counter.counter(program)? {
                Cells::Array(index) => of(state.counters[index].len(), *at)?,
                Cells::Direct(table) if *at == At::All => state.tables[table.index()].len(),
                Cells::Direct(_) => 1,
            },
            Op::Array(ArrayOp::SetMeter { meter, at, .. }) => match meter.meter(program)? {
                Cells::Array(index) => of(state.meters[index].len(), *at)?,
                Cells::Direct(_) => 1,
            },
            Op::ValueSet(ValueSetOp::Set { value_set, members }) => {
                members.len() * program.value_sets[value_set.value_set(program)?].fields.len()
            }
            Op::Profile(ProfileOp::SetGroup { profile, group, shares, .. }) => {
                shares.len() + self.shares_of(profile.profile(program)?, *group)
            }
            Op::Profile(ProfileOp::DeleteGroup { profile, group }) => {
                self.shares_of(profile.profile(program)?, *group)
            }
            // The group is made anew.
            Op::Profile(
                ProfileOp::JoinGroup { profile, group, .. } | ProfileOp::LeaveGroup { profile, group, .. },
            ) => 2 * self.shares_of(profile.profile(program)?, *group),
            Op::Copies(CopiesOp::SetGroup { group, copies, .. }) => {
                copies.len() + self.replication.copies_in(*group)
            }
            Op::Copies(CopiesOp::DeleteGroup { group, .. }) => self.replication.copies_in(*group),
            Op::Copies(CopiesOp::SetMirror { session, to, .. }) => to.copies.len() + self.copies_to(*session),
            Op::Copies(CopiesOp::DeleteMirror { session, .. }) => self.copies_to(*session),
            Op::Table(TableOp::Add { to, .. }) => choices(to),
            Op::Table(TableOp::Set { table, entry, to, .. }) => {
                to.as_ref().map_or(0, choices) + self.choices_of(table.table(program)?, entry)
            }
            Op::Table(TableOp::Delete { table, entry }) => self.choices_of(table.table(program)?, entry),
            Op::Table(TableOp::SetDefault { table, to, .. }) => {
                choices(to) + state.tables[table.table(program)?.index()].default_target().choices()
            }
            Op::Table(TableOp::ResetDefault { table }) => {
                state.tables[table.table(program)?.index()].default_target().choices()
            }
            _ => 0,
        })
    }

    fn shares_of(&self, profile: usize, group: u32) -> usize {
        self.state.profiles[profile].group(group).map_or(0, |group| group.shares().len())
    }

    fn copies_to(&self, session: u32) -> usize {
        self.replication.session(session).map_or(0, |session| session.copies.len())
    }

    /// Actions of the set of an entry that is there.
    fn choices_of(&self, id: TableId, entry: &EntryRef) -> usize {
        let state = &self.state.tables[id.index()];
        // Entries need not be looked for in tables without sets.
        let handle = if state.has_sets() { self.handle(self.program(), id, entry).ok() } else { None };
        handle.and_then(|handle| state.entry(handle)).map_or(0, |entry| entry.target().choices())
    }

    /// How a change of direct counters or meters is taken back: of one entry, or of all.
    fn direct_step(&self, table: TableId, at: At, saved: &mut Saved) -> Option<(usize, Step)> {
        let index = table.index();
        match at {
            At::Index(handle) => self.state.tables[index].changed(handle).map(|step| (index, step)),
            At::All => {
                saved.keep_table(index, &self.state.tables);
                None
            }
            At::Cells { .. } => None,
        }
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
        put_back(saved.value_sets, &mut self.state.value_sets);
        for (index, start, words) in saved.registers.into_iter().rev() {
            self.state.registers.set(index, start, words);
        }
        for (index, start, cells) in saved.counters.into_iter().rev() {
            put_cells_back(&mut self.state.counters[index], start, &cells);
        }
        for (index, start, cells) in saved.meters.into_iter().rev() {
            put_cells_back(&mut self.state.meters[index], start, &cells);
        }
    }
}

/// Actions of a set that an entry is to have.
fn choices(to: &Leads) -> usize {
    match to {
        Leads::Set(choices) => choices.len(),
        _ => 0,
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
