//! Names of a program's objects: the full name (`MyIngress.routes`), or a suffix of whole parts that only one object has
//! (`routes`).

use std::fmt;

use p4lang::ir::{Info, Program, TableId};

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
        resolve("table", &self.0, infos).map(|index| TableId(index as u32))
    }

    /// Index in a table's list of actions.
    ///
    /// # Errors
    /// No such action, or several.
    pub fn action(&self, program: &Program, table: TableId) -> Result<u32> {
        let infos = program[table].actions.iter().map(|a| &program[a.action].info);
        let what = || format!("action of table `{}`", program[table].info.name);
        find(&self.0, infos, what).map(|index| index as u32)
    }

    /// # Errors
    /// No such action profile, or several.
    pub fn profile(&self, program: &Program) -> Result<usize> {
        resolve("action profile", &self.0, program.profiles.iter().map(|p| &p.info))
    }

    /// # Errors
    /// No such register, or several.
    pub fn register(&self, program: &Program) -> Result<usize> {
        resolve("register", &self.0, program.registers.iter().map(|r| &r.info))
    }

    /// # Errors
    /// No such value set, or several.
    pub fn value_set(&self, program: &Program) -> Result<usize> {
        resolve("value set", &self.0, program.value_sets.iter().map(|v| &v.info))
    }

    /// An array of counters before a direct counter of which this is a suffix only.
    ///
    /// # Errors
    /// No such counter, or several.
    pub fn counter(&self, program: &Program) -> Result<Cells> {
        let direct = |table: usize| program.tables[table].direct_counter.as_ref().map(|c| &c.info);
        if let Some(table) = self.direct(program, |i| direct(i).is_some_and(|info| info.name == self.0)) {
            return Ok(table);
        }
        let array = resolve("counter", &self.0, program.counters.iter().map(|c| &c.info));
        let known = |info: &Info| ends(&info.name, &self.0);
        if array.is_ok() || program.counters.iter().any(|c| known(&c.info)) {
            return array.map(Cells::Array);
        }
        match self.direct(program, |i| direct(i).is_some_and(known)) {
            Some(table) => Ok(table),
            None => array.map(Cells::Array),
        }
    }

    /// As [`Name::counter`].
    ///
    /// # Errors
    /// No such meter, or several.
    pub fn meter(&self, program: &Program) -> Result<Cells> {
        let known = |info: &Info| info.name == self.0 || ends(&info.name, &self.0);
        let array = resolve("meter", &self.0, program.meters.iter().map(|m| &m.info));
        let direct =
            |table: usize| program.tables[table].direct_meter.as_ref().is_some_and(|m| known(&m.info));
        match (array, self.direct(program, direct)) {
            (Err(_), Some(table)) => Ok(table),
            (array, _) => array.map(Cells::Array),
        }
    }

    fn direct(&self, program: &Program, has: impl Fn(usize) -> bool) -> Option<Cells> {
        (0..program.tables.len()).find(|i| has(*i)).map(|i| Cells::Direct(TableId(i as u32)))
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
pub fn resolve<'a>(what: &str, name: &str, infos: impl Iterator<Item = &'a Info> + Clone) -> Result<usize> {
    find(name, infos, || what.to_owned())
}

fn find<'a>(
    name: &str,
    infos: impl Iterator<Item = &'a Info> + Clone,
    what: impl Fn() -> String,
) -> Result<usize> {
    if let Some(index) = infos.clone().position(|i| i.name == name) {
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
