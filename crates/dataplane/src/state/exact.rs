//! Exact match: an index of rows that begin with their keys, in a shape that native code searches by itself.
//!
//! There is a power of two of *slots*, each a word: in the low half where a row begins, counted in words from the first row, in the
//! high half bits of its key's hash; 0 is a free one. From a key's place on, one slot behind the other is looked at until one leads to a row with the key, or is free. Places are
//! those of groups of four slots, half a line of the cache, if the table may have very many entries ([`grouped`]): a lookup looks at all four at once, without a branch that the
//! processor would have to foresee, and only a full group without the key leads to the next one.
//!
//! A table with one narrow key, as by port, has a slot for each value ([`direct`]): a lookup reads that, and the row is the key's.

use p4lang::ir::{MatchKind, Table};

use super::lines::Lines;
use super::words::words;
use crate::prefetch::prefetch;

/// Slots in an empty index, as a power of two.
const FEWEST: u32 = 3;

/// Up to so many slots at most a quarter is taken, which makes misses short; beyond, a half, which saves cache.
const SPARSE: usize = 1 << 14;

/// Slots of an index that grows twofold, so that a table with few entries takes little cache however many it may have. A larger one has as
/// many at once as its table may need, so that no insertion moves more than half of these.
const STEPS: usize = 1 << 15;

/// Up to so many, as a power of two: half a gigabyte, which the system provides as it is used.
const MOST_BITS: u32 = 26;

/// Slots of a group.
pub(crate) const GROUP: usize = 4;

/// Whether the index of a table that may have so many entries has groups. In smaller ones, or those of which a part is in use, branches
/// are foreseen more often, and then what comes behind a lookup need not wait for all four slots.
pub(crate) fn grouped(most: usize) -> bool {
    most > 1 << 16
}

/// How many of so many slots may be taken.
fn takes(slots: usize) -> usize {
    slots / if slots <= SPARSE { 4 } else { 2 }
}

/// One for each word of a key, odd and unlike each other: what spreads keys is the high half of the sum of products.
const MULTIPLIERS: [u64; 8] = [
    0x9e37_79b9_7f4a_7c15,
    0xc2b2_ae3d_27d4_eb4f,
    0xd6e8_feb8_6659_fd93,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x8ebc_6af0_9c88_c6e3,
    0x5899_65cc_7537_4cc3,
    0x1d8e_4e27_c47d_124f,
];

/// That of a word of the key.
pub(crate) fn multiplier(word: usize) -> u64 {
    MULTIPLIERS[word % 8].rotate_left((word / 8 * 8 % 64) as u32) | 1
}

/// Set in the high half of each slot that is taken, and in [`tag`].
pub(crate) const TAKEN: u64 = 1 << 32;

/// Where a row begins, in a slot.
pub(crate) const ROW: u64 = u32::MAX as u64;

/// Of the words that a row begins with.
#[inline(always)]
pub(crate) fn hash(key: &[u64]) -> u64 {
    let products = key.iter().enumerate().map(|(at, word)| (word ^ word >> 32).wrapping_mul(multiplier(at)));
    products.fold(0, u64::wrapping_add)
}

/// What the high half of a key's slot is.
#[inline(always)]
fn tag(hash: u64) -> u64 {
    hash & !ROW | TAKEN
}

/// Where the row of a group's slot with this tag begins, the least if there are several; above all rows if there is none.
#[inline(always)]
fn least(group: &[u64; GROUP], tag: u64) -> u64 {
    let [a, b, c, d] = group.map(|slot| slot ^ tag);
    a.min(b).min(c.min(d))
}

/// Bits of a key up to which there can be a slot for each value.
const MOST_DIRECT: u32 = 10;

/// Bits of the key of a table that has a slot for each value. Its declared size, by which its memory counts, is that of the
/// slots at least: an eighth of them, an entry counting as eight words or more.
pub(crate) fn direct(table: &Table) -> Option<u32> {
    let [only] = &table.keys[..] else { return None };
    let bits = only.expr.width;
    let counted = bits <= MOST_DIRECT && table.size >= 1 << bits >> 3;
    (only.kind == MatchKind::Exact && counted).then_some(bits)
}

