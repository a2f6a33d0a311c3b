//! The architecture's externs.

use num_bigint::BigUint;
use num_traits::{One, Zero};
use p4lang::ir::{Expr, ExprKind, ExternCall, HashAlgorithm, MeterUnit, Place};

use super::eval::signed;
use super::{Flow, Run, small};
use crate::context::DropReason;
use crate::cost;
use crate::state::DigestMessage;
use crate::state::words::{limbs, number};
use crate::trace::Event;

/// Bits put one after the other; the last byte is padded with zeros.
#[derive(Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    /// Bits used in the last byte, 0 if it is full.
    used: u32,
}

impl Bits {
    /// The low `width` bits of a value.
    pub(super) fn push(&mut self, value: &BigUint, width: u32) {
        for bit in (0..width).rev() {
            self.push_bit(value.bit(u64::from(bit)));
        }
    }

    /// The first `bits` bits of left-aligned bytes.
    pub(super) fn push_bytes(&mut self, bytes: &[u8], bits: u32) {
        for bit in 0..bits {
            self.push_bit(bytes[(bit / 8) as usize] & (0x80 >> (bit % 8)) != 0);
        }
    }

    fn push_bit(&mut self, bit: bool) {
        if self.used == 0 {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (7 - self.used);
        }
        self.used = (self.used + 1) % 8;
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Run<'_, '_> {
    /// The hash of a data list, with the payload behind it if asked for.
    pub(super) fn hash(&mut self, algorithm: HashAlgorithm, data: &[Expr], payload: bool) -> u64 {
        let mut bits = Bits::default();
        for item in data {
            match &item.kind {
                ExprKind::Read(place) if self.is_varbit(place) => {
                    if let Some(slot) = self.slot(place) {
                        let (length, bytes) = slot.varbit(self.ctx.frame);
                        bits.push_bytes(bytes, length);
                    }
                }
                _ => bits.push(&self.eval(item), item.width),
            }
        }
        let mut bytes = bits.into_bytes();
        if payload {
            bytes.extend_from_slice(self.ctx.payload());
        }
        let rng = &mut *self.ctx.rng;
        self.ctx.state.hashes.sum(algorithm, &bytes, || rng.next_u64())
    }

    fn charge_payload(&mut self, algorithm: HashAlgorithm, payload: bool) -> Result<(), DropReason> {
        let bytes = self.ctx.payload().len();
        if payload { self.ctx.charge(cost::payload(algorithm, bytes)) } else { Ok(()) }
    }

    fn is_varbit(&self, place: &Place) -> bool {
        let (Place::Var(var) | Place::Elem { var, .. }) = place;
        self.program[*var].varbit
    }

    fn width(&self, place: &Place) -> u32 {
        let (Place::Var(var) | Place::Elem { var, .. }) = place;
        self.program[*var].width
    }

    /// Stores a number in as many of its low bits as there is room for.
    fn store(&mut self, dst: &Place, value: u64) {
        let mask = (BigUint::one() << self.width(dst)) - 1u8;
        self.write(dst, &(BigUint::from(value) & mask));
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
        self.trace(|_| Event::Extern { call: text() });
    }

    pub(super) fn extern_call(&mut self, call: &ExternCall) -> Flow {
        let program = self.program;
        match call {
            ExternCall::CounterCount { counter, index } => {
                let index = self.index(index);
                let bytes = self.ctx.wire_len;
                if let Some(cell) = cell(&mut self.ctx.state.counters[counter.index()], index) {
                    cell.packets = cell.packets.wrapping_add(1);
                    cell.bytes = cell.bytes.wrapping_add(bytes);
                }
                self.note(|| format!("count {}[{index}]", program[*counter].info.name));
            }
            ExternCall::MeterExecute { meter, index, dst } => {
                let index = self.index(index);
                let (now, bytes) = (self.ctx.now, self.ctx.wire_len);
                let amount = if program[*meter].unit == MeterUnit::Bytes { bytes } else { 1 };
                let color =
                    cell(&mut self.ctx.state.meters[meter.index()], index).map(|c| c.execute(now, amount));
                self.store(dst, color.map_or(0, |c| c as u64));
                self.note(|| format!("meter {}[{index}] is {color:?}", program[*meter].info.name));
            }
            ExternCall::RegisterRead { register, index, dst } => {
                let index = self.index(index);
                let cells = self.ctx.state.registers.get(register.index());
                let value =
                    usize::try_from(index).ok().and_then(|i| cells.cell(i)).map_or(BigUint::zero(), number);
                self.write(dst, &value);
                self.note(|| format!("read {}[{index}] = {value:#x}", program[*register].info.name));
            }
            ExternCall::RegisterWrite { register, index, value } => {
                let index = self.index(index);
                let value = self.eval(value);
                let mut words = Vec::new();
                limbs(&value, program[*register].width, &mut words);
                let cells = &mut self.ctx.state.registers;
                let cell = usize::try_from(index).ok().and_then(|i| cells.cell_mut(register.index(), i));
                if let Some(cell) = cell {
                    cell.copy_from_slice(&words);
                }
                self.note(|| format!("write {}[{index}] = {value:#x}", program[*register].info.name));
            }
            ExternCall::Random { dst, lo, hi } => {
                let (lo, hi) = (self.index(lo), self.index(hi));
                let value = self.ctx.rng.between(lo, hi);
                self.store(dst, value);
                self.note(|| format!("random {lo:#x}..{hi:#x} = {value:#x}"));
            }
            ExternCall::Hash { dst, algorithm, base, data, max } => {
                // The remainder is the whole hash's; only what is stored is cut to the result's width.
                let hash = BigUint::from(self.hash(*algorithm, data, false));
                let (base, limit) = (self.eval(base), self.eval(max));
                let value = if limit.is_zero() { base } else { base + hash % limit };
                let value = value & ((BigUint::one() << self.width(dst)) - 1u8);
                self.write(dst, &value);
                self.note(|| format!("hash {algorithm:?} = {value:#x}"));
            }
            ExternCall::VerifyChecksum { flag, cond, data, checksum, algorithm, payload } => {
                if self.holds(cond) {
                    if let Err(reason) = self.charge_payload(*algorithm, *payload) {
                        return Flow::Drop(reason);
                    }
                    let sum = BigUint::from(self.hash(*algorithm, data, *payload));
                    let sum = sum & ((BigUint::one() << checksum.width) - 1u8);
                    let good = sum == self.eval(checksum);
                    if !good && let Some(flag) = flag {
                        self.layout.set_u64(self.ctx.frame, *flag, 1);
                    }
                    self.note(|| format!("checksum is {}", if good { "right" } else { "wrong" }));
                }
            }
            ExternCall::UpdateChecksum { cond, data, dst, algorithm, payload } => {
                if self.holds(cond) {
                    if let Err(reason) = self.charge_payload(*algorithm, *payload) {
                        return Flow::Drop(reason);
                    }
                    let sum = self.hash(*algorithm, data, *payload);
                    self.store(dst, sum);
                    self.note(|| format!("checksum = {sum:#x}"));
                }
            }
            ExternCall::Digest { digest, receiver, fields } => {
                let message = DigestMessage {
                    digest: *digest,
                    receiver: self.eval(receiver),
                    fields: fields.iter().map(|f| self.eval(f)).collect(),
                };
                self.note(|| format!("digest {} {:x?}", program[*digest].info.name, message.fields));
                self.ctx.state.push_digest(message);
            }
            ExternCall::Clone { kind, session, field_list } => {
                let session = self.index(session) as u32;
                self.ctx.requests.clone = Some((*kind, session, *field_list));
                self.note(|| format!("clone {kind:?} to session {session}"));
            }
            ExternCall::Resubmit { field_list } => {
                self.ctx.requests.resubmit = Some(*field_list);
                self.note(|| "resubmit".into());
            }
            ExternCall::Recirculate { field_list } => {
                self.ctx.requests.recirculate = Some(*field_list);
                self.note(|| "recirculate".into());
            }
            ExternCall::Truncate { bytes } => {
                let bytes = small(&self.eval(bytes)).min(u64::from(u32::MAX)) as u32;
                self.ctx.requests.truncate = Some(bytes);
                self.note(|| format!("truncate to {bytes} bytes"));
            }
            // Numbers of any width take long to write down; nobody reads them without a trace.
            ExternCall::LogMsg { format, args } if self.ctx.trace.is_some() => {
                let mut text = format.clone();
                for (arg, is_signed) in args {
                    let value = self.eval(arg);
                    let value = if *is_signed { signed(&value, arg.width) } else { value.into() };
                    text = text.replacen("{}", &value.to_string(), 1);
                }
                self.note(|| format!("log: {text}"));
            }
            ExternCall::LogMsg { .. } => {}
            ExternCall::Assert { cond, text, .. } => {
                if !self.holds(cond) {
                    self.note(|| format!("failed: {text}"));
                    return Flow::Drop(DropReason::Assertion);
                }
            }
            ExternCall::Assume { cond, text, .. } => {
                if !self.holds(cond) {
                    self.note(|| format!("failed: {text}"));
                    return Flow::Drop(DropReason::Assumption);
                }
            }
        }
        Flow::Next
    }
}

fn cell<T>(cells: &mut [T], index: u64) -> Option<&mut T> {
    cells.get_mut(usize::try_from(index).ok()?)
}
