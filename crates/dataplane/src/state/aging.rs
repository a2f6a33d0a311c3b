//! When entries with an idle timeout are to be looked at: a heap of looks, some of which nobody waits for any more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug, Clone, Default)]
pub struct Aging {
    looks: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Aging {
    pub fn push(&mut self, due: u64, handle: u32) {
        self.looks.push(Reverse((due, handle)));
    }

    pub fn is_due(&self, now: u64) -> bool {
        self.looks.peek().is_some_and(|Reverse((due, _))| *due <= now)
    }

    /// The next look that is due.
    pub fn pop(&mut self, now: u64) -> Option<(u64, u32)> {
        if !self.is_due(now) {
            return None;
        }
        self.looks.pop().map(|Reverse(first)| first)
    }

    pub fn len(&self) -> usize {
        self.looks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.looks.is_empty()
    }

    /// Throws out the looks for which `wanted` does not hold.
    pub fn keep(&mut self, wanted: impl Fn(u64, u32) -> bool) {
        self.looks.retain(|Reverse((due, handle))| wanted(*due, *handle));
    }
}
