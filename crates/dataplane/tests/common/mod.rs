//! Packets and table entries made from a program, so that random tests reach its states and hit its tables.

use std::collections::VecDeque;

use dataplane::pipeline::{Output, Pipeline, QueueInfo, Received};
use dataplane::replication::Session;
use dataplane::state::meter::MeterRates;
use dataplane::state::profile::{ActionSet, Choice, Group, Share};
use dataplane::state::table::Target;
use num_bigint::BigUint;
use p4lang::ir::*;
use units::SplitMix;
use wire::packet::Written;

pub fn below(rng: &mut SplitMix, limit: usize) -> usize {
    rng.between(0, limit as u64 - 1) as usize
}

pub fn coin(rng: &mut SplitMix) -> bool {
    rng.next_u64() & 1 == 0
}

/// A number of that width; small ones, and such that have few bits set or all, are likely.
pub fn number(rng: &mut SplitMix, width: u32) -> BigUint {
    let ones = (BigUint::from(1u8) << width) - 1u8;
    let value = match below(rng, 8) {
        0 => BigUint::ZERO,
        1 => ones.clone(),
        2..=4 => BigUint::from(rng.next_u64() % 6),
        5 => BigUint::from(1u8) << (rng.next_u64() % u64::from(width)),
        _ => BigUint::new((0..width.div_ceil(32)).map(|_| rng.next_u64() as u32).collect()),
    };
    value & ones
}

fn push_bits(packet: &mut Vec<bool>, value: &BigUint, width: u32) {
    packet.extend((0..width).rev().map(|bit| value.bit(u64::from(bit))));
}

fn set_bits(packet: &mut [bool], at: usize, value: &BigUint, width: u32) {
    for bit in 0..width as usize {
        if let Some(place) = packet.get_mut(at + bit) {
            *place = value.bit(u64::from(width) - 1 - bit as u64);
        }
    }
}

/// Where the bits of an expression are in the packet, if it is a field (or part of one) that was extracted.
fn field_bits(program: &Program, found: &[(HeaderId, usize)], key: &Expr) -> Option<(usize, u32)> {
    match &key.kind {
        ExprKind::Read(Place::Var(var) | Place::Elem { var, .. }) => {
            let VarHome::Field { header, field } = program[*var].home else { return None };
            let (_, at) = found.iter().rev().find(|(known, _)| *known == header)?;
            let field = &program[program[header].ty].fields[field as usize];
            Some((at + field.bit_offset as usize, field.width))
        }
        ExprKind::Slice { base, hi, lo } => {
            let (at, width) = field_bits(program, found, base)?;
            Some((at + (width - 1 - hi) as usize, hi - lo + 1))
        }
        _ => None,
    }
}

/// A packet that takes one of the parser's paths, more often than not.
pub fn packet(program: &Program, rng: &mut SplitMix) -> Vec<u8> {
    let parser = &program.parsers[0];
    let mut bits = Vec::new();
    let mut found = Vec::new();
    let mut at = parser.start;
    for _ in 0..40 {
        let StateRef::State(index) = at else { break };
        let state = &parser.states[index as usize];
        extracts(program, &state.body, rng, &mut bits, &mut found);
        at = match &state.next {
            Transition::Direct(next) => *next,
            Transition::Select { keys, cases } if !cases.is_empty() => {
                let case = &cases[below(rng, cases.len())];
                for (key, matched) in keys.iter().zip(&case.matches) {
                    let Some((place, width)) = field_bits(program, &found, key) else { continue };
                    let value = match matched {
                        Match::Value(value) | Match::Mask { value, .. } | Match::Range { lo: value, .. } => {
                            value
                        }
                        Match::Any | Match::ValueSet { .. } => continue,
                    };
                    if let ExprKind::Const(value) = &value.kind {
                        set_bits(&mut bits, place, value, width);
                    }
                }
                case.next
            }
            Transition::Select { .. } => break,
        };
    }
    for _ in 0..below(rng, 40) {
        push_bits(&mut bits, &BigUint::from(rng.next_u64() as u8), 8);
    }
    let mut bytes = vec![0u8; bits.len().div_ceil(8)];
    for (at, bit) in bits.into_iter().enumerate() {
        bytes[at / 8] |= u8::from(bit) << (7 - at % 8);
    }
    match below(rng, 12) {
        0 => bytes.truncate(below(rng, bytes.len() + 1)),
        1 if !bytes.is_empty() => {
            let at = below(rng, bytes.len());
            bytes[at] ^= 1 << (rng.next_u64() % 8);
        }
        _ => {}
    }
    bytes
}

