//! UDP: sources of a known pattern, and what arrives of them.

use transport::segment::Ecn;
use units::{Rate, Time};
use wire::packet::Datagram;

use crate::node::NodeId;
use units::Random;

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

#[derive(Debug, Clone)]
pub struct UdpFlow {
    pub from: NodeId,
    pub to: NodeId,
    pub start: Time,
    pub stop: Option<Time>,
    /// Of IP packets.
    pub rate: Rate,
    /// Bytes of a datagram.
    pub payload: u32,
    pub pattern: Pattern,
    pub ecn: Ecn,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UdpStatistics {
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

#[derive(Debug)]
pub(crate) struct Source {
    pub flow: UdpFlow,
    pub host: u32,
    pub peer_host: u32,
    pub hash: u32,
    pub statistics: UdpStatistics,
    /// Until when the current on-time lasts.
    on_until: u64,
    highest: u64,
    pub gap: u64,
}

impl Source {
    pub fn new(flow: UdpFlow, host: u32, peer_host: u32, hash: u32) -> Source {
        let gap = flow.rate.time_for(units::Bytes::new(u64::from(flow.payload + 28))).as_ps();
        Source {
            flow,
            host,
            peer_host,
            hash,
            statistics: UdpStatistics::default(),
            on_until: 0,
            highest: 0,
            gap,
        }
    }

    /// When the next datagram after one at `now` is sent.
    pub fn next(&mut self, now: u64, random: &mut Random) -> u64 {
        match self.flow.pattern {
            Pattern::Constant => now + self.gap,
            Pattern::Poisson => now + exponential(random, self.gap),
            Pattern::OnOff { on, off, exponential: random_times } => {
                let mut draw = |mean: Time| {
                    if random_times { exponential(random, mean.as_ps()) } else { mean.as_ps() }
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

/// An exponential variate.
pub(crate) fn exponential(random: &mut Random, mean: u64) -> u64 {
    (-ln(1.0 - random.unit()) * mean as f64) as u64
}

/// The natural logarithm of a number in (0, 1], from basic operations alone: the same bits on every machine.
fn ln(x: f64) -> f64 {
    const LN_2: f64 = std::f64::consts::LN_2;
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let mut power = t;
    let mut sum = 0.0;
    for k in 0..12 {
        sum += power / (2 * k + 1) as f64;
        power *= square;
    }
    exponent as f64 * LN_2 + 2.0 * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let x = 1.0 - random.unit();
            assert!((ln(x) - x.ln()).abs() < 1e-14 * (1.0 + x.ln().abs()), "{x}");
        }
    }

    #[test]
    fn on_off_sends_its_share() {
        let pattern = Pattern::OnOff { on: Time::from_ms(10), off: Time::from_ms(30), exponential: true };
        let flow = UdpFlow {
            from: NodeId(0),
            to: NodeId(1),
            start: Time::ZERO,
            stop: None,
            rate: Rate::from_mbps(8),
            payload: 972,
            pattern,
            ecn: Ecn::NotEct,
        };
        let (mut source, mut random) = (Source::new(flow, 0, 1, 0), Random::new(3));
        let (mut now, mut sent) = (0, 0);
        while now < Time::from_secs(200).as_ps() {
            now = source.next(now, &mut random);
            sent += 1;
        }
        // 1000 packets/s for a quarter of the time
        assert!((45_000..55_000).contains(&sent), "{sent}");
    }
}
