//! Registers, counters, meters and the custom checksums.

use dataplane::control::resolve;
use dataplane::hash::{Crc, CrcParameters};
use dataplane::pipeline::Pipeline;
use dataplane::state::CounterCell;
use dataplane::state::meter::MeterRates;
use p4lang::ir::TableId;

use super::{Answer, Session, count, index};
use crate::value::{cli, number};

/// Meter rates on the command line are per microsecond, and thousandths per second inside.
const RATE: f64 = 1e9;

/// A counter's cell, by name and index; a direct counter's index is the handle of the entry.
pub fn counter_cell<'a>(
    pipeline: &'a mut Pipeline,
    name: &str,
    at: usize,
) -> Result<(&'a mut u64, &'a mut u64), String> {
    if let Some(table) = direct_counter(pipeline, name) {
        let entry = pipeline.state.tables[table.index()].entry_mut(at as u32);
        let entry = entry.ok_or_else(|| format!("the table of direct counter `{name}` has no entry {at}"))?;
        return Ok((&mut entry.packets, &mut entry.bytes));
    }
    let which = pipeline.counter_index(name).map_err(|e| e.0)?;
    let cells = &mut pipeline.state.counters[which];
    let len = cells.len();
    let cell =
        cells.get_mut(at).ok_or_else(|| format!("counter `{name}` has {len} cells; {at} is out of range"))?;
    let CounterCell { packets, bytes } = cell;
    Ok((packets, bytes))
}

/// The table that a direct counter belongs to.
pub fn direct_counter(pipeline: &Pipeline, name: &str) -> Option<TableId> {
    let tables = &pipeline.program().tables;
    let suffix = format!(".{name}");
    let named = |exact: bool| {
        tables.iter().position(|t| {
            let info = t.direct_counter.as_ref().map(|c| &c.info);
            info.is_some_and(|i| if exact { i.name == name } else { i.name.ends_with(&suffix) })
        })
    };
    if let Some(at) = named(true) {
        return Some(TableId(at as u32));
    }
    if pipeline.program().counters.iter().any(|c| c.info.name == name || c.info.name.ends_with(&suffix)) {
        return None;
    }
    named(false).map(|at| TableId(at as u32))
}

