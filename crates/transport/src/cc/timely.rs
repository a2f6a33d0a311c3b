//! TIMELY: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, Algorithm 1. It sets a rate,
//! from the gradient of the round trip; the window is only kept out of its way.
//!
//! Known deviations:
//! - The paper's thresholds are for paths of some 20 us. Where the smallest round trip is above T_low, they count from it.
//! - A completion event is a segment of 16 KiB acknowledged, and at most one per smallest round trip counts: the interval of Zhu et
//!   al., "ECN or Delay", CoNEXT 2016, from which the weight of the filter is too.
//! - The smallest round trip, by which gradients are divided, is measured. Of a segment's packets the smallest round trip counts:
//!   this leaves out the time that sending the segment takes, which the paper computes from the rate of the wire.
//! - A flow starts at its first window per round trip, where the paper's starts at the line rate over the number of flows.
//! - A gradient counts as at most 1, and the rate does not go below 1 Mbit/s.
//! - Losses, which its lossless network has not, do not change the rate. A retransmission timeout halves it, as in its successor
//!   (Kumar et al., "Swift", SIGCOMM 2020, Algorithm 1), and the window starts slowly (RFC 5681 section 3.1) until recovery ends.

use units::{Rate, Time};

use super::{Ack, CongestionControl, Flow, RateSample, State};

const T_LOW: Time = Time::from_us(50);
const T_HIGH: Time = Time::from_us(500);
/// Additive increment delta.
const ADDSTEP: u64 = 10_000_000;
/// beta = 0.8, the multiplicative decrement.
const BETA_NUMERATOR: u128 = 4;
const BETA_DENOMINATOR: u128 = 5;
/// The filter of differences keeps an eighth of what it had: alpha = 0.875.
const EWMA_DIVISOR: i64 = 8;
/// Hyperactive increase: five increments after five events with a gradient that is not positive.
const HAI_THRESH: u32 = 5;
const SEGMENT: u64 = 16_384;
const MIN_RATE: u64 = 1_000_000;

#[derive(Debug, Default)]
pub struct Timely {
    /// Bits per second.
    rate: u64,
    prev_rtt: Option<Time>,
    /// Filtered difference of two round trips in picoseconds.
    rtt_diff: i64,
    /// Events in a row whose gradient was not positive.
    falling: u32,
    /// Bytes acknowledged since the last event, their smallest round trip, and when that event was.
    acked: u64,
    segment_rtt: Option<Time>,
    last_event: Time,
}

impl Timely {
    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.rate)
    }

    /// Algorithm 1, for a completion event.
    fn update(&mut self, new_rtt: Time, min_rtt: Time) {
        let Some(prev) = self.prev_rtt.replace(new_rtt) else { return };
        let new_diff = new_rtt.as_ps() as i64 - prev.as_ps() as i64;
        self.rtt_diff = self.rtt_diff / EWMA_DIVISOR + (new_diff - new_diff / EWMA_DIVISOR);
        self.falling = if self.rtt_diff <= 0 { self.falling + 1 } else { 0 };
        let base = if min_rtt > T_LOW { min_rtt } else { Time::ZERO };
        let (low, high) = (base + T_LOW, base + T_HIGH);
        if new_rtt < low {
            self.rate += ADDSTEP;
        } else if new_rtt > high {
            // By beta * (1 - T_high / new_rtt).
            self.decrease(u128::from((new_rtt - high).as_ps()), u128::from(new_rtt.as_ps()));
        } else if self.rtt_diff <= 0 {
            let steps = if self.falling >= HAI_THRESH { HAI_THRESH } else { 1 };
            self.rate += u64::from(steps) * ADDSTEP;
        } else {
            self.decrease(u128::from(self.rtt_diff.unsigned_abs()), u128::from(min_rtt.as_ps()));
        }
    }

    /// Cuts the rate by beta times a share, of at most 1.
    fn decrease(&mut self, part: u128, of: u128) {
        let cut = u128::from(self.rate) * part.min(of) * BETA_NUMERATOR / (of * BETA_DENOMINATOR).max(1);
        self.rate = (self.rate - cut as u64).max(MIN_RATE);
    }

    fn set(&self, flow: &mut Flow) {
        flow.pacing_rate = self.rate();
        flow.cwnd = self.window(flow);
    }

    /// Twice what the rate has out in a round trip, and two segments.
    fn window(&self, flow: &Flow) -> u32 {
        let out = u128::from(self.rate) * u128::from(flow.srtt.as_ps()) / 8_000_000_000_000;
        let bytes = 2 * out + 2 * u128::from(SEGMENT);
        (bytes / u128::from(flow.mss)).clamp(10, u128::from(flow.cwnd_clamp)) as u32
    }
}

