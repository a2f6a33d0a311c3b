//! Prague: draft-briscoe-iccrg-prague-congestion-control-04, with the constants of the L4S team's `tcp_prague` for Linux, RTT
//! control by rate.
//!
//! Needs accurate ECN and sends ECT(1); where the peer has no accurate ECN it is Reno with ECT(0).
//!
//! Known deviations: pacing at 1.03 times the window per round trip is UDP Prague's; a reduction takes effect at once, not packet by packet; the window grows while a timeout is repaired, where
//! `tcp_prague` waits for the end of it; the response to losses is Reno's; the fallback for classic ECN queues, off in Linux, is
//! not there.

use units::{Rate, Time};

use super::{Ack, CongestionControl, EcnUse, Event, Flow, RateSample, State};

/// Windows and increases have 20 bits behind the point; alpha is a share of 2^20.
const WINDOW_BITS: u32 = 20;
const ONE: u64 = 1 << WINDOW_BITS;
const MAX_ALPHA: u64 = 1 << 20;
/// g = 1/16.
const SHIFT_G: u32 = 4;
/// Smallest window.
const MIN_CWND: u32 = 2;
/// Flows with shorter round trips behave as if they had this one, from the fourth round trip after slow start on.
const RTT_TARGET: Time = Time::from_ms(25);
const RTT_TRANSITION: u32 = 4;
/// A burst takes 1/4096 s at the pacing rate, and has at least two packets.
const BURST_SHIFT: u32 = 12;
const MIN_BURST: u32 = 2;

#[derive(Debug, Default)]
pub struct Prague {
    /// Without accurate ECN.
    reno: bool,
    /// 16 times alpha, so that what is too small to be divided is not lost.
    upscaled_alpha: u64,
    alpha_stamp: Time,
    cwr_stamp: Option<Time>,
    /// The window's part behind the point.
    fraction: u64,
    /// Increase per window of unmarked packets.
    ai: u64,
    /// Round trips since the end of slow start.
    round: u32,
    next_seq: u64,
    old_delivered: u64,
    old_delivered_ce: u64,
    saw_ce: bool,
    in_recovery: bool,
    loss_cwnd: u32,
}

impl Prague {
    /// Estimated share of packets that are marked, of 2^20.
    pub fn alpha(&self) -> u64 {
        self.upscaled_alpha >> SHIFT_G
    }

    fn rtt_independent(&self) -> bool {
        self.round >= RTT_TRANSITION
    }

    /// One packet per round trip or, for shorter round trips, such that the rate grows as if it were the target: the increase is
    /// smaller by the ratio of round trips, and comes more often by it as well.
    fn set_increase(&mut self, flow: &Flow) {
        self.ai = ONE;
        let (rtt, target) = (flow.srtt.as_us(), RTT_TARGET.as_us());
        if self.rtt_independent() && rtt > 0 && rtt < target {
            let square = target * target;
            self.ai = (((rtt * rtt) << WINDOW_BITS) + square / 2) / square;
        }
    }

    fn new_round(&mut self, flow: &Flow) {
        self.next_seq = flow.snd_nxt;
        self.old_delivered = flow.delivered;
        self.old_delivered_ce = flow.delivered_ce;
        if !flow.in_slow_start() {
            self.round = (self.round + 1).min(RTT_TRANSITION);
        }
        self.set_increase(flow);
    }

    /// Once per virtual round trip: alpha = (1 - g) alpha + g F.
    fn update_alpha(&mut self, flow: &Flow, now: Time) {
        let elapsed = now.saturating_sub(self.alpha_stamp) >= RTT_TARGET;
        if flow.snd_una < self.next_seq || (self.rtt_independent() && !elapsed) {
            return;
        }
        // Before the first mark nothing is known of the path: the first response is strong.
        if self.saw_ce {
            let marked = flow.delivered_ce - self.old_delivered_ce;
            let delivered = (flow.delivered - self.old_delivered).max(1);
            let share = marked * MAX_ALPHA / delivered;
            self.upscaled_alpha =
                (self.upscaled_alpha - (self.upscaled_alpha >> SHIFT_G) + share).min(MAX_ALPHA << SHIFT_G);
            self.alpha_stamp = now;
        }
        self.new_round(flow);
    }

