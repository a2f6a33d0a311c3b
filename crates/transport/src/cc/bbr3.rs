//! BBR, version 3: draft-ietf-ccwg-bbr-05, in the fixed point and with the constants of Linux's `tcp_bbr` on Google's branch v3;
//! the response to ECN, which the draft leaves out, is that branch's (from version 2). Names are Linux's, where the draft says
//! inflight_longterm for inflight_hi, and bw_shortterm and inflight_shortterm for bw_lo and inflight_lo.
//!
//! Known deviations: ECN counts wherever it was negotiated and the round trip is at most 5 ms, without a mark on the route; the
//! fast path, which skips the model on ACKs that change nothing, and PLB are not there.

mod bounds;

use bounds::{Flight, inflight_at_loss, part};
use units::Time;

use super::bbr_model::{
    self, AckAggregation, CWND_MIN_TARGET, EXTRA_ACKED_WIN_RTTS, FULL_BW_COUNT, FULL_BW_THRESH, INIT_CWND,
    MIN_RTT_WINDOW, PROBE_RTT_TIME, SCALE, UNIT, bandwidth, bdp, pacing_rate, tso_segs_goal,
};
use super::{Ack, CongestionControl, EcnUse, Event, Flow, INFINITE_SSTHRESH, LostPacket, RateSample, State};

const STARTUP_PACING_GAIN: u32 = UNIT * 277 / 100 + 1;
const STARTUP_CWND_GAIN: u32 = UNIT * 2;
const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;
const CWND_GAIN: u32 = UNIT * 2;
/// While probing up, a quarter more.
const PROBE_UP_CWND_GAIN: u32 = CWND_GAIN + UNIT / 4;
const PROBE_RTT_CWND_GAIN: u32 = UNIT / 2;
const PROBE_RTT_INTERVAL: Time = Time::from_secs(5);
/// Share of packets lost that is too much, and cut when it is.
const LOSS_THRESH: u64 = UNIT as u64 * 2 / 100;
const BETA: u64 = UNIT as u64 * 30 / 100;
/// Left free of what is known to be safe, for others.
const INFLIGHT_HEADROOM: u64 = UNIT as u64 * 15 / 100;
/// Startup ends with so many losses in a round that lost too much, or so many rounds with too many marks.
const FULL_LOSS_COUNT: u32 = 6;
const FULL_ECN_COUNT: u32 = 2;
const ECN_ALPHA_GAIN: u64 = UNIT as u64 / 16;
const ECN_FACTOR: u64 = UNIT as u64 / 3;
const ECN_THRESH: u64 = UNIT as u64 / 2;
const ECN_MAX_RTT: Time = Time::from_ms(5);
/// Between probes for bandwidth: 2 s and up to one more, or as many rounds as Reno would need to grow back.
const PROBE_BASE: Time = Time::from_secs(2);
const PROBE_RAND_US: u64 = 1_000_000;
const PROBE_MAX_ROUNDS: u32 = 63;
const PROBE_RAND_ROUNDS: u64 = 2;
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Startup,
    Drain,
    ProbeBw(Phase),
    ProbeRtt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// More in flight, to see whether there is more bandwidth.
    Up,
    /// Less, to drain the queue and leave room.
    Down,
    Cruise,
    /// A round at the full bandwidth, before probing.
    Refill,
}

/// Where ACKs are in relation to the last probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

#[derive(Debug)]
pub struct Bbr3 {
    mode: Mode,
    min_rtt: Time,
    min_rtt_stamp: Time,
    probe_rtt_min: Time,
    probe_rtt_min_stamp: Time,
    probe_rtt_done: Option<Time>,
    probe_rtt_round_done: bool,
    next_rtt_delivered: u64,
    round_start: bool,
    cycle_stamp: Time,
    prev_ca_state: State,
    idle_restart: bool,
    has_seen_rtt: bool,
    pacing_gain: u32,
    cwnd_gain: u32,
    prior_cwnd: u32,

