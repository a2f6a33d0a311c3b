//! Parsers: states, extraction, selection (P4_16 section 13).

use num_bigint::BigUint;
use num_traits::Zero;
use p4lang::ir::{
    Expr, HeaderRef, Match, PARSER_BUDGET, Parser, Place, SelectCase, StateRef, Transition, ValueSetId, VarId,
};

use super::{Flow, Run};
use crate::context::DropReason;
use crate::cost::value_set;
use crate::state::words::{limbs, number};
use crate::trace::{Event, hex};

impl Run<'_, '_> {
    /// Runs a parser; gives the error code, 0 for none.
    ///
    /// `costs`: of transitions to its states, where they are charged.
    pub(super) fn parser(&mut self, parser: &Parser, costs: &[u64]) -> Result<u32, DropReason> {
        self.trace(|_| Event::Block { name: parser.name.clone() });
        let mut at = parser.start;
        let mut budget = PARSER_BUDGET;
        loop {
            let state = match at {
                StateRef::Accept | StateRef::Reject => return Ok(0),
                StateRef::State(index) => &parser.states[index as usize],
            };
            if !state.name.is_empty() {
                self.trace(|_| Event::State { name: state.name.clone() });
            }
            let error = match self.block(&state.body) {
                Flow::Error(code) => Some(code),
                Flow::Drop(reason) => return Err(reason),
                _ => match self.transition(parser, &state.next) {
                    Ok(next) => {
                        at = next;
                        None
                    }
                    Err(Flow::Drop(reason)) => return Err(reason),
                    Err(Flow::Error(code)) => Some(code),
                    // A transition ends in no other way.
                    Err(_) => None,
                },
            };
            let error = error.or_else(|| {
                if budget == 0 {
                    return Some(self.error_code("ParserTimeout"));
                }
                budget -= 1;
                None
            });
            if let Some(code) = error {
                self.trace(|r| Event::ParserError {
                    error: r.program.errors.get(code as usize).cloned().unwrap_or_default(),
                });
                return Ok(code);
            }
            if let StateRef::State(index) = at
                && let Some(cost) = costs.get(index as usize)
            {
                self.ctx.charge(*cost)?;
            }
        }
    }

    /// Code of an error of core.p4.
    fn error_code(&self, name: &str) -> u32 {
        self.program.errors.iter().position(|e| e == name).unwrap_or(0) as u32
    }

    fn fail(&self, name: &str) -> Flow {
        Flow::Error(self.error_code(name))
    }

    fn transition(&mut self, parser: &Parser, transition: &Transition) -> Result<StateRef, Flow> {
        let (keys, cases) = match transition {
            Transition::Direct(next) => return Ok(*next),
            Transition::Select { keys, cases } => (keys, cases),
        };
        let values: Vec<BigUint> = keys.iter().map(|k| self.eval(k)).collect();
        let mut found = None;
        for case in cases {
            self.charge_value_sets(case)?;
            if self.case_matches(case, keys, &values) {
                found = Some(case.next);
                break;
            }
        }
        self.trace(|_| {
            let next = match found {
                Some(StateRef::Accept) => "accept".to_owned(),
                Some(StateRef::Reject) => "reject".to_owned(),
                Some(StateRef::State(index)) => parser.states[index as usize].name.clone(),
                None => "no match".to_owned(),
            };
            Event::Select { keys: values.iter().map(|v| format!("{v:#x}")).collect(), next }
        });
        found.ok_or_else(|| self.fail("NoMatch"))
    }

    /// Each value set that a case names is looked through, whatever the other keys are.
    fn charge_value_sets(&mut self, case: &SelectCase) -> Result<(), Flow> {
        for set in value_sets(case) {
            let (members, fields) = (&self.ctx.state.value_sets[set.index()], &self.program[set].fields);
            let cost = value_set(members.len(), fields.len());
            self.ctx.charge(cost).map_err(Flow::Drop)?;
        }
        Ok(())
    }

    fn case_matches(&self, case: &SelectCase, keys: &[Expr], values: &[BigUint]) -> bool {
        for ((m, key), value) in case.matches.iter().zip(keys).zip(values) {
            let holds = match m {
                Match::Any => true,
                Match::Value(e) => self.eval(e) == *value,
                Match::Mask { value: v, mask } => {
                    let mask = self.eval(mask);
                    value & &mask == self.eval(v) & &mask
                }
                Match::Range { lo, hi, signed } => {
                    let (lo, hi) = (self.eval(lo), self.eval(hi));
                    // Flipping the sign bit orders signed numbers as unsigned ones.
                    let flip = if *signed { BigUint::from(1u8) << (key.width - 1) } else { BigUint::zero() };
                    let value = value ^ &flip;
                    lo ^ &flip <= value && value <= hi ^ &flip
                }
                Match::ValueSet { .. } => true,
            };
            if !holds {
                return false;
            }
        }
        value_sets(case).into_iter().all(|set| self.in_value_set(set, case, values))
    }

    /// Whether one member of the set matches all keys that name it.
    fn in_value_set(&self, set: ValueSetId, case: &SelectCase, values: &[BigUint]) -> bool {
        let widths = &self.program[set].fields;
        self.ctx.state.value_sets[set.index()].iter().any(|member| {
            case.matches.iter().zip(values).all(|(m, value)| match m {
                Match::ValueSet { set: named, field } if *named == set => {
                    let width = widths.get(*field as usize).map_or(1, |f| f.1);
                    member.get(*field as usize).is_some_and(|m| control::matches(m, value, width))
                }
                _ => true,
            })
        })
    }

