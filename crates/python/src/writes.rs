//! What a control plane that speaks in messages writes: many writes in one call, each with an answer of its own. Values are
//! bytes, the most significant first, without leading zeros.
//!
//! Writes are read from Python before anything is done, so that they can be done without the interpreter's lock.

use dataplane::control::{ControlError, Extras, Kind};
use dataplane::pipeline::Pipeline;
use dataplane::replication::Session;
use dataplane::state::CounterCell;
use dataplane::state::meter::MeterRates;
use dataplane::state::profile::{ActionSet, Choice, Share};
use dataplane::state::table::Target;
use num_bigint::BigUint;
use p4lang::ir::{EntryMatch, MatchKind, TableId};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::control::refused;

pub type Bytes = Vec<u8>;

/// One key: a value, or a value with a mask, a prefix length or an upper end; nothing matches anything.
pub type Match = Option<Found>;

#[derive(FromPyObject)]
pub enum Found {
    One(Bytes),
    Two(Bytes, Bytes),
}

/// An action by name with its values.
type Call = (String, Vec<Bytes>);

/// What an entry leads to.
#[derive(FromPyObject)]
enum Leads {
    Number(String, u32),
    Action(String, Vec<Bytes>),
    /// Actions with weights and ports that they depend on.
    Set(Vec<(Call, u32, Bytes)>),
}

/// Direct counter, direct meter (committed rate and burst, peak rate and burst; empty: none), idle timeout in picoseconds, note;
/// what is `None` stays.
type ExtrasSpec = (Option<(u64, u64)>, Option<Vec<u64>>, Option<u64>, Option<Bytes>);

/// Port and replication id.
pub type Copies = Vec<(u32, u32)>;

enum Op {
    EntryAdd(String, Vec<Match>, u32, Leads, ExtrasSpec),
    EntryModify(String, Vec<Match>, u32, Option<Leads>, ExtrasSpec),
    EntryDelete(String, Vec<Match>, u32),
    Default(String, Option<Call>, Bytes),
    Member(bool, String, u32, Call),
    MemberDelete(String, u32),
    Group(bool, String, u32, Vec<(u32, u32, Bytes)>, u32),
    GroupDelete(String, u32),
    Counter(String, Option<usize>, u64, u64),
    Meter(String, Option<usize>, Vec<u64>),
    Register(String, Option<usize>, Bytes),
    ValueSet(String, Vec<Vec<Match>>),
    Multicast(bool, u32, Copies),
    MulticastDelete(u32),
    Clone(bool, u32, Copies, u32, Option<u32>),
    CloneDelete(u32),
}

/// Writes to be done.
pub struct Writes(Vec<Op>);

impl<'py> FromPyObject<'_, 'py> for Writes {
    type Error = PyErr;

    fn extract(list: Borrowed<'_, 'py, PyAny>) -> PyResult<Writes> {
        list.try_iter()?.map(|item| op(item?.cast::<PyTuple>()?)).collect::<PyResult<_>>().map(Writes)
    }
}

