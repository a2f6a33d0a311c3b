//! How many entries of a table lead to each member and group of its action profile, and how many have sets of actions: whether
//! something is used is known without going through the entries.

use super::Target;
use crate::state::pieces::Pieces;

#[derive(Debug, Clone, Default)]
pub(super) struct Uses(Pieces<u64, u32>);

/// All sets of actions count as one; actions are not counted.
fn key(target: &Target) -> Option<u64> {
    match target {
        Target::Action { .. } => None,
        Target::Member(member) => Some(u64::from(*member)),
        Target::Group(group) => Some(1 << 32 | u64::from(*group)),
        Target::Set(_) => Some(u64::MAX),
    }
}

impl Uses {
    pub fn add(&mut self, target: &Target) {
        if let Some(key) = key(target) {
            let before = self.0.get(&key).copied().unwrap_or(0);
            self.0.insert(key, before + 1);
        }
    }

    pub fn remove(&mut self, target: &Target) {
        let Some(key) = key(target) else { return };
        if let Some(count) = self.0.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&key);
            }
        }
    }

    pub fn has(&self, target: &Target) -> bool {
        key(target).is_some_and(|key| self.0.get(&key).is_some())
    }

    pub fn has_sets(&self) -> bool {
        self.0.get(&u64::MAX).is_some()
    }

    pub fn clear(&mut self) {
        self.0 = Pieces::default();
    }
}
