//! Action profiles and selectors.

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
        self.pipeline.profile_index(name).map_err(|e| e.0)
    }

    fn member_create(&mut self, args: &[&str]) -> Answer {
        count(args, 2, usize::MAX, "act_prof_create_member PROFILE ACTION VALUE...")?;
        let profile = self.profile(args[0])?;
        let table = self.pipeline.profile_table(profile).map_err(|e| e.0)?;
        let (_, values) = self.action_values(table, args[1], &args[2..])?;
        let handle = self.pipeline.member_add(profile, None, args[1], &values).map_err(|e| e.0)?;
        Ok(format!("member has been created with handle {handle}"))
    }

    fn member_modify(&mut self, args: &[&str]) -> Answer {
        count(args, 3, usize::MAX, "act_prof_modify_member PROFILE ACTION MEMBER VALUE...")?;
        let profile = self.profile(args[0])?;
        let member = small("member", args[2])?;
        let table = self.pipeline.profile_table(profile).map_err(|e| e.0)?;
        let (_, values) = self.action_values(table, args[1], &args[3..])?;
        self.pipeline.member_modify(profile, member, args[1], &values).map_err(|e| e.0)?;
        Ok(String::new())
    }

    fn member_delete(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "act_prof_delete_member PROFILE MEMBER")?;
        let profile = self.profile(args[0])?;
        self.pipeline.member_delete(profile, small("member", args[1])?).map_err(|e| e.0)?;
        Ok(String::new())
    }

    fn profile_group_create(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "act_prof_create_group PROFILE")?;
        let profile = self.profile(args[0])?;
        let handle = self.pipeline.group_add(profile).map_err(|e| e.0)?;
        Ok(format!("group has been created with handle {handle}"))
    }

    fn profile_group_delete(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "act_prof_delete_group PROFILE GROUP")?;
        let profile = self.profile(args[0])?;
        self.pipeline.group_delete(profile, small("group", args[1])?).map_err(|e| e.0)?;
        Ok(String::new())
    }

    fn group_member(&mut self, args: &[&str], add: bool) -> Answer {
        let expected = if add {
            "act_prof_add_member_to_group PROFILE MEMBER GROUP"
        } else {
            "act_prof_remove_member_from_group PROFILE MEMBER GROUP"
        };
        count(args, 3, 3, expected)?;
        let profile = self.profile(args[0])?;
        let (member, group) = (small("member", args[1])?, small("group", args[2])?);
        let done = if add {
            self.pipeline.group_join(profile, group, member)
        } else {
            self.pipeline.group_leave(profile, group, member)
        };
        done.map_err(|e| e.0)?;
        Ok(String::new())
    }

    fn profile_dump(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "act_prof_dump PROFILE")?;
        let profile = self.profile(args[0])?;
        let table = self.pipeline.profile_table(profile).map_err(|e| e.0)?;
        let mut lines =
            vec![format!("action profile {}", self.pipeline.program().profiles[profile].info.name)];
        for (member, action, data) in self.pipeline.state.profiles[profile].members() {
            lines.push(format!("member {member}: {}", self.action_text(table, action, data)));
        }
        Ok(lines.join("\n"))
    }
}
