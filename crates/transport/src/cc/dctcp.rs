//! DCTCP: RFC 8257, in the fixed point and with the constants of Linux's `tcp_dctcp`.
//!
//! The receiver's part, ACKs that say exactly which packets came with CE (RFC 8257 section 3.2), is in the connection.
//!
//! Known deviations: PLB (re-hashing of the flow label) is not there. Without ECN it is Reno, as in Linux.

use units::Time;

use super::{Ack, CongestionControl, EcnUse, Event, Flow, State};

/// `alpha` is a number of 1024ths; a flow begins with the largest (`dctcp_alpha_on_init`).
const MAX_ALPHA: u32 = 1024;
/// g = 1/16 (`dctcp_shift_g`).
const SHIFT_G: u32 = 4;

#[derive(Debug)]
pub struct Dctcp {
    alpha: u32,
    /// Offset whose acknowledgement ends the window of observation, and the flow's counters at its beginning.
    next_seq: u64,
    old_delivered: u64,
    old_delivered_ce: u64,
    /// Window before the last loss.
    loss_cwnd: u32,
}

impl Default for Dctcp {
    fn default() -> Dctcp {
        Dctcp { alpha: MAX_ALPHA, next_seq: 0, old_delivered: 0, old_delivered_ce: 0, loss_cwnd: 0 }
    }
}

impl Dctcp {
    /// Estimated share of packets that are marked, in 1024ths.
    pub fn alpha(&self) -> u32 {
        self.alpha
    }

    fn new_window(&mut self, flow: &Flow) {
        self.next_seq = flow.snd_nxt;
        self.old_delivered = flow.delivered;
        self.old_delivered_ce = flow.delivered_ce;
    }

    fn react_to_loss(&mut self, flow: &mut Flow) {
        self.loss_cwnd = flow.cwnd;
        flow.ssthresh = (flow.cwnd / 2).max(2);
    }
}

impl CongestionControl for Dctcp {
    fn name(&self) -> &'static str {
        "dctcp"
    }

    fn init(&mut self, flow: &mut Flow, _now: Time) {
        self.new_window(flow);
    }

    /// RFC 8257 section 3.3: cwnd * (1 - alpha / 2).
    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        self.loss_cwnd = flow.cwnd;
        if !flow.ecn {
            return (flow.cwnd / 2).max(2);
        }
        let cut = (u64::from(flow.cwnd) * u64::from(self.alpha)) >> 11;
        (flow.cwnd - cut as u32).max(2)
    }

    fn cong_avoid(&mut self, flow: &mut Flow, ack: &Ack) {
        if let Some(acked) = flow.beyond_slow_start(ack.acked) {
            flow.additive_increase(flow.cwnd, acked);
        }
    }

    /// Once per window: alpha = (1 - g) * alpha + g * M (RFC 8257 section 3.3).
    fn in_ack_event(&mut self, flow: &mut Flow, _ack: &Ack) {
        if flow.snd_una < self.next_seq {
            return;
        }
        let delivered = flow.delivered - self.old_delivered;
        let marked = flow.delivered_ce - self.old_delivered_ce;
        // What is too small to be divided is forgotten at once.
        self.alpha -= match self.alpha >> SHIFT_G {
            0 => self.alpha,
            part => part,
        };
        if marked > 0 {
            let news = (marked << (10 - SHIFT_G)) / delivered.max(1);
            self.alpha = (self.alpha + news as u32).min(MAX_ALPHA);
        }
        self.new_window(flow);
    }

    fn set_state(&mut self, flow: &mut Flow, state: State, _now: Time) {
        // Of a loss alpha knows nothing: it halves (RFC 8257 section 3.5).
        if state == State::Recovery && flow.state != State::Recovery {
            self.react_to_loss(flow);
        }
    }

    fn cwnd_event(&mut self, flow: &mut Flow, event: Event, _now: Time) {
        if event == Event::Loss {
            self.react_to_loss(flow);
        }
    }

    fn undo_cwnd(&mut self, flow: &mut Flow) -> u32 {
        flow.cwnd.max(self.loss_cwnd)
    }

    fn ecn(&self) -> EcnUse {
        EcnUse::Own
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Driver;
    use super::*;

    const RTT: Time = Time::from_ms(10);

    #[test]
    fn alpha_follows_its_equation() {
        for marked in [0, 1, 10, 40] {
            let mut control = Dctcp::default();
            let mut driver = Driver::new(40, RTT);
            driver.flow.ssthresh = 2;
            driver.flow.cwnd_clamp = 40;
            control.init(&mut driver.flow, driver.now);
            let mut expected = 1.0;
            for round in 0..100 {
                let at = driver.now + RTT;
                driver.ack(&mut control, at, 40, marked);
                expected = expected * 15.0 / 16.0 + f64::from(marked) / 40.0 / 16.0;
                let alpha = f64::from(control.alpha()) / 1024.0;
                // What is lost in shifts is less than 1/1024 per window, and 16 windows count.
                assert!((alpha - expected).abs() < 0.017, "{marked} of 40, {round}: {alpha} {expected}");
            }
        }
    }

    #[test]
    fn the_window_shrinks_by_half_of_alpha() {
        for (alpha, cwnd, expected) in
            [(1024, 100, 50), (512, 100, 75), (0, 100, 100), (64, 100, 97), (1024, 3, 2)]
        {
            let mut control = Dctcp { alpha, ..Dctcp::default() };
            let mut driver = Driver::new(cwnd, RTT);
            assert_eq!(control.ssthresh(&mut driver.flow, driver.now), expected, "{alpha} {cwnd}");
        }
    }

    #[test]
    fn a_loss_halves_the_window_whatever_alpha_is() {
        let mut control = Dctcp { alpha: 10, ..Dctcp::default() };
        let mut driver = Driver::new(100, RTT);
        driver.flow.ssthresh = control.ssthresh(&mut driver.flow, driver.now);
        control.set_state(&mut driver.flow, State::Recovery, driver.now);
        assert_eq!(driver.flow.ssthresh, 50);
        driver.flow.cwnd = 50;
        assert_eq!(control.undo_cwnd(&mut driver.flow), 100);
        control.cwnd_event(&mut driver.flow, Event::Loss, driver.now);
        assert_eq!(driver.flow.ssthresh, 25);
    }

    #[test]
    fn without_ecn_it_is_reno() {
        let mut control = Dctcp { alpha: 10, ..Dctcp::default() };
        let mut driver = Driver::new(100, RTT);
        driver.flow.ecn = false;
        assert_eq!(control.ssthresh(&mut driver.flow, driver.now), 50);
    }
}
