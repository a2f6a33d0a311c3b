//! The network's time: picoseconds since it went live, by the monotonic clock.

use rustix::time::{ClockId, clock_gettime};
use units::Time;

/// Nanoseconds of one of the system's clocks.
fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic() -> u64 {
    read(ClockId::Monotonic)
}

/// Nanoseconds of the wall clock.
pub fn wall() -> u64 {
    read(ClockId::Realtime)
}

/// Nanoseconds that the calling thread has worked.
pub fn spent_by_thread() -> u64 {
    read(ClockId::ThreadCPUTime)
}

/// How far the wall clock, which the kernel stamps packets by, is ahead of the monotonic one, in nanoseconds.
pub fn wall_ahead() -> i64 {
    read(ClockId::Realtime) as i64 - monotonic() as i64
}

/// A day less than 64 bits of picoseconds, in nanoseconds.
const LONGEST: u64 = u64::MAX / 1000 - 86_400_000_000_000;

/// What the network's time is at which time of the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Nanoseconds at the network's time zero; negative if the network has run before.
    zero: i64,
}

impl Clock {
    /// A clock that says `network` now.
    pub fn starting_at(network: Time) -> Clock {
        Clock { zero: monotonic() as i64 - (network.as_ps() / 1000) as i64 }
    }

    pub fn now(&self) -> Time {
        self.at(monotonic())
    }

    /// Whether the network's time, picoseconds in 64 bits, comes to its end: after 213 days.
    pub fn is_over(&self) -> bool {
        self.elapsed(monotonic()) > LONGEST
    }

    /// Nanoseconds of the network's time.
    fn elapsed(&self, nanoseconds: u64) -> u64 {
        (nanoseconds as i64 - self.zero).max(0) as u64
    }

    /// The network's time at a time of the monotonic clock.
    pub fn at(&self, nanoseconds: u64) -> Time {
        Time::from_ns(self.elapsed(nanoseconds))
    }

    /// The time of the monotonic clock from which on `time` has come.
    pub fn when(&self, time: Time) -> u64 {
        (time.as_ps().div_ceil(1000) as i64 + self.zero).max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_and_go() {
        let clock = Clock::starting_at(Time::from_ms(5));
        assert!(clock.now() >= Time::from_ms(5) && clock.now() < Time::from_secs(5));
        let at = clock.at(monotonic() + 1_000_000_000);
        assert_eq!(clock.at(clock.when(at)), at);
        // What has come before the start has come at the start.
        assert_eq!(clock.at(0), Time::ZERO);
        assert!(!clock.is_over());
        let old = Clock { zero: monotonic() as i64 - 213 * 86_400_000_000_000 };
        assert!(old.is_over());
    }
}
