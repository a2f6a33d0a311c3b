//! What compiled code calls in the rest of the data plane, called from here as it would, with keys, data, headers and outcomes in
//! memory that has exactly the sizes promised: under Miri (`make miri`), and as a test of the results.
//!
//! The rule that each test keeps: the structure is filled in by [`Compiled::enter`] and used while that runs; a row's address is one
//! that a lookup in this table has given since the table was last written; keys have the words of all fields; an operand list has
//! the words of all operands; a header's place has all bytes of its slot.

use std::mem::MaybeUninit;
use std::sync::{Arc, LazyLock};

use num_bigint::BigUint;
use p4lang::ir::*;
use units::SplitMix;

use super::super::compile::Compiled;
use super::super::flat::{Arrival, Bytes, Passage};
use super::super::native::{Native, Outcome};
use super::super::packet::{emit, extract};
use super::super::services::{dear_row, extern_call, hash, record, resolve, row, value_set};
use super::claims::common;
use super::memory::{any_varbit, bits, bytes};
use crate::context::Requests;
use crate::cost;
use crate::layout::Layout;
use crate::pipeline::Pipeline;
use crate::state::State;
use crate::state::rows::Shape;
use crate::state::table::Target;
use crate::state::words::{number, words};

/// Fewer under Miri, which is some thousand times slower.
const CASES: usize = if cfg!(miri) { 8 } else { 1000 };

static PROGRAM: LazyLock<Arc<Program>> = LazyLock::new(|| {
    let options = p4lang::Options::default();
    let compiled = p4lang::compile_str("services.p4", include_str!("services.p4"), None, &options);
    Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)))
});

/// The program with a state that has entries, and no code.
struct Bench {
    compiled: Compiled,
    state: State,
    rng: SplitMix,
}

impl Bench {
    fn new(seed: u64) -> Bench {
        let mut rng = SplitMix::new(seed);
        let mut pipelines = [Pipeline::interpreted(PROGRAM.clone(), seed).expect("it is interpreted")];
        common::fill(&mut pipelines, &mut rng);
        let [pipeline] = pipelines;
        let compiled = Compiled::without_code(PROGRAM.clone(), Arc::new(Layout::new(&PROGRAM).unwrap()));
        Bench { compiled, state: pipeline.state.clone(), rng }
    }

    /// Runs `blocks` on a packet as code would be run; gives what it gives, what was requested and the output.
    fn enter<T>(
        &mut self,
        (packet, cursor, work): (&[u8], usize, u64),
        blocks: impl FnOnce(*mut Native) -> T,
    ) -> (T, Requests, Vec<u8>) {
        let mut frame = vec![0; self.compiled.layout.frame_len];
        let (mut out, mut requests) = (Vec::new(), Requests::default());
        let on = Passage {
            frame: &mut frame,
            cursor,
            state: &mut self.state,
            rng: &mut SplitMix::new(1),
            requests: &mut requests,
            now: 5_000_000,
            wire_len: 100,
            work,
        };
        let at = Arrival::default();
        let given =
            self.compiled
                .enter((on, &mut out), Bytes::Read(packet), at, std::ptr::null(), |native| blocks(native));
        (given, requests, out)
    }

    fn table(&self, name: &str) -> usize {
        PROGRAM.tables.iter().position(|table| table.info.name.ends_with(name)).expect("the program has it")
    }

    /// Words of a key of the table; every other one is of an entry that there is, if there is any.
    fn key(&mut self, table: usize) -> Box<[u64]> {
        let widths: Vec<u32> = PROGRAM.tables[table].keys.iter().map(|key| key.expr.width).collect();
        let entries: Vec<_> =
            self.state.tables[table].iter().map(|(_, entry)| entry.matches.clone()).collect();
        let taken = (common::coin(&mut self.rng) && !entries.is_empty())
            .then(|| entries[common::below(&mut self.rng, entries.len())].clone());
        let mut key = Vec::new();
        for (field, width) in widths.into_iter().enumerate() {
            let value = match taken.as_ref().map(|matches| &matches[field]) {
                Some(EntryMatch::Exact(value) | EntryMatch::Lpm { value, .. }) => value.clone(),
                Some(EntryMatch::Ternary { value, .. } | EntryMatch::Range { lo: value, .. }) => {
                    value.clone()
                }
                _ => common::number(&mut self.rng, width),
            };
            push(&mut key, &value, width);
        }
        key.into()
    }
}