    // Whether the pipe is full.
    full_bw: u64,
    full_bw_cnt: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    loss_events_in_round: u32,
    startup_ecn_rounds: u32,

    // Bandwidth and packets in flight: largest of the last two cycles, of the last round, and bounds.
    bw_hi: [u64; 2],
    bw_lo: u64,
    bw_latest: u64,
    inflight_hi: u32,
    inflight_lo: u32,
    inflight_latest: u32,
    loss_round_delivered: u64,
    loss_round_start: bool,
    loss_in_round: bool,
    ecn_in_round: bool,
    undo_bw_lo: u64,
    undo_inflight_lo: u32,
    undo_inflight_hi: u32,

    // Probing for bandwidth.
    ack_phase: AckPhase,
    /// Samples come from packets that were sent while probing.
    bw_probe_samples: bool,
    prev_probe_too_high: bool,
    stopped_risky_probe: bool,
    rounds_since_probe: u32,
    probe_wait: Time,
    bw_probe_up_cnt: u32,
    bw_probe_up_acks: u32,
    bw_probe_up_rounds: u32,

    // ECN.
    ecn_eligible: bool,
    ecn_alpha: u64,
    alpha_last_delivered: u64,
    alpha_last_delivered_ce: u64,

    aggregation: AckAggregation,
}

impl Default for Bbr3 {
    fn default() -> Bbr3 {
        Bbr3 {
            mode: Mode::Startup,
            min_rtt: Time::MAX,
            min_rtt_stamp: Time::ZERO,
            probe_rtt_min: Time::MAX,
            probe_rtt_min_stamp: Time::ZERO,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            next_rtt_delivered: 0,
            round_start: false,
            cycle_stamp: Time::ZERO,
            prev_ca_state: State::Open,
            idle_restart: false,
            has_seen_rtt: false,
            pacing_gain: STARTUP_PACING_GAIN,
            cwnd_gain: STARTUP_CWND_GAIN,
            prior_cwnd: 0,
            full_bw: 0,
            full_bw_cnt: 0,
            full_bw_now: false,
            full_bw_reached: false,
            loss_events_in_round: 0,
            startup_ecn_rounds: 0,
            bw_hi: [0; 2],
            bw_lo: u64::MAX,
            bw_latest: 0,
            inflight_hi: NONE,
            inflight_lo: NONE,
            inflight_latest: 0,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_in_round: false,
            ecn_in_round: false,
            undo_bw_lo: u64::MAX,
            undo_inflight_lo: NONE,
            undo_inflight_hi: NONE,
            ack_phase: AckPhase::Init,
            bw_probe_samples: false,
            prev_probe_too_high: false,
            stopped_risky_probe: false,
            rounds_since_probe: 0,
            probe_wait: Time::ZERO,
            bw_probe_up_cnt: NONE,
            bw_probe_up_acks: 0,
            bw_probe_up_rounds: 0,
            ecn_eligible: false,
            ecn_alpha: u64::from(UNIT),
            alpha_last_delivered: 0,
            alpha_last_delivered_ce: 0,
            aggregation: AckAggregation::new(Time::ZERO),
        }
    }
}

impl Bbr3 {
    pub fn mode(&self) -> Mode {
        self.mode
    }

    fn max_bw(&self) -> u64 {
        self.bw_hi[0].max(self.bw_hi[1])
    }

    fn bandwidth(&self) -> u64 {
        self.max_bw().min(self.bw_lo)
    }

    fn in_probe_bw(&self) -> bool {
        matches!(self.mode, Mode::ProbeBw(_))
    }

    fn is_probing_bandwidth(&self) -> bool {
        matches!(self.mode, Mode::Startup | Mode::ProbeBw(Phase::Up | Phase::Refill))
    }

