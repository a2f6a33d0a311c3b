//! Room for what is added at run time beside a program's declared sizes: members of action profiles without a size, groups,
//! sets of actions, the control plane's notes of entries, multicast groups and mirror sessions.
//!
//! Each container counts the bytes that it has (`added`) where it changes them. Beside them counts what a batch keeps until it is
//! done, to be able to take it back. Their sum is bounded by [`p4lang::ir::Program::room`].

use std::fmt;
use std::mem::offset_of;
use std::ops::{Deref, Index, IndexMut};

use control::{Error, Kind, Result};

use super::profile::Profile;
use super::table::TableState;
use crate::jit::native::vec_pointer;
use crate::pipeline::Pipeline;
use crate::state::State;

/// Bytes of one object beside its own: its key, its place in a map, what the allocator adds to each of its parts.
pub(crate) const SLOT: u64 = 64;

/// Counts the bytes that were added to it.
pub trait Added {
    fn added(&self) -> u64;
}

impl Added for TableState {
    fn added(&self) -> u64 {
        self.added_bytes()
    }
}

impl Added for Profile {
    fn added(&self) -> u64 {
        self.added_bytes()
    }
}

/// All tables, or all profiles. Their bytes are known without going through them.
#[derive(Clone)]
pub struct Counted<T> {
    objects: Vec<T>,
    /// The object that was given out last to be changed.
    open: usize,
    /// Bytes of the others.
    others: u64,
}

impl<T: Added> Counted<T> {
    pub(crate) fn new(objects: Vec<T>) -> Counted<T> {
        let others = objects.iter().skip(1).map(T::added).sum();
        Counted { objects, open: 0, others }
    }

    fn of_open(&self) -> u64 {
        self.objects.get(self.open).map_or(0, T::added)
    }

    pub(crate) fn added(&self) -> u64 {
        let all = self.others + self.of_open();
        debug_assert_eq!(all, self.objects.iter().map(T::added).sum::<u64>());
        all
    }

    /// Where its objects' address is.
    pub(crate) fn pointer() -> usize {
        offset_of!(Counted<T>, objects) + vec_pointer::<T>()
    }

    /// An object for a change that adds and removes no bytes: faster.
    #[inline]
    pub(crate) fn for_packet(&mut self, index: usize) -> &mut T {
        &mut self.objects[index]
    }

    /// Changes all.
    pub(crate) fn each(&mut self, change: impl FnMut(&mut T)) {
        self.objects.iter_mut().for_each(change);
        *self = Counted::new(std::mem::take(&mut self.objects));
    }
}

impl<T> Deref for Counted<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.objects
    }
}

impl<T> Index<usize> for Counted<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        &self.objects[index]
    }
}

impl<T: Added> IndexMut<usize> for Counted<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        if index != self.open {
            self.others = self.others + self.of_open() - self.objects[index].added();
            self.open = index;
        }
        &mut self.objects[index]
    }
}

impl<'a, T> IntoIterator for &'a Counted<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.objects.iter()
    }
}

impl<T: fmt::Debug> fmt::Debug for Counted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.objects.fmt(f)
    }
}

impl State {
    /// Bytes that were added at run time.
    pub(crate) fn added(&self) -> u64 {
        self.tables.added() + self.profiles.added()
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

#[cfg(test)]
mod tests {
    use super::*;

    impl Added for u64 {
        fn added(&self) -> u64 {
            *self
        }
    }

    #[test]
    fn the_sum_follows_changes() {
        assert_eq!(Counted::<u64>::new(Vec::new()).added(), 0);
        let mut objects = Counted::new(vec![1, 2, 4]);
        assert_eq!(objects.added(), 7);
        objects[2] = 10;
        assert_eq!(objects.added(), 13);
        objects[0] = 0;
        objects[2] += 5;
        let (copy, mut other) = (objects.clone(), 3);
        objects[1] = 0;
        assert_eq!((objects.added(), copy.added()), (15, 17));
        std::mem::swap(&mut objects[0], &mut other);
        objects.each(|object| *object *= 2);
        assert_eq!((objects.added(), objects[0], objects.len()), (36, 6, 3));
    }
}
