//! TIMELY: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, Algorithm 1. It sets a rate,
//! from the gradient of the round trip; the window is only kept out of its way.
//!
//! Known deviations:
//! - The paper's thresholds are for paths of some 20 us. Where the smallest round trip is above T_low, they count from it
//!   (`thresholds=path`).
//! - A completion event is a segment of 16 KiB acknowledged, and at most one per smallest round trip counts: the interval of Zhu et
//!   al., "ECN or Delay", CoNEXT 2016, from which the weight of the filter is too.
//! - The smallest round trip, by which gradients are divided, is measured. Of a segment's packets the smallest round trip counts:
//!   this leaves out the time that sending the segment takes, which the paper computes from the rate of the wire.
//! - A flow starts at its first window per round trip, where the paper's starts at the line rate over the number of flows.
//! - A gradient counts as at most 1, and the rate does not go below 1 Mbit/s.
//! - Losses, which its lossless network has not, do not change the rate. A retransmission timeout halves it, as in its successor
//!   (Kumar et al., "Swift", SIGCOMM 2020, Algorithm 1), and the window starts slowly (RFC 5681 section 3.1) until recovery ends.
//!
//! Parameters make of it the forms that have been compared with switches that stamp packets:
//! - `signal=stamp`: what switches stamped takes the place of the round trip, in the gradient, and with `thresholds_on=signal` for
//!   T_low and T_high too. `signal=rtt_less_hops`: the round trip less a constant for each hop (`hop_delay`).
//! - `patched=yes`: Zhu et al., section 6: the gradient only weighs between the increase and a decrease by how far the signal is
//!   above T_low.
//! - `step=ack`, `send=window`, `scaled=yes`, `most_cut=0.5`, `raw_falls=yes`: as the first author of "Switches Know the Exact
//!   Amount of Congestion" (2019) published it for ns-2: a step for each ACK, the increment and the cut above T_high in proportion to
//!   the time since the last step, a step halves the rate at most, and the hyperactive increase counts differences, not filtered. The
//!   window is the rate over a round trip, and packets are not spaced.

use units::{Rate, Time};

use super::{Ack, CongestionControl, Flow, Options, RateSample, StampField, State};

/// The filter of differences keeps an eighth of what it had: alpha = 0.875.
const ALPHA: f64 = 0.875;
/// beta, the multiplicative decrement.
const BETA: f64 = 0.8;
/// Hyperactive increase: five increments after five events with a gradient that is not positive.
const HAI_THRESH: u32 = 5;
const SEGMENT: u64 = 16_384;
/// Of IPv4, and of TCP without options.
const HEADERS: u32 = 40;
/// Parts of one, in which alpha and beta count.
const ONE: i128 = 1_000_000;

/// What the gradient is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Rtt,
    RttLessHops,
    Stamp,
}

#[derive(Debug)]
pub struct Timely {
    source: Source,
    /// T_low and T_high are compared with the signal, not with the round trip; and count from the smallest round trip of a long path.
    thresholds_on_signal: bool,
    thresholds_of_path: bool,
    t_low: Time,
    t_high: Time,
    /// Additive increment delta, bits per second.
    delta: u64,
    /// In millionths.
    alpha: i128,
    beta: u128,
    most_cut: u128,
    hai: u32,
    raw_falls: bool,
    patched: bool,
    scaled: bool,
    /// Bytes of a segment; 0: each ACK is an event.
    segment: u64,
    windowed: bool,
    /// By which gradients are divided, if not by the smallest round trip that was measured.
    fixed_min: Option<Time>,
    hop_delay: Time,
    start_rate: Option<Rate>,
    min_rate: u64,
    max_rate: u64,
    stamps: StampField,

    /// Bits per second.
    rate: u64,
    prev: Option<u64>,
    /// Filtered difference of two signals in picoseconds.
    diff: i64,
    /// Events in a row whose gradient was not positive.
    falling: u32,
    /// Bytes acknowledged since the last event, their smallest round trip and signal, and when that event was.
    acked: u64,
    segment_rtt: Option<Time>,
    segment_signal: Option<u64>,
    last_event: Time,
}

/// An event: the signal in picoseconds, the round trip, and the time since the last one.
#[derive(Debug, Clone, Copy)]
struct Sample {
    signal: u64,
    rtt: Time,
    since: Time,
}