impl Session<'_> {
    pub(super) fn object_command(&mut self, command: &str, args: &[&str]) -> Option<Answer> {
        Some(match command {
            "register_read" => self.register_read(args),
            "register_write" => self.register_write(args),
            "register_reset" => self.register_reset(args),
            "counter_read" => self.counter_read(args),
            "counter_write" => self.counter_write(args),
            "counter_reset" => self.counter_reset(args),
            "meter_set_rates" => self.meter_set_rates(args),
            "meter_array_set_rates" => self.meter_array_set_rates(args),
            "meter_get_rates" => self.meter_get_rates(args),
            "set_crc16_parameters" => self.set_crc(args, 16),
            "set_crc32_parameters" => self.set_crc(args, 32),
            _ => return None,
        })
    }

    fn register_read(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 2, "register_read REGISTER [INDEX]")?;
        let register = self.pipeline.register_index(args[0]).map_err(|e| e.0)?;
        if let Some(at) = args.get(1) {
            let at = index("index", at)?;
            let value = self.pipeline.register_read(register, at).map_err(|e| e.0)?;
            return Ok(format!("{}[{at}]= {value}", args[0]));
        }
        let len = self.pipeline.state.registers[register].len();
        let mut values = Vec::with_capacity(len);
        for at in 0..len {
            values.push(self.pipeline.register_read(register, at).map_err(|e| e.0)?.to_string());
        }
        Ok(format!("{}= {}", args[0], values.join(", ")))
    }

    fn register_write(&mut self, args: &[&str]) -> Answer {
        count(args, 3, 3, "register_write REGISTER INDEX VALUE")?;
        let register = self.pipeline.register_index(args[0]).map_err(|e| e.0)?;
        let width = self.pipeline.program().registers[register].width;
        let value = cli(args[2], width)?;
        self.pipeline.register_write(register, Some(index("index", args[1])?), &value).map_err(|e| e.0)?;
        Ok(String::new())
    }

    fn register_reset(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "register_reset REGISTER")?;
        let register = self.pipeline.register_index(args[0]).map_err(|e| e.0)?;
        self.pipeline.register_write(register, None, &0u32.into()).map_err(|e| e.0)?;
        Ok(String::new())
    }

    fn counter_read(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "counter_read COUNTER INDEX")?;
        let at = index("index", args[1])?;
        let (packets, bytes) = counter_cell(self.pipeline, args[0], at)?;
        Ok(format!("{}[{at}]= ({bytes} bytes, {packets} packets)", args[0]))
    }

    fn counter_write(&mut self, args: &[&str]) -> Answer {
        count(args, 4, 4, "counter_write COUNTER INDEX PACKETS BYTES")?;
        let amount = |text| -> Result<u64, String> {
            u64::try_from(number(text)?).map_err(|_| format!("`{text}` is more than 64 bits"))
        };
        let (new_packets, new_bytes) = (amount(args[2])?, amount(args[3])?);
        let (packets, bytes) = counter_cell(self.pipeline, args[0], index("index", args[1])?)?;
        (*packets, *bytes) = (new_packets, new_bytes);
        Ok(String::new())
    }

    fn counter_reset(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "counter_reset COUNTER")?;
        if let Some(table) = direct_counter(self.pipeline, args[0]) {
            let state = &mut self.pipeline.state.tables[table.index()];
            let handles: Vec<u32> = state.iter().map(|(h, _)| h).collect();
            for handle in handles {
                if let Some(entry) = state.entry_mut(handle) {
                    (entry.packets, entry.bytes) = (0, 0);
                }
            }
            return Ok(String::new());
        }
        let which = self.pipeline.counter_index(args[0]).map_err(|e| e.0)?;
        self.pipeline.counter_write(which, None, CounterCell::default()).map_err(|e| e.0)?;
        Ok(String::new())
    }

    /// A meter array, or the table of a direct meter.
    fn meter(&self, name: &str) -> Result<Result<usize, TableId>, String> {
        let program = self.pipeline.program();
        let suffix = format!(".{name}");
        let direct = program.tables.iter().position(|t| {
            let info = t.direct_meter.as_ref().map(|m| &m.info);
            info.is_some_and(|i| i.name == name || i.name.ends_with(&suffix))
        });
        match (resolve("meter", name, program.meters.iter().map(|m| &m.info)), direct) {
            (Ok(meter), _) => Ok(Ok(meter)),
            (Err(_), Some(table)) => Ok(Err(TableId(table as u32))),
            (Err(why), None) => Err(why.0),
        }
    }

    fn meter_set_rates(&mut self, args: &[&str]) -> Answer {
        count(args, 4, 4, "meter_set_rates METER INDEX RATE:BURST RATE:BURST")?;
        let at = index("index", args[1])?;
        let rates = rates(&args[2..])?;
        let now = self.now;
        match self.meter(args[0])? {
            Ok(meter) => {
                let cells = &mut self.pipeline.state.meters[meter];
                let len = cells.len();
                let cell = cells
                    .get_mut(at)
                    .ok_or_else(|| format!("meter `{}` has {len} cells; {at} is out of range", args[0]))?;
                cell.configure(Some(rates), now);
            }
            Err(table) => {
                let entry = self.pipeline.state.tables[table.index()].entry_mut(at as u32);
                let entry =
                    entry.ok_or_else(|| format!("the table of meter `{}` has no entry {at}", args[0]))?;
                entry.meter.configure(Some(rates), now);
            }
        }
        Ok(String::new())
    }

    fn meter_array_set_rates(&mut self, args: &[&str]) -> Answer {
        count(args, 3, 3, "meter_array_set_rates METER RATE:BURST RATE:BURST")?;
        let rates = rates(&args[1..])?;
        let now = self.now;
        match self.meter(args[0])? {
            Ok(meter) => {
                self.pipeline.state.meters[meter].iter_mut().for_each(|c| c.configure(Some(rates), now));
                Ok(String::new())
            }
            Err(_) => Err(format!("`{}` is a direct meter; set the rates of each entry", args[0])),
        }
    }

    fn meter_get_rates(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "meter_get_rates METER INDEX")?;
        let at = index("index", args[1])?;
        let rates = match self.meter(args[0])? {
            Ok(meter) => self.pipeline.state.meters[meter].get(at).map(|c| c.rates()),
            Err(table) => self.pipeline.state.tables[table.index()].entry(at as u32).map(|e| e.meter.rates()),
        };
        match rates {
            None => Err(format!("meter `{}`: index {at} is out of range", args[0])),
            Some(None) => Ok(format!("{}[{at}]: no rates, everything is green", args[0])),
            Some(Some(r)) => Ok(format!(
                "{}[{at}]: {}:{} {}:{}",
                args[0],
                r.committed_rate as f64 / RATE,
                r.committed_burst,
                r.peak_rate as f64 / RATE,
                r.peak_burst
            )),
        }
    }

    fn set_crc(&mut self, args: &[&str], width: u32) -> Answer {
        let expected = format!(
            "set_crc{width}_parameters NAME POLYNOMIAL INITIAL FINAL_XOR REFLECT_DATA REFLECT_REMAINDER"
        );
        count(args, 6, 6, &expected)?;
        let word = |text: &str| cli(text, width).map(|v| u32::try_from(&v).unwrap_or(u32::MAX));
        let flag = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "1" | "yes" | "y" => Ok(true),
            "false" | "f" | "0" | "no" | "n" => Ok(false),
            _ => Err(format!("`{text}` is neither `true` nor `false`")),
        };
        let crc = Crc::new(CrcParameters {
            width,
            polynomial: word(args[1])?,
            initial: word(args[2])?,
            final_xor: word(args[3])?,
            reflect_data: flag(args[4])?,
            reflect_remainder: flag(args[5])?,
        });
        let hashes = &mut self.pipeline.state.hashes;
        if width == 16 {
            hashes.crc16_custom = crc;
        } else {
            hashes.crc32_custom = crc;
        }
        Ok(String::new())
    }
}

/// Committed and peak rate with their bursts.
fn rates(args: &[&str]) -> Result<MeterRates, String> {
    let one = |text: &str| -> Result<(u64, u64), String> {
        let (rate, burst) = text.split_once(':').ok_or_else(|| format!("`{text}`: expected `RATE:BURST`"))?;
        let rate: f64 = rate.parse().map_err(|_| format!("`{rate}` is not a rate"))?;
        if !(rate.is_finite() && (0.0..1e12).contains(&rate)) {
            return Err(format!("{rate} is not a rate; it is in bytes or packets per microsecond"));
        }
        let burst = u64::try_from(number(burst)?).map_err(|_| format!("the burst {burst} is too large"))?;
        Ok(((rate * RATE).round() as u64, burst))
    };
    let [committed, peak] = args else { return Err("a meter has two rates".into()) };
    let ((committed_rate, committed_burst), (peak_rate, peak_burst)) = (one(committed)?, one(peak)?);
    if peak_rate < committed_rate {
        return Err("the second rate is the peak rate; it must not be less than the first".into());
    }
    Ok(MeterRates { committed_rate, committed_burst, peak_rate, peak_burst })
}
