//! What commands read of tables, and how an entry is written.

use control::{Call, EntryRef, Leads, Match, Row, TableOp, Value, check};
use p4lang::ir::{ActionId, EntryMatch, MatchKind, Program, TableId};

use super::table::key;
use super::{Answer, Session, count, unexpected};
use crate::value::small;

impl Session<'_> {
    pub(super) fn dump_command(&mut self, command: &str, args: &[&str]) -> Option<Answer> {
        Some(match command {
            "table_dump" => self.table_dump(args),
            "table_dump_entry" => self.table_dump_entry(args),
            "table_dump_entry_from_key" => self.table_dump_entry_from_key(args),
            "table_num_entries" => self.table_num_entries(args),
            "table_info" | "table_show_actions" => self.table_info(args),
            _ => return None,
        })
    }

    pub(super) fn show_command(&mut self, command: &str, args: &[&str]) -> Option<Answer> {
        Some(match command {
            "show_tables" => self.show_tables(),
            "show_actions" => self.show_actions(),
            "show_pvs" => self.show_pvs(args),
            _ => return None,
        })
    }

    /// All entries of a table, or the one that is asked for.
    fn rows(&mut self, table: &str, only: Option<EntryRef>) -> Result<Vec<Row>, String> {
        let mut found = Vec::new();
        let mut next_start = Some(0);
        while let Some(start) = next_start {
            let (table, only) = (table.into(), only.clone());
            match self.act(TableOp::Read { table, start, only })? {
                control::Answer::Rows { rows, next } => {
                    found.extend(rows);
                    next_start = next;
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(found)
    }

    fn table_dump(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "table_dump TABLE")?;
        let id = self.table(args[0])?;
        let mut rows = self.rows(args[0], None)?;
        rows.sort_unstable_by_key(|row| row.order);
        let default = match self.act(TableOp::ReadDefault { table: args[0].into() })? {
            control::Answer::Default { to, .. } => to,
            other => return Err(unexpected(&other)),
        };
        let program = self.pipeline.program();
        let mut lines = vec![format!("table {}: {} entries", program[id].info.name, rows.len())];
        lines.extend(rows.iter().map(|row| entry_text(program, id, row)));
        lines.push(format!("default => {}", leads_text(program, id, &default)));
        Ok(lines.join("\n"))
    }

    fn table_dump_entry(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "table_dump_entry TABLE HANDLE")?;
        let id = self.table(args[0])?;
        let handle = small("handle", args[1])?;
        match &self.rows(args[0], Some(EntryRef::Handle(handle)))?[..] {
            [row] => Ok(entry_text(self.pipeline.program(), id, row)),
            _ => Err(format!("table `{}` has no entry {handle}", args[0])),
        }
    }

    fn table_dump_entry_from_key(&mut self, args: &[&str]) -> Answer {
        count(args, 2, usize::MAX, "table_dump_entry_from_key TABLE KEY... [PRIORITY]")?;
        let id = self.table(args[0])?;
        let table = &self.pipeline.program()[id];
        let mut words = &args[1..];
        let mut priority = None;
        if check::prioritised(table)
            && let Some((last, rest)) = words.split_last()
        {
            priority = Some(small("priority", last)?);
            words = rest;
        }
        let entry = EntryRef::Key(key(table, words)?, priority);
        match &self.rows(args[0], Some(entry))?[..] {
            [row] => Ok(entry_text(self.pipeline.program(), id, row)),
            _ => Err(format!("table `{}` has no such entry", args[0])),
        }
    }

    fn table_num_entries(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "table_num_entries TABLE")?;
        let table = Some(args[0].into());
        match self.act(TableOp::Totals { table, start: Some(0) })? {
            control::Answer::Totals(totals) => Ok(totals.iter().map(|t| t.entries).sum::<u64>().to_string()),
            other => Err(unexpected(&other)),
        }
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
        lines.extend(table.actions.iter().map(|a| action_signature(program, a.action)));
        Ok(lines.join("\n"))
    }

    fn show_tables(&mut self) -> Answer {
        let names = self.pipeline.program().tables.iter().map(|t| t.info.name.clone());
        Ok(names.collect::<Vec<_>>().join("\n"))
    }

    fn show_actions(&mut self) -> Answer {
        let program = self.pipeline.program();
        let lines = (0..program.actions.len() as u32).map(|i| action_signature(program, ActionId(i)));
        Ok(lines.collect::<Vec<_>>().join("\n"))
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
}

fn action_signature(program: &Program, action: ActionId) -> String {
    let declared = &program[action];
    let params: Vec<String> =
        declared.params.iter().map(|p| format!("{}({})", p.name, program[p.var].width)).collect();
    format!("{} [{}]", declared.info.name, params.join(", "))
}

/// `ACTION(name=0x..)`.
pub fn call_text(program: &Program, table: TableId, call: &Call) -> String {
    let params = call
        .action
        .action(program, table)
        .map_or(&[][..], |index| &program[program[table].actions[index as usize].action].params);
    let value = |(param, value): (&p4lang::ir::ActionParam, &Value)| format!("{}={value}", param.name);
    let values: Vec<String> = params.iter().zip(&call.values).map(value).collect();
    format!("{}({})", call.action, values.join(", "))
}

fn leads_text(program: &Program, table: TableId, to: &Leads) -> String {
    match to {
        Leads::Action(call) => call_text(program, table, call),
        Leads::Member(member) => format!("member {member}"),
        Leads::Group(group) => format!("group {group}"),
        Leads::Set(choices) => {
            let texts = choices
                .iter()
                .map(|choice| format!("{} x {}", choice.weight, call_text(program, table, &choice.call)));
            format!("one of {}", texts.collect::<Vec<_>>().join(", "))
        }
    }
}

fn entry_text(program: &Program, id: TableId, row: &Row) -> String {
    let table = &program[id];
    let keys: Vec<String> = table
        .keys
        .iter()
        .zip(&row.matches)
        .map(|(key, m)| format!("{}={}", key.name, match_text(m, key.kind, key.expr.width)))
        .collect();
    let mut text = format!("entry {}: {}", row.handle, keys.join(" "));
    if check::prioritised(table) {
        text += &format!(" priority {}", row.priority);
    }
    text + &format!(" => {}", leads_text(program, id, &row.to))
}

/// A match as the command line has it.
pub fn match_text(m: &Match, kind: MatchKind, width: u32) -> String {
    match m.entry(kind, width) {
        Ok(EntryMatch::Exact(value) | EntryMatch::Optional(Some(value))) => format!("{value:#x}"),
        Ok(EntryMatch::Lpm { value, prefix_len }) => format!("{value:#x}/{prefix_len}"),
        Ok(EntryMatch::Ternary { value, mask }) => format!("{value:#x}&&&{mask:#x}"),
        Ok(EntryMatch::Range { lo, hi }) => format!("{lo:#x}->{hi:#x}"),
        Ok(EntryMatch::Optional(None)) | Err(_) => "*".into(),
    }
}