    fn set_window(&mut self, flow: &mut Flow, window: u64) {
        flow.cwnd = ((window >> WINDOW_BITS) as u32).min(flow.cwnd_clamp);
        self.fraction = window & (ONE - 1);
        if flow.cwnd < MIN_CWND {
            flow.cwnd = MIN_CWND;
            self.fraction = 0;
        }
    }

    fn window(&self, flow: &Flow) -> u64 {
        (u64::from(flow.cwnd) << WINDOW_BITS) + self.fraction
    }

    /// Packets without a mark make the window grow, marked ones do not.
    fn grow(&mut self, flow: &mut Flow, sample: &RateSample, marked: u32) {
        let unmarked = sample.acked_sacked.saturating_sub(marked);
        if unmarked == 0 || self.in_recovery || !flow.cwnd_limited() {
            return;
        }
        let mut acked = unmarked;
        if flow.in_slow_start() {
            acked = flow.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        let cwnd = u64::from(flow.cwnd.max(1));
        let increase = (u64::from(acked) * self.ai + cwnd / 2) / cwnd;
        self.set_window(flow, self.window(flow) + increase);
    }

    fn reduce(&mut self, flow: &mut Flow, alpha: u64) {
        let window = self.window(flow);
        let cut = (u128::from(window) * u128::from(alpha) + u128::from(MAX_ALPHA)) >> 21;
        self.set_window(flow, window - (cut as u64).min(window));
        flow.ssthresh = flow.cwnd;
    }

    fn react_to_loss(&mut self, flow: &mut Flow) {
        self.loss_cwnd = flow.cwnd;
        self.reduce(flow, MAX_ALPHA);
    }

    /// The window per round trip, and 3 % more so that it is the window that limits what is in flight; twice that in slow start,
    /// where two packets answer each.
    fn set_pacing_rate(&self, flow: &mut Flow) {
        if flow.srtt.is_zero() {
            return;
        }
        let packets = u64::from(flow.cwnd.max(flow.in_flight()));
        let percent = if flow.cwnd < flow.ssthresh / 2 { 206 } else { 103 };
        let bits = u128::from(packets * u64::from(flow.mss) * 8 * percent / 100);
        let bps = bits * 1_000_000_000_000 / u128::from(flow.srtt.as_ps());
        flow.pacing_rate = Rate::from_bps(bps as u64);
    }
}

impl CongestionControl for Prague {
    fn name(&self) -> &'static str {
        "prague"
    }

