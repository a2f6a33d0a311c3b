//! Objects by their full names.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use super::Info;

/// Where the objects of one list are, by their full names; made when one is asked for first, so once the list is complete. A copy makes
/// its own.
#[derive(Default)]
pub struct ByName(OnceLock<HashMap<Box<str>, usize>>);

impl ByName {
    /// The first one of a name. `infos` are those of the list, with their places in it.
    pub fn position<'a>(&self, name: &str, infos: impl Iterator<Item = (usize, &'a Info)>) -> Option<usize> {
        let made = || {
            let mut places = HashMap::new();
            for (at, info) in infos {
                places.entry(info.name.as_str().into()).or_insert(at);
            }
            places
        };
        self.0.get_or_init(made).get(name).copied()
    }
}

impl Clone for ByName {
    fn clone(&self) -> ByName {
        ByName::default()
    }
}

impl fmt::Debug for ByName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByName")
    }
}

/// Of a program's lists.
#[derive(Debug, Clone, Default)]
pub struct Names {
    pub tables: ByName,
    pub profiles: ByName,
    pub counters: ByName,
    pub meters: ByName,
    pub registers: ByName,
    pub value_sets: ByName,
    /// Tables, by the names of their direct counters and meters.
    pub direct_counters: ByName,
    pub direct_meters: ByName,
}
