//! Names of a program's objects: the full name (`MyIngress.routes`), or a suffix of whole parts that only one object has
//! (`routes`).

use std::fmt;

use p4lang::ir::{ByName, Info, Program, TableId};

use crate::{Error, Kind, Result};

/// An object's name as somebody wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name(String);

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name(text.to_owned())
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Cells by index, or those of a table's entries by handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cells {
    /// Index in the program's list of counters or of meters.
    Array(usize),
    /// A direct counter or meter.
    Direct(TableId),
}

impl Name {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// # Errors
    /// No such table, or several.
    pub fn table(&self, program: &Program) -> Result<TableId> {
        let infos = program.tables.iter().map(|t| &t.info);
        resolve("table", &self.0, &program.names.tables, infos).map(|index| TableId(index as u32))
    }

    /// Index in a table's list of actions.
    ///
    /// # Errors
    /// No such action, or several.
    pub fn action(&self, program: &Program, table: TableId) -> Result<u32> {
        let infos = program[table].actions.iter().map(|a| &program[a.action].info);
        let what = || format!("action of table `{}`", program[table].info.name);
        find(&self.0, &program[table].action_names, infos, what).map(|index| index as u32)
    }

    /// # Errors
    /// No such action profile, or several.
    pub fn profile(&self, program: &Program) -> Result<usize> {
        resolve("action profile", &self.0, &program.names.profiles, program.profiles.iter().map(|p| &p.info))
    }

    /// # Errors
    /// No such register, or several.
    pub fn register(&self, program: &Program) -> Result<usize> {
        resolve("register", &self.0, &program.names.registers, program.registers.iter().map(|r| &r.info))
    }

    /// # Errors
    /// No such value set, or several.
    pub fn value_set(&self, program: &Program) -> Result<usize> {
        resolve("value set", &self.0, &program.names.value_sets, program.value_sets.iter().map(|v| &v.info))
    }

    /// A full name means that object; of others, an array of counters comes before a direct counter.
    ///
    /// # Errors
    /// No such counter, or several.
    pub fn counter(&self, program: &Program) -> Result<Cells> {
        let direct = |table: usize| program.tables[table].direct_counter.as_ref().map(|c| &c.info);
        let (arrays, names) = (program.counters.iter().map(|c| &c.info), &program.names);
        self.cells("counter", program, arrays, &names.counters, direct, &names.direct_counters)
    }

    /// As [`Name::counter`].
    ///
    /// # Errors
    /// No such meter, or several.
    pub fn meter(&self, program: &Program) -> Result<Cells> {
        let direct = |table: usize| program.tables[table].direct_meter.as_ref().map(|m| &m.info);
        let (arrays, names) = (program.meters.iter().map(|m| &m.info), &program.names);
        self.cells("meter", program, arrays, &names.meters, direct, &names.direct_meters)
    }

    fn cells<'a>(
        &self,
        what: &str,
        program: &Program,
        arrays: impl Iterator<Item = &'a Info> + Clone,
        array_names: &ByName,
        direct: impl Fn(usize) -> Option<&'a Info>,
        direct_names: &ByName,
    ) -> Result<Cells> {
        let tables = || (0..program.tables.len()).filter_map(|table| Some((table, direct(table)?)));
        let of = |table: usize| Cells::Direct(TableId(table as u32));
        if let Some(table) = direct_names.position(&self.0, tables()) {
            return Ok(of(table));
        }
        if let Some(array) = array_names.position(&self.0, arrays.clone().enumerate()) {
            return Ok(Cells::Array(array));
        }
        if !arrays.clone().any(|info| ends(&info.name, &self.0))
            && let Some((table, _)) = tables().find(|(_, info)| ends(&info.name, &self.0))
        {
            return Ok(of(table));
        }
        resolve(what, &self.0, array_names, arrays).map(Cells::Array)
    }
}

/// Whether the last parts of a full name are these.
fn ends(full: &str, suffix: &str) -> bool {
    full.strip_suffix(suffix).is_some_and(|rest| rest.ends_with('.'))
}

