//! The tuples of a table in the order in which a lookup tries them: what a try needs lies one behind the other in memory, as a table may
//! have as many masks as entries, and most tries find nothing.

use super::exact::hash;
use super::ternary::{Rank, Words};

/// Tries in one piece of memory at most.
const PIECE: usize = 512;

/// What is needed to try a tuple.
#[derive(Debug, Clone)]
pub(super) struct Try {
    /// The best one of its entries.
    pub rank: Rank,
    pub mask: Words,
    pub filter: Filter,
    pub tuple: u32,
}

/// Values that may be those of a tuple's entries: each sets one of 64 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Filter(u64);

impl Filter {
    #[inline(always)]
    fn bit(value: &[u64]) -> u64 {
        1 << (hash(value) >> 58)
    }

    #[inline(always)]
    pub fn may_have(self, value: &[u64]) -> bool {
        self.0 & Filter::bit(value) != 0
    }

    pub fn add(&mut self, value: &[u64]) {
        self.0 |= Filter::bit(value);
    }
}

/// By rank. No piece is empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    pieces: Vec<Vec<Try>>,
}

impl Order {
    /// The piece that has a rank or would, and the place in it.
    fn place(&self, rank: Rank) -> (usize, usize) {
        let piece = self.pieces.partition_point(|piece| piece[0].rank <= rank).saturating_sub(1);
        let at = self.pieces.get(piece).map_or(0, |piece| piece.partition_point(|other| other.rank < rank));
        (piece, at)
    }

    pub fn get_mut(&mut self, rank: Rank) -> Option<&mut Try> {
        let (piece, at) = self.place(rank);
        self.pieces.get_mut(piece)?.get_mut(at).filter(|found| found.rank == rank)
    }

    /// Adds a tuple, whose rank no other has.
    pub fn insert(&mut self, new: Try) {
        let (piece, at) = self.place(new.rank);
        match self.pieces.get_mut(piece) {
            None => self.pieces.push(vec![new]),
            Some(tries) => {
                tries.insert(at, new);
                if tries.len() > PIECE {
                    let rest = tries.split_off(PIECE / 2);
                    self.pieces.insert(piece + 1, rest);
                }
            }
        }
    }

    pub fn remove(&mut self, rank: Rank) -> Option<Try> {
        let (piece, at) = self.place(rank);
        let tries = self.pieces.get_mut(piece)?;
        if tries.get(at)?.rank != rank {
            return None;
        }
        let found = tries.remove(at);
        if tries.is_empty() {
            self.pieces.remove(piece);
        }
        Some(found)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Try> {
        self.pieces.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use units::SplitMix;

    #[test]
    fn as_a_map() {
        let (mut order, mut map) = (Order::default(), BTreeMap::new());
        let mut rng = SplitMix::new(1);
        // More and more, then fewer.
        for step in 0..6000 {
            let rank = ((rng.next_u64() % 4) as u32, rng.next_u64() % 1000);
            let adds = rng.next_u64() % 8 < if step < 3000 { 7 } else { 1 };
            let removed = order.remove(rank).map(|found| found.tuple);
            assert_eq!(removed, map.remove(&rank));
            if adds {
                order.insert(Try { rank, mask: Words::new(), filter: Filter::default(), tuple: step });
                map.insert(rank, step);
            }
            assert_eq!(order.get_mut(rank).map(|found| found.tuple), map.get(&rank).copied());
            if step % 100 == 0 {
                let all: Vec<_> = order.iter().map(|found| (found.rank, found.tuple)).collect();
                assert_eq!(all, map.iter().map(|(rank, tuple)| (*rank, *tuple)).collect::<Vec<_>>());
            }
            assert!(order.pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= PIECE));
        }
        assert!(!map.is_empty());
        for rank in map.into_keys() {
            assert!(order.remove(rank).is_some());
        }
        assert_eq!(order.iter().count(), 0);
    }
}
