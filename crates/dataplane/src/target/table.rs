//! Tables: entries and what a miss leads to.

use control::{EntryRef, Kind, Leads, Name, Result, Row, TableOp, TableTotals, check};
use num_bigint::BigUint;
use p4lang::ir::{EntryMatch, Program, TableId};
use units::Time;

use super::{Answer, refuse, refuse_as};
use crate::pipeline::Pipeline;
use crate::state::profile::{ActionSet, Choice};
use crate::state::table::{Entry, Page, Target, action_args, action_words};

impl Pipeline {
    pub fn table_id(&self, name: &str) -> Result<TableId> {
        Name::from(name).table(self.program())
    }

    /// Index in the table's action list.
    pub fn action_index(&self, table: TableId, name: &str) -> Result<u32> {
        Name::from(name).action(self.program(), table)
    }

    /// An action with its data, checked.
    pub fn action_target(&self, table: TableId, action: u32, args: &[BigUint]) -> Result<Target> {
        let program = self.program();
        check::check_values(program, table, action, args)?;
        Ok(Target::Action { action, args: action_words(program, &program[table], action, args) })
    }

    fn check_target(&self, id: TableId, target: &Target, default: bool) -> Result<()> {
        let table = &self.program()[id];
        match target {
            Target::Action { action, .. } => {
                let listed = &table.actions[*action as usize];
                let name = &self.program()[listed.action].info.name;
                if default && listed.table_only {
                    return refuse_as(Kind::Denied, format!("action `{name}` is @tableonly"));
                }
                if !default && listed.default_only {
                    return refuse_as(Kind::Denied, format!("action `{name}` is @defaultonly"));
                }
                if !default && table.implementation.is_some() {
                    return refuse(format!(
                        "table `{}` takes members of its action profile, not actions",
                        table.info.name
                    ));
                }
                Ok(())
            }
            Target::Member(member) => match table.implementation {
                Some(profile) if self.state.profiles[profile.index()].member(*member).is_some() => Ok(()),
                Some(_) => refuse_as(Kind::NotFound, format!("there is no member {member}")),
                None => refuse(format!("table `{}` has no action profile", table.info.name)),
            },
            Target::Group(group) => match table.implementation {
                Some(profile) if self.state.profiles[profile.index()].group(*group).is_some() => Ok(()),
                Some(_) => refuse_as(Kind::NotFound, format!("there is no group {group}")),
                None => refuse(format!("table `{}` has no action selector", table.info.name)),
            },
            Target::Set(set) => self.check_choices(id, set.choices()),
        }
    }

    /// Adds an entry; gives its handle.
    pub fn table_add(
        &mut self,
        id: TableId,
        found: Vec<EntryMatch>,
        priority: u32,
        target: Target,
    ) -> Result<u32> {
        let program = self.program().clone();
        let table = &program[id];
        if table.const_entries {
            return refuse_as(Kind::Denied, format!("the entries of table `{}` are const", table.info.name));
        }
        if table.keys.is_empty() {
            let name = &table.info.name;
            let why =
                format!("table `{name}` has no keys, so no packet finds an entry; set its default action");
            return refuse_as(Kind::Invalid, why);
        }
        check::check_key(&program, id, &found)?;
        self.check_target(id, &target, false)?;
        self.check_style(id, &target)?;
        self.check_entry_room(id, 0, target.added())?;
        let state = &mut self.state.tables[id.index()];
        if state.find(&found, priority).is_some() {
            return refuse_as(
                Kind::Exists,
                format!("table `{}` has an entry with this match already", table.info.name),
            );
        }
        if state.len() as u64 >= table.size {
            return refuse_as(
                Kind::Full,
                format!("table `{}` is full: its size is {}", table.info.name, table.size),
            );
        }
        Ok(state.insert(found, priority, target, false))
    }

