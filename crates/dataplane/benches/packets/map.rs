//! Exact match for what is written by hand: the standard library's hash map with a quick hash, keys of one or two words in its
//! buckets, longer ones beside. Several narrow words are made two.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use dataplane::state::words::{WordHasher, words};

type Map<K> = HashMap<K, u32, BuildHasherDefault<WordHasher>>;

/// Keys of one shape, each with a number.
#[derive(Debug, Clone)]
pub enum Exact {
    One(Map<u64>),
    Two(Map<[u64; 2]>),
    /// More words of together at most 128 bits, and the bits of each.
    Packed(Box<[u8]>, Map<[u64; 2]>),
    Many(Map<Box<[u64]>>),
}

impl Exact {
    /// For keys of values of these widths, each in its own words, least significant first.
    pub fn new(widths: &[u32]) -> Exact {
        match widths.iter().map(|width| words(*width)).sum() {
            1 => Exact::One(Map::default()),
            2 => Exact::Two(Map::default()),
            _ if widths.iter().sum::<u32>() <= 128 => {
                let low = |width: u32| (0..width / 64).map(|_| 64);
                let high = |width: u32| Some((width % 64) as u8).filter(|bits| *bits > 0);
                let bits = widths.iter().flat_map(|width| low(*width).chain(high(*width)));
                Exact::Packed(bits.collect(), Map::default())
            }
            _ => Exact::Many(Map::default()),
        }
    }

    #[inline]
    pub fn get(&self, key: &[u64]) -> Option<u32> {
        match self {
            Exact::One(map) => map.get(key.first()?).copied(),
            Exact::Two(map) => map.get(key.first_chunk::<2>()?).copied(),
            Exact::Packed(bits, map) => map.get(&packed(bits, key)).copied(),
            Exact::Many(map) => map.get(key).copied(),
        }
    }

    /// A key of another length than that of the map is not added.
    pub fn insert(&mut self, key: &[u64], value: u32) {
        match (self, key) {
            (Exact::One(map), [one]) => {
                map.insert(*one, value);
            }
            (Exact::Two(map), [one, two]) => {
                map.insert([*one, *two], value);
            }
            (Exact::Packed(bits, map), key) if bits.len() == key.len() => {
                map.insert(packed(bits, key), value);
            }
            (Exact::Many(map), key) => {
                map.insert(key.into(), value);
            }
            _ => debug_assert!(false, "keys of a table have one length"),
        }
    }
}

/// The words behind each other, without the zeros above their bits.
#[inline]
fn packed(bits: &[u8], key: &[u64]) -> [u64; 2] {
    let all = bits.iter().zip(key).fold(0u128, |all, (bits, word)| all << *bits | u128::from(*word));
    [all as u64, (all >> 64) as u64]
}
