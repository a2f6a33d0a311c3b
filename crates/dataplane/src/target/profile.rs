//! Members and groups of action profiles, and sets of actions that an entry has for itself.

use std::collections::HashSet;

use control::{MOST_SHARES, Name, ProfileOp, Put, Result, check};
use num_bigint::BigUint;
use p4lang::ir::TableId;

use super::{Answer, Kind, refuse, refuse_as, some_of};
use crate::pipeline::Pipeline;
use crate::state::profile::{Choice, Group, MAX_WEIGHT, Share};
use crate::state::table::Target;

impl Pipeline {
    pub(super) fn act_on_profile(&mut self, op: &ProfileOp) -> Result<Answer> {
        let program = self.program().clone();
        match op {
            ProfileOp::AddMember { profile, member, to } => {
                let profile = profile.profile(&program)?;
                let values: Vec<BigUint> = to.values.iter().map(control::Value::number).collect();
                return self.member_add(profile, *member, to.action.as_str(), &values).map(Answer::Handle);
            }
            ProfileOp::SetMember { profile, member, to } => {
                let values: Vec<BigUint> = to.values.iter().map(control::Value::number).collect();
                self.member_modify(profile.profile(&program)?, *member, to.action.as_str(), &values)?;
            }
            ProfileOp::DeleteMember { profile, member } => {
                self.member_delete(profile.profile(&program)?, *member)?;
            }
            ProfileOp::ReadMembers { profile, start, count } => {
                let profile = profile.profile(&program)?;
                let table = check::profile_table(&program, profile)?;
                let (start, count) = check::some(*start, *count);
                let members = self.state.profiles[profile].members(start).take(count);
                let call = |(number, action, words): (u32, u32, &[u64])| {
                    (number, super::table::call(&program, table, action, words))
                };
                return Ok(Answer::Members(members.map(call).collect()));
            }
            ProfileOp::AddGroup { profile } => {
                return self.group_add(profile.profile(&program)?).map(Answer::Handle);
            }
            ProfileOp::SetGroup { profile, group, shares, max_size, put } => {
                self.group_set(profile.profile(&program)?, *group, *put, shares.clone(), *max_size)?;
            }
            ProfileOp::JoinGroup { profile, group, member } => {
                self.group_join(profile.profile(&program)?, *group, *member)?;
            }
            ProfileOp::LeaveGroup { profile, group, member } => {
                self.group_leave(profile.profile(&program)?, *group, *member)?;
            }
            ProfileOp::DeleteGroup { profile, group } => {
                self.group_delete(profile.profile(&program)?, *group)?;
            }
            ProfileOp::ReadGroups { profile, start, count } => {
                let groups = self.state.profiles[profile.profile(&program)?].groups(start.unwrap_or(0));
                let groups = some_of(groups, *count, |(_, group)| group.shares().len());
                let group = |(group, found): (u32, &Group)| control::Group {
                    group,
                    shares: found.shares().to_vec(),
                    max_size: found.max_size,
                };
                return Ok(Answer::Groups(groups.map(group).collect()));
            }
        }
        Ok(Answer::Done)
    }

    pub fn profile_index(&self, name: &str) -> Result<usize> {
        Name::from(name).profile(self.program())
    }

    /// A table whose entries come from the profile: its actions are the profile's.
    pub fn profile_table(&self, profile: usize) -> Result<TableId> {
        check::profile_table(self.program(), profile)
    }

    fn profile_name(&self, profile: usize) -> &str {
        &self.program().profiles[profile].info.name
    }

    /// Adds a member, of this number if one is asked for; gives its number.
    pub fn member_add(
        &mut self,
        profile: usize,
        number: Option<u32>,
        action: &str,
        args: &[BigUint],
    ) -> Result<u32> {
        let (action, args) = self.member_action(profile, action, args)?;
        let size = self.program().profiles[profile].size;
        let state = &self.state.profiles[profile];
        if let Some(number) = number.filter(|number| state.member(*number).is_some()) {
            return refuse_as(Kind::Exists, format!("there is a member {number} already"));
        }
        if size != 0 && state.len() as u64 >= size {
            let name = self.profile_name(profile);
            return refuse_as(Kind::Full, format!("action profile `{name}` is full: its size is {size}"));
        }
        if self.has_sets(profile) {
            return refuse(format!(
                "entries of tables with action profile `{}` have sets of actions; use either those or members",
                self.profile_name(profile)
            ));
        }
        let want = self.state.profiles[profile].member_bytes(&args);
        self.check_room(|| format!("a member of `{}`", self.profile_name(profile)), 0, want)?;
        let state = &mut self.state.profiles[profile];
        match number {
            Some(number) => {
                state.set_member(number, action, args);
                Ok(number)
            }
            None => Ok(state.add_member(action, args)),
        }
    }

