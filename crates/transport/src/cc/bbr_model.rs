//! What both versions of BBR compute with: bandwidth in fixed point, rates, packets in flight, and the allowance for ACKs that come in
//! lumps; Linux's `tcp_bbr`.

use units::{Rate, Time};

use super::Flow;

/// Bandwidth is packets per microsecond, times 2^24; gains are 256ths.
const BW_SCALE: u32 = 24;
pub(super) const BW_UNIT: u64 = 1 << BW_SCALE;
pub(super) const SCALE: u32 = 8;
pub(super) const UNIT: u32 = 1 << SCALE;

pub(super) const INIT_CWND: u32 = 10;
pub(super) const CWND_MIN_TARGET: u32 = 4;
pub(super) const MIN_RTT_WINDOW: Time = Time::from_secs(10);
pub(super) const PROBE_RTT_TIME: Time = Time::from_ms(200);
/// Paces this much below the bandwidth, in per cent.
const PACING_MARGIN: u64 = 1;
/// Below this rate bursts are single packets.
const MIN_TSO_RATE: Rate = Rate::from_kbps(1_200);
/// Largest aggregate of ACKs allowed for.
const EXTRA_ACKED_MAX_US: u64 = 100_000;
pub(super) const EXTRA_ACKED_WIN_RTTS: u32 = 5;
const ACK_EPOCH_RESET: u32 = 1 << 20;
/// Startup is over when bandwidth has not grown by a quarter in three rounds.
pub(super) const FULL_BW_THRESH: u64 = UNIT as u64 * 5 / 4;
pub(super) const FULL_BW_COUNT: u32 = 3;

/// Bandwidth of packets delivered over a time; `None` without a whole microsecond.
pub(super) fn bandwidth(delivered: u64, interval: Time) -> Option<u64> {
    (delivered * BW_UNIT).checked_div(interval.as_us())
}

/// Pacing rate for a bandwidth and a gain, less the margin.
pub(super) fn pacing_rate(flow: &Flow, bw: u64, gain: u32) -> Rate {
    let bytes = (u128::from(bw) * u128::from(flow.mss) * u128::from(gain)) >> SCALE;
    let per_second = (bytes * u128::from(1_000_000 / 100 * (100 - PACING_MARGIN))) >> BW_SCALE;
    Rate::from_bps((per_second * 8).min(u128::from(u64::MAX / 8)) as u64)
}

/// Pacing rate before there is a sample of the bandwidth: the first window per round trip, or per millisecond.
pub(super) fn initial_rate(flow: &Flow, gain: u32) -> Rate {
    let rtt_us = if flow.srtt.is_zero() { 1_000 } else { flow.srtt.as_us().max(1) };
    pacing_rate(flow, u64::from(flow.cwnd) * BW_UNIT / rtt_us, gain)
}

pub(super) fn min_tso_segs(flow: &Flow) -> u32 {
    if flow.pacing_rate < MIN_TSO_RATE { 1 } else { 2 }
}

/// Packets of a burst at the pacing rate.
pub(super) fn tso_segs_goal(flow: &Flow) -> u32 {
    let bytes = (flow.pacing_rate.as_bps() / 8 / 1024).min(65_536 - 1 - 320);
    ((bytes / u64::from(flow.mss)) as u32).max(min_tso_segs(flow)).min(0x7f)
}

/// Packets that a bandwidth and a round trip make, times a gain.
pub(super) fn bdp(bw: u64, min_rtt: Time, gain: u32) -> u32 {
    if min_rtt == Time::MAX {
        return INIT_CWND;
    }
    let packets = (u128::from(bw) * u128::from(min_rtt.as_us()) * u128::from(gain)) >> SCALE;
    packets.div_ceil(u128::from(BW_UNIT)).min(u128::from(u32::MAX / 8)) as u32
}

