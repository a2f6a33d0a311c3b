//! Exact match on keys of one word, in a shape that native code searches by itself: a power of two of slots, each a key and a number,
//! one behind the other from the key's place on; number 0 marks a free slot, and is what a key leads to that is not there.

/// A slot: the key, and its number.
pub(crate) type Slot = [u64; 2];

/// Spreads keys: the high bits of a product depend on all bits of the key (2^64 divided by the golden ratio).
pub(crate) const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Slots in an empty index, as a power of two.
const FEWEST: u32 = 3;

/// Up to so many slots at most a quarter is taken, which makes misses short; beyond, a half, which saves cache.
const SPARSE: usize = 1 << 14;

#[derive(Debug, Clone)]
pub(crate) struct Slots {
    pub slots: Vec<Slot>,
    /// A key's place is its product shifted by so much: below the number of slots.
    pub shift: u64,
    taken: usize,
}

impl Slots {
    pub fn new() -> Slots {
        Slots::of(FEWEST)
    }

    fn of(bits: u32) -> Slots {
        Slots { slots: vec![[0; 2]; 1 << bits], shift: u64::from(64 - bits), taken: 0 }
    }

    /// Where a key's search begins.
    fn place(&self, key: u64) -> usize {
        ((key ^ key >> 32).wrapping_mul(MULTIPLIER) >> self.shift) as usize
    }

    /// The slot that has a key, or the free one where its search ends. There is always a free one.
    fn find(&self, key: u64) -> usize {
        let mut at = self.place(key);
        while self.slots[at][1] != 0 && self.slots[at][0] != key {
            at = self.behind(at);
        }
        at
    }

    fn behind(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// The number of a key, 0 if it is not there.
    #[cfg(test)]
    pub fn get(&self, key: u64) -> u64 {
        self.slots[self.find(key)][1]
    }

    /// Gives a key a number, which is not 0.
    pub fn insert(&mut self, key: u64, number: u64) {
        let at = self.find(key);
        if self.slots[at][1] == 0 {
            self.taken += 1;
        }
        self.slots[at] = [key, number];
        let most = self.slots.len() / if self.slots.len() <= SPARSE { 4 } else { 2 };
        if self.taken > most {
            let mut larger = Slots::of(65 - self.shift as u32);
            for [key, number] in self.slots.iter().filter(|[_, number]| *number != 0) {
                let at = larger.find(*key);
                larger.slots[at] = [*key, *number];
            }
            larger.taken = self.taken;
            *self = larger;
        }
    }

    pub fn remove(&mut self, key: u64) {
        let mut hole = self.find(key);
        if self.slots[hole][1] == 0 {
            return;
        }
        self.taken -= 1;
        // Those behind move up, unless their search begins behind the hole.
        let mut at = hole;
        loop {
            at = self.behind(at);
            let [key, number] = self.slots[at];
            if number == 0 {
                break;
            }
            let mask = self.slots.len() - 1;
            let from_place = at.wrapping_sub(self.place(key)) & mask;
            let from_hole = at.wrapping_sub(hole) & mask;
            if from_place >= from_hole {
                self.slots[hole] = [key, number];
                hole = at;
            }
        }
        self.slots[hole] = [0; 2];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_a_map(changes in prop::collection::vec((any::<u64>(), 0u32..4, any::<bool>()), 1..300)) {
            let mut map = HashMap::new();
            let mut slots = Slots::new();
            for (number, (value, kind, remove)) in (1u64..).zip(changes) {
                // Few different keys, so that they come again, close to each other, in the high bits, or anywhere.
                let key = match kind {
                    0 => value % 50,
                    1 => (value % 50) << 32,
                    2 => (value % 50) << 56,
                    _ => value,
                };
                if remove {
                    slots.remove(key);
                    map.remove(&key);
                } else {
                    slots.insert(key, number);
                    map.insert(key, number);
                }
                prop_assert_eq!(slots.taken, map.len());
                prop_assert!(slots.slots.iter().any(|slot| slot[1] == 0));
                prop_assert_eq!(1u64 << (64 - slots.shift), slots.slots.len() as u64);
                for (key, number) in &map {
                    prop_assert_eq!(slots.get(*key), *number);
                }
                prop_assert_eq!(slots.get(key), map.get(&key).copied().unwrap_or(0));
            }
        }
    }

    #[test]
    fn many_keys_stay_sparse() {
        let mut slots = Slots::new();
        for key in 0..20_000u64 {
            slots.insert(key << 8, key + 1);
            assert!(slots.taken * 2 <= slots.slots.len());
        }
        for key in 0..20_000 {
            assert_eq!(slots.get(key << 8), key + 1);
            assert_eq!(slots.get(key << 8 | 1), 0);
        }
        for key in 0..20_000 {
            slots.remove(key << 8);
        }
        assert!(slots.slots.iter().all(|slot| *slot == [0; 2]));
    }
}
