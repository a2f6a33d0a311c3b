//! What a control plane does to a pipeline, for a pipeline alone and for a switch in a network: the same functions for both.

use std::path::Path;

use commands::cli::Script;
use dataplane::pipeline::Pipeline;
use dataplane::replication;
use dataplane::state::DigestMessage;
use dataplane::state::table::{Target, action_args};
use num_bigint::BigUint;
use p4lang::ir::EntryMatch;
use pyo3::prelude::*;

use crate::TidegateError;

pub fn refused(why: impl ToString) -> PyErr {
    TidegateError::new_err(why.to_string())
}

/// Words of cells as bytes, least significant first, and how many words a cell has.
pub fn register_read(
    pipeline: &Pipeline,
    name: &str,
    start: usize,
    count: Option<usize>,
) -> PyResult<(Vec<u8>, usize)> {
    let index = pipeline.register_index(name).map_err(refused)?;
    let register = &pipeline.state.registers[index];
    let per_cell = register.words_per_cell;
    let cells = within("register", name, register.len(), start, count)?;
    let words = &register.cells[cells.start * per_cell..cells.end * per_cell];
    Ok((words.iter().flat_map(|word| word.to_le_bytes()).collect(), per_cell))
}

/// The cells from `start` on that are asked for; `None`: all of them.
fn within(
    what: &str,
    name: &str,
    len: usize,
    start: usize,
    count: Option<usize>,
) -> PyResult<std::ops::Range<usize>> {
    let end = count.map_or(Some(len), |count| start.checked_add(count));
    match end {
        Some(end) if start <= end && end <= len => Ok(start..end),
        _ => {
            let asked =
                count.map_or_else(|| format!("those from {start} on"), |c| format!("{c} from {start} on"));
            Err(refused(format!("{what} `{name}` has {len} cells; {asked} are too many")))
        }
    }
}

