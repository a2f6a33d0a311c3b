//! CUBIC with HyStart: RFC 9438, in the integer form and with the constants of Linux's `tcp_cubic`.
//!
//! The clock of the window function counts ticks, as Linux's. On short paths they decide: what the function says holds for a whole
//! tick, in which a window can grow by half in each round trip.

use units::Time;

use super::{Ack, CongestionControl, Event, Flow, State};
use crate::ticks::Ticks;

/// Multiplicative decrease, in 1024ths (RFC 9438 has 0.7).
const BETA: u32 = 717;
const BETA_SCALE: u32 = 1024;
/// `bic_scale`: C in RFC 9438 is 0.4 = 41 * 10 / 1024.
const BIC_SCALE: u64 = 41;
const CUBE_RTT_SCALE: u64 = BIC_SCALE * 10;
/// Times are in 1024ths of a second.
const BICTCP_HZ: u32 = 10;
const CUBE_FACTOR: u64 = (1 << (10 + 3 * BICTCP_HZ)) / CUBE_RTT_SCALE;
/// Packets acknowledged per packet of Reno's window, in eighths.
const FRIENDLY_SCALE: u32 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);

/// A window times a ratio.
fn scaled(window: u32, times: u32, of: u32) -> u32 {
    (u64::from(window) * u64::from(times) / u64::from(of)) as u32
}

/// Below this window HyStart does not look.
const HYSTART_LOW_WINDOW: u32 = 16;
/// ACKs closer than this are one train.
const HYSTART_ACK_DELTA: Time = Time::from_ms(2);
const HYSTART_MIN_SAMPLES: u32 = 8;
const HYSTART_DELAY_MIN: Time = Time::from_ms(4);
const HYSTART_DELAY_MAX: Time = Time::from_ms(16);

/// What of CUBIC can be switched; Linux's defaults.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub fast_convergence: bool,
    pub tcp_friendliness: bool,
    pub hystart: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { fast_convergence: true, tcp_friendliness: true, hystart: true }
    }
}

#[derive(Debug, Default)]
pub struct Cubic {
    options: Options,
    /// Packets to be acknowledged for one more in the window.
    cnt: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    last_tick: u64,
    origin_point: u32,
    /// Time to the origin point, in 1024ths of a second.
    k: u64,
    /// Smallest round trip seen.
    delay_min: Option<Time>,
    epoch_start: Option<u64>,
    ack_cnt: u32,
    /// Reno's window, estimated.
    tcp_cwnd: u32,

    // HyStart.
    found: bool,
    sample_cnt: u32,
    round_start: Time,
    end_seq: u64,
    last_ack: Time,
    curr_rtt: Option<Time>,
}

impl Cubic {
    pub fn new(options: Options) -> Cubic {
        Cubic { options, ..Cubic::default() }
    }

    fn reset(&mut self) {
        *self = Cubic {
            options: self.options,
            round_start: self.round_start,
            end_seq: self.end_seq,
            last_ack: self.last_ack,
            ..Cubic::default()
        };
    }

    fn hystart_reset(&mut self, flow: &Flow, now: Time) {
        self.round_start = now;
        self.last_ack = now;
        self.end_seq = flow.snd_nxt;
        self.curr_rtt = None;
        self.sample_cnt = 0;
    }

    /// Sets `cnt` (`bictcp_update`).
    fn update(&mut self, cwnd: u32, acked: u32, now: Time, ticks: Ticks) {
        let now = ticks.at(now);
        self.ack_cnt += acked;
        if self.last_cwnd == cwnd && now - self.last_tick <= ticks.per_second / 32 {
            return;
        }
        if self.epoch_start.is_none() || now != self.last_tick {
            self.last_cwnd = cwnd;
            self.last_tick = now;
            self.curve(cwnd, acked, ticks);
        }
        if self.options.tcp_friendliness {
            let delta = ((cwnd * FRIENDLY_SCALE) >> 3).max(1);
            let packets = self.ack_cnt.saturating_sub(1) / delta;
            self.ack_cnt -= packets * delta;
            self.tcp_cwnd += packets;
            if self.tcp_cwnd > cwnd {
                self.cnt = self.cnt.min(cwnd / (self.tcp_cwnd - cwnd));
            }
        }
        self.cnt = self.cnt.max(2);
    }

