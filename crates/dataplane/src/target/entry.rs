//! What an entry of a table has beside its action: direct counter, direct meter, idle timeout, the control plane's note.

use control::{Extras, Kind, Result, check};
use p4lang::ir::{EntryMatch, TableId};

use super::{refuse, refuse_as};
use crate::pipeline::Pipeline;
use crate::state::table::Target;

impl Pipeline {
    /// The entry with this match and, where it counts, priority.
    pub fn table_find(&self, id: TableId, found: &[EntryMatch], priority: u32) -> Result<u32> {
        check::check_key(self.program(), id, found)?;
        match self.state.tables[id.index()].find(found, priority) {
            Some(handle) => Ok(handle),
            None => {
                let name = &self.program()[id].info.name;
                refuse_as(Kind::NotFound, format!("table `{name}` has no entry with this match"))
            }
        }
    }

    /// As [`Pipeline::table_add`], with what else the entry has.
    pub fn entry_add(
        &mut self,
        id: TableId,
        found: Vec<EntryMatch>,
        priority: u32,
        target: Target,
        extras: &Extras,
        now: u64,
    ) -> Result<u32> {
        self.check_extras(id, extras)?;
        let note = extras.note.as_ref().map_or(0, Vec::len) as u64;
        self.check_entry_room(id, 0, target.added() + note)?;
        let handle = self.table_add(id, found, priority, target)?;
        // Its age counts from now on, with or without a timeout.
        self.write_extras(id, handle, extras, extras.idle_timeout.or(Some(0)), now);
        Ok(handle)
    }

    /// Changes what an entry leads to, if that is given, and what else it has. Of a const entry only the direct counter and meter
    /// can be changed.
    pub fn entry_modify(
        &mut self,
        id: TableId,
        handle: u32,
        target: Option<Target>,
        extras: &Extras,
        now: u64,
    ) -> Result<()> {
        self.check_extras(id, extras)?;
        let entry = self.state.tables[id.index()].entry(handle);
        let ages = extras.idle_timeout.is_some_and(|timeout| timeout > 0);
        if ages && entry.is_some_and(|e| e.is_const) {
            return refuse(format!("entry {handle} is const: it does not age"));
        }
        if let Some(entry) = entry {
            let to = target.as_ref().unwrap_or(entry.target()).added();
            let note = extras.note.as_deref().unwrap_or(entry.note());
            self.check_entry_room(id, entry.added(), to + note.len() as u64)?;
        }
        match target {
            Some(target) => self.table_modify(id, handle, target)?,
            None if entry.is_none() => {
                let name = &self.program()[id].info.name;
                return refuse_as(Kind::NotFound, format!("table `{name}` has no entry {handle}"));
            }
            None => {}
        }
        self.write_extras(id, handle, extras, extras.idle_timeout, now);
        Ok(())
    }

    pub(super) fn check_entry_room(&self, id: TableId, before: u64, after: u64) -> Result<()> {
        self.check_room(|| format!("an entry of table `{}`", self.program()[id].info.name), before, after)
    }

    fn check_extras(&self, id: TableId, extras: &Extras) -> Result<()> {
        let table = &self.program()[id];
        let name = &table.info.name;
        if extras.counter.is_some() && table.direct_counter.is_none() {
            return refuse(format!("table `{name}` has no direct counter"));
        }
        if matches!(extras.meter, Some(Some(_))) && table.direct_meter.is_none() {
            return refuse(format!("table `{name}` has no direct meter"));
        }
        if extras.idle_timeout.is_some_and(|timeout| timeout > 0) && !table.support_timeout {
            return refuse(format!("table `{name}` has no idle timeouts; give it `support_timeout = true`"));
        }
        Ok(())
    }

    fn write_extras(
        &mut self,
        id: TableId,
        handle: u32,
        extras: &Extras,
        idle_timeout: Option<u64>,
        now: u64,
    ) {
        let state = &mut self.state.tables[id.index()];
        if let Some(entry) = state.entry_mut(handle) {
            if let Some(counts) = extras.counter {
                (entry.packets, entry.bytes) = counts;
            }
            if let Some(rates) = extras.meter {
                entry.meter.configure(rates, now);
            }
        }
        if let Some(note) = &extras.note {
            state.set_note(handle, note.clone());
        }
        if let Some(timeout) = idle_timeout {
            state.set_idle_timeout(handle, timeout, now);
        }
    }
}
