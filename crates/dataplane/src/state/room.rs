//! Room for what is added at run time beside a program's declared sizes: members of action profiles without a size, groups,
//! sets of actions, the control plane's notes of entries, multicast groups and mirror sessions.
//!
//! Each container counts the bytes that it has (`added`) where it changes them. Beside them counts what a batch keeps until it is
//! done, to be able to take it back. Their sum is bounded by [`p4lang::ir::Program::room`].

use control::{Error, Kind, Result};

use crate::pipeline::Pipeline;
use crate::state::State;

/// Bytes of one object beside its own: its key, its place in a map, what the allocator adds to each of its parts.
pub(crate) const SLOT: u64 = 64;

impl State {
    /// Bytes that were added at run time.
    pub(crate) fn added(&self) -> u64 {
        let tables: u64 = self.tables.iter().map(|table| table.added_bytes()).sum();
        tables + self.profiles.iter().map(|profile| profile.added_bytes()).sum::<u64>()
    }
}

impl Pipeline {
    /// Bytes that were added at run time, with what a batch keeps of what it has changed.
    pub fn added_bytes(&self) -> u64 {
        self.state.added() + self.replication.added_bytes() + self.kept
    }

    /// Refuses to have `after` bytes where there are `before` if there is no room for them. `what` they are for.
    pub(crate) fn check_room(&self, what: impl FnOnce() -> String, before: u64, after: u64) -> Result<()> {
        if after <= before {
            return Ok(());
        }
        let (want, added, room) = (after - before, self.added_bytes(), self.program().room);
        if added.saturating_add(want) <= room {
            return Ok(());
        }
        let why = format!(
            "{} needs {want} bytes more; {added} of the {room} are taken that `state_bytes` leaves beside declared sizes",
            what()
        );
        Err(Error::new(Kind::Full, why)
            .cure("delete groups, sets of actions or notes, or raise `state_bytes`"))
    }
}