/// How the words of a table's keys become those that its rows begin with: several narrow ones are put behind each other, if
/// two words can hold them.
#[derive(Debug, Clone)]
pub(crate) struct Packing {
    /// Bits of each word, if they are put behind each other.
    pub bits: Box<[u8]>,
    /// Words that a row begins with.
    pub words: usize,
}

impl Packing {
    /// For keys of values of these widths, each in its own words, least significant first.
    pub fn of(widths: &[u32]) -> Packing {
        let given = widths.iter().map(|width| words(*width)).sum();
        let total: u64 = widths.iter().map(|width| u64::from(*width)).sum();
        let packed = total.div_ceil(64) as usize;
        if packed > 2 || given <= packed {
            return Packing { bits: [].into(), words: given };
        }
        let low = |width: u32| (0..width / 64).map(|_| 64);
        let high = |width: u32| Some((width % 64) as u8).filter(|bits| *bits > 0);
        Packing {
            bits: widths.iter().flat_map(|width| low(*width).chain(high(*width))).collect(),
            words: packed,
        }
    }

    #[inline]
    fn pack(&self, key: &[u64]) -> [u64; 2] {
        let parts = self.bits.iter().zip(key);
        let all = parts.fold(0u128, |all, (bits, word)| all << *bits | u128::from(*word));
        [all as u64, (all >> 64) as u64]
    }
}

/// Rows as the index sees them: the one at 0 is none of its own.
pub(crate) trait Keys {
    /// The words of the key of a row.
    fn key(&self, row: u32) -> &[u64];

    /// Whether a row begins with these words.
    fn begins<const N: usize>(&self, row: u32, words: [u64; N]) -> bool;
}

#[derive(Debug)]
pub(crate) struct Exact {
    pub slots: Lines,
    /// A hash shifted by so much is a key's place: below the number of slots.
    pub shift: u64,
    taken: usize,
    /// Entries of its table at most, but for those of the program.
    most: usize,
    /// See [`grouped`].
    grouped: bool,
    packing: Packing,
    /// There is a slot for each key.
    direct: Option<u32>,
}

impl Clone for Exact {
    /// Takes as much memory as is used.
    fn clone(&self) -> Exact {
        let mut slots = Lines::zeroed(self.slots.len());
        for (at, slot) in self.slots.iter().enumerate().filter(|(_, slot)| **slot != 0) {
            slots[at] = *slot;
        }
        Exact { slots, packing: self.packing.clone(), ..*self }
    }
}

impl Exact {
    /// Of a table that may have so many entries. `direct`: see there.
    pub fn new(packing: Packing, direct: Option<u32>, most: usize) -> Exact {
        let slots = Lines::zeroed(1 << direct.unwrap_or(FEWEST));
        Exact {
            slots,
            shift: u64::from(64 - FEWEST),
            taken: 0,
            most,
            grouped: direct.is_none() && grouped(most),
            packing,
            direct,
        }
    }

    /// One without entries.
    pub fn empty(&self) -> Exact {
        Exact::new(self.packing.clone(), self.direct, self.most)
    }

    /// The words that the row of a key begins with.
    pub fn packed(&self, key: &[u64]) -> Box<[u64]> {
        if self.packing.bits.is_empty() {
            key.into()
        } else {
            self.packing.pack(key)[..self.packing.words].into()
        }
    }

    /// The row of a key, 0 if there is none. The key's words are those of the table.
    pub fn get(&self, rows: &impl Keys, key: &[u64]) -> u32 {
        if self.direct.is_some() {
            // A control plane may ask for a value that the key has no room for.
            return self.slots.get(key[0] as usize).map_or(0, |slot| *slot as u32);
        }
        let packed;
        let key = if self.packing.bits.is_empty() {
            key
        } else {
            packed = self.packing.pack(key);
            &packed[..self.packing.words]
        };
        // The usual lengths apart, so that comparing takes no loop.
        match *key {
            [one] => self.look(hash(&[one]), |row| rows.begins(row, [one])),
            [one, two] => self.look(hash(&[one, two]), |row| rows.begins(row, [one, two])),
            _ => self.look(hash(key), |row| rows.key(row) == key),
        }
    }

