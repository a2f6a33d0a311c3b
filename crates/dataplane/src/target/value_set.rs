//! Parser value sets.

use std::collections::HashSet;

use control::{MOST_COMPARED, Match, Name, Result, ValueSetOp, check};
use p4lang::ir::EntryMatch;

use super::{Answer, Kind, refuse_as};
use crate::pipeline::Pipeline;

impl Pipeline {
    pub(super) fn act_on_value_set(&mut self, op: &ValueSetOp) -> Result<Answer> {
        let program = self.program().clone();
        match op {
            ValueSetOp::Add { value_set, member } => {
                let set = value_set.value_set(&program)?;
                self.value_set_add(set, check::member(&program, set, member)?)?;
            }
            ValueSetOp::Remove { value_set, member } => {
                let set = value_set.value_set(&program)?;
                let member = check::member(&program, set, member)?;
                let members = &mut self.state.value_sets[set];
                let Some(at) = members.iter().position(|m| *m == member) else {
                    let why = format!("value set `{value_set}` has no such member");
                    return refuse_as(Kind::NotFound, why);
                };
                members.remove(at);
            }
            ValueSetOp::Set { value_set, members } => {
                let set = value_set.value_set(&program)?;
                self.demand_room(set, members.len())?;
                let members = members.iter().map(|member| check::member(&program, set, member));
                self.value_set_write(set, members.collect::<Result<_>>()?)?;
            }
            ValueSetOp::Read { value_set } => {
                let set = value_set.value_set(&program)?;
                let (fields, members) = (&program.value_sets[set].fields, &self.state.value_sets[set]);
                let member = |member: &Vec<EntryMatch>| {
                    let each = fields.iter().zip(member);
                    each.map(|((_, width, _), m)| Match::canonical(m, *width)).collect()
                };
                return Ok(Answer::Matches(members.iter().map(member).collect()));
            }
        }
        Ok(Answer::Done)
    }

    pub fn value_set_index(&self, name: &str) -> Result<usize> {
        Name::from(name).value_set(self.program())
    }

    /// Adds a member to a value set: one match per field.
    pub fn value_set_add(&mut self, set: usize, member: Vec<EntryMatch>) -> Result<()> {
        check::check_member(self.program(), set, &member)?;
        let members = &self.state.value_sets[set];
        if members.contains(&member) {
            return self.present(set);
        }
        self.demand_room(set, members.len() + 1)?;
        self.state.value_sets[set].push(member);
        Ok(())
    }

    /// Refuses more members than a set has room for: of its size, and as many as a packet may be compared with.
    fn demand_room(&self, set: usize, members: usize) -> Result<()> {
        let declared = &self.program().value_sets[set];
        let (name, size, fields) = (&declared.info.name, declared.size, declared.fields.len());
        if members as u64 > size {
            return refuse_as(Kind::Full, format!("value set `{name}` is full: its size is {size}"));
        }
        if members * fields > MOST_COMPARED {
            let most = MOST_COMPARED / fields;
            let why = format!("value set `{name}` is full: packets are compared with {most} members at most");
            return refuse_as(Kind::Full, why);
        }
        Ok(())
    }

    fn present(&self, set: usize) -> Result<()> {
        let name = &self.program().value_sets[set].info.name;
        refuse_as(Kind::Exists, format!("value set `{name}` has this member already"))
    }

    /// Puts these members in a value set, in place of what was in it.
    pub fn value_set_write(&mut self, set: usize, members: Vec<Vec<EntryMatch>>) -> Result<()> {
        self.demand_room(set, members.len())?;
        let mut known = HashSet::with_capacity(members.len());
        for member in &members {
            check::check_member(self.program(), set, member)?;
            if !known.insert(member) {
                return self.present(set);
            }
        }
        self.state.value_sets[set] = members;
        Ok(())
    }
}
