//! Longest prefix match: a trie of one byte a level, each node a run-length coded array of 256.
//!
//! A node's array says for each value of its byte which prefix ends there (the longest that covers the byte) and which
//! node goes on. Equal neighbours are one run; a bitmap marks where runs start, so that the run of a byte is found by
//! counting bits. A node lies in one piece, so that a lookup touches a cache line or two a level, at `ceil(width / 8)`
//! levels, however many prefixes there are. Where the processor counts bits by one instruction, a walk built for that is
//! chosen when it runs; native code has the walk in place.
//!
//! Keys of a table that are to be equal come before the prefix, all as one number ([`Order`]).

use std::mem::offset_of;

use p4lang::ir::MatchKind;
use p4lang::sizes::nodes;
use smallvec::SmallVec;

use super::lines::Lines;
use super::pieces::make_room;
use super::words::words;

/// No prefix; no parent.
pub(crate) const NONE: u32 = u32::MAX;

/// Place of the empty node, in which every byte goes on to itself. It stands where there is no node, and ends a walk: most prefixes
/// are shorter than the longest, and a branch that is mispredicted now and then costs less than a step or two for each key.
const EMPTY: u32 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    /// What the longest prefix that ends in this node and covers the byte leads to.
    value: u32,
    /// Where the node that goes on is.
    child: u32,
}

impl Run {
    fn encoded(self) -> u64 {
        u64::from(self.value) | u64::from(self.child) << 32
    }

    #[inline(always)]
    fn decoded(word: u64) -> Run {
        Run { value: word as u32, child: (word >> 32) as u32 }
    }
}

/// Words of a key that is walked word by word; wider ones are walked by a call for each byte.
pub(crate) const MOST_WORDS: usize = 3;

/// Levels of a [`Way`] at most: what is left of a key's first word is shifted by so many bytes.
const MOST_WAY: u32 = 7;

/// How the words of a table's keys become one number: those of exact keys in their order, then the prefix's. For each word, the most
/// significant of the number first: its place among the words of the keys, and its bits.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub parts: Box<[(usize, u32)]>,
    /// Bits of the exact keys.
    exact: u32,
}

impl Order {
    pub fn of(keys: &[(MatchKind, u32)]) -> Order {
        let (mut parts, mut prefix, mut at) = (Vec::new(), Vec::new(), 0);
        for (kind, width) in keys {
            let into = if *kind == MatchKind::Lpm { &mut prefix } else { &mut parts };
            let given = words(*width);
            // The most significant word has the bits that are left.
            into.extend((0..given).rev().map(|word| (at + word, (width - 64 * word as u32).min(64))));
            at += given;
        }
        let exact = parts.iter().map(|(_, bits)| bits).sum();
        parts.append(&mut prefix);
        Order { parts: parts.into(), exact }
    }

    /// The length of a prefix, with the exact keys before it.
    pub fn length(&self, prefix: u32) -> u32 {
        self.exact + prefix
    }

    /// The number, its least significant word first, from the words of the keys.
    #[inline]
    pub fn joined(&self, key: &[u64]) -> [u64; MOST_WORDS] {
        let mut all = [0; MOST_WORDS];
        for (word, bits) in &self.parts {
            for at in (1..MOST_WORDS).rev() {
                all[at] = shifted(all[at], all[at - 1], *bits);
            }
            all[0] = shifted(all[0], 0, *bits) | key[*word];
        }
        all
    }
}

/// A word shifted to the left by 1 to 64 bits, and behind it those of the next one.
#[inline(always)]
fn shifted(word: u64, next: u64, bits: u32) -> u64 {
    word << (bits - 1) << 1 | next >> (64 - bits)
}

/// Words, the most significant first, shifted to the left by fewer than 64 bits.
#[inline(always)]
fn moved<const N: usize>(words: [u64; N], bits: u32) -> [u64; N] {
    std::array::from_fn(|at| {
        let next = words.get(at + 1).copied().unwrap_or(0);
        words[at] << bits | next >> 1 >> (63 - bits)
    })
}

