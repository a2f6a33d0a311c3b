//! BBR, version 1: Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 2016, and
//! draft-cardwell-iccrg-bbr-congestion-control-00, in the fixed point and with the constants of Linux's `tcp_bbr`, with its
//! long-term estimate of policed rates, its allowance for aggregated ACKs and its packet conservation.
//!
//! Known deviations: the random phase in which PROBE_BW begins comes from the flow's seed.

use units::Time;

use super::bbr_long_term::{Change, LongTerm};
use super::bbr_model::{
    self, AckAggregation, CWND_MIN_TARGET, EXTRA_ACKED_WIN_RTTS, FULL_BW_COUNT, FULL_BW_THRESH, INIT_CWND,
    MIN_RTT_WINDOW, PROBE_RTT_TIME, SCALE, UNIT, bandwidth, bdp, initial_rate, pacing_rate, tso_segs_goal,
};
use super::{Ack, CongestionControl, Event, Flow, INFINITE_SSTHRESH, RateSample, State};

/// Window of the bandwidth filter in round trips.
const BW_RTTS: u32 = CYCLE_LEN as u32 + 2;
/// 2 / ln 2, and its inverse.
const HIGH_GAIN: u32 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;
const CWND_GAIN: u32 = UNIT * 2;
const CYCLE_LEN: usize = 8;
const PACING_GAIN: [u32; CYCLE_LEN] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Phases among which PROBE_BW's first is drawn.
const CYCLE_RAND: u64 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// Largest value in a window of rounds (Kathleen Nichols' filter, Linux's `minmax`).
#[derive(Debug, Clone, Copy, Default)]
struct WindowedMax {
    samples: [(u32, u64); 3],
}

impl WindowedMax {
    fn get(&self) -> u64 {
        self.samples[0].1
    }

    fn update(&mut self, window: u32, round: u32, value: u64) {
        let new = (round, value);
        let s = &mut self.samples;
        if value >= s[0].1 || round - s[2].0 > window {
            *s = [new; 3];
            return;
        }
        if value >= s[1].1 {
            s[1] = new;
            s[2] = new;
        } else if value >= s[2].1 {
            s[2] = new;
        }
        let age = round - s[0].0;
        if age > window {
            *s = [s[1], s[2], new];
            if round - s[0].0 > window {
                *s = [s[1], s[2], new];
            }
        } else if s[1].0 == s[0].0 && age > window / 4 {
            s[1] = new;
            s[2] = new;
        } else if s[2].0 == s[1].0 && age > window / 2 {
            s[2] = new;
        }
    }
}

#[derive(Debug)]
pub struct Bbr {
    mode: Mode,
    min_rtt: Time,
    min_rtt_stamp: Time,
    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    bw: WindowedMax,
    rtt_cnt: u32,
    next_rtt_delivered: u64,
    cycle_stamp: Time,
    cycle_idx: usize,
    prev_ca_state: State,
    packet_conservation: bool,
    round_start: bool,
    idle_restart: bool,
    pacing_gain: u32,
    cwnd_gain: u32,
    full_bw: u64,
    full_bw_cnt: u32,
    full_bw_reached: bool,
    has_seen_rtt: bool,
    prior_cwnd: u32,
    long_term: LongTerm,
    aggregation: AckAggregation,
}

impl Default for Bbr {
    fn default() -> Bbr {
        Bbr {
            mode: Mode::Startup,
            min_rtt: Time::MAX,
            min_rtt_stamp: Time::ZERO,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            bw: WindowedMax::default(),
            rtt_cnt: 0,
            next_rtt_delivered: 0,
            cycle_stamp: Time::ZERO,
            cycle_idx: 0,
            prev_ca_state: State::Open,
            packet_conservation: false,
            round_start: false,
            idle_restart: false,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            full_bw: 0,
            full_bw_cnt: 0,
            full_bw_reached: false,
            has_seen_rtt: false,
            prior_cwnd: 0,
            long_term: LongTerm::default(),
            aggregation: AckAggregation::new(Time::ZERO),
        }
    }
}

impl Bbr {
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Of sending: the policed rate, if one was found, else the largest of the last rounds.
    fn bandwidth(&self) -> u64 {
        self.long_term.bandwidth().unwrap_or(self.bw.get())
    }

