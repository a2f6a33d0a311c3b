//! Swift: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020, Algorithm 1. A
//! window that keeps the round trip at a target, with less than one packet in flight where that is needed.
//!
//! Known deviations:
//! - The hosts of this simulator take no time, so there is one window: that for the fabric's delay.
//! - The number of hops in the target (`hops`) is given, not learned from the TTL.
//! - The paper gives neither ai, beta, max_mdf, the delay per hop, the flow scaling's range and ends, nor the number of timeouts after
//!   which the window is reset: the defaults here are choices (those of csg-htsim where it has some).
//! - The time of the last decrease moves only if the window becomes smaller, so that a window at its largest can shrink at once.

use units::{Rate, Time};

use super::{Ack, CongestionControl, Flow, Options, RateSample, State};

#[derive(Debug)]
pub struct Swift {
    /// Picoseconds: base target with the hops' part, and range of the flow scaling.
    target: f64,
    range: f64,
    /// Ends of the flow scaling, in packets.
    fs_min: f64,
    fs_max: f64,
    ai: f64,
    beta: f64,
    max_mdf: f64,
    min_cwnd: f64,
    max_cwnd: f64,
    start: Option<u32>,
    reset_after: u32,
    /// Packets.
    window: f64,
    last_decrease: Time,
    timeouts: u32,
}

impl Swift {
    pub fn new(options: &mut Options) -> Swift {
        let base = options.time("target", Time::from_us(25)).as_ps() as f64;
        let hop = options.time("hop_delay", Time::from_us(1)).as_ps() as f64;
        let hops = f64::from(options.count("hops", 0, 0..=255));
        Swift {
            target: base + hop * hops,
            range: options.time("scaling_range", Time::from_us(0)).as_ps() as f64,
            fs_min: options.number("scaling_min", 0.1, 0.001..=1e6),
            fs_max: options.number("scaling_max", 100.0, 0.001..=1e6),
            ai: options.number("ai", 1.0, 0.0..=1000.0),
            beta: options.number("beta", 0.8, 0.0..=1.0),
            max_mdf: options.number("max_mdf", 0.5, 0.0..=1.0),
            min_cwnd: options.number("min_cwnd", 0.001, 0.0001..=1.0),
            max_cwnd: options.number("max_cwnd", 100_000.0, 1.0..=1e7),
            start: Some(options.count("start_cwnd", 0, 0..=1_000_000)).filter(|packets| *packets > 0),
            reset_after: options.count("reset_after", 5, 1..=100),
            window: 0.0,
            last_decrease: Time::ZERO,
            timeouts: 0,
        }
    }

    /// Picoseconds (section 3.1.3).
    fn target(&self) -> f64 {
        if self.range == 0.0 || self.fs_max <= self.fs_min {
            return self.target;
        }
        let alpha = self.range / (1.0 / self.fs_min.sqrt() - 1.0 / self.fs_max.sqrt());
        let beta = -alpha / self.fs_max.sqrt();
        self.target + (alpha / self.window.sqrt() + beta).clamp(0.0, self.range)
    }

    fn can_decrease(&self, now: Time, rtt: Time) -> bool {
        now.saturating_sub(self.last_decrease) >= rtt
    }

    fn decrease(&mut self, now: Time, factor: f64) {
        let before = self.window;
        self.window = (self.window * factor).clamp(self.min_cwnd, self.max_cwnd);
        if self.window < before {
            self.last_decrease = now;
        }
    }

    fn set(&self, flow: &mut Flow) {
        let clamp = f64::from(flow.cwnd_clamp);
        flow.cwnd = self.window.floor().clamp(1.0, clamp) as u32;
        // Below a packet: one every round trip over the window. Above: ACKs are the clock.
        let rtt = flow.srtt.as_secs_f64();
        flow.pacing_rate = if self.window < 1.0 && rtt > 0.0 {
            Rate::from_bps_f64(self.window * f64::from(flow.mss) * 8.0 / rtt)
        } else {
            Rate::ZERO
        };
    }
}

