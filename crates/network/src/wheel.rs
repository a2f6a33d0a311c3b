//! A wheel of slots of time (Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP 1987): entries of one slot are a list in
//! their order, and bits say which slots have any.

use crate::event::{Entry, NONE, time};

pub(crate) const SLOTS: usize = 4096;
const WORDS: usize = SLOTS / 64;

/// No more entries of one slot are looked at to find the place of another.
const MOST_STEPS: usize = 8;

/// No node.
const NO_NODE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    entry: Entry,
    next: u32,
}

#[derive(Debug)]
pub(crate) struct Wheel {
    /// A slot is 2^shift picoseconds long; its number is that of its time in slots.
    shift: u32,
    /// Entries are of one of `SLOTS` slots from this one on.
    base: u64,
    /// The least entry, or [`NONE`]; and its slot.
    first: Entry,
    slot: u64,
    /// First node of each slot's list.
    lists: Box<[u32; SLOTS]>,
    /// A bit for each slot with entries, and one for each of these words that has any.
    used: Box<[u64; WORDS]>,
    words: u64,
    nodes: Vec<Node>,
    free: u32,
}

impl Default for Wheel {
    fn default() -> Wheel {
        Wheel {
            shift: 16,
            base: 0,
            first: NONE,
            slot: 0,
            lists: Box::new([NO_NODE; SLOTS]),
            used: Box::new([0; WORDS]),
            words: 0,
            nodes: Vec::new(),
            free: NO_NODE,
        }
    }
}

impl Wheel {
    pub fn shift(&self) -> u32 {
        self.shift
    }

    #[inline(always)]
    pub fn first(&self) -> Entry {
        self.first
    }

    /// An entry behind the first, or [`NONE`]: the next one, if it is close.
    #[inline(always)]
    pub fn second(&self) -> Entry {
        let index = self.slot as usize % SLOTS;
        let first = self.lists[index];
        if first == NO_NODE {
            return NONE;
        }
        let next = self.nodes[first as usize].next;
        if next != NO_NODE {
            return self.nodes[next as usize].entry;
        }
        let behind = self.used[index / 64] & (u64::MAX << 1 << (index % 64));
        if behind == 0 {
            return NONE;
        }
        let list = self.lists[index / 64 * 64 + behind.trailing_zeros() as usize];
        self.nodes[list as usize].entry
    }

    /// Nothing before it comes any more, as far as is known.
    #[inline(always)]
    pub fn passed(&self) -> u64 {
        self.base << self.shift
    }

    /// Nothing before this time comes any more.
    #[inline(always)]
    pub fn pass(&mut self, now: u64) {
        self.base = self.base.max(now >> self.shift);
    }

    /// Puts in an entry. False: it is later than the wheel reaches, before `pass`, or its slot has too many.
    #[inline(always)]
    pub fn put(&mut self, entry: Entry) -> bool {
        let node = self.free;
        if node == NO_NODE {
            self.grow();
        }
        let node = self.free;
        let next = self.nodes[node as usize].next;
        let put = self.link(node, entry);
        if put {
            self.free = next;
            if entry < self.first {
                (self.first, self.slot) = (entry, time(entry) >> self.shift);
            }
        }
        put
    }

    #[cold]
    fn grow(&mut self) {
        self.free = self.nodes.len() as u32;
        self.nodes.push(Node { entry: NONE, next: NO_NODE });
    }

    /// Puts in an entry by a node that is in no list; whether it is the first is still to be seen. False: as [`Wheel::put`], and the node
    /// is as it was.
    #[inline(always)]
    fn link(&mut self, node: u32, entry: Entry) -> bool {
        let slot = time(entry) >> self.shift;
        if slot.wrapping_sub(self.base) >= SLOTS as u64 {
            return false;
        }
        let index = slot as usize % SLOTS;
        let first = self.lists[index];
        if first == NO_NODE || entry < self.nodes[first as usize].entry {
            self.nodes[node as usize] = Node { entry, next: first };
            self.lists[index] = node;
            self.used[index / 64] |= 1 << (index % 64);
            self.words |= 1 << (index / 64);
            return true;
        }
        self.link_behind(first, node, entry)
    }

    /// Puts a node in behind another of its list.
    #[inline(never)]
    fn link_behind(&mut self, mut at: u32, node: u32, entry: Entry) -> bool {
        for _ in 0..MOST_STEPS {
            let next = self.nodes[at as usize].next;
            if next == NO_NODE || entry < self.nodes[next as usize].entry {
                self.nodes[node as usize] = Node { entry, next };
                self.nodes[at as usize].next = node;
                return true;
            }
            at = next;
        }
        false
    }

    /// Takes the first entry's node out of its list; `find` is still to find another first.
    #[inline(always)]
    fn unlink(&mut self) -> u32 {
        self.base = self.slot;
        let index = self.slot as usize % SLOTS;
        let node = self.lists[index];
        let next = self.nodes[node as usize].next;
        self.lists[index] = next;
        if next == NO_NODE {
            let word = &mut self.used[index / 64];
            *word &= !(1 << (index % 64));
            if *word == 0 {
                self.words &= !(1 << (index / 64));
            }
        }
        node
    }

    #[inline(always)]
    fn release(&mut self, node: u32) {
        self.nodes[node as usize].next = self.free;
        self.free = node;
    }

    /// Finds the first entry, from the slot `base` on.
    #[inline(always)]
    fn find(&mut self) {
        let start = self.base as usize % SLOTS;
        let word = start / 64;
        let rest = self.used[word] >> (start % 64);
        let index = if rest != 0 {
            start + rest.trailing_zeros() as usize
        } else {
            if self.words == 0 {
                self.first = NONE;
                return;
            }
            // From the word behind it on, round to the same word again.
            let words = self.words.rotate_right(word as u32 + 1);
            let word = (word + 1 + words.trailing_zeros() as usize) % WORDS;
            64 * word + self.used[word].trailing_zeros() as usize
        };
        self.slot = self.base + (index.wrapping_sub(start) % SLOTS) as u64;
        self.first = self.nodes[self.lists[index % SLOTS] as usize].entry;
    }

    /// Takes the first entry out.
    #[inline(always)]
    pub fn drop_first(&mut self) {
        let node = self.unlink();
        self.release(node);
        self.find();
    }

    /// Puts another entry in the place of the first. False: it does not go in, as by [`Wheel::put`]; the first is out.
    #[inline(always)]
    pub fn replace_first(&mut self, entry: Entry) -> bool {
        let node = self.unlink();
        let put = self.link(node, entry);
        if !put {
            self.release(node);
        }
        self.find();
        put
    }

    /// Takes all entries out, and makes slots as long as `2^shift`.
    pub fn set_shift(&mut self, shift: u32, now: u64) -> Vec<Entry> {
        let mut entries = Vec::new();
        while self.first != NONE {
            entries.push(self.first);
            self.drop_first();
        }
        self.shift = shift;
        self.base = now >> shift;
        entries
    }
}
