//! What an entry of a table leads to: an action, a part of an action profile, or actions of its own to choose from.

use num_bigint::BigUint;
use p4lang::ir::{ActionId, Program, Table};

use super::room::SLOT;
use super::words::{limbs, number, words};

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

    /// Actions that it has to choose from, if it has some of its own.
    pub(crate) fn choices(&self) -> usize {
        match self {
            Target::Set(set) => set.choices.len(),
            _ => 0,
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

/// Actions of a set whose reading takes as long as that of an entry.
const ACTIONS: usize = 2;

/// Entries that are read while packets wait. The actions of their sets count, too, so that there are fewer entries with large sets.
#[derive(Debug)]
pub struct Page {
    left: usize,
    empty: bool,
    full: bool,
}

impl Page {
    /// Of so many entries, or one, whatever is in it.
    pub fn of(most: usize) -> Page {
        Page { left: most, empty: true, full: false }
    }

    /// Whether an entry that leads there has room; if it has, it is taken.
    pub(super) fn take(&mut self, target: &Target) -> bool {
        let left = self.left.checked_sub(1 + target.choices() / ACTIONS);
        self.full = left.is_none() && !self.empty;
        if !self.full {
            (self.left, self.empty) = (left.unwrap_or(0), false);
        }
        !self.full
    }

    /// Whether there was no room for the last one.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }
}

/// Each number as often as its weight.
pub(super) fn weighted(of: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    of.flat_map(|(what, weight)| std::iter::repeat_n(what, weight as usize)).collect()
}

/// Action data as words.
pub fn action_words(program: &Program, table: &Table, action: u32, args: &[BigUint]) -> Box<[u64]> {
    let mut out = Vec::new();
    if let Some(listed) = table.actions.get(action as usize) {
        for (param, value) in program[listed.action].params.iter().zip(args) {
            limbs(value, program[param.var].width, &mut out);
        }
    }
    out.into()
}

/// Action data as numbers.
pub fn action_args(program: &Program, action: ActionId, args: &[u64]) -> Vec<BigUint> {
    let mut at = 0;
    program[action]
        .params
        .iter()
        .map(|param| {
            let count = words(program[param.var].width);
            at += count;
            number(args.get(at - count..at).unwrap_or(&[]))
        })
        .collect()
}
