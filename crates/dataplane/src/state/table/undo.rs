//! Changes of a table that can be taken back one by one, the last first: each costs what the change itself costs, whatever the
//! table's size. What is taken back is as before: entries with their handles, order, counters, meters and timeouts, and the
//! handles that are free.

use control::Answer;

use super::{Entry, TableState, Target};

/// How to take one change back.
#[derive(Debug)]
pub(crate) enum Step {
    /// An entry was added, under a handle that nobody had before or under one that was free.
    Added {
        handle: Option<u32>,
        fresh: bool,
    },
    Removed(u32, Box<Entry>),
    /// As it was.
    Changed(u32, Box<Entry>),
    /// What a miss led to, and the note of it.
    Default(Target, Vec<u8>),
}

impl Step {
    /// With the handle that the change has given.
    pub(crate) fn of(self, answer: &Answer) -> Step {
        match (self, answer) {
            (Step::Added { fresh, .. }, Answer::Handle(handle)) => {
                Step::Added { handle: Some(*handle), fresh }
            }
            (step, _) => step,
        }
    }

    /// Bytes that it keeps of what was added at run time.
    pub(crate) fn added(&self) -> u64 {
        match self {
            Step::Added { .. } => 0,
            Step::Removed(_, entry) | Step::Changed(_, entry) => entry.added(),
            Step::Default(target, note) => target.added() + note.len() as u64,
        }
    }
}

impl TableState {
    /// Before an entry is added; [`Step::of`] adds its handle.
    pub(crate) fn adding(&self) -> Step {
        Step::Added { handle: None, fresh: self.free.is_empty() }
    }

    /// Before an entry is removed.
    pub(crate) fn removed(&self, handle: u32) -> Option<Step> {
        self.entry(handle).map(|entry| Step::Removed(handle, Box::new(entry.clone())))
    }

    /// Before an entry is changed.
    pub(crate) fn changed(&self, handle: u32) -> Option<Step> {
        self.entry(handle).map(|entry| Step::Changed(handle, Box::new(entry.clone())))
    }

    /// Before the default is changed.
    pub(crate) fn defaulted(&self) -> Step {
        Step::Default(self.default.clone(), self.default_note.clone())
    }

    /// Takes back the last change that has not been taken back.
    pub(crate) fn take_back(&mut self, step: Step) {
        match step {
            Step::Added { handle, fresh } => {
                handle.map(|handle| self.remove(handle));
                self.added -= 1;
                if fresh {
                    self.free.pop();
                    self.entries.pop();
                }
            }
            Step::Removed(handle, entry) => {
                let free = self.free.pop();
                debug_assert_eq!(free, Some(handle));
                self.put(handle, *entry);
            }
            Step::Changed(handle, entry) => {
                self.set_target(handle, entry.target.clone());
                self.set_idle_timeout(handle, 0, 0);
                self.added_bytes += entry.added();
                if entry.due > 0 {
                    self.aging.add_again(entry.due, handle);
                }
                if let Some(after) = self.entries[handle as usize].replace(*entry) {
                    self.added_bytes -= after.added();
                }
            }
            Step::Default(target, note) => {
                self.set_default(target);
                self.set_default_note(note);
            }
        }
    }
}
