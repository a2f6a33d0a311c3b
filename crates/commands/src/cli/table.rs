//! Tables and parser value sets.

use dataplane::control::Extras;
use dataplane::state::table::{Target, action_args};
use num_bigint::BigUint;
use p4lang::ir::{EntryMatch, MatchKind, Table, TableId};

use super::{Answer, Session, count};
use crate::value::{cli, cli_match, small};

const PS_PER_MS: u64 = 1_000_000_000;

/// What follows `=>` in a command that adds an entry.
#[derive(Clone, Copy, PartialEq)]
enum Leads {
    Action,
    Member,
    Group,
}

/// Whether the entries of a table are in an order of priority.
pub fn priority_counts(table: &Table) -> bool {
    table.keys.iter().any(|k| matches!(k.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional))
}

impl Session<'_> {
    pub(super) fn table_command(&mut self, command: &str, args: &[&str]) -> Option<Answer> {
        Some(match command {
            "table_add" => self.table_add(args, Leads::Action),
            "table_indirect_add" | "table_indirect_add_member" => self.table_add(args, Leads::Member),
            "table_indirect_add_with_group" => self.table_add(args, Leads::Group),
            "table_set_default" => self.table_set_default(args, Leads::Action),
            "table_indirect_set_default" => self.table_set_default(args, Leads::Member),
            "table_indirect_set_default_with_group" => self.table_set_default(args, Leads::Group),
            "table_modify" => self.table_modify(args),
            "table_delete" | "table_indirect_delete" => self.table_delete(args),
            "table_set_timeout" => self.table_set_timeout(args),
            "table_clear" => self.table_clear(args),
            "table_reset_default" | "table_indirect_reset_default" => self.table_reset_default(args),
            "table_dump" => self.table_dump(args),
            "table_dump_entry" => self.table_dump_entry(args),
            "table_dump_entry_from_key" => self.table_dump_entry_from_key(args),
            "table_num_entries" => self.table_num_entries(args),
            "table_info" | "table_show_actions" => self.table_info(args),
            "show_tables" => self.show_tables(),
            "show_actions" => self.show_actions(),
            "show_pvs" => self.show_pvs(args),
            "pvs_add" => self.pvs_change(args, true),
            "pvs_remove" => self.pvs_change(args, false),
            "pvs_clear" => self.pvs_clear(args),
            "pvs_get" => self.pvs_get(args),
            _ => return None,
        })
    }

    fn table(&self, name: &str) -> Result<TableId, String> {
        self.pipeline.table_id(name).map_err(|e| e.0)
    }

    /// An action of a table with values as the command line has them.
    fn target(&self, table: TableId, action: &str, values: &[&str]) -> Result<Target, String> {
        let (index, args) = self.action_values(table, action, values)?;
        self.pipeline.action_target(table, index, &args).map_err(|e| e.0)
    }

    /// Index of an action in a table's list, and its values as numbers.
    pub(super) fn action_values(
        &self,
        table: TableId,
        action: &str,
        values: &[&str],
    ) -> Result<(u32, Vec<BigUint>), String> {
        let program = self.pipeline.program();
        let index = self.pipeline.action_index(table, action).map_err(|e| e.0)?;
        let declared = &program[program[table].actions[index as usize].action];
        let names: Vec<&str> = declared.params.iter().map(|p| p.name.as_str()).collect();
        if names.len() != values.len() {
            return Err(format!(
                "action `{}` takes {} values ({}), not {}",
                declared.info.name,
                names.len(),
                names.join(", "),
                values.len()
            ));
        }
        let mut args = Vec::new();
        for (param, value) in declared.params.iter().zip(values) {
            args.push(cli(value, program[param.var].width).map_err(|e| format!("`{}`: {e}", param.name))?);
        }
        Ok((index, args))
    }

    fn table_add(&mut self, args: &[&str], leads: Leads) -> Answer {
        let expected = match leads {
            Leads::Action => "table_add TABLE ACTION KEY... => VALUE... [PRIORITY]",
            Leads::Member => "table_indirect_add TABLE KEY... => MEMBER [PRIORITY]",
            Leads::Group => "table_indirect_add_with_group TABLE KEY... => GROUP [PRIORITY]",
        };
        let first_key = if leads == Leads::Action { 2 } else { 1 };
        let arrow = args.iter().position(|a| *a == "=>").filter(|at| *at >= first_key);
        let Some(arrow) = arrow else { return Err(format!("expected `{expected}`")) };
        let id = self.table(args[0])?;
        let program = self.pipeline.program().clone();
        let table = &program[id];
        let mut rest = args[arrow + 1..].to_vec();
        let priority = if priority_counts(table) {
            let last = rest.pop().ok_or_else(|| {
                format!("table `{}` has keys that need a priority; end with one", table.info.name)
            })?;
            small("priority", last)?
        } else {
            0
        };
        let found = keys(table, &args[first_key..arrow])?;
        let target = match leads {
            Leads::Action => self.target(id, args[1], &rest)?,
            _ => {
                count(&rest, 1, 1, expected)?;
                handle_target(leads, rest[0])?
            }
        };
        let handle = self.pipeline.table_add(id, found, priority, target).map_err(|e| e.0)?;
        Ok(format!("entry has been added with handle {handle}"))
    }

    fn table_set_default(&mut self, args: &[&str], leads: Leads) -> Answer {
        count(args, 2, usize::MAX, "table_set_default TABLE ACTION VALUE...")?;
        let id = self.table(args[0])?;
        let target = if leads == Leads::Action {
            let values: Vec<&str> = args[2..].iter().copied().filter(|a| *a != "=>").collect();
            self.target(id, args[1], &values)?
        } else {
            count(args, 2, 2, "table_indirect_set_default TABLE HANDLE")?;
            handle_target(leads, args[1])?
        };
        self.pipeline.table_set_default(id, target).map_err(|e| e.0)?;
        Ok(String::new())
    }

    fn table_modify(&mut self, args: &[&str]) -> Answer {
        count(args, 3, usize::MAX, "table_modify TABLE ACTION HANDLE VALUE...")?;
        let id = self.table(args[0])?;
        let handle = small("handle", args[2])?;
        let values: Vec<&str> = args[3..].iter().copied().filter(|a| *a != "=>").collect();
        let target = self.target(id, args[1], &values)?;
        self.pipeline.table_modify(id, handle, target).map_err(|e| e.0)?;
        Ok(String::new())
    }

    fn table_delete(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "table_delete TABLE HANDLE")?;
        let id = self.table(args[0])?;
        self.pipeline.table_delete(id, small("handle", args[1])?).map_err(|e| e.0)?;
        Ok(String::new())
    }

    fn table_set_timeout(&mut self, args: &[&str]) -> Answer {
        count(args, 3, 3, "table_set_timeout TABLE HANDLE MILLISECONDS")?;
        let id = self.table(args[0])?;
        let timeout = u64::from(small("timeout", args[2])?) * PS_PER_MS;
        let extras = Extras { idle_timeout: Some(timeout), ..Extras::default() };
        self.pipeline.entry_modify(id, small("handle", args[1])?, None, extras, self.now).map_err(|e| e.0)?;
        Ok(String::new())
    }

    fn table_clear(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "table_clear TABLE")?;
        let id = self.table(args[0])?;
        self.pipeline.table_clear(id).map_err(|e| e.0)?;
        Ok(String::new())
    }

    fn table_reset_default(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "table_reset_default TABLE")?;
        let id = self.table(args[0])?;
        self.pipeline.state.tables[id.index()].reset_default();
        Ok(String::new())
    }

    /// `ACTION(name=0x..)`.
    pub(super) fn action_text(&self, table: TableId, action: u32, data: &[u64]) -> String {
        let program = self.pipeline.program();
        let id = program[table].actions[action as usize].action;
        let values: Vec<String> = program[id]
            .params
            .iter()
            .zip(action_args(program, id, data))
            .map(|(param, value)| format!("{}={value:#x}", param.name))
            .collect();
        format!("{}({})", program[id].info.name, values.join(", "))
    }

    fn target_text(&self, table: TableId, target: &Target) -> String {
        match target {
            Target::Action { action, args } => self.action_text(table, *action, args),
            Target::Member(member) => format!("member {member}"),
            Target::Group(group) => format!("group {group}"),
            Target::Set(set) => {
                let texts = set.choices().iter().map(|choice| {
                    format!("{} x {}", choice.weight, self.action_text(table, choice.action, &choice.args))
                });
                format!("one of {}", texts.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn entry_text(&self, id: TableId, handle: u32) -> Option<String> {
        let table = &self.pipeline.program()[id];
        let entry = self.pipeline.state.tables[id.index()].entry(handle)?;
        let keys: Vec<String> = table
            .keys
            .iter()
            .zip(&entry.matches)
            .map(|(key, m)| format!("{}={}", key.name, match_text(m)))
            .collect();
        let mut text = format!("entry {handle}: {}", keys.join(" "));
        if priority_counts(table) {
            text += &format!(" priority {}", entry.priority);
        }
        text += &format!(" => {}", self.target_text(id, entry.target()));
        Some(text)
    }

    fn table_dump(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "table_dump TABLE")?;
        let id = self.table(args[0])?;
        let state = &self.pipeline.state.tables[id.index()];
        let mut handles: Vec<(u64, u32)> = state.iter().map(|(h, e)| (e.order(), h)).collect();
        handles.sort_unstable();
        let mut lines =
            vec![format!("table {}: {} entries", self.pipeline.program()[id].info.name, state.len())];
        lines.extend(handles.into_iter().filter_map(|(_, handle)| self.entry_text(id, handle)));
        lines.push(format!("default => {}", self.target_text(id, state.default_target())));
        Ok(lines.join("\n"))
    }

    fn table_dump_entry(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "table_dump_entry TABLE HANDLE")?;
        let id = self.table(args[0])?;
        let handle = small("handle", args[1])?;
        self.entry_text(id, handle).ok_or_else(|| format!("table `{}` has no entry {handle}", args[0]))
    }

    fn table_dump_entry_from_key(&mut self, args: &[&str]) -> Answer {
        count(args, 2, usize::MAX, "table_dump_entry_from_key TABLE KEY... [PRIORITY]")?;
        let id = self.table(args[0])?;
        let table = &self.pipeline.program()[id];
        let mut words = &args[1..];
        let mut priority = 0;
        if priority_counts(table)
            && let Some((last, rest)) = words.split_last()
        {
            priority = small("priority", last)?;
            words = rest;
        }
        let found = keys(table, words)?;
        let handle = self.pipeline.state.tables[id.index()].find(&found, priority);
        let text = handle.and_then(|handle| self.entry_text(id, handle));
        text.ok_or_else(|| format!("table `{}` has no such entry", args[0]))
    }

    fn table_num_entries(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "table_num_entries TABLE")?;
        let id = self.table(args[0])?;
        Ok(self.pipeline.state.tables[id.index()].len().to_string())
    }

    fn table_info(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "table_info TABLE")?;
        let id = self.table(args[0])?;
        let program = self.pipeline.program();
        let table = &program[id];
        let keys: Vec<String> = table
            .keys
            .iter()
            .map(|k| format!("{}({:?}, {})", k.name, k.kind, k.expr.width).to_lowercase())
            .collect();
        let mut lines = vec![format!("{} [{}] size {}", table.info.name, keys.join(", "), table.size)];
        lines.extend(table.actions.iter().map(|a| self.action_signature(a.action)));
        Ok(lines.join("\n"))
    }

    fn action_signature(&self, action: p4lang::ir::ActionId) -> String {
        let program = self.pipeline.program();
        let declared = &program[action];
        let params: Vec<String> =
            declared.params.iter().map(|p| format!("{}({})", p.name, program[p.var].width)).collect();
        format!("{} [{}]", declared.info.name, params.join(", "))
    }

    fn show_tables(&mut self) -> Answer {
        let names = self.pipeline.program().tables.iter().map(|t| t.info.name.clone());
        Ok(names.collect::<Vec<_>>().join("\n"))
    }

    fn show_actions(&mut self) -> Answer {
        let count = self.pipeline.program().actions.len() as u32;
        let lines = (0..count).map(|i| self.action_signature(p4lang::ir::ActionId(i)));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    fn value_set(&self, name: &str) -> Result<usize, String> {
        self.pipeline.value_set_index(name).map_err(|e| e.0)
    }

    /// A member: the fields' values one after the other, or one number for all of them.
    fn pvs_member(&self, set: usize, args: &[&str]) -> Result<Vec<EntryMatch>, String> {
        let fields = &self.pipeline.program().value_sets[set].fields;
        let exact = |kind: MatchKind, value: BigUint, width: u32| match kind {
            MatchKind::Exact => EntryMatch::Exact(value),
            MatchKind::Lpm => EntryMatch::Lpm { value, prefix_len: width },
            MatchKind::Ternary => EntryMatch::Ternary { value, mask: crate::value::mask(width) },
            MatchKind::Range => EntryMatch::Range { lo: value.clone(), hi: value },
            MatchKind::Optional => EntryMatch::Optional(Some(value)),
        };
        if args.len() == 1 && fields.len() > 1 {
            let mut left: u32 = fields.iter().map(|(_, width, _)| *width).sum();
            let all = cli(args[0], left)?;
            return Ok(fields
                .iter()
                .map(|(_, width, kind)| {
                    left -= width;
                    exact(*kind, (&all >> left) & crate::value::mask(*width), *width)
                })
                .collect());
        }
        if args.len() != fields.len() {
            return Err(format!(
                "a member of this value set has {} fields, not {}",
                fields.len(),
                args.len()
            ));
        }
        let one = |(text, (name, width, kind)): (&&str, &(String, u32, MatchKind))| {
            let special = text.contains("&&&") || text.contains("->") || text.contains('/');
            let found = if special {
                cli_match(text, *kind, *width)
            } else {
                cli(text, *width).map(|v| exact(*kind, v, *width))
            };
            found.map_err(|e| format!("`{name}`: {e}"))
        };
        args.iter().zip(fields).map(one).collect()
    }

    fn pvs_change(&mut self, args: &[&str], add: bool) -> Answer {
        count(args, 2, usize::MAX, if add { "pvs_add SET VALUE..." } else { "pvs_remove SET VALUE..." })?;
        let set = self.value_set(args[0])?;
        let member = self.pvs_member(set, &args[1..])?;
        if add {
            self.pipeline.value_set_add(set, member).map_err(|e| e.0)?;
            return Ok(String::new());
        }
        let members = &mut self.pipeline.state.value_sets[set];
        let Some(at) = members.iter().position(|m| *m == member) else {
            return Err(format!("value set `{}` has no such member", args[0]));
        };
        members.remove(at);
        Ok(String::new())
    }

    fn pvs_clear(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "pvs_clear SET")?;
        let set = self.value_set(args[0])?;
        self.pipeline.state.value_sets[set].clear();
        Ok(String::new())
    }

    fn show_pvs(&mut self, args: &[&str]) -> Answer {
        count(args, 0, 0, "show_pvs")?;
        let sets = self.pipeline.program().value_sets.iter();
        let lines = sets.map(|set| {
            let widths: Vec<String> = set.fields.iter().map(|(_, width, _)| width.to_string()).collect();
            format!("{} [{}] size {}", set.info.name, widths.join(", "), set.size)
        });
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    fn pvs_get(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "pvs_get SET")?;
        let set = self.value_set(args[0])?;
        let lines = self.pipeline.state.value_sets[set]
            .iter()
            .map(|member| member.iter().map(match_text).collect::<Vec<_>>().join(" "));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }
}