    /// The window function (RFC 9438 section 4.2).
    fn curve(&mut self, cwnd: u32, acked: u32, ticks: Ticks) {
        let now = self.last_tick;
        let epoch_start = *self.epoch_start.get_or_insert_with(|| {
            self.ack_cnt = acked;
            self.tcp_cwnd = cwnd;
            if self.last_max_cwnd <= cwnd {
                self.k = 0;
                self.origin_point = cwnd;
            } else {
                self.k = cube_root(CUBE_FACTOR * u64::from(self.last_max_cwnd - cwnd));
                self.origin_point = self.last_max_cwnd;
            }
            now
        });
        let elapsed = now - epoch_start + self.delay_min.map_or(0, |delay| ticks.of(delay));
        let t = (elapsed << BICTCP_HZ) / ticks.per_second;
        let offset = t.abs_diff(self.k).min(1 << 17);
        let delta = ((CUBE_RTT_SCALE * offset * offset * offset) >> (10 + 3 * BICTCP_HZ)).min(1 << 30) as u32;
        let target = if t < self.k {
            self.origin_point.saturating_sub(delta)
        } else {
            self.origin_point.saturating_add(delta)
        };
        self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        // While nothing is known of the path: 5 % per round trip.
        if self.last_max_cwnd == 0 {
            self.cnt = self.cnt.min(20);
        }
    }

    fn hystart_update(&mut self, flow: &mut Flow, delay: Time, now: Time) {
        if flow.snd_una > self.end_seq {
            self.hystart_reset(flow, now);
        }
        if flow.cwnd < HYSTART_LOW_WINDOW {
            return;
        }
        let delay_min = self.delay_min.unwrap_or(delay);
        if now.saturating_sub(self.last_ack) <= HYSTART_ACK_DELTA {
            self.last_ack = now;
            let mut threshold = delay_min + hystart_ack_delay(flow);
            if !flow.paced {
                threshold = threshold / 2;
            }
            if now - self.round_start > threshold {
                self.found = true;
                flow.ssthresh = flow.cwnd;
            }
        }
        let curr = self.curr_rtt.map_or(delay, |rtt| rtt.min(delay));
        self.curr_rtt = Some(curr);
        if self.sample_cnt < HYSTART_MIN_SAMPLES {
            self.sample_cnt += 1;
        } else if curr > delay_min + (delay_min / 8).clamp(HYSTART_DELAY_MIN, HYSTART_DELAY_MAX) {
            self.found = true;
            flow.ssthresh = flow.cwnd;
        }
    }
}

/// Time that four of the largest segments take, at most a millisecond.
fn hystart_ack_delay(flow: &Flow) -> Time {
    if flow.pacing_rate.is_zero() {
        return Time::ZERO;
    }
    flow.pacing_rate.time_for(units::Bytes::new(4 * 65_536)).min(Time::from_ms(1))
}

/// The largest integer whose cube is not above `a`.
fn cube_root(a: u64) -> u64 {
    let mut root = 0u64;
    for bit in (0..22).rev() {
        let next = root | 1 << bit;
        if next * next * next <= a {
            root = next;
        }
    }
    root
}