    pub fn table_modify(&mut self, id: TableId, handle: u32, target: Target) -> Result<()> {
        self.writable(id, handle)?;
        self.check_target(id, &target, false)?;
        self.check_style(id, &target)?;
        let before = self.state.tables[id.index()].entry(handle).map_or(0, |entry| entry.target().added());
        self.check_entry_room(id, before, target.added())?;
        self.state.tables[id.index()].set_target(handle, target);
        Ok(())
    }

    pub fn table_delete(&mut self, id: TableId, handle: u32) -> Result<()> {
        self.writable(id, handle)?;
        self.state.tables[id.index()].remove(handle);
        Ok(())
    }

    fn writable(&self, id: TableId, handle: u32) -> Result<()> {
        let table = &self.program()[id];
        match self.state.tables[id.index()].entry(handle) {
            None => refuse_as(Kind::NotFound, format!("table `{}` has no entry {handle}", table.info.name)),
            Some(entry) if entry.is_const => {
                refuse_as(Kind::Denied, format!("entry {handle} of table `{}` is const", table.info.name))
            }
            Some(_) => Ok(()),
        }
    }

    /// Removes all entries but those of the program that are const.
    pub fn table_clear(&mut self, id: TableId) -> Result<()> {
        let state = &mut self.state.tables[id.index()];
        let handles: Vec<u32> = state.iter().filter(|(_, e)| !e.is_const).map(|(h, _)| h).collect();
        for handle in handles {
            state.remove(handle);
        }
        Ok(())
    }

    pub fn table_set_default(&mut self, id: TableId, target: Target) -> Result<()> {
        let table = &self.program()[id];
        if table.const_default {
            return refuse_as(
                Kind::Denied,
                format!("the default action of table `{}` is const", table.info.name),
            );
        }
        if table.implementation.is_none() || !matches!(target, Target::Action { .. }) {
            self.check_target(id, &target, true)?;
        }
        self.check_default_room(id, self.state.tables[id.index()].default_target().added(), target.added())?;
        self.state.tables[id.index()].set_default(target);
        Ok(())
    }

    fn check_default_room(&self, id: TableId, before: u64, after: u64) -> Result<()> {
        self.check_room(|| format!("the default of table `{}`", self.program()[id].info.name), before, after)
    }
}

/// Entries that are read at a time, of a [`Page`].
const PAGE: usize = 256;
/// Pages for which packets wait at most.
const PAGES: usize = 4;
/// Handles that are gone through for them at most.
const PASSED: usize = 1024;
/// Handles whose entries are summed at a time.
const SUMMED: usize = 4096;
/// How many times at a time it is looked whether an entry is idle, in all tables.
const LOOKS: usize = 1024;

impl Pipeline {
    pub(super) fn act_on_table(&mut self, now: Time, op: &TableOp) -> Result<Answer> {
        let program = self.program().clone();
        let ps = now.as_ps();
        match op {
            TableOp::Add { table, key, priority, to, extras } => {
                let id = table.table(&program)?;
                let found = check::key(&program, id, key)?;
                let priority = check::priority(&program, id, *priority)?;
                let target = self.target(&program, id, to)?;
                return self.entry_add(id, found, priority, target, extras, ps).map(Answer::Handle);
            }
            TableOp::Set { table, entry, to, extras } => {
                let id = table.table(&program)?;
                let handle = self.handle(&program, id, entry)?;
                let target = to.as_ref().map(|to| self.target(&program, id, to)).transpose()?;
                self.entry_modify(id, handle, target, extras, ps)?;
            }
            TableOp::Delete { table, entry } => {
                let id = table.table(&program)?;
                let handle = self.handle(&program, id, entry)?;
                self.table_delete(id, handle)?;
            }
            TableOp::Clear { table } => self.table_clear(table.table(&program)?)?,
            TableOp::SetDefault { table, to, note } => {
                let id = table.table(&program)?;
                let target = self.target(&program, id, to)?;
                if let Some(note) = note {
                    let state = &self.state.tables[id.index()];
                    let before = state.default_note().len() as u64 + state.default_target().added();
                    self.check_default_room(id, before, note.len() as u64 + target.added())?;
                }
                self.table_set_default(id, target)?;
                if let Some(note) = note {
                    self.state.tables[id.index()].set_default_note(note.clone());
                }
            }
            TableOp::ResetDefault { table } => {
                self.state.tables[table.table(&program)?.index()].reset_default();
            }
            TableOp::ReadDefault { table } => {
                let id = table.table(&program)?;
                let state = &self.state.tables[id.index()];
                let to = leads(&program, id, state.default_target());
                return Ok(Answer::Default { to, note: state.default_note().to_vec() });
            }
            TableOp::Read { table, start, only } => {
                return self.rows(&program, ps, table.table(&program)?, (*start, 1), only.as_ref());
            }
            TableOp::TakeIdle {} => return Ok(self.take_idle(&program, ps)),
            TableOp::Totals { table, start } => {
                let only = table.as_ref().map(|table| table.table(&program)).transpose()?;
                return Ok(Answer::Totals(self.totals(&program, only, *start)));
            }
        }
        Ok(Answer::Done)
    }