    fn set_pacing_rate(&mut self, flow: &mut Flow, bw: u64, gain: u32) {
        if !self.has_seen_rtt && !flow.srtt.is_zero() {
            self.has_seen_rtt = true;
            flow.pacing_rate = initial_rate(flow, HIGH_GAIN);
        }
        let rate = pacing_rate(flow, bw, gain);
        if self.full_bw_reached || rate > flow.pacing_rate {
            flow.pacing_rate = rate;
        }
    }

    fn save_cwnd(&mut self, flow: &Flow) {
        self.prior_cwnd = if self.prev_ca_state < State::Recovery && self.mode != Mode::ProbeRtt {
            flow.cwnd
        } else {
            self.prior_cwnd.max(flow.cwnd)
        };
    }

    /// Room for what waits in the host, even, and for two more while probing.
    fn quantization_budget(&self, flow: &Flow, cwnd: u32) -> u32 {
        let mut cwnd = cwnd + 3 * tso_segs_goal(flow);
        cwnd = (cwnd + 1) & !1;
        if self.mode == Mode::ProbeBw && self.cycle_idx == 0 {
            cwnd += 2;
        }
        cwnd
    }

    fn inflight(&self, flow: &Flow, bw: u64, gain: u32) -> u32 {
        self.quantization_budget(flow, bdp(bw, self.min_rtt, gain))
    }

    fn in_network(&self, flow: &Flow, now: Time, in_flight: u32) -> u32 {
        bbr_model::in_network_at_departure(flow, now, in_flight, self.bandwidth(), self.pacing_gain > UNIT)
    }

    fn update_bw(&mut self, flow: &mut Flow, sample: &RateSample) {
        self.round_start = false;
        let Some(bw) = sample.interval.and_then(|t| bandwidth(sample.delivered, t)) else { return };
        if sample.prior_delivered >= self.next_rtt_delivered {
            self.next_rtt_delivered = flow.delivered;
            self.rtt_cnt += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.sample_long_term(flow, sample.losses > 0, sample.is_app_limited);
        if !sample.is_app_limited || bw >= self.bw.get() {
            self.bw.update(BW_RTTS, self.rtt_cnt, bw);
        }
    }

    fn sample_long_term(&mut self, flow: &mut Flow, losses: bool, app_limited: bool) {
        let probing = self.mode == Mode::ProbeBw;
        match self.long_term.sample(flow, losses, app_limited, self.round_start, probing) {
            Change::None => {}
            Change::Found => self.pacing_gain = UNIT,
            Change::Over => self.enter_probe_bw(flow),
        }
    }

    fn advance_cycle(&mut self, flow: &Flow) {
        self.cycle_idx = (self.cycle_idx + 1) % CYCLE_LEN;
        self.cycle_stamp = flow.delivered_at;
    }

    fn enter_probe_bw(&mut self, flow: &mut Flow) {
        self.mode = Mode::ProbeBw;
        self.cycle_idx = CYCLE_LEN - 1 - flow.random_below(CYCLE_RAND) as usize;
        self.advance_cycle(flow);
    }

    fn is_next_phase(&self, flow: &Flow, now: Time, sample: &RateSample) -> bool {
        let full_length = flow.delivered_at.saturating_sub(self.cycle_stamp) > self.min_rtt;
        if self.pacing_gain == UNIT {
            return full_length;
        }
        let in_net = self.in_network(flow, now, sample.prior_in_flight);
        let bw = self.bw.get();
        if self.pacing_gain > UNIT {
            // Until the gain has had its effect: more in flight, or losses.
            return full_length && (sample.losses > 0 || in_net >= self.inflight(flow, bw, self.pacing_gain));
        }
        // Until the queue that probing made is gone.
        full_length || in_net <= self.inflight(flow, bw, UNIT)
    }

    fn update_cycle(&mut self, flow: &mut Flow, now: Time, sample: &RateSample) {
        if self.mode == Mode::ProbeBw && self.is_next_phase(flow, now, sample) {
            self.advance_cycle(flow);
        }
    }

    fn check_full_bw(&mut self, sample: &RateSample) {
        if self.full_bw_reached || !self.round_start || sample.is_app_limited {
            return;
        }
        if self.bw.get() >= (self.full_bw * FULL_BW_THRESH) >> SCALE {
            self.full_bw = self.bw.get();
            self.full_bw_cnt = 0;
            return;
        }
        self.full_bw_cnt += 1;
        self.full_bw_reached = self.full_bw_cnt >= FULL_BW_COUNT;
    }

    fn check_drain(&mut self, flow: &mut Flow, now: Time) {
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            flow.ssthresh = self.inflight(flow, self.bw.get(), UNIT);
        }
        if self.mode == Mode::Drain
            && self.in_network(flow, now, flow.in_flight()) <= self.inflight(flow, self.bw.get(), UNIT)
        {
            self.enter_probe_bw(flow);
        }
    }