/// Where native code finds what a walk needs: offsets, given where the trie is.
pub(crate) struct Places {
    pub words: usize,
    pub root: usize,
    pub way_bytes: usize,
    pub way_mask: usize,
    pub way_levels: usize,
    pub way_at: usize,
    pub way_best: usize,
}

impl Places {
    pub fn new(trie: usize) -> Places {
        let way = trie + offset_of!(Lpm, way);
        Places {
            words: trie + offset_of!(Lpm, words) + Lines::WORDS,
            root: trie + offset_of!(Lpm, root),
            way_bytes: way + offset_of!(Way, bytes),
            way_mask: way + offset_of!(Way, mask),
            way_levels: way + offset_of!(Way, levels),
            way_at: way + offset_of!(Way, at),
            way_best: way + offset_of!(Way, best),
        }
    }
}

/// Words of a node before its runs: four of bits that say at which bytes runs start (byte 0 always), and one with four
/// numbers of 16 bits, the runs that start in the words of bits up to each.
pub(crate) const HEAD: usize = 5;

/// Set in the place of a node that has more than [`DENSE_RUNS`] runs: it is a plain array of 256, without a head.
pub(crate) const DENSE: u32 = 1 << 31;
const DENSE_RUNS: usize = 128;

/// Memory of nodes is given out in multiples of this many words, a line of the cache: most nodes have up to three runs.
const GRAIN: usize = 8;

/// What an update reads. Most nodes have one prefix, or go on with one byte: long prefixes have a chain of such.
#[derive(Debug, Clone, Default)]
struct Parts {
    /// Prefixes that end in this node: first byte, length within the byte (0 to 8), value.
    prefixes: SmallVec<[(u8, u8, u32); 1]>,
    /// Bytes that go on, in order.
    children: SmallVec<[(u8, u32); 2]>,
    parent: u32,
    /// Where the node is in `words`, and the words that are its own.
    at: u32,
    room: u32,
}

/// The bytes that all longer prefixes begin with, up to [`MOST_WAY`]: the way from the root to the first node that has a choice. Keys
/// of up to [`MOST_WORDS`] words that begin with them start there.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    /// With the key's top bit as the top one.
    bytes: u64,
    mask: u64,
    levels: u32,
    /// Where the way leads to, and the last value on it.
    at: u32,
    best: u32,
}

/// Prefixes of values of one width, each with a number.
#[derive(Debug, Clone)]
pub struct Lpm {
    width: u32,
    /// What a lookup reads: for each node its head and then its runs, value in the low half.
    words: Lines,
    /// What an update reads. The first is the root, whose place in `words` is `root`.
    parts: Vec<Parts>,
    root: u32,
    way: Way,
    /// See [`counts_bits`].
    counts_bits: bool,
    free: Vec<u32>,
    /// Places in `words` that are free, by their size in grains.
    spare: Vec<Vec<u32>>,
    /// Nodes, and words of them, for which there is room at once if they are many.
    most: usize,
    most_words: usize,
}

impl Lpm {
    pub fn new(width: u32) -> Lpm {
        Lpm::with_room(width, 0)
    }

    /// One that will have so many prefixes at most.
    pub fn with_room(width: u32, prefixes: u64) -> Lpm {
        let most = nodes(width, prefixes.into()).min(1 << 40) as usize;
        let mut lpm = Lpm {
            width,
            words: Lines::new(),
            parts: Vec::new(),
            root: 0,
            way: Way::default(),
            counts_bits: counts_bits(),
            free: Vec::new(),
            spare: Vec::new(),
            most,
            // Most have one; those with many prefixes leave behind what was too small for them.
            most_words: GRAIN * (most + 3 * prefixes.min(1 << 40) as usize),
        };
        let (empty, _) = lpm.encode(&Parts::default());
        lpm.words.reach(empty.len().next_multiple_of(GRAIN), 0);
        lpm.words[..empty.len()].copy_from_slice(&empty);
        lpm.new_node(NONE);
        lpm.find_way();
        lpm
    }

