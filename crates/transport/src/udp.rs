//! UDP: sources of a known pattern, and what arrives of them.

use ::wire::packet::Datagram;
use units::{Bytes, Random, Rate, Time};

use crate::segment::Ecn;

/// Bytes of IPv4 and UDP headers in front of a datagram's payload.
pub const HEADERS: u32 = 28;

/// When datagrams are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pattern {
    /// Evenly.
    Constant,
    /// Exponential gaps with the same mean.
    Poisson,
    /// Evenly at the rate for a time, silent for a time; both exponential with these means, or exactly these.
    OnOff { on: Time, off: Time, exponential: bool },
}

/// What a flow sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Of IP packets.
    pub rate: Rate,
    /// Bytes of a datagram.
    pub payload: u32,
    pub pattern: Pattern,
    pub ecn: Ecn,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Statistics {
    pub sent: u64,
    pub received: u64,
    pub bytes_received: u64,
    pub ce_received: u64,
    /// Packets that came after one that was sent later.
    pub reordered: u64,
    /// Time from one end to the other, in picoseconds: summed, and the longest.
    pub delay_ps: u128,
    pub delay_max_ps: u64,
}

/// A flow: the source's clock and numbers, and the counts of both ends.
#[derive(Debug, Clone)]
pub struct Flow {
    load: Load,
    statistics: Statistics,
    /// Until when the current on-time lasts.
    on_until: u64,
    highest: u64,
    gap: u64,
}

impl Flow {
    pub fn new(load: Load) -> Flow {
        let gap = load.rate.time_for(Bytes::new(u64::from(load.payload + HEADERS))).as_ps();
        Flow { load, statistics: Statistics::default(), on_until: 0, highest: 0, gap }
    }

    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Takes what another has received in place of its own: two stand for the two ends of one flow.
    pub fn take_received(&mut self, other: &Flow) {
        self.statistics = Statistics { sent: self.statistics.sent, ..other.statistics };
        self.highest = other.highest;
    }

    /// The datagram that is sent at `now`.
    pub fn send(&mut self, now: u64) -> Datagram {
        let number = self.statistics.sent;
        self.statistics.sent += 1;
        Datagram { payload: self.load.payload, number, sent: now, ecn: self.load.ecn }
    }

    /// When the next datagram after one at `now` is sent.
    pub fn next(&mut self, now: u64, random: &mut Random) -> u64 {
        match self.load.pattern {
            Pattern::Constant => now + self.gap,
            Pattern::Poisson => now + random.exponential(self.gap),
            Pattern::OnOff { on, off, exponential: random_times } => {
                let mut draw = |mean: Time| {
                    if random_times { random.exponential(mean.as_ps()) } else { mean.as_ps() }
                };
                if self.on_until == 0 {
                    self.on_until = now + draw(on);
                }
                let mut at = now + self.gap;
                while at > self.on_until {
                    let silent = draw(off);
                    at = at.max(self.on_until + silent);
                    self.on_until = at + draw(on).max(1);
                }
                at
            }
        }
    }

    /// A datagram that came as bytes, and not from this source: when it was sent is not known.
    pub fn receive_unnumbered(&mut self, payload: u32, ecn: Ecn) {
        let s = &mut self.statistics;
        s.received += 1;
        s.bytes_received += u64::from(payload);
        s.ce_received += u64::from(ecn == Ecn::Ce);
    }

    pub fn receive(&mut self, now: u64, datagram: &Datagram) {
        self.receive_unnumbered(datagram.payload, datagram.ecn);
        let s = &mut self.statistics;
        let delay = now - datagram.sent;
        s.delay_ps += u128::from(delay);
        s.delay_max_ps = s.delay_max_ps.max(delay);
        if datagram.number < self.highest {
            s.reordered += 1;
        }
        self.highest = self.highest.max(datagram.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_off_sends_its_share() {
        let pattern = Pattern::OnOff { on: Time::from_ms(10), off: Time::from_ms(30), exponential: true };
        let load = Load { rate: Rate::from_mbps(8), payload: 972, pattern, ecn: Ecn::NotEct };
        let (mut flow, mut random) = (Flow::new(load), Random::new(3));
        let (mut now, mut sent) = (0, 0);
        while now < Time::from_secs(200).as_ps() {
            now = flow.next(now, &mut random);
            sent += 1;
        }
        // 1000 packets/s for a quarter of the time
        assert!((45_000..55_000).contains(&sent), "{sent}");
    }
}