    fn available(&self) -> usize {
        (self.ctx.packet.len() * 8).saturating_sub(self.ctx.cursor)
    }

    /// `bits` bits from bit `at` of the packet, which has them.
    fn read_bits(&self, at: usize, bits: u32) -> BigUint {
        let (first, last) = (at / 8, (at + bits as usize).div_ceil(8));
        let value = BigUint::from_bytes_be(&self.ctx.packet[first..last]);
        let value = value >> (last * 8 - at - bits as usize);
        let mut words = Vec::new();
        limbs(&value, bits, &mut words);
        let mask = (BigUint::from(1u8) << bits) - 1u8;
        number(&words) & mask
    }

    pub(super) fn extract(&mut self, header: &HeaderRef, varbit_bits: Option<&Expr>) -> Flow {
        let (HeaderRef::Header(id) | HeaderRef::Elem { header: id, .. }) = header;
        let program = self.program;
        let ty = &program[program[*id].ty];
        let varbit = varbit_bits.map_or(0, |e| self.index(e));
        // In the reference switch's order: whole bytes, then what the packet has, then what the field holds.
        if ty.varbit.is_some() && !(u64::from(ty.fixed_bits) + varbit).is_multiple_of(8) {
            return self.fail("ParserInvalidArgument");
        }
        let total = ty.fixed_bits as usize + if ty.varbit.is_some() { varbit as usize } else { 0 };
        if total > self.available() {
            return self.fail("PacketTooShort");
        }
        if let Some(index) = ty.varbit
            && varbit > u64::from(ty.fields[index as usize].width)
        {
            return self.fail("HeaderTooShort");
        }
        // Before a field that the index reads is extracted.
        let element = match header {
            HeaderRef::Header(_) => None,
            HeaderRef::Elem { stack, index, .. } => Some((*stack, self.index(index))),
        };
        let valid = self.header(header);
        let mut at = self.ctx.cursor;
        let first = program[*id].first_field;
        let mut fields = Vec::new();
        for (index, field) in ty.fields.iter().enumerate() {
            let var = VarId(first.0 + index as u32);
            let slot = match element {
                None => Some(self.layout.slot(var)),
                Some((stack, index)) => self.layout.elem(stack, var, index),
            };
            if field.varbit {
                let bits = varbit as u32;
                let count = bits.div_ceil(8) as usize;
                let value = if bits == 0 { BigUint::zero() } else { self.read_bits(at, bits) };
                let aligned = (value << (count as u32 * 8 - bits)).to_bytes_be();
                let mut bytes = vec![0; count];
                let used = aligned.len().min(count);
                bytes[count - used..].copy_from_slice(&aligned[aligned.len() - used..]);
                if let Some(slot) = slot {
                    slot.set_varbit(self.ctx.frame, bits, &bytes);
                }
                at += bits as usize;
            } else {
                let value = self.read_bits(at, field.width);
                if self.ctx.trace.is_some() {
                    fields.push((field.name.clone(), format!("{value:#x}")));
                }
                if let Some(slot) = slot {
                    slot.set(self.ctx.frame, &value);
                }
                at += field.width as usize;
            }
        }
        if let Some(slot) = valid {
            slot.set_valid(self.ctx.frame, true);
        }
        let from = self.ctx.cursor;
        self.ctx.cursor = at;
        self.trace(|r| Event::Extract {
            header: program[*id].name.clone(),
            bytes: hex(&r.ctx.packet[from / 8..at.div_ceil(8)]),
            fields,
        });
        Flow::Next
    }

    pub(super) fn lookahead(&mut self, into: &[Place]) -> Flow {
        let widths: Vec<u32> = into
            .iter()
            .map(|p| {
                let (Place::Var(var) | Place::Elem { var, .. }) = p;
                self.program[*var].width
            })
            .collect();
        let total: u64 = widths.iter().map(|width| u64::from(*width)).sum();
        if total > self.available() as u64 {
            return self.fail("PacketTooShort");
        }
        let mut at = self.ctx.cursor;
        for (place, width) in into.iter().zip(widths) {
            let value = self.read_bits(at, width);
            self.write(place, &value);
            at += width as usize;
        }
        let cursor = self.ctx.cursor;
        self.trace(|r| Event::Lookahead {
            bits: total as u32,
            value: format!(
                "{:#x}",
                if total == 0 { BigUint::zero() } else { r.read_bits(cursor, total as u32) }
            ),
        });
        Flow::Next
    }

    pub(super) fn advance(&mut self, bits: &Expr) -> Flow {
        let bits = self.index(bits);
        if bits > self.available() as u64 {
            return self.fail("PacketTooShort");
        }
        self.ctx.cursor += bits as usize;
        self.trace(|_| Event::Advance { bits });
        Flow::Next
    }
}

/// The value sets that a case names, each once.
fn value_sets(case: &SelectCase) -> Vec<ValueSetId> {
    let mut sets = Vec::new();
    for matched in &case.matches {
        if let Match::ValueSet { set, .. } = matched
            && !sets.contains(set)
        {
            sets.push(*set);
        }
    }
    sets
}