    fn set_pacing_rate(&mut self, flow: &mut Flow, bw: u64, gain: u32) {
        if !self.has_seen_rtt && !flow.srtt.is_zero() {
            self.has_seen_rtt = true;
            flow.pacing_rate = bbr_model::initial_rate(flow, STARTUP_PACING_GAIN);
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

    /// At least three bursts; two packets more while probing up.
    fn quantization_budget(&self, flow: &Flow, cwnd: u32) -> u32 {
        let cwnd = cwnd.max(3 * tso_segs_goal(flow)).max(CWND_MIN_TARGET);
        if self.mode == Mode::ProbeBw(Phase::Up) { cwnd + 2 } else { cwnd }
    }

    fn inflight(&self, flow: &Flow, bw: u64, gain: u32) -> u32 {
        self.quantization_budget(flow, bdp(bw, self.min_rtt, gain))
    }

    fn target_inflight(&self, flow: &Flow) -> u32 {
        self.inflight(flow, self.bandwidth(), UNIT).min(flow.cwnd)
    }

    fn inflight_with_headroom(&self) -> u32 {
        if self.inflight_hi == NONE {
            return NONE;
        }
        let headroom = part(self.inflight_hi, INFLIGHT_HEADROOM).max(1);
        self.inflight_hi.saturating_sub(headroom).max(CWND_MIN_TARGET)
    }

    fn probe_rtt_cwnd(&self) -> u32 {
        bdp(self.bandwidth(), self.min_rtt, PROBE_RTT_CWND_GAIN).max(CWND_MIN_TARGET)
    }

    fn in_network(&self, flow: &Flow, now: Time, in_flight: u32) -> u32 {
        bbr_model::in_network_at_departure(flow, now, in_flight, self.bandwidth(), self.pacing_gain > UNIT)
    }

    fn start_round(&mut self, flow: &Flow) {
        self.next_rtt_delivered = flow.delivered;
    }

    // Startup.

    fn queue_too_high_in_startup(&mut self, flow: &Flow) {
        self.full_bw_reached = true;
        let bdp = self.inflight(flow, self.max_bw(), UNIT);
        self.inflight_hi = bdp.max(self.inflight_latest);
    }

    fn check_loss_in_startup(&mut self, flow: &Flow, sample: &RateSample, flight: &Flight) {
        if self.full_bw_reached {
            return;
        }
        if sample.losses > 0 {
            self.loss_events_in_round = (self.loss_events_in_round + 1).min(0xf);
        }
        if !self.loss_round_start {
            return;
        }
        if flow.state == State::Recovery
            && self.loss_events_in_round >= FULL_LOSS_COUNT
            && self.is_inflight_too_high(flight)
        {
            self.queue_too_high_in_startup(flow);
            return;
        }
        self.loss_events_in_round = 0;
    }

    fn reset_full_bw(&mut self) {
        self.full_bw = 0;
        self.full_bw_cnt = 0;
        self.full_bw_now = false;
    }

    fn check_full_bw(&mut self, sample: &RateSample, bw: u64) {
        if self.full_bw_now || sample.is_app_limited || sample.interval.is_none() {
            return;
        }
        if bw >= (self.full_bw * FULL_BW_THRESH) >> SCALE {
            self.reset_full_bw();
            self.full_bw = bw;
            return;
        }
        if !self.round_start {
            return;
        }
        self.full_bw_cnt += 1;
        self.full_bw_now = self.full_bw_cnt >= FULL_BW_COUNT;
        self.full_bw_reached |= self.full_bw_now;
    }

    fn check_drain(&mut self, flow: &mut Flow, now: Time) {
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            flow.ssthresh = self.inflight(flow, self.max_bw(), UNIT);
            self.reset_congestion_signals();
        }
        if self.mode == Mode::Drain
            && self.in_network(flow, now, flow.in_flight()) <= self.inflight(flow, self.max_bw(), UNIT)
        {
            self.start_down(flow);
        }
    }

    // Phases of PROBE_BW.

    fn start_refill(&mut self, flow: &Flow) {
        self.reset_lower_bounds();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acks = 0;
        self.stopped_risky_probe = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round(flow);
        self.mode = Mode::ProbeBw(Phase::Refill);
    }

    fn start_up(&mut self, flow: &Flow, bw: u64) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round(flow);
        self.reset_full_bw();
        self.full_bw = bw;
        self.mode = Mode::ProbeBw(Phase::Up);
        self.raise_slope(flow);
    }

