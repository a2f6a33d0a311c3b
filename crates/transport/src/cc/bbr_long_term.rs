//! BBR's search for policers: intervals of at least four rounds, from a loss to a loss, in which a fifth is lost. Two in a row with
//! about the same bandwidth are a policer's, and that bandwidth counts for 48 rounds (`bbr_lt_bw_sampling`).

use units::Time;

use super::Flow;
use super::bbr_model::{BW_UNIT, SCALE, UNIT, pacing_rate};

const INTERVAL_MIN_RTTS: u32 = 4;
/// Share that is lost, in 256ths.
const LOSS_THRESH: u64 = 50;
/// The two bandwidths agree within an eighth, or 4 kbit/s.
const BW_RATIO: u64 = UNIT as u64 / 8;
const BW_DIFF: u64 = 4_000;
const BW_MAX_RTTS: u32 = 48;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LongTerm {
    sampling: bool,
    in_use: bool,
    rtts: u32,
    bw: u64,
    last_at: Time,
    last_delivered: u64,
    last_lost: u64,
}

/// What a sample changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    /// A policer was found.
    Found,
    /// It has counted for long enough.
    Over,
}

impl LongTerm {
    /// The policer's bandwidth, if there is one.
    pub fn bandwidth(&self) -> Option<u64> {
        self.in_use.then_some(self.bw)
    }

    fn start_interval(&mut self, flow: &Flow) {
        self.last_at = flow.delivered_at;
        self.last_delivered = flow.delivered;
        self.last_lost = flow.lost;
        self.rtts = 0;
    }

    pub fn reset(&mut self, flow: &Flow) {
        *self = LongTerm::default();
        self.start_interval(flow);
    }

    /// An ACK; `probing`: in PROBE_BW.
    pub fn sample(
        &mut self,
        flow: &Flow,
        losses: bool,
        app_limited: bool,
        round_start: bool,
        probing: bool,
    ) -> Change {
        if self.in_use {
            if probing && round_start {
                self.rtts += 1;
                if self.rtts >= BW_MAX_RTTS {
                    self.reset(flow);
                    return Change::Over;
                }
            }
            return Change::None;
        }
        // It begins and ends with a loss, so that the policer's tokens are used up at both ends.
        if !self.sampling {
            if !losses {
                return Change::None;
            }
            self.start_interval(flow);
            self.sampling = true;
        }
        if app_limited {
            self.reset(flow);
            return Change::None;
        }
        self.rtts += u32::from(round_start);
        if self.rtts < INTERVAL_MIN_RTTS {
            return Change::None;
        }
        if self.rtts > 4 * INTERVAL_MIN_RTTS {
            self.reset(flow);
            return Change::None;
        }
        if !losses {
            return Change::None;
        }
        let lost = flow.lost - self.last_lost;
        let delivered = flow.delivered - self.last_delivered;
        if delivered == 0 || (lost << SCALE) < LOSS_THRESH * delivered {
            return Change::None;
        }
        // Whole milliseconds, and at least one of them.
        let ms = flow.delivered_at.saturating_sub(self.last_at).as_ms();
        if ms < 1 {
            return Change::None;
        }
        self.interval_done(flow, delivered * BW_UNIT / (ms * 1_000))
    }

    fn interval_done(&mut self, flow: &Flow, bw: u64) -> Change {
        if self.bw > 0 {
            let diff = bw.abs_diff(self.bw);
            let close = pacing_rate(flow, diff, UNIT).as_bps() <= BW_DIFF;
            if diff * u64::from(UNIT) <= BW_RATIO * self.bw || close {
                self.bw = (bw + self.bw) / 2;
                self.in_use = true;
                self.rtts = 0;
                return Change::Found;
            }
        }
        self.bw = bw;
        self.start_interval(flow);
        Change::None
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::MSS;
    use super::*;

    const RTT: Time = Time::from_ms(40);

    /// A round of 40 ms in which 100 packets are delivered and some lost.
    fn round(control: &mut LongTerm, flow: &mut Flow, lost: u64) -> Change {
        flow.delivered += 100;
        flow.delivered_at += RTT;
        flow.lost += lost;
        control.sample(flow, lost > 0, false, true, true)
    }

    #[test]
    fn two_lossy_intervals_that_agree_are_a_policer() {
        let (mut control, mut flow) = (LongTerm::default(), Flow::new(10, MSS));
        let mut rounds = 1;
        while round(&mut control, &mut flow, 30) != Change::Found {
            rounds += 1;
            assert!(rounds < 20);
        }
        // The first round begins the first interval and counts in it.
        assert_eq!(rounds, 4 + 4);
        let per_second = control.bandwidth().unwrap() as f64 * 1e6 / BW_UNIT as f64;
        assert!((per_second / 2_500.0 - 1.0).abs() < 0.01, "{per_second}");
        // It counts for 48 rounds.
        for _ in 1..48 {
            assert_eq!(round(&mut control, &mut flow, 0), Change::None);
            assert!(control.bandwidth().is_some());
        }
        assert_eq!(round(&mut control, &mut flow, 0), Change::Over);
        assert_eq!(control.bandwidth(), None);
    }

    #[test]
    fn fewer_losses_or_rates_that_differ_are_none() {
        let (mut control, mut flow) = (LongTerm::default(), Flow::new(10, MSS));
        for _ in 0..40 {
            assert_eq!(round(&mut control, &mut flow, 15), Change::None);
        }
        // Twice as fast in every other interval.
        control.reset(&flow);
        for interval in 0..10 {
            for _ in 0..4 {
                flow.delivered += 100 * (interval % 2);
                assert_eq!(round(&mut control, &mut flow, 60), Change::None);
            }
        }
    }
}