/// One match per key of the table.
fn keys(table: &Table, words: &[&str]) -> Result<Vec<EntryMatch>, String> {
    if words.len() != table.keys.len() {
        let names: Vec<&str> = table.keys.iter().map(|k| k.name.as_str()).collect();
        return Err(format!(
            "table `{}` has {} keys ({}), not {}",
            table.info.name,
            names.len(),
            names.join(", "),
            words.len()
        ));
    }
    let each = table.keys.iter().zip(words).map(|(key, text)| {
        let one = cli_match(text, key.kind, key.expr.width);
        one.map_err(|e| format!("key `{}`: {e}", key.name))
    });
    each.collect()
}

fn handle_target(leads: Leads, text: &str) -> Result<Target, String> {
    Ok(match leads {
        Leads::Group => Target::Group(small("group", text)?),
        Leads::Member | Leads::Action => Target::Member(small("member", text)?),
    })
}

fn match_text(m: &EntryMatch) -> String {
    match m {
        EntryMatch::Exact(value) | EntryMatch::Optional(Some(value)) => format!("{value:#x}"),
        EntryMatch::Optional(None) => "*".into(),
        EntryMatch::Lpm { value, prefix_len } => format!("{value:#x}/{prefix_len}"),
        EntryMatch::Ternary { value, mask } => format!("{value:#x}&&&{mask:#x}"),
        EntryMatch::Range { lo, hi } => format!("{lo:#x}->{hi:#x}"),
    }
}
