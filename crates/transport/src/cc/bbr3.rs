//! BBR, version 3: draft-ietf-ccwg-bbr-05, in the fixed point and with the constants of Linux's `tcp_bbr` on Google's branch v3;
//! the response to ECN, which the draft leaves out, is that branch's (from version 2). Names are Linux's, where the draft says
//! inflight_longterm for inflight_hi, and bw_shortterm and inflight_shortterm for bw_lo and inflight_lo.
//!
//! Known deviations: ECN counts wherever it was negotiated and the round trip is at most 5 ms, without a mark on the route; the
//! fast path, which skips the model on ACKs that change nothing, and PLB are not there.

use units::Time;

use super::bbr::{
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

/// What is known to be too much is judged by: packets in flight when one was sent, and lost, marked and delivered since.
#[derive(Debug, Clone, Copy, Default)]
struct Flight {
    tx_in_flight: u32,
    lost: u64,
    delivered: u64,
    delivered_ce: u64,
    is_app_limited: bool,
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

/// A share of packets, in 256ths.
fn part(packets: u32, share: u64) -> u32 {
    ((u64::from(packets) * share) >> SCALE) as u32
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
            flow.pacing_rate = bbr::initial_rate(flow, STARTUP_PACING_GAIN);
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
        bbr::in_network_at_departure(flow, now, in_flight, self.bandwidth(), self.pacing_gain > UNIT)
    }

    fn start_round(&mut self, flow: &Flow) {
        self.next_rtt_delivered = flow.delivered;
    }

    // ECN.

    /// Once per round: share of packets marked, smoothed as DCTCP does.
    fn update_ecn_alpha(&mut self, flow: &Flow) {
        self.ecn_eligible |= flow.ecn && self.min_rtt <= ECN_MAX_RTT;
        if !self.ecn_eligible {
            return;
        }
        let delivered = flow.delivered - self.alpha_last_delivered;
        let marked = flow.delivered_ce - self.alpha_last_delivered_ce;
        if delivered == 0 {
            return;
        }
        let ratio = (marked << SCALE) / delivered;
        let unit = u64::from(UNIT);
        let alpha = ((unit - ECN_ALPHA_GAIN) * self.ecn_alpha + ECN_ALPHA_GAIN * ratio) >> SCALE;
        self.ecn_alpha = alpha.min(unit);
        self.alpha_last_delivered = flow.delivered;
        self.alpha_last_delivered_ce = flow.delivered_ce;
        if self.full_bw_reached {
            return;
        }
        self.startup_ecn_rounds = if ratio >= ECN_THRESH { self.startup_ecn_rounds + 1 } else { 0 };
        if self.startup_ecn_rounds >= FULL_ECN_COUNT {
            self.queue_too_high_in_startup(flow);
        }
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

    // Congestion, and the lower bounds that follow from it.

    fn update_latest_delivery(&mut self, flow: &Flow, sample: &RateSample, bw: u64) {
        self.loss_round_start = false;
        if sample.interval.is_none() || sample.acked_sacked == 0 {
            return;
        }
        self.bw_latest = self.bw_latest.max(bw);
        self.inflight_latest = self.inflight_latest.max(sample.delivered as u32);
        if sample.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = flow.delivered;
            self.loss_round_start = true;
        }
    }

    fn update_congestion_signals(&mut self, flow: &Flow, sample: &RateSample, bw: u64) {
        if sample.interval.is_none() || sample.acked_sacked == 0 {
            return;
        }
        if !sample.is_app_limited || bw >= self.max_bw() {
            self.bw_hi[1] = self.bw_hi[1].max(bw);
        }
        self.loss_in_round |= sample.losses > 0;
        if self.loss_round_start {
            self.adapt_lower_bounds(flow);
            self.loss_in_round = false;
            self.ecn_in_round = false;
        }
    }

    /// Once per round that saw congestion, when not probing.
    fn adapt_lower_bounds(&mut self, flow: &Flow) {
        if self.is_probing_bandwidth() {
            return;
        }
        let mut ecn_inflight_lo = NONE;
        if self.ecn_in_round {
            self.init_lower_bounds(flow, false);
            let cut = u64::from(UNIT) - ((self.ecn_alpha * ECN_FACTOR) >> SCALE);
            ecn_inflight_lo = part(self.inflight_lo, cut);
        }
        if self.loss_in_round {
            self.init_lower_bounds(flow, true);
            let keep = u64::from(UNIT) - BETA;
            self.bw_lo = self.bw_latest.max((self.bw_lo * keep) >> SCALE);
            self.inflight_lo = self.inflight_latest.max(part(self.inflight_lo, keep));
        }
        self.inflight_lo = self.inflight_lo.min(ecn_inflight_lo);
        self.bw_lo = self.bw_lo.max(1);
    }

    fn init_lower_bounds(&mut self, flow: &Flow, bw: bool) {
        if bw && self.bw_lo == u64::MAX {
            self.bw_lo = self.max_bw();
        }
        if self.inflight_lo == NONE {
            self.inflight_lo = flow.cwnd;
        }
    }

    fn reset_lower_bounds(&mut self) {
        self.bw_lo = u64::MAX;
        self.inflight_lo = NONE;
    }

    fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.ecn_in_round = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    // The upper bound, which probing moves.

    fn is_inflight_too_high(&self, flight: &Flight) -> bool {
        let too_lossy = flight.lost > 0
            && flight.tx_in_flight > 0
            && flight.lost > (u64::from(flight.tx_in_flight) * LOSS_THRESH) >> SCALE;
        let too_marked = self.ecn_eligible
            && flight.delivered > 0
            && flight.delivered_ce > 0
            && flight.delivered_ce > (flight.delivered * ECN_THRESH) >> SCALE;
        too_lossy || too_marked
    }

    fn handle_inflight_too_high(&mut self, flow: &mut Flow, flight: &Flight) {
        self.prev_probe_too_high = true;
        self.bw_probe_samples = false;
        if !flight.is_app_limited {
            let least = part(self.target_inflight(flow), u64::from(UNIT) - BETA);
            self.inflight_hi = flight.tx_in_flight.max(least);
        }
        if self.mode == Mode::ProbeBw(Phase::Up) {
            self.start_down(flow);
        }
    }

    fn raise_slope(&mut self, flow: &Flow) {
        let growth = 1 << self.bw_probe_up_rounds;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.bw_probe_up_cnt = (flow.cwnd / growth).max(1);
    }

    fn probe_upward(&mut self, flow: &Flow, sample: &RateSample) {
        if !flow.is_cwnd_limited || flow.cwnd < self.inflight_hi {
            return;
        }
        self.bw_probe_up_acks += sample.acked_sacked;
        if self.bw_probe_up_acks >= self.bw_probe_up_cnt {
            let delta = self.bw_probe_up_acks / self.bw_probe_up_cnt;
            self.bw_probe_up_acks -= delta * self.bw_probe_up_cnt;
            self.inflight_hi = self.inflight_hi.saturating_add(delta);
        }
        if self.round_start {
            self.raise_slope(flow);
        }
    }

    /// Gives whether the phase was decided.
    fn adapt_upper_bounds(&mut self, flow: &mut Flow, sample: &RateSample, flight: &Flight) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            // The last ACK of what was sent while probing is in: a cycle of the bandwidth filter is over.
            self.bw_probe_samples = false;
            self.ack_phase = AckPhase::Init;
            if self.in_probe_bw() && !sample.is_app_limited && self.bw_hi[1] > 0 {
                self.bw_hi = [self.bw_hi[1], 0];
            }
            // The bound was reached without harm: probe again, beyond it.
            if self.in_probe_bw() && self.stopped_risky_probe && !self.prev_probe_too_high {
                self.start_refill(flow);
                return true;
            }
        }
        if self.is_inflight_too_high(flight) {
            if self.bw_probe_samples {
                self.handle_inflight_too_high(flow, flight);
            }
        } else if self.inflight_hi != NONE {
            self.inflight_hi = self.inflight_hi.max(sample.tx_in_flight);
            if self.mode == Mode::ProbeBw(Phase::Up) {
                self.probe_upward(flow, sample);
            }
        }
        false
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

/// Packets in flight at which a lost packet's flight had lost too much.
fn inflight_at_loss(flight: &Flight) -> u32 {
    let inflight_prev = u64::from(flight.tx_in_flight.saturating_sub(1));
    let lost_prev = flight.lost.saturating_sub(1);
    let budget = (inflight_prev * LOSS_THRESH + u64::from(UNIT) - 1) >> SCALE;
    let prefix = (budget.saturating_sub(lost_prev) << SCALE) / (u64::from(UNIT) - LOSS_THRESH);
    (inflight_prev + prefix) as u32
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
        flow.pacing_rate = bbr::initial_rate(flow, STARTUP_PACING_GAIN);
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
        bbr::min_tso_segs(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Driver, Pipe};
    use super::bbr::BW_UNIT;
    use super::*;

    const RTT: Time = Time::from_ms(40);
    /// 5000 packets per second: 200 in a round trip.
    const SPACING: Time = Time::from_us(200);

    fn start() -> (Driver, Bbr3, Pipe) {
        let mut driver = Driver::new(10, RTT);
        driver.flow.random = 3;
        let mut control = Bbr3::default();
        control.init(&mut driver.flow, driver.now);
        (driver, control, Pipe::new(SPACING, RTT))
    }

    /// In PROBE_BW with 5000 packets per second and 40 ms.
    fn steady(phase: Phase) -> (Driver, Bbr3) {
        let (mut driver, mut control, _) = start();
        driver.flow.cwnd = 400;
        control.bw_hi = [5 * BW_UNIT / 1_000; 2];
        control.full_bw_reached = true;
        control.mode = Mode::ProbeBw(phase);
        (driver, control)
    }

    #[test]
    fn the_phases_follow_each_other_and_probes_come_every_two_to_three_seconds() {
        let (mut driver, mut control, mut pipe) = start();
        driver.flow.min_rtt = RTT;
        let mut phases: Vec<(Mode, Time)> = Vec::new();
        let mut deepest = 0;
        pipe.run(&mut driver, &mut control, Time::from_secs(20), |driver, control, queue| {
            if phases.last().is_none_or(|p| p.0 != control.mode) {
                phases.push((control.mode, driver.now));
            }
            if driver.now > Time::from_secs(3) {
                deepest = deepest.max(queue);
            }
        });
        let bw = control.max_bw() as f64 * 1e6 / BW_UNIT as f64;
        assert!((bw / 5_000.0 - 1.0).abs() < 0.02, "{bw}");
        assert_eq!(phases[0].0, Mode::Startup);
        assert_eq!(phases[1].0, Mode::Drain);
        let cycle = [Phase::Down, Phase::Cruise, Phase::Refill, Phase::Up].map(Mode::ProbeBw);
        for pair in phases[1..].windows(2) {
            let (from, to) = (pair[0].0, pair[1].0);
            let expected = match from {
                Mode::ProbeBw(Phase::Down) => cycle[1],
                Mode::ProbeBw(Phase::Cruise) => cycle[2],
                Mode::ProbeBw(Phase::Refill) => cycle[3],
                _ => cycle[0],
            };
            // A probe for the round trip may come at any time, and ends in cruising.
            assert!(
                to == expected || to == Mode::ProbeRtt || (from == Mode::ProbeRtt && to == cycle[1]),
                "{from:?} {to:?}"
            );
        }
        let (mut waits, mut since) = (Vec::new(), Time::ZERO);
        for (mode, at) in &phases {
            match mode {
                // The wait begins with draining and, after a probe for the round trip, with cruising.
                Mode::ProbeBw(Phase::Down) | Mode::ProbeRtt => since = *at,
                Mode::ProbeBw(Phase::Refill) => waits.push(*at - since),
                _ => {}
            }
        }
        assert!(waits.len() >= 4, "{}", waits.len());
        for wait in waits {
            assert!(wait >= Time::from_secs(2) && wait < Time::from_ms(3_400), "{wait}");
        }
        let rtt_probes = phases.iter().filter(|p| p.0 == Mode::ProbeRtt).count();
        assert!((3..=4).contains(&rtt_probes), "{rtt_probes}");
        // Three rounds without growth at a gain of 1.25, but never more than the window of 2.25 BDP.
        assert!((50..=260).contains(&deepest), "{deepest}");
    }

    #[test]
    fn too_much_is_more_than_2_per_cent_lost_or_half_marked() {
        let (_, mut control) = steady(Phase::Up);
        control.ecn_eligible = true;
        let flight = |lost, delivered_ce| Flight {
            tx_in_flight: 400,
            lost,
            delivered: 300,
            delivered_ce,
            is_app_limited: false,
        };
        // 2 % are 5/256.
        for (lost, marked, expected) in
            [(0, 0, false), (7, 0, false), (8, 0, true), (0, 150, false), (0, 151, true)]
        {
            assert_eq!(control.is_inflight_too_high(&flight(lost, marked)), expected, "{lost} {marked}");
        }
        control.ecn_eligible = false;
        assert!(!control.is_inflight_too_high(&flight(0, 300)));
    }

    #[test]
    fn what_was_in_flight_when_losses_became_too_many() {
        // (lost_prev + prefix) / (inflight_prev + prefix) is the threshold.
        for (tx_in_flight, lost) in [(400, 8), (400, 100), (50, 1)] {
            let flight = Flight { tx_in_flight, lost, ..Flight::default() };
            let threshold = LOSS_THRESH as f64 / 256.0;
            let (inflight_prev, lost_prev) = (f64::from(tx_in_flight) - 1.0, lost as f64 - 1.0);
            let prefix = ((threshold * inflight_prev - lost_prev) / (1.0 - threshold)).max(0.0);
            let found = f64::from(inflight_at_loss(&flight));
            assert!((found - inflight_prev - prefix).abs() <= 1.1, "{found}");
        }
    }

    #[test]
    fn a_probe_that_lost_too_much_sets_the_upper_bound_and_ends() {
        let (mut driver, mut control) = steady(Phase::Up);
        control.bw_probe_samples = true;
        driver.flow.lost = 20;
        let packet = LostPacket { tx_in_flight: 260, prior_lost: 0, is_app_limited: false };
        control.packet_lost(&mut driver.flow, &packet);
        assert_eq!(control.mode, Mode::ProbeBw(Phase::Down));
        assert_eq!(control.inflight_hi, 259);
        // Only once per probe; and never below 0.7 of the BDP of 200.
        let packet = LostPacket { tx_in_flight: 50, ..packet };
        control.packet_lost(&mut driver.flow, &packet);
        assert_eq!(control.inflight_hi, 259);
        control.bw_probe_samples = true;
        control.packet_lost(&mut driver.flow, &packet);
        assert_eq!(control.inflight_hi, part(200, 256 - BETA));
        // Cruising leaves 15 % of it free.
        control.mode = Mode::ProbeBw(Phase::Cruise);
        control.inflight_hi = 259;
        driver.flow.cwnd = 400;
        control.bound_cwnd(&mut driver.flow);
        assert_eq!(driver.flow.cwnd, 259 - part(259, INFLIGHT_HEADROOM));
    }

    #[test]
    fn the_upper_bound_grows_twice_as_fast_each_round() {
        let (mut driver, mut control) = steady(Phase::Refill);
        control.inflight_hi = 400;
        control.start_up(&driver.flow, 1);
        let mut growth = Vec::new();
        for _ in 0..4 {
            let before = control.inflight_hi;
            driver.flow.cwnd = control.inflight_hi;
            control.round_start = false;
            let sample = RateSample { acked_sacked: 1, ..RateSample::default() };
            for ack in 0..400 {
                control.round_start = ack == 399;
                control.probe_upward(&driver.flow, &sample);
            }
            growth.push(control.inflight_hi - before);
        }
        assert_eq!(growth[0], 1);
        for pair in growth.windows(2) {
            assert!(pair[1] >= 2 * pair[0] - 1 && pair[1] <= 2 * pair[0] + 1, "{growth:?}");
        }
    }

    #[test]
    fn losses_outside_of_probes_cut_the_lower_bounds() {
        let (driver, mut control) = steady(Phase::Cruise);
        control.loss_in_round = true;
        control.bw_latest = control.max_bw() / 2;
        control.inflight_latest = 100;
        control.adapt_lower_bounds(&driver.flow);
        assert_eq!(control.bandwidth(), (control.max_bw() * (256 - BETA)) >> 8);
        assert_eq!(control.inflight_lo, part(400, 256 - BETA));
        // Not below what still gets through.
        control.inflight_latest = 350;
        control.adapt_lower_bounds(&driver.flow);
        assert_eq!(control.inflight_lo, 350);
        // While probing they do not count, and a refill forgets them.
        control.start_refill(&driver.flow);
        control.adapt_lower_bounds(&driver.flow);
        assert_eq!((control.inflight_lo, control.bandwidth()), (NONE, control.max_bw()));
    }

    #[test]
    fn marks_cut_the_window_by_a_third_of_alpha() {
        let (mut driver, mut control) = steady(Phase::Cruise);
        control.min_rtt = Time::from_ms(1);
        let mut expected = 1.0;
        for _ in 0..60 {
            driver.flow.delivered += 100;
            driver.flow.delivered_ce += 25;
            control.update_ecn_alpha(&driver.flow);
            expected = expected * 15.0 / 16.0 + 0.25 / 16.0;
            let alpha = control.ecn_alpha as f64 / 256.0;
            // Rounded down by up to 1/256 each time, of which 16 add up.
            assert!(alpha <= expected + 0.001 && alpha > expected - 0.063, "{alpha} {expected}");
        }
        control.ecn_in_round = true;
        control.adapt_lower_bounds(&driver.flow);
        let cut = control.ecn_alpha as f64 / 256.0 * (85.0 / 256.0);
        assert!((f64::from(control.inflight_lo) - 400.0 * (1.0 - cut)).abs() < 2.0);
        assert_eq!(control.bw_lo, u64::MAX);
        // On long paths ECN is not heeded.
        let (mut driver, mut control) = steady(Phase::Cruise);
        driver.flow.delivered += 100;
        driver.flow.delivered_ce += 100;
        control.update_ecn_alpha(&driver.flow);
        assert!(!control.ecn_eligible);
    }

    #[test]
    fn startup_ends_by_losses_or_marks() {
        let (mut driver, mut control, _) = start();
        let sample = RateSample { losses: 1, ..RateSample::default() };
        let flight = Flight { tx_in_flight: 100, lost: 8, ..Flight::default() };
        driver.flow.state = State::Recovery;
        control.inflight_latest = 77;
        for event in 1..=6 {
            assert!(!control.full_bw_reached);
            control.loss_round_start = event == 6;
            control.check_loss_in_startup(&driver.flow, &sample, &flight);
        }
        assert!(control.full_bw_reached);
        assert_eq!(control.inflight_hi, 77);
        let (mut driver, mut control, _) = start();
        control.min_rtt = Time::from_ms(1);
        for round in 1..=2 {
            assert!(!control.full_bw_reached, "{round}");
            driver.flow.delivered += 100;
            driver.flow.delivered_ce += 60;
            control.update_ecn_alpha(&driver.flow);
        }
        assert!(control.full_bw_reached);
    }

    #[test]
    fn probing_the_round_trip_halves_the_window() {
        let (mut driver, mut control) = steady(Phase::Cruise);
        driver.flow.packets_out = 200;
        let sample = RateSample { rtt: Some(RTT * 2), delivered: 1, ..RateSample::default() };
        control.update_min_rtt(&mut driver.flow, driver.now + Time::from_ms(5_001), &sample);
        assert_eq!(control.mode, Mode::ProbeRtt);
        control.set_cwnd(&mut driver.flow, &sample, control.bandwidth());
        assert_eq!(driver.flow.cwnd, 100);
        // The smallest round trip of ten seconds is not forgotten in five.
        assert_eq!(control.min_rtt, RTT);
    }

    #[test]
    fn a_spurious_recovery_gives_the_bounds_back() {
        let (mut driver, mut control) = steady(Phase::Cruise);
        control.inflight_hi = 300;
        control.ssthresh(&mut driver.flow, driver.now);
        control.inflight_hi = 100;
        control.inflight_lo = 50;
        control.bw_lo = 1;
        driver.flow.cwnd = 50;
        assert_eq!(control.undo_cwnd(&mut driver.flow), 400);
        assert_eq!((control.inflight_hi, control.inflight_lo, control.bw_lo), (300, NONE, u64::MAX));
    }
}
