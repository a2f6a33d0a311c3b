//! What a control plane that speaks in messages reads. What is there is copied while packets wait, and made into Python's
//! objects afterwards.

use std::sync::Arc;

use dataplane::pipeline::Pipeline;
use dataplane::state::meter::{MeterCell, MeterRates};
use dataplane::state::profile::{Choice, Share};
use dataplane::state::table::{Entry, Target, action_args};
use num_bigint::BigUint;
use p4lang::ir::{EntryMatch, MatchKind, Program, TableId};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::control::refused;
use crate::writes::{Bytes, Copies, Match, keys};

/// A value as the reference switch's command line has it, for so many bits.
#[pyfunction]
pub fn parse_value<'py>(py: Python<'py>, text: &str, width: u32) -> PyResult<Bound<'py, PyBytes>> {
    commands::value::cli(text, width).map(|value| bytes(py, &value)).map_err(refused)
}

/// A match as the reference switch's command line has it, of such a kind and for so many bits.
#[pyfunction]
pub fn parse_match<'py>(py: Python<'py>, text: &str, kind: &str, width: u32) -> PyOut<'py> {
    let kind = match kind {
        "exact" => MatchKind::Exact,
        "lpm" => MatchKind::Lpm,
        "ternary" => MatchKind::Ternary,
        "range" => MatchKind::Range,
        "optional" => MatchKind::Optional,
        other => return Err(refused(format!("there is no match kind `{other}`"))),
    };
    match_out(py, &commands::value::cli_match(text, kind, width).map_err(refused)?, width)
}

type PyOut<'py> = PyResult<Bound<'py, PyAny>>;

fn bytes<'py>(py: Python<'py>, value: &BigUint) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &value.to_bytes_be())
}

fn rates_out(rates: Option<MeterRates>) -> Option<(u64, u64, u64, u64)> {
    rates.map(|r| (r.committed_rate / 1000, r.committed_burst, r.peak_rate / 1000, r.peak_burst))
}

fn match_out<'py>(py: Python<'py>, found: &EntryMatch, width: u32) -> PyOut<'py> {
    let two = |a: &BigUint, b: &BigUint| (bytes(py, a), bytes(py, b)).into_pyobject(py).map(Bound::into_any);
    let any = || Ok(py.None().into_bound(py));
    match found {
        EntryMatch::Exact(value) | EntryMatch::Optional(Some(value)) => Ok(bytes(py, value).into_any()),
        EntryMatch::Optional(None) => any(),
        EntryMatch::Lpm { prefix_len: 0, .. } => any(),
        EntryMatch::Lpm { value, prefix_len } => two(value, &(*prefix_len).into()),
        EntryMatch::Ternary { mask, .. } if mask.bits() == 0 => any(),
        EntryMatch::Ternary { value, mask } => two(&(value & mask), mask),
        EntryMatch::Range { lo, hi } if lo.bits() == 0 && hi.count_ones() == u64::from(width) => any(),
        EntryMatch::Range { lo, hi } => two(lo, hi),
    }
}

fn call_out<'py>(py: Python<'py>, program: &Program, id: TableId, action: u32, args: &[u64]) -> PyOut<'py> {
    let action = program[id].actions[action as usize].action;
    let values: Vec<_> = action_args(program, action, args).iter().map(|value| bytes(py, value)).collect();
    Ok((&program[action].info.name, values).into_pyobject(py)?.into_any())
}

fn target_out<'py>(py: Python<'py>, program: &Program, id: TableId, target: &Target) -> PyOut<'py> {
    Ok(match target {
        Target::Action { action, args } => call_out(py, program, id, *action, args)?,
        Target::Member(member) => ("member", *member).into_pyobject(py)?.into_any(),
        Target::Group(group) => ("group", *group).into_pyobject(py)?.into_any(),
        Target::Set(set) => {
            let choice = |c: &Choice| {
                let call = call_out(py, program, id, c.action, &c.args)?;
                Ok((call, c.weight, PyBytes::new(py, &c.watch)))
            };
            let choices = set.choices().iter().map(choice).collect::<PyResult<Vec<_>>>()?;
            choices.into_pyobject(py)?.into_any()
        }
    })
}

