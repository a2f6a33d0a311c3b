//! Words that begin where a line of the cache does, and in large pages if they are many: what a lookup in a table of 100 000 entries reads
//! lies all over some MB.
//!
//! A list that grows takes its pages as it fills: the first large one is joined when it is full, those behind are large from the
//! start, so that it has at most twice the memory that it uses.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

use super::pieces::SHORT;
use crate::large_pages::{LARGE, expect, join};

const WORD: usize = size_of::<u64>();

/// Bytes of a line.
const LINE: usize = 64;

/// Words from which on a list begins where a large page does: what is skipped for it is a quarter of its room at most.
const ALIGNED: usize = 4 * LARGE / WORD;

/// Bytes up to which a list that is used all over from the start is in large pages. Beyond, the system provides what is used.
const SPREAD: usize = 64 << 20;

pub(crate) struct Lines {
    /// On a line's beginning, in memory of `capacity` words from there on, all of which were set. Native code reads it.
    words: NonNull<u64>,
    len: usize,
    capacity: usize,
    /// What was allocated; of no bytes: nothing.
    memory: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory is its own.
unsafe impl Send for Lines {}
// SAFETY: as above; what is shared is only read.
unsafe impl Sync for Lines {}

impl Lines {
    /// Where the address of the words is.
    pub const WORDS: usize = std::mem::offset_of!(Lines, words);

    pub fn new() -> Lines {
        let layout = Layout::new::<()>();
        Lines { words: NonNull::dangling(), len: 0, capacity: 0, memory: NonNull::dangling(), layout }
    }

    /// So many zeros, which will be used all over.
    pub fn zeroed(len: usize) -> Lines {
        let mut lines = Lines::room(len).unwrap_or_else(|layout| handle_alloc_error(layout));
        if len * WORD <= SPREAD {
            let from = lines.words.addr().get();
            expect(from, from + len * WORD);
        }
        lines.len = len;
        lines
    }

    /// None, with room for so many at least.
    fn room(capacity: usize) -> Result<Lines, Layout> {
        let capacity = capacity.max(1).checked_next_multiple_of(LINE / WORD).unwrap_or(usize::MAX);
        let beginning = if capacity < ALIGNED { LINE } else { LARGE };
        let bytes = capacity.saturating_mul(WORD).saturating_add(beginning - WORD);
        let Ok(layout) = Layout::from_size_align(bytes, WORD) else { return Err(Layout::new::<u64>()) };
        // SAFETY: the layout is of some bytes.
        let memory = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(layout)?;
        let skipped = memory.addr().get().next_multiple_of(beginning) - memory.addr().get();
        // SAFETY: it skips no more than there is beside the words.
        let words = unsafe { memory.add(skipped) }.cast();
        Ok(Lines { words, len: 0, capacity, memory, layout })
    }

    /// Appends zeros until there are `len`. There will be `most` at most: beyond a few it has room for all at once, which the
    /// system provides as it is used, so that nothing moves again.
    pub fn reach(&mut self, len: usize, most: usize) {
        if len <= self.len {
            return;
        }
        if len > self.capacity {
            let all = if len > SHORT && len <= most { Lines::room(most).ok() } else { None };
            let twice =
                || Lines::room(len.max(2 * self.len)).unwrap_or_else(|layout| handle_alloc_error(layout));
            let mut more = all.unwrap_or_else(twice);
            more.extend(self.len);
            more.copy_from_slice(self);
            *self = more;
        }
        self.extend(len);
    }

    /// As [`Lines::reach`], where there is room.
    fn extend(&mut self, len: usize) {
        let full = |len: usize| len * WORD / LARGE;
        if full(len) > full(self.len) {
            let from = self.words.addr().get();
            if full(self.len) == 0 {
                join(from, from + LARGE);
            }
            expect(from + LARGE, from + self.capacity.min((full(len) + 1) * LARGE / WORD) * WORD);
        }
        self.len = len;
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: it was allocated with this layout.
            unsafe { dealloc(self.memory.as_ptr(), self.layout) };
        }
    }
}

impl Deref for Lines {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        // SAFETY: so many words are there, all set, and only changed by way of a `&mut`.
        unsafe { slice::from_raw_parts(self.words.as_ptr(), self.len) }
    }
}

impl DerefMut for Lines {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above, and nobody else has them meanwhile.
        unsafe { slice::from_raw_parts_mut(self.words.as_ptr(), self.len) }
    }
}

impl Clone for Lines {
    fn clone(&self) -> Lines {
        let mut clone = Lines::new();
        clone.reach(self.len, 0);
        clone.copy_from_slice(self);
        clone
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Word by word and by leaps, up to some large pages: what was there stays, what comes is 0, and all begins where a line does.
    #[test]
    fn as_a_vec() {
        let large = LARGE / WORD;
        for most in [0, 300, 3 * large + 5, 4 * large + 5] {
            let (mut lines, mut list) = (Lines::new(), Vec::new());
            for len in (0..600).chain([large - 1, large, large + 1, 2 * large, 3 * large + 5]) {
                lines.reach(len, most);
                assert!(lines[list.len()..].iter().all(|word| *word == 0));
                for at in list.len()..len {
                    lines[at] = at as u64 + 1;
                    list.push(at as u64 + 1);
                }
                if len < 600 {
                    assert_eq!(*lines, *list);
                }
                let to = if lines.capacity < ALIGNED { LINE } else { LARGE };
                assert!(len == 0 || lines.as_ptr().addr().is_multiple_of(to));
            }
            assert!(*lines == *list && *lines.clone() == *list);
        }
    }

    /// Nothing moves of a list that stays as short as was said.
    #[test]
    fn room_for_all_at_once() {
        let mut lines = Lines::new();
        let mut moved = 0;
        for len in 1..100_000 {
            let before = lines.as_ptr();
            lines.reach(len, 100_000);
            if lines.as_ptr() != before {
                moved = len - 1;
            }
        }
        assert!(moved <= SHORT, "{moved}");
    }

    #[test]
    fn zeros() {
        for len in [1, 8, 300, ALIGNED] {
            let mut lines = Lines::zeroed(len);
            assert!(lines.len() == len && lines.iter().all(|word| *word == 0));
            lines.fill(7);
            assert!(lines.as_ptr().addr().is_multiple_of(if len < ALIGNED { LINE } else { LARGE }));
        }
    }
}
