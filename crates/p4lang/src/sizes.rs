//! How much memory a program asks for: the state of a switch that runs it, and the frame of one packet.
//!
//! Sizes are those of the data plane's own forms (crates/dataplane: `state`, `layout`), which does not compile with others. They are
//! checked before anything is allocated, in `u128`, so that no declared size can wrap.

use crate::diag::Diagnostic;
use crate::ir::{Action, ActionId, Info, MatchKind, Program, Table, VarHome};
use crate::limits::{Limits, beyond};
use crate::source::Span;

/// Bytes of one cell of a counter: packets and bytes.
pub const COUNTER: u128 = 16;
/// Bytes of one cell of a meter.
pub const METER: u128 = 80;
/// Bytes of an entry of a table beside its keys and data, with its counter, meter and age, and its places in the index of exact keys
/// and among the looks for timeouts. What the allocator adds is in this and the others below; `crates/dataplane/tests/memory.rs`
/// compares them with what full tables take.
const ENTRY: u128 = 352;
/// Bytes of one of its keys beside the numbers that it is matched with, and of each of these beside its words.
const KEY: u128 = 64;
const NUMBER: u128 = 24;
/// Bytes of a list of words beside them.
const LIST: u128 = 24;
/// A table with one lpm key and exact keys has a trie of all of them, the exact ones first, if they come to no more bits than this:
/// an IPv6 address and a number of 64 bits. With more of them a trie would need several kilobytes for an entry.
const TRIE_BITS: u32 = 192;
/// A node of the trie of a table with one lpm key, and a prefix in it.
const NODE: u128 = 152;
const PREFIX: u128 = 160;
/// Its place in a map, of an entry with an lpm key beside exact ones that has no trie.
const MAPPED: u128 = 128;
/// In a table with priorities: a mask, of which each entry may have one of its own, with the words of all keys several times; a bucket,
/// of which there are two for each of up to four ranges; a range in a bucket that has several.
const MASK: u128 = 448;
const MASK_WORD: u128 = 48;
const BUCKET: u128 = 288;
const RANGE: u128 = 96;
/// Ranges of one entry that are looked up by buckets; more of them are only compared.
pub const COVERED: usize = 4;
/// Bytes of a member of an action profile beside its data; of a member of a value set and of a digest beside their fields.
const MEMBER: u128 = 128;
/// Digests that wait for the controller at most.
pub const DIGESTS: u64 = 65_536;
/// Bytes of one field of a digest beside its words.
const DIGEST_FIELD: u128 = 48;
/// Unused bytes at the end of a frame.
pub const SLACK: u128 = 16;
/// Bytes of a frame that the data plane takes, and the default of [`Limits::frame_bytes`].
pub const MAX_FRAME: u64 = 1 << 16;

/// Bytes that one object of a program needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// `register`, `table` and so on.
    pub kind: &'static str,
    pub name: String,
    /// What it is made of: `4096 cells of 8 bytes`.
    pub shape: String,
    pub bytes: u128,
    pub span: Span,
}

/// What the state of a program needs, object by object. `main`: where the program's package is.
pub fn state(program: &Program, limits: &Limits, main: Span) -> Vec<Demand> {
    let mut out = Vec::new();
    let mut add = |kind, info: &Info, count: u64, what: &str, each: u128| {
        out.push(Demand {
            kind,
            name: info.name.clone(),
            shape: format!("{count} {what} of {each} bytes"),
            bytes: u128::from(count).saturating_mul(each),
            span: info.span,
        });
    };
    for register in &program.registers {
        add("register", &register.info, register.size, "cells", words(register.width));
    }
    for counter in &program.counters {
        add("counter", &counter.info, counter.size, "cells", COUNTER);
    }
    for meter in &program.meters {
        add("meter", &meter.info, meter.size, "cells", METER);
    }
    for table in &program.tables {
        add("table", &table.info, table.size, "entries", entry(program, table));
    }
    for (index, profile) in program.profiles.iter().enumerate() {
        let users = program.tables.iter().filter(|t| t.implementation.is_some_and(|p| p.index() == index));
        let data = most_data(program, users.flat_map(|t| t.actions.iter().map(|a| a.action)));
        add("action profile", &profile.info, profile.size, "members", MEMBER + data);
    }
    for set in &program.value_sets {
        let member: u128 = set.fields.iter().map(|(_, width, kind)| matched(*width, *kind)).sum();
        add("value set", &set.info, set.size, "members", MEMBER + member);
    }
    for digest in &program.digests {
        let fields: u128 = digest.fields.iter().map(|(_, width)| DIGEST_FIELD + words(*width)).sum();
        add("digest", &digest.info, DIGESTS, "waiting messages", MEMBER + fields);
    }
    out.push(Demand {
        kind: "packets of",
        name: "all queues".into(),
        shape: "`queue_bytes`".into(),
        bytes: limits.queue_bytes.into(),
        span: main,
    });
    out
}

/// Bytes of the frame that holds all of one packet's variables, at most: `Layout::new` in the data plane may place them closer.
pub fn frame(program: &Program) -> u128 {
    let mut at: u128 = 0;
    for home in [VarHome::Global, VarHome::Local] {
        at = align(at, 8);
        for var in program.vars.iter().filter(|var| var.home == home) {
            at += if var.varbit { align(4 + bytes(var.width), 8) } else { words(var.width) };
        }
    }
    at += 4 * program.vars.iter().filter(|var| matches!(var.home, VarHome::NextIndex(_))).count() as u128;
    for header in &program.headers {
        let ty = &program[header.ty];
        at = align(at, 8) + bytes(ty.fixed_bits) + 1;
        if let Some(field) = ty.varbit {
            at = align(at, 4) + 4 + bytes(ty.fields[field as usize].width);
        }
    }
    align(at, 8) + SLACK
}