    /// The value of the longest prefix that matches. `key`: words, least significant first.
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> Option<u32> {
        #[cfg(target_arch = "x86_64")]
        if self.counts_bits {
            // SAFETY: the processor has what the function is built for.
            return unsafe { self.walk_counting(key) };
        }
        self.walk(key)
    }

    /// As [`Lpm::walk`], for processors that count bits by one instruction.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn walk_counting(&self, key: &[u64]) -> Option<u32> {
        self.walk(key)
    }

    #[inline(always)]
    fn walk(&self, key: &[u64]) -> Option<u32> {
        match words(self.width) {
            1 => self.walk_words::<1>(key),
            2 => self.walk_words::<2>(key),
            MOST_WORDS => self.walk_words::<MOST_WORDS>(key),
            _ => self.walk_bytes(key),
        }
    }

    #[inline(always)]
    fn walk_words<const N: usize>(&self, key: &[u64]) -> Option<u32> {
        let key = key.first_chunk::<N>()?;
        // The most significant word first, and the key's top bit as the top one.
        let mut rest = *key;
        rest.reverse();
        rest = moved(rest, 64 * N as u32 - self.width);
        let (mut best, mut at, mut left) = (NONE, self.root, self.width.div_ceil(8));
        let way = &self.way;
        if rest[0] & way.mask == way.bytes {
            (best, at) = (way.best, way.at);
            left -= way.levels;
            rest = moved(rest, 8 * way.levels);
        }
        while left > 0 {
            let run = self.run(at, (rest[0] >> 56) as u8);
            best = if run.value == NONE { best } else { run.value };
            at = run.child;
            rest = moved(rest, 8);
            left = if at == EMPTY { 0 } else { left - 1 };
        }
        (best != NONE).then_some(best)
    }

    fn walk_bytes(&self, key: &[u64]) -> Option<u32> {
        let (mut best, mut at) = (NONE, self.root);
        for level in 0..self.width.div_ceil(8) {
            let run = self.run(at, self.byte(key, level));
            best = if run.value == NONE { best } else { run.value };
            at = run.child;
            if at == EMPTY {
                break;
            }
        }
        (best != NONE).then_some(best)
    }

    /// The run that a byte is in, of the node at a place.
    #[inline(always)]
    fn run(&self, at: u32, byte: u8) -> Run {
        if at & DENSE != 0 {
            return Run::decoded(self.words[(at & !DENSE) as usize + usize::from(byte)]);
        }
        let node = &self.words[at as usize..];
        let word = usize::from(byte >> 6);
        // Starts up to and including the byte: shifts out those behind it.
        let upto = node[word] << (63 - (byte & 63));
        let before = (node[4] >> (16 * word)) as u16;
        Run::decoded(node[HEAD - 1 + usize::from(before) + upto.count_ones() as usize])
    }

    /// Byte number `level` from the top of a key whose top bit is that of the width.
    fn byte(&self, key: &[u64], level: u32) -> u8 {
        // The byte's lowest bit, counted from the key's; negative where the key ends within the byte.
        let low = i64::from(self.width) - 8 * (i64::from(level) + 1);
        let (word, shift) = (low.div_euclid(64), low.rem_euclid(64));
        let get = |word: i64| usize::try_from(word).ok().and_then(|w| key.get(w)).copied().unwrap_or(0);
        let mut value = get(word) >> shift;
        if shift > 56 {
            value |= get(word + 1) << (64 - shift);
        }
        value as u8
    }

    /// The value of exactly this prefix.
    pub fn find(&self, key: &[u64], length: u32) -> Option<u32> {
        let mut at = 0;
        for level in 0..last_level(length) {
            at = self.parts[at].child(self.byte(key, level))? as usize;
        }
        let (first, bits) = self.end(key, length);
        let found = self.parts[at].prefixes.iter().find(|(f, b, _)| (*f, *b) == (first, bits));
        found.map(|(.., value)| *value)
    }

    /// Adds a prefix or changes its value.
    pub fn insert(&mut self, key: &[u64], length: u32, value: u32) {
        let mut at = 0;
        for level in 0..last_level(length) {
            let byte = self.byte(key, level);
            at = match self.parts[at].child(byte) {
                Some(child) => child as usize,
                None => {
                    let child = self.new_node(at as u32);
                    let children = &mut self.parts[at].children;
                    let place = children.partition_point(|(b, _)| *b < byte);
                    children.insert(place, (byte, child));
                    self.rebuild(at);
                    child as usize
                }
            };
        }
        let (first, bits) = self.end(key, length);
        let prefixes = &mut self.parts[at].prefixes;
        match prefixes.iter_mut().find(|(f, b, _)| (*f, *b) == (first, bits)) {
            Some((.., known)) => *known = value,
            None => prefixes.push((first, bits, value)),
        }
        self.rebuild(at);
        self.find_way();
    }

    /// Removes a prefix and gives its value.
    pub fn remove(&mut self, key: &[u64], length: u32) -> Option<u32> {
        let mut path = vec![0];
        for level in 0..last_level(length) {
            let at = path[path.len() - 1];
            path.push(self.parts[at].child(self.byte(key, level))? as usize);
        }
        let at = path[path.len() - 1];
        let (first, bits) = self.end(key, length);
        let prefixes = &mut self.parts[at].prefixes;
        let place = prefixes.iter().position(|(f, b, _)| (*f, *b) == (first, bits))?;
        let (.., value) = prefixes.swap_remove(place);
        self.rebuild(at);
        // Nodes that nothing needs any more.
        while let [.., parent, last] = path[..] {
            if !self.parts[last].prefixes.is_empty() || !self.parts[last].children.is_empty() {
                break;
            }
            self.parts[parent].children.retain(|(_, child)| *child as usize != last);
            self.rebuild(parent);
            self.release(last);
            self.free.push(last as u32);
            path.pop();
        }
        self.find_way();
        Some(value)
    }

    /// Follows the nodes that go on with one byte only.
    fn find_way(&mut self) {
        let mut way = Way { at: self.root, best: NONE, ..Way::default() };
        let mut parts = &self.parts[0];
        while let [(byte, child)] = parts.children[..]
            && way.levels < MOST_WAY
        {
            let run = self.run(way.at, byte);
            way.best = if run.value == NONE { way.best } else { run.value };
            way.at = run.child;
            let shift = 56 - 8 * way.levels;
            way.bytes |= u64::from(byte) << shift;
            way.mask |= 0xff << shift;
            way.levels += 1;
            parts = &self.parts[child as usize];
        }
        self.way = way;
    }

    /// First byte and length within the byte of a prefix, in the node where it ends.
    fn end(&self, key: &[u64], length: u32) -> (u8, u8) {
        let level = last_level(length);
        let bits = (length - 8 * level) as u8;
        let byte = if bits == 0 { 0 } else { self.byte(key, level) };
        let kept = if bits == 0 { 0 } else { 0xffu8 << (8 - bits) };
        (byte & kept, bits)
    }

    fn new_node(&mut self, parent: u32) -> u32 {
        let parts = Parts { parent, ..Parts::default() };
        let index = match self.free.pop() {
            Some(index) => {
                self.parts[index as usize] = parts;
                index as usize
            }
            None => {
                make_room(&mut self.parts, 1, self.most);
                self.parts.push(parts);
                self.parts.len() - 1
            }
        };
        self.rebuild(index);
        index as u32
    }

    /// Gives a node's words back.
    fn release(&mut self, index: usize) {
        let Parts { at, room, .. } = self.parts[index];
        let at = at & !DENSE;
        let grains = room as usize / GRAIN;
        if grains == 0 {
            return;
        }
        if self.spare.len() <= grains {
            self.spare.resize(grains + 1, Vec::new());
        }
        self.spare[grains].push(at);
        self.parts[index].room = 0;
    }

    /// Writes what a lookup reads of a node, elsewhere if it has not the room where it is.
    fn rebuild(&mut self, index: usize) {
        let (encoded, dense) = self.encode(&self.parts[index]);
        let wanted = encoded.len().div_ceil(GRAIN);
        let moves = self.parts[index].room as usize != wanted * GRAIN;
        if moves {
            self.release(index);
            let at = match self.spare.get_mut(wanted).and_then(Vec::pop) {
                Some(at) => at,
                None => {
                    let at = self.words.len();
                    self.words.reach(at + wanted * GRAIN, self.most_words);
                    at as u32
                }
            };
            self.parts[index].at = at | dense;
            self.parts[index].room = (wanted * GRAIN) as u32;
        }
        let at = self.parts[index].at;
        let start = (at & !DENSE) as usize;
        self.words[start..start + encoded.len()].copy_from_slice(&encoded);
        if !moves {
            return;
        }
        match self.parts[index].parent {
            NONE => self.root = at,
            // Its children are as many as before, so that it stays where it is. A new node is none of them yet.
            parent => {
                let known =
                    self.parts[parent as usize].children.iter().any(|(_, child)| *child as usize == index);
                if known {
                    self.rebuild(parent as usize);
                }
            }
        }
    }

    /// A node's words, and [`DENSE`] if it has no head.
    fn encode(&self, parts: &Parts) -> (Vec<u64>, u32) {
        let mut all = [Run { value: NONE, child: EMPTY }; 256];
        let mut lengths = [0u8; 256];
        for (first, bits, value) in &parts.prefixes {
            let first = usize::from(*first);
            for byte in first..first + (256 >> bits) {
                // Each length covers a byte at most once.
                if all[byte].value == NONE || lengths[byte] < *bits {
                    all[byte].value = *value;
                    lengths[byte] = *bits;
                }
            }
        }
        for (byte, child) in &parts.children {
            all[usize::from(*byte)].child = self.parts[*child as usize].at;
        }
        let runs = 1 + all.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if runs > DENSE_RUNS {
            return (all.into_iter().map(Run::encoded).collect(), DENSE);
        }
        let mut words = vec![0u64; HEAD];
        for (byte, run) in all.into_iter().enumerate() {
            if byte % 64 == 0 {
                words[4] |= ((words.len() - HEAD) as u64) << (16 * (byte / 64));
            }
            if byte == 0 || run != all[byte - 1] {
                words[byte / 64] |= 1 << (byte % 64);
                words.push(run.encoded());
            }
        }
        (words, 0)
    }
}

