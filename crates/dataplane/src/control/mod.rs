//! The control surface: what a control plane reads and writes, by name, with everything checked before anything changes.
//!
//! Objects go by their full name (`MyIngress.ipv4_lpm`) or any suffix of whole parts that only one object has
//! (`ipv4_lpm`). A smaller priority number wins.
//!
//! | file | what it writes |
//! |---|---|
//! | `mod.rs` | tables, registers |
//! | `entry.rs` | what a table's entry has beside its action: counter, meter, timeout |
//! | `profile.rs` | members and groups of action profiles |
//! | `objects.rs` | counters, meters, value sets |

mod entry;
mod objects;
mod profile;

use std::fmt;

use num_bigint::BigUint;
use p4lang::ir::{EntryMatch, Info, MatchKind, Program, TableId};

use crate::pipeline::Pipeline;
use crate::state::table::{Target, action_words};

pub use entry::Extras;

/// What kind of mistake a refused write or read is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Invalid,
    /// A number is beyond its width, an index beyond its array.
    OutOfRange,
    NotFound,
    Exists,
    Full,
    /// The program says that it is not to be changed.
    Denied,
    /// Something else leads there.
    InUse,
}

/// Why a write or read was refused, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlError(pub String, pub Kind);

impl fmt::Display for ControlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ControlError {}

type Result<T> = std::result::Result<T, ControlError>;

pub(crate) fn refuse<T>(why: impl Into<String>) -> Result<T> {
    refuse_as(Kind::Invalid, why)
}

pub(crate) fn refuse_as<T>(kind: Kind, why: impl Into<String>) -> Result<T> {
    Err(ControlError(why.into(), kind))
}

/// Whether one key's match holds for a value.
pub fn matches(m: &EntryMatch, value: &BigUint, width: u32) -> bool {
    match m {
        EntryMatch::Exact(v) | EntryMatch::Optional(Some(v)) => v == value,
        EntryMatch::Optional(None) => true,
        EntryMatch::Lpm { value: v, prefix_len } => {
            v >> (width - prefix_len) == value >> (width - prefix_len)
        }
        EntryMatch::Ternary { value: v, mask } => v & mask == value & mask,
        EntryMatch::Range { lo, hi } => lo <= value && value <= hi,
    }
}

/// Index of the object that a name means.
pub fn resolve<'a>(what: &str, name: &str, infos: impl Iterator<Item = &'a Info>) -> Result<usize> {
    let infos: Vec<&Info> = infos.collect();
    if let Some(index) = infos.iter().position(|i| i.name == name) {
        return Ok(index);
    }
    let suffix = format!(".{name}");
    let found: Vec<usize> =
        infos.iter().enumerate().filter(|(_, i)| i.name.ends_with(&suffix)).map(|(i, _)| i).collect();
    match found[..] {
        [only] => Ok(only),
        [] => {
            let known: Vec<String> = infos.iter().take(20).map(|i| format!("`{}`", i.name)).collect();
            let known = if known.is_empty() {
                "the program has none".to_owned()
            } else {
                format!("there are {}", known.join(", "))
            };
            refuse_as(Kind::NotFound, format!("no {what} `{name}`; {known}"))
        }
        _ => refuse(format!("`{name}` could be any of {} {what}s; give its full name", found.len())),
    }
}

impl Pipeline {
    pub fn table_id(&self, name: &str) -> Result<TableId> {
        resolve("table", name, self.program().tables.iter().map(|t| &t.info)).map(|i| TableId(i as u32))
    }

    /// Index in the table's action list.
    pub fn action_index(&self, table: TableId, name: &str) -> Result<u32> {
        let program = self.program();
        let infos = program[table].actions.iter().map(|a| &program[a.action].info);
        resolve(&format!("action of table `{}`", program[table].info.name), name, infos).map(|i| i as u32)
    }

    /// An action with its data, checked.
    pub fn action_target(&self, table: TableId, action: u32, args: &[BigUint]) -> Result<Target> {
        let program = self.program();
        let declared = &program[program[table].actions[action as usize].action];
        if declared.params.len() != args.len() {
            return refuse(format!(
                "action `{}` takes {} values, not {}",
                declared.info.name,
                declared.params.len(),
                args.len()
            ));
        }
        for (param, value) in declared.params.iter().zip(args) {
            fits(
                &format!("parameter `{}` of `{}`", param.name, declared.info.name),
                value,
                program[param.var].width,
            )?;
        }
        Ok(Target::Action { action, args: action_words(program, &program[table], action, args) })
    }