    /// As the operation, with several pages of a reading of all entries: as many as packets may wait for.
    ///
    /// # Errors
    /// As the operation.
    pub fn act_on_pages(&mut self, now: Time, op: &TableOp) -> Result<Answer> {
        let TableOp::Read { table, start, only: None } = op else { return self.act_on_table(now, op) };
        let program = self.program().clone();
        self.rows(&program, now.as_ps(), table.table(&program)?, (*start, PAGES), None)
    }

    /// What an entry leads to, as lookups have it.
    fn target(&self, program: &Program, id: TableId, to: &Leads) -> Result<Target> {
        let words = |action, values: &[BigUint]| action_words(program, &program[id], action, values);
        Ok(match to {
            Leads::Action(call) => {
                let (action, values) = check::call(program, id, call)?;
                Target::Action { action, args: words(action, &values) }
            }
            Leads::Member(member) => Target::Member(*member),
            Leads::Group(group) => Target::Group(*group),
            Leads::Set(choices) => {
                let choice = |choice: &control::Choice| {
                    let (action, values) = check::call(program, id, &choice.call)?;
                    let (weight, watch) = (choice.weight, choice.watch.clone());
                    Ok(Choice { action, args: words(action, &values), weight, watch })
                };
                let choices = choices.iter().map(choice).collect::<Result<Vec<_>>>()?;
                // Weights are looked at before a set is made of them: it has each action as often as its weight.
                self.check_choices(id, &choices)?;
                Target::Set(Box::new(ActionSet::new(choices)))
            }
        })
    }

    pub(super) fn handle(&self, program: &Program, id: TableId, entry: &EntryRef) -> Result<u32> {
        match entry {
            EntryRef::Handle(handle) => Ok(*handle),
            EntryRef::Key(key, priority) => {
                let found = check::key(program, id, key)?;
                self.table_find(id, &found, check::priority(program, id, *priority)?)
            }
        }
    }

    fn rows(
        &self,
        program: &Program,
        now: u64,
        id: TableId,
        (from, pages): (u32, usize),
        only: Option<&EntryRef>,
    ) -> Result<Answer> {
        let state = &self.state.tables[id.index()];
        let row = |handle, entry: &Entry| row(program, id, now, handle, entry, state.last_hit(entry));
        let handle = match only {
            None => {
                let (entries, next) = state.page(from, Page::of(pages * PAGE), pages * PASSED);
                let rows = entries.into_iter().map(|(handle, entry)| row(handle, entry)).collect();
                return Ok(Answer::Rows { rows, next });
            }
            Some(EntryRef::Handle(handle)) => Some(*handle),
            Some(EntryRef::Key(key, priority)) => {
                let found = check::key(program, id, key)?;
                state.find(&found, check::priority(program, id, *priority)?)
            }
        };
        let found = handle.and_then(|handle| Some(row(handle, state.entry(handle)?)));
        Ok(Answer::Rows { rows: found.into_iter().collect(), next: None })
    }