/// Packets in the network when the next one leaves (`bbr_packets_in_net_at_edt`).
pub(super) fn in_network_at_departure(flow: &Flow, now: Time, in_flight: u32, bw: u64, probing: bool) -> u32 {
    let wait_us = flow.pacing_until.saturating_sub(now).as_us();
    let delivered = ((bw * wait_us) >> BW_SCALE) as u32;
    let more = if probing { tso_segs_goal(flow) } else { 0 };
    (in_flight + more).saturating_sub(delivered)
}

/// Packets that were acknowledged beyond what the bandwidth explains: largest of this window of rounds, and of the one before.
#[derive(Debug, Clone, Copy)]
pub(super) struct AckAggregation {
    epoch_start: Time,
    epoch_acked: u32,
    extra_acked: [u32; 2],
    win_rtts: u32,
    win_idx: usize,
}

impl AckAggregation {
    pub fn new(now: Time) -> AckAggregation {
        AckAggregation { epoch_start: now, epoch_acked: 0, extra_acked: [0; 2], win_rtts: 0, win_idx: 0 }
    }

    pub fn restart(&mut self, now: Time) {
        self.epoch_start = now;
        self.epoch_acked = 0;
    }

    /// An ACK for `acked` packets; `window`: rounds that a window has.
    pub fn update(&mut self, flow: &Flow, now: Time, acked: u32, bw: u64, round_start: bool, window: u32) {
        if round_start {
            self.win_rtts = (self.win_rtts + 1).min(0x1f);
            if self.win_rtts >= window {
                self.win_rtts = 0;
                self.win_idx ^= 1;
                self.extra_acked[self.win_idx] = 0;
            }
        }
        let expected =
            |start: Time| ((u128::from(bw) * u128::from((now - start).as_us())) >> BW_SCALE) as u32;
        let mut due = expected(self.epoch_start);
        if self.epoch_acked <= due || self.epoch_acked + acked >= ACK_EPOCH_RESET {
            self.restart(now);
            due = 0;
        }
        self.epoch_acked = (self.epoch_acked + acked).min(ACK_EPOCH_RESET - 1);
        let extra = self.epoch_acked.saturating_sub(due).min(flow.cwnd);
        let slot = &mut self.extra_acked[self.win_idx];
        *slot = (*slot).max(extra);
    }

    /// What the window allows for it.
    pub fn allowance(&self, bw: u64) -> u32 {
        let most = ((bw * EXTRA_ACKED_MAX_US) >> BW_SCALE).min(u64::from(u32::MAX / 8)) as u32;
        self.extra_acked[0].max(self.extra_acked[1]).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::MSS;
    use super::*;

    const RTT: Time = Time::from_ms(40);
    const SPACING: Time = Time::from_us(200);

    #[test]
    fn aggregated_acks_widen_the_window() {
        let mut flow = Flow::new(200, MSS);
        let mut aggregation = AckAggregation::new(Time::ZERO);
        let bw = bandwidth(200, RTT).unwrap();
        // 50 packets at once every 10 ms: as many as expected, but all but none of them early.
        for burst in 1..=40u64 {
            let now = Time::from_ms(10 * burst);
            for _ in 0..25 {
                aggregation.update(&flow, now, 2, bw, false, EXTRA_ACKED_WIN_RTTS);
            }
        }
        let allowance = aggregation.allowance(bw);
        assert!((48..=100).contains(&allowance), "{allowance}");
        // At most 100 ms of the bandwidth, and two windows of five rounds are remembered.
        flow.cwnd = 10_000;
        assert_eq!(aggregation.allowance(bandwidth(1, RTT).unwrap()), 2);
        for ack in 1..=800u64 {
            let now = Time::from_ms(400) + SPACING * ack * 6 / 5;
            aggregation.update(&flow, now, 1, bw, ack % 20 == 0, EXTRA_ACKED_WIN_RTTS);
        }
        assert!(aggregation.allowance(bw) < 5, "{}", aggregation.allowance(bw));
    }
}
