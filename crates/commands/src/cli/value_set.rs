//! Parser value sets.

use control::{Match, Name, ValueSetOp};
use num_bigint::BigUint;
use p4lang::ir::{EntryMatch, MatchKind};

use super::dump::match_text;
use super::{Answer, Session, count, unexpected};
use crate::value::{cli, cli_match, mask};

impl Session<'_> {
    pub(super) fn value_set_command(&mut self, command: &str, args: &[&str]) -> Option<Answer> {
        Some(match command {
            "pvs_add" => self.pvs_add(args),
            "pvs_remove" => self.pvs_remove(args),
            "pvs_clear" => self.pvs_clear(args),
            "pvs_get" => self.pvs_get(args),
            _ => return None,
        })
    }

    fn value_set(&self, name: &str) -> Result<usize, String> {
        Name::from(name).value_set(self.pipeline.program()).map_err(|e| e.to_string())
    }

    /// A member: the fields' values one after the other, or one number for all of them.
    fn pvs_member(&self, args: &[&str]) -> Result<Vec<Match>, String> {
        let set = self.value_set(args[0])?;
        let values = &args[1..];
        let fields = &self.pipeline.program().value_sets[set].fields;
        if values.len() == 1 && fields.len() > 1 {
            let mut left: u32 = fields.iter().map(|(_, width, _)| *width).sum();
            let all = cli(values[0], left)?;
            let one = |(_, width, kind): &(String, u32, MatchKind)| {
                left -= width;
                exactly(*kind, (&all >> left) & mask(*width), *width)
            };
            return Ok(fields.iter().map(one).collect());
        }
        if values.len() != fields.len() {
            return Err(format!(
                "a member of this value set has {} fields, not {}",
                fields.len(),
                values.len()
            ));
        }
        let one = |(text, (name, width, kind)): (&&str, &(String, u32, MatchKind))| {
            let special = text.contains("&&&") || text.contains("->") || text.contains('/');
            let found = if special {
                cli_match(text, *kind, *width).map(|m| Match::from(&m))
            } else {
                cli(text, *width).map(|v| exactly(*kind, v, *width))
            };
            found.map_err(|e| format!("`{name}`: {e}"))
        };
        values.iter().zip(fields).map(one).collect()
    }

    fn pvs_add(&mut self, args: &[&str]) -> Answer {
        count(args, 2, usize::MAX, "pvs_add SET VALUE...")?;
        let member = self.pvs_member(args)?;
        self.done(ValueSetOp::Add { value_set: args[0].into(), member })
    }

    fn pvs_remove(&mut self, args: &[&str]) -> Answer {
        count(args, 2, usize::MAX, "pvs_remove SET VALUE...")?;
        let member = self.pvs_member(args)?;
        self.done(ValueSetOp::Remove { value_set: args[0].into(), member })
    }

    fn pvs_clear(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "pvs_clear SET")?;
        self.done(ValueSetOp::Set { value_set: args[0].into(), members: Vec::new() })
    }

    fn pvs_get(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "pvs_get SET")?;
        let set = self.value_set(args[0])?;
        let members = match self.act(ValueSetOp::Read { value_set: args[0].into() })? {
            control::Answer::Matches(members) => members,
            other => return Err(unexpected(&other)),
        };
        let fields = &self.pipeline.program().value_sets[set].fields;
        let member = |member: &Vec<Match>| {
            let each = fields.iter().zip(member).map(|((_, width, kind), m)| match_text(m, *kind, *width));
            each.collect::<Vec<_>>().join(" ")
        };
        Ok(members.iter().map(member).collect::<Vec<_>>().join("\n"))
    }
}

/// A match of a value and no other.
fn exactly(kind: MatchKind, value: BigUint, width: u32) -> Match {
    Match::from(&match kind {
        MatchKind::Exact => EntryMatch::Exact(value),
        MatchKind::Lpm => EntryMatch::Lpm { value, prefix_len: width },
        MatchKind::Ternary => EntryMatch::Ternary { value, mask: mask(width) },
        MatchKind::Range => EntryMatch::Range { lo: value.clone(), hi: value },
        MatchKind::Optional => EntryMatch::Optional(Some(value)),
    })
}