fn push(list: &mut Vec<u64>, value: &BigUint, width: u32) {
    let end = list.len() + words(width);
    list.extend(value.iter_u64_digits());
    list.resize(end, 0);
}

const PLENTY: (&[u8], usize, u64) = (&[], 0, 1 << 30);

/// Words from an address on.
///
/// # Safety
///
/// There are so many, and nobody writes to them.
unsafe fn data(at: *const u64, count: usize) -> Vec<u64> {
    // SAFETY: as the caller promises.
    (0..count).map(|word| unsafe { at.add(word).read() }).collect()
}

#[test]
fn lookups_give_rows_that_code_can_read() {
    let mut bench = Bench::new(1);
    let mut hits = 0;
    for case in 0..CASES {
        let table = case % PROGRAM.tables.len();
        let key = bench.key(table);
        let expected = bench.state.tables[table].lookup(&key);
        let (entry, target, cost) = (expected.entry, expected.target.clone(), expected.work);
        let dear = bench.state.tables[table].prioritised();
        let at: *const _ = &bench.state.tables[table];
        let ((found, left), ..) = bench.enter(PLENTY, |native| {
            // SAFETY: the table is the state's, and the key has the words of its keys.
            let found = unsafe {
                match dear {
                    true => dear_row(native, at, key.as_ptr(), key.len()),
                    false => row(at, key.as_ptr(), key.len()),
                }
            };
            // SAFETY: the structure is there while this runs.
            (found, unsafe { (*native).work })
        });
        assert_eq!(left, PLENTY.2 - cost);
        let state = &bench.state.tables[table];
        assert_eq!(state.handle_of(found), entry);
        hits += usize::from(entry.is_some());
        let Shape { key: start, stride } = Shape::of(&PROGRAM, &PROGRAM.tables[table]);
        // SAFETY: a row of the table, which nobody has written since.
        let words = unsafe { data(found, stride) };
        if let Target::Action { action, args } = target {
            assert_eq!(words[start] as u32, action);
            assert_eq!(words[start + 1..][..args.len()], *args);
        }
    }
    assert!(hits > CASES / 5, "{hits} hits");

    // A lookup that costs more than is left.
    let table = bench.table("ordered");
    let (key, at) = (bench.key(table), &raw const bench.state.tables[table]);
    let (dropped, ..) = bench.enter((&[], 0, 0), |native| {
        // SAFETY: as above.
        unsafe {
            dear_row(native, at, key.as_ptr(), key.len());
            (*native).dropped
        }
    });
    assert_ne!(dropped, 0);
}