/// Entries of tables as they were at a time: taken quickly, so that packets need not wait until Python has them.
pub struct Rows {
    program: Arc<Program>,
    now: u64,
    entries: Vec<(TableId, Entry)>,
    next: Option<u32>,
}

impl Rows {
    /// Matches, priority, what it leads to, counter, meter, idle timeout, time since the last hit (both in picoseconds), whether
    /// it is const, note.
    fn row<'py>(&self, py: Python<'py>, id: TableId, entry: &Entry) -> PyOut<'py> {
        let keys = &self.program[id].keys;
        let found = keys.iter().zip(&entry.matches).map(|(key, m)| match_out(py, m, key.expr.width));
        let row = (
            found.collect::<PyResult<Vec<_>>>()?,
            entry.priority,
            target_out(py, &self.program, id, entry.target())?,
            (entry.packets, entry.bytes),
            rates_out(entry.meter.rates()),
            entry.idle_timeout,
            self.now.saturating_sub(entry.last_hit),
            entry.is_const,
            PyBytes::new(py, &entry.note),
        );
        Ok(row.into_pyobject(py)?.into_any())
    }

    /// Rows, and from where to go on; `None`: there are no more.
    pub fn page<'py>(self, py: Python<'py>) -> PyResult<(Vec<Bound<'py, PyAny>>, Option<u32>)> {
        let rows = self.entries.iter().map(|(id, entry)| self.row(py, *id, entry));
        Ok((rows.collect::<PyResult<_>>()?, self.next))
    }

    /// Rows with the names of their tables.
    pub fn named<'py>(self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        let row = |(id, entry): &(TableId, Entry)| {
            Ok((self.program[*id].info.name.clone(), self.row(py, *id, entry)?))
        };
        self.entries.iter().map(row).collect()
    }
}

/// Entries that are taken at a time.
const PAGE: usize = 1024;

/// Entries of a table: the one with this match and priority if there is one, or a page of all of them, from a handle on.
pub fn entries(
    pipeline: &Pipeline,
    now: u64,
    table: &str,
    from: u32,
    only: Option<(Vec<Match>, u32)>,
) -> PyResult<Rows> {
    let id = pipeline.table_id(table).map_err(refused)?;
    let state = &pipeline.state.tables[id.index()];
    let mut rows = Rows { program: pipeline.program().clone(), now, entries: Vec::new(), next: None };
    if let Some((found, priority)) = only {
        let found = keys(pipeline, id, &found).map_err(refused)?;
        let entry = state.find(&found, priority).and_then(|handle| state.entry(handle));
        rows.entries.extend(entry.map(|entry| (id, entry.clone())));
        return Ok(rows);
    }
    for (handle, entry) in state.iter_from(from) {
        if rows.entries.len() == PAGE {
            rows.next = Some(handle);
            break;
        }
        rows.entries.push((id, entry.clone()));
    }
    Ok(rows)
}

/// Entries of all tables that were not hit for as long as their timeout; of each table a page at most.
pub fn take_idle(pipeline: &mut Pipeline, now: u64) -> Rows {
    let program = pipeline.program().clone();
    let mut entries = Vec::new();
    for (index, _) in program.tables.iter().enumerate().filter(|(_, t)| t.support_timeout) {
        let state = &mut pipeline.state.tables[index];
        for handle in state.take_idle(now, PAGE) {
            entries.extend(state.entry(handle).map(|entry| (TableId(index as u32), entry.clone())));
        }
    }
    Rows { program, now, entries, next: None }
}

/// Another object whole, as it was.
pub enum Seen {
    /// What a miss leads to, and the note of it.
    Default(TableId, Target, Bytes),
    /// Number and action of each.
    Members(TableId, Vec<(u32, u32, Box<[u64]>)>),
    /// Number, members with weights and ports, and size of each.
    Groups(Vec<(u32, Vec<Share>, u32)>),
    /// Rates and bursts of each cell, committed and peak, or nothing.
    Meter(Vec<Option<MeterRates>>),
    /// Members and widths of the fields.
    ValueSet(Vec<Vec<EntryMatch>>, Vec<u32>),
    /// Number, and port and replication id of each copy.
    Multicast(Vec<(u32, Copies)>),
    /// As multicast, and queue and length of the copies.
    Clone(Vec<(u32, Copies, u32, Option<u32>)>),
}

