//! Registers, counters and meters.

use std::ops::Range;

use control::{ArrayOp, At, Cells, Name, Result, Words, check, fits};
use num_bigint::BigUint;
use p4lang::ir::TableId;
use units::Time;

use super::{Answer, Kind, refuse, refuse_as};
use crate::pipeline::Pipeline;
use crate::state::CounterCell;
use crate::state::meter::{MeterCell, MeterRates};
use crate::state::table::Entry;

impl Pipeline {
    /// Index of a register array.
    pub fn register_index(&self, name: &str) -> Result<usize> {
        Name::from(name).register(self.program())
    }

    /// Writes one value to cells.
    pub fn register_write(&mut self, register: usize, at: At, value: &BigUint) -> Result<()> {
        let program = self.program().clone();
        let declared = &program.registers[register];
        fits(&format!("register `{}`", declared.info.name), value, declared.width)?;
        let mut words = Vec::new();
        crate::state::words::limbs(value, declared.width, &mut words);
        let cells = &mut self.state.registers;
        let asked = span("register", &declared.info.name, cells.get(register).len(), at)?;
        let count = words.len() * asked.len();
        cells.set(register, asked.start, words.into_iter().cycle().take(count));
        Ok(())
    }

    pub fn register_read(&self, register: usize, cell: usize) -> Result<BigUint> {
        let cells = self.state.registers.get(register);
        match cells.cell(cell) {
            Some(words) => Ok(crate::state::words::number(words)),
            None => refuse_as(
                Kind::OutOfRange,
                format!(
                    "register `{}` has {} cells; {cell} is out of range",
                    self.program().registers[register].info.name,
                    cells.len()
                ),
            ),
        }
    }
}

/// The cells that are meant, of so many.
pub(super) fn span(what: &str, name: &str, len: usize, at: At) -> Result<Range<usize>> {
    match at {
        At::All => Ok(0..len),
        At::Cells { start, count } => check::range(what, name, len, start, Some(count)),
        At::Index(index) if (index as usize) < len => Ok(index as usize..index as usize + 1),
        At::Index(index) => {
            refuse_as(Kind::OutOfRange, format!("{what} `{name}` has {len} cells; {index} is out of range"))
        }
    }
}

impl Pipeline {
    pub fn counter_index(&self, name: &str) -> Result<usize> {
        let program = self.program();
        control::resolve("counter", name, &program.names.counters, program.counters.iter().map(|c| &c.info))
    }

    /// Sets cells of a counter.
    pub fn counter_write(&mut self, counter: usize, at: At, to: CounterCell) -> Result<()> {
        let program = self.program().clone();
        let cells = &mut self.state.counters[counter];
        let asked = span("counter", &program.counters[counter].info.name, cells.len(), at)?;
        cells[asked].fill(to);
        Ok(())
    }

    pub fn meter_index(&self, name: &str) -> Result<usize> {
        let program = self.program();
        control::resolve("meter", name, &program.names.meters, program.meters.iter().map(|m| &m.info))
    }

    /// Sets the rates of cells of a meter; without rates all packets are green.
    pub fn meter_write(&mut self, meter: usize, at: At, rates: Option<MeterRates>, now: u64) -> Result<()> {
        let program = self.program().clone();
        let cells = &mut self.state.meters[meter];
        let asked = span("meter", &program.meters[meter].info.name, cells.len(), at)?;
        cells[asked].iter_mut().for_each(|cell| cell.configure(rates, now));
        Ok(())
    }

    pub fn meter_cells(&self, meter: usize) -> &[MeterCell] {
        &self.state.meters[meter]
    }
}