#[test]
fn hits_are_counted_and_metered() {
    let mut bench = Bench::new(2);
    let (mut hits, mut red) = (0, 0);
    for case in 0..CASES {
        let table = bench.table(["counted", "ordered"][case % 2]);
        let (key, state) = (bench.key(table), &mut bench.state.tables.for_packet(table));
        let found = state.row(&key).0;
        let mut expected =
            state.lookup(&key).entry.map(|handle| (handle, state.entry(handle).unwrap().clone()));
        let (colour, ..) = bench.enter(PLENTY, |native| {
            // SAFETY: a row of the table.
            unsafe { record(native, table as u64, found) }
        });
        let mut of_meter = 0;
        if let Some((handle, entry)) = &mut expected {
            hits += 1;
            let now = bench.state.tables[table].entry(*handle).unwrap();
            let counted = u64::from(PROGRAM.tables[table].direct_counter.is_some());
            assert_eq!((now.packets, now.bytes), (entry.packets + counted, entry.bytes + 100 * counted));
            if PROGRAM.tables[table].direct_meter.is_some() {
                of_meter = entry.meter.execute(5_000_000, 100) as u64;
            }
        }
        red += u64::from(of_meter > 0);
        assert_eq!(colour, of_meter);
        let rates = crate::state::meter::MeterRates {
            committed_rate: 1,
            committed_burst: 100,
            peak_rate: 1,
            peak_burst: 250,
        };
        if let Some((handle, _)) = expected
            && case < 2 * CASES / 3
            && case % 7 == 1
        {
            let entry = bench.state.tables.for_packet(table).entry_mut(handle).unwrap();
            entry.meter.configure(Some(rates), 0);
        }
    }
    assert!(hits > 0 && (cfg!(miri) || red > 0), "{hits} hits, {red} not green");
}

#[test]
fn profiles_lead_to_actions_with_as_much_data_as_code_reads() {
    let mut bench = Bench::new(3);
    let table = bench.table("chosen");
    let shape: Vec<usize> = bench.compiled.tables[table].action_words.clone();
    let mut chosen = 0;
    for _ in 0..CASES {
        let key = bench.key(table);
        let (state, chance) = (&bench.state.tables[table], bench.rng.next_u64());
        let found = state.row(&key).0;
        let target = state.lookup(&key).target.clone();
        let profile = PROGRAM.tables[table].implementation.expect("it has one").index();
        let expected = bench.state.profiles[profile].resolve(&target, || chance);
        let expected = expected.map(|(action, args)| (action, args.to_vec()));
        let mut outcome = Box::new(MaybeUninit::<Outcome>::uninit());
        let ((action, args), ..) = bench.enter(PLENTY, |native| {
            // SAFETY: a row of the table, and room for an outcome; as many words as the action has data.
            unsafe {
                resolve(native, table as u64, found, chance, outcome.as_mut_ptr());
                let Outcome { args, action } = outcome.assume_init_ref();
                (*action, data(*args, shape[*action as usize]))
            }
        });
        if let Some(expected) = expected {
            chosen += 1;
            assert_eq!((action, args), expected);
        }
    }
    assert!(chosen > 0);
}

#[test]
fn value_sets_are_searched() {
    let mut bench = Bench::new(4);
    let (mut found, widths) = (0, [65, 9]);
    for case in 0..CASES {
        let members = bench.state.value_sets[0].clone();
        let of = &members[case % members.len()];
        let values: Vec<BigUint> = widths
            .iter()
            .zip(of)
            .map(|(width, known)| match known {
                EntryMatch::Exact(value) if !bench.rng.next_u64().is_multiple_of(4) => value.clone(),
                _ => common::number(&mut bench.rng, *width),
            })
            .collect();
        let mut key = Vec::new();
        values.iter().zip(widths).for_each(|(value, width)| push(&mut key, value, width));
        let key: Box<[u64]> = key.into();
        let named: Box<[u8]> = [bench.rng.next_u64() as u8 & 1, bench.rng.next_u64() as u8 & 1].into();
        let same = |member: &Vec<EntryMatch>| {
            (0..2).all(|field| named[field] == 0 || member[field] == EntryMatch::Exact(values[field].clone()))
        };
        let expected = u64::from(members.iter().any(same));
        let price = cost::value_set(members.len(), 2);
        for (work, expected) in [(price, expected), (price - 1, 0)] {
            let ((is, dropped), ..) = bench.enter((&[], 0, work), |native| {
                // SAFETY: the key has the words of both fields, and there is a byte for each.
                unsafe { (value_set(native, 0, key.as_ptr(), named.as_ptr()), (*native).dropped) }
            });
            assert_eq!((is, dropped != 0), (expected, work < price));
        }
        found += expected;
    }
    assert!(found > 0);
}

