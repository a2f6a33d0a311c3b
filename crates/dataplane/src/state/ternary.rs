//! Entries with masks and ranges, of which the one of the lowest rank wins: tuple space search.
//!
//! Entries that look at the same bits of a key share a *tuple*: a map from the values of those bits to a bucket of entries. A
//! lookup tries the tuples in the order of the best rank in each, and stops where what it has found is better than all that is
//! left. A range is held by the blocks that cover it: the range's length, rounded up to a power of two, is the size of aligned
//! blocks of which at most two meet it. So an entry is in at most two buckets for each of its ranges, in one tuple; in a bucket
//! the ranges themselves are compared, best rank first.
//!
//! The cost of a lookup grows with the tuples, not with the entries; one that a filter of its values rules out is not looked into. In the worst case each entry has a mask of its own, or all
//! entries have ranges in the same block and none holds the key: then all are looked at. [`Ternary::search`] says how much was
//! looked at, and the packet pays for it.

use std::collections::{BTreeMap, BTreeSet};

use num_bigint::BigUint;
use p4lang::ir::EntryMatch;
use p4lang::sizes::COVERED;
use smallvec::SmallVec;

use super::order::{Filter, Order, Try};
use super::pieces::{Pieces, make_room};
use super::words::{limbs, words};
use crate::cost::WORK_BUDGET;

/// A smaller one wins: the priority, and the number of the addition.
pub type Rank = (u32, u64);

/// Short ones lie beside what they belong to.
pub(super) type Words = SmallVec<[u64; 2]>;

/// Buckets of a tuple that are compared one by one before a map is made of them.
const FEW: usize = 4;

/// Work of going by a tuple, of looking into it, and of comparing an entry, in units of [`crate::cost`], without the words of the key:
/// what is looked into is not in the cache, if a table has many masks.
const TRY: u64 = 20;
const LOOK: u64 = 100;
const COMPARE: u64 = 100;

/// Buckets of a tuple whose filter is made anew when one of them goes.
const FILTERED: usize = 64;

#[derive(Debug, Clone, Default)]
pub struct Ternary {
    tuples: Vec<Tuple>,
    by_mask: BTreeMap<Words, u32>,
    /// Tuples that have entries, by their best rank.
    order: Order,
    /// Tuples without entries, to be used again.
    free: Vec<u32>,
    /// Entries of its table at most.
    most: usize,
}

#[derive(Debug, Clone, Default)]
struct Tuple {
    mask: Words,
    filter: Filter,
    ranks: BTreeSet<Rank>,
    buckets: Buckets,
}

#[derive(Debug, Clone)]
enum Buckets {
    Few(Vec<(Words, Bucket)>),
    Many(Pieces<Words, Bucket>),
}

/// Entries of the same bits, the best first.
#[derive(Debug, Clone)]
enum Bucket {
    One(Rank, Item),
    Many(BTreeMap<Rank, Item>),
}

#[derive(Debug, Clone)]
struct Item {
    handle: u32,
    ranges: SmallVec<[Range; 1]>,
}

/// From word `at` of the key on: between the two, inclusive.
#[derive(Debug, Clone)]
struct Range {
    at: usize,
    lo: Words,
    hi: Words,
}

impl Range {
    fn holds(&self, key: &[u64]) -> bool {
        let part = &key[self.at..self.at + self.lo.len()];
        part.iter().rev().ge(self.lo.iter().rev()) && part.iter().rev().le(self.hi.iter().rev())
    }
}

impl Tuple {
    fn attempt(&self, rank: Rank, tuple: u32) -> Try {
        Try { rank, mask: self.mask.clone(), filter: self.filter, tuple }
    }
}

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets::Few(Vec::new())
    }
}

impl Buckets {
    fn get(&self, value: &[u64]) -> Option<&Bucket> {
        match self {
            Buckets::Few(list) => list.iter().find(|(known, _)| **known == *value).map(|(_, bucket)| bucket),
            Buckets::Many(map) => map.get(value),
        }
    }

    /// That of the values, if they are not too many to look at.
    fn filter(&self) -> Option<Filter> {
        let mut filter = Filter::default();
        match self {
            Buckets::Few(list) => list.iter().for_each(|(value, _)| filter.add(value)),
            Buckets::Many(map) if map.len() <= FILTERED => {
                map.iter().for_each(|(value, _)| filter.add(value))
            }
            Buckets::Many(_) => return None,
        }
        Some(filter)
    }