/// A write: its name, and what it needs.
fn op(words: &Bound<'_, PyTuple>) -> PyResult<Op> {
    fn at<'a, 'py, T: FromPyObjectOwned<'py>>(words: &'a Bound<'py, PyTuple>, index: usize) -> PyResult<T> {
        words.get_item(index)?.extract::<T>().map_err(Into::into)
    }
    let w = words;
    let name: String = at(w, 0)?;
    Ok(match name.as_str() {
        "entry_add" => Op::EntryAdd(at(w, 1)?, at(w, 2)?, at(w, 3)?, at(w, 4)?, at(w, 5)?),
        "entry_modify" => Op::EntryModify(at(w, 1)?, at(w, 2)?, at(w, 3)?, at(w, 4)?, at(w, 5)?),
        "entry_delete" => Op::EntryDelete(at(w, 1)?, at(w, 2)?, at(w, 3)?),
        "default" => Op::Default(at(w, 1)?, at(w, 2)?, at(w, 3)?),
        "member_add" => Op::Member(true, at(w, 1)?, at(w, 2)?, at(w, 3)?),
        "member_modify" => Op::Member(false, at(w, 1)?, at(w, 2)?, at(w, 3)?),
        "member_delete" => Op::MemberDelete(at(w, 1)?, at(w, 2)?),
        "group_add" => Op::Group(true, at(w, 1)?, at(w, 2)?, at(w, 3)?, at(w, 4)?),
        "group_modify" => Op::Group(false, at(w, 1)?, at(w, 2)?, at(w, 3)?, at(w, 4)?),
        "group_delete" => Op::GroupDelete(at(w, 1)?, at(w, 2)?),
        "counter" => Op::Counter(at(w, 1)?, at(w, 2)?, at(w, 3)?, at(w, 4)?),
        "meter" => Op::Meter(at(w, 1)?, at(w, 2)?, at(w, 3)?),
        "register" => Op::Register(at(w, 1)?, at(w, 2)?, at(w, 3)?),
        "value_set" => Op::ValueSet(at(w, 1)?, at(w, 2)?),
        "multicast_add" => Op::Multicast(true, at(w, 1)?, at(w, 2)?),
        "multicast_modify" => Op::Multicast(false, at(w, 1)?, at(w, 2)?),
        "multicast_delete" => Op::MulticastDelete(at(w, 1)?),
        "clone_add" => Op::Clone(true, at(w, 1)?, at(w, 2)?, at(w, 3)?, at(w, 4)?),
        "clone_modify" => Op::Clone(false, at(w, 1)?, at(w, 2)?, at(w, 3)?, at(w, 4)?),
        "clone_delete" => Op::CloneDelete(at(w, 1)?),
        other => return Err(refused(format!("there is no write `{other}`"))),
    })
}

type Done = Result<(), ControlError>;

/// What came of a write: `None`, or the kind of mistake and what would be right.
pub type Answer = Option<(&'static str, String)>;

/// Does all writes in order, whatever comes of each.
pub fn write(pipeline: &mut Pipeline, now: u64, writes: Writes) -> Vec<Answer> {
    let one = |op| apply(pipeline, now, op).err().map(|ControlError(why, kind)| (kind_name(kind), why));
    writes.0.into_iter().map(one).collect()
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Invalid => "invalid",
        Kind::OutOfRange => "out of range",
        Kind::NotFound => "not found",
        Kind::Exists => "exists",
        Kind::Full => "full",
        Kind::Denied => "denied",
        Kind::InUse => "in use",
    }
}

fn no<T>(kind: Kind, why: impl Into<String>) -> Result<T, ControlError> {
    Err(ControlError(why.into(), kind))
}

fn numbers(values: &[Bytes]) -> Vec<BigUint> {
    values.iter().map(|value| BigUint::from_bytes_be(value)).collect()
}

