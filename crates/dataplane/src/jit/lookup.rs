//! Lookups: where exact keys of few words, or a prefix of at most 192 bits with exact keys beside it, lead is found in place, else by
//! one call of the table's lookup. What is found is the address of a row, see [`Rows`](crate::state::rows::Rows); the default's, if nothing matches.
//!
//! What a search reads is written by the control plane only, so not while the function runs. The state is that of the program
//! ([`crate::state::shape`]), so that each table has the kind of index and the rows that its declaration says.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::Variable;
use p4lang::ir::{MatchKind, TableId};
use p4lang::sizes::trie_width;
use smallvec::SmallVec;

use super::function::{Gen, Limbs, Region};
use super::services;
use crate::state::exact::{GROUP, Packing, ROW, TAKEN, direct, grouped, multiplier};
use crate::state::lpm::{self, DENSE, HEAD, NONE, Order, Places};
use crate::state::rows::Shape;
use crate::state::table::{Searched, TableState, prioritised};
use crate::state::{Counted, State};

/// Words of an exact key that is compared in place.
const MOST_WORDS: usize = 8;

/// What a search begins with.
struct Table {
    at: Value,
    /// Of the first row.
    rows: Value,
    searched: Searched,
    shape: Shape,
}

impl Gen<'_, '_> {
    /// The address of the row that a key leads to.
    pub fn row(&mut self, id: TableId, key: &[Value]) -> Value {
        let declared = &self.program[id];
        let ctx = self.ctx;
        let tables = self.elements(offset_of!(State, tables) + Counted::<TableState>::pointer());
        let at = self.add_const(tables, (id.index() * size_of::<TableState>()) as i64);
        let searched = Searched::new();
        let rows = self.load_fixed(I64, Region::State, at, searched.rows as i32);
        // Without a key there are no entries.
        if key.is_empty() {
            return rows;
        }
        let shape = Shape::of(self.program, declared);
        let table = Table { at, rows, searched, shape };
        if let Some(bits) = direct(declared) {
            return self.search_direct(&table, key[0], bits);
        }
        let kinds = declared.kinds();
        if let Some(width) = trie_width(&kinds)
            && width <= 64 * lpm::MOST_WORDS as u32
        {
            let parts = Order::of(&kinds).parts;
            let key = self.joined(parts.iter().rev().map(|(word, bits)| (key[*word], *bits)));
            return self.search_trie(&table, &key, width);
        }
        if shape.key <= MOST_WORDS && kinds.iter().all(|key| key.0 == MatchKind::Exact) {
            let widths: Vec<u32> = kinds.iter().map(|key| key.1).collect();
            return self.search_exact(&table, &Packing::of(&widths), key, grouped(declared.size as usize));
        }
        let words = self.iconst(key.len() as u64);
        let key = self.spill(key);
        if prioritised(declared) {
            self.tell_work();
            let row = self.call_value(services::dear_row as *const u8, &[ctx, at, key, words]);
            self.unless_exhausted();
            return row;
        }
        self.call_value(services::row as *const u8, &[at, key, words])
    }

    /// The address of a numbered row.
    fn numbered(&mut self, table: &Table, number: Value) -> Value {
        let offset = self.b.ins().imul_imm_u(number, (table.shape.stride * size_of::<u64>()) as i64);
        self.b.ins().iadd(table.rows, offset)
    }

    /// A key as rows begin with it.
    fn packed(&mut self, packing: &Packing, key: &[Value]) -> Limbs {
        if packing.bits.is_empty() {
            return key.into();
        }
        let bits = packing.bits.iter().map(|bits| u32::from(*bits));
        self.joined(key.iter().copied().zip(bits).rev())
    }

    /// The number that words of so many bits come to behind each other, the least significant ones first.
    fn joined(&mut self, parts: impl Iterator<Item = (Value, u32)>) -> Limbs {
        let mut words: [Option<Value>; lpm::MOST_WORDS] = [None; lpm::MOST_WORDS];
        let mut from = 0;
        for (value, bits) in parts {
            let (word, shift) = ((from / 64) as usize, from % 64);
            let low = self.shl_const(value, shift);
            self.or_into(&mut words[word], low);
            if shift + bits > 64 {
                let high = self.shr_const(value, 64 - shift);
                self.or_into(&mut words[word + 1], high);
            }
            from += bits;
        }
        words.into_iter().flatten().collect()
    }

    fn or_into(&mut self, word: &mut Option<Value>, value: Value) {
        *word = Some(match *word {
            Some(before) => self.b.ins().bor(before, value),
            None => value,
        });
    }

    /// See [`direct`].
    fn search_direct(&mut self, table: &Table, key: Value, bits: u32) -> Value {
        let slots = self.load_fixed(I64, Region::State, table.at, table.searched.slots as i32);
        // There is no slot beyond the last, whatever is in a variable.
        let key =
            if self.shown_bits(key) <= bits { key } else { self.b.ins().band_imm_u(key, (1 << bits) - 1) };
        let offset = self.shl_const(key, 3);
        let slot = self.b.ins().iadd(slots, offset);
        let start = self.load(I64, Region::State, slot, 0);
        let offset = self.shl_const(start, 3);
        self.b.ins().iadd(table.rows, offset)
    }

