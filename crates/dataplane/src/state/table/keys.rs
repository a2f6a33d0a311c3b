//! Keys of entries as the words that an index has.

use p4lang::ir::{EntryMatch, MatchKind};

use super::{Map, Words};
use crate::state::lpm::Order;
use crate::state::words::{clear_low, limbs, words};

pub(super) fn paired(widths: &[u32], kinds: &[MatchKind]) -> Vec<(MatchKind, u32)> {
    kinds.iter().copied().zip(widths.iter().copied()).collect()
}

/// The words of an entry as its key in the trie, and the length of its prefix there.
pub(super) fn trie_key(order: Option<&Order>, words: Words, matches: &[EntryMatch]) -> (Words, u32) {
    let length = prefix_length(matches);
    match order {
        Some(order) => (Box::new(order.joined(&words)), order.length(length)),
        None => (words, length),
    }
}

pub(super) fn lookup_lpm(key: &[u64], at: usize, width: u32, lengths: &[(u32, Map)]) -> Option<u32> {
    let mut buffer = [0u64; 16];
    let mut large;
    let masked: &mut [u64] = if key.len() <= buffer.len() {
        &mut buffer[..key.len()]
    } else {
        large = vec![0; key.len()];
        &mut large
    };
    masked.copy_from_slice(key);
    for (length, map) in lengths {
        clear_low(&mut masked[at..at + words(width)], width - length);
        if let Some(handle) = map.get(&*masked) {
            return Some(*handle);
        }
    }
    None
}

pub(super) fn prefix_length(matches: &[EntryMatch]) -> u32 {
    matches
        .iter()
        .find_map(|m| match m {
            EntryMatch::Lpm { prefix_len, .. } => Some(*prefix_len),
            _ => None,
        })
        .unwrap_or(0)
}

/// The values of an entry as key words (exact and lpm tables).
pub(super) fn key_words(matches: &[EntryMatch], widths: &[u32]) -> Words {
    let mut out = Vec::new();
    for (m, width) in matches.iter().zip(widths) {
        match m {
            EntryMatch::Exact(v)
            | EntryMatch::Lpm { value: v, .. }
            | EntryMatch::Ternary { value: v, .. } => limbs(v, *width, &mut out),
            _ => out.extend(std::iter::repeat_n(0, words(*width))),
        }
    }
    out.into()
}