/// Bytes that are left for what is added at run time, or what is too large. `main`: where the program's package is.
pub(crate) fn check(program: &Program, limits: &Limits, main: Span) -> Result<u64, Box<Diagnostic>> {
    let frame = frame(program);
    if frame > u128::from(limits.frame_bytes) {
        return Err(Box::new(too_large_frame(program, frame, limits, main)));
    }
    let mut demands = state(program, limits, main);
    let sum = demands.iter().fold(0u128, |sum, demand| sum.saturating_add(demand.bytes));
    if let Ok(sum) = u64::try_from(sum)
        && sum <= limits.state_bytes
    {
        return Ok(limits.state_bytes - sum);
    }
    demands.sort_by_key(|demand| std::cmp::Reverse(demand.bytes));
    let first = &demands[0];
    let mut found = beyond("state-limit", "state_bytes", limits.state_bytes, first.span);
    found.message = format!(
        "the program's state needs {sum} bytes, more than {}: the {} `{}` alone {} ({})",
        limits.state_bytes, first.kind, first.name, first.bytes, first.shape
    );
    found.label = format!("{} bytes", first.bytes);
    for demand in demands.iter().skip(1).take(4).filter(|demand| demand.bytes * 100 > sum) {
        found.related.push((
            demand.span,
            format!("the {} `{}` needs {} bytes ({})", demand.kind, demand.name, demand.bytes, demand.shape),
        ));
    }
    Err(Box::new(found))
}

fn too_large_frame(program: &Program, frame: u128, limits: &Limits, main: Span) -> Diagnostic {
    let mut found = beyond("frame-limit", "frame_bytes", limits.frame_bytes, main);
    let widest = program.vars.iter().max_by_key(|var| var.width);
    let widest =
        widest.map_or(String::new(), |var| format!("; the widest is `{}`, {} bits", var.name, var.width));
    found.message = format!(
        "a packet's headers, metadata and variables need {frame} bytes, more than {}{widest}",
        limits.frame_bytes
    );
    found
}

fn most_data(program: &Program, actions: impl Iterator<Item = ActionId>) -> u128 {
    let data =
        |action: &Action| -> u128 { action.params.iter().map(|param| words(program[param.var].width)).sum() };
    8 + actions.map(|action| data(&program[action])).max().unwrap_or(0)
}

/// Bytes of an entry of a table, and of what its index has for it.
fn entry(program: &Program, table: &Table) -> u128 {
    let keys: u128 = table.keys.iter().map(|key| matched(key.expr.width, key.kind)).sum();
    let key_words: u128 = table.keys.iter().map(|key| words(key.expr.width)).sum();
    // As the control plane gave them, and in the row that a lookup reads.
    let data = 2 * most_data(program, table.actions.iter().map(|a| a.action)) + LIST;
    let of = |kind| table.keys.iter().filter(|key| key.kind == kind).count();
    let (exact, lpm) = (of(MatchKind::Exact), of(MatchKind::Lpm));
    let index = if let Some(width) = trie_width(&table.kinds()) {
        let size = u128::from(table.size).max(1);
        PREFIX + NODE.saturating_mul(nodes(width, size)).div_ceil(size)
    } else if lpm <= 1 && exact + lpm == table.keys.len() {
        key_words + MAPPED * lpm as u128
    } else {
        let ranges = of(MatchKind::Range);
        let several = if ranges > 1 { RANGE * ranges as u128 } else { 0 };
        MASK + key_words / 8 * MASK_WORD + (BUCKET + several) * (1 << ranges.min(COVERED))
    };
    ENTRY + keys + data + index
}

/// Bits of the trie of a table with keys of these kinds and widths: of an lpm key, and of exact ones beside it. `None`: it has none.
pub fn trie_width(keys: &[(MatchKind, u32)]) -> Option<u32> {
    let of = |kind| keys.iter().filter(|key| key.0 == kind).count();
    if of(MatchKind::Lpm) != 1 || of(MatchKind::Exact) + 1 != keys.len() {
        return None;
    }
    let width = keys.iter().fold(0u32, |sum, key| sum.saturating_add(key.1));
    (keys.len() == 1 || width <= TRIE_BITS).then_some(width)
}

/// Nodes that a trie of one byte a level has for so many prefixes of values of one width at most.
pub fn nodes(width: u32, prefixes: u128) -> u128 {
    let level = |level: u32| 256u128.checked_pow(level).unwrap_or(prefixes).min(prefixes);
    (0..width.div_ceil(8)).map(level).sum()
}

/// What one key of one entry is matched with: a value, and for some kinds a mask or bound.
fn matched(width: u32, kind: MatchKind) -> u128 {
    let numbers = if matches!(kind, MatchKind::Ternary | MatchKind::Range) { 2 } else { 1 };
    KEY + numbers * (NUMBER + words(width))
}

fn bytes(bits: u32) -> u128 {
    u128::from(bits.div_ceil(8))
}

/// Bytes of the 64-bit words that hold a value.
fn words(bits: u32) -> u128 {
    u128::from(bits.div_ceil(64)) * 8
}

fn align(at: u128, to: u128) -> u128 {
    at.div_ceil(to) * to
}