fn apply(pipeline: &mut Pipeline, now: u64, op: Op) -> Done {
    match op {
        Op::EntryAdd(table, found, priority, leads, extras) => {
            let id = pipeline.table_id(&table)?;
            let (found, target) = (keys(pipeline, id, &found)?, target(pipeline, id, leads)?);
            pipeline.entry_add(id, found, priority, target, extras_of(extras)?, now).map(|_| ())
        }
        Op::EntryModify(table, found, priority, leads, extras) => {
            let id = pipeline.table_id(&table)?;
            let handle = pipeline.table_find(id, &keys(pipeline, id, &found)?, priority)?;
            let target = leads.map(|leads| target(pipeline, id, leads)).transpose()?;
            pipeline.entry_modify(id, handle, target, extras_of(extras)?, now)
        }
        Op::EntryDelete(table, found, priority) => {
            let id = pipeline.table_id(&table)?;
            let handle = pipeline.table_find(id, &keys(pipeline, id, &found)?, priority)?;
            pipeline.table_delete(id, handle)
        }
        Op::Default(table, call, note) => set_default(pipeline, &table, call, note),
        Op::Member(new, profile, number, (action, values)) => {
            let profile = pipeline.profile_index(&profile)?;
            let values = numbers(&values);
            if new {
                pipeline.member_add(profile, Some(number), &action, &values).map(|_| ())
            } else {
                pipeline.member_modify(profile, number, &action, &values)
            }
        }
        Op::MemberDelete(profile, number) => {
            let profile = pipeline.profile_index(&profile)?;
            pipeline.member_delete(profile, number)
        }
        Op::Group(new, profile, number, shares, max_size) => {
            let profile = pipeline.profile_index(&profile)?;
            let share = |(member, weight, watch)| Share { member, weight, watch };
            pipeline.group_set(profile, number, new, shares.into_iter().map(share).collect(), max_size)
        }
        Op::GroupDelete(profile, number) => {
            let profile = pipeline.profile_index(&profile)?;
            pipeline.group_delete(profile, number)
        }
        Op::Counter(name, index, packets, bytes) => {
            let counter = pipeline.counter_index(&name)?;
            pipeline.counter_write(counter, index, CounterCell { packets, bytes })
        }
        Op::Meter(name, index, rates) => {
            let meter = pipeline.meter_index(&name)?;
            pipeline.meter_write(meter, index, meter_rates(&rates)?, now)
        }
        Op::Register(name, index, value) => {
            let register = pipeline.register_index(&name)?;
            pipeline.register_write(register, index, &BigUint::from_bytes_be(&value))
        }
        Op::ValueSet(name, members) => {
            let set = pipeline.value_set_index(&name)?;
            let fields = pipeline.program().value_sets[set].fields.clone();
            let kinds = || fields.iter().map(|(_, width, kind)| (*kind, *width));
            let members = members.iter().map(|member| matches(kinds(), fields.len(), member));
            let members = members.collect::<Result<_, _>>()?;
            pipeline.value_set_write(set, members)
        }
        Op::Multicast(new, group, copies) => {
            exists("multicast group", group, new, has_group(pipeline, group))?;
            crate::control::multicast_set(pipeline, group, &copies);
            Ok(())
        }
        Op::MulticastDelete(group) => {
            exists("multicast group", group, false, has_group(pipeline, group))?;
            crate::control::multicast_delete(pipeline, group);
            Ok(())
        }
        Op::Clone(new, id, copies, priority, truncate) => {
            exists("clone session", id, new, pipeline.replication.session(id).is_some())?;
            let copies = copies.into_iter().map(|(port, rid)| (rid, port)).collect();
            pipeline
                .replication
                .set_session(id, Session { copies, priority, truncate, ..Session::default() });
            Ok(())
        }
        Op::CloneDelete(id) => exists("clone session", id, false, pipeline.replication.remove_session(id)),
    }
}

fn has_group(pipeline: &Pipeline, group: u32) -> bool {
    pipeline.replication.groups().any(|(known, _)| known == group)
}

fn exists(what: &str, number: u32, new: bool, there: bool) -> Done {
    match (new, there) {
        (true, true) => no(Kind::Exists, format!("there is a {what} {number} already")),
        (false, false) => no(Kind::NotFound, format!("there is no {what} {number}")),
        _ => Ok(()),
    }
}

fn set_default(pipeline: &mut Pipeline, table: &str, call: Option<Call>, note: Bytes) -> Done {
    let id = pipeline.table_id(table)?;
    let declared = &pipeline.program()[id];
    if declared.implementation.is_some() && call.is_some() {
        return no(
            Kind::Invalid,
            format!("table `{table}` has an action profile: its default stays as it is"),
        );
    }
    match call {
        Some((action, values)) => {
            let action = pipeline.action_index(id, &action)?;
            let target = pipeline.action_target(id, action, &numbers(&values))?;
            pipeline.table_set_default(id, target)?;
        }
        None if declared.const_default => {
            return no(Kind::Denied, format!("the default action of table `{table}` is const"));
        }
        None => pipeline.state.tables[id.index()].reset_default(),
    }
    pipeline.state.tables[id.index()].default_note = note;
    Ok(())
}

pub fn keys(pipeline: &Pipeline, id: TableId, found: &[Match]) -> Result<Vec<EntryMatch>, ControlError> {
    let keys = &pipeline.program()[id].keys;
    matches(keys.iter().map(|key| (key.kind, key.expr.width)), keys.len(), found)
}

