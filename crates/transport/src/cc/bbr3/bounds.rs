//! What BBR, version 3, learns from losses and marks: bounds of the bandwidth and of the packets in flight (draft-ietf-ccwg-bbr-05
//! section 5.5.10; marks as on Google's branch v3). The lower bounds follow congestion outside of probes and last until the next
//! one; the upper bound is what probing moves.

use super::{
    AckPhase, BETA, Bbr3, ECN_ALPHA_GAIN, ECN_FACTOR, ECN_MAX_RTT, ECN_THRESH, FULL_ECN_COUNT, LOSS_THRESH,
    Mode, NONE, Phase, SCALE, UNIT,
};
use crate::cc::{Flow, RateSample};

/// What tells whether too much was in flight: packets in flight when one was sent; lost, marked and delivered since.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flight {
    pub tx_in_flight: u32,
    pub lost: u64,
    pub delivered: u64,
    pub delivered_ce: u64,
    pub is_app_limited: bool,
}

/// A share of packets, in 256ths.
pub(super) fn part(packets: u32, share: u64) -> u32 {
    ((u64::from(packets) * share) >> SCALE) as u32
}

/// Packets in flight at which a lost packet's flight had lost too much.
pub(super) fn inflight_at_loss(flight: &Flight) -> u32 {
    let inflight_prev = u64::from(flight.tx_in_flight.saturating_sub(1));
    let lost_prev = flight.lost.saturating_sub(1);
    let budget = (inflight_prev * LOSS_THRESH + u64::from(UNIT) - 1) >> SCALE;
    let prefix = (budget.saturating_sub(lost_prev) << SCALE) / (u64::from(UNIT) - LOSS_THRESH);
    (inflight_prev + prefix) as u32
}

impl Bbr3 {
    // ECN.

    /// Once per round: share of packets marked, smoothed as DCTCP does.
    pub(super) fn update_ecn_alpha(&mut self, flow: &Flow) {
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
        // Each part is rounded down: what is below a sixteenth comes to nothing.
        let alpha =
            (((unit - ECN_ALPHA_GAIN) * self.ecn_alpha) >> SCALE) + ((ECN_ALPHA_GAIN * ratio) >> SCALE);
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

    // Congestion, and the lower bounds that follow from it.

    pub(super) fn update_latest_delivery(&mut self, flow: &Flow, sample: &RateSample, bw: u64) {
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

    pub(super) fn update_congestion_signals(&mut self, flow: &Flow, sample: &RateSample, bw: u64) {
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
    pub(super) fn adapt_lower_bounds(&mut self, flow: &Flow) {
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

    pub(super) fn init_lower_bounds(&mut self, flow: &Flow, bw: bool) {
        if bw && self.bw_lo == u64::MAX {
            self.bw_lo = self.max_bw();
        }
        if self.inflight_lo == NONE {
            self.inflight_lo = flow.cwnd;
        }
    }

    pub(super) fn reset_lower_bounds(&mut self) {
        self.bw_lo = u64::MAX;
        self.inflight_lo = NONE;
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.ecn_in_round = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    // The upper bound, which probing moves.

    pub(super) fn is_inflight_too_high(&self, flight: &Flight) -> bool {
        let too_lossy = flight.lost > 0
            && flight.tx_in_flight > 0
            && flight.lost > (u64::from(flight.tx_in_flight) * LOSS_THRESH) >> SCALE;
        let too_marked = self.ecn_eligible
            && flight.delivered > 0
            && flight.delivered_ce > 0
            && flight.delivered_ce > (flight.delivered * ECN_THRESH) >> SCALE;
        too_lossy || too_marked
    }

    pub(super) fn handle_inflight_too_high(&mut self, flow: &mut Flow, flight: &Flight) {
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

    pub(super) fn raise_slope(&mut self, flow: &Flow) {
        let growth = 1 << self.bw_probe_up_rounds;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.bw_probe_up_cnt = (flow.cwnd / growth).max(1);
    }

    pub(super) fn probe_upward(&mut self, flow: &Flow, sample: &RateSample) {
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
    pub(super) fn adapt_upper_bounds(
        &mut self,
        flow: &mut Flow,
        sample: &RateSample,
        flight: &Flight,
    ) -> bool {
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
}