    /// The row that may be that of a key of one word, or 0: if it begins with the key, it is. Most lookups in large tables are so,
    /// and with few instructions: then the processor has those of several packets under way, and misses of its cache overlap.
    #[inline(always)]
    pub fn candidate(&self, key: u64) -> u32 {
        self.first_of(hash(&[key]))
    }

    /// The row that the first group of slots has for a hash, or 0.
    #[inline(always)]
    fn first_of(&self, hash: u64) -> u32 {
        let group = self.slots.get(self.place(hash)..).and_then(|slots| slots.first_chunk());
        let least = group.filter(|_| self.grouped).map_or(u64::MAX, |group| least(group, tag(hash)));
        if least <= ROW { least as u32 } else { 0 }
    }

    /// The hash of a key whose words are those of the table.
    #[inline(always)]
    fn hash_of(&self, key: &[u64]) -> u64 {
        match *key {
            [one] => hash(&[one]),
            _ if self.packing.bits.is_empty() => hash(key),
            _ => hash(&self.packing.pack(key)[..self.packing.words]),
        }
    }

    /// Asks for the slots where the search for a key begins.
    pub fn prefetch(&self, key: &[u64]) {
        if let Some(slots) = self.slots.get(self.place(self.hash_of(key))..) {
            prefetch(slots, 1);
        }
    }

    /// As [`Exact::candidate`], of a key of any length.
    pub fn candidate_of(&self, key: &[u64]) -> u32 {
        self.first_of(self.hash_of(key))
    }

    /// The row of a key, 0 if there is none.
    #[inline(always)]
    fn look(&self, hash: u64, same: impl Fn(u32) -> bool) -> u32 {
        if self.grouped { self.look_at_groups(hash, same) } else { self.find(hash, same).1 }
    }

    /// As [`Exact::look`], of an index with groups.
    ///
    /// Slots of a group are taken from the first on, so that the last says whether there are more behind them.
    #[inline(always)]
    fn look_at_groups(&self, hash: u64, same: impl Fn(u32) -> bool) -> u32 {
        let tag = tag(hash);
        let mut at = self.place(hash);
        loop {
            let group: &[u64; GROUP] = self.slots[at..].first_chunk().expect("groups are whole");
            let least = least(group, tag);
            if least <= ROW {
                if same(least as u32) {
                    return least as u32;
                }
                // Two keys with one tag.
                return self.find_cold(hash, same);
            }
            if group[GROUP - 1] == 0 {
                return 0;
            }
            at = (at + GROUP) & (self.slots.len() - 1);
        }
    }

    /// The slot where the search for a key ends, and the row in it: 0 in a free one, of which there always is one.
    #[inline(always)]
    fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> (usize, u32) {
        let tag = tag(hash);
        let mut at = self.place(hash);
        loop {
            let slot = self.slots[at];
            if slot & !ROW == tag && same(slot as u32) {
                return (at, slot as u32);
            }
            if slot == 0 {
                return (at, 0);
            }
            at = self.behind(at);
        }
    }

    #[cold]
    fn find_cold(&self, hash: u64, same: impl Fn(u32) -> bool) -> u32 {
        self.find(hash, same).1
    }

