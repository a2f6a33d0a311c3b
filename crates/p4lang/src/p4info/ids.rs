//! Ids and aliases of objects in P4Info, as the reference compiler gives them (P4Runtime 1.4, section 6.3).

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The high byte of an id, by kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    Action = 0x01,
    Table = 0x02,
    ValueSet = 0x03,
    ControllerHeader = 0x04,
    ActionProfile = 0x11,
    Counter = 0x12,
    DirectCounter = 0x13,
    Meter = 0x14,
    DirectMeter = 0x15,
    Register = 0x16,
    Digest = 0x17,
}

/// Bob Jenkins' one-at-a-time hash.
fn one_at_a_time(text: &str) -> u32 {
    let mut hash: u32 = 0;
    for byte in text.bytes() {
        hash = hash.wrapping_add(u32::from(byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// Ids by kind and name.
#[derive(Debug, Default)]
pub struct Ids {
    used: BTreeSet<u32>,
    ids: BTreeMap<(Kind, String), u32>,
}

impl Ids {
    /// Gives every object an id: those that ask for one first, then the others by the hash of their names. An id whose
    /// high byte is 0 gets the kind's.
    pub fn new<'a>(objects: impl Iterator<Item = (Kind, &'a str, Option<u32>)> + Clone) -> Ids {
        let mut ids = Ids::default();
        for (kind, name, wanted) in objects.clone() {
            if let Some(wanted) = wanted {
                let id = if wanted >> 24 == 0 { (kind as u32) << 24 | wanted } else { wanted };
                ids.used.insert(id);
                ids.ids.insert((kind, name.to_owned()), id);
            }
        }
        for (kind, name, _) in objects {
            if ids.ids.contains_key(&(kind, name.to_owned())) {
                continue;
            }
            let mut low = one_at_a_time(name) & 0x00ff_ffff;
            let id = loop {
                let id = (kind as u32) << 24 | low;
                if low != 0 && ids.used.insert(id) {
                    break id;
                }
                low = (low + 1) & 0x00ff_ffff;
            };
            ids.ids.insert((kind, name.to_owned()), id);
        }
        ids
    }

    pub fn get(&self, kind: Kind, name: &str) -> u32 {
        self.ids.get(&(kind, name.to_owned())).copied().unwrap_or(0)
    }
}

/// Ids of the parts of one object (match fields, parameters), in order: those asked for by `@id`, and for the others the
/// number of their place or the next that is free. No two are the same unless the program asks for it.
pub fn part_ids(wanted: impl Iterator<Item = Option<u32>> + Clone) -> Vec<u32> {
    let mut used: BTreeSet<u32> = wanted.clone().flatten().collect();
    let mut next = 1;
    let id = |wanted: Option<u32>| match wanted {
        Some(id) => {
            next += 1;
            id
        }
        None => {
            while !used.insert(next) {
                next += 1;
            }
            next
        }
    };
    wanted.map(id).collect()
}

/// The shortest suffix of whole parts that no other name ends in.
pub fn aliases<'a>(names: impl Iterator<Item = &'a str> + Clone) -> HashMap<String, String> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    let distinct: BTreeSet<&str> = names.collect();
    for name in &distinct {
        for suffix in suffixes(name) {
            *count.entry(suffix).or_default() += 1;
        }
    }
    distinct
        .iter()
        .map(|name| {
            let alias = suffixes(name).find(|s| count.get(s) == Some(&1)).unwrap_or(name);
            ((*name).to_owned(), alias.to_owned())
        })
        .collect()
}

/// `c`, `b.c`, `a.b.c` of `a.b.c`.
fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    let starts = name.rmatch_indices('.').map(|(i, _)| i + 1).chain(std::iter::once(0));
    starts.map(|start| &name[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_unique_suffix() {
        let names = ["a.b.t", "a.c.t", "a.u"];
        let aliases = aliases(names.into_iter());
        assert_eq!(aliases["a.b.t"], "b.t");
        assert_eq!(aliases["a.u"], "u");
    }

    #[test]
    fn parts_without_an_id_avoid_those_asked_for() {
        assert_eq!(part_ids([None, None].into_iter()), [1, 2]);
        assert_eq!(part_ids([None, Some(1), None].into_iter()), [2, 1, 3]);
        assert_eq!(part_ids([Some(5), None].into_iter()), [5, 2]);
    }

    #[test]
    fn wanted_ids_win_and_collisions_move_on() {
        let ids = Ids::new([(Kind::Table, "x", None), (Kind::Table, "y", Some(7))].into_iter());
        assert_eq!(ids.get(Kind::Table, "y"), 0x0200_0007);
        assert_eq!(ids.get(Kind::Table, "x") >> 24, 2);
        // NoAction's id in the reference compiler's output.
        let ids = Ids::new([(Kind::Action, "NoAction", None)].into_iter());
        assert_eq!(ids.get(Kind::Action, "NoAction"), 21_257_015);
    }
}
