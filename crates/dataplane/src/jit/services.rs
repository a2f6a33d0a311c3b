//! What compiled code calls in the rest of the data plane: tables, value sets, hashes, and the externs that are not compiled
//! in place.
//!
//! # Safety
//!
//! As for [`super::helpers`]; `native` is the structure that the running block was called with. Its pointers are the
//! only way to the state, the random numbers and the requests while the block runs.

use num_bigint::BigUint;
use p4lang::ir::{ExternCall, HashAlgorithm, MeterUnit, ProfileId, TableId, ValueSetId};

use super::native::{Native, Outcome, WORK_BUDGET};
use crate::cost;
use crate::state::DigestMessage;
use crate::state::table::{TableState, Target};
use crate::state::words::{number, words};

/// Takes so much of the packet's work; if that is more than there is, the packet is dropped, and its code has to see to it.
fn charge(native: &mut Native, cost: u64) -> bool {
    let left = native.work.checked_sub(cost);
    native.work = left.unwrap_or(0);
    if left.is_none() {
        native.dropped = WORK_BUDGET as u32;
    }
    left.is_some()
}

/// Counts and meters a hit of the entry of a row; gives the meter's colour.
pub unsafe extern "C" fn record(native: *mut Native, table: u64, row: *const u64) -> u64 {
    // SAFETY: see the module's comment; the row is one of the table's.
    unsafe {
        let (now, wire_len) = ((*native).picoseconds, (*native).wire_len);
        let state = (&mut *(*native).state).tables.for_packet(table as usize);
        let Some(entry) = state.handle_of(row) else { return 0 };
        state.count_hit(entry, now, wire_len);
        let Some(unit) = (&*(*native).compiled).tables[table as usize].meter else { return 0 };
        state.meter_hit(entry, now, if unit == MeterUnit::Bytes { wire_len } else { 1 }) as u64
    }
}

/// Finds the action to which a row leads by way of the table's profile. `hash` chooses among the members of a group.
pub unsafe extern "C" fn resolve(
    native: *mut Native,
    table: u64,
    row: *const u64,
    hash: u64,
    outcome: *mut Outcome,
) {
    // SAFETY: see the module's comment; the row is one of the table's, the outcome is the caller's own.
    unsafe {
        let compiled = &*(*native).compiled;
        let all = &*(*native).state;
        let declared = &compiled.program[TableId(table as u32)];
        let state = &all.tables[table as usize];
        let entry = state.handle_of(row).and_then(|handle| state.entry(handle));
        let target = entry.map_or(state.default_target(), |entry| entry.target());
        let profile = declared.implementation.map(ProfileId::index);
        let chosen = profile.and_then(|profile| all.profiles[profile].resolve(target, || hash));
        let (action, args) = chosen.unwrap_or(match state.default_target() {
            Target::Action { action, args } => (*action, &**args),
            _ => (declared.default_action.action, &[]),
        });
        let needed = compiled.tables[table as usize].action_words.get(action as usize).copied().unwrap_or(0);
        let args = if args.len() < needed { compiled.zeros.as_ptr() } else { args.as_ptr() };
        outcome.write(Outcome { args, action });
    }
}

/// The row for a key: see [`TableState::row`]. What that costs does not depend on the entries.
pub unsafe extern "C" fn row(table: *const TableState, key: *const u64, words: usize) -> *const u64 {
    // SAFETY: see the module's comment; the table is one of the state's, the key has as many words as its keys.
    unsafe { (*table).row(std::slice::from_raw_parts(key, words)).0 }
}

/// As [`row`], for a table whose entries have priorities.
pub unsafe extern "C" fn dear_row(
    native: *mut Native,
    table: *const TableState,
    key: *const u64,
    words: usize,
) -> *const u64 {
    // SAFETY: as above.
    unsafe {
        let (row, work) = (*table).row(std::slice::from_raw_parts(key, words));
        charge(&mut *native, work);
        row
    }
}

/// Whether one member of a value set matches; `key` has the words of all fields, `named` says which fields are asked for.
pub unsafe extern "C" fn value_set(native: *mut Native, set: u64, key: *const u64, named: *const u8) -> u64 {
    // SAFETY: see the module's comment; `key` has the words of all fields, `named` a byte for each.
    unsafe {
        let compiled = &*(*native).compiled;
        let state = &*(*native).state;
        let fields = &compiled.program[ValueSetId(set as u32)].fields;
        if !charge(&mut *native, cost::value_set(state.value_sets[set as usize].len(), fields.len())) {
            return 0;
        }
        let named = std::slice::from_raw_parts(named, fields.len());
        let matches = |member: &Vec<p4lang::ir::EntryMatch>| {
            let mut at = 0;
            fields.iter().enumerate().all(|(index, (_, width, _))| {
                let count = words(*width);
                let value = std::slice::from_raw_parts(key.add(at), count);
                at += count;
                named[index] == 0
                    || member.get(index).is_some_and(|m| control::matches(m, &number(value), *width))
            })
        };
        u64::from(state.value_sets[set as usize].iter().any(matches))
    }
}

fn algorithm(number: u64) -> HashAlgorithm {
    const ALL: [HashAlgorithm; 8] = [
        HashAlgorithm::Crc32,
        HashAlgorithm::Crc32Custom,
        HashAlgorithm::Crc16,
        HashAlgorithm::Crc16Custom,
        HashAlgorithm::Random,
        HashAlgorithm::Identity,
        HashAlgorithm::Csum16,
        HashAlgorithm::Xor16,
    ];
    ALL.into_iter().find(|known| *known as u64 == number).unwrap_or(HashAlgorithm::Csum16)
}

