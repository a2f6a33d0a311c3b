//! When entries with an idle timeout are to be looked at.

use std::collections::BTreeSet;

/// At most one look for each entry.
#[derive(Debug, Clone, Default)]
pub struct Aging {
    looks: BTreeSet<(u64, u32)>,
}

impl Aging {
    pub fn add(&mut self, due: u64, handle: u32) {
        self.looks.insert((due, handle));
    }

    pub fn remove(&mut self, due: u64, handle: u32) {
        self.looks.remove(&(due, handle));
    }

    pub fn is_due(&self, now: u64) -> bool {
        self.looks.first().is_some_and(|(due, _)| *due <= now)
    }

    /// The entry that is to be looked at next, if that is by now.
    pub fn pop(&mut self, now: u64) -> Option<u32> {
        if !self.is_due(now) {
            return None;
        }
        self.looks.pop_first().map(|(_, handle)| handle)
    }
}
