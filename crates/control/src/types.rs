//! What operations are made of, beside names, values and matches.

use crate::{Error, Match, Name, Result, Value};

/// An action with a value for each of its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub action: Name,
    pub values: Vec<Value>,
}

/// Where an entry leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leads {
    Action(Call),
    /// Member of the table's action profile.
    Member(u32),
    /// Group of the table's action selector.
    Group(u32),
    /// Actions to choose from as from a group, of this entry alone.
    Set(Vec<Choice>),
}

/// An action among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub call: Call,
    /// How many times as often as one of weight 1 it is chosen.
    pub weight: u32,
    /// The port on which it depends, as the control plane writes it.
    pub watch: Vec<u8>,
}

/// A member in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    pub member: u32,
    /// How many times as often as one of weight 1 it is chosen.
    pub weight: u32,
    /// The port on which it depends, as the control plane writes it. Ports do not go down here.
    pub watch: Vec<u8>,
}

/// Which entry of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryRef {
    Handle(u32),
    /// One match for each key, and the priority, if the table's entries have one.
    Key(Vec<Match>, Option<u32>),
}

/// What an entry has beside its action; `None` leaves it as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extras {
    /// Packets and bytes of the direct counter.
    pub counter: Option<(u64, u64)>,
    /// Rates of the direct meter, or none: all packets are green.
    pub meter: Option<Option<MeterRates>>,
    /// Picoseconds; 0: none.
    pub idle_timeout: Option<u64>,
    /// The control plane's own note.
    pub note: Option<Vec<u8>>,
}

/// Rates in thousandths of a byte or packet per second, bursts in bytes or packets (RFC 2698).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeterRates {
    pub committed_rate: u64,
    pub committed_burst: u64,
    pub peak_rate: u64,
    pub peak_burst: u64,
}

impl MeterRates {
    /// Thousandths a second of a rate per microsecond, which is how the reference switch's command line has it.
    ///
    /// # Errors
    /// Not a finite number from 0 to below 10^12.
    pub fn per_microsecond(rate: f64) -> Result<u64> {
        if !(rate.is_finite() && (0.0..1e12).contains(&rate)) {
            let error = Error::invalid(format!("{rate} is not a rate")).field("rate");
            return Err(error.cure("it is in bytes or packets per microsecond"));
        }
        Ok((rate * 1e9).round() as u64)
    }

    /// # Errors
    /// A peak rate below the committed rate.
    pub fn check(&self) -> Result<()> {
        if self.peak_rate < self.committed_rate {
            let error = Error::invalid("the second rate is the peak rate").field("peak_rate");
            return Err(error.cure("it must not be less than the first"));
        }
        Ok(())
    }
}

/// One cell, several, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    All,
    /// Its index; of a direct counter or meter, the handle of the entry.
    Index(u32),
    /// The first of several, and how many; not of a direct counter or meter.
    Cells {
        start: u32,
        count: u32,
    },
}

/// Whether an object is made or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// Made: there must be none of its number.
    New,
    /// Changed: there must be one of its number.
    Known,
    /// Made or changed.
    Either,
}

impl Put {
    pub const NAMES: [(&str, Put); 3] = [("new", Put::New), ("known", Put::Known), ("either", Put::Either)];
}

/// Where a mirror session's copies go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirror {
    pub port: Option<u32>,
    pub group: Option<u32>,
    /// Replication id and port of further copies.
    pub copies: Vec<(u32, u32)>,
    /// Queue of the copies.
    pub priority: u32,
    /// Bytes that each copy keeps.
    pub truncate: Option<u32>,
}

/// Cells of a register: words of 64 bits, each little-endian, the least significant word of a cell first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words(pub Vec<u8>);

/// A cyclic redundancy check that a program calls by `crc16_custom` or `crc32_custom`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CrcParameters {
    /// 16 or 32.
    pub width: u32,
    pub polynomial: u32,
    pub initial: u32,
    pub final_xor: u32,
    pub reflect_data: bool,
    pub reflect_remainder: bool,
}