    /// Entries of all tables that were not hit for as long as their timeout; of each table a page at most, after some looks, and of
    /// all of them some pages. The table that these end at is first the next time, or the one after it if it has had its turn.
    fn take_idle(&mut self, program: &Program, now: u64) -> Answer {
        let (mut rows, mut page) = (Vec::new(), Page::of(PAGES * PAGE));
        let ages = || program.tables.iter().enumerate().filter(|(_, t)| t.support_timeout);
        let looks = (LOOKS / ages().count().max(1)).max(1);
        let first = ages().position(|(index, _)| index >= self.state.idle_first).unwrap_or(0);
        for (index, table) in ages().skip(first).chain(ages().take(first)) {
            let (id, state) = (TableId(index as u32), &mut self.state.tables[index]);
            let taken = state.take_idle(now, PAGE, looks, &mut page);
            for handle in &taken {
                let found = state.entry(*handle);
                let found = found.map(|entry| row(program, id, now, *handle, entry, state.last_hit(entry)));
                rows.extend(found.map(|row| (table.info.name.clone(), row)));
            }
            if page.is_full() {
                self.state.idle_first = if taken.is_empty() { index } else { index + 1 };
                break;
            }
        }
        Answer::Idle(rows)
    }

    /// Whether there may be more entries that were not hit for as long as their timeout.
    pub fn is_due(&self, now: Time) -> bool {
        self.state.tables.iter().any(|table| table.is_due(now.as_ps()))
    }

    fn totals(&self, program: &Program, only: Option<TableId>, start: Option<u32>) -> Vec<TableTotals> {
        let tables = program.tables.iter().zip(&self.state.tables).enumerate();
        let asked = tables.filter(|(index, _)| only.is_none_or(|id| id.index() == *index));
        let totals = asked.map(|(_, (declared, table))| {
            let sum = |(packets, bytes), entry: &Entry| (packets + entry.packets, bytes + entry.bytes);
            let mut totals = TableTotals {
                table: declared.info.name.clone(),
                size: declared.size,
                entries: table.len() as u64,
                counts: None,
                next: None,
            };
            // Entries are gone through only where they count.
            if declared.direct_counter.is_some() {
                let (entries, next) = table.some(start.unwrap_or(0), start.map_or(usize::MAX, |_| SUMMED));
                totals.counts = Some(entries.fold((0, 0), sum));
                totals.next = next;
            }
            totals
        });
        totals.collect()
    }
}

fn row(program: &Program, id: TableId, now: u64, handle: u32, entry: &Entry, last_hit: u64) -> Row {
    let keys = program[id].keys.iter().zip(&entry.matches);
    Row {
        handle,
        matches: keys.map(|(key, m)| control::Match::canonical(m, key.expr.width)).collect(),
        priority: entry.priority,
        to: leads(program, id, entry.target()),
        packets: entry.packets,
        bytes: entry.bytes,
        rates: entry.meter.rates(),
        idle_timeout: entry.idle_timeout,
        idle_for: now.saturating_sub(last_hit),
        is_const: entry.is_const,
        note: entry.note().to_vec(),
        order: entry.order(),
    }
}

/// An action of a table by its name.
pub(super) fn call(program: &Program, id: TableId, action: u32, words: &[u64]) -> control::Call {
    let action = program[id].actions[action as usize].action;
    let values = action_args(program, action, words).iter().map(control::Value::from).collect();
    control::Call { action: Name::from(program[action].info.name.as_str()), values }
}

fn leads(program: &Program, id: TableId, target: &Target) -> Leads {
    match target {
        Target::Action { action, args } => Leads::Action(call(program, id, *action, args)),
        Target::Member(member) => Leads::Member(*member),
        Target::Group(group) => Leads::Group(*group),
        Target::Set(set) => {
            let choice = |choice: &Choice| control::Choice {
                call: call(program, id, choice.action, &choice.args),
                weight: choice.weight,
                watch: choice.watch.clone(),
            };
            Leads::Set(set.choices().iter().map(choice).collect())
        }
    }
}