    fn check_target(&self, id: TableId, target: &Target, default: bool) -> Result<()> {
        let table = &self.program()[id];
        match target {
            Target::Action { action, .. } => {
                let listed = &table.actions[*action as usize];
                let name = &self.program()[listed.action].info.name;
                if default && listed.table_only {
                    return refuse_as(Kind::Denied, format!("action `{name}` is @tableonly"));
                }
                if !default && listed.default_only {
                    return refuse_as(Kind::Denied, format!("action `{name}` is @defaultonly"));
                }
                if !default && table.implementation.is_some() {
                    return refuse(format!(
                        "table `{}` takes members of its action profile, not actions",
                        table.info.name
                    ));
                }
                Ok(())
            }
            Target::Member(member) => match table.implementation {
                Some(profile) if self.state.profiles[profile.index()].member(*member).is_some() => Ok(()),
                Some(_) => refuse_as(Kind::NotFound, format!("there is no member {member}")),
                None => refuse(format!("table `{}` has no action profile", table.info.name)),
            },
            Target::Group(group) => match table.implementation {
                Some(profile) if self.state.profiles[profile.index()].group(*group).is_some() => Ok(()),
                Some(_) => refuse_as(Kind::NotFound, format!("there is no group {group}")),
                None => refuse(format!("table `{}` has no action selector", table.info.name)),
            },
            Target::Set(set) => self.check_choices(id, set.choices()),
        }
    }

    /// Adds an entry; gives its handle.
    pub fn table_add(
        &mut self,
        id: TableId,
        found: Vec<EntryMatch>,
        priority: u32,
        target: Target,
    ) -> Result<u32> {
        let program = self.program().clone();
        let table = &program[id];
        if table.const_entries {
            return refuse_as(Kind::Denied, format!("the entries of table `{}` are const", table.info.name));
        }
        check_matches(&program, id, &found)?;
        self.check_target(id, &target, false)?;
        self.check_style(id, &target)?;
        let state = &mut self.state.tables[id.index()];
        if state.find(&found, priority).is_some() {
            return refuse_as(
                Kind::Exists,
                format!("table `{}` has an entry with this match already", table.info.name),
            );
        }
        if state.len() as u64 >= table.size {
            return refuse_as(
                Kind::Full,
                format!("table `{}` is full: its size is {}", table.info.name, table.size),
            );
        }
        Ok(state.insert(found, priority, target, false))
    }

    pub fn table_modify(&mut self, id: TableId, handle: u32, target: Target) -> Result<()> {
        self.writable(id, handle)?;
        self.check_target(id, &target, false)?;
        self.check_style(id, &target)?;
        self.state.tables[id.index()].set_target(handle, target);
        Ok(())
    }

    pub fn table_delete(&mut self, id: TableId, handle: u32) -> Result<()> {
        self.writable(id, handle)?;
        self.state.tables[id.index()].remove(handle);
        Ok(())
    }

    fn writable(&self, id: TableId, handle: u32) -> Result<()> {
        let table = &self.program()[id];
        match self.state.tables[id.index()].entry(handle) {
            None => refuse_as(Kind::NotFound, format!("table `{}` has no entry {handle}", table.info.name)),
            Some(entry) if entry.is_const => {
                refuse_as(Kind::Denied, format!("entry {handle} of table `{}` is const", table.info.name))
            }
            Some(_) => Ok(()),
        }
    }

    /// Removes all entries but those of the program that are const.
    pub fn table_clear(&mut self, id: TableId) -> Result<()> {
        let state = &mut self.state.tables[id.index()];
        let handles: Vec<u32> = state.iter().filter(|(_, e)| !e.is_const).map(|(h, _)| h).collect();
        for handle in handles {
            state.remove(handle);
        }
        Ok(())
    }