impl CongestionControl for Swift {
    fn name(&self) -> &'static str {
        "swift"
    }

    fn init(&mut self, flow: &mut Flow, _now: Time) {
        self.window = f64::from(self.start.unwrap_or(flow.cwnd)).min(self.max_cwnd);
        self.set(flow);
    }

    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        flow.ssthresh
    }

    fn cong_avoid(&mut self, _flow: &mut Flow, _ack: &Ack) {}

    fn cong_control(&mut self, flow: &mut Flow, ack: &Ack, sample: &RateSample) -> bool {
        if sample.acked_sacked > 0 {
            self.timeouts = 0;
        }
        if sample.acked_sacked > 0
            && let Some(delay) = sample.rtt
        {
            let (delay_ps, target) = (delay.as_ps() as f64, self.target());
            if delay_ps < target {
                let step = self.ai * f64::from(sample.acked_sacked);
                self.window += if self.window >= 1.0 { step / self.window } else { step };
                self.window = self.window.min(self.max_cwnd);
            } else if self.can_decrease(ack.now, delay) {
                let cut = self.beta * (delay_ps - target) / delay_ps;
                self.decrease(ack.now, (1.0 - cut).max(1.0 - self.max_mdf));
            }
        }
        self.set(flow);
        true
    }

    fn set_state(&mut self, flow: &mut Flow, state: State, now: Time) {
        match state {
            State::Recovery => self.timeouts = 0,
            // At each timeout, also at those of a packet that was sent again.
            State::Loss => self.timeouts += 1,
            State::Open | State::Disorder | State::Cwr => return,
        }
        if self.timeouts >= self.reset_after {
            self.decrease(now, 0.0);
        } else if self.can_decrease(now, flow.srtt) {
            self.decrease(now, 1.0 - self.max_mdf);
        }
        // In the place of TCP's window of one packet.
        self.set(flow);
    }

    fn takes_over(&self) -> bool {
        true
    }

    fn undo_cwnd(&mut self, flow: &mut Flow) -> u32 {
        flow.cwnd
    }

    fn needs_pacing(&self) -> bool {
        true
    }

    fn burst(&self, _flow: &Flow) -> Option<u32> {
        Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Driver, controlled};
    use super::*;

    /// Extra target of csg-htsim's constants: 5 times a base of 20 us, windows from 0.1 to 100 packets.
    #[test]
    fn the_target_shrinks_with_the_window() {
        let mut swift = controlled(Swift::new, &[("target", "20 us"), ("scaling_range", "100 us")]);
        for (window, extra) in
            [(1.0, 29.4), (4.0, 13.1), (10.0, 7.1), (25.0, 3.3), (100.0, 0.0), (400.0, 0.0)]
        {
            swift.window = window;
            assert!((swift.target() / 1e6 - 20.0 - extra).abs() < 0.05, "{window}: {}", swift.target());
        }
    }

    #[test]
    fn below_the_target_it_adds_a_packet_a_round_trip_and_above_it_cuts_once() {
        let rtt = Time::from_us(20);
        let mut swift = controlled(Swift::new, &[("target", "25 us")]);
        let mut driver = Driver::new(10, rtt);
        swift.init(&mut driver.flow, driver.now);
        for window in [11.0, 12.0, 13.0] {
            driver.ack(&mut swift, driver.now + rtt, 1000, 0);
            assert!((swift.window - window).abs() < 1e-9, "{}", swift.window);
        }
        // 50 us at a target of 25: by beta * half. At most once in a round trip.
        let before = swift.window;
        for _ in 0..3 {
            driver.flow.last_rtt = Time::from_us(50);
            let sample =
                RateSample { rtt: Some(Time::from_us(50)), acked_sacked: 1, ..RateSample::default() };
            let ack = Ack { now: driver.now + Time::from_us(60), ..Ack::default() };
            swift.cong_control(&mut driver.flow, &ack, &sample);
        }
        assert!((swift.window / before - 0.6).abs() < 1e-9, "{}", swift.window);
    }

    #[test]
    fn below_one_packet_the_window_is_a_pace() {
        let mut swift = controlled(Swift::new, &[]);
        let mut driver = Driver::new(10, Time::from_us(100));
        swift.window = 0.25;
        swift.set(&mut driver.flow);
        assert_eq!(driver.flow.cwnd, 1);
        // 1000 bytes every 400 us.
        assert_eq!(driver.flow.pacing_rate, Rate::from_mbps(20));
        swift.window = 2.5;
        swift.set(&mut driver.flow);
        assert_eq!((driver.flow.cwnd, driver.flow.pacing_rate), (2, Rate::ZERO));
    }

    #[test]
    fn timeouts_cut_and_the_fifth_resets() {
        let mut swift = controlled(Swift::new, &[]);
        let mut driver = Driver::new(64, Time::from_us(100));
        swift.init(&mut driver.flow, driver.now);
        let timeouts =
            |swift: &mut Swift, flow: &mut Flow, seconds: std::ops::RangeInclusive<u64>| -> Vec<_> {
                let timeout = |second| {
                    // As TCP does it.
                    flow.cwnd = 1;
                    swift.set_state(flow, State::Loss, Time::from_secs(second));
                    (flow.cwnd, swift.window)
                };
                seconds.map(timeout).collect()
            };
        let four = [(32, 32.0), (16, 16.0), (8, 8.0), (4, 4.0)];
        assert_eq!(timeouts(&mut swift, &mut driver.flow, 1..=4), four);
        // An ACK, with an RTT or without, or a fast retransmission begins the count again.
        let sample = RateSample { acked_sacked: 1, ..RateSample::default() };
        swift.cong_control(&mut driver.flow, &Ack::default(), &sample);
        assert_eq!(timeouts(&mut swift, &mut driver.flow, 5..=6), [(2, 2.0), (1, 1.0)]);
        swift.set_state(&mut driver.flow, State::Recovery, Time::from_secs(7));
        let five = timeouts(&mut swift, &mut driver.flow, 8..=12);
        assert_eq!(five, [(1, 0.25), (1, 0.125), (1, 0.0625), (1, 0.03125), (1, 0.001)]);
        // 1000 bytes every 100 ms.
        assert_eq!(driver.flow.pacing_rate, Rate::from_kbps(80));
    }
}