impl Timely {
    pub fn new(options: &mut Options) -> Timely {
        let yes = [("no", false), ("yes", true)];
        let parts = |number: f64| (number * ONE as f64).round();
        Timely {
            source: options.one_of(
                "signal",
                &[("rtt", Source::Rtt), ("rtt_less_hops", Source::RttLessHops), ("stamp", Source::Stamp)],
            ),
            thresholds_on_signal: options.one_of("thresholds_on", &[("rtt", false), ("signal", true)]),
            thresholds_of_path: options.one_of("thresholds", &[("path", true), ("fixed", false)]),
            t_low: options.time("t_low", Time::from_us(50)),
            t_high: options.time("t_high", Time::from_us(500)),
            delta: options.rate("delta", Rate::from_mbps(10)).as_bps(),
            alpha: parts(options.number("alpha", ALPHA, 0.0..=1.0)) as i128,
            beta: parts(options.number("beta", BETA, 0.0..=1.0)) as u128,
            most_cut: parts(options.number("most_cut", 1.0, 0.0..=1.0)) as u128,
            hai: options.count("hai", HAI_THRESH, 1..=1000),
            raw_falls: options.one_of("raw_falls", &yes),
            patched: options.one_of("patched", &yes),
            scaled: options.one_of("scaled", &yes),
            segment: options.one_of("step", &[("segment", SEGMENT), ("ack", 0)]),
            windowed: options.one_of("send", &[("paced", false), ("window", true)]),
            fixed_min: options.given_time("min_rtt"),
            hop_delay: options.time("hop_delay", Time::ZERO),
            start_rate: options.given_rate("start_rate"),
            min_rate: options.rate("min_rate", Rate::from_mbps(1)).as_bps(),
            max_rate: options.rate("max_rate", Rate::from_gbps(1_000_000)).as_bps(),
            stamps: StampField::new(options),
            rate: 0,
            prev: None,
            diff: 0,
            falling: 0,
            acked: 0,
            segment_rtt: None,
            segment_signal: None,
            last_event: Time::ZERO,
        }
    }

    pub fn rate(&self) -> Rate {
        Rate::from_bps(self.rate)
    }

    /// Algorithm 1, for a completion event.
    fn update(&mut self, sample: Sample, min_rtt: Time) {
        let Some(prev) = self.prev.replace(sample.signal) else { return };
        let new_diff = sample.signal as i64 - prev as i64;
        let keep = ONE - self.alpha;
        let kept = |value: i64| (i128::from(value) * keep / ONE) as i64;
        self.diff = kept(self.diff) + (new_diff - kept(new_diff));
        let falls = if self.raw_falls { new_diff < 0 } else { self.diff <= 0 };
        self.falling = if falls { self.falling + 1 } else { 0 };
        let compared = if self.thresholds_on_signal { Time::from_ps(sample.signal) } else { sample.rtt };
        let base = if self.thresholds_of_path && min_rtt > self.t_low { min_rtt } else { Time::ZERO };
        let (low, high) = (base + self.t_low, base + self.t_high);
        let min_rtt = self.fixed_min.unwrap_or(min_rtt);
        // The part of a smallest round trip that has gone by.
        let part = if self.scaled { sample.since.min(min_rtt) } else { min_rtt };
        let scaled = |value: u64| {
            (u128::from(value) * u128::from(part.as_ps()) / u128::from(min_rtt.as_ps()).max(1)) as u64
        };
        if compared < low {
            self.rate += scaled(self.delta);
        } else if compared > high {
            // By beta * (1 - T_high / new_rtt).
            let over = (compared - high).as_ps();
            self.decrease(u128::from(scaled(over)), u128::from(compared.as_ps()));
        } else if self.patched {
            self.patched_step(compared, low, min_rtt, scaled(self.delta));
        } else if self.diff <= 0 {
            let steps = if self.falling >= self.hai { HAI_THRESH } else { 1 };
            self.rate += u64::from(steps) * scaled(self.delta);
        } else {
            self.decrease(u128::from(self.diff.unsigned_abs()), u128::from(min_rtt.as_ps()));
        }
        self.rate = self.rate.min(self.max_rate);
    }