    fn start_down(&mut self, flow: &mut Flow) {
        self.reset_congestion_signals();
        self.bw_probe_up_cnt = NONE;
        self.rounds_since_probe = flow.random_below(PROBE_RAND_ROUNDS) as u32;
        self.probe_wait = PROBE_BASE + Time::from_us(flow.random_below(PROBE_RAND_US));
        self.cycle_stamp = flow.delivered_at;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round(flow);
        self.mode = Mode::ProbeBw(Phase::Down);
    }

    fn start_cruise(&mut self) {
        if self.inflight_lo != NONE {
            self.inflight_lo = self.inflight_lo.min(self.inflight_hi);
        }
        self.mode = Mode::ProbeBw(Phase::Cruise);
    }

    fn check_time_to_probe(&mut self, flow: &Flow, now: Time) -> bool {
        let rounds = self.target_inflight(flow).min(PROBE_MAX_ROUNDS);
        if now > self.cycle_stamp + self.probe_wait || self.rounds_since_probe >= rounds {
            self.start_refill(flow);
            return true;
        }
        false
    }

    fn update_cycle(&mut self, flow: &mut Flow, now: Time, sample: &RateSample, flight: &Flight, bw: u64) {
        if !self.full_bw_reached || self.adapt_upper_bounds(flow, sample, flight) {
            return;
        }
        let Mode::ProbeBw(phase) = self.mode else { return };
        let in_net = self.in_network(flow, now, sample.prior_in_flight);
        match phase {
            Phase::Cruise => {
                self.check_time_to_probe(flow, now);
            }
            Phase::Refill => {
                if self.round_start {
                    self.bw_probe_samples = true;
                    self.start_up(flow, bw);
                }
            }
            Phase::Up => {
                let risky = self.prev_probe_too_high && in_net >= self.inflight_hi;
                if risky {
                    self.stopped_risky_probe = true;
                } else if flow.is_cwnd_limited && flow.cwnd >= self.inflight_hi {
                    // The bound holds the bandwidth back: a plateau would say nothing.
                    self.reset_full_bw();
                    self.full_bw = bw;
                }
                if risky || self.full_bw_now {
                    self.prev_probe_too_high = false;
                    self.start_down(flow);
                }
            }
            Phase::Down => {
                if self.check_time_to_probe(flow, now) {
                    return;
                }
                if in_net <= self.inflight_with_headroom()
                    && in_net <= self.inflight(flow, self.max_bw(), UNIT)
                {
                    self.start_cruise();
                }
            }
        }
    }

    // PROBE_RTT.