impl CongestionControl for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn init(&mut self, flow: &mut Flow, now: Time) {
        self.reset();
        self.hystart_reset(flow, now);
    }

    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        self.epoch_start = None;
        self.last_max_cwnd = if flow.cwnd < self.last_max_cwnd && self.options.fast_convergence {
            scaled(flow.cwnd, BETA_SCALE + BETA, 2 * BETA_SCALE)
        } else {
            flow.cwnd
        };
        scaled(flow.cwnd, BETA, BETA_SCALE).max(2)
    }

    fn cong_avoid(&mut self, flow: &mut Flow, ack: &Ack) {
        if let Some(acked) = flow.beyond_slow_start(ack.acked) {
            self.update(flow.cwnd, acked, ack.now, flow.ticks);
            flow.additive_increase(self.cnt, acked);
        }
    }

    fn pkts_acked(&mut self, flow: &mut Flow, ack: &Ack) {
        let Some(delay) = ack.rtt else { return };
        // Samples right after a reduction still have its queue in them.
        if self
            .epoch_start
            .is_some_and(|start| flow.ticks.at(ack.now).saturating_sub(start) < flow.ticks.per_second)
        {
            return;
        }
        if self.delay_min.is_none_or(|min| min > delay) {
            self.delay_min = Some(delay);
        }
        if !self.found && flow.in_slow_start() && self.options.hystart {
            self.hystart_update(flow, delay, ack.now);
        }
    }

    fn set_state(&mut self, flow: &mut Flow, state: State, now: Time) {
        if state == State::Loss {
            self.reset();
            self.hystart_reset(flow, now);
        }
    }

    fn cwnd_event(&mut self, flow: &mut Flow, event: Event, now: Time) {
        // After an idle time the curve goes on where it was.
        if event == Event::TxStart
            && let Some(start) = &mut self.epoch_start
        {
            let ticks = flow.ticks;
            *start = (*start + ticks.at(now) - ticks.at(flow.last_sent)).min(ticks.at(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Driver;
    use super::*;

    #[test]
    fn cube_roots() {
        for a in [0, 1, 7, 8, 26, 27, 1 << 40, 999_999, 1_000_000, 2_681_735_677 * 100_000] {
            let root = cube_root(a);
            assert!(root.pow(3) <= a && (root + 1).pow(3) > a, "{a}: {root}");
        }
    }

    /// RFC 9438 section 4.2, without losses from a reduction on; Reno's window, where it is larger (section 4.3), for comparison.
    #[test]
    fn the_window_follows_its_function() {
        for (rtt_ms, w_max) in [(20, 500), (50, 400), (100, 2000), (10, 60)] {
            let rtt = Time::from_ms(rtt_ms);
            let mut control = Cubic::new(Options { tcp_friendliness: false, ..Options::default() });
            let mut driver = Driver::new(w_max, rtt);
            driver.flow.ssthresh = control.ssthresh(&mut driver.flow, driver.now);
            driver.flow.cwnd = driver.flow.ssthresh;
            let start = driver.now + rtt;
            let w_max = f64::from(w_max);
            let k = ((w_max - f64::from(driver.flow.cwnd)) / 0.4).cbrt();
            while driver.now.saturating_sub(start) < Time::from_secs_f64(2.0 * k) {
                driver.round(&mut control, rtt, 0);
                let t = (driver.now - start).as_secs_f64();
                let expected = 0.4 * (t - k).powi(3) + w_max;
                let cwnd = f64::from(driver.flow.cwnd);
                assert!(
                    (cwnd - expected).abs() < 2.0 + expected * 0.02,
                    "{rtt} {t:.2} s: {cwnd} {expected:.1}"
                );
            }
        }
    }

    /// RFC 9438 section 4.3: where Reno with the same average window would have more, it has as much.
    #[test]
    fn on_short_paths_it_is_as_fast_as_reno() {
        let rtt = Time::from_ms(10);
        let mut control = Cubic::default();
        let mut driver = Driver::new(40, rtt);
        driver.flow.ssthresh = control.ssthresh(&mut driver.flow, driver.now);
        driver.flow.cwnd = driver.flow.ssthresh;
        for round in 1..=60 {
            driver.round(&mut control, rtt, 0);
            // alpha = 3 (1 - 0.7) / (1 + 0.7) per round trip.
            let expected = 28.0 + 9.0 / 17.0 * f64::from(round);
            assert!((f64::from(driver.flow.cwnd) - expected).abs() < 3.5, "{round}: {}", driver.flow.cwnd);
        }
    }

    /// Linux 6.18 at 250 ticks a second and 1.07 ms, after some reductions: 30 packets for 32 ms, then 35, 53, 79 and 118.
    #[test]
    fn what_the_function_says_holds_for_a_tick() {
        let rtt = Time::from_us(1070);
        let growth = |ticks: u32| {
            let mut control = Cubic::default();
            let mut driver = Driver::new(42, rtt);
            driver.flow.ticks = Ticks::new(ticks, 0);
            driver.flow.ssthresh = control.ssthresh(&mut driver.flow, driver.now);
            driver.flow.cwnd = driver.flow.ssthresh;
            let windows: Vec<u32> = (0..45)
                .map(|_| {
                    driver.round(&mut control, rtt, 0);
                    driver.flow.cwnd
                })
                .collect();
            windows.windows(5).map(|w| f64::from(w[4]) / f64::from(w[0])).fold(0.0, f64::max)
        };
        let (slow, fast) = (growth(250), growth(1000));
        assert!(slow > 3.0 && fast < 2.0, "{slow} {fast}");
    }
}
