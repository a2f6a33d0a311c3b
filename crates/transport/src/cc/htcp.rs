//! H-TCP: draft-leith-tcp-htcp-06, in the fixed point and with the constants of Linux's `tcp_htcp`, RTT scaling and bandwidth
//! switch on.
//!
//! Known deviations: times are milliseconds, as in Linux with HZ=1000.

use units::Time;

use super::{Ack, CongestionControl, Flow, State};

/// 1.0, 0.5 and 0.8 in 128ths.
const ALPHA_BASE: u32 = 1 << 7;
const BETA_MIN: u32 = 1 << 6;
const BETA_MAX: u32 = 102;
/// Jiffies per second.
const HZ: u64 = 1000;

/// What a spurious reduction is undone to.
#[derive(Debug, Clone, Copy)]
struct Undo {
    last_cong: u64,
    max_rtt: u64,
    old_max_b: u64,
}

#[derive(Debug)]
pub struct Htcp {
    /// Increase per round trip, and the factor of decrease, in 128ths.
    alpha: u32,
    beta: u32,
    /// Whether the adaptive back-off is in use.
    mode_switch: bool,
    pkts_acked: u32,
    packet_count: u32,
    /// Milliseconds; zero: not known.
    min_rtt: u64,
    max_rtt: u64,
    last_cong: u64,
    undo: Option<Undo>,
    // Throughput in packets per second: smallest, largest since the last congestion, largest before it, smoothed.
    min_b: u64,
    max_b: u64,
    old_max_b: u64,
    b: u64,
    last_time: u64,
}

impl Default for Htcp {
    fn default() -> Htcp {
        Htcp {
            alpha: ALPHA_BASE,
            beta: BETA_MIN,
            mode_switch: false,
            pkts_acked: 1,
            packet_count: 0,
            min_rtt: 0,
            max_rtt: 0,
            last_cong: 0,
            undo: None,
            min_b: 0,
            max_b: 0,
            old_max_b: 0,
            b: 0,
            last_time: 0,
        }
    }
}

impl Htcp {
    fn measure_rtt(&mut self, state: State, rtt: u64) {
        if self.min_rtt > rtt || self.min_rtt == 0 {
            self.min_rtt = rtt;
        }
        if state == State::Open {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            // A jump by more than 20 ms is another path, or a fault.
            if self.max_rtt < rtt && rtt <= self.max_rtt + 20 {
                self.max_rtt = rtt;
            }
        }
    }

    /// Throughput since the last congestion (draft section 3.2).
    fn measure_throughput(&mut self, flow: &Flow, acked: u32, now: u64) {
        if flow.state > State::Disorder {
            self.packet_count = 0;
            self.last_time = now;
            return;
        }
        self.packet_count += acked;
        let increase = (self.alpha >> 7).max(1);
        let elapsed = now - self.last_time;
        if self.packet_count < flow.cwnd.saturating_sub(increase)
            || elapsed < self.min_rtt
            || self.min_rtt == 0
            || elapsed == 0
        {
            return;
        }
        let b = u64::from(self.packet_count) * HZ / elapsed;
        if (now - self.last_cong) / self.min_rtt <= 3 {
            // Just after a reduction.
            (self.min_b, self.max_b, self.b) = (b, b, b);
        } else {
            self.b = (3 * self.b + b) / 4;
            self.max_b = self.max_b.max(self.b);
            self.min_b = self.min_b.min(self.max_b);
        }
        self.packet_count = 0;
        self.last_time = now;
    }

    /// Back-off: by the ratio of round trips if throughput is about what it was at the last congestion, else one half.
    fn update_beta(&mut self) {
        let (max_b, old_max_b) = (self.max_b, self.old_max_b);
        self.old_max_b = max_b;
        if 5 * max_b < 4 * old_max_b || 5 * max_b > 6 * old_max_b {
            self.beta = BETA_MIN;
            self.mode_switch = false;
            return;
        }
        if self.mode_switch && self.min_rtt > 10 && self.max_rtt > 0 {
            self.beta = (((self.min_rtt << 7) / self.max_rtt) as u32).clamp(BETA_MIN, BETA_MAX);
        } else {
            self.beta = BETA_MIN;
            self.mode_switch = true;
        }
    }

