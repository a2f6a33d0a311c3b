//! Hash maps and lists of which no insertion moves much, however large they are: packets wait for it.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use hashbrown::HashTable;

use super::words::WordHasher;

/// Entries up to which a map is one.
const FEW: usize = 4096;

/// Elements up to which a list grows twofold.
pub(super) const SHORT: usize = 256;

/// Of a larger map: each grows by itself.
const PIECES: usize = 256;

type Table<K, V> = HashTable<(K, V)>;

/// A hash map, in pieces if it is large.
#[derive(Debug, Clone)]
pub(super) enum Pieces<K, V> {
    One(Table<K, V>),
    Many(Box<[Table<K, V>]>),
}

impl<K, V> Default for Pieces<K, V> {
    fn default() -> Pieces<K, V> {
        Pieces::One(HashTable::new())
    }
}

#[inline]
fn hash<Q: Hash + ?Sized>(key: &Q) -> u64 {
    let mut hasher = WordHasher::default();
    key.hash(&mut hasher);
    hasher.finish()
}

/// Which piece a key is in. The tables take other bits.
#[inline]
fn piece(hash: u64) -> usize {
    (hash >> 40) as usize % PIECES
}

impl<K: Hash + Eq, V> Pieces<K, V> {
    #[inline]
    fn table(&self, hash: u64) -> &Table<K, V> {
        match self {
            Pieces::One(table) => table,
            Pieces::Many(pieces) => &pieces[piece(hash)],
        }
    }

    fn table_mut(&mut self, hash: u64) -> &mut Table<K, V> {
        match self {
            Pieces::One(table) => table,
            Pieces::Many(pieces) => &mut pieces[piece(hash)],
        }
    }

    #[inline]
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let hash = hash(key);
        self.table(hash).find(hash, |(known, _)| known.borrow() == key).map(|(_, value)| value)
    }

    pub fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let hash = hash(key);
        self.table_mut(hash).find_mut(hash, |(known, _)| known.borrow() == key).map(|(_, value)| value)
    }

    /// Gives the value that the key had before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(known) = self.get_mut(&key) {
            return Some(std::mem::replace(known, value));
        }
        self.split();
        let of = |(key, _): &(K, V)| hash(key);
        let hash = hash(&key);
        self.table_mut(hash).insert_unique(hash, (key, value), of);
        None
    }

    /// Makes pieces of a map that has become large.
    fn split(&mut self) {
        let Pieces::One(table) = self else { return };
        if table.len() < FEW {
            return;
        }
        let table = std::mem::take(table);
        let mut pieces: Box<[Table<K, V>]> =
            (0..PIECES).map(|_| HashTable::with_capacity(2 * FEW / PIECES)).collect();
        for (key, value) in table {
            let number = hash(&key);
            pieces[piece(number)].insert_unique(number, (key, value), |(key, _)| hash(key));
        }
        *self = Pieces::Many(pieces);
    }

    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let hash = hash(key);
        let found = self.table_mut(hash).find_entry(hash, |(known, _)| known.borrow() == key).ok()?;
        Some(found.remove().0.1)
    }

    pub fn len(&self) -> usize {
        match self {
            Pieces::One(table) => table.len(),
            Pieces::Many(pieces) => pieces.iter().map(HashTable::len).sum(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Pieces::One(table) => table.is_empty(),
            Pieces::Many(pieces) => pieces.iter().all(HashTable::is_empty),
        }
    }

    /// In no order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let tables = match self {
            Pieces::One(table) => std::slice::from_ref(table),
            Pieces::Many(pieces) => &pieces[..],
        };
        tables.iter().flatten().map(|(key, value)| (key, value))
    }
}

/// How often each key was added and not removed.
#[derive(Clone)]
pub(super) struct Counts<K>(Pieces<K, u32>);

impl<K> Default for Counts<K> {
    fn default() -> Counts<K> {
        Counts(Pieces::default())
    }
}

impl<K: Hash + Eq> Counts<K> {
    pub fn add(&mut self, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            let before = self.0.get(&key).copied().unwrap_or(0);
            self.0.insert(key, before + 1);
        }
    }

    pub fn remove(&mut self, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            match self.0.get_mut(&key) {
                Some(count) if *count > 1 => *count -= 1,
                _ => _ = self.0.remove(&key),
            }
        }
    }

    pub fn has(&self, key: &K) -> bool {
        self.0.get(key).is_some()
    }
}

impl<K: Hash + Ord + fmt::Debug> fmt::Debug for Counts<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().collect::<BTreeMap<_, _>>()).finish()
    }
}

/// Makes room for `more` elements of a list that will have `most` of them at most. Beyond [`SHORT`] that is room for all: the
/// system provides it as it is used, and nothing moves again.
pub(super) fn make_room<T>(list: &mut Vec<T>, more: usize, most: usize) {
    let wanted = list.len() + more;
    if wanted > list.capacity() && wanted > SHORT && wanted <= most {
        // Without so much memory it grows as others do.
        _ = list.try_reserve_exact(most - list.len());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use units::SplitMix;

    #[test]
    fn as_a_map() {
        let (mut pieces, mut map) = (Pieces::default(), HashMap::new());
        let mut rng = SplitMix::new(1);
        // More and more, then fewer.
        for step in 0..40_000u64 {
            let key: Box<[u64]> = [rng.next_u64() % 10_000, 7].into();
            if rng.next_u64() % 8 < if step < 20_000 { 7 } else { 1 } {
                assert_eq!(pieces.insert(key.clone(), step), map.insert(key.clone(), step));
                *pieces.get_mut(&*key).expect("it was added") += 1;
                map.entry(key).and_modify(|value| *value += 1);
            } else {
                assert_eq!(pieces.remove(&*key), map.remove(&key));
                assert_eq!(pieces.get(&*key), None);
            }
            if step % 1000 == 0 {
                assert!(map.iter().all(|(key, value)| pieces.get(&**key) == Some(value)));
            }
            assert_eq!(pieces.is_empty(), map.is_empty());
        }
        assert!(matches!(pieces, Pieces::Many(_)));
        assert_eq!(pieces.len(), map.len());
        let all: HashMap<_, _> = pieces.iter().map(|(key, value)| (key.clone(), *value)).collect();
        assert_eq!(all, map);
    }

    /// Of a million insertions, how many entries one moves at most.
    #[test]
    fn no_insertion_moves_much() {
        let room = |pieces: &Pieces<u64, u64>| match pieces {
            Pieces::One(table) => table.capacity(),
            Pieces::Many(tables) => tables.iter().map(HashTable::capacity).max().unwrap_or(0),
        };
        let mut pieces = Pieces::default();
        for key in 0..1_000_000u64 {
            pieces.insert(key, key);
        }
        assert!(room(&pieces) <= 2 * FEW, "{}", room(&pieces));

        let mut list = Vec::new();
        let mut moved = 0;
        for element in 0..1_000_000u64 {
            let before = list.capacity();
            make_room(&mut list, 1, 1_000_000);
            list.push(element);
            if list.capacity() != before {
                moved = moved.max(list.len());
            }
        }
        assert!(moved <= SHORT + 1, "{moved}");
        assert_eq!(list.capacity(), 1_000_000);
    }
}
