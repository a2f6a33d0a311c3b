//! When entries with an idle timeout are to be looked at.

use std::collections::BTreeSet;

/// At most one look for each entry, by a time of its own, which goes on from where it is when all ages begin anew: so that takes no
/// longer than one look, however many there are. A look may come before the timeout, never after it.
#[derive(Debug, Clone, Default)]
pub struct Aging {
    /// By the own time at which they are due.
    looks: BTreeSet<(u64, u32)>,
    /// When ages last began, and the own time then.
    began: (u64, u64),
    /// The latest own time from which on a timeout counts.
    latest: u64,
}

impl Aging {
    fn own(&self, time: u64) -> u64 {
        let (began, own) = self.began;
        time.saturating_sub(began).saturating_add(own)
    }

    /// Has an entry looked at when so long a timeout has passed `since` a time. Gives what [`Aging::remove`] takes, which is not 0.
    pub fn add(&mut self, since: u64, timeout: u64, handle: u32) -> u64 {
        let since = self.own(since);
        self.latest = self.latest.max(since);
        let due = since.saturating_add(timeout).max(1);
        self.add_again(due, handle);
        due
    }

    /// As before it was removed.
    pub fn add_again(&mut self, due: u64, handle: u32) {
        self.looks.insert((due, handle));
    }

    pub fn remove(&mut self, due: u64, handle: u32) {
        self.looks.remove(&(due, handle));
    }

    pub fn clear(&mut self) {
        self.looks.clear();
    }

    /// Has all timeouts count from `now` on.
    pub fn begin(&mut self, now: u64) {
        self.began = (now, self.latest);
    }

    pub fn is_due(&self, now: u64) -> bool {
        self.looks.first().is_some_and(|(due, _)| *due <= self.own(now))
    }

    /// The entry that is to be looked at next, if that is by now.
    pub fn pop(&mut self, now: u64) -> Option<u32> {
        if !self.is_due(now) {
            return None;
        }
        self.looks.pop_first().map(|(_, handle)| handle)
    }
}