    /// Increase per round trip, from the time since the last congestion: 1 + 10 (d - 1) + ((d - 1) / 2)^2 after d > 1 seconds.
    fn update_alpha(&mut self, now: u64) {
        let mut factor = 1;
        let elapsed = now - self.last_cong;
        if elapsed > HZ {
            let more = elapsed - HZ;
            factor = 1 + (10 * more + (more / 2) * (more / 2) / HZ) / HZ;
        }
        if self.min_rtt > 0 {
            // As if the round trip were 100 ms; the ratio is bounded to 0.5 to 10, in eighths.
            let scale = ((HZ << 3) / (10 * self.min_rtt)).clamp(1 << 2, 10 << 3);
            factor = ((factor << 3) / scale).max(1);
        }
        self.alpha = (2 * factor * u64::from((1 << 7) - self.beta)).min(u64::from(u32::MAX)) as u32;
        if self.alpha == 0 {
            self.alpha = ALPHA_BASE;
        }
    }
}

impl CongestionControl for Htcp {
    fn name(&self) -> &'static str {
        "htcp"
    }

    fn init(&mut self, _flow: &mut Flow, now: Time) {
        self.last_cong = now.as_ms();
    }

    fn ssthresh(&mut self, flow: &mut Flow, now: Time) -> u32 {
        self.update_beta();
        self.update_alpha(now.as_ms());
        // The largest round trip fades, so that a change of the path is noticed.
        if self.min_rtt > 0 && self.max_rtt > self.min_rtt {
            self.max_rtt = self.min_rtt + (self.max_rtt - self.min_rtt) * 95 / 100;
        }
        ((flow.cwnd * self.beta) >> 7).max(2)
    }

    fn cong_avoid(&mut self, flow: &mut Flow, ack: &Ack) {
        if !flow.cwnd_limited() {
            return;
        }
        if flow.in_slow_start() {
            flow.slow_start(ack.acked);
            return;
        }
        if (u64::from(flow.cwnd_cnt) * u64::from(self.alpha)) >> 7 >= u64::from(flow.cwnd) {
            flow.cwnd = (flow.cwnd + 1).min(flow.cwnd_clamp);
            flow.cwnd_cnt = 0;
            self.update_alpha(ack.now.as_ms());
        } else {
            flow.cwnd_cnt += self.pkts_acked;
        }
        self.pkts_acked = 1;
    }

    fn pkts_acked(&mut self, flow: &mut Flow, ack: &Ack) {
        if flow.state == State::Open {
            self.pkts_acked = ack.acked;
        }
        if let Some(rtt) = ack.rtt {
            // Jiffies are rounded up.
            self.measure_rtt(flow.state, rtt.as_us().div_ceil(1000).max(1));
        }
        self.measure_throughput(flow, ack.acked, ack.now.as_ms());
    }

    fn set_state(&mut self, _flow: &mut Flow, state: State, now: Time) {
        match state {
            State::Open => {
                if self.undo.take().is_some() {
                    self.last_cong = now.as_ms();
                }
            }
            State::Disorder => {}
            State::Cwr | State::Recovery | State::Loss => {
                self.undo = Some(Undo {
                    last_cong: self.last_cong,
                    max_rtt: self.max_rtt,
                    old_max_b: self.old_max_b,
                });
                self.last_cong = now.as_ms();
            }
        }
    }

    fn undo_cwnd(&mut self, flow: &mut Flow) -> u32 {
        if let Some(undo) = self.undo.take() {
            self.last_cong = undo.last_cong;
            self.max_rtt = undo.max_rtt;
            self.old_max_b = undo.old_max_b;
        }
        flow.cwnd.max(flow.prior_cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Driver;
    use super::*;

    /// The draft's increase per round trip, seconds after the last congestion, for a round trip of 100 ms.
    fn draft_alpha(seconds: f64, beta: f64) -> f64 {
        let over = (seconds - 1.0).max(0.0);
        2.0 * (1.0 - beta) * (1.0 + 10.0 * over + (over / 2.0).powi(2))
    }

    #[test]
    fn the_increase_follows_the_drafts_polynomial() {
        for (ms, beta) in [(500, 64), (1000, 64), (2000, 64), (3500, 102), (10_000, 80), (60_000, 64)] {
            let mut control = Htcp { beta, min_rtt: 100, ..Htcp::default() };
            control.update_alpha(ms);
            let alpha = f64::from(control.alpha) / 128.0;
            let expected = draft_alpha(ms as f64 / 1e3, f64::from(beta) / 128.0);
            // The factor is a whole number, rounded down.
            assert!(alpha <= expected * 1.001 && alpha > expected * 0.95 - 1.0, "{ms}: {alpha} {expected}");
        }
    }

    #[test]
    fn the_increase_scales_with_the_round_trip_within_bounds() {
        let after_5_s = |min_rtt| {
            let mut control = Htcp { min_rtt, ..Htcp::default() };
            control.update_alpha(5_000);
            control.alpha / 128
        };
        assert_eq!(after_5_s(100), 45);
        assert_eq!(after_5_s(50), 22);
        assert_eq!(after_5_s(200), 90);
        // Bounded: a tenth at most, twice at least.
        assert_eq!(after_5_s(1), after_5_s(10));
        assert_eq!(after_5_s(1000), after_5_s(200));
    }

    #[test]
    fn the_back_off_is_the_ratio_of_round_trips_once_throughput_is_steady() {
        let mut control = Htcp { min_rtt: 60, max_rtt: 80, max_b: 1000, ..Htcp::default() };
        let mut driver = Driver::new(100, Time::from_ms(60));
        // Throughput not known from before: one half.
        assert_eq!(control.ssthresh(&mut driver.flow, driver.now), 50);
        // Steady, for the first time: one half, and the adaptive back-off is switched on.
        assert_eq!(control.ssthresh(&mut driver.flow, driver.now), 50);
        // 60 ms of what is left of 80 ms after fading by 5 % of the difference twice: 78 ms.
        assert_eq!(control.max_rtt, 78);
        assert_eq!(control.ssthresh(&mut driver.flow, driver.now), 100 * (60 * 128 / 78) / 128);
        // Throughput that is lower by more than a fifth: one half again.
        control.max_b = 700;
        assert_eq!(control.ssthresh(&mut driver.flow, driver.now), 50);
    }

    #[test]
    fn throughput_is_measured_per_round_trip() {
        let mut control = Htcp::default();
        let rtt = Time::from_ms(100);
        let mut driver = Driver::new(50, rtt);
        driver.flow.ssthresh = 10;
        driver.flow.cwnd_clamp = 50;
        control.init(&mut driver.flow, driver.now);
        for _ in 0..20 {
            driver.round(&mut control, rtt, 0);
        }
        // 50 packets per 100 ms.
        assert!((480..=520).contains(&control.max_b), "{}", control.max_b);
        assert_eq!(control.min_rtt, 100);
    }

    #[test]
    fn in_the_first_second_it_grows_like_reno() {
        let mut control = Htcp::default();
        let rtt = Time::from_ms(100);
        let mut driver = Driver::new(50, rtt);
        driver.flow.ssthresh = 10;
        control.init(&mut driver.flow, driver.now);
        for _ in 0..9 {
            driver.round(&mut control, rtt, 0);
        }
        assert!((57..=60).contains(&driver.flow.cwnd), "{}", driver.flow.cwnd);
        // Eight seconds later it gains some 60 packets per round trip.
        driver.now += Time::from_secs(7);
        driver.round(&mut control, rtt, 0);
        let before = driver.flow.cwnd;
        driver.round(&mut control, rtt, 0);
        assert!((20..100).contains(&(driver.flow.cwnd - before)), "{}", driver.flow.cwnd - before);
    }

    #[test]
    fn undo_brings_back_the_time_of_the_last_congestion() {
        let mut control = Htcp { last_cong: 1_000, ..Htcp::default() };
        let mut driver = Driver::new(100, Time::from_ms(100));
        let now = Time::from_secs(9);
        control.set_state(&mut driver.flow, State::Recovery, now);
        assert_eq!(control.last_cong, 9_000);
        control.undo_cwnd(&mut driver.flow);
        assert_eq!(control.last_cong, 1_000);
        control.set_state(&mut driver.flow, State::Recovery, now);
        control.set_state(&mut driver.flow, State::Open, now + Time::from_ms(40));
        assert_eq!(control.last_cong, 9_040);
    }
}