    /// Zhu et al., section 6: `w` of the decrease, from 0 at a gradient of -1/4 to 1 at 1/4.
    fn patched_step(&mut self, compared: Time, low: Time, min_rtt: Time, delta: u64) {
        let gradient = self.diff as f64 / min_rtt.as_ps() as f64;
        let w = (2.0 * gradient + 0.5).clamp(0.0, 1.0);
        let error = (compared - low).as_ps() as f64 / low.as_ps().max(1) as f64;
        let beta = self.beta as f64 / ONE as f64;
        let cut = (beta * w * error).min(self.most_cut as f64 / ONE as f64);
        let rate = delta as f64 * (1.0 - w) + self.rate as f64 * (1.0 - cut);
        self.rate = (rate as u64).max(self.min_rate);
    }

    /// Cuts the rate by beta times a share, of at most 1.
    fn decrease(&mut self, part: u128, of: u128) {
        let rate = u128::from(self.rate);
        let cut = rate * part.min(of) * self.beta / (of * ONE as u128).max(1);
        let cut = cut.min(rate * self.most_cut / ONE as u128);
        self.rate = (self.rate - cut as u64).max(self.min_rate);
    }

    fn set(&self, flow: &mut Flow) {
        let clamp = u128::from(flow.cwnd_clamp);
        let bits = u128::from(self.rate);
        if self.windowed {
            // The rate over the last round trip, headers counted, to the nearest packet.
            let rtt = if flow.last_rtt.is_zero() { flow.srtt } else { flow.last_rtt };
            let packet = u128::from(flow.mss + HEADERS) * 8_000_000_000_000;
            flow.cwnd = ((bits * u128::from(rtt.as_ps()) + packet / 2) / packet).clamp(1, clamp) as u32;
            return;
        }
        flow.pacing_rate = self.rate();
        // Twice what the rate has out in a round trip, and two segments.
        let out = bits * u128::from(flow.srtt.as_ps()) / 8_000_000_000_000;
        let bytes = 2 * out + 2 * u128::from(SEGMENT);
        flow.cwnd = (bytes / u128::from(flow.mss)).clamp(10, clamp) as u32;
    }

    /// The signal of an ACK, in picoseconds.
    fn signal_of(&mut self, rtt: Time) -> Option<u64> {
        match self.source {
            Source::Rtt => Some(rtt.as_ps()),
            Source::RttLessHops => Some(rtt.saturating_sub(self.hop_delay).as_ps()),
            Source::Stamp => self.stamps.take().map(|ps| ps as u64),
        }
    }
}

