//! The kernel's coarse clock (`jiffies`), by which CUBIC's window function goes.

use units::Time;

const NS: u64 = 1_000_000_000;

/// A clock that counts ticks; when the first one comes differs from host to host.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    pub per_second: u64,
    /// What of a tick has passed at time 0, in parts of which a tick has [`NS`].
    phase: u64,
}

impl Ticks {
    /// `seed` chooses the phase; with 0 there is a tick at time 0.
    pub fn new(per_second: u32, seed: u64) -> Ticks {
        let share = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Ticks { per_second: u64::from(per_second.max(1)), phase: ((share >> 32) * NS) >> 32 }
    }

    /// Ticks so far.
    pub fn at(&self, now: Time) -> u64 {
        (now.as_ns() * self.per_second + self.phase) / NS
    }

    /// Ticks that a time takes, a started one counted.
    pub fn of(&self, time: Time) -> u64 {
        (time.as_ns() * self.per_second).div_ceil(NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_at_their_rate_from_a_phase_on() {
        for (per_second, seed) in [(250, 0), (250, 1), (1000, 77), (100, u64::MAX)] {
            let ticks = Ticks::new(per_second, seed);
            assert!(ticks.at(Time::ZERO) == 0 && ticks.phase < NS, "{per_second} {seed}");
            let (first, second) = (ticks.at(Time::from_secs(3)), ticks.at(Time::from_secs(4)));
            assert_eq!(second - first, u64::from(per_second));
        }
        let ticks = Ticks::new(250, 0);
        let at: Vec<u64> = [3999, 4000, 7999, 8000].map(|us| ticks.at(Time::from_us(us))).to_vec();
        assert_eq!(at, [0, 1, 1, 2]);
        assert_eq!(ticks.of(Time::from_us(12)), 1);
        assert_eq!(ticks.of(Time::from_us(4001)), 2);
        assert_ne!(Ticks::new(250, 1).phase, Ticks::new(250, 2).phase);
    }
}
