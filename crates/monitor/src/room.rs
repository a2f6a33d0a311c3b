//! Memory for segments that wait and for samples, of all connections together.

use std::collections::VecDeque;
use std::ops::{Deref, Range};

/// Elements of a list that has some.
const FEWEST: usize = 4;
/// Elements up to which a list keeps its memory when few of them are left.
const KEEPS: usize = 256;

/// Bytes of lists and counts. Asked only where one of them grows.
#[derive(Debug)]
pub struct Room {
    most: u64,
    taken: u64,
    /// Segments that give no sample, as there was no memory to keep them.
    pub unsampled: u64,
    /// Samples that count, but not among those that quantiles are of.
    pub without_detail: u64,
    /// Whether there was too little since the last time that this was asked.
    short: bool,
}

impl Room {
    pub fn new(most: u64) -> Room {
        Room { most, taken: 0, unsampled: 0, without_detail: 0, short: false }
    }

    /// Takes bytes, if so many are left.
    pub fn take(&mut self, bytes: usize) -> bool {
        self.take_below(bytes, self.most)
    }

    /// The same for samples, which leave a part to segments that wait: without these there would be none.
    pub fn take_for_detail(&mut self, bytes: usize) -> bool {
        self.take_below(bytes, self.most - self.most / 8)
    }

    fn take_below(&mut self, bytes: usize, most: u64) -> bool {
        let taken = self.taken.saturating_add(bytes as u64);
        let fits = taken <= most;
        if fits {
            self.taken = taken;
        }
        self.short |= !fits;
        fits
    }

    pub fn give(&mut self, bytes: usize) {
        self.taken -= bytes as u64;
    }

    /// Forgets what is taken: it is counted anew.
    pub fn recount(&mut self, taken: u64) {
        self.taken = taken;
    }

    /// Whether there was too little since this was asked last.
    pub fn was_short(&mut self) -> bool {
        std::mem::take(&mut self.short)
    }

    #[cfg(test)]
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

/// How many elements a full list has next.
pub fn next_size(full: usize, most: usize) -> usize {
    (full * 2).clamp(FEWEST, most)
}

/// A queue with memory of a [`Room`], which gives most of it back when few elements are left.
#[derive(Debug)]
pub struct Queue<T>(VecDeque<T>);

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue(VecDeque::new())
    }
}

impl<T> Deref for Queue<T> {
    type Target = VecDeque<T>;

    fn deref(&self) -> &VecDeque<T> {
        &self.0
    }
}

impl<T> Queue<T> {
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<T>()
    }

    /// Whether one more fits, of `most`.
    #[inline]
    fn fits(&mut self, most: usize, room: &mut Room) -> bool {
        self.0.len() < most && (self.0.len() < self.0.capacity() || self.grow(most, room))
    }

    #[cold]
    fn grow(&mut self, most: usize, room: &mut Room) -> bool {
        let (len, before) = (self.0.len(), self.bytes());
        let more = next_size(len, most) - len;
        if !room.take(more * size_of::<T>()) {
            room.unsampled += 1;
            return false;
        }
        self.0.reserve_exact(more);
        debug_assert_eq!(self.bytes(), before + more * size_of::<T>());
        true
    }

    /// Adds one behind all others if there are less than `most`, and room for it.
    #[inline]
    pub fn push(&mut self, one: T, most: usize, room: &mut Room) -> bool {
        let fits = self.fits(most, room);
        if fits {
            self.0.push_back(one);
        }
        fits
    }

    /// The same at a place.
    pub fn insert(&mut self, at: usize, one: T, most: usize, room: &mut Room) -> bool {
        let fits = self.fits(most, room);
        if fits {
            self.0.insert(at, one);
        }
        fits
    }

    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.0.get_mut(at)
    }

    /// Takes the first; once all are taken that will be, [`Queue::shrink`] follows.
    #[inline]
    pub fn pop(&mut self) {
        self.0.pop_front();
    }

    /// Takes some out; their memory is for others.
    pub fn remove(&mut self, which: Range<usize>) {
        self.0.drain(which);
    }

    #[inline]
    pub fn clear(&mut self, room: &mut Room) {
        self.0.clear();
        self.shrink(room);
    }

    /// Gives memory back where few elements are left of many.
    #[inline]
    pub fn shrink(&mut self, room: &mut Room) {
        if self.0.capacity() > KEEPS && self.0.len() < self.0.capacity() / 8 {
            self.give_back(room);
        }
    }

    #[cold]
    fn give_back(&mut self, room: &mut Room) {
        let before = self.bytes();
        self.0.shrink_to(KEEPS.max(self.0.len() * 2));
        room.give(before - self.bytes());
    }
}
