//! A shaper: how fast bytes may leave, with a burst.

use control::Shaping;
use units::{Bytes, Time};

/// A token bucket, kept as the time at which what has left would have left at the rate (as the generic cell rate algorithm
/// of ITU-T I.371 does): exact in integers, and nothing to refill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shaper {
    pub shaping: Shaping,
    due: Time,
}

impl Shaper {
    pub fn new(shaping: Shaping) -> Shaper {
        Shaper { shaping, due: Time::ZERO }
    }

    /// From when on a packet may leave: when the bucket holds as much, or is full for one that is larger than the burst.
    pub fn opens(&self, bytes: u64) -> Time {
        let room = self.shaping.burst.saturating_sub(Bytes::new(bytes));
        self.due.saturating_sub(self.shaping.rate.time_for(room))
    }

    pub fn charge(&mut self, now: Time, bytes: u64) {
        self.due = self.due.max(now).saturating_add(self.shaping.rate.time_for(Bytes::new(bytes)));
    }
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::*;

    /// A burst at once, then the rate, to the picosecond.
    #[test]
    fn burst_then_rate() {
        let shaping = Shaping { rate: Rate::from_mbps(8), burst: Bytes::new(3000) };
        let mut shaper = Shaper::new(shaping);
        let mut left = Vec::new();
        let mut now = Time::from_secs(1);
        for _ in 0..6 {
            now = now.max(shaper.opens(1000));
            shaper.charge(now, 1000);
            left.push((now - Time::from_secs(1)).as_us());
        }
        // 1000 bytes take 1 ms.
        assert_eq!(left, [0, 0, 0, 1000, 2000, 3000]);
    }

    #[test]
    fn a_pause_saves_no_more_than_the_burst() {
        let shaping = Shaping { rate: Rate::from_mbps(8), burst: Bytes::new(1000) };
        let mut shaper = Shaper::new(shaping);
        for second in 1..5 {
            let now = Time::from_secs(second);
            assert!(shaper.opens(1000) <= now);
            shaper.charge(now, 1000);
            assert_eq!(shaper.opens(1000), now + Time::from_ms(1));
            assert_eq!(shaper.opens(100), now + Time::from_us(100));
        }
    }

    #[test]
    fn a_packet_larger_than_the_burst_waits_for_a_full_bucket() {
        let shaping = Shaping { rate: Rate::from_mbps(8), burst: Bytes::new(1000) };
        let mut shaper = Shaper::new(shaping);
        shaper.charge(Time::ZERO, 5000);
        assert_eq!(shaper.opens(5000), Time::from_ms(5));
    }
}
