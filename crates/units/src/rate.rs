//! Rates: bits per second.

use std::fmt;
use std::ops::{Add, Div, Mul};
use std::str::FromStr;

use crate::text::{ParseError, Units, parse, print};
use crate::{Bytes, Time};

/// Bits per second; may be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Rate(u64);

const UNITS: &Units = &[
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Tbit/s", 1_000_000_000_000),
    ("bps", 1),
    ("kbps", 1_000),
    ("Mbps", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("B/s", 8),
    ("kB/s", 8_000),
    ("MB/s", 8_000_000),
    ("GB/s", 8_000_000_000),
];

const PS_PER_S: u128 = 1_000_000_000_000;

impl Rate {
    pub const ZERO: Rate = Rate(0);
    pub const MAX: Rate = Rate(u64::MAX);

    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }
    pub const fn from_kbps(kbps: u64) -> Rate {
        Rate(kbps * 1_000)
    }
    pub const fn from_mbps(mbps: u64) -> Rate {
        Rate(mbps * 1_000_000)
    }
    pub const fn from_gbps(gbps: u64) -> Rate {
        Rate(gbps * 1_000_000_000)
    }
    /// The nearest bit per second; negative and not-a-number give zero.
    pub fn from_bps_f64(bps: f64) -> Rate {
        Rate(bps.round() as u64)
    }
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// How long `size` takes at this rate, rounded up to a picosecond; [`Time::MAX`] at rate zero.
    pub fn time_for(self, size: Bytes) -> Time {
        if self.0 == 0 {
            return Time::MAX;
        }
        let bits_ps = u128::from(size.get()) * 8 * PS_PER_S;
        Time::from_ps(u64::try_from(bits_ps.div_ceil(u128::from(self.0))).unwrap_or(u64::MAX))
    }

    /// The rate at which `size` goes through in `time`, rounded down; `None` for no time.
    pub fn of(size: Bytes, time: Time) -> Option<Rate> {
        let bits_ps = u128::from(size.get()) * 8 * PS_PER_S;
        let bps = bits_ps.checked_div(u128::from(time.as_ps()))?;
        Some(Rate(u64::try_from(bps).unwrap_or(u64::MAX)))
    }

    /// Rounded to the nearest bit per second; for factors that are not negative.
    pub fn mul_f64(self, factor: f64) -> Rate {
        Rate((self.0 as f64 * factor).round() as u64)
    }
}

impl Add for Rate {
    type Output = Rate;
    fn add(self, other: Rate) -> Rate {
        Rate(self.0 + other.0)
    }
}

impl Mul<u64> for Rate {
    type Output = Rate;
    fn mul(self, factor: u64) -> Rate {
        Rate(self.0 * factor)
    }
}

impl Div<u64> for Rate {
    type Output = Rate;
    fn div(self, divisor: u64) -> Rate {
        Rate(self.0 / divisor)
    }
}

impl FromStr for Rate {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Rate, ParseError> {
        parse(text, UNITS, "a rate", "500 Mbit/s").map(Rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(f, self.0, &UNITS[..5])
    }
}