fn extracts(
    program: &Program,
    body: &[Stmt],
    rng: &mut SplitMix,
    bits: &mut Vec<bool>,
    found: &mut Vec<(HeaderId, usize)>,
) {
    for stmt in body {
        match stmt {
            Stmt::Extract {
                header: HeaderRef::Header(header) | HeaderRef::Elem { header, .. },
                varbit_bits,
            } => {
                found.push((*header, bits.len()));
                for field in &program[program[*header].ty].fields {
                    if !field.varbit {
                        push_bits(bits, &number(rng, field.width), field.width);
                    }
                }
                if varbit_bits.is_some() {
                    push_bits(bits, &number(rng, 32), 32);
                }
            }
            Stmt::If { then, .. } => extracts(program, then, rng, bits, found),
            Stmt::Labeled { body, .. } | Stmt::Loop { body, .. } => extracts(program, body, rng, bits, found),
            _ => {}
        }
    }
}

/// A random action of a table, with data.
fn target(program: &Program, table: &Table, rng: &mut SplitMix) -> Target {
    let action = below(rng, table.actions.len());
    let params = &program[table.actions[action].action].params;
    let mut args = Vec::new();
    for param in params {
        let width = program[param.var].width;
        let value = if width == 9 { BigUint::from(rng.next_u64() % 5) } else { number(rng, width) };
        let mut digits = value.iter_u64_digits();
        args.extend((0..width.div_ceil(64)).map(|_| digits.next().unwrap_or(0)));
    }
    Target::Action { action: action as u32, args: args.into() }
}

/// The same random entries, cells of registers, members, groups, sessions and groups of ports in all of the pipelines.
pub fn fill(pipelines: &mut [Pipeline], rng: &mut SplitMix) {
    let program = pipelines[0].program().clone();
    for (id, table) in program.tables.iter().enumerate() {
        if table.const_entries || table.keys.is_empty() {
            continue;
        }
        let mut targets = Vec::new();
        if let Some(profile) = table.implementation {
            for _ in 0..4 {
                let Target::Action { action, args } = target(&program, table, rng) else { continue };
                for p in pipelines.iter_mut() {
                    p.state.profiles[profile.index()].add_member(action, args.clone());
                }
                targets.push(Target::Member(targets.len() as u32));
            }
            if program[profile].selector.is_some() {
                for p in pipelines.iter_mut() {
                    let profile = &mut p.state.profiles[profile.index()];
                    let group = profile.add_group();
                    let share = |member| Share { member, weight: 1, watch: Vec::new() };
                    profile.set_group(group, Group::new([0, 2, 3].map(share).into(), 0));
                    profile.add_group();
                }
                targets.extend([Target::Group(0), Target::Group(1)]);
                let choice = |weight: u32, rng: &mut SplitMix| match target(&program, table, rng) {
                    Target::Action { action, args } => Choice { action, args, weight, watch: Vec::new() },
                    other => panic!("{other:?} is not an action"),
                };
                let choices = vec![choice(1, rng), choice(3, rng)];
                targets.push(Target::Set(Box::new(ActionSet::new(choices))));
            }
        }
        for _ in 0..below(rng, 12) {
            let matches: Vec<EntryMatch> = table
                .keys
                .iter()
                .map(|key| {
                    let width = key.expr.width;
                    let value = number(rng, width);
                    match key.kind {
                        MatchKind::Exact => EntryMatch::Exact(value),
                        MatchKind::Lpm => {
                            let prefix_len = rng.next_u64() as u32 % (width + 1);
                            let value = (value >> (width - prefix_len)) << (width - prefix_len);
                            EntryMatch::Lpm { value, prefix_len }
                        }
                        MatchKind::Ternary => {
                            let mask = number(rng, width);
                            EntryMatch::Ternary { value: value & &mask, mask }
                        }
                        MatchKind::Range => {
                            let other = number(rng, width);
                            EntryMatch::Range { lo: value.clone().min(other.clone()), hi: value.max(other) }
                        }
                        MatchKind::Optional => EntryMatch::Optional(coin(rng).then_some(value)),
                    }
                })
                .collect();
            let target = match targets.len() {
                0 => target(&program, table, rng),
                count => targets[below(rng, count)].clone(),
            };
            let priority = 1 + rng.next_u64() as u32 % 4;
            for p in pipelines.iter_mut() {
                let table = &mut p.state.tables[id];
                if table.find(&matches, priority).is_none() {
                    table.insert(matches.clone(), priority, target.clone(), false);
                }
            }
        }
        // What stands behind a table that drops what it does not know is to be reached, too.
        if table.implementation.is_none() && !table.const_default && coin(rng) {
            let default = target(&program, table, rng);
            for p in pipelines.iter_mut() {
                p.state.tables[id].set_default(default.clone());
            }
        }
    }
    for id in 0..pipelines[0].state.registers.len() {
        let width = pipelines[0].state.registers.get(id).width();
        for index in 0..8 {
            let mut value = number(rng, width).to_u64_digits();
            value.resize(width.div_ceil(64) as usize, 0);
            for p in pipelines.iter_mut() {
                if let Some(cell) = p.state.registers.cell_mut(id, index) {
                    cell.copy_from_slice(&value);
                }
            }
        }
    }
    for (id, set) in program.value_sets.iter().enumerate() {
        for _ in 0..4 {
            let member: Vec<EntryMatch> =
                set.fields.iter().map(|(_, width, _)| EntryMatch::Exact(number(rng, *width))).collect();
            for p in pipelines.iter_mut() {
                p.state.value_sets[id].push(member.clone());
            }
        }
    }
    for p in pipelines.iter_mut() {
        for group in 1..4 {
            p.replication.create_group(group);
            let node = p.replication.create_node(group, vec![1, group + 1]);
            p.replication.associate(group, node);
        }
        for (id, session) in [(1, (Some(4), None)), (2, (None, Some(2))), (3, (Some(5), Some(1)))] {
            let truncate = if id == 1 { Some(20) } else { None };
            p.replication.set_session(
                id,
                Session { port: session.0, group: session.1, truncate, ..Session::default() },
            );
        }
        let rates = MeterRates {
            committed_rate: 2_000_000,
            committed_burst: 300,
            peak_rate: 9_000_000,
            peak_burst: 900,
        };
        for cell in p.state.meters.iter_mut().flatten().step_by(2) {
            cell.configure(Some(rates), 0);
        }
    }
}

