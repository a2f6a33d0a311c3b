//! Round trip and retransmission timeout: RFC 6298 as Linux's `tcp_rtt_estimator` computes it, and the smallest round trip
//! of the last 300 s.

use units::Time;

use super::config::{RTO_FALLBACK, RTO_INIT, RTO_MAX};

/// How long a smallest round trip counts (`tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW: Time = Time::from_secs(300);

#[derive(Debug, Clone)]
pub(super) struct Rtt {
    rto_min: Time,
    /// The timeout before the first sample.
    first: Time,
    /// Eight times the smoothed round trip; zero before the first sample.
    srtt8: Time,
    /// Four times the mean deviation, its largest in this round trip, and what is used.
    mdev4: Time,
    mdev_max: Time,
    rttvar: Time,
    /// Offset at which the next round trip's deviation begins.
    rtt_seq: u64,
    pub backoff: u32,
    min: [(Time, Time); 3],
}

impl Rtt {
    pub fn new(rto_min: Time) -> Rtt {
        Rtt {
            rto_min,
            first: RTO_INIT,
            srtt8: Time::ZERO,
            mdev4: Time::ZERO,
            mdev_max: rto_min,
            rttvar: Time::ZERO,
            rtt_seq: 0,
            backoff: 0,
            min: [(Time::ZERO, Time::MAX); 3],
        }
    }

    /// The handshake has given no sample, as its SYN had to be sent again.
    pub fn fall_back(&mut self) {
        self.first = RTO_FALLBACK;
    }

    /// Zero before the first sample.
    pub fn srtt(&self) -> Time {
        self.srtt8 / 8
    }

    /// [`Time::MAX`] before the first sample.
    pub fn min(&self) -> Time {
        self.min[0].1
    }

    /// A sample: the round trip of the first packet that an ACK acknowledged, and of the last one for the minimum.
    pub fn sample(&mut self, now: Time, rtt: Time, newest: Time, snd_una: u64, snd_nxt: u64) {
        let rtt = rtt.max(Time::from_us(1));
        self.update_min(now, newest.max(Time::from_ns(1)));
        if self.srtt8.is_zero() {
            self.srtt8 = rtt * 8;
            self.mdev4 = rtt * 2;
            self.rttvar = self.mdev4.max(self.rto_min);
            self.mdev_max = self.rttvar;
            self.rtt_seq = snd_nxt;
            return;
        }
        let srtt = self.srtt8 / 8;
        self.srtt8 = self.srtt8 + rtt - srtt;
        let error = if rtt > srtt {
            rtt - srtt
        } else {
            let error = srtt - rtt;
            // A falling round trip raises the deviation less.
            if error > self.mdev4 / 4 { (error - self.mdev4 / 4) / 8 + self.mdev4 / 4 } else { error }
        };
        self.mdev4 = self.mdev4 + error - self.mdev4 / 4;
        if self.mdev4 > self.mdev_max {
            self.mdev_max = self.mdev4;
            self.rttvar = self.rttvar.max(self.mdev_max);
        }
        if snd_una > self.rtt_seq {
            if self.mdev_max < self.rttvar {
                self.rttvar -= (self.rttvar - self.mdev_max) / 4;
            }
            self.rtt_seq = snd_nxt;
            self.mdev_max = self.rto_min;
        }
    }

    /// The timeout, backed off.
    pub fn rto(&self) -> Time {
        let base = if self.srtt8.is_zero() { self.first } else { self.srtt() + self.rttvar };
        let shift = self.backoff.min(20);
        Time::from_ps(base.as_ps().saturating_mul(1 << shift)).min(RTO_MAX)
    }

    /// Kathleen Nichols' windowed minimum, as Linux's `minmax`.
    fn update_min(&mut self, now: Time, rtt: Time) {
        let new = (now, rtt);
        if rtt <= self.min[0].1 || now - self.min[2].0 > MIN_RTT_WINDOW {
            self.min = [new; 3];
            return;
        }
        if rtt <= self.min[1].1 {
            self.min[1] = new;
            self.min[2] = new;
        } else if rtt <= self.min[2].1 {
            self.min[2] = new;
        }
        let age = now - self.min[0].0;
        if age > MIN_RTT_WINDOW {
            self.min = [self.min[1], self.min[2], new];
            if now - self.min[0].0 > MIN_RTT_WINDOW {
                self.min = [self.min[1], self.min[2], new];
            }
        } else if self.min[1].0 == self.min[0].0 && age > MIN_RTT_WINDOW / 4 {
            self.min[1] = new;
            self.min[2] = new;
        } else if self.min[2].0 == self.min[1].0 && age > MIN_RTT_WINDOW / 2 {
            self.min[2] = new;
        }
    }
}

/// The clock of the timestamps option: milliseconds, never zero.
pub(super) fn clock(now: Time) -> u32 {
    (now.as_ms() as u32).wrapping_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_is_never_below_the_minimum_above_the_round_trip() {
        let mut rtt = Rtt::new(Time::from_ms(200));
        assert_eq!(rtt.rto(), Time::from_secs(1));
        for i in 0..100 {
            rtt.sample(Time::from_ms(20 * i), Time::from_ms(20), Time::from_ms(20), i * 1000, i * 1000 + 1);
        }
        assert_eq!(rtt.srtt(), Time::from_ms(20));
        assert_eq!(rtt.rto(), Time::from_ms(220));
        rtt.backoff = 3;
        assert_eq!(rtt.rto(), Time::from_ms(1760));
        rtt.backoff = 30;
        assert_eq!(rtt.rto(), RTO_MAX);
    }

    #[test]
    fn the_minimum_forgets_after_its_window() {
        let mut rtt = Rtt::new(Time::from_ms(200));
        rtt.sample(Time::from_secs(1), Time::from_ms(10), Time::from_ms(10), 0, 1);
        for second in 2..400 {
            rtt.sample(Time::from_secs(second), Time::from_ms(30), Time::from_ms(30), 0, 1);
            let expected = if second <= 301 { 10 } else { 30 };
            assert_eq!(rtt.min(), Time::from_ms(expected), "after {second} s");
        }
    }
}