    fn insert(&mut self, value: Words, rank: Rank, item: Item) {
        match self {
            Buckets::Few(list) => match list.iter_mut().find(|(known, _)| *known == value) {
                Some((_, bucket)) => bucket.insert(rank, item),
                None => {
                    if list.is_empty() {
                        // Where masks are many, most have one.
                        list.reserve_exact(1);
                    }
                    list.push((value, Bucket::One(rank, item)));
                    if list.len() > FEW {
                        let mut map = Pieces::default();
                        list.drain(..).for_each(|(value, bucket)| _ = map.insert(value, bucket));
                        *self = Buckets::Many(map);
                    }
                }
            },
            Buckets::Many(map) => match map.get_mut(&value) {
                Some(bucket) => bucket.insert(rank, item),
                None => {
                    map.insert(value, Bucket::One(rank, item));
                }
            },
        }
    }

    fn remove(&mut self, value: &[u64], rank: Rank) {
        match self {
            Buckets::Few(list) => list.retain_mut(|(known, bucket)| **known != *value || bucket.remove(rank)),
            Buckets::Many(map) => {
                if map.get_mut(value).is_some_and(|bucket| !bucket.remove(rank)) {
                    map.remove(value);
                }
            }
        }
    }
}

impl Bucket {
    fn insert(&mut self, rank: Rank, item: Item) {
        match self {
            Bucket::Many(map) => {
                map.insert(rank, item);
            }
            Bucket::One(..) => {
                let one = std::mem::replace(self, Bucket::Many(BTreeMap::from([(rank, item)])));
                if let (Bucket::One(rank, item), Bucket::Many(map)) = (one, self) {
                    map.insert(rank, item);
                }
            }
        }
    }

    /// Whether entries are left.
    fn remove(&mut self, rank: Rank) -> bool {
        match self {
            Bucket::One(known, _) => *known != rank,
            Bucket::Many(map) => {
                map.remove(&rank);
                !map.is_empty()
            }
        }
    }

    /// The best entry that holds a key, if it is better than what is known, and how many were looked at.
    fn best(&self, key: &[u64], known: Option<Rank>) -> (Option<(Rank, u32)>, u64) {
        let mut looked = 0;
        let mut look = |rank: &Rank, item: &Item| {
            looked += 1 + item.ranges.len() as u64;
            (known.is_none_or(|known| *rank < known), item.ranges.iter().all(|range| range.holds(key)))
        };
        let found = match self {
            Bucket::One(rank, item) => (look(rank, item) == (true, true)).then_some((*rank, item.handle)),
            Bucket::Many(map) => {
                let mut found = None;
                for (rank, item) in map {
                    match look(rank, item) {
                        (false, _) => break,
                        (true, false) => {}
                        (true, true) => {
                            found = Some((*rank, item.handle));
                            break;
                        }
                    }
                }
                found
            }
        };
        (found, looked)
    }
}

/// Where an entry is: the bits of a key that are looked at, what they are in each of its buckets, and what else is compared.
struct Place {
    mask: Words,
    values: Vec<Words>,
    ranges: SmallVec<[Range; 1]>,
}

impl Place {
    fn of(matches: &[EntryMatch], widths: &[u32]) -> Place {
        let mut mask = Vec::new();
        let mut values = vec![Vec::new()];
        let mut ranges = SmallVec::new();
        for (matched, width) in matches.iter().zip(widths) {
            let at = mask.len();
            let ones = (BigUint::from(1u8) << *width) - 1u8;
            // The bits that are looked at, and the values that they have.
            let (looked, found): (BigUint, SmallVec<[BigUint; 2]>) = match matched {
                EntryMatch::Exact(value) | EntryMatch::Optional(Some(value)) => {
                    (ones, [value.clone()].into_iter().collect())
                }
                EntryMatch::Optional(None) => (BigUint::ZERO, [BigUint::ZERO].into_iter().collect()),
                EntryMatch::Lpm { value, prefix_len } => {
                    let low = width.saturating_sub(*prefix_len);
                    let mask = (ones >> low) << low;
                    let value = value & &mask;
                    (mask, [value].into_iter().collect())
                }
                EntryMatch::Ternary { value, mask } => (mask.clone(), [value & mask].into_iter().collect()),
                EntryMatch::Range { lo, hi } => {
                    let whole = *lo == BigUint::ZERO && *hi >= ones;
                    let one = lo == hi;
                    if !whole && !one {
                        let mut range = Range { at, lo: Words::default(), hi: Words::default() };
                        for (limit, to) in [(lo, &mut range.lo), (hi, &mut range.hi)] {
                            let mut words = Vec::new();
                            limbs(limit, *width, &mut words);
                            *to = Words::from_slice(&words);
                        }
                        ranges.push(range);
                    }
                    let covered = ranges.len() <= COVERED && lo <= hi;
                    // Bits below the blocks.
                    let low = match (whole || !covered, one) {
                        (true, _) => *width,
                        (_, true) => 0,
                        _ => ((hi - lo).bits() as u32).min(*width),
                    };
                    let block = |limit: &BigUint| (limit >> low) << low;
                    let mask = (ones >> low) << low;
                    let mut found: SmallVec<[BigUint; 2]> = [block(lo) & &mask].into_iter().collect();
                    let last = block(hi) & &mask;
                    if last != found[0] {
                        found.push(last);
                    }
                    (mask, found)
                }
            };
            limbs(&looked, *width, &mut mask);
            let before = std::mem::take(&mut values);
            for value in &found {
                for start in &before {
                    let mut longer: Vec<u64> = start.clone();
                    limbs(value, *width, &mut longer);
                    values.push(longer);
                }
            }
            debug_assert_eq!(mask.len(), at + words(*width));
        }
        let values = values.iter().map(|value| Words::from_slice(value)).collect();
        Place { mask: Words::from_slice(&mask), values, ranges }
    }
}