    fn behind(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    fn find_key(&self, rows: &impl Keys, packed: &[u64]) -> (usize, u32) {
        self.find(hash(packed), |row| rows.key(row) == packed)
    }

    /// Makes a row that of the key that it begins with.
    pub fn insert(&mut self, rows: &impl Keys, row: u32) {
        let key = rows.key(row);
        if self.direct.is_some() {
            self.slots[key[0] as usize] = u64::from(row);
            return;
        }
        let (at, before) = self.find_key(rows, key);
        self.slots[at] = tag(hash(key)) | u64::from(row);
        self.taken += usize::from(before == 0);
        if self.taken > takes(self.slots.len()) {
            self.grow();
        }
    }

    /// More slots. What decides on a slot's place is in it.
    fn grow(&mut self) {
        let mut bits = 64 - self.shift as u32 + 1;
        while 1 << bits > STEPS && takes(1 << bits) < self.most && bits < MOST_BITS {
            bits += 1;
        }
        let before = std::mem::replace(&mut self.slots, Lines::zeroed(1 << bits));
        self.shift = u64::from(64 - bits);
        for slot in before.iter().copied().filter(|slot| *slot != 0) {
            let mut at = self.place(slot);
            while self.slots[at] != 0 {
                at = self.behind(at);
            }
            self.slots[at] = slot;
        }
    }

    /// Where the search for a slot's key begins, by the slot or its key's hash.
    #[inline(always)]
    fn place(&self, slot: u64) -> usize {
        let place = (slot >> self.shift) as usize;
        if self.grouped { place / GROUP * GROUP } else { place }
    }

    /// Removes the row of a key, given as [`Exact::packed`].
    pub fn remove(&mut self, rows: &impl Keys, packed: &[u64]) {
        if self.direct.is_some() {
            self.slots[packed[0] as usize] = 0;
            return;
        }
        let (mut hole, row) = self.find_key(rows, packed);
        if row == 0 {
            return;
        }
        self.taken -= 1;
        // Those behind move up, unless their search begins behind the hole.
        let mut at = hole;
        loop {
            at = self.behind(at);
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let mask = self.slots.len() - 1;
            let from_place = at.wrapping_sub(self.place(slot)) & mask;
            let from_hole = at.wrapping_sub(hole) & mask;
            if from_place >= from_hole {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = 0;
    }
}

/// Keys of one word with the same tag, which begin at the same place, in an index of any size.
#[cfg(test)]
pub(crate) fn alike(count: u64) -> Vec<u64> {
    // Newton's iteration for the multiplier's inverse: each step has twice as many bits.
    let by = multiplier(0);
    let inverse = (0..6).fold(1u64, |x, _| x.wrapping_mul(2u64.wrapping_sub(by.wrapping_mul(x))));
    let keys = (0..count).map(|low| {
        let spread = (0x5555_5555 << 33 | low).wrapping_mul(inverse);
        spread ^ spread >> 32
    });
    keys.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::prelude::*;

    /// Row 0 begins with zeros, as that of a table's default does.
    struct List(Vec<Vec<u64>>);

    impl Keys for List {
        fn key(&self, row: u32) -> &[u64] {
            &self.0[row as usize]
        }

        fn begins<const N: usize>(&self, row: u32, words: [u64; N]) -> bool {
            self.0[row as usize].starts_with(&words)
        }
    }

    const MANY: u32 = 100_000;

    fn check(exact: &Exact, count: usize) {
        if let Some(bits) = exact.direct {
            assert_eq!(exact.slots.len(), 1 << bits);
            return assert_eq!(exact.slots.iter().filter(|slot| **slot != 0).count(), count);
        }
        assert_eq!(exact.taken, count);
        assert!(exact.slots.contains(&0));
        assert_eq!(1u64 << (64 - exact.shift), exact.slots.len() as u64);
    }

    proptest! {
        #[test]
        fn as_a_map(
            widths in prop::sample::select(vec![
                vec![9], vec![64], vec![48, 16], vec![65], vec![32, 32, 8, 16, 16], vec![1, 1, 1], vec![64, 63, 1],
                vec![65, 63], vec![128, 1], vec![64, 64, 1], vec![128; 5],
            ]),
            by_value in any::<bool>(),
            most in prop::sample::select(vec![100, 100_000]),
            changes in prop::collection::vec(
                (prop::collection::vec(any::<u64>(), 10), any::<bool>(), 0u32..3), 1..200,
            ),
        ) {
            let direct = (by_value && widths == [9]).then_some(9);
            let mut exact = Exact::new(Packing::of(&widths), direct, most);
            let zero = vec![0; widths.iter().map(|width| words(*width)).sum()];
            let mut rows = List(vec![exact.packed(&zero).into()]);
            let mut map: HashMap<Vec<u64>, u32> = HashMap::new();
            for (values, remove, near) in changes {
                let mut key = Vec::new();
                for width in &widths {
                    for word in 0..words(*width) {
                        let bits = (*width - 64 * word as u32).min(64);
                        // Few different values, so that keys come again, in the highest bits or the lowest.
                        let value = values[key.len()];
                        key.push(match near {
                            0 => value >> (64 - bits),
                            1 => value & 1,
                            _ => (value & 1) << (bits - 1),
                        });
                    }
                }
                prop_assert_eq!(exact.get(&rows, &key), map.get(&key).copied().unwrap_or(0));
                let packed = exact.packed(&key);
                if remove {
                    exact.remove(&rows, &packed);
                    map.remove(&key);
                } else {
                    rows.0.push(packed.into());
                    let row = rows.0.len() as u32 - 1;
                    exact.insert(&rows, row);
                    map.insert(key, row);
                }
                check(&exact, map.len());
                for (key, row) in &map {
                    prop_assert_eq!(exact.get(&rows, key), *row);
                }
            }
        }
    }

    /// The key 0 has the hash of a free slot, and begins the default's row.
    #[test]
    fn zero_is_a_key_like_others() {
        let mut exact = Exact::new(Packing::of(&[32]), None, 8);
        let rows = List(vec![vec![0], vec![0]]);
        assert_eq!(exact.get(&rows, &[0]), 0);
        exact.insert(&rows, 1);
        assert_eq!(exact.get(&rows, &[0]), 1);
        exact.remove(&rows, &[0]);
        assert_eq!(exact.get(&rows, &[0]), 0);
    }

    /// More keys of one tag than a group has slots, with and without groups; each is found, and after each removal the others.
    #[test]
    fn keys_of_one_tag() {
        let keys = alike(10);
        assert!(keys.iter().all(|key| tag(hash(&[*key])) == tag(hash(&keys[..1]))));
        let rows = List([0].iter().chain(&keys).map(|key| vec![*key]).collect());
        for most in [100, 100_000] {
            let mut exact = Exact::new(Packing::of(&[64]), None, most);
            assert_eq!(exact.grouped, most > 100);
            (1..=10).for_each(|row| exact.insert(&rows, row));
            for gone in 0..=10u32 {
                let found = keys.iter().map(|key| exact.get(&rows, &[*key]));
                let expected = (1..=10).map(|row| if row > gone { row } else { 0 });
                assert!(found.eq(expected), "{gone} of {most}");
                if let Some(key) = keys.get(gone as usize) {
                    exact.remove(&rows, &[*key]);
                }
            }
            check(&exact, 0);
        }
    }

    #[test]
    fn many_keys_stay_sparse() {
        // A table that has no more entries than it was said to, and one that has.
        for most in [MANY, 3] {
            let mut exact = Exact::new(Packing::of(&[64]), None, most as usize);
            let rows = List((0..=u64::from(MANY)).map(|key| vec![key << 8]).collect());
            many_keys(&mut exact, &rows);
            assert_eq!(exact.slots.len(), 1 << 18);
        }
    }

    fn many_keys(exact: &mut Exact, rows: &List) {
        let mut moved = 0;
        for row in 1..=MANY {
            let before = (exact.slots.len(), exact.taken);
            exact.insert(rows, row);
            assert!(exact.taken * 2 <= exact.slots.len());
            if exact.slots.len() != before.0 {
                moved = moved.max(before.1);
            }
        }
        assert!(exact.most < MANY as usize || moved <= STEPS / 2, "{moved} are moved at once");
        for row in 1..=MANY {
            assert_eq!(exact.get(rows, &[u64::from(row) << 8]), row);
            assert_eq!(exact.get(rows, &[u64::from(row) << 8 | 1]), 0);
        }
        for row in 1..=MANY {
            exact.remove(rows, &[u64::from(row) << 8]);
        }
        check(exact, 0);
        assert!(exact.slots.iter().all(|slot| *slot == 0));
    }
}