impl CongestionControl for Timely {
    fn name(&self) -> &'static str {
        "timely"
    }

    fn init(&mut self, flow: &mut Flow, now: Time) {
        let rtt = if flow.srtt.is_zero() { Time::from_ms(1) } else { flow.srtt };
        let bits = u128::from(flow.cwnd) * u128::from(flow.mss) * 8;
        let first = ((bits * 1_000_000_000_000 / u128::from(rtt.as_ps())) as u64).max(self.min_rate);
        self.rate = self.start_rate.map_or(first, Rate::as_bps);
        self.last_event = now;
        self.set(flow);
    }

    fn signal(&mut self, _flow: &mut Flow, _now: Time, kind: u16, data: &[u8]) {
        self.stamps.note(kind, data);
    }

    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        flow.ssthresh
    }

    fn cong_avoid(&mut self, _flow: &mut Flow, _ack: &Ack) {}

    fn cong_control(&mut self, flow: &mut Flow, ack: &Ack, sample: &RateSample) -> bool {
        self.acked += u64::from(sample.acked_sacked) * u64::from(flow.mss);
        if let Some(rtt) = sample.rtt {
            self.segment_rtt = Some(self.segment_rtt.map_or(rtt, |least| least.min(rtt)));
            if let Some(signal) = self.signal_of(rtt) {
                self.segment_signal = Some(self.segment_signal.map_or(signal, |least| least.min(signal)));
            }
        }
        let since = ack.now.saturating_sub(self.last_event);
        if self.acked >= self.segment
            && (self.segment == 0 || since >= flow.min_rtt)
            && let (Some(rtt), Some(signal)) = (self.segment_rtt, self.segment_signal)
        {
            (self.segment_rtt, self.segment_signal) = (None, None);
            self.acked = 0;
            self.last_event = ack.now;
            self.update(Sample { signal, rtt, since }, flow.min_rtt);
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
            self.rate = (self.rate / 2).max(self.min_rate);
            flow.pacing_rate = self.rate();
        }
    }

    fn undo_cwnd(&mut self, flow: &mut Flow) -> u32 {
        flow.cwnd
    }

    fn needs_pacing(&self) -> bool {
        !self.windowed
    }

    fn burst(&self, flow: &Flow) -> Option<u32> {
        Some(if self.segment == 0 { 1 } else { ((SEGMENT / u64::from(flow.mss)) as u32).max(1) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Driver, MSS};
    use super::*;

    const MIN_RTT: Time = Time::from_us(20);

    fn timely(pairs: &[(&str, &str)]) -> Timely {
        let given: Vec<_> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut options = Options::new(&given);
        let control = Timely::new(&mut options);
        assert_eq!(options.finish("timely"), Ok(()));
        control
    }

    /// An event a round trip after the last one, whose signal is the round trip.
    fn event(control: &mut Timely, rtt: Time, min_rtt: Time) {
        control.update(Sample { signal: rtt.as_ps(), rtt, since: min_rtt }, min_rtt);
    }

    /// At 1 Gbit/s, after a round trip of that many microseconds.
    fn after(rtt_us: u64) -> Timely {
        let prev = Some(Time::from_us(rtt_us).as_ps());
        Timely { rate: 1_000_000_000, prev, ..timely(&[]) }
    }

    #[test]
    fn below_t_low_it_adds_whatever_the_gradient() {
        for previous in [25, 45] {
            let mut control = after(previous);
            event(&mut control, Time::from_us(49), MIN_RTT);
            assert_eq!(control.rate, 1_010_000_000);
        }
    }

    #[test]
    fn above_t_high_it_cuts_whatever_the_gradient() {
        for (previous, rtt) in [(500, 501), (700, 600), (900, 1000), (5000, 5000)] {
            let mut control = after(previous);
            event(&mut control, Time::from_us(rtt), MIN_RTT);
            let expected = 1e9 * (1.0 - 0.8 * (1.0 - 500.0 / rtt as f64));
            assert!((control.rate as f64 - expected).abs() < 2.0, "{rtt}: {} {expected}", control.rate);
        }
    }

    #[test]
    fn between_them_a_rising_round_trip_cuts_by_its_gradient() {
        for (rise, kept) in [(8, 1.0 - 0.8 * 0.875 * 8.0 / 20.0), (80, 0.2)] {
            let mut control = after(100);
            event(&mut control, Time::from_us(100 + rise), MIN_RTT);
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
            event(&mut control, Time::from_us(200 - i), MIN_RTT);
            steps.push((control.rate - before) / 10_000_000);
        }
        assert_eq!(steps, [1, 1, 1, 1, 5, 5, 5, 5]);
        // A rise begins the count again.
        event(&mut control, Time::from_us(250), MIN_RTT);
        control.diff = 0;
        let before = control.rate;
        event(&mut control, Time::from_us(249), MIN_RTT);
        assert_eq!(control.rate - before, 10_000_000);
    }

    #[test]
    fn a_timeout_halves_the_rate_and_the_window_starts_slowly() {
        let rtt = Time::from_us(40);
        let mut control = timely(&[]);
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
        control.rate = control.min_rate;
        control.set_state(&mut driver.flow, State::Loss, driver.now);
        assert_eq!(control.rate, control.min_rate);
    }

    #[test]
    fn differences_are_filtered() {
        let mut control = after(100);
        let mut expected = 0.0;
        let mut last = 100.0;
        for rtt in [110u64, 90, 150, 151, 152, 100] {
            event(&mut control, Time::from_us(rtt), MIN_RTT);
            expected = expected * 0.125 + 0.875 * (rtt as f64 - last);
            last = rtt as f64;
            assert!((control.diff as f64 / 1e6 - expected).abs() < 1e-3);
        }
    }

    #[test]
    fn on_long_paths_thresholds_count_from_the_smallest_round_trip() {
        let min_rtt = Time::from_ms(20);
        let mut control = after(20_040);
        event(&mut control, Time::from_us(20_049), min_rtt);
        assert_eq!(control.rate, 1_010_000_000);
        event(&mut control, Time::from_us(20_501), min_rtt);
        assert!(control.rate < 1_010_000_000);
    }

    #[test]
    fn events_are_segments_and_not_closer_than_a_round_trip() {
        let rtt = Time::from_us(40);
        let mut control = timely(&[]);
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