    fn init(&mut self, flow: &mut Flow, now: Time) {
        self.reno = !flow.accurate_ecn;
        self.upscaled_alpha = MAX_ALPHA << SHIFT_G;
        self.alpha_stamp = now;
        self.new_round(flow);
        self.set_pacing_rate(flow);
    }

    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        if self.reno { (flow.cwnd / 2).max(2) } else { flow.ssthresh }
    }

    fn cong_avoid(&mut self, flow: &mut Flow, ack: &Ack) {
        if let Some(acked) = flow.beyond_slow_start(ack.acked) {
            flow.additive_increase(flow.cwnd, acked);
        }
    }

    fn cong_control(&mut self, flow: &mut Flow, ack: &Ack, sample: &RateSample) -> bool {
        self.saw_ce |= ack.ce > 0;
        self.grow(flow, sample, ack.ce);
        self.update_alpha(flow, ack.now);
        self.set_pacing_rate(flow);
        true
    }

    fn takes_over(&self) -> bool {
        !self.reno
    }

    fn set_state(&mut self, flow: &mut Flow, state: State, now: Time) {
        if self.reno || state == flow.state {
            return;
        }
        match state {
            State::Open => self.in_recovery = false,
            State::Recovery => {
                self.react_to_loss(flow);
                self.in_recovery = true;
            }
            // Marks: at most once per virtual round trip.
            State::Cwr => {
                let recent = self.cwr_stamp.is_some_and(|at| now.saturating_sub(at) < RTT_TARGET);
                if !(recent && self.rtt_independent()) {
                    self.cwr_stamp = Some(now);
                    self.reduce(flow, self.alpha());
                }
            }
            State::Loss => self.in_recovery = false,
            State::Disorder => {}
        }
    }

    fn cwnd_event(&mut self, flow: &mut Flow, event: Event, _now: Time) {
        if event == Event::Loss && !self.reno {
            self.react_to_loss(flow);
        }
    }

    fn undo_cwnd(&mut self, flow: &mut Flow) -> u32 {
        flow.cwnd.max(if self.reno { flow.prior_cwnd } else { self.loss_cwnd })
    }

    fn ecn(&self) -> EcnUse {
        EcnUse::L4s
    }

    fn needs_pacing(&self) -> bool {
        true
    }

    fn burst(&self, flow: &Flow) -> Option<u32> {
        let packets = (flow.pacing_rate.as_bps() / 8 / u64::from(flow.mss)) >> BURST_SHIFT;
        Some((packets as u32).max(MIN_BURST))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Driver, MSS};
    use super::*;

    fn start(cwnd: u32, rtt: Time) -> (Driver, Prague) {
        let mut driver = Driver::new(cwnd, rtt);
        driver.flow.ssthresh = 2;
        let mut control = Prague::default();
        control.init(&mut driver.flow, driver.now);
        (driver, control)
    }

    /// Acknowledges the whole window at once, a round trip later.
    fn round(driver: &mut Driver, control: &mut Prague, rtt: Time, ce: u32) {
        let (at, cwnd) = (driver.now + rtt, driver.flow.cwnd);
        driver.ack(control, at, cwnd, ce);
    }

    #[test]
    fn alpha_follows_its_equation_once_per_virtual_round_trip() {
        // At 10 ms, three round trips make a virtual one.
        for (rtt, rounds) in [(Time::from_ms(30), 1), (Time::from_ms(10), 3)] {
            let (mut driver, mut control) = start(40, rtt);
            driver.flow.cwnd_clamp = 40;
            for _ in 0..10 {
                round(&mut driver, &mut control, rtt, 1);
            }
            control.update_alpha(&driver.flow, driver.now + RTT_TARGET);
            control.next_seq = driver.flow.snd_una + u64::from(driver.flow.packets_out * MSS);
            control.alpha_stamp = driver.now;
            let mut expected = control.alpha() as f64 / MAX_ALPHA as f64;
            for step in 1..=90u32 {
                let before = control.alpha();
                round(&mut driver, &mut control, rtt, 10);
                if step % rounds != 0 {
                    assert_eq!(control.alpha(), before, "{rtt} {step}");
                    continue;
                }
                expected = expected * 15.0 / 16.0 + 0.25 / 16.0;
                let alpha = control.alpha() as f64 / MAX_ALPHA as f64;
                assert!((alpha - expected).abs() < 1e-5, "{rtt} {step}: {alpha} {expected}");
            }
        }
    }

    #[test]
    fn the_first_mark_halves_and_later_ones_cut_by_half_of_alpha() {
        let (mut driver, mut control) = start(100, Time::from_ms(30));
        for _ in 0..20 {
            round(&mut driver, &mut control, Time::from_ms(30), 0);
        }
        // No mark: alpha is as it began.
        assert_eq!(control.alpha(), MAX_ALPHA);
        driver.flow.cwnd = 100;
        control.set_state(&mut driver.flow, State::Cwr, driver.now);
        assert!((50..=51).contains(&driver.flow.cwnd), "{}", driver.flow.cwnd);
        assert_eq!(driver.flow.ssthresh, driver.flow.cwnd);
        control.upscaled_alpha = (MAX_ALPHA / 10) << SHIFT_G;
        driver.flow.cwnd = 100;
        control.fraction = 0;
        control.set_state(&mut driver.flow, State::Cwr, driver.now + Time::from_ms(30));
        // 95 and a little.
        assert_eq!((driver.flow.cwnd, control.fraction > 0), (95, true));
        // Not twice in a virtual round trip.
        control.set_state(&mut driver.flow, State::Cwr, driver.now + Time::from_ms(50));
        assert_eq!(driver.flow.cwnd, 95);
    }

    #[test]
    fn the_rate_grows_as_if_the_round_trip_were_the_target() {
        for rtt in [Time::from_ms(5), Time::from_ms(10), Time::from_ms(25), Time::from_ms(50)] {
            let (mut driver, mut control) = start(100, rtt);
            for _ in 0..RTT_TRANSITION + 1 {
                round(&mut driver, &mut control, rtt, 0);
            }
            let (from, before) = (driver.now, control.window(&driver.flow));
            for _ in 0..200 {
                round(&mut driver, &mut control, rtt, 0);
            }
            let packets = (control.window(&driver.flow) - before) as f64 / ONE as f64;
            // Packets per second, per second: one per RTT and RTT.
            let growth = packets / rtt.as_secs_f64() / (driver.now - from).as_secs_f64();
            let virtual_rtt = rtt.max(RTT_TARGET).as_secs_f64();
            let expected = 1.0 / (virtual_rtt * virtual_rtt);
            assert!((growth / expected - 1.0).abs() < 0.03, "{rtt}: {growth} {expected}");
        }
    }

    #[test]
    fn marked_packets_do_not_make_the_window_grow() {
        let (mut driver, mut control) = start(100, Time::from_ms(30));
        let before = control.window(&driver.flow);
        round(&mut driver, &mut control, Time::from_ms(30), 100);
        assert_eq!(control.window(&driver.flow), before);
        round(&mut driver, &mut control, Time::from_ms(30), 50);
        let grown = control.window(&driver.flow) - before;
        assert!(grown.abs_diff(ONE / 2) < ONE / 100, "{grown}");
    }

    #[test]
    fn losses_halve_the_window_and_undo_brings_it_back() {
        let (mut driver, mut control) = start(100, Time::from_ms(30));
        control.upscaled_alpha = 0;
        control.set_state(&mut driver.flow, State::Recovery, driver.now);
        driver.flow.state = State::Recovery;
        assert_eq!(driver.flow.cwnd, 50);
        let window = control.window(&driver.flow);
        round(&mut driver, &mut control, Time::from_ms(30), 0);
        assert_eq!(control.window(&driver.flow), window);
        assert_eq!(control.undo_cwnd(&mut driver.flow), 100);
    }

    #[test]
    fn it_is_paced_at_the_window_per_round_trip_in_short_bursts() {
        let (mut driver, control) = start(100, Time::from_ms(10));
        control.set_pacing_rate(&mut driver.flow);
        assert_eq!(driver.flow.pacing_rate, Rate::from_bps(103 * u64::from(MSS) * 8 * 100));
        // 10 300 packets per second: 2.5 in 1/4096 s.
        assert_eq!(control.burst(&driver.flow), Some(2));
        driver.flow.ssthresh = 1000;
        control.set_pacing_rate(&mut driver.flow);
        assert_eq!(control.burst(&driver.flow), Some(5));
    }

    #[test]
    fn without_accurate_ecn_it_is_reno() {
        let mut driver = Driver::new(100, Time::from_ms(30));
        driver.flow.accurate_ecn = false;
        let mut control = Prague::default();
        control.init(&mut driver.flow, driver.now);
        assert!(!control.takes_over());
        assert_eq!(control.ssthresh(&mut driver.flow, driver.now), 50);
    }
}