#[test]
fn lists_and_payload_are_hashed() {
    let mut bench = Bench::new(5);
    for case in 0..CASES {
        let kind = [HashAlgorithm::Crc16, HashAlgorithm::Crc32, HashAlgorithm::Csum16, HashAlgorithm::Random];
        let kind = kind[case % 4];
        let size = bench.rng.between(0, 30) as usize;
        let list = bytes(&mut bench.rng, size).into_boxed_slice();
        let packet = bytes(&mut bench.rng, size * 2).into_boxed_slice();
        let cursor = bench.rng.between(0, packet.len() as u64 * 8) as usize;
        let with_payload = case % 3 == 0;
        let rest = &packet[cursor.div_ceil(8)..];
        let whole = if with_payload { [&list, rest].concat() } else { list.to_vec() };
        let expected = bench.state.hashes.sum(kind, &whole, || SplitMix::new(1).next_u64());
        let (sum, ..) = bench.enter((&packet, cursor, PLENTY.2), |native| {
            // SAFETY: the list has that many bits.
            unsafe {
                hash(native, kind as u64, list.as_ptr(), list.len() as u64 * 8, u64::from(with_payload))
            }
        });
        assert_eq!(sum, expected);
    }
}

fn constant(width: u32) -> Expr {
    Expr { width, kind: ExprKind::Const(BigUint::ZERO) }
}

#[test]
fn externs_take_their_operands() {
    let mut bench = Bench::new(6);
    let dst = Place::Var(VarId(0));
    let call = |bench: &mut Bench, call: ExternCall, operands: &[u64]| {
        let operands: Box<[u64]> = operands.into();
        let ((value, requested), requests, _) = bench.enter(PLENTY, |native| {
            // SAFETY: the operands are all that the call has.
            unsafe { (extern_call(native, &raw const call, operands.as_ptr()), (*native).requested) }
        });
        (value, requested, requests)
    };
    for _ in 0..CASES {
        let (low, span) = (bench.rng.next_u64() >> 2, bench.rng.next_u64() >> 2);
        let random = ExternCall::Random { dst: dst.clone(), lo: constant(64), hi: constant(64) };
        let (value, ..) = call(&mut bench, random, &[low, low + span]);
        assert_eq!(value, SplitMix::new(1).between(low, low + span));

        let index = bench.rng.between(0, 12);
        let mut cell = bench.state.meters[0].get(index as usize).cloned();
        let meter = ExternCall::MeterExecute { meter: MeterId(0), index: constant(32), dst: dst.clone() };
        let (colour, ..) = call(&mut bench, meter, &[index]);
        assert_eq!(colour, cell.as_mut().map_or(0, |cell| cell.execute(5_000_000, 100) as u64));

        let (receiver, fields) = (constant(32), vec![constant(65), constant(9), constant(130)]);
        let list = bytes(&mut bench.rng, 7).into_iter().map(u64::from).collect::<Vec<_>>();
        call(&mut bench, ExternCall::Digest { digest: DigestId(0), receiver, fields }, &list);
        let message = bench.state.digests.pop_back().expect("it was sent");
        assert_eq!(message.receiver, number(&list[..1]));
        assert_eq!(message.fields, [number(&list[1..3]), number(&list[3..4]), number(&list[4..])]);
    }
    let clone =
        ExternCall::Clone { kind: CloneKind::IngressToEgress, session: constant(32), field_list: Some(2) };
    let requests = call(&mut bench, clone, &[7]);
    assert_eq!((requests.1, requests.2.clone), (1, Some((CloneKind::IngressToEgress, 7, Some(2)))));
    let requests = call(&mut bench, ExternCall::Resubmit { field_list: None }, &[]);
    assert_eq!((requests.1, requests.2.resubmit), (1, Some(None)));
    let requests = call(&mut bench, ExternCall::Recirculate { field_list: Some(1) }, &[]);
    assert_eq!((requests.1, requests.2.recirculate), (1, Some(Some(1))));
    let requests = call(&mut bench, ExternCall::Truncate { bytes: constant(32) }, &[64]);
    assert_eq!((requests.1, requests.2.truncate), (1, Some(64)));
}

