//! Data lists: the concatenation of expressions that hashes and checksums run over.
//!
//! The sum of RFC 1071 over a fixed list is computed in place, without putting the list together: it is a sum modulo
//! 2^16 - 1, where 2^16 counts as 1, so each item counts as its value shifted to its place within a 16-bit word, and fields
//! that lie next to each other in a header are added up as words of memory. A CRC of a short list runs over registers. Everything
//! else is put together in a buffer and handed to a helper.

use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, Value};
use p4lang::ir::{Expr, ExprKind, HashAlgorithm, Place, VarHome, VarId};

use super::function::{Gen, Limbs, Region};
use super::packet;
use super::written::copied;
use super::{helpers, services};
use crate::hash::{AT_ONCE, Crc, CrcParameters};
use crate::layout::Slot;
use crate::refused::MAX_STACK;

/// Bits of a list up to which a CRC is computed in place, some 30 instructions for each 64.
const MOST_IN_PLACE: u64 = 512;

/// A data list in memory: address and length in bits.
pub(crate) struct Data {
    pub at: Value,
    pub bits: Value,
}

/// A part of a data list that is a run of whole bytes in the frame.
struct Run {
    region: Region,
    offset: u32,
    bytes: u32,
    /// Where its header begins, and the bytes of that.
    header: (u32, u32),
}

