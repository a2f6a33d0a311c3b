//! What an entry of a table leads to: an action, a part of an action profile, or actions of its own to choose from.

use super::room::SLOT;

/// Sets of actions are counted together: see [`Target::used`].
pub(super) const SETS: u64 = u64::MAX;

/// What an entry leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Index in [`p4lang::ir::Table::actions`], and its action data: for each parameter `ceil(width / 64)` words.
    Action { action: u32, args: Box<[u64]> },
    /// Member of the table's action profile.
    Member(u32),
    /// Group of the table's action selector.
    Group(u32),
    /// Actions to choose from as from a group, of this entry alone.
    Set(Box<ActionSet>),
}

impl Target {
    /// What it is counted by, to know without going through the entries whether one leads there. Actions are not counted.
    pub(super) fn used(&self) -> Option<u64> {
        match self {
            Target::Action { .. } => None,
            Target::Member(member) => Some(u64::from(*member)),
            Target::Group(group) => Some(1 << 32 | u64::from(*group)),
            Target::Set(_) => Some(SETS),
        }
    }

    /// Bytes that it has beside those of an entry at its declared size: see [`super::room`].
    pub(crate) fn added(&self) -> u64 {
        match self {
            Target::Set(set) => set.bytes(),
            _ => 0,
        }
    }
}

/// Actions of a table's entry to choose from, without members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionSet {
    pub(super) choices: Vec<Choice>,
    /// Indices in `choices`, each as often as its weight.
    pub(super) picks: Vec<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Index in the table's action list, and its data.
    pub action: u32,
    pub args: Box<[u64]>,
    pub weight: u32,
    pub watch: Vec<u8>,
}

impl ActionSet {
    pub fn new(choices: Vec<Choice>) -> ActionSet {
        let picks = weighted(choices.iter().enumerate().map(|(index, c)| (index as u32, c.weight)));
        ActionSet { choices, picks }
    }

    pub fn choices(&self) -> &[Choice] {
        &self.choices
    }

    fn bytes(&self) -> u64 {
        let of = |choice: &Choice| size_of::<Choice>() + size_of_val(&*choice.args) + choice.watch.len();
        let all = self.choices.iter().map(of).sum::<usize>() + size_of_val(&*self.picks);
        SLOT + (size_of::<ActionSet>() + all) as u64
    }
}

/// Each number as often as its weight.
pub(super) fn weighted(of: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    of.flat_map(|(what, weight)| std::iter::repeat_n(what, weight as usize)).collect()
}
