//! CoDel, RFC 8289 section 5: what waits longer than the target for an interval is dropped at the head, more and more often.

use super::{Fifo, Waiting};
use crate::pool::PacketId;

const TARGET: u64 = 5_000_000_000;
const INTERVAL: u64 = 100_000_000_000;

#[derive(Debug)]
pub(crate) struct Codel {
    /// An MTU.
    largest: u64,
    /// When the delay will have been above the target for an interval.
    first_above: Option<u64>,
    drop_next: u64,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Codel {
    pub fn new(largest: u64) -> Codel {
        Codel { largest, first_above: None, drop_next: 0, count: 0, last_count: 0, dropping: false }
    }

    /// dodequeue(): the first packet, and whether it may be dropped.
    fn first(&mut self, now: u64, fifo: &mut Fifo) -> Option<(Waiting, bool)> {
        let Some(packet) = fifo.pop() else {
            self.first_above = None;
            return None;
        };
        let below = now - packet.came < TARGET || fifo.bytes() <= self.largest;
        let may_drop = match self.first_above {
            _ if below => {
                self.first_above = None;
                false
            }
            None => {
                self.first_above = Some(now + INTERVAL);
                false
            }
            Some(at) => now >= at,
        };
        Some((packet, may_drop))
    }

    /// dequeue() of section 5.5.
    pub fn dequeue(&mut self, now: u64, fifo: &mut Fifo, dropped: &mut Vec<PacketId>) -> Option<Waiting> {
        let Some((mut packet, mut may_drop)) = self.first(now, fifo) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                dropped.push(packet.packet);
                self.count += 1;
                let next = self.first(now, fifo);
                may_drop = next.is_some_and(|(_, may_drop)| may_drop);
                if may_drop {
                    self.drop_next = control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
                packet = next?.0;
            }
        } else if may_drop {
            dropped.push(packet.packet);
            let next = self.first(now, fifo);
            self.dropping = true;
            // If the delay was above the target not long ago, the rate of drops that held it then is a good one to begin with.
            let delta = self.count - self.last_count;
            self.count =
                if delta > 1 && now.saturating_sub(self.drop_next) < 16 * INTERVAL { delta } else { 1 };
            self.drop_next = control_law(now, self.count);
            self.last_count = self.count;
            packet = next?.0;
        }
        Some(packet)
    }
}

/// Section 5.6.
fn control_law(at: u64, count: u32) -> u64 {
    at + (INTERVAL as f64 / f64::from(count).sqrt()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    /// A packet each millisecond that takes one to send, and so many that wait already; gives when packets were dropped.
    fn drops(standing: u64, ms: u64) -> (Vec<u64>, Codel) {
        let mut fifo = Fifo::default();
        let mut codel = Codel::new(1514);
        let (mut dropped, mut times) = (Vec::new(), Vec::new());
        for _ in 0..standing {
            fifo.push(Waiting { packet: 0, bytes: 1500, came: 0 });
        }
        for at in 0..ms {
            fifo.push(Waiting { packet: 0, bytes: 1500, came: at * MS });
            codel.dequeue(at * MS, &mut fifo, &mut dropped);
            times.extend(dropped.drain(..).map(|_| at));
        }
        (times, codel)
    }

    #[test]
    fn below_the_target_nothing_is_dropped() {
        assert!(drops(4, 2000).0.is_empty());
    }

    #[test]
    fn above_it_drops_come_after_an_interval_and_then_by_the_square_root() {
        let (times, codel) = drops(30, 1000);
        // 5 ms until above the target, 100 ms that it stays so, then 100 / sqrt(n) ms between one drop and the next.
        let mut next = 105.0;
        for (n, at) in times.iter().take(8).enumerate() {
            assert!((*at as f64 - next).abs() <= 1.5, "{n}: {at} {next}");
            next += 100.0 / ((n + 1) as f64).sqrt();
        }
        // Until the queue is short again: thirty packets less five.
        assert!((24..=27).contains(&times.len()), "{times:?}");
        assert!(!codel.dropping);
    }

    #[test]
    fn a_queue_of_one_packet_is_never_dropped_from() {
        let mut fifo = Fifo::default();
        let mut codel = Codel::new(1514);
        let mut dropped = Vec::new();
        // On a slow link a packet waits for 50 ms, with one behind it.
        fifo.push(Waiting { packet: 0, bytes: 1500, came: 0 });
        for at in 1..200 {
            fifo.push(Waiting { packet: 0, bytes: 1500, came: (at - 1) * 50 * MS });
            assert!(codel.dequeue(at * 50 * MS, &mut fifo, &mut dropped).is_some());
        }
        assert!(dropped.is_empty());
    }
}
