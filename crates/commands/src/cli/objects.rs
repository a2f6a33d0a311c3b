//! Registers, counters, meters and the custom checksums.

use control::{ArrayOp, At, CrcParameters, MeterRates, Name, StateOp, Value};
use num_bigint::BigUint;

use super::{Answer, Session, count, unexpected};
use crate::value::{cli, number, small};

/// Meter rates on the command line are per microsecond, and thousandths per second inside.
const RATE: f64 = 1e9;

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
        let at = args.get(1).map(|text| small("index", text)).transpose()?;
        let (start, count) = (at.unwrap_or(0), at.map(|_| 1));
        let cells = match self.act(ArrayOp::ReadRegister { register: args[0].into(), start, count })? {
            control::Answer::Words { words, words_per_cell } => {
                let cells = words.0.chunks(8 * words_per_cell as usize).map(BigUint::from_bytes_le);
                cells.map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
            }
            other => return Err(unexpected(&other)),
        };
        Ok(at.map_or_else(|| format!("{}= {cells}", args[0]), |at| format!("{}[{at}]= {cells}", args[0])))
    }

    fn register_write(&mut self, args: &[&str]) -> Answer {
        count(args, 3, 3, "register_write REGISTER INDEX VALUE")?;
        let register = Name::from(args[0]);
        let program = self.pipeline.program();
        let declared = &program.registers[register.register(program).map_err(|e| e.to_string())?];
        let value = Value::from(&cli(args[2], declared.width)?);
        let at = At::Index(small("index", args[1])?);
        self.done(ArrayOp::SetRegister { register, at, value })
    }

    fn register_reset(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "register_reset REGISTER")?;
        let (register, value) = (args[0].into(), Value::from(0));
        self.done(ArrayOp::SetRegister { register, at: At::All, value })
    }

    fn counter_read(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "counter_read COUNTER INDEX")?;
        let at = small("index", args[1])?;
        let (packets, bytes) = self.counter(args[0], at)?;
        Ok(format!("{}[{at}]= ({bytes} bytes, {packets} packets)", args[0]))
    }

    /// Packets and bytes of a counter's cell; a direct counter's index is the handle of the entry.
    pub(crate) fn counter(&mut self, name: &str, at: u32) -> Result<(u64, u64), String> {
        match self.act(ArrayOp::ReadCounter { counter: name.into(), start: at, count: Some(1) })? {
            control::Answer::Counts(counts) if counts.len() == 1 => Ok(counts[0]),
            other => Err(unexpected(&other)),
        }
    }

    fn counter_write(&mut self, args: &[&str]) -> Answer {
        count(args, 4, 4, "counter_write COUNTER INDEX PACKETS BYTES")?;
        let amount = |text| -> Result<u64, String> {
            u64::try_from(number(text)?).map_err(|_| format!("`{text}` is more than 64 bits"))
        };
        let (packets, bytes) = (amount(args[2])?, amount(args[3])?);
        let at = At::Index(small("index", args[1])?);
        self.done(ArrayOp::SetCounter { counter: args[0].into(), at, packets, bytes })
    }

    fn counter_reset(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "counter_reset COUNTER")?;
        self.done(ArrayOp::SetCounter { counter: args[0].into(), at: At::All, packets: 0, bytes: 0 })
    }

    fn meter_set_rates(&mut self, args: &[&str]) -> Answer {
        count(args, 4, 4, "meter_set_rates METER INDEX RATE:BURST RATE:BURST")?;
        let (at, rates) = (At::Index(small("index", args[1])?), Some(rates(&args[2..])?));
        self.done(ArrayOp::SetMeter { meter: args[0].into(), at, rates })
    }

    fn meter_array_set_rates(&mut self, args: &[&str]) -> Answer {
        count(args, 3, 3, "meter_array_set_rates METER RATE:BURST RATE:BURST")?;
        let rates = Some(rates(&args[1..])?);
        self.done(ArrayOp::SetMeter { meter: args[0].into(), at: At::All, rates })
    }

    fn meter_get_rates(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "meter_get_rates METER INDEX")?;
        let at = small("index", args[1])?;
        match self.act(ArrayOp::ReadMeter { meter: args[0].into(), start: at, count: Some(1) })? {
            control::Answer::Rates(rates) => match rates[..] {
                [Some(r)] => Ok(format!(
                    "{}[{at}]: {}:{} {}:{}",
                    args[0],
                    r.committed_rate as f64 / RATE,
                    r.committed_burst,
                    r.peak_rate as f64 / RATE,
                    r.peak_burst
                )),
                _ => Ok(format!("{}[{at}]: no rates, everything is green", args[0])),
            },
            other => Err(unexpected(&other)),
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
        let to = CrcParameters {
            width,
            polynomial: word(args[1])?,
            initial: word(args[2])?,
            final_xor: word(args[3])?,
            reflect_data: flag(args[4])?,
            reflect_remainder: flag(args[5])?,
        };
        self.done(StateOp::SetCrc { to })
    }
}

/// Committed and peak rate with their bursts.
pub(super) fn rates(args: &[&str]) -> Result<MeterRates, String> {
    let one = |text: &str| -> Result<(u64, u64), String> {
        let (rate, burst) = text.split_once(':').ok_or_else(|| format!("`{text}`: expected `RATE:BURST`"))?;
        let rate: f64 = rate.parse().map_err(|_| format!("`{rate}` is not a rate"))?;
        let burst = u64::try_from(number(burst)?).map_err(|_| format!("the burst {burst} is too large"))?;
        Ok((MeterRates::per_microsecond(rate).map_err(|e| e.to_string())?, burst))
    };
    let [committed, peak] = args else { return Err("a meter has two rates".into()) };
    let ((committed_rate, committed_burst), (peak_rate, peak_burst)) = (one(committed)?, one(peak)?);
    Ok(MeterRates { committed_rate, committed_burst, peak_rate, peak_burst })
}