/// Headers from any bit of a packet on, to places that are as long as their slots, and from there to the output.
#[test]
fn headers_are_read_and_written_from_any_bit_on() {
    let mut bench = Bench::new(7);
    let (mut whole, mut errors) = (0, 0);
    for case in 0..2 * CASES {
        let header = HeaderId((case % PROGRAM.headers.len()) as u32);
        let ty = &PROGRAM[PROGRAM[header].ty];
        let slot = bench.compiled.layout.header_slot(header);
        let size = bench.rng.between(0, 16) as usize;
        let packet = bytes(&mut bench.rng, size).into_boxed_slice();
        let cursor = bench.rng.between(0, size as u64 * 8) as usize;
        let asked = bench.rng.between(0, 50);
        let varbit_bits = if slot.varbit.is_some() { asked } else { 0 };
        let mut place = bytes(&mut bench.rng, slot.extent as usize).into_boxed_slice();
        let before = place.clone();
        let null = case % 5 == 4;
        let to = if null { std::ptr::null_mut() } else { place.as_mut_ptr() };
        let ((code, after), _, out) = bench.enter((&packet, cursor, PLENTY.2), |native| {
            // SAFETY: the place has all bytes of the header's slot, or is none.
            unsafe {
                let code = extract(native, to, u64::from(header.0), asked);
                if code == 0 && !to.is_null() {
                    emit(native, to, u64::from(header.0));
                }
                (code, (*native).cursor as usize)
            }
        });
        let total = (u64::from(ty.fixed_bits) + varbit_bits) as usize;
        let errs = &bench.compiled.errors;
        let expected = match slot.varbit {
            Some(_) if !total.is_multiple_of(8) => errs.invalid_argument,
            _ if total > size * 8 - cursor => errs.too_short,
            Some((_, max)) if varbit_bits > u64::from(max) => errs.header_too_short,
            _ => 0,
        };
        assert_eq!(code, expected);
        if code != 0 {
            errors += 1;
            assert_eq!((after, &place), (cursor, &before), "nothing has happened");
            continue;
        }
        assert_eq!(after, cursor + total);
        if null {
            assert!(out.is_empty());
            continue;
        }
        whole += 1;
        assert_eq!(place[(slot.valid - slot.base) as usize], 1);
        assert_eq!(out.len(), total.div_ceil(8));
        let written = bits(&out);
        assert_eq!(written[..total], bits(&packet)[cursor..after]);
        assert!(written[total..].iter().all(|bit| !bit));
    }
    assert!(whole > 0 && errors > 0, "{whole} headers, {errors} errors");

    // A header whose varbit field has another length than it was read with.
    for _ in 0..CASES {
        let header = HeaderId(0);
        let slot = bench.compiled.layout.header_slot(header);
        let (offset, max) = slot.varbit.expect("it has one");
        let mut place = vec![0; slot.extent as usize].into_boxed_slice();
        let length = bench.rng.between(0, u64::from(max)) as usize;
        let varbit = any_varbit(&mut bench.rng, length, max as usize);
        let at = (offset - slot.base) as usize;
        place[at..at + varbit.len()].copy_from_slice(&varbit);
        let (_, _, out) = bench.enter(PLENTY, |native| {
            // SAFETY: as above.
            unsafe { emit(native, place.as_ptr(), u64::from(header.0)) }
        });
        let split = PROGRAM[PROGRAM[header].ty].fields[2].bit_offset as usize;
        assert_eq!(bits(&out)[split..split + length], bits(&varbit[4..])[..length]);
    }
}