impl CongestionControl for Timely {
    fn name(&self) -> &'static str {
        "timely"
    }

    fn init(&mut self, flow: &mut Flow, now: Time) {
        let rtt = if flow.srtt.is_zero() { Time::from_ms(1) } else { flow.srtt };
        let bits = u128::from(flow.cwnd) * u128::from(flow.mss) * 8;
        self.rate = ((bits * 1_000_000_000_000 / u128::from(rtt.as_ps())) as u64).max(MIN_RATE);
        self.last_event = now;
        self.set(flow);
    }

    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        flow.ssthresh
    }

    fn cong_avoid(&mut self, _flow: &mut Flow, _ack: &Ack) {}

    fn cong_control(&mut self, flow: &mut Flow, ack: &Ack, sample: &RateSample) -> bool {
        self.acked += u64::from(sample.acked_sacked) * u64::from(flow.mss);
        if let Some(rtt) = sample.rtt {
            self.segment_rtt = Some(self.segment_rtt.map_or(rtt, |least| least.min(rtt)));
        }
        if self.acked >= SEGMENT
            && ack.now.saturating_sub(self.last_event) >= flow.min_rtt
            && let Some(rtt) = self.segment_rtt.take()
        {
            self.acked = 0;
            self.last_event = ack.now;
            self.update(rtt, flow.min_rtt);
        }
        let slow = flow.cwnd.saturating_add(sample.acked_sacked);
        self.set(flow);
        if flow.state == State::Loss {
            flow.cwnd = flow.cwnd.min(slow);
        }
        true
    }

    fn takes_over(&self) -> bool {
        true
    }

    fn set_state(&mut self, flow: &mut Flow, state: State, _now: Time) {
        if state == State::Loss {
            self.rate = (self.rate / 2).max(MIN_RATE);
            flow.pacing_rate = self.rate();
        }
    }

    fn undo_cwnd(&mut self, flow: &mut Flow) -> u32 {
        flow.cwnd
    }

    fn needs_pacing(&self) -> bool {
        true
    }

    fn burst(&self, flow: &Flow) -> Option<u32> {
        Some(((SEGMENT / u64::from(flow.mss)) as u32).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Driver, MSS};
    use super::*;

    const MIN_RTT: Time = Time::from_us(20);

    /// At 1 Gbit/s, after a round trip of that many microseconds.
    fn after(rtt_us: u64) -> Timely {
        Timely { rate: 1_000_000_000, prev_rtt: Some(Time::from_us(rtt_us)), ..Timely::default() }
    }

    #[test]
    fn below_t_low_it_adds_whatever_the_gradient() {
        for previous in [25, 45] {
            let mut control = after(previous);
            control.update(Time::from_us(49), MIN_RTT);
            assert_eq!(control.rate, 1_010_000_000);
        }
    }

    #[test]
    fn above_t_high_it_cuts_whatever_the_gradient() {
        for (previous, rtt) in [(500, 501), (700, 600), (900, 1000), (5000, 5000)] {
            let mut control = after(previous);
            control.update(Time::from_us(rtt), MIN_RTT);
            let expected = 1e9 * (1.0 - 0.8 * (1.0 - 500.0 / rtt as f64));
            assert!((control.rate as f64 - expected).abs() < 2.0, "{rtt}: {} {expected}", control.rate);
        }
    }

    #[test]
    fn between_them_a_rising_round_trip_cuts_by_its_gradient() {
        for (rise, kept) in [(8, 1.0 - 0.8 * 0.875 * 8.0 / 20.0), (80, 0.2)] {
            let mut control = after(100);
            control.update(Time::from_us(100 + rise), MIN_RTT);
            let expected = 1e9 * kept;
            assert!((control.rate as f64 - expected).abs() < 2.0, "{rise}: {} {expected}", control.rate);
        }
    }

    #[test]
    fn a_falling_one_adds_and_after_five_times_five_times_as_much() {
        let mut control = after(200);
        let mut steps = Vec::new();
        for i in 1..=8 {
            let before = control.rate;
            control.update(Time::from_us(200 - i), MIN_RTT);
            steps.push((control.rate - before) / ADDSTEP);
        }
        assert_eq!(steps, [1, 1, 1, 1, 5, 5, 5, 5]);
        // A rise begins the count again.
        control.update(Time::from_us(250), MIN_RTT);
        control.rtt_diff = 0;
        let before = control.rate;
        control.update(Time::from_us(249), MIN_RTT);
        assert_eq!(control.rate - before, ADDSTEP);
    }

    #[test]
    fn a_timeout_halves_the_rate_and_the_window_starts_slowly() {
        let rtt = Time::from_us(40);
        let mut control = Timely::default();
        let mut driver = Driver::new(40, rtt);
        control.init(&mut driver.flow, driver.now);
        let (rate, cwnd) = (control.rate, driver.flow.cwnd);
        control.set_state(&mut driver.flow, State::Loss, driver.now);
        assert_eq!(driver.flow.pacing_rate, Rate::from_bps(rate / 2));
        (driver.flow.state, driver.flow.cwnd) = (State::Loss, 1);
        driver.ack(&mut control, driver.now + rtt, 1, 0);
        assert_eq!(driver.flow.cwnd, 2);
        driver.ack(&mut control, driver.now + Time::from_us(1), 2, 0);
        assert_eq!(driver.flow.cwnd, 4);
        driver.flow.state = State::Open;
        driver.ack(&mut control, driver.now + Time::from_us(1), 1, 0);
        assert!(driver.flow.cwnd > cwnd / 2, "{}", driver.flow.cwnd);
        control.rate = MIN_RATE;
        control.set_state(&mut driver.flow, State::Loss, driver.now);
        assert_eq!(control.rate, MIN_RATE);
    }

    #[test]
    fn differences_are_filtered() {
        let mut control = after(100);
        let mut expected = 0.0;
        let mut last = 100.0;
        for rtt in [110u64, 90, 150, 151, 152, 100] {
            control.update(Time::from_us(rtt), MIN_RTT);
            expected = expected * 0.125 + 0.875 * (rtt as f64 - last);
            last = rtt as f64;
            assert!((control.rtt_diff as f64 / 1e6 - expected).abs() < 1e-3);
        }
    }

    #[test]
    fn on_long_paths_thresholds_count_from_the_smallest_round_trip() {
        let min_rtt = Time::from_ms(20);
        let mut control = after(20_040);
        control.update(Time::from_us(20_049), min_rtt);
        assert_eq!(control.rate, 1_010_000_000);
        control.update(Time::from_us(20_501), min_rtt);
        assert!(control.rate < 1_010_000_000);
    }

    #[test]
    fn events_are_segments_and_not_closer_than_a_round_trip() {
        let rtt = Time::from_us(40);
        let mut control = Timely::default();
        let mut driver = Driver::new(40, rtt);
        control.init(&mut driver.flow, driver.now);
        assert_eq!(driver.flow.pacing_rate, Rate::from_bps(40 * u64::from(MSS) * 8 * 25_000));
        let mut rates = Vec::new();
        for ack in 1..=100 {
            let at = driver.now + if ack == 1 { rtt } else { Time::from_us(1) };
            driver.ack(&mut control, at, 1, 0);
            rates.push(control.rate);
        }
        rates.dedup();
        // 17 packets of 1000 bytes are a segment, but 40 lie between two that count. Three do in 140 us; the first is the base.
        assert_eq!(rates.len(), 3, "{rates:?}");
        assert!(driver.flow.cwnd > 40);
    }
}