    fn check_probe_rtt_done(&mut self, flow: &mut Flow, now: Time) {
        if self.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt_stamp = now;
        flow.cwnd = flow.cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.enter_probe_bw(flow);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_min_rtt(&mut self, flow: &mut Flow, now: Time, sample: &RateSample) {
        let expired = now > self.min_rtt_stamp + MIN_RTT_WINDOW;
        if let Some(rtt) = sample.rtt
            && (rtt < self.min_rtt || (expired && !sample.is_ack_delayed))
        {
            self.min_rtt = rtt;
            self.min_rtt_stamp = now;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(flow);
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            // Samples of a window so small say nothing of the bandwidth.
            flow.app_limited = (flow.delivered + u64::from(flow.in_flight())).max(1);
            if self.probe_rtt_done.is_none() {
                if flow.in_flight() <= CWND_MIN_TARGET {
                    self.probe_rtt_done = Some(now + PROBE_RTT_TIME);
                    self.probe_rtt_round_done = false;
                    self.next_rtt_delivered = flow.delivered;
                }
            } else {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(flow, now);
                }
            }
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.bandwidth().is_some() => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (PACING_GAIN[self.cycle_idx], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    /// In recovery: packets leave as packets are delivered, for its first round; afterwards the window is what it was. Gives the
    /// window, and whether it is not to grow further.
    fn recover_or_restore(&mut self, flow: &Flow, sample: &RateSample) -> (u32, bool) {
        let acked = sample.acked_sacked;
        let mut cwnd = flow.cwnd;
        if sample.losses > 0 {
            cwnd = cwnd.saturating_sub(sample.losses).max(1);
        }
        if flow.state == State::Recovery && self.prev_ca_state != State::Recovery {
            self.packet_conservation = true;
            self.next_rtt_delivered = flow.delivered;
            cwnd = flow.in_flight() + acked;
        } else if self.prev_ca_state >= State::Recovery && flow.state < State::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prev_ca_state = flow.state;
        if self.packet_conservation {
            return (cwnd.max(flow.in_flight() + acked), true);
        }
        (cwnd, false)
    }

    fn set_cwnd(&mut self, flow: &mut Flow, sample: &RateSample, bw: u64) {
        let acked = sample.acked_sacked;
        if acked > 0 {
            let (mut cwnd, done) = self.recover_or_restore(flow, sample);
            if !done {
                let mut target = bdp(bw, self.min_rtt, self.cwnd_gain);
                if self.full_bw_reached {
                    target += self.aggregation.allowance(bw);
                }
                target = self.quantization_budget(flow, target);
                if self.full_bw_reached {
                    cwnd = (cwnd + acked).min(target);
                } else if cwnd < target || flow.delivered < u64::from(INIT_CWND) {
                    cwnd += acked;
                }
                cwnd = cwnd.max(CWND_MIN_TARGET);
            }
            flow.cwnd = cwnd.min(flow.cwnd_clamp);
        }
        if self.mode == Mode::ProbeRtt {
            flow.cwnd = flow.cwnd.min(CWND_MIN_TARGET);
        }
    }
}

impl CongestionControl for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn init(&mut self, flow: &mut Flow, now: Time) {
        flow.ssthresh = INFINITE_SSTHRESH;
        self.prior_cwnd = 0;
        self.next_rtt_delivered = flow.delivered;
        self.min_rtt = flow.min_rtt;
        self.min_rtt_stamp = now;
        self.has_seen_rtt = !flow.srtt.is_zero();
        self.long_term.reset(flow);
        self.aggregation = AckAggregation::new(now);
        flow.pacing_rate = initial_rate(flow, HIGH_GAIN);
    }

    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        self.save_cwnd(flow);
        flow.ssthresh
    }

    fn cong_avoid(&mut self, _flow: &mut Flow, _ack: &Ack) {}

    fn cong_control(&mut self, flow: &mut Flow, ack: &Ack, sample: &RateSample) -> bool {
        let now = ack.now;
        self.update_bw(flow, sample);
        if sample.interval.is_some() && sample.acked_sacked > 0 {
            let bw = self.bandwidth();
            let (round, acked) = (self.round_start, sample.acked_sacked);
            self.aggregation.update(flow, now, acked, bw, round, EXTRA_ACKED_WIN_RTTS);
        }
        self.update_cycle(flow, now, sample);
        self.check_full_bw(sample);
        self.check_drain(flow, now);
        self.update_min_rtt(flow, now, sample);
        self.update_gains();
        let bw = self.bandwidth();
        self.set_pacing_rate(flow, bw, self.pacing_gain);
        self.set_cwnd(flow, sample, bw);
        true
    }

    fn takes_over(&self) -> bool {
        true
    }

    fn set_state(&mut self, flow: &mut Flow, state: State, _now: Time) {
        if state == State::Loss {
            self.prev_ca_state = State::Loss;
            self.full_bw = 0;
            self.round_start = true;
            self.sample_long_term(flow, true, false);
        }
    }

    fn cwnd_event(&mut self, flow: &mut Flow, event: Event, now: Time) {
        if event != Event::TxStart || flow.app_limited == 0 {
            return;
        }
        // After an idle time: at the bandwidth, without gain.
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBw => self.set_pacing_rate(flow, self.bandwidth(), UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(flow, now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn undo_cwnd(&mut self, flow: &mut Flow) -> u32 {
        self.full_bw = 0;
        self.full_bw_cnt = 0;
        self.long_term.reset(flow);
        flow.cwnd
    }

    fn needs_pacing(&self) -> bool {
        true
    }

    fn min_tso_segs(&self, flow: &Flow) -> u32 {
        bbr_model::min_tso_segs(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Driver, MSS, Pipe};
    use super::bbr_model::BW_UNIT;
    use super::*;

    const RTT: Time = Time::from_ms(40);
    /// 5000 packets per second: 200 in a round trip.
    const SPACING: Time = Time::from_us(200);

    fn start() -> (Driver, Bbr, Pipe) {
        let mut driver = Driver::new(10, RTT);
        driver.flow.random = 3;
        let mut control = Bbr::default();
        control.init(&mut driver.flow, driver.now);
        (driver, control, Pipe::new(SPACING, RTT))
    }

    fn per_second(bw: u64) -> f64 {
        bw as f64 * 1e6 / BW_UNIT as f64
    }

    #[test]
    fn it_starts_at_the_high_gain() {
        let (driver, _, _) = start();
        // 10 packets per 40 ms, times 2.89, less 1 %.
        let expected = 10.0 / 0.04 * f64::from(MSS) * 8.0 * (739.0 / 256.0) * 0.99;
        assert!((driver.flow.pacing_rate.as_bps() as f64 / expected - 1.0).abs() < 1e-3);
    }

    #[test]
    fn it_finds_bandwidth_and_round_trip_and_leaves_startup_after_three_rounds_without_growth() {
        let (mut driver, mut control, mut pipe) = start();
        let mut full_at = None;
        let mut left_at = None;
        pipe.run(&mut driver, &mut control, Time::from_secs(3), |_, control, _| {
            if per_second(control.bw.get()) > 4_900.0 {
                full_at.get_or_insert(control.rtt_cnt);
            }
            if control.mode != Mode::Startup {
                left_at.get_or_insert(control.rtt_cnt);
            }
        });
        // The round in which it was found counts as growth.
        let rounds = left_at.unwrap() - full_at.unwrap();
        assert!((3..=4).contains(&rounds), "{rounds}");
        assert_eq!(control.mode, Mode::ProbeBw);
        assert!((per_second(control.bw.get()) / 5_000.0 - 1.0).abs() < 0.02);
        assert!(control.min_rtt <= RTT + SPACING * 2);
    }

    #[test]
    fn the_gains_go_round_and_each_lasts_about_a_round_trip() {
        let (mut driver, mut control, mut pipe) = start();
        let mut phases: Vec<(usize, u32, Time)> = Vec::new();
        pipe.run(&mut driver, &mut control, Time::from_secs(8), |driver, control, _| {
            let new = phases.last().is_none_or(|p| p.0 != control.cycle_idx);
            if control.mode == Mode::ProbeBw && new {
                phases.push((control.cycle_idx, control.pacing_gain, driver.now));
            }
        });
        assert!(phases.len() > 100, "{}", phases.len());
        for pair in phases[8..].windows(2) {
            let ((idx, gain, from), (next, _, to)) = (pair[0], pair[1]);
            assert_eq!(next, (idx + 1) % 8);
            assert_eq!(gain, [320, 192, 256, 256, 256, 256, 256, 256][idx]);
            let length = to - from;
            // Probing up goes on until the queue is there; draining ends as soon as it is gone.
            let least = if idx == 1 { Time::ZERO } else { RTT };
            assert!(length >= least && length < RTT * 2, "phase {idx}: {length}");
        }
    }

    #[test]
    fn the_window_is_two_bdp_and_the_queue_drains() {
        let (mut driver, mut control, mut pipe) = start();
        let (mut longest, mut shortest) = (0, u64::MAX);
        pipe.run(&mut driver, &mut control, Time::from_secs(8), |driver, control, queue| {
            if driver.now > Time::from_secs(3) {
                // BDP of 200 twice, three bursts of five, aggregation of at most some packets.
                assert!((400..=480).contains(&driver.flow.cwnd), "{}", driver.flow.cwnd);
                assert_eq!(control.mode, Mode::ProbeBw);
                longest = longest.max(queue);
                shortest = shortest.min(queue);
            }
        });
        assert!(shortest < 3, "{shortest}");
        // A quarter of the BDP, and a little.
        assert!((40..90).contains(&longest), "{longest}");
    }

    #[test]
    fn round_trip_probes_come_after_ten_seconds_and_last_200_ms() {
        let (mut driver, mut control, mut pipe) = start();
        let (mut from, mut to) = (None, None);
        pipe.run(&mut driver, &mut control, Time::from_secs(14), |driver, control, _| {
            if control.mode == Mode::ProbeRtt {
                from.get_or_insert(driver.now);
                assert!(driver.flow.cwnd <= 4);
            } else if from.is_some() {
                to.get_or_insert(driver.now);
            }
        });
        let (from, to) = (from.unwrap(), to.unwrap());
        assert!(from >= Time::from_secs(11) && from < Time::from_ms(11_200), "{from}");
        let length = to - from;
        // The window drains first.
        assert!(length >= PROBE_RTT_TIME && length < PROBE_RTT_TIME + RTT * 3, "{length}");
        assert!(driver.flow.cwnd >= 400);
    }

    #[test]
    fn packets_are_conserved_in_the_first_round_of_recovery_and_the_window_comes_back() {
        let (mut driver, mut control, mut pipe) = start();
        pipe.run(&mut driver, &mut control, Time::from_secs(3), |_, _, _| {});
        let before = driver.flow.cwnd;
        let flow = &mut driver.flow;
        assert_eq!(control.ssthresh(flow, driver.now), flow.ssthresh);
        flow.state = State::Recovery;
        flow.lost_out = 50;
        flow.lost += 50;
        let mut sample = RateSample { acked_sacked: 2, losses: 50, ..RateSample::default() };
        let bw = control.bandwidth();
        control.set_cwnd(flow, &sample, bw);
        assert_eq!(flow.cwnd, flow.in_flight() + 2);
        // Each ACK lets as much out as it says has arrived.
        flow.packets_out -= 2;
        sample.losses = 0;
        control.set_cwnd(flow, &sample, bw);
        assert_eq!(flow.cwnd, flow.in_flight() + 4);
        // After a round trip it grows again, and after recovery it is what it was.
        control.packet_conservation = false;
        let cwnd = flow.cwnd;
        control.set_cwnd(flow, &sample, bw);
        assert_eq!(flow.cwnd, cwnd + 2);
        flow.state = State::Open;
        control.set_cwnd(flow, &sample, bw);
        assert!(flow.cwnd >= before.min(400), "{} {before}", flow.cwnd);
    }

    #[test]
    fn the_filter_forgets_after_its_window() {
        let mut filter = WindowedMax::default();
        filter.update(10, 1, 100);
        for round in 2..30 {
            filter.update(10, round, 50);
            assert_eq!(filter.get(), if round <= 11 { 100 } else { 50 }, "{round}");
        }
    }
}