    pub fn table_set_default(&mut self, id: TableId, target: Target) -> Result<()> {
        let table = &self.program()[id];
        if table.const_default {
            return refuse_as(
                Kind::Denied,
                format!("the default action of table `{}` is const", table.info.name),
            );
        }
        if table.implementation.is_none() || !matches!(target, Target::Action { .. }) {
            self.check_target(id, &target, true)?;
        }
        self.state.tables[id.index()].set_default(target);
        Ok(())
    }

    /// Index of a register array.
    pub fn register_index(&self, name: &str) -> Result<usize> {
        resolve("register", name, self.program().registers.iter().map(|r| &r.info))
    }

    /// Writes one cell, or all of them.
    pub fn register_write(&mut self, register: usize, cell: Option<usize>, value: &BigUint) -> Result<()> {
        let declared = &self.program().registers[register];
        fits(&format!("register `{}`", declared.info.name), value, declared.width)?;
        let (name, width) = (declared.info.name.clone(), declared.width);
        let mut words = Vec::new();
        crate::state::words::limbs(value, width, &mut words);
        let cells = &mut self.state.registers[register];
        match cell {
            None => cells.cells.chunks_mut(words.len().max(1)).for_each(|c| c.copy_from_slice(&words)),
            Some(index) => {
                let len = cells.len();
                match cells.cell_mut(index) {
                    Some(cell) => cell.copy_from_slice(&words),
                    None => {
                        return refuse_as(
                            Kind::OutOfRange,
                            format!("register `{name}` has {len} cells; {index} is out of range"),
                        );
                    }
                }
            }
        }
        Ok(())
    }

    pub fn register_read(&self, register: usize, cell: usize) -> Result<BigUint> {
        let cells = &self.state.registers[register];
        match cells.cell(cell) {
            Some(words) => Ok(crate::state::words::number(words)),
            None => refuse_as(
                Kind::OutOfRange,
                format!(
                    "register `{}` has {} cells; {cell} is out of range",
                    self.program().registers[register].info.name,
                    cells.len()
                ),
            ),
        }
    }
}

pub(crate) fn fits(what: &str, value: &BigUint, width: u32) -> Result<()> {
    if value.bits() > u64::from(width) {
        return refuse_as(Kind::OutOfRange, format!("{value:#x} does not fit in the {width} bits of {what}"));
    }
    Ok(())
}

/// Whether these are matches for the keys of a table.
pub(crate) fn check_matches(program: &Program, id: TableId, found: &[EntryMatch]) -> Result<()> {
    let table = &program[id];
    if table.keys.len() != found.len() {
        return refuse(format!(
            "table `{}` has {} keys; the entry gives {}",
            table.info.name,
            table.keys.len(),
            found.len()
        ));
    }
    for (key, m) in table.keys.iter().zip(found) {
        let what = format!("key `{}` of table `{}`", key.name, table.info.name);
        check_match(key.kind, key.expr.width, m, &what)?;
    }
    Ok(())
}

/// Whether this is a match of such a kind for so many bits.
pub(crate) fn check_match(kind: MatchKind, width: u32, found: &EntryMatch, what: &str) -> Result<()> {
    match (kind, found) {
        (MatchKind::Exact, EntryMatch::Exact(v)) | (MatchKind::Optional, EntryMatch::Optional(Some(v))) => {
            fits(what, v, width)
        }
        (MatchKind::Optional, EntryMatch::Optional(None)) => Ok(()),
        (MatchKind::Lpm, EntryMatch::Lpm { value, prefix_len }) => {
            fits(what, value, width)?;
            if *prefix_len > width {
                return refuse(format!("prefix length {prefix_len} is more than the {width} bits of {what}"));
            }
            if value.trailing_zeros().is_some_and(|z| z < u64::from(width - prefix_len)) {
                return refuse(format!(
                    "{value:#x} has bits beyond the prefix of {prefix_len} bits of {what}"
                ));
            }
            Ok(())
        }
        (MatchKind::Ternary, EntryMatch::Ternary { value, mask }) => {
            fits(what, value, width)?;
            fits(what, mask, width)
        }
        (MatchKind::Range, EntryMatch::Range { lo, hi }) => {
            fits(what, hi, width)?;
            if lo > hi {
                return refuse(format!("the range {lo:#x}..{hi:#x} of {what} ends before it starts"));
            }
            Ok(())
        }
        (kind, _) => refuse(format!("{what} is matched by {kind:?}, not like this")),
    }
}