/// Sets cells from `start` on.
pub fn register_write(pipeline: &mut Pipeline, name: &str, start: usize, words: &[u8]) -> PyResult<()> {
    let index = pipeline.register_index(name).map_err(refused)?;
    let register = &mut pipeline.state.registers[index];
    let per_cell = register.words_per_cell;
    let words: Vec<u64> = words
        .chunks_exact(8)
        .map(|c| c.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
        .collect();
    if !words.len().is_multiple_of(per_cell) {
        return Err(refused(format!("a cell of register `{name}` has {per_cell} words of 64 bits")));
    }
    let top_bits = register.width - 64 * (per_cell as u32 - 1);
    if top_bits < 64 && words.chunks(per_cell).any(|cell| cell[per_cell - 1] >> top_bits != 0) {
        return Err(refused(format!(
            "a value does not fit in the {} bits of register `{name}`",
            register.width
        )));
    }
    let cells = within("register", name, register.len(), start, Some(words.len() / per_cell))?;
    register.cells[cells.start * per_cell..cells.end * per_cell].copy_from_slice(&words);
    Ok(())
}

/// Packets and bytes of cells of a counter, as 64-bit words.
pub fn counter_read(
    pipeline: &Pipeline,
    name: &str,
    start: usize,
    count: Option<usize>,
) -> PyResult<Vec<u8>> {
    let index = pipeline.counter_index(name).map_err(refused)?;
    let cells = &pipeline.state.counters[index];
    let asked = within("counter", name, cells.len(), start, count)?;
    Ok(cells[asked].iter().flat_map(|c| [c.packets, c.bytes]).flat_map(|word| word.to_le_bytes()).collect())
}

/// Match kind and its two numbers: value and, where there is one, prefix length, mask or upper end.
type Match = (&'static str, Option<BigUint>, Option<BigUint>);

/// What a table has: handle, matches, priority, what it leads to (an action's name, `member` or `group`), values, and the
/// direct counter's packets and bytes.
pub type Row = (u32, Vec<Match>, u32, String, Vec<BigUint>, (u64, u64));

pub fn table_entries(pipeline: &Pipeline, name: &str) -> PyResult<Vec<Row>> {
    let id = pipeline.table_id(name).map_err(refused)?;
    let program = pipeline.program();
    let found = |m: &EntryMatch| -> Match {
        match m {
            EntryMatch::Exact(v) => ("exact", Some(v.clone()), None),
            EntryMatch::Lpm { value, prefix_len } => ("lpm", Some(value.clone()), Some((*prefix_len).into())),
            EntryMatch::Ternary { value, mask } => ("ternary", Some(value.clone()), Some(mask.clone())),
            EntryMatch::Range { lo, hi } => ("range", Some(lo.clone()), Some(hi.clone())),
            EntryMatch::Optional(v) => ("optional", v.clone(), None),
        }
    };
    let row = |(handle, entry): (u32, &dataplane::state::table::Entry)| -> Row {
        let (leads, values) = match entry.target() {
            Target::Action { action, args } => {
                let action = program[id].actions[*action as usize].action;
                (program[action].info.name.clone(), action_args(program, action, args))
            }
            Target::Member(member) => ("member".to_owned(), vec![(*member).into()]),
            Target::Group(group) => ("group".to_owned(), vec![(*group).into()]),
            Target::Set(_) => ("set".to_owned(), Vec::new()),
        };
        let matches = entry.matches.iter().map(found).collect();
        (handle, matches, entry.priority, leads, values, (entry.packets, entry.bytes))
    };
    Ok(pipeline.state.tables[id.index()].iter().map(row).collect())
}

/// Name of a table, its declared size, its entries; of its direct counter, if it has one, packets and bytes of all entries.
pub type Totals = (String, u64, usize, Option<u64>, Option<u64>);

pub fn table_totals(pipeline: &Pipeline) -> Vec<Totals> {
    let program = pipeline.program();
    let tables = program.tables.iter().zip(&pipeline.state.tables);
    let totals = tables.map(|(declared, table)| {
        let (mut entries, mut packets, mut bytes) = (0, 0, 0);
        for (_, entry) in table.iter() {
            entries += 1;
            packets += entry.packets;
            bytes += entry.bytes;
        }
        let counts = declared.direct_counter.is_some();
        let counted = |sum: u64| counts.then_some(sum);
        (declared.info.name.clone(), declared.size, entries, counted(packets), counted(bytes))
    });
    totals.collect()
}

/// Runs a file of commands; gives notes on those that have no effect.
pub fn script(pipeline: &mut Pipeline, now: u64, path: &Path) -> PyResult<Vec<String>> {
    let mut notes = Vec::new();
    let script = Script::read(path).map_err(|e| refused(e.0))?;
    script.run(pipeline, now, &mut notes).map_err(|e| refused(e.0))?;
    Ok(notes)
}

/// Makes a multicast group that copies packets to these ports and replication ids, in place of what it was.
pub fn multicast_set(pipeline: &mut Pipeline, group: u32, copies: &[(u32, u32)]) {
    multicast_delete(pipeline, group);
    let replication = &mut pipeline.replication;
    replication.create_group(group);
    for (port, rid) in copies {
        let node = replication.create_node(*rid, vec![*port]);
        replication.associate(group, node);
    }
}

/// Removes a group with its nodes; nothing happens if there is none.
pub fn multicast_delete(pipeline: &mut Pipeline, group: u32) {
    let groups = pipeline.replication.groups();
    let nodes: Vec<u32> = groups
        .filter(|(known, _)| *known == group)
        .flat_map(|(_, nodes)| nodes)
        .map(|(node, ..)| node)
        .collect();
    for node in nodes {
        pipeline.replication.destroy_node(node);
    }
    pipeline.replication.destroy_group(group);
}

/// Sets a mirror session; one without port and group makes no copies.
pub fn mirror_set(
    pipeline: &mut Pipeline,
    session: u32,
    port: Option<u32>,
    group: Option<u32>,
    truncate: Option<u32>,
) {
    if port.is_none() && group.is_none() {
        pipeline.replication.remove_session(session);
    } else {
        pipeline
            .replication
            .set_session(session, replication::Session { port, group, truncate, ..Default::default() });
    }
}

/// Name of the digest, and its fields by name.
pub type Digest = (String, Vec<(String, BigUint)>);

pub fn digest(pipeline: &Pipeline, message: DigestMessage) -> Digest {
    let declared = &pipeline.program()[message.digest];
    let names = declared.fields.iter().map(|(name, _)| name.clone());
    (declared.info.name.clone(), names.zip(message.fields).collect())
}