fn matches(
    kinds: impl Iterator<Item = (MatchKind, u32)>,
    count: usize,
    found: &[Match],
) -> Result<Vec<EntryMatch>, ControlError> {
    if count != found.len() {
        return no(Kind::Invalid, format!("there are {count} keys, not {}", found.len()));
    }
    kinds.zip(found).map(|((kind, width), found)| one_match(kind, width, found)).collect()
}

fn one_match(kind: MatchKind, width: u32, found: &Match) -> Result<EntryMatch, ControlError> {
    let number = |bytes: &Bytes| BigUint::from_bytes_be(bytes);
    let zero = BigUint::default;
    Ok(match (kind, found) {
        (MatchKind::Exact, Some(Found::One(value))) => EntryMatch::Exact(number(value)),
        (MatchKind::Optional, Some(Found::One(value))) => EntryMatch::Optional(Some(number(value))),
        (MatchKind::Optional, None) => EntryMatch::Optional(None),
        (MatchKind::Lpm, Some(Found::Two(value, length))) => {
            // Longer than any key; what is too long for this one is refused where the entry is checked.
            let prefix_len = u32::try_from(number(length)).unwrap_or(u32::MAX);
            EntryMatch::Lpm { value: number(value), prefix_len }
        }
        (MatchKind::Lpm, None) => EntryMatch::Lpm { value: zero(), prefix_len: 0 },
        (MatchKind::Ternary, Some(Found::Two(value, mask))) => {
            EntryMatch::Ternary { value: number(value), mask: number(mask) }
        }
        (MatchKind::Ternary, None) => EntryMatch::Ternary { value: zero(), mask: zero() },
        (MatchKind::Range, Some(Found::Two(lo, hi))) => EntryMatch::Range { lo: number(lo), hi: number(hi) },
        (MatchKind::Range, None) => EntryMatch::Range { lo: zero(), hi: (BigUint::from(1u8) << width) - 1u8 },
        _ => return no(Kind::Invalid, format!("this is no match of kind {kind:?}")),
    })
}

fn target(pipeline: &Pipeline, id: TableId, leads: Leads) -> Result<Target, ControlError> {
    let action = |name: &str, values: &[Bytes]| {
        let index = pipeline.action_index(id, name)?;
        pipeline.action_target(id, index, &numbers(values))
    };
    match leads {
        Leads::Number(what, number) if what == "group" => Ok(Target::Group(number)),
        Leads::Number(_, number) => Ok(Target::Member(number)),
        Leads::Action(name, values) => action(&name, &values),
        Leads::Set(set) => {
            let mut choices = Vec::new();
            for ((name, values), weight, watch) in set {
                if let Target::Action { action, args } = action(&name, &values)? {
                    choices.push(Choice { action, args, weight, watch });
                }
            }
            // Weights are looked at before a set is made of them: it has each action as often as its weight.
            pipeline.check_choices(id, &choices)?;
            Ok(Target::Set(Box::new(ActionSet::new(choices))))
        }
    }
}

fn extras_of((counter, meter, idle_timeout, note): ExtrasSpec) -> Result<Extras, ControlError> {
    let meter = meter.map(|rates| meter_rates(&rates)).transpose()?;
    Ok(Extras { counter, meter, idle_timeout, note })
}

/// Rates a second; thousandths inside.
fn meter_rates(spec: &[u64]) -> Result<Option<MeterRates>, ControlError> {
    let &[committed_rate, committed_burst, peak_rate, peak_burst] = spec else { return Ok(None) };
    let inside = |rate: u64| match rate.checked_mul(1000) {
        Some(rate) => Ok(rate),
        None => no(Kind::OutOfRange, format!("a rate of {rate} is more than a meter can count")),
    };
    let (committed_rate, peak_rate) = (inside(committed_rate)?, inside(peak_rate)?);
    Ok(Some(MeterRates { committed_rate, committed_burst, peak_rate, peak_burst }))
}
