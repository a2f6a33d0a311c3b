//! Action profiles and selectors: actions that table entries share (members), and groups to choose from by a hash.

use super::table::Target;

#[derive(Debug, Clone, Default)]
pub struct Profile {
    members: Vec<Option<(u32, Box<[u64]>)>>,
    groups: Vec<Option<Vec<u32>>>,
}

impl Profile {
    /// Adds a member: an action (index in the action list of the tables that share the profile) and its data.
    pub fn add_member(&mut self, action: u32, args: Box<[u64]>) -> u32 {
        self.members.push(Some((action, args)));
        self.members.len() as u32 - 1
    }

    pub fn member(&self, member: u32) -> Option<(u32, &[u64])> {
        self.members.get(member as usize)?.as_ref().map(|(action, args)| (*action, &**args))
    }

    /// Changes a member in place; false if there is none.
    pub fn modify_member(&mut self, member: u32, action: u32, args: Box<[u64]>) -> bool {
        match self.members.get_mut(member as usize) {
            Some(Some(slot)) => {
                *slot = (action, args);
                true
            }
            _ => false,
        }
    }

    /// Removes a member, unless a group has it.
    pub fn remove_member(&mut self, member: u32) -> Result<(), &'static str> {
        if self.groups.iter().flatten().any(|g| g.contains(&member)) {
            return Err("a group has it");
        }
        match self.members.get_mut(member as usize) {
            Some(slot @ Some(_)) => {
                *slot = None;
                Ok(())
            }
            _ => Err("there is no such member"),
        }
    }

    pub fn add_group(&mut self) -> u32 {
        self.groups.push(Some(Vec::new()));
        self.groups.len() as u32 - 1
    }

    pub fn group(&self, group: u32) -> Option<&[u32]> {
        self.groups.get(group as usize)?.as_deref()
    }

    pub fn group_mut(&mut self, group: u32) -> Option<&mut Vec<u32>> {
        self.groups.get_mut(group as usize)?.as_mut()
    }

    pub fn remove_group(&mut self, group: u32) -> bool {
        self.groups.get_mut(group as usize).is_some_and(|g| g.take().is_some())
    }

    /// Live members and groups.
    pub fn len(&self) -> usize {
        self.members.iter().flatten().count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The action that a target comes to; `hash` picks from a group. `None`: the group is empty or the member gone.
    pub fn resolve<'a>(&'a self, target: &'a Target, hash: impl FnOnce() -> u64) -> Option<(u32, &'a [u64])> {
        match target {
            Target::Action { action, args } => Some((*action, args)),
            Target::Member(member) => self.member(*member),
            Target::Group(group) => {
                let members = self.group(*group)?;
                if members.is_empty() {
                    return None;
                }
                let pick = (hash() % members.len() as u64) as usize;
                self.member(members[pick])
            }
        }
    }
}