    fn check_probe_rtt_done(&mut self, flow: &mut Flow, now: Time) {
        if self.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt_min_stamp = now;
        flow.cwnd = flow.cwnd.max(self.prior_cwnd);
        self.reset_lower_bounds();
        if self.full_bw_reached {
            self.start_down(flow);
            // What is in flight is below the BDP already.
            self.start_cruise();
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_min_rtt(&mut self, flow: &mut Flow, now: Time, sample: &RateSample) {
        let probe_expired = now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (rtt < self.probe_rtt_min || (probe_expired && !sample.is_ack_delayed))
        {
            self.probe_rtt_min = rtt;
            self.probe_rtt_min_stamp = now;
        }
        let expired = now > self.min_rtt_stamp + MIN_RTT_WINDOW;
        if self.probe_rtt_min <= self.min_rtt || expired {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        if probe_expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.save_cwnd(flow);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt_done = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round(flow);
        }
        if self.mode == Mode::ProbeRtt {
            flow.app_limited = (flow.delivered + u64::from(flow.in_flight())).max(1);
            if self.probe_rtt_done.is_none() {
                if flow.in_flight() <= self.probe_rtt_cwnd() {
                    self.probe_rtt_done = Some(now + PROBE_RTT_TIME);
                    self.probe_rtt_round_done = false;
                    self.start_round(flow);
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

    // What is set.

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (STARTUP_PACING_GAIN, STARTUP_CWND_GAIN),
            Mode::Drain => (DRAIN_GAIN, STARTUP_CWND_GAIN),
            Mode::ProbeBw(Phase::Up) => (UNIT * 5 / 4, PROBE_UP_CWND_GAIN),
            Mode::ProbeBw(Phase::Down) => (UNIT * 91 / 100, CWND_GAIN),
            Mode::ProbeBw(Phase::Cruise | Phase::Refill) => (UNIT, CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    fn set_cwnd(&mut self, flow: &mut Flow, sample: &RateSample, bw: u64) {
        let acked = sample.acked_sacked;
        let mut cwnd = flow.cwnd;
        if self.prev_ca_state >= State::Recovery && flow.state < State::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
        }
        if acked > 0 {
            let mut target = bdp(bw, self.min_rtt, self.cwnd_gain) + self.aggregation.allowance(bw);
            target = self.quantization_budget(flow, target);
            if self.full_bw_reached {
                cwnd = (cwnd + acked).min(target);
            } else if cwnd < target || cwnd < 2 * INIT_CWND {
                cwnd += acked;
            }
            cwnd = cwnd.max(CWND_MIN_TARGET);
        }
        flow.cwnd = cwnd.min(flow.cwnd_clamp);
        if self.mode == Mode::ProbeRtt {
            flow.cwnd = flow.cwnd.min(self.probe_rtt_cwnd());
        }
    }

    /// Bounds the window by what is known to be safe, and by what was seen of congestion since.
    fn bound_cwnd(&self, flow: &mut Flow) {
        let cap = match self.mode {
            Mode::ProbeBw(Phase::Cruise) | Mode::ProbeRtt => self.inflight_with_headroom(),
            Mode::ProbeBw(_) => self.inflight_hi,
            Mode::Startup | Mode::Drain => NONE,
        };
        flow.cwnd = flow.cwnd.min(cap.min(self.inflight_lo).max(CWND_MIN_TARGET));
    }
}

impl CongestionControl for Bbr3 {
    fn name(&self) -> &'static str {
        "bbr3"
    }

    fn init(&mut self, flow: &mut Flow, now: Time) {
        flow.ssthresh = INFINITE_SSTHRESH;
        self.next_rtt_delivered = flow.delivered;
        self.loss_round_delivered = flow.delivered + 1;
        self.min_rtt = flow.min_rtt;
        self.min_rtt_stamp = now;
        self.probe_rtt_min = flow.min_rtt;
        self.probe_rtt_min_stamp = now;
        self.has_seen_rtt = !flow.srtt.is_zero();
        self.ecn_eligible = false;
        self.alpha_last_delivered = flow.delivered;
        self.alpha_last_delivered_ce = flow.delivered_ce;
        self.aggregation = AckAggregation::new(now);
        flow.pacing_rate = bbr_model::initial_rate(flow, STARTUP_PACING_GAIN);
    }

    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        self.save_cwnd(flow);
        self.undo_bw_lo = self.bw_lo;
        self.undo_inflight_lo = self.inflight_lo;
        self.undo_inflight_hi = self.inflight_hi;
        flow.ssthresh
    }

    fn cong_avoid(&mut self, _flow: &mut Flow, _ack: &Ack) {}

    fn cong_control(&mut self, flow: &mut Flow, ack: &Ack, sample: &RateSample) -> bool {
        let now = ack.now;
        let bw = sample.interval.and_then(|t| bandwidth(sample.delivered, t)).unwrap_or(0);
        self.round_start = sample.interval.is_some() && sample.prior_delivered >= self.next_rtt_delivered;
        if self.round_start {
            self.start_round(flow);
            self.rounds_since_probe = (self.rounds_since_probe + 1).min(0xff);
            self.update_ecn_alpha(flow);
        }
        let flight = Flight {
            tx_in_flight: sample.tx_in_flight,
            lost: flow.lost.saturating_sub(sample.prior_lost),
            delivered: sample.delivered,
            delivered_ce: sample.delivered_ce,
            is_app_limited: sample.is_app_limited,
        };
        self.ecn_in_round |= self.ecn_eligible && ack.ece;
        self.update_latest_delivery(flow, sample, bw);
        self.update_congestion_signals(flow, sample, bw);
        if sample.interval.is_some() && sample.acked_sacked > 0 {
            // In startup only the last round counts.
            let window = if self.full_bw_reached { EXTRA_ACKED_WIN_RTTS } else { 1 };
            let (round, acked) = (self.round_start, sample.acked_sacked);
            self.aggregation.update(flow, now, acked, self.bandwidth(), round, window);
        }
        self.check_loss_in_startup(flow, sample, &flight);
        self.check_full_bw(sample, bw);
        self.check_drain(flow, now);
        self.update_cycle(flow, now, sample, &flight, bw);
        self.update_min_rtt(flow, now, sample);
        self.update_gains();
        let bw_now = self.bandwidth();
        self.set_pacing_rate(flow, bw_now, self.pacing_gain);
        self.set_cwnd(flow, sample, bw_now);
        self.bound_cwnd(flow);
        if self.loss_round_start {
            self.bw_latest = bw;
            self.inflight_latest = sample.delivered as u32;
        }
        self.prev_ca_state = flow.state;
        true
    }

    fn takes_over(&self) -> bool {
        true
    }

    fn packet_lost(&mut self, flow: &mut Flow, packet: &LostPacket) {
        if !self.loss_in_round {
            // A whole round trip from the first loss on, to see what still gets through.
            self.loss_round_delivered = flow.delivered;
        }
        self.loss_in_round = true;
        if !self.bw_probe_samples {
            return;
        }
        let mut flight = Flight {
            tx_in_flight: packet.tx_in_flight,
            lost: flow.lost.saturating_sub(packet.prior_lost),
            is_app_limited: packet.is_app_limited,
            ..Flight::default()
        };
        if self.is_inflight_too_high(&flight) {
            flight.tx_in_flight = inflight_at_loss(&flight);
            self.handle_inflight_too_high(flow, &flight);
        }
    }

    fn set_state(&mut self, flow: &mut Flow, state: State, _now: Time) {
        if state == State::Loss {
            self.prev_ca_state = State::Loss;
            self.reset_full_bw();
            if !self.is_probing_bandwidth() && self.inflight_lo == NONE {
                // The window before the timeout is what the bound starts from.
                self.inflight_lo = flow.cwnd.max(self.prior_cwnd);
            }
        }
    }

    fn cwnd_event(&mut self, flow: &mut Flow, event: Event, now: Time) {
        if event != Event::TxStart || flow.app_limited == 0 {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            Mode::ProbeBw(_) => self.set_pacing_rate(flow, self.bandwidth(), UNIT),
            Mode::ProbeRtt => self.check_probe_rtt_done(flow, now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn undo_cwnd(&mut self, flow: &mut Flow) -> u32 {
        self.reset_full_bw();
        self.loss_in_round = false;
        self.bw_lo = self.bw_lo.max(self.undo_bw_lo);
        self.inflight_lo = self.inflight_lo.max(self.undo_inflight_lo);
        self.inflight_hi = self.inflight_hi.max(self.undo_inflight_hi);
        flow.cwnd.max(self.prior_cwnd)
    }

    fn ecn(&self) -> EcnUse {
        EcnUse::Exact
    }

    fn needs_pacing(&self) -> bool {
        true
    }

    fn min_tso_segs(&self, flow: &Flow) -> u32 {
        bbr_model::min_tso_segs(flow)
    }
}

#[cfg(test)]
mod tests;