impl Ternary {
    pub fn new(most: usize) -> Ternary {
        Ternary { most, ..Ternary::default() }
    }

    pub fn insert(&mut self, matches: &[EntryMatch], widths: &[u32], rank: Rank, handle: u32) {
        let Place { mask, values, ranges } = Place::of(matches, widths);
        let index = match self.by_mask.get(&mask) {
            Some(index) => *index,
            None => {
                let new = Tuple { mask: mask.clone(), ..Tuple::default() };
                let index = match self.free.pop() {
                    Some(index) => {
                        self.tuples[index as usize] = new;
                        index
                    }
                    None => {
                        make_room(&mut self.tuples, 1, self.most);
                        self.tuples.push(new);
                        self.tuples.len() as u32 - 1
                    }
                };
                self.by_mask.insert(mask, index);
                index
            }
        };
        let tuple = &mut self.tuples[index as usize];
        let best = tuple.ranks.first().copied();
        tuple.ranks.insert(rank);
        for value in values {
            tuple.filter.add(&value);
            tuple.buckets.insert(value, rank, Item { handle, ranges: ranges.clone() });
        }
        if best.is_none_or(|best| rank < best) {
            best.map(|best| self.order.remove(best));
            self.order.insert(tuple.attempt(rank, index));
        } else if let Some(known) = best.and_then(|best| self.order.get_mut(best)) {
            known.filter = tuple.filter;
        }
    }

    pub fn remove(&mut self, matches: &[EntryMatch], widths: &[u32], rank: Rank) {
        let Place { mask, values, .. } = Place::of(matches, widths);
        let Some(index) = self.by_mask.get(&mask).copied() else { return };
        let tuple = &mut self.tuples[index as usize];
        for value in values {
            tuple.buckets.remove(&value, rank);
        }
        tuple.ranks.remove(&rank);
        tuple.filter = tuple.buckets.filter().unwrap_or(tuple.filter);
        let was_best = self.order.remove(rank).is_some();
        match tuple.ranks.first().copied() {
            Some(best) if was_best => self.order.insert(tuple.attempt(best, index)),
            Some(best) => {
                if let Some(known) = self.order.get_mut(best) {
                    known.filter = tuple.filter;
                }
            }
            None => {
                self.by_mask.remove(&mask);
                *tuple = Tuple::default();
                make_room(&mut self.free, 1, self.most);
                self.free.push(index);
            }
        }
    }

