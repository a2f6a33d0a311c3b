//! A four-ary heap of events, four siblings to a line of the cache.

use std::hint::select_unpredictable;

use crate::event::{Entry, NONE};

/// Four siblings, in one line of the cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Four([Entry; 4]);

impl Four {
    /// The least, and which it is. No branches: which is the least cannot be predicted.
    #[inline(always)]
    fn least(&self) -> (usize, Entry) {
        let less = |a: (usize, Entry), b: (usize, Entry)| select_unpredictable(b.1 < a.1, b, a);
        let [a, b, c, d] = self.0;
        less(less((0, a), (1, b)), less((2, c), (3, d)))
    }
}

/// The first entry is the last of the first four, and those behind it are the others, four by four: the children of `slot` are
/// the four number `slot - 2`.
const ROOT: usize = 3;

#[derive(Debug)]
pub(crate) struct Heap {
    /// The least entry; [`NONE`] if there is none.
    first: Entry,
    fours: Vec<Four>,
    /// Behind the last entry.
    end: usize,
}

impl Default for Heap {
    fn default() -> Heap {
        Heap { first: NONE, fours: vec![Four([NONE; 4])], end: ROOT }
    }
}

impl Heap {
    #[inline(always)]
    fn slot(&mut self, slot: usize) -> &mut Entry {
        &mut self.fours[slot / 4].0[slot % 4]
    }

    /// The least entry; [`NONE`] if there is none.
    #[inline(always)]
    pub fn first(&self) -> Entry {
        self.first
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.end - ROOT
    }

    #[inline]
    pub fn push(&mut self, entry: Entry) {
        let mut hole = self.end;
        self.end += 1;
        if hole == 4 * self.fours.len() {
            self.fours.push(Four([NONE; 4]));
        }
        while hole > ROOT {
            let parent = hole / 4 + 2;
            let above = *self.slot(parent);
            if above <= entry {
                break;
            }
            *self.slot(hole) = above;
            hole = parent;
        }
        *self.slot(hole) = entry;
        self.first = self.fours[0].0[ROOT];
    }

    #[inline]
    pub fn drop_first(&mut self) {
        if self.end > ROOT {
            self.end -= 1;
            let last = std::mem::replace(self.slot(self.end), NONE);
            if self.end > ROOT {
                self.replace_first(last);
            } else {
                self.first = NONE;
            }
        }
    }

    /// Puts another entry in the place of the first one, which is cheaper than taking one out and putting one in.
    #[inline]
    pub fn replace_first(&mut self, entry: Entry) {
        let mut hole = ROOT;
        while let Some(children) = self.fours.get(hole - 2) {
            let (which, least) = children.least();
            if entry <= least {
                break;
            }
            *self.slot(hole) = least;
            hole = 4 * (hole - 2) + which;
        }
        *self.slot(hole) = entry;
        self.first = self.fours[0].0[ROOT];
    }
}
