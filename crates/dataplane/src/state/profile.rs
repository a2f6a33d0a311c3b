//! Action profiles and selectors: actions that table entries share (members), and groups to choose from by a hash.
//!
//! Members and groups have numbers: those that are asked for, or the next that is free.

use std::collections::BTreeSet;
use std::fmt;

use super::pieces::{Counts, Pieces};
use super::room::SLOT;
use super::target::{Target, weighted};

pub use super::target::{ActionSet, Choice};

/// Parts by number, found fast and read in order.
#[derive(Clone)]
struct Map<T> {
    parts: Pieces<u32, T>,
    numbers: BTreeSet<u32>,
}

impl<T> Default for Map<T> {
    fn default() -> Map<T> {
        Map { parts: Pieces::default(), numbers: BTreeSet::new() }
    }
}

impl<T> Map<T> {
    fn get(&self, number: &u32) -> Option<&T> {
        self.parts.get(number)
    }

    fn contains_key(&self, number: &u32) -> bool {
        self.parts.get(number).is_some()
    }

    fn insert(&mut self, number: u32, part: T) -> Option<T> {
        self.numbers.insert(number);
        self.parts.insert(number, part)
    }

    fn remove(&mut self, number: &u32) -> Option<T> {
        self.numbers.remove(number);
        self.parts.remove(number)
    }

    fn len(&self) -> usize {
        self.numbers.len()
    }

    /// In the order of their numbers, from one on.
    fn from(&self, first: u32) -> impl Iterator<Item = (u32, &T)> {
        self.numbers.range(first..).filter_map(|number| Some((*number, self.parts.get(number)?)))
    }
}

impl<T: fmt::Debug> fmt::Debug for Map<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.from(0)).finish()
    }
}

/// Picks that a group's weights may come to.
pub const MAX_WEIGHT: u32 = 65_536;

/// An action's index, and words of its data.
pub(crate) type Member = (u32, Box<[u64]>);

#[derive(Debug, Clone, Default)]
pub struct Profile {
    members: Map<Member>,
    groups: Map<Group>,
    /// How many groups have each member.
    in_groups: Counts<u32>,
    next_member: u32,
    next_group: u32,
    /// Whether its members are beside the program's declared sizes: it has none.
    unsized_members: bool,
    /// Bytes of groups, and of such members: see [`super::room`].
    added: u64,
}

/// A member in a group.
pub use control::Share;

#[derive(Debug, Clone, Default)]
pub struct Group {
    shares: Vec<Share>,
    /// Each member as often as its weight.
    picks: Vec<u32>,
    /// What the control plane wants it to hold at most; 0: nothing is said.
    pub max_size: u32,
}

impl Group {
    pub fn new(shares: Vec<Share>, max_size: u32) -> Group {
        let picks = weighted(shares.iter().map(|share| (share.member, share.weight)));
        Group { shares, picks, max_size }
    }

    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    fn members(&self) -> impl Iterator<Item = u32> {
        self.shares.iter().map(|share| share.member)
    }

    pub(crate) fn bytes(&self) -> u64 {
        let of = |share: &Share| size_of::<Share>() + share.watch.len();
        let all = self.shares.iter().map(of).sum::<usize>() + size_of_val(&*self.picks);
        SLOT + (size_of::<Group>() + all) as u64
    }
}

/// The first number from `next` on that is free.
fn free<T>(used: &Map<T>, mut next: u32) -> u32 {
    while used.contains_key(&next) {
        next = next.wrapping_add(1);
    }
    next
}

impl Profile {
    /// `size`: what the program declares; 0: nothing.
    pub fn new(size: u64) -> Profile {
        Profile { unsized_members: size == 0, ..Profile::default() }
    }

    pub(crate) fn added_bytes(&self) -> u64 {
        self.added
    }

    /// Bytes of a member, if they count.
    pub(crate) fn member_bytes(&self, args: &[u64]) -> u64 {
        if self.unsized_members { SLOT + (size_of::<Member>() + size_of_val(args)) as u64 } else { 0 }
    }