/// The hash of a data list, the payload behind it if `payload` is not 0.
pub unsafe extern "C" fn hash(
    native: *mut Native,
    kind: u64,
    data: *const u8,
    bits: u64,
    payload: u64,
) -> u64 {
    // SAFETY: see the module's comment; the list has that many bits.
    unsafe {
        let native = &mut *native;
        let data = std::slice::from_raw_parts(data, bits.div_ceil(8) as usize);
        let rng = &mut *native.rng;
        let sums = &(*native.state).hashes;
        if payload == 0 {
            return sums.sum(algorithm(kind), data, || rng.next_u64());
        }
        let packet = std::slice::from_raw_parts(native.packet, native.packet_len as usize);
        let rest = packet.get(native.cursor.div_ceil(8) as usize..).unwrap_or(&[]);
        if !charge(native, cost::payload(algorithm(kind), rest.len())) {
            return 0;
        }
        let whole = [data, rest].concat();
        sums.sum(algorithm(kind), &whole, || rng.next_u64())
    }
}

/// Sum of the payload's 16-bit words, the first byte being the second of a word if `odd` is not 0.
pub unsafe extern "C" fn payload_sum(native: *mut Native, odd: u64) -> u64 {
    // SAFETY: see the module's comment.
    unsafe {
        let native = &mut *native;
        let from = native.cursor.div_ceil(8).min(native.packet_len);
        let payload =
            std::slice::from_raw_parts(native.packet.add(from as usize), (native.packet_len - from) as usize);
        if !charge(native, cost::payload(HashAlgorithm::Csum16, payload.len())) {
            return 0;
        }
        let (first, rest) = match payload.split_first() {
            Some((first, rest)) if odd != 0 => (u64::from(*first), rest),
            _ => (0, payload),
        };
        let (pairs, last) = rest.as_chunks::<2>();
        let sum: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
        first + sum + last.first().map_or(0, |byte| u64::from(*byte) << 8)
    }
}

/// base + hash mod max where one of them is wider than 64 bits.
pub unsafe extern "C" fn hash_wide(dst: *mut u64, hash: u64, base: *const u64, max: *const u64, width: u64) {
    // SAFETY: see the module's comment; all three have the words of the width.
    unsafe {
        let count = words(width as u32);
        let base = number(std::slice::from_raw_parts(base, count));
        let max = number(std::slice::from_raw_parts(max, count));
        let value = if max == BigUint::ZERO { base } else { base + BigUint::from(hash) % max };
        let mut digits = value.iter_u64_digits();
        for word in std::slice::from_raw_parts_mut(dst, count) {
            *word = digits.next().unwrap_or(0);
        }
    }
}

/// Makes a call of which only the operands are compiled; gives what goes to its destination.
pub unsafe extern "C" fn extern_call(
    native: *mut Native,
    call: *const ExternCall,
    operands: *const u64,
) -> u64 {
    // SAFETY: see the module's comment; the call is part of the program, the operands are those the generator spills for it.
    unsafe {
        let compiled = &*(*native).compiled;
        let (now, wire_len) = ((*native).picoseconds, (*native).wire_len);
        let state = &mut *(*native).state;
        let requests = &mut *(*native).requests;
        let operand = |index: usize| operands.add(index).read();
        match &*call {
            ExternCall::MeterExecute { meter, .. } => {
                let by_bytes = compiled.program[*meter].unit == MeterUnit::Bytes;
                let amount = if by_bytes { wire_len } else { 1 };
                let cells = &mut state.meters[meter.index()];
                let cell = usize::try_from(operand(0)).ok().and_then(|index| cells.get_mut(index));
                cell.map_or(0, |cell| cell.execute(now, amount) as u64)
            }
            ExternCall::Random { .. } => (*(*native).rng).between(operand(0), operand(1)),
            ExternCall::Digest { digest, receiver, fields } => {
                let mut at = 0;
                let mut value = |width: u32| {
                    let count = words(width);
                    let value = number(std::slice::from_raw_parts(operands.add(at), count));
                    at += count;
                    value
                };
                let receiver = value(receiver.width);
                let fields = fields.iter().map(|field| value(field.width)).collect();
                state.push_digest(DigestMessage { digest: *digest, receiver, fields });
                0
            }
            ExternCall::Clone { kind, field_list, .. } => {
                (*native).requested = 1;
                requests.clone = Some((*kind, operand(0) as u32, *field_list));
                0
            }
            ExternCall::Resubmit { field_list } => {
                (*native).requested = 1;
                requests.resubmit = Some(*field_list);
                0
            }
            ExternCall::Recirculate { field_list } => {
                (*native).requested = 1;
                requests.recirculate = Some(*field_list);
                0
            }
            ExternCall::Truncate { .. } => {
                (*native).requested = 1;
                requests.truncate = Some(operand(0).min(u64::from(u32::MAX)) as u32);
                0
            }
            // Compiled in place.
            ExternCall::CounterCount { .. }
            | ExternCall::RegisterRead { .. }
            | ExternCall::RegisterWrite { .. }
            | ExternCall::Hash { .. }
            | ExternCall::VerifyChecksum { .. }
            | ExternCall::UpdateChecksum { .. }
            | ExternCall::LogMsg { .. }
            | ExternCall::Assert { .. }
            | ExternCall::Assume { .. } => 0,
        }
    }
}
