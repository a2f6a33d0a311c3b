//! Action profiles and selectors.

use control::{Call, Name, ProfileOp, check};

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
            _ => return None,
        })
    }

    /// An action of a profile, with values as the command line has them.
    fn member_call(&self, profile: &str, action: &str, values: &[&str]) -> Result<Call, String> {
        let program = self.pipeline.program();
        let index = Name::from(profile).profile(program).map_err(|e| e.to_string())?;
        let table = check::profile_table(program, index).map_err(|e| e.to_string())?;
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
        let program = self.pipeline.program().clone();
        let profile = Name::from(args[0]).profile(&program).map_err(|e| e.to_string())?;
        let table = check::profile_table(&program, profile).map_err(|e| e.to_string())?;
        let mut lines = vec![format!("action profile {}", program.profiles[profile].info.name)];
        match self.act(ProfileOp::ReadMembers { profile: args[0].into(), start: None, count: None })? {
            control::Answer::Members(members) => {
                let line = |(member, call)| format!("member {member}: {}", call_text(&program, table, &call));
                lines.extend(members.into_iter().map(line));
            }
            other => return Err(unexpected(&other)),
        }
        Ok(lines.join("\n"))
    }
}