/// Index of the object that a name means.
///
/// # Errors
/// No such object, or several.
pub fn resolve<'a>(
    what: &str,
    name: &str,
    by_name: &ByName,
    infos: impl Iterator<Item = &'a Info> + Clone,
) -> Result<usize> {
    find(name, by_name, infos, || what.to_owned())
}

fn find<'a>(
    name: &str,
    by_name: &ByName,
    infos: impl Iterator<Item = &'a Info> + Clone,
    what: impl Fn() -> String,
) -> Result<usize> {
    if let Some(index) = by_name.position(name, infos.clone().enumerate()) {
        return Ok(index);
    }
    let mut found = infos.clone().enumerate().filter(|(_, i)| ends(&i.name, name)).map(|(index, _)| index);
    match (found.next(), found.count()) {
        (Some(only), 0) => Ok(only),
        (None, _) => {
            let known: Vec<String> = infos.clone().take(20).map(|i| format!("`{}`", i.name)).collect();
            let known = if known.is_empty() {
                "the program has none".to_owned()
            } else {
                let near = p4lang::similar_object(name, infos.map(|i| i.name.as_str()));
                let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
                format!("{near}there are {}", known.join(", "))
            };
            let object = format!("{} `{name}`", what());
            Err(Error::new(Kind::NotFound, format!("no {object}")).of(object).cure(known))
        }
        (Some(_), others) => {
            let what = what();
            let why = format!("`{name}` could be any of {} {what}s", others + 1);
            Err(Error::invalid(why).of(format!("{what} `{name}`")).cure("give its full name"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::hint::black_box;
    use std::time::{Duration, Instant};

    use super::*;

    const MANY: usize = 3000;

    fn program() -> Program {
        let mut text = String::from("#include <core.p4>\n#include <v1model.p4>\n");
        text.push_str("struct H {} struct M {}\n");
        text.push_str("parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }\n");
        text.push_str("control V(inout H h, inout M m) { apply {} }\n");
        text.push_str("control I(inout H h, inout M m, inout standard_metadata_t s) {\n");
        for number in 0..MANY {
            let _ = writeln!(text, "register<bit<8>>(1) r{number}; counter(1, CounterType.bytes) c{number};");
        }
        text.push_str("direct_counter(CounterType.bytes) d; counter(1, CounterType.bytes) only;\n");
        text.push_str("table t { key = { s.ingress_port : exact; } actions = { NoAction; } counters = d; } apply { t.apply(); } }\n");
        text.push_str("control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }\n");
        text.push_str("control D(packet_out p, in H h) { apply {} }\n");
        text.push_str("V1Switch(P(), V(), I(), E(), V(), D()) main;\n");
        let compiled = p4lang::compile_str("names.p4", &text, None, &p4lang::Options::default());
        compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
    }

    /// The least time of some thousand searches.
    fn time(search: impl Fn() -> bool) -> Duration {
        let once = || {
            let began = Instant::now();
            (0..5000).for_each(|_| assert!(black_box(&search)()));
            began.elapsed()
        };
        (0..5).map(|_| once()).min().unwrap_or_default()
    }

    #[test]
    fn full_names_are_found_without_a_search() {
        let program = program();
        let last = format!("I.r{}", MANY - 1);
        assert_eq!(Name::from(&*last).register(&program).unwrap(), MANY - 1);
        let [first, last] = ["I.r0", &last].map(Name::from);
        let (near, far) =
            (time(|| first.register(&program).is_ok()), time(|| last.register(&program).is_ok()));
        assert!(far < near * 10, "{near:?} for the first, {far:?} for the last");
        // Copies have names of their own.
        let mut other = program.clone();
        other.registers.remove(0);
        assert_eq!(last.register(&other).unwrap(), MANY - 2);
    }

    #[test]
    fn suffixes_and_direct_counters() {
        let program = program();
        assert_eq!(Name::from("only").counter(&program).unwrap(), Cells::Array(MANY));
        for name in ["d", "I.d"] {
            assert_eq!(Name::from(name).counter(&program).unwrap(), Cells::Direct(TableId(0)), "{name}");
        }
        assert_eq!(Name::from("r").register(&program).unwrap_err().kind, Kind::NotFound);
        assert!(Name::from("I.d").meter(&program).is_err());
    }
}
