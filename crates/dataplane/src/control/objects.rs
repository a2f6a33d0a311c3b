//! Counters, meters and parser value sets.

use p4lang::ir::EntryMatch;

use super::{Kind, Result, check_match, refuse, refuse_as, resolve};
use crate::pipeline::Pipeline;
use crate::state::CounterCell;
use crate::state::meter::{MeterCell, MeterRates};

/// The cells that an index means: one, or all of them.
fn cells<'a, T>(what: &str, name: &str, all: &'a mut [T], index: Option<usize>) -> Result<&'a mut [T]> {
    let Some(index) = index else { return Ok(all) };
    let len = all.len();
    match all.get_mut(index..=index) {
        Some(one) => Ok(one),
        None => {
            refuse_as(Kind::OutOfRange, format!("{what} `{name}` has {len} cells; {index} is out of range"))
        }
    }
}

impl Pipeline {
    pub fn counter_index(&self, name: &str) -> Result<usize> {
        resolve("counter", name, self.program().counters.iter().map(|c| &c.info))
    }

    /// Sets a cell of a counter, or all of them.
    pub fn counter_write(&mut self, counter: usize, index: Option<usize>, to: CounterCell) -> Result<()> {
        let program = self.program().clone();
        let name = &program.counters[counter].info.name;
        cells("counter", name, &mut self.state.counters[counter], index)?.fill(to);
        Ok(())
    }

    pub fn meter_index(&self, name: &str) -> Result<usize> {
        resolve("meter", name, self.program().meters.iter().map(|m| &m.info))
    }

    /// Sets the rates of a cell of a meter, or of all of them; without rates all packets are green.
    pub fn meter_write(
        &mut self,
        meter: usize,
        index: Option<usize>,
        rates: Option<MeterRates>,
        now: u64,
    ) -> Result<()> {
        let program = self.program().clone();
        let name = &program.meters[meter].info.name;
        let cells = cells("meter", name, &mut self.state.meters[meter], index)?;
        cells.iter_mut().for_each(|cell| cell.configure(rates, now));
        Ok(())
    }

    pub fn meter_cells(&self, meter: usize) -> &[MeterCell] {
        &self.state.meters[meter]
    }

    pub fn value_set_index(&self, name: &str) -> Result<usize> {
        resolve("value set", name, self.program().value_sets.iter().map(|v| &v.info))
    }

    /// Adds a member to a value set: one match per field.
    pub fn value_set_add(&mut self, set: usize, member: Vec<EntryMatch>) -> Result<()> {
        self.check_member(set, &member)?;
        let declared = &self.program().value_sets[set];
        let (name, size) = (&declared.info.name, declared.size);
        let members = &self.state.value_sets[set];
        if members.contains(&member) {
            return refuse_as(Kind::Exists, format!("value set `{name}` has this member already"));
        }
        if members.len() as u64 >= size {
            return refuse_as(Kind::Full, format!("value set `{name}` is full: its size is {size}"));
        }
        self.state.value_sets[set].push(member);
        Ok(())
    }

    /// Puts these members in a value set, in place of what was in it.
    pub fn value_set_write(&mut self, set: usize, members: Vec<Vec<EntryMatch>>) -> Result<()> {
        let before = std::mem::take(&mut self.state.value_sets[set]);
        for member in members {
            if let Err(why) = self.value_set_add(set, member) {
                self.state.value_sets[set] = before;
                return Err(why);
            }
        }
        Ok(())
    }

    fn check_member(&self, set: usize, member: &[EntryMatch]) -> Result<()> {
        let declared = &self.program().value_sets[set];
        let name = &declared.info.name;
        if member.len() != declared.fields.len() {
            return refuse(format!(
                "a member of value set `{name}` has {} fields, not {}",
                declared.fields.len(),
                member.len()
            ));
        }
        for ((field, width, kind), found) in declared.fields.iter().zip(member) {
            check_match(*kind, *width, found, &format!("field `{field}` of value set `{name}`"))?;
        }
        Ok(())
    }
}
