//! Action profiles and selectors.

use dataplane::control::resolve;
use dataplane::state::table::Target;
use p4lang::ir::TableId;

use super::{Answer, Session, count};
use crate::value::small;

impl Session<'_> {
    pub(super) fn profile_command(&mut self, command: &str, args: &[&str]) -> Option<Answer> {
        Some(match command {
            "act_prof_create_member" => self.member_create(args),
            "act_prof_modify_member" => self.member_modify(args),
            "act_prof_delete_member" => self.member_delete(args),
            "act_prof_create_group" => self.profile_group_create(args),
            "act_prof_delete_group" => self.profile_group_delete(args),
            "act_prof_add_member_to_group" => self.group_member(args, true),
            "act_prof_remove_member_from_group" => self.group_member(args, false),
            "act_prof_dump" => self.profile_dump(args),
            _ => return None,
        })
    }

    fn profile(&self, name: &str) -> Result<usize, String> {
        let infos = self.pipeline.program().profiles.iter().map(|p| &p.info);
        resolve("action profile", name, infos).map_err(|e| e.0)
    }

    /// A table whose entries come from the profile: its actions are the profile's.
    fn profile_table(&self, profile: usize) -> Result<TableId, String> {
        let tables = &self.pipeline.program().tables;
        let at = tables.iter().position(|t| t.implementation.is_some_and(|p| p.index() == profile));
        at.map(|i| TableId(i as u32)).ok_or_else(|| "no table uses this action profile".to_owned())
    }

    fn member_target(
        &self,
        profile: usize,
        action: &str,
        args: &[&str],
    ) -> Result<(u32, Box<[u64]>), String> {
        let table = self.profile_table(profile)?;
        match self.target(table, action, args)? {
            Target::Action { action, args } => Ok((action, args)),
            Target::Member(_) | Target::Group(_) => Err("a member is an action".into()),
        }
    }

    fn member_create(&mut self, args: &[&str]) -> Answer {
        count(args, 2, usize::MAX, "act_prof_create_member PROFILE ACTION VALUE...")?;
        let profile = self.profile(args[0])?;
        let (action, data) = self.member_target(profile, args[1], &args[2..])?;
        let size = self.pipeline.program().profiles[profile].size;
        let state = &mut self.pipeline.state.profiles[profile];
        if size != 0 && state.len() as u64 >= size {
            return Err(format!("action profile `{}` is full: its size is {size}", args[0]));
        }
        let handle = state.add_member(action, data);
        Ok(format!("member has been created with handle {handle}"))
    }

    fn member_modify(&mut self, args: &[&str]) -> Answer {
        count(args, 3, usize::MAX, "act_prof_modify_member PROFILE ACTION MEMBER VALUE...")?;
        let profile = self.profile(args[0])?;
        let member = small("member", args[2])?;
        let (action, data) = self.member_target(profile, args[1], &args[3..])?;
        if !self.pipeline.state.profiles[profile].modify_member(member, action, data) {
            return Err(format!("there is no member {member}"));
        }
        Ok(String::new())
    }

    fn member_delete(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "act_prof_delete_member PROFILE MEMBER")?;
        let profile = self.profile(args[0])?;
        let member = small("member", args[1])?;
        self.unused(profile, &Target::Member(member))?;
        let done = self.pipeline.state.profiles[profile].remove_member(member);
        done.map(|()| String::new()).map_err(|why| format!("member {member} cannot be deleted: {why}"))
    }

    /// Refuses if an entry or a default leads to the member or group.
    fn unused(&self, profile: usize, target: &Target) -> Result<(), String> {
        for (table, state) in self.pipeline.program().tables.iter().zip(&self.pipeline.state.tables) {
            let ours = table.implementation.is_some_and(|p| p.index() == profile);
            if ours
                && (*state.default_target() == *target || state.iter().any(|(_, e)| *e.target() == *target))
            {
                return Err(format!("an entry of table `{}` leads there; delete it first", table.info.name));
            }
        }
        Ok(())
    }

    fn selector(&self, name: &str) -> Result<usize, String> {
        let profile = self.profile(name)?;
        if self.pipeline.program().profiles[profile].selector.is_none() {
            return Err(format!("`{name}` is an action profile without a selector: it has no groups"));
        }
        Ok(profile)
    }

    fn profile_group_create(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "act_prof_create_group PROFILE")?;
        let profile = self.selector(args[0])?;
        let handle = self.pipeline.state.profiles[profile].add_group();
        Ok(format!("group has been created with handle {handle}"))
    }

    fn profile_group_delete(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "act_prof_delete_group PROFILE GROUP")?;
        let profile = self.selector(args[0])?;
        let group = small("group", args[1])?;
        self.unused(profile, &Target::Group(group))?;
        if !self.pipeline.state.profiles[profile].remove_group(group) {
            return Err(format!("there is no group {group}"));
        }
        Ok(String::new())
    }

    fn group_member(&mut self, args: &[&str], add: bool) -> Answer {
        let expected = if add {
            "act_prof_add_member_to_group PROFILE MEMBER GROUP"
        } else {
            "act_prof_remove_member_from_group PROFILE MEMBER GROUP"
        };
        count(args, 3, 3, expected)?;
        let profile = self.selector(args[0])?;
        let (member, group) = (small("member", args[1])?, small("group", args[2])?);
        let largest =
            self.pipeline.program().profiles[profile].selector.as_ref().map_or(0, |s| s.max_group_size);
        let state = &mut self.pipeline.state.profiles[profile];
        if state.member(member).is_none() {
            return Err(format!("there is no member {member}"));
        }
        let Some(members) = state.group_mut(group) else {
            return Err(format!("there is no group {group}"));
        };
        match (add, members.iter().position(|m| *m == member)) {
            (true, Some(_)) => return Err(format!("member {member} is in group {group} already")),
            (false, None) => return Err(format!("member {member} is not in group {group}")),
            (true, None) if largest != 0 && members.len() >= largest as usize => {
                return Err(format!("group {group} is full: it may have {largest} members"));
            }
            (true, None) => members.push(member),
            (false, Some(at)) => {
                members.remove(at);
            }
        }
        Ok(String::new())
    }

    fn profile_dump(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "act_prof_dump PROFILE")?;
        let profile = self.profile(args[0])?;
        let table = self.profile_table(profile)?;
        let mut lines =
            vec![format!("action profile {}", self.pipeline.program().profiles[profile].info.name)];
        let state = &self.pipeline.state.profiles[profile];
        for handle in 0.. {
            if lines.len() > state.len() {
                break;
            }
            if let Some((action, data)) = state.member(handle) {
                lines.push(format!("member {handle}: {}", self.action_text(table, action, data)));
            }
        }
        Ok(lines.join("\n"))
    }
}