pub fn read(pipeline: &Pipeline, what: &str, name: &str) -> PyResult<(Arc<Program>, Seen)> {
    let program = pipeline.program().clone();
    let seen = match what {
        "default" => {
            let id = pipeline.table_id(name).map_err(refused)?;
            let state = &pipeline.state.tables[id.index()];
            Seen::Default(id, state.default_target().clone(), state.default_note.clone())
        }
        "members" => {
            let profile = pipeline.profile_index(name).map_err(refused)?;
            let id = pipeline.profile_table(profile).map_err(refused)?;
            let members = pipeline.state.profiles[profile].members();
            Seen::Members(
                id,
                members.into_iter().map(|(number, action, args)| (number, action, args.into())).collect(),
            )
        }
        "groups" => {
            let profile = pipeline.profile_index(name).map_err(refused)?;
            let groups = pipeline.state.profiles[profile].groups();
            Seen::Groups(
                groups.into_iter().map(|(number, g)| (number, g.shares().to_vec(), g.max_size)).collect(),
            )
        }
        "meter" => {
            let meter = pipeline.meter_index(name).map_err(refused)?;
            Seen::Meter(pipeline.meter_cells(meter).iter().map(MeterCell::rates).collect())
        }
        "value set" => {
            let set = pipeline.value_set_index(name).map_err(refused)?;
            let widths = program.value_sets[set].fields.iter().map(|(_, width, _)| *width).collect();
            Seen::ValueSet(pipeline.state.value_sets[set].clone(), widths)
        }
        "multicast" => Seen::Multicast(
            pipeline
                .replication
                .groups()
                .map(|(group, nodes)| {
                    let copies = nodes.flat_map(|(_, rid, ports)| ports.iter().map(move |port| (*port, rid)));
                    (group, copies.collect())
                })
                .collect(),
        ),
        "clone" => {
            let copies = |id| pipeline.replication.mirror(id).iter().map(|m| (m.port, m.rid)).collect();
            let sessions = pipeline.replication.sessions();
            Seen::Clone(sessions.map(|(id, s)| (id, copies(id), s.priority, s.truncate)).collect())
        }
        other => return Err(refused(format!("there is no read `{other}`"))),
    };
    Ok((program, seen))
}

impl Seen {
    pub fn into_python<'py>(self, py: Python<'py>, program: &Program) -> PyOut<'py> {
        match self {
            Seen::Default(id, target, note) => {
                let target = target_out(py, program, id, &target)?;
                Ok((target, PyBytes::new(py, &note)).into_pyobject(py)?.into_any())
            }
            Seen::Members(id, members) => {
                let one = |(number, action, args): &(u32, u32, Box<[u64]>)| {
                    Ok((*number, call_out(py, program, id, *action, args)?))
                };
                members.iter().map(one).collect::<PyResult<Vec<_>>>()?.into_pyobject(py)
            }
            Seen::Groups(groups) => {
                let share = |s: &Share| (s.member, s.weight, PyBytes::new(py, &s.watch));
                let groups = groups.iter().map(|(number, shares, size)| {
                    (*number, shares.iter().map(share).collect::<Vec<_>>(), *size)
                });
                groups.collect::<Vec<_>>().into_pyobject(py)
            }
            Seen::Meter(cells) => cells.into_iter().map(rates_out).collect::<Vec<_>>().into_pyobject(py),
            Seen::ValueSet(members, widths) => {
                let member = |member: &Vec<EntryMatch>| {
                    let found = widths.iter().zip(member).map(|(width, m)| match_out(py, m, *width));
                    found.collect::<PyResult<Vec<_>>>()
                };
                members.iter().map(member).collect::<PyResult<Vec<_>>>()?.into_pyobject(py)
            }
            Seen::Multicast(groups) => groups.into_pyobject(py),
            Seen::Clone(sessions) => sessions.into_pyobject(py),
        }
    }
}