/// Runs a packet through a switch with one queue, which it waits 5 us in, or finds empty and leaves at once; every third has
/// payload that is only counted.
pub fn queued(pipeline: &mut Pipeline, now: u64, port: u32, bytes: &[u8], at_once: bool) -> Vec<Output> {
    let zero_len = if (now / 1_000_000).is_multiple_of(3) { 100 } else { 0 };
    let packet = pipeline.packet(bytes, zero_len);
    let output = |(port, packet): (u32, Box<Written>)| Output {
        port,
        bytes: packet.bytes().to_vec(),
        zero_len: packet.zeros(),
    };
    queued_packet(pipeline, now, port, packet, at_once).into_iter().map(output).collect()
}

/// As [`queued`]; gives ports and packets as they leave.
pub fn queued_packet(
    pipeline: &mut Pipeline,
    now: u64,
    port: u32,
    packet: Box<Written>,
    at_once: bool,
) -> Vec<(u32, Box<Written>)> {
    let (mut pending, mut out) = (Vec::new(), Vec::new());
    let mut queue = VecDeque::new();
    let mut to = 0;
    let mut open = |port: u32, _: u32| {
        to = port;
        at_once
    };
    match pipeline.receive(now, port, packet, &mut pending, &mut open) {
        Received::Queue(work) => queue.push_back(work),
        Received::Out(packet) => out.push((to, packet)),
        Received::Other => {}
    }
    queue.extend(pending.drain(..));
    // As any queue it is full some time: a program that clones clones would go on for ever.
    queue.truncate(100);
    while let Some(work) = queue.pop_front() {
        let (wait, info) = match at_once {
            true => (0, QueueInfo::default()),
            false => (5_000_000, QueueInfo { enq_qdepth: 3, deq_qdepth: queue.len() as u32 }),
        };
        let port = work.port;
        out.extend(pipeline.depart(now + wait, work, info, &mut pending).map(|packet| (port, packet)));
        queue.extend(pending.drain(..));
        queue.truncate(100);
    }
    out
}
