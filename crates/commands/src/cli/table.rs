//! What commands write to tables.

use control::{Call, EntryRef, Extras, Match, Name, TableOp, Value, check};
use p4lang::ir::{Program, Table, TableId};

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
            "table_clear" => self.on_table(args, "table_clear TABLE", |table| TableOp::Clear { table }),
            "table_reset_default" | "table_indirect_reset_default" => {
                self.on_table(args, "table_reset_default TABLE", |table| TableOp::ResetDefault { table })
            }
            _ => return self.dump_command(command, args),
        })
    }

    /// A command that names a table and nothing else.
    fn on_table(&mut self, args: &[&str], expected: &str, op: impl Fn(Name) -> TableOp) -> Answer {
        count(args, 1, 1, expected)?;
        self.done(op(args[0].into()))
    }

    pub(super) fn table(&self, name: &str) -> Result<TableId, String> {
        Name::from(name).table(self.pipeline.program()).map_err(|e| e.to_string())
    }

    fn leads(&self, table: TableId, action: &str, values: &[&str]) -> Result<control::Leads, String> {
        call(self.pipeline.program(), table, action, values).map(control::Leads::Action)
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
        let table = &self.pipeline.program()[id];
        let mut rest = args[arrow + 1..].to_vec();
        let mut priority = None;
        if check::prioritised(table) {
            priority = rest.pop().map(|last| small("priority", last)).transpose()?;
            check::priority(self.pipeline.program(), id, priority).map_err(|e| e.to_string())?;
        }
        let key = key(table, &args[first_key..arrow])?;
        let to = match leads {
            Leads::Action => self.leads(id, args[1], &rest)?,
            _ => {
                count(&rest, 1, 1, expected)?;
                number_of(leads, rest[0])?
            }
        };
        let (table, extras) = (args[0].into(), Extras::default());
        let handle = self.handle(TableOp::Add { table, key, priority, to, extras })?;
        Ok(format!("entry has been added with handle {handle}"))
    }

    fn table_set_default(&mut self, args: &[&str], leads: Leads) -> Answer {
        count(args, 2, usize::MAX, "table_set_default TABLE ACTION VALUE...")?;
        let id = self.table(args[0])?;
        let to = if leads == Leads::Action {
            let values: Vec<&str> = args[2..].iter().copied().filter(|a| *a != "=>").collect();
            self.leads(id, args[1], &values)?
        } else {
            count(args, 2, 2, "table_indirect_set_default TABLE HANDLE")?;
            number_of(leads, args[1])?
        };
        self.done(TableOp::SetDefault { table: args[0].into(), to, note: None })
    }

    fn table_modify(&mut self, args: &[&str]) -> Answer {
        count(args, 3, usize::MAX, "table_modify TABLE ACTION HANDLE VALUE...")?;
        let id = self.table(args[0])?;
        let entry = EntryRef::Handle(small("handle", args[2])?);
        let values: Vec<&str> = args[3..].iter().copied().filter(|a| *a != "=>").collect();
        let to = Some(self.leads(id, args[1], &values)?);
        self.done(TableOp::Set { table: args[0].into(), entry, to, extras: Extras::default() })
    }

    fn table_delete(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "table_delete TABLE HANDLE")?;
        let entry = EntryRef::Handle(small("handle", args[1])?);
        self.done(TableOp::Delete { table: args[0].into(), entry })
    }

    fn table_set_timeout(&mut self, args: &[&str]) -> Answer {
        count(args, 3, 3, "table_set_timeout TABLE HANDLE MILLISECONDS")?;
        let timeout = u64::from(small("timeout", args[2])?) * PS_PER_MS;
        let extras = Extras { idle_timeout: Some(timeout), ..Extras::default() };
        let entry = EntryRef::Handle(small("handle", args[1])?);
        self.done(TableOp::Set { table: args[0].into(), entry, to: None, extras })
    }
}

/// An action of a table with values as the command line has them.
pub fn call(program: &Program, table: TableId, action: &str, values: &[&str]) -> Result<Call, String> {
    let name = Name::from(action);
    let index = name.action(program, table).map_err(|e| e.to_string())?;
    check::demand_values(program, table, index, values.len()).map_err(|e| e.to_string())?;
    let declared = &program[program[table].actions[index as usize].action];
    let value = |(param, text): (&p4lang::ir::ActionParam, &&str)| {
        let value = cli(text, program[param.var].width).map_err(|e| format!("`{}`: {e}", param.name))?;
        Ok(Value::from(&value))
    };
    let values = declared.params.iter().zip(values).map(value).collect::<Result<_, String>>()?;
    Ok(Call { action: name, values })
}

/// One match for each key of a table, as the command line has them.
pub fn key(table: &Table, words: &[&str]) -> Result<Vec<Match>, String> {
    check::demand_keys(table, words.len()).map_err(|e| e.to_string())?;
    let each = table.keys.iter().zip(words).map(|(key, text)| {
        let one = cli_match(text, key.kind, key.expr.width);
        one.map(|m| Match::from(&m)).map_err(|e| format!("key `{}`: {e}", key.name))
    });
    each.collect()
}

fn number_of(leads: Leads, text: &str) -> Result<control::Leads, String> {
    Ok(match leads {
        Leads::Group => control::Leads::Group(small("group", text)?),
        Leads::Member | Leads::Action => control::Leads::Member(small("member", text)?),
    })
}
