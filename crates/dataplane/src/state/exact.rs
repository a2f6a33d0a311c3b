//! Exact match: a hash map, keys of one or two words in its buckets, longer ones beside.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::words::WordHasher;

type Map<K> = HashMap<K, u32, BuildHasherDefault<WordHasher>>;

/// Keys of one length, each with a number.
#[derive(Debug, Clone)]
pub enum Exact {
    One(Map<u64>),
    Two(Map<[u64; 2]>),
    Many(Map<Box<[u64]>>),
}

impl Exact {
    /// For keys of so many words.
    pub fn new(words: usize) -> Exact {
        match words {
            1 => Exact::One(Map::default()),
            2 => Exact::Two(Map::default()),
            _ => Exact::Many(Map::default()),
        }
    }

    #[inline]
    pub fn get(&self, key: &[u64]) -> Option<u32> {
        match self {
            Exact::One(map) => map.get(key.first()?).copied(),
            Exact::Two(map) => map.get(key.first_chunk::<2>()?).copied(),
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
            (Exact::Many(map), key) => {
                map.insert(key.into(), value);
            }
            _ => debug_assert!(false, "keys of a table have one length"),
        }
    }

    pub fn remove(&mut self, key: &[u64]) {
        match (self, key) {
            (Exact::One(map), [one]) => {
                map.remove(one);
            }
            (Exact::Two(map), [one, two]) => {
                map.remove(&[*one, *two]);
            }
            (Exact::Many(map), key) => {
                map.remove(key);
            }
            _ => debug_assert!(false, "keys of a table have one length"),
        }
    }
}