impl Gen<'_, '_> {
    fn is_varbit<'e>(&self, item: &'e Expr) -> Option<&'e Place> {
        match &item.kind {
            ExprKind::Read(place @ (Place::Var(var) | Place::Elem { var, .. }))
                if self.program[*var].varbit =>
            {
                Some(place)
            }
            _ => None,
        }
    }

    /// An item of a list that keeps its items apart; a varbit as a number.
    pub fn item(&mut self, item: &Expr) -> Limbs {
        let Some(place) = self.is_varbit(item) else {
            return self.limbs(item);
        };
        let count = item.width.div_ceil(64);
        let (varbit, width) = self.varbit(place);
        if width != item.width {
            // An element that there is not.
            return self.zero_limbs(item.width);
        }
        let slot = self.stack(u64::from(count) * 8);
        let at = self.stack_addr(slot);
        let max = self.iconst(u64::from(width));
        self.call(packet::varbit_value as *const u8, &[at, varbit, max], false);
        self.load_limbs(Region::Scratch, at, 0, count)
    }

    /// Puts a data list together, padded with zero bits to whole bytes.
    pub fn data(&mut self, items: &[Expr]) -> Data {
        let most = bits_of(items);
        let slot = self.stack(most.div_ceil(8) + 8);
        let at = self.stack_addr(slot);
        if self.stack_used > MAX_STACK {
            // The function is not finished.
            let bits = self.iconst(0);
            return Data { at, bits };
        }
        let (most, bytes) = (most as u32, most.div_ceil(8) as u32);
        if items.iter().any(|item| self.is_varbit(item).is_some()) {
            return self.data_with_varbits(items, at, bytes);
        }
        // Who reads other sizes than were written waits for the writes.
        for (k, word) in self.words(items).into_iter().enumerate() {
            self.store(Region::Scratch, word, at, 8 * k as i32);
        }
        let bits = self.iconst(u64::from(most));
        Data { at, bits }
    }

    /// A data list without varbits as words of 64 bits, as they are read from memory; the last is filled up with zeros.
    fn words(&mut self, items: &[Expr]) -> Vec<Value> {
        let values: Vec<Limbs> = items.iter().map(|item| self.limbs(item)).collect();
        let mut words = vec![None; bits_of(items).div_ceil(64) as usize];
        let mut bit = 0;
        for (item, value) in items.iter().zip(&values) {
            bit += item.width;
            for (k, limb) in value.iter().enumerate() {
                let end = bit - 64 * k as u32;
                let start = end.saturating_sub(64).max(bit - item.width);
                for word in start / 64..end.div_ceil(64) {
                    let behind = 64 * (word + 1);
                    let part = if behind >= end {
                        self.shl_const(*limb, behind - end)
                    } else {
                        self.shr_const(*limb, end - behind)
                    };
                    let word = &mut words[word as usize];
                    *word = Some(match *word {
                        Some(before) => self.b.ins().bor(before, part),
                        None => part,
                    });
                }
            }
        }
        words.into_iter().flatten().map(|word| self.b.ins().bswap(word)).collect()
    }

    /// As [`Gen::data`] if the length is only known at run time.
    fn data_with_varbits(&mut self, items: &[Expr], at: Value, bytes: u32) -> Data {
        let len = self.iconst(u64::from(bytes));
        self.call(helpers::zero as *const u8, &[at, len], false);
        let mut bit = self.iconst(0);
        for item in items {
            bit = match self.is_varbit(item) {
                Some(place) => {
                    let (varbit, width) = self.varbit(place);
                    let max = self.iconst(u64::from(width.min(item.width)));
                    self.call_value(packet::append_varbit as *const u8, &[at, bit, varbit, max])
                }
                None => {
                    let value = self.limbs(item);
                    let value = self.spill(&value);
                    let width = self.iconst(u64::from(item.width));
                    self.call_value(packet::append as *const u8, &[at, bit, value, width])
                }
            };
        }
        Data { at, bits: bit }
    }

    /// The checksum of RFC 1071 over a list of fixed length (and the packet's payload), 16 bits.
    pub fn csum16(&mut self, items: &[Expr], payload: bool) -> Value {
        let bits = bits_of(items);
        let varbits = items.iter().any(|item| self.is_varbit(item).is_some());
        // Places in the list are 32 bits wide below.
        let long = bits > MAX_STACK * 8;
        if varbits || long || payload && !bits.is_multiple_of(8) {
            return self.sum_of_list(HashAlgorithm::Csum16, items, payload);
        }
        let mut natural: Option<Value> = None;
        let mut swapped: Option<Value> = None;
        let mut bit = 0;
        let mut rest = items;
        while let Some(item) = rest.first() {
            if bit % 16 == 0
                && let Some((run, count)) = self.run(rest)
            {
                self.add_run(&mut swapped, &run);
                bit += run.bytes * 8;
                rest = &rest[count..];
                continue;
            }
            bit += item.width;
            let up = bit.next_multiple_of(16) - bit;
            let value = self.limbs(item);
            let left = item.width + up;
            let value = if up == 0 { value } else { self.shl_limbs(&value, up, left.div_ceil(64)) };
            for (k, limb) in value.iter().enumerate() {
                self.add_halves(&mut natural, *limb, (left - 64 * k as u32).min(64));
            }
            rest = &rest[1..];
        }
        if payload {
            let ctx = self.ctx;
            let odd = self.iconst(u64::from(bit / 8 % 2));
            self.tell_work();
            let sum = self.call_value(services::payload_sum as *const u8, &[ctx, odd]);
            self.unless_exhausted();
            self.add(&mut natural, sum);
        }
        let sum = self.word_sum(natural, swapped);
        self.b.ins().bxor_imm_u(sum, 0xffff)
    }

    fn add(&mut self, sum: &mut Option<Value>, value: Value) {
        *sum = Some(match *sum {
            Some(sum) => self.b.ins().iadd(sum, value),
            None => value,
        });
    }

    /// Adds 32 bits at a time, so that the sum cannot overflow.
    fn add_halves(&mut self, sum: &mut Option<Value>, value: Value, width: u32) {
        if width <= 48 {
            return self.add(sum, value);
        }
        let low = self.and_const(value, 0xffff_ffff);
        let high = self.shr_const(value, 32);
        self.add(sum, low);
        self.add(sum, high);
    }

    /// The 16 bits that a sum of words comes to, and a sum of words with their bytes exchanged, as which they lie in memory.
    fn word_sum(&mut self, natural: Option<Value>, swapped: Option<Value>) -> Value {
        let Some(swapped) = swapped else {
            return match natural {
                Some(sum) => self.fold(sum),
                None => self.iconst(0),
            };
        };
        let sum = match natural {
            Some(natural) => {
                // As 2^16 counts as 1, 2^8 exchanges a word's bytes.
                let natural = if self.bits(natural) > 48 { self.fold_to_32(natural) } else { natural };
                let natural = self.shl_const(natural, 8);
                self.b.ins().iadd(swapped, natural)
            }
            None => swapped,
        };
        let sum = self.fold(sum);
        let sum = self.narrow_to(sum, 2);
        let sum = self.b.ins().bswap(sum);
        self.extend(sum)
    }

    /// Down to 16 bits, the carries added in. Zero only if the sum is.
    fn fold(&mut self, sum: Value) -> Value {
        if self.bits(sum) <= 16 {
            return sum;
        }
        let sum = if self.bits(sum) > 32 { self.fold_to_32(sum) } else { sum };
        // Both halves of what a number and the same with its halves exchanged add up to are the sum of the halves. The upper one has
        // the carry of the lower one in it, as it should.
        let sum = self.narrow_to(sum, 4);
        let exchanged = self.b.ins().rotl_imm_u(sum, 16);
        let sum = self.b.ins().iadd(sum, exchanged);
        let sum = self.b.ins().ushr_imm_u(sum, 16);
        self.extend(sum)
    }

    /// Down to 32 bits, in the same way.
    fn fold_to_32(&mut self, sum: Value) -> Value {
        let exchanged = self.b.ins().rotl_imm_u(sum, 32);
        let sum = self.b.ins().iadd(sum, exchanged);
        self.shr_const(sum, 32)
    }

    /// The longest run of an even number of whole bytes at the start of a list, and the number of items in it.
    fn run(&self, items: &[Expr]) -> Option<(Run, usize)> {
        let mut best = None;
        let mut found: Option<(Region, u32, u32)> = None;
        for (index, item) in items.iter().enumerate() {
            let ExprKind::Read(Place::Var(var)) = &item.kind else {
                break;
            };
            let Slot::Field { base, bit, width } = self.layout.slot(*var) else {
                break;
            };
            // What was assigned is better read as it was written.
            if self.written.contains(var) {
                break;
            }
            let region = self.region_of_var(*var);
            let from = base * 8 + bit;
            let (start, end) = match found {
                None if from % 8 == 0 => (from, from + width),
                Some((in_region, start, end)) if in_region == region && end == from => (start, end + width),
                _ => break,
            };
            found = Some((region, start, end));
            if (end - start) % 16 == 0 {
                let header = (base, self.bytes_of_header(*var));
                let run = Run { region, offset: start / 8, bytes: (end - start) / 8, header };
                best = Some((run, index + 1));
            }
        }
        best
    }

    /// Packed bytes of the header that a field is of.
    fn bytes_of_header(&self, field: VarId) -> u32 {
        match self.program[field].home {
            VarHome::Field { header, .. } => self.layout.header_slot(header).len,
            _ => 0,
        }
    }

    /// Adds words as they lie in memory.
    fn add_run(&mut self, sum: &mut Option<Value>, run: &Run) {
        let (base, len) = run.header;
        let mut done = 0;
        while done < run.bytes {
            // Not beyond what the parser has copied at once: such a load would wait for both stores.
            let together = copied(len, run.offset + done - base);
            let bytes = if run.bytes - done >= 4 && together >= 4 { 4 } else { 2 };
            let at = self.frame;
            let word = self.load(super::function::int(bytes), run.region, at, (run.offset + done) as i32);
            let word = self.extend(word);
            self.add(sum, word);
            done += bytes as u32;
        }
    }

    /// The hash or checksum of a list that is put together first.
    pub fn sum_of_list(&mut self, algorithm: HashAlgorithm, items: &[Expr], payload: bool) -> Value {
        let fixed = !payload && items.iter().all(|item| self.is_varbit(item).is_none());
        if let Some(crc) = Crc::standard(algorithm)
            && fixed
            && bits_of(items) <= MOST_IN_PLACE
        {
            return self.crc(crc, items);
        }
        let data = self.data(items);
        let ctx = self.ctx;
        let algorithm = self.iconst(algorithm as u64);
        let rest = self.iconst(u64::from(payload));
        self.tell_work();
        let sum = self.call_value(services::hash as *const u8, &[ctx, algorithm, data.at, data.bits, rest]);
        if payload {
            self.unless_exhausted();
        }
        sum
    }

    /// As [`Crc::sum`], of a list without varbits, with its loops unrolled.
    fn crc(&mut self, crc: &'static Crc, items: &[Expr]) -> Value {
        let CrcParameters { width, initial, final_xor, .. } = crc.parameters();
        // A table for each byte of a word: of as many steps as bytes follow it.
        let address = self.address(crc.steps());
        let tables = self.load_fixed(I64, Region::State, address, 0);
        let words = self.words(items);
        let mut left = bits_of(items).div_ceil(8) as usize;
        // Reflected, as it is throughout.
        let mut remainder = self.iconst(u64::from(initial.reverse_bits() >> (32 - width)));
        for word in words {
            let data = self.b.ins().bxor(word, remainder);
            let bytes = left.min(AT_ONCE);
            let mut sum = match bytes {
                ..4 => Some(self.shr_const(remainder, 8 * bytes as u32)),
                _ => None,
            };
            for byte in 0..bytes {
                let stepped = self.step(tables, bytes - 1 - byte, data, 8 * byte as u32);
                sum = Some(match sum {
                    Some(sum) => self.b.ins().bxor(sum, stepped),
                    None => stepped,
                });
            }
            remainder = sum.unwrap_or(remainder);
            left -= bytes;
        }
        let sum = self.b.ins().bxor_imm_u(remainder, i64::from(final_xor));
        self.limited(sum, width)
    }

    /// The entry of so many more steps for the byte at a bit.
    fn step(&mut self, tables: Value, steps: usize, data: Value, bit: u32) -> Value {
        let byte = self.shr_const(data, bit);
        let byte = self.and_const(byte, 0xff);
        let offset = self.shl_const(byte, 2);
        let at = self.b.ins().iadd(tables, offset);
        let entry = self.load_fixed(I32, Region::State, at, (steps * size_of::<[u32; 256]>()) as i32);
        self.b.ins().uextend(I64, entry)
    }
}

/// Bits of a list, of varbits as many as they may have.
fn bits_of(items: &[Expr]) -> u64 {
    items.iter().map(|item| u64::from(item.width)).sum()
}
