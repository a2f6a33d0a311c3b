//! In-band telemetry: what each switch on the way of a packet says of the port that it leaves by, in the widths of HPCC (Li et al.,
//! SIGCOMM 2019).
//!
//! The field has eight bytes for each hop, then a byte with the version (2 bits, 0) and the number of hops (6 bits). A hop's
//! bytes are, from the first bit on: the link's rate (3 bits, [`RATES`]), the time (24 bits, nanoseconds), bytes sent (20 bits, in
//! units of 128), bytes queued (17 bits, in units of 80).

/// Rates of links in bit/s, by code.
pub const RATES: [f64; 8] = [1e9, 10e9, 25e9, 40e9, 50e9, 100e9, 200e9, 400e9];
/// Hops that are looked at.
pub const MOST_HOPS: usize = 8;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Hop {
    /// Nanoseconds, modulo 2^24.
    time: u32,
    /// Units of 128 bytes, modulo 2^20.
    sent: u32,
    /// Bytes.
    queue: f64,
    /// bit/s.
    rate: f64,
}

/// What went on at a hop between two packets' telemetry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Nanoseconds, and bytes sent in them.
    pub ns: f64,
    pub sent: f64,
    /// Bytes queued, before and now.
    pub queues: [f64; 2],
    /// bit/s.
    pub rate: f64,
}

/// Keeps the last telemetry and compares the next with it.
#[derive(Debug, Clone, Default)]
pub struct Telemetry {
    last: Vec<Hop>,
    now: Vec<Hop>,
    fresh: bool,
}

impl Telemetry {
    /// A packet's field has come back.
    pub fn note(&mut self, data: &[u8]) {
        let Some((state, entries)) = data.split_last() else { return };
        let hops = usize::from(state & 63).min(MOST_HOPS);
        if state >> 6 != 0 || hops == 0 || entries.len() < 8 * hops {
            return;
        }
        self.now.clear();
        self.now.extend(entries.chunks_exact(8).take(hops).map(Hop::read));
        self.fresh = true;
    }

    /// The intervals at each hop since the telemetry before, once; none, if the path has changed or there was none before.
    pub fn take(&mut self) -> Option<Vec<Interval>> {
        if !std::mem::take(&mut self.fresh) {
            return None;
        }
        let same = |(a, b): (&Hop, &Hop)| a.rate == b.rate;
        let comparable = self.last.len() == self.now.len() && self.last.iter().zip(&self.now).all(same);
        let pairs = self.last.iter().zip(&self.now);
        // Telemetry that is older than what has come before it wraps to a long time.
        let intervals: Vec<_> = pairs.map(|(last, now)| Interval::between(last, now)).collect();
        let stale = intervals.iter().any(|interval| interval.ns > f64::from(1 << 23));
        if comparable && stale {
            return None;
        }
        std::mem::swap(&mut self.last, &mut self.now);
        comparable.then_some(intervals)
    }
}

impl Hop {
    fn read(bytes: &[u8]) -> Hop {
        let word = bytes.iter().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        Hop {
            rate: RATES[(word >> 61) as usize],
            time: (word >> 37) as u32 & 0xff_ffff,
            sent: (word >> 17) as u32 & 0xf_ffff,
            queue: (word & 0x1_ffff) as f64 * 80.0,
        }
    }
}

impl Interval {
    fn between(last: &Hop, now: &Hop) -> Interval {
        Interval {
            ns: f64::from(now.time.wrapping_sub(last.time) & 0xff_ffff),
            sent: f64::from(now.sent.wrapping_sub(last.sent) & 0xf_ffff) * 128.0,
            queues: [last.queue, now.queue],
            rate: now.rate,
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A field of hops: rate's code, nanoseconds, units of 128 bytes, units of 80 bytes.
    pub fn field(hops: &[(u64, u64, u64, u64)]) -> Vec<u8> {
        let mut data = Vec::new();
        for (rate, time, sent, queue) in hops {
            let word = rate << 61 | (time & 0xff_ffff) << 37 | (sent & 0xf_ffff) << 17 | queue;
            data.extend(word.to_be_bytes());
        }
        data.push(hops.len() as u8);
        data
    }

    #[test]
    fn intervals_are_differences_with_wraps() {
        let mut telemetry = Telemetry::default();
        telemetry.note(&field(&[(2, 0xff_fff0, 0xf_ffff, 10)]));
        assert_eq!(telemetry.take(), None);
        telemetry.note(&field(&[(2, 0x10, 4, 20)]));
        let interval = Interval { ns: 32.0, sent: 5.0 * 128.0, queues: [800.0, 1600.0], rate: 25e9 };
        assert_eq!(telemetry.take(), Some(vec![interval]));
        assert_eq!(telemetry.take(), None);
    }

    #[test]
    fn another_path_begins_anew_and_old_news_are_left_out() {
        let mut telemetry = Telemetry::default();
        let one = field(&[(2, 1000, 4, 20)]);
        telemetry.note(&one);
        telemetry.take();
        telemetry.note(&field(&[(2, 2000, 4, 20), (5, 1000, 4, 20)]));
        assert_eq!(telemetry.take(), None);
        telemetry.note(&field(&[(2, 1500, 4, 20), (5, 900, 4, 20)]));
        assert_eq!(telemetry.take(), None);
        telemetry.note(&field(&[(2, 3000, 4, 20), (5, 1500, 4, 20)]));
        let ns: Vec<_> = telemetry.take().unwrap().iter().map(|interval| interval.ns).collect();
        assert_eq!(ns, [1000.0, 500.0]);
        for data in [&[][..], &[0], &one[..7], &[0, 0, 0, 0, 0, 0, 0, 0, 0x41]] {
            telemetry.note(data);
            assert_eq!(telemetry.take(), None);
        }
    }
}