    pub fn member_modify(
        &mut self,
        profile: usize,
        member: u32,
        action: &str,
        args: &[BigUint],
    ) -> Result<()> {
        let (action, args) = self.member_action(profile, action, args)?;
        let state = &self.state.profiles[profile];
        let Some((_, before)) = state.member(member) else { return no_member(member) };
        let (before, after) = (state.member_bytes(before), state.member_bytes(&args));
        self.check_room(|| format!("member {member} of `{}`", self.profile_name(profile)), before, after)?;
        self.state.profiles[profile].set_member(member, action, args);
        Ok(())
    }

    fn member_action(&self, profile: usize, action: &str, args: &[BigUint]) -> Result<(u32, Box<[u64]>)> {
        let table = self.profile_table(profile)?;
        let index = self.action_index(table, action)?;
        match self.action_target(table, index, args)? {
            Target::Action { action, args } => Ok((action, args)),
            _ => refuse("a member is an action"),
        }
    }

    pub fn member_delete(&mut self, profile: usize, member: u32) -> Result<()> {
        if self.state.profiles[profile].member(member).is_none() {
            return no_member(member);
        }
        self.unused(profile, &Target::Member(member))?;
        let done = self.state.profiles[profile].remove_member(member);
        done.or_else(|why| refuse_as(Kind::InUse, format!("member {member} cannot be deleted: {why}")))
    }

    /// Refuses if an entry or a default leads to the member or group.
    fn unused(&self, profile: usize, target: &Target) -> Result<()> {
        for (table, state) in self.program().tables.iter().zip(&self.state.tables) {
            let ours = table.implementation.is_some_and(|p| p.index() == profile);
            if ours && (*state.default_target() == *target || state.leads_to(target)) {
                return refuse_as(
                    Kind::InUse,
                    format!("an entry of table `{}` leads there; delete it first", table.info.name),
                );
            }
        }
        Ok(())
    }

    /// Refuses an action profile without a selector.
    pub fn check_selector(&self, profile: usize) -> Result<()> {
        if self.program().profiles[profile].selector.is_none() {
            let name = self.profile_name(profile);
            return refuse(format!("`{name}` is an action profile without a selector: it has no groups"));
        }
        Ok(())
    }

    /// Adds an empty group; gives its number.
    pub fn group_add(&mut self, profile: usize) -> Result<u32> {
        self.check_selector(profile)?;
        let want = Group::default().bytes();
        self.check_room(|| format!("a group of `{}`", self.profile_name(profile)), 0, want)?;
        Ok(self.state.profiles[profile].add_group())
    }

    /// Makes or changes a group with all that is in it.
    pub fn group_set(
        &mut self,
        profile: usize,
        group: u32,
        put: Put,
        shares: Vec<Share>,
        max_size: u32,
    ) -> Result<()> {
        self.check_selector(profile)?;
        let state = &self.state.profiles[profile];
        match (put, state.group(group)) {
            (Put::New, Some(_)) => {
                return refuse_as(Kind::Exists, format!("there is a group {group} already"));
            }
            (Put::Known, None) => return no_group(group),
            (Put::Known | Put::Either, Some(old)) if old.max_size != max_size => {
                return refuse(format!(
                    "group {group} was made for a size of {}, which cannot change",
                    old.max_size
                ));
            }
            _ => {}
        }
        let largest = self.largest_group(profile);
        if largest != 0 && (max_size == 0 || max_size > largest) {
            return refuse(format!("group {group} wants a size of {max_size}; give 1 to {largest}"));
        }
        let mut known = HashSet::new();
        for share in &shares {
            if state.member(share.member).is_none() {
                return no_member(share.member);
            }
            if !known.insert(share.member) {
                return refuse(format!("member {} is in group {group} twice; use its weight", share.member));
            }
        }
        self.check_weights(profile, shares.iter().map(|share| share.weight), max_size, Kind::Full)?;
        self.put_group(profile, group, Group::new(shares, max_size))
    }

    /// Puts what was checked otherwise, if there is room.
    fn put_group(&mut self, profile: usize, number: u32, group: Group) -> Result<()> {
        let before = self.state.profiles[profile].group(number).map_or(0, Group::bytes);
        let what = || format!("group {number} of `{}`", self.profile_name(profile));
        self.check_room(what, before, group.bytes())?;
        self.state.profiles[profile].set_group(number, group);
        Ok(())
    }

    fn largest_group(&self, profile: usize) -> u32 {
        self.program().profiles[profile].selector.as_ref().map_or(0, |s| s.max_group_size)
    }

