//! Time: an unsigned count of picoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};
use std::str::FromStr;

use crate::text::{ParseError, Units, parse, print};

/// A point of time since the start, or a span. 2^64 ps are 213 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Time(u64);

const UNITS: &Units = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
    ("µs", 1_000_000),
    ("min", 60_000_000_000_000),
    ("h", 3_600_000_000_000_000),
];

impl Time {
    pub const ZERO: Time = Time(0);
    pub const MAX: Time = Time(u64::MAX);

    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * 1_000)
    }
    pub const fn from_us(us: u64) -> Time {
        Time(us * 1_000_000)
    }
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms * 1_000_000_000)
    }
    pub const fn from_secs(s: u64) -> Time {
        Time(s * 1_000_000_000_000)
    }
    /// The nearest picosecond; negative and not-a-number give zero, what is too large [`Time::MAX`].
    pub fn from_secs_f64(s: f64) -> Time {
        Time((s * 1e12).round() as u64)
    }
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Whole nanoseconds, rounded down; so the others.
    pub const fn as_ns(self) -> u64 {
        self.0 / 1_000
    }
    pub const fn as_us(self) -> u64 {
        self.0 / 1_000_000
    }
    pub const fn as_ms(self) -> u64 {
        self.0 / 1_000_000_000
    }
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
    pub const fn checked_sub(self, other: Time) -> Option<Time> {
        match self.0.checked_sub(other.0) {
            Some(ps) => Some(Time(ps)),
            None => None,
        }
    }
    /// Rounded to the nearest picosecond; for factors that are not negative.
    pub fn mul_f64(self, factor: f64) -> Time {
        Time((self.0 as f64 * factor).round() as u64)
    }
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl SubAssign for Time {
    fn sub_assign(&mut self, other: Time) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Time {
    type Output = Time;
    fn mul(self, factor: u64) -> Time {
        Time(self.0 * factor)
    }
}

impl Div<u64> for Time {
    type Output = Time;
    fn div(self, divisor: u64) -> Time {
        Time(self.0 / divisor)
    }
}

impl Div for Time {
    type Output = u64;
    fn div(self, other: Time) -> u64 {
        self.0 / other.0
    }
}

impl Rem for Time {
    type Output = Time;
    fn rem(self, other: Time) -> Time {
        Time(self.0 % other.0)
    }
}

impl FromStr for Time {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Time, ParseError> {
        parse(text, UNITS, "a time", "20 ms").map(Time)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { f.pad("0 s") } else { print(f, self.0, &UNITS[..5]) }
    }
}