    /// See [`crate::state::exact`].
    fn search_exact(&mut self, table: &Table, packing: &Packing, unpacked: &[Value], grouped: bool) -> Value {
        let key = self.packed(packing, unpacked);
        let slots = self.load_fixed(I64, Region::State, table.at, table.searched.slots as i32);
        let shift = self.load_fixed(I64, Region::State, table.at, table.searched.shift as i32);
        let mut hash = None;
        for (word, value) in key.iter().enumerate() {
            let high = self.shr_const(*value, 32);
            let spread = self.b.ins().bxor(*value, high);
            let by = self.iconst(multiplier(word));
            let product = self.b.ins().imul(spread, by);
            hash = Some(match hash {
                Some(sum) => self.b.ins().iadd(sum, product),
                None => product,
            });
        }
        let Some(hash) = hash else { return table.rows };
        let tag = self.b.ins().band_imm_s(hash, !ROW as i64);
        let taken = self.iconst(TAKEN);
        let tag = self.b.ins().bor(tag, taken);
        let place = self.variable();
        let first = self.b.ins().ushr(hash, shift);
        let step = if grouped { GROUP } else { 1 };
        let first = if grouped { self.b.ins().band_imm_s(first, -(GROUP as i64)) } else { first };
        self.b.def_var(place, first);
        let row = self.variable();
        self.b.def_var(row, table.rows);
        let [look, same, other, next, found] = [(); 5].map(|()| self.block());
        self.jump(look);
        self.start_open(look);
        let at = self.b.use_var(place);
        let offset = self.shl_const(at, 3);
        let slot = self.b.ins().iadd(slots, offset);
        let known: Limbs = (0..step).map(|n| self.load(I64, Region::State, slot, 8 * n as i32)).collect();
        // The row's start, if the slot or one of the group has the tag.
        let untagged: Limbs = known.iter().map(|slot| self.b.ins().bxor(*slot, tag)).collect();
        let start = untagged.into_iter().reduce(|a, b| self.least(a, b)).expect("a step is one slot or more");
        let high = self.shr_const(start, 32);
        self.branch(high, other, same);
        self.start(same);
        let offset = self.shl_const(start, 3);
        let candidate = self.b.ins().iadd(table.rows, offset);
        let mut differs = None;
        for (word, value) in key.iter().enumerate() {
            let known = self.load(I64, Region::State, candidate, 8 * word as i32);
            let bits = self.b.ins().bxor(known, *value);
            self.or_into(&mut differs, bits);
        }
        let Some(differs) = differs else { return table.rows };
        self.b.def_var(row, candidate);
        let alike = if grouped { self.block() } else { next };
        self.branch(differs, alike, found);
        if grouped {
            // Two keys with one tag.
            self.start(alike);
            self.b.set_cold_block(alike);
            let words = self.iconst(unpacked.len() as u64);
            let key = self.spill(unpacked);
            let searched = self.call_value(services::row as *const u8, &[table.at, key, words]);
            self.b.def_var(row, searched);
            self.jump(found);
        }
        self.start(other);
        self.b.def_var(row, table.rows);
        self.branch(known[step - 1], next, found);
        self.start(next);
        let behind = self.add_const(at, step as i64);
        let ones = self.iconst(u64::MAX);
        let mask = self.b.ins().ushr(ones, shift);
        let behind = self.b.ins().band(behind, mask);
        self.b.def_var(place, behind);
        self.jump(look);
        self.seal(look);
        self.start(found);
        self.b.use_var(row)
    }

    fn least(&mut self, a: Value, b: Value) -> Value {
        let less = self.b.ins().icmp(IntCC::UnsignedLessThan, a, b);
        self.b.ins().select(less, a, b)
    }

    fn define(&mut self, variables: &[Variable], values: &[Value]) {
        for (variable, value) in variables.iter().zip(values) {
            self.b.def_var(*variable, *value);
        }
    }

    /// Words, the most significant first, shifted to the left by fewer than 64 bits.
    fn moved(
        &mut self,
        words: &[Value],
        by: impl Fn(&mut Self, Value) -> Value,
        behind: impl Fn(&mut Self, Value) -> Value,
    ) -> Limbs {
        let mut out = Limbs::new();
        for (at, word) in words.iter().enumerate() {
            let mut moved = by(self, *word);
            if let Some(next) = words.get(at + 1) {
                let low = behind(self, *next);
                moved = self.b.ins().bor(moved, low);
            }
            out.push(moved);
        }
        out
    }