    /// Whether a group may have members of these weights. `most` 0: what the program says.
    fn check_weights(
        &self,
        profile: usize,
        weights: impl Iterator<Item = u32> + Clone,
        most: u32,
        kind: Kind,
    ) -> Result<()> {
        if weights.clone().any(|weight| weight == 0) {
            return refuse("a weight is 0; give 1 or more");
        }
        let count = weights.clone().count();
        if count > MOST_SHARES {
            return refuse_as(
                kind,
                format!("the group is full: {count} members are more than {MOST_SHARES}"),
            );
        }
        let sum: u64 = weights.clone().map(u64::from).sum();
        let counts_members = self.program().profiles[profile].sum_of_members();
        let heaviest = counts_members.unwrap_or(0);
        if heaviest != 0 && weights.clone().any(|weight| weight > heaviest) {
            return refuse(format!("a weight is above {heaviest}, the most that the program allows"));
        }
        let size = if counts_members.is_some() { count as u64 } else { sum };
        let most = if most == 0 { self.largest_group(profile) } else { most };
        if most != 0 && size > u64::from(most) {
            return refuse_as(kind, format!("the group is full: {size} are more than {most}"));
        }
        if sum > u64::from(MAX_WEIGHT) {
            return refuse_as(
                Kind::Full,
                format!("the weights are {sum} together; {MAX_WEIGHT} is the most"),
            );
        }
        Ok(())
    }

    /// Puts a member in a group.
    pub fn group_join(&mut self, profile: usize, group: u32, member: u32) -> Result<()> {
        let (mut shares, max_size) = self.group_for_change(profile, group, member)?;
        if shares.iter().any(|share| share.member == member) {
            return refuse_as(Kind::Exists, format!("member {member} is in group {group} already"));
        }
        shares.push(Share { member, weight: 1, watch: Vec::new() });
        self.check_weights(profile, shares.iter().map(|share| share.weight), max_size, Kind::Full)?;
        self.put_group(profile, group, Group::new(shares, max_size))
    }

    /// Takes a member out of a group.
    pub fn group_leave(&mut self, profile: usize, group: u32, member: u32) -> Result<()> {
        let (mut shares, max_size) = self.group_for_change(profile, group, member)?;
        let Some(at) = shares.iter().position(|share| share.member == member) else {
            return refuse_as(Kind::NotFound, format!("member {member} is not in group {group}"));
        };
        shares.remove(at);
        self.put_group(profile, group, Group::new(shares, max_size))
    }

    fn group_for_change(&self, profile: usize, group: u32, member: u32) -> Result<(Vec<Share>, u32)> {
        self.check_selector(profile)?;
        let state = &self.state.profiles[profile];
        if state.member(member).is_none() {
            return no_member(member);
        }
        match state.group(group) {
            Some(group) => Ok((group.shares().to_vec(), group.max_size)),
            None => no_group(group),
        }
    }

    pub fn group_delete(&mut self, profile: usize, group: u32) -> Result<()> {
        self.check_selector(profile)?;
        self.unused(profile, &Target::Group(group))?;
        if !self.state.profiles[profile].remove_group(group) {
            return no_group(group);
        }
        Ok(())
    }

    /// Whether an entry of the table may have these actions to choose from.
    pub fn check_choices(&self, table: TableId, choices: &[Choice]) -> Result<()> {
        let Some(profile) = self.program()[table].implementation else {
            return refuse(format!("table `{}` has no action selector", self.program()[table].info.name));
        };
        let profile = profile.index();
        self.check_selector(profile)?;
        self.check_weights(profile, choices.iter().map(|choice| choice.weight), 0, Kind::Invalid)
    }

    /// Refuses to mix sets of actions with members and groups in the tables of one action profile.
    pub(super) fn check_style(&self, table: TableId, target: &Target) -> Result<()> {
        let Some(profile) = self.program()[table].implementation.map(|p| p.index()) else { return Ok(()) };
        let mixed = match target {
            Target::Set(_) => !self.state.profiles[profile].is_empty(),
            _ => self.has_sets(profile),
        };
        if mixed {
            let name = self.profile_name(profile);
            return refuse(format!(
                "action profile `{name}` has either members or sets of actions, not both"
            ));
        }
        Ok(())
    }

    /// Whether entries that use this action profile have sets of actions.
    fn has_sets(&self, profile: usize) -> bool {
        self.program().tables.iter().zip(&self.state.tables).any(|(table, state)| {
            table.implementation.is_some_and(|p| p.index() == profile) && state.has_sets()
        })
    }
}

fn no_member<T>(member: u32) -> Result<T> {
    refuse_as(Kind::NotFound, format!("there is no member {member}"))
}

fn no_group<T>(group: u32) -> Result<T> {
    refuse_as(Kind::NotFound, format!("there is no group {group}"))
}
