//! Action profiles and selectors.

use control::{Call, Group, Name, ProfileOp, Share, check};

use super::dump::call_text;
use super::table::call;
use super::{Answer, Session, count, unexpected};
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
            "act_prof_dump_member" => self.member_dump(args),
            "act_prof_dump_group" => self.group_dump(args),
            _ => return None,
        })
    }

    /// An action of a profile, with values as the command line has them.
    fn member_call(&self, profile: &str, action: &str, values: &[&str]) -> Result<Call, String> {
        let program = self.pipeline.program();
        let table = check::profile_table(program, self.profile(profile)?).map_err(|e| e.to_string())?;
        call(program, table, action, values)
    }

    fn member_create(&mut self, args: &[&str]) -> Answer {
        count(args, 2, usize::MAX, "act_prof_create_member PROFILE ACTION VALUE...")?;
        let to = self.member_call(args[0], args[1], &args[2..])?;
        let handle = self.handle(ProfileOp::AddMember { profile: args[0].into(), member: None, to })?;
        Ok(format!("member has been created with handle {handle}"))
    }

    fn member_modify(&mut self, args: &[&str]) -> Answer {
        count(args, 3, usize::MAX, "act_prof_modify_member PROFILE ACTION MEMBER VALUE...")?;
        let member = small("member", args[2])?;
        let to = self.member_call(args[0], args[1], &args[3..])?;
        self.done(ProfileOp::SetMember { profile: args[0].into(), member, to })
    }

    fn member_delete(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "act_prof_delete_member PROFILE MEMBER")?;
        let (profile, member) = (args[0].into(), small("member", args[1])?);
        self.done(ProfileOp::DeleteMember { profile, member })
    }

    fn profile_group_create(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "act_prof_create_group PROFILE")?;
        let handle = self.handle(ProfileOp::AddGroup { profile: args[0].into() })?;
        Ok(format!("group has been created with handle {handle}"))
    }

    fn profile_group_delete(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "act_prof_delete_group PROFILE GROUP")?;
        let (profile, group) = (args[0].into(), small("group", args[1])?);
        self.done(ProfileOp::DeleteGroup { profile, group })
    }

    fn group_member(&mut self, args: &[&str], add: bool) -> Answer {
        let expected = if add {
            "act_prof_add_member_to_group PROFILE MEMBER GROUP"
        } else {
            "act_prof_remove_member_from_group PROFILE MEMBER GROUP"
        };
        count(args, 3, 3, expected)?;
        let profile = args[0].into();
        let (member, group) = (small("member", args[1])?, small("group", args[2])?);
        if add {
            self.done(ProfileOp::JoinGroup { profile, group, member })
        } else {
            self.done(ProfileOp::LeaveGroup { profile, group, member })
        }
    }

    fn profile_dump(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "act_prof_dump PROFILE")?;
        let index = self.profile(args[0])?;
        let profile = &self.pipeline.program().profiles[index];
        let (name, selects) = (profile.info.name.clone(), profile.selector.is_some());
        let mut lines = vec![format!("action profile {name}")];
        lines.extend(self.members(args[0], None)?.into_iter().map(|(_, line)| line));
        if selects {
            lines.extend(self.groups(args[0], None)?.iter().map(group_text));
        }
        Ok(lines.join("\n"))
    }

    fn member_dump(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "act_prof_dump_member PROFILE MEMBER")?;
        let number = small("member", args[1])?;
        match self.members(args[0], Some(number))?.pop() {
            Some((found, line)) if found == number => Ok(line),
            _ => Err(format!("action profile `{}` has no member {number}", args[0])),
        }
    }

    fn group_dump(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "act_prof_dump_group PROFILE GROUP")?;
        let number = small("group", args[1])?;
        match self.groups(args[0], Some(number))?.pop() {
            Some(group) if group.group == number => Ok(group_text(&group)),
            _ => Err(format!("action selector `{}` has no group {number}", args[0])),
        }
    }

    fn profile(&self, name: &str) -> Result<usize, String> {
        Name::from(name).profile(self.pipeline.program()).map_err(|e| e.to_string())
    }

    /// Members and a line of each: all, or the first from a number on.
    fn members(&mut self, profile: &str, from: Option<u32>) -> Result<Vec<(u32, String)>, String> {
        let program = self.pipeline.program().clone();
        let table = check::profile_table(&program, self.profile(profile)?).map_err(|e| e.to_string())?;
        let count = from.map(|_| 1);
        match self.act(ProfileOp::ReadMembers { profile: profile.into(), start: from, count })? {
            control::Answer::Members(members) => {
                let line = |(member, call)| {
                    (member, format!("member {member}: {}", call_text(&program, table, &call)))
                };
                Ok(members.into_iter().map(line).collect())
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Groups: all, or the first from a number on.
    fn groups(&mut self, profile: &str, from: Option<u32>) -> Result<Vec<Group>, String> {
        let mut found = Vec::new();
        let mut start = from;
        loop {
            let op = ProfileOp::ReadGroups { profile: profile.into(), start, count: from.map(|_| 1) };
            let groups = match self.act(op)? {
                control::Answer::Groups(groups) => groups,
                other => return Err(unexpected(&other)),
            };
            // Large ones come in parts.
            start = groups.last().and_then(|last| last.group.checked_add(1));
            found.extend(groups);
            if from.is_some() || start.is_none() {
                return Ok(found);
            }
        }
    }
}

fn group_text(group: &Group) -> String {
    let share = |share: &Share| match share.weight {
        1 => share.member.to_string(),
        weight => format!("{} x {weight}", share.member),
    };
    let members: Vec<String> = group.shares.iter().map(share).collect();
    format!("group {}: members [{}]", group.group, members.join(", "))
}