    /// See [`crate::state::lpm`]. The key's least significant word is the first.
    fn search_trie(&mut self, table: &Table, key: &[Value], width: u32) -> Value {
        let Places { words, root, way_bytes, way_mask, way_levels, way_at, way_best } = table.searched.trie;
        let field = |g: &mut Self, offset: usize| {
            let value =
                g.load_fixed(cranelift_codegen::ir::types::I32, Region::State, table.at, offset as i32);
            g.extend(value)
        };
        let words = self.load_fixed(I64, Region::State, table.at, words as i32);
        let [left, node, best] = [(); 3].map(|()| self.variable());
        let rest: SmallVec<[Variable; lpm::MOST_WORDS]> = key.iter().map(|_| self.variable()).collect();
        let unused = 64 * key.len() as u32 - width;
        let key: Limbs = key.iter().rev().copied().collect();
        let all = match unused {
            0 => key,
            _ => self.moved(
                &key,
                |g, word| g.shl_const(word, unused),
                |g, next| g.shr_const(next, 64 - unused),
            ),
        };
        let levels = self.iconst(u64::from(width.div_ceil(8)));
        let none = self.iconst(u64::from(NONE));
        let root = field(self, root);
        for (variable, value) in [(left, levels), (node, root), (best, none)] {
            self.b.def_var(variable, value);
        }
        self.define(&rest, &all);
        let bytes = self.load_fixed(I64, Region::State, table.at, way_bytes as i32);
        let mask = self.load_fixed(I64, Region::State, table.at, way_mask as i32);
        let beginning = self.b.ins().band(all[0], mask);
        let on_way = self.b.ins().icmp(IntCC::Equal, beginning, bytes);
        self.when(on_way, |g| {
            let gone = field(g, way_levels);
            let behind = g.b.ins().isub(levels, gone);
            let bits = g.shl_const(gone, 3);
            // Of at most 56.
            let moved = g.moved(
                &all,
                |g, word| g.b.ins().ishl(word, bits),
                |g, next| {
                    let most = g.iconst(63);
                    let back = g.b.ins().isub(most, bits);
                    let next = g.shr_const(next, 1);
                    g.b.ins().ushr(next, back)
                },
            );
            g.define(&rest, &moved);
            let (at, value) = (field(g, way_at), field(g, way_best));
            for (variable, value) in [(left, behind), (node, at), (best, value)] {
                g.b.def_var(variable, value);
            }
        });
        let [look, level, dense, counted, next, done] = [(); 6].map(|()| self.block());
        let run = self.variable();
        self.jump(look);
        self.start_open(look);
        let more = self.b.use_var(left);
        self.branch(more, level, done);
        self.start(level);
        let at = self.b.use_var(node);
        let key: Limbs = rest.iter().map(|word| self.b.use_var(*word)).collect();
        let byte = self.shr_const(key[0], 56);
        let plain = self.b.ins().band_imm_u(at, i64::from(DENSE));
        self.branch(plain, dense, counted);
        self.start(dense);
        let at_node = self.and_const(at, u64::from(!DENSE));
        let place = self.b.ins().iadd(at_node, byte);
        let place = self.shl_const(place, 3);
        let place = self.b.ins().iadd(words, place);
        let found = self.load(I64, Region::State, place, 0);
        self.b.def_var(run, found);
        self.jump(next);
        self.start(counted);
        let at_node = self.shl_const(at, 3);
        let at_node = self.b.ins().iadd(words, at_node);
        let which = self.shr_const(key[0], 62);
        let place = self.shl_const(which, 3);
        let place = self.b.ins().iadd(at_node, place);
        let starts = self.load(I64, Region::State, place, 0);
        // Up to and including the byte: by 63 less its low six bits.
        let by = self.b.ins().bnot(byte);
        let upto = self.b.ins().ishl(starts, by);
        let count = self.b.ins().popcnt(upto);
        let before = self.load(I64, Region::State, at_node, 4 * 8);
        let by = self.shl_const(which, 4);
        let before = self.b.ins().ushr(before, by);
        let before = self.and_const(before, 0xffff);
        let number = self.b.ins().iadd(before, count);
        let place = self.shl_const(number, 3);
        let place = self.b.ins().iadd(at_node, place);
        let found = self.load(I64, Region::State, place, 8 * (HEAD as i32 - 1));
        self.b.def_var(run, found);
        self.jump(next);
        self.start(next);
        let found = self.b.use_var(run);
        let value = self.and_const(found, u64::from(u32::MAX));
        let nothing = self.b.ins().icmp(IntCC::Equal, value, none);
        let before = self.b.use_var(best);
        let value = self.b.ins().select(nothing, before, value);
        let child = self.shr_const(found, 32);
        let key = self.moved(&key, |g, word| g.shl_const(word, 8), |g, next| g.shr_const(next, 56));
        self.define(&rest, &key);
        let fewer = self.add_const(more, -1);
        // Behind the last node nothing is found.
        let fewer = self.b.ins().select(child, fewer, child);
        for (variable, value) in [(left, fewer), (node, child), (best, value)] {
            self.b.def_var(variable, value);
        }
        self.jump(look);
        self.seal(look);
        self.start(done);
        let handle = self.b.use_var(best);
        // One behind the last number is 0, the default's.
        let number = self.add_const(handle, 1);
        let number = self.and_const(number, u64::from(u32::MAX));
        self.numbered(table, number)
    }
}
