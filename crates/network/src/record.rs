//! What is recorded while a network runs: samples on a period, and the distribution of waiting times. Nothing is done, and
//! nothing is kept, that was not asked for before.

use units::Time;

/// Waiting times in logarithmic steps of about 3 %: 32 steps for each doubling, from a nanosecond on.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; 64 * 32], total: 0 }
    }
}

impl Histogram {
    fn bucket(ns: u64) -> usize {
        if ns < 64 {
            return ns as usize;
        }
        let top = 63 - ns.leading_zeros();
        (((top - 4) << 5) as u64 + (ns >> (top - 5) & 31)) as usize
    }

    /// The middle of a bucket, in nanoseconds.
    fn value(bucket: usize) -> u64 {
        if bucket < 64 {
            return bucket as u64;
        }
        let (top, step) = ((bucket >> 5) as u32 + 4, (bucket & 31) as u64);
        let width = 1u64 << (top - 5);
        (1 << top) + step * width + width / 2
    }

    pub fn add(&mut self, ps: u64) {
        self.counts[Self::bucket(ps / 1000)] += 1;
        self.total += 1;
    }

    /// Adds those of another one.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.total += other.total;
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    /// The time that a share of the packets did not wait longer than; `None` without packets.
    pub fn quantile(&self, share: f64) -> Option<Time> {
        let rank = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        found.filter(|_| self.total > 0).map(|bucket| Time::from_ns(Self::value(bucket)))
    }
}

/// One row for each flow and sample. Times are in picoseconds; counts are since the start.
#[derive(Debug, Default)]
pub struct FlowSamples {
    pub time: Vec<u64>,
    pub flow: Vec<u32>,
    pub bytes_received: Vec<u64>,
    pub cwnd: Vec<u32>,
    pub ssthresh: Vec<u32>,
    pub in_flight: Vec<u32>,
    pub srtt: Vec<u64>,
    pub rto: Vec<u64>,
    /// Bits per second; 0: not known yet.
    pub pacing_rate: Vec<u64>,
    pub retransmits: Vec<u64>,
    pub timeouts: Vec<u64>,
    pub delivered_ce: Vec<u64>,
}

/// One row for each queue and sample.
#[derive(Debug, Default)]
pub struct QueueSamples {
    pub time: Vec<u64>,
    pub port: Vec<u32>,
    /// Which of the port's queues; a plain port has queue 0 alone.
    pub queue: Vec<u32>,
    pub packets: Vec<u64>,
    pub bytes: Vec<u64>,
    /// In picoseconds. Of a plain port: how long a packet that came now would wait. Of a switch, whose queues share the port: how
    /// long the first packet has waited.
    pub delay: Vec<u64>,
    /// Of the whole port.
    pub sent_bytes: Vec<u64>,
    pub dropped: Vec<u64>,
    pub marked: Vec<u64>,
    pub busy: Vec<u64>,
    /// How long the wire was idle while packets waited for it: shapers of classes held them back. `u64::MAX`: not known, of a switch.
    pub stalled: Vec<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub period: u64,
    pub flows: Option<FlowSamples>,
    pub ports: Vec<u32>,
    pub queues: QueueSamples,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_close() {
        let mut last = 0;
        for shift in 0..50 {
            for step in 0..7u64 {
                let ns = (1u64 << shift) + step * (1 << shift) / 8;
                let bucket = Histogram::bucket(ns);
                assert!(bucket >= last, "{ns}");
                last = bucket;
                let value = Histogram::value(bucket);
                assert!(value.abs_diff(ns) * 30 <= ns, "{ns} {value}");
            }
        }
    }

    #[test]
    fn quantiles() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for us in 1..=1000u64 {
            histogram.add(us * 1_000_000);
        }
        let p99 = histogram.quantile(0.99).unwrap();
        assert!(p99 > Time::from_us(960) && p99 < Time::from_us(1020), "{p99}");
    }
}