    /// The handle of the best entry that holds a key, and the work of finding it.
    // A large body, which would burden the quick lookups beside it.
    #[inline(never)]
    pub fn search(&self, key: &[u64]) -> (Option<u32>, u64) {
        let mut masked: SmallVec<[u64; 8]> = SmallVec::from_elem(0, key.len());
        let mut found: Option<(Rank, u32)> = None;
        let mut work = 0;
        for attempt in self.order.iter() {
            if found.is_some_and(|(rank, _)| rank < attempt.rank) {
                break;
            }
            for ((to, word), mask) in masked.iter_mut().zip(key).zip(&attempt.mask) {
                *to = word & mask;
            }
            work += TRY + 2 * key.len() as u64;
            if work > WORK_BUDGET {
                // The packet cannot pay for it, and is dropped whatever is found.
                break;
            }
            if !attempt.filter.may_have(&masked) {
                continue;
            }
            work += LOOK;
            if let Some(bucket) = self.tuples[attempt.tuple as usize].buckets.get(&masked) {
                let (better, looked) = bucket.best(key, found.map(|(rank, _)| rank));
                work += COMPARE * looked;
                found = better.or(found);
            }
        }
        (found.map(|(_, handle)| handle), work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIDTHS: [u32; 3] = [8, 70, 16];

    fn any_match(width: u32) -> impl Strategy<Value = EntryMatch> {
        let small = move |value: u16| BigUint::from(value) << (width.saturating_sub(16) / 2);
        let fit = move |value: BigUint| value & ((BigUint::from(1u8) << width) - 1u8);
        let value = prop_oneof![0u16..4, any::<u16>()].prop_map(move |v| fit(small(v)));
        let other = prop_oneof![0u16..4, Just(0xff), any::<u16>()].prop_map(move |v| fit(small(v)));
        (value, other, 0u32..5, 0u32..9).prop_map(move |(value, other, kind, length)| match kind {
            0 => EntryMatch::Exact(value),
            1 => EntryMatch::Optional(None),
            2 => EntryMatch::Ternary { value: &value & &other, mask: other },
            3 => {
                let low = width - length;
                EntryMatch::Lpm { value: (value >> low) << low, prefix_len: length }
            }
            _ => EntryMatch::Range { lo: value.clone().min(other.clone()), hi: value.max(other) },
        })
    }

    fn holds(matches: &[EntryMatch], key: &[BigUint]) -> bool {
        matches.iter().zip(key).zip(WIDTHS).all(|((m, value), width)| match m {
            EntryMatch::Exact(v) | EntryMatch::Optional(Some(v)) => v == value,
            EntryMatch::Optional(None) => true,
            EntryMatch::Ternary { value: v, mask } => value & mask == *v,
            EntryMatch::Lpm { value: v, prefix_len } => {
                let low = width - prefix_len;
                value >> low == v >> low
            }
            EntryMatch::Range { lo, hi } => lo <= value && value <= hi,
        })
    }

    fn any_entry() -> impl Strategy<Value = Vec<EntryMatch>> {
        (any_match(WIDTHS[0]), any_match(WIDTHS[1]), any_match(WIDTHS[2])).prop_map(|(a, b, c)| vec![a, b, c])
    }

    proptest! {
        /// Whatever is added and removed, the entry of the lowest rank that holds a key is found.
        #[test]
        fn as_a_list(
            changes in prop::collection::vec((any_entry(), 0u32..4, any::<bool>(), any::<usize>()), 1..60),
            keys in prop::collection::vec((0u16..4, any::<u16>(), any::<u16>()), 8),
        ) {
            let mut list: Vec<(Rank, Vec<EntryMatch>, u32)> = Vec::new();
            let mut ternary = Ternary::default();
            for (number, (entry, priority, remove, which)) in changes.into_iter().enumerate() {
                if remove && !list.is_empty() {
                    let (rank, entry, _) = list.remove(which % list.len());
                    ternary.remove(&entry, &WIDTHS, rank);
                } else {
                    let rank = (priority, number as u64);
                    ternary.insert(&entry, &WIDTHS, rank, number as u32);
                    list.push((rank, entry, number as u32));
                }
                // Keys that are anything, and those at the limits of an entry.
                let mut tried: Vec<Vec<BigUint>> = keys
                    .iter()
                    .map(|(a, b, c)| vec![(*a).into(), BigUint::from(*b) << 27u32, (*c).into()])
                    .collect();
                for (_, entry, _) in &list {
                    let limit = |m: &EntryMatch, last: bool| match m {
                        EntryMatch::Exact(v) | EntryMatch::Ternary { value: v, .. } | EntryMatch::Lpm { value: v, .. } => v.clone(),
                        EntryMatch::Optional(v) => v.clone().unwrap_or_default(),
                        EntryMatch::Range { lo, hi } => if last { hi.clone() } else { lo.clone() },
                    };
                    tried.push(entry.iter().map(|m| limit(m, false)).collect());
                    tried.push(entry.iter().map(|m| limit(m, true)).collect());
                }
                for key in tried {
                    let best = list.iter().filter(|(_, entry, _)| holds(entry, &key)).min_by_key(|(rank, ..)| *rank);
                    let mut words = Vec::new();
                    key.iter().zip(WIDTHS).for_each(|(value, width)| limbs(value, width, &mut words));
                    prop_assert_eq!(ternary.search(&words).0, best.map(|(_, _, handle)| *handle));
                }
            }
            while let Some((rank, entry, _)) = list.pop() {
                ternary.remove(&entry, &WIDTHS, rank);
            }
            prop_assert!(ternary.order.iter().next().is_none() && ternary.by_mask.is_empty());
        }
    }
}