    /// Adds a member: an action (index in the action list of the tables that share the profile) and its data.
    pub fn add_member(&mut self, action: u32, args: Box<[u64]>) -> u32 {
        let member = self.free_member();
        self.next_member = member.wrapping_add(1);
        self.put_member(member, Some((action, args)));
        member
    }

    /// Makes or changes the member of this number.
    pub fn set_member(&mut self, member: u32, action: u32, args: Box<[u64]>) {
        self.put_member(member, Some((action, args)));
    }

    pub fn member(&self, member: u32) -> Option<(u32, &[u64])> {
        self.members.get(&member).map(|(action, args)| (*action, &**args))
    }

    /// Removes a member, unless a group has it.
    pub fn remove_member(&mut self, member: u32) -> Result<(), &'static str> {
        if self.in_groups.has(&member) {
            return Err("a group has it");
        }
        self.put_member(member, None).then_some(()).ok_or("there is no such member")
    }

    /// Members in the order of their numbers, from one on.
    pub fn members(&self, first: u32) -> impl Iterator<Item = (u32, u32, &[u64])> {
        self.members.from(first).map(|(number, (action, args))| (number, *action, &**args))
    }

    pub fn add_group(&mut self) -> u32 {
        let group = self.free_group();
        self.next_group = group.wrapping_add(1);
        self.put_group(group, Some(Group::default()));
        group
    }

    /// Makes or changes the group of this number.
    pub fn set_group(&mut self, group: u32, to: Group) {
        self.put_group(group, Some(to));
    }

    pub fn group(&self, group: u32) -> Option<&Group> {
        self.groups.get(&group)
    }

    /// Groups in the order of their numbers, from one on.
    pub fn groups(&self, first: u32) -> impl Iterator<Item = (u32, &Group)> {
        self.groups.from(first)
    }

    pub fn remove_group(&mut self, group: u32) -> bool {
        self.put_group(group, None)
    }

    /// The number that a member is given which asks for none.
    pub(crate) fn free_member(&self) -> u32 {
        free(&self.members, self.next_member)
    }

    /// The number that a group is given.
    pub(crate) fn free_group(&self) -> u32 {
        free(&self.groups, self.next_group)
    }

    /// From where on numbers of members and groups are looked for.
    pub(crate) fn next_numbers(&self) -> (u32, u32) {
        (self.next_member, self.next_group)
    }

    pub(crate) fn number_from(&mut self, (member, group): (u32, u32)) {
        (self.next_member, self.next_group) = (member, group);
    }

    /// Puts a member at a number, or takes it away; whether there was one.
    pub(crate) fn put_member(&mut self, number: u32, member: Option<Member>) -> bool {
        self.added += member.as_ref().map_or(0, |(_, args)| self.member_bytes(args));
        let before = match member {
            Some(member) => self.members.insert(number, member),
            None => self.members.remove(&number),
        };
        self.added -= before.as_ref().map_or(0, |(_, args)| self.member_bytes(args));
        before.is_some()
    }

    /// As [`Profile::put_member`]; whether there was one.
    pub(crate) fn put_group(&mut self, number: u32, group: Option<Group>) -> bool {
        self.in_groups.add(group.iter().flat_map(Group::members));
        self.added += group.as_ref().map_or(0, Group::bytes);
        let before = match group {
            Some(group) => self.groups.insert(number, group),
            None => self.groups.remove(&number),
        };
        self.in_groups.remove(before.iter().flat_map(Group::members));
        self.added -= before.as_ref().map_or(0, Group::bytes);
        before.is_some()
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.len() == 0
    }

    /// The action that a target comes to; `hash` picks from a group. `None`: the group is empty or the member gone.
    pub fn resolve<'a>(&'a self, target: &'a Target, hash: impl FnOnce() -> u64) -> Option<(u32, &'a [u64])> {
        let pick = |picks: &[u32]| {
            let index = hash().checked_rem(picks.len() as u64)?;
            picks.get(index as usize).copied()
        };
        match target {
            Target::Action { action, args } => Some((*action, args)),
            Target::Member(member) => self.member(*member),
            Target::Group(group) => self.member(pick(&self.group(*group)?.picks)?),
            Target::Set(set) => {
                let choice = &set.choices[pick(&set.picks)? as usize];
                Some((choice.action, &choice.args))
            }
        }
    }
}