/// Whether the processor has what [`Lpm::walk_counting`] is built for.
fn counts_bits() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The level in whose node a prefix ends: one of 8 bits ends in the first node, as does that of none.
fn last_level(length: u32) -> u32 {
    length.saturating_sub(1) / 8
}

impl Parts {
    fn child(&self, byte: u8) -> Option<u32> {
        let found = self.children.binary_search_by_key(&byte, |(b, _)| *b);
        found.ok().map(|place| self.children[place].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A list of prefixes, searched from one end to the other.
    fn slow(list: &[(u128, u32, u32)], width: u32, key: u128) -> Option<u32> {
        let covers = |value: u128, length: u32| length == 0 || (value ^ key) >> (width - length) == 0;
        list.iter().filter(|(v, l, _)| covers(*v, *l)).max_by_key(|(_, l, _)| *l).map(|(.., h)| *h)
    }

    fn words(value: u128, width: u32) -> Vec<u64> {
        let all = [value as u64, (value >> 64) as u64];
        all[..width.div_ceil(64) as usize].to_vec()
    }

    /// So many that nodes become plain arrays, and fewer again.
    #[test]
    fn full_nodes() {
        let mut rng = units::SplitMix::new(5);
        let mut lpm = Lpm::new(24);
        let mut list: Vec<(u128, u32, u32)> = Vec::new();
        for number in 0..1500 {
            let length = [7, 8, 8, 15, 16, 16, 16, 20, 24][number as usize % 9];
            // Half of them below one byte.
            let top = if number % 2 == 0 { 0x2a } else { rng.next_u64() & 0xff };
            let value = (top << 16 | rng.next_u64() & 0xffff) & (0xff_ffff << (24 - length));
            if list.iter().all(|(v, l, _)| (*v, *l) != (u128::from(value), length)) {
                list.push((u128::from(value), length, number));
                lpm.insert(&[value], length, number);
            }
        }
        assert!(lpm.words.len() > 512 && lpm.root & DENSE != 0);
        while !list.is_empty() {
            for _ in 0..200 {
                let top = if rng.next_u64().is_multiple_of(2) { 0x2a } else { rng.next_u64() & 0xff };
                let key = top << 16 | rng.next_u64() & 0xffff;
                assert_eq!(lpm.lookup(&[key]), slow(&list, 24, u128::from(key)));
            }
            for _ in 0..100.min(list.len()) {
                let (value, length, number) = list.swap_remove((rng.next_u64() % list.len() as u64) as usize);
                assert_eq!(lpm.remove(&[value as u64], length), Some(number));
            }
        }
        assert_eq!(lpm.lookup(&[0x2a_0000]), None);
    }

    /// The way that all keys share gets longer and shorter; what leaves it is found too.
    #[test]
    fn a_common_beginning() {
        let mut lpm = Lpm::new(32);
        let prefixes = [(0x0a00_0001, 32), (0x0a00_0002, 32), (0x0a00_0000, 8), (0, 0), (0x0a05_0100, 24)];
        let keys = [0x0a00_0001, 0x0a00_0002, 0x0a00_0003, 0x0a05_0101, 0x0b00_0001];
        let mut list: Vec<(u128, u32, u32)> = Vec::new();
        let mut levels = Vec::new();
        let mut check = |lpm: &Lpm, list: &[(u128, u32, u32)]| {
            levels.push(lpm.way.levels);
            for key in keys {
                assert_eq!(lpm.lookup(&[key]), slow(list, 32, u128::from(key)), "{key:x}");
            }
        };
        for (number, (value, length)) in prefixes.into_iter().enumerate() {
            lpm.insert(&[value], length, number as u32);
            list.push((u128::from(value), length, number as u32));
            check(&lpm, &list);
        }
        lpm.remove(&[0x0a00_0001], 32);
        list.remove(0);
        check(&lpm, &list);
        lpm.remove(&[0x0a05_0100], 24);
        list.pop();
        check(&lpm, &list);
        assert_eq!(levels, [3, 3, 3, 3, 1, 1, 3]);
    }

    proptest! {
        #[test]
        fn as_a_list(
            width in prop::sample::select(vec![1u32, 7, 8, 9, 20, 32, 48, 64, 65, 100, 128]),
            changes in prop::collection::vec((any::<u128>(), any::<u32>(), any::<bool>(), 0u8..4), 1..60),
            keys in prop::collection::vec((any::<u128>(), any::<usize>()), 20),
        ) {
            let all = u128::MAX >> (128 - width);
            let mut list: Vec<(u128, u32, u32)> = Vec::new();
            let mut lpm = Lpm::new(width);
            for (number, (value, length, remove, near)) in changes.into_iter().enumerate() {
                let length = length % (width + 1);
                // Prefixes that share their beginning, so that they nest.
                let value = if near == 0 { value } else { value & (all >> 4) };
                let value = if length == 0 { 0 } else { value & all & (all << (width - length)) };
                let at = list.iter().position(|(v, l, _)| (*v, *l) == (value, length));
                prop_assert_eq!(lpm.find(&words(value, width), length), at.map(|at| list[at].2));
                if remove && !list.is_empty() {
                    let (value, length, handle) = list.swap_remove(number % list.len());
                    prop_assert_eq!(lpm.remove(&words(value, width), length), Some(handle));
                } else if at.is_none() {
                    list.push((value, length, number as u32));
                    lpm.insert(&words(value, width), length, number as u32);
                }
                for (key, pick) in &keys {
                    // Half of the keys below one of the prefixes.
                    let key = match list.get(pick % (2 * list.len() + 1)) {
                        Some((value, length, _)) if *length < width => value | (key & (all >> length)),
                        Some((value, ..)) => *value,
                        None => key & all,
                    };
                    let expected = slow(&list, width, key);
                    // Built for this processor, if it counts bits, and for any.
                    prop_assert_eq!(lpm.lookup(&words(key, width)), expected);
                    prop_assert_eq!(lpm.walk(&words(key, width)), expected);
                }
            }
        }
    }
}
