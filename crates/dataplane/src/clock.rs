//! In what a program's timestamps count.

/// The unit of timestamps, which v1model leaves to the target: microseconds in the reference switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    #[default]
    Microseconds,
    Nanoseconds,
}

impl Clock {
    /// A time as programs see it.
    #[inline(always)]
    pub(crate) const fn of(self, picoseconds: u64) -> u64 {
        match self {
            Clock::Microseconds => picoseconds / 1_000_000,
            Clock::Nanoseconds => picoseconds / 1_000,
        }
    }
}