impl Pipeline {
    pub(super) fn act_on_array(&mut self, now: Time, op: &ArrayOp) -> Result<Answer> {
        let program = self.program().clone();
        match op {
            ArrayOp::ReadRegister { register, start, count } => {
                let cells = self.state.registers.get(register.register(&program)?);
                let asked = check::range("register", register.as_str(), cells.len(), *start, *count)?;
                let words_per_cell = cells.words_per_cell() as u32;
                return Ok(Answer::Words { words: Words(cells.bytes(asked)), words_per_cell });
            }
            ArrayOp::WriteRegister { register, start, words } => {
                self.write_words(register, register.register(&program)?, *start, words)?;
            }
            ArrayOp::SetRegister { register, at, value } => {
                self.register_write(register.register(&program)?, *at, &value.number())?;
            }
            ArrayOp::ReadCounter { counter, start, count } => {
                let counts = match counter.counter(&program)? {
                    Cells::Array(index) => {
                        let cells = &self.state.counters[index];
                        let asked = check::range("counter", counter.as_str(), cells.len(), *start, *count)?;
                        cells[asked].iter().map(|c| (c.packets, c.bytes)).collect()
                    }
                    Cells::Direct(table) => {
                        let entry = self.direct("direct counter", counter, table, *start, *count)?;
                        vec![(entry.packets, entry.bytes)]
                    }
                };
                return Ok(Answer::Counts(counts));
            }
            ArrayOp::SetCounter { counter, at, packets, bytes } => match counter.counter(&program)? {
                Cells::Array(index) => {
                    let to = CounterCell { packets: *packets, bytes: *bytes };
                    self.counter_write(index, *at, to)?;
                }
                Cells::Direct(table) => {
                    self.each("direct counter", counter, table, *at, |entry| {
                        (entry.packets, entry.bytes) = (*packets, *bytes);
                    })?;
                }
            },
            ArrayOp::ReadMeter { meter, start, count } => {
                let rates = match meter.meter(&program)? {
                    Cells::Array(index) => {
                        let cells = &self.state.meters[index];
                        let asked = check::range("meter", meter.as_str(), cells.len(), *start, *count)?;
                        cells[asked].iter().map(MeterCell::rates).collect()
                    }
                    Cells::Direct(table) => {
                        vec![self.direct("meter", meter, table, *start, *count)?.meter.rates()]
                    }
                };
                return Ok(Answer::Rates(rates));
            }
            ArrayOp::SetMeter { meter, at, rates } => {
                rates.map_or(Ok(()), |rates| rates.check())?;
                match meter.meter(&program)? {
                    Cells::Array(index) => self.meter_write(index, *at, *rates, now.as_ps())?,
                    Cells::Direct(_) if *at == At::All => {
                        return refuse(format!("`{meter}` is a direct meter; set the rates of each entry"));
                    }
                    Cells::Direct(table) => self.each("meter", meter, table, *at, |entry| {
                        entry.meter.configure(*rates, now.as_ps());
                    })?,
                }
            }
        }
        Ok(Answer::Done)
    }

    /// Writes cells that are given as words: checks them all, then copies.
    fn write_words(&mut self, name: &Name, register: usize, from: u32, words: &Words) -> Result<()> {
        let cells = self.state.registers.get(register);
        let per_cell = cells.words_per_cell();
        let bytes_per_cell = 8 * per_cell;
        if !words.0.len().is_multiple_of(bytes_per_cell) {
            return refuse(format!("a cell of register `{name}` has {per_cell} words of 64 bits"));
        }
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let top_bits = cells.width() - 64 * (per_cell as u32 - 1);
        let too_large = |cell: &[u8]| word(&cell[bytes_per_cell - 8..]) >> top_bits != 0;
        if top_bits < 64 && words.0.chunks_exact(bytes_per_cell).any(too_large) {
            let why = format!("a value does not fit in the {} bits of register `{name}`", cells.width());
            return refuse_as(Kind::OutOfRange, why);
        }
        let count = (words.0.len() / bytes_per_cell) as u32;
        let asked = check::range("register", name.as_str(), cells.len(), from, Some(count))?;
        self.state.registers.set(register, asked.start, words.0.chunks_exact(8).map(word));
        Ok(())
    }

    /// The entry that a direct counter or meter counts for.
    fn direct(
        &self,
        what: &str,
        name: &Name,
        table: TableId,
        handle: u32,
        count: Option<u32>,
    ) -> Result<&Entry> {
        if count != Some(1) {
            return refuse(format!("`{name}` is direct: read that of one entry by its handle"));
        }
        match self.state.tables[table.index()].entry(handle) {
            Some(entry) => Ok(entry),
            None => no_entry(what, name, handle),
        }
    }

    /// Changes the entries that a direct counter or meter counts for.
    fn each(
        &mut self,
        what: &str,
        name: &Name,
        table: TableId,
        at: At,
        change: impl Fn(&mut Entry),
    ) -> Result<()> {
        let state = &mut self.state.tables[table.index()];
        match at {
            At::All => {
                let handles: Vec<u32> = state.iter().map(|(handle, _)| handle).collect();
                handles.into_iter().filter_map(|handle| state.entry_mut(handle).map(&change)).for_each(drop);
                Ok(())
            }
            At::Index(handle) => match state.entry_mut(handle) {
                Some(entry) => {
                    change(entry);
                    Ok(())
                }
                None => no_entry(what, name, handle),
            },
            At::Cells { .. } => refuse(format!("`{name}` is direct: set that of one entry by its handle")),
        }
    }
}

fn no_entry<T>(what: &str, name: &Name, handle: u32) -> Result<T> {
    refuse_as(Kind::NotFound, format!("the table of {what} `{name}` has no entry {handle}"))
}
