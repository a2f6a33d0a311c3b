//! Vegas: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", JSAC 1995, as Linux's
//! `tcp_vegas` has it.
//!
//! Known deviations: those of Linux from the paper: the window changes once per round trip in slow start too, lost packets are
//! found by RACK-TLP alone, and the round trip is the smallest of its round, not the mean.

use units::Time;

use super::{Ack, CongestionControl, Event, Flow, State};

/// Packets that are to wait in queues: at least, and at most; and in slow start.
const ALPHA: u64 = 2;
const BETA: u64 = 4;
const GAMMA: u64 = 1;

#[derive(Debug)]
pub struct Vegas {
    /// Offset whose acknowledgement ends this round trip.
    beg_snd_nxt: u64,
    doing_vegas_now: bool,
    cnt_rtt: u32,
    /// Smallest round trip in this round, and of all, in microseconds.
    min_rtt: u64,
    base_rtt: u64,
}

impl Default for Vegas {
    fn default() -> Vegas {
        Vegas { beg_snd_nxt: 0, doing_vegas_now: false, cnt_rtt: 0, min_rtt: u64::MAX, base_rtt: u64::MAX }
    }
}

impl Vegas {
    fn enable(&mut self, flow: &Flow) {
        self.doing_vegas_now = true;
        self.beg_snd_nxt = flow.snd_nxt;
        self.cnt_rtt = 0;
        self.min_rtt = u64::MAX;
    }

    fn restart(&mut self, flow: &Flow) {
        self.base_rtt = u64::MAX;
        self.enable(flow);
    }

    /// Once per round trip: compares the window with what the path holds without queues.
    fn adjust(&mut self, flow: &mut Flow, acked: u32) {
        let cwnd = u64::from(flow.cwnd);
        let (rtt, base) = (self.min_rtt, self.base_rtt);
        let target = cwnd * base / rtt;
        // Packets that wait.
        let diff = cwnd * (rtt - base) / base;
        if flow.in_slow_start() {
            if diff > GAMMA {
                flow.cwnd = cwnd.min(target + 1) as u32;
                flow.ssthresh = flow.ssthresh.min(flow.cwnd);
            } else {
                flow.slow_start(acked);
            }
        } else if diff > BETA {
            flow.cwnd -= 1;
            flow.ssthresh = flow.ssthresh.min(flow.cwnd);
        } else if diff < ALPHA {
            flow.cwnd += 1;
        }
        flow.cwnd = flow.cwnd.max(2).min(flow.cwnd_clamp);
        if !matches!(flow.state, State::Cwr | State::Recovery) {
            flow.ssthresh = flow.ssthresh.max(flow.cwnd / 2 + flow.cwnd / 4);
        }
    }
}

fn reno(flow: &mut Flow, acked: u32) {
    if let Some(acked) = flow.beyond_slow_start(acked) {
        flow.additive_increase(flow.cwnd, acked);
    }
}

impl CongestionControl for Vegas {
    fn name(&self) -> &'static str {
        "vegas"
    }

    fn init(&mut self, flow: &mut Flow, _now: Time) {
        self.restart(flow);
    }

    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        (flow.cwnd / 2).max(2)
    }

    fn cong_avoid(&mut self, flow: &mut Flow, ack: &Ack) {
        if !self.doing_vegas_now {
            reno(flow, ack.acked);
            return;
        }
        if ack.una > self.beg_snd_nxt {
            self.beg_snd_nxt = flow.snd_nxt;
            // Less than three samples may all be of one delayed ACK.
            if self.cnt_rtt <= 2 {
                reno(flow, ack.acked);
            } else {
                self.adjust(flow, ack.acked);
            }
            self.cnt_rtt = 0;
            self.min_rtt = u64::MAX;
        } else if flow.in_slow_start() {
            flow.slow_start(ack.acked);
        }
    }

    fn pkts_acked(&mut self, _flow: &mut Flow, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        // Never zero.
        let rtt = rtt.as_us() + 1;
        self.base_rtt = self.base_rtt.min(rtt);
        self.min_rtt = self.min_rtt.min(rtt);
        self.cnt_rtt += 1;
    }

    fn set_state(&mut self, flow: &mut Flow, state: State, _now: Time) {
        if state == State::Open {
            self.enable(flow);
        } else {
            self.doing_vegas_now = false;
        }
    }

    fn cwnd_event(&mut self, flow: &mut Flow, event: Event, _now: Time) {
        if matches!(event, Event::CwndRestart | Event::TxStart) {
            self.restart(flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Driver;
    use super::*;

    const BASE: Time = Time::from_ms(50);

    /// Window after one more round trip of `rtt`, from a window and a threshold, with the base round trip known.
    fn after_round(cwnd: u32, ssthresh: u32, rtt: Time) -> u32 {
        let mut control = Vegas::default();
        let mut driver = Driver::new(cwnd, BASE);
        driver.flow.ssthresh = ssthresh;
        control.init(&mut driver.flow, driver.now);
        control.base_rtt = BASE.as_us() + 1;
        // All but one packet of the round, so that the round ends with the next one.
        driver.send();
        control.beg_snd_nxt = driver.flow.snd_nxt - 1;
        let at = driver.now + rtt;
        for _ in 0..cwnd {
            driver.ack(&mut control, at, 1, 0);
        }
        driver.flow.cwnd
    }

    #[test]
    fn between_alpha_and_beta_packets_wait() {
        // With 40 packets out, one waits for each 1.25 ms above 50 ms.
        for (waiting, change) in [(0, 1), (1, 1), (2, 0), (3, 0), (4, 0), (5, -1), (20, -1)] {
            let rtt = BASE + Time::from_us(1_250 * waiting + 100);
            let expected = 40 + change;
            assert_eq!(after_round(40, 2, rtt) as i32, expected, "{waiting} packets wait");
        }
    }

    #[test]
    fn slow_start_ends_when_more_than_gamma_wait() {
        // Two packets wait: back to what the path holds, 40 * 50 / 52.6 + 1; the packets before did not see the end of the round.
        let cwnd = after_round(40, 40, BASE + Time::from_us(2_600));
        assert_eq!(cwnd, 40);
        let mut control = Vegas::default();
        let mut driver = Driver::new(40, BASE);
        driver.flow.ssthresh = 1000;
        (control.base_rtt, control.min_rtt) = (50_000, 55_000);
        control.adjust(&mut driver.flow, 1);
        assert_eq!(driver.flow.cwnd, 40 * 50_000 / 55_000 + 1);
        assert!(!driver.flow.in_slow_start());
        // Nothing waits: it goes on.
        driver.flow.ssthresh = 1000;
        control.min_rtt = 50_000;
        control.adjust(&mut driver.flow, 2);
        assert_eq!(driver.flow.cwnd, 39);
    }

    #[test]
    fn few_samples_make_it_reno() {
        let mut control = Vegas::default();
        let mut driver = Driver::new(10, BASE);
        driver.flow.ssthresh = 2;
        control.init(&mut driver.flow, driver.now);
        // One ACK for each half of the window, with a queue that would make Vegas go back.
        for round in 0..20 {
            let rtt = if round == 0 { BASE } else { BASE * 2 };
            let half = driver.flow.cwnd / 2;
            let at = driver.now + rtt;
            driver.ack(&mut control, at, half, 0);
            driver.ack(&mut control, at, half, 0);
        }
        assert!(driver.flow.cwnd > 15, "{}", driver.flow.cwnd);
    }

    #[test]
    fn after_loss_it_is_reno_until_it_is_over() {
        let mut control = Vegas::default();
        let mut driver = Driver::new(40, BASE);
        assert_eq!(control.ssthresh(&mut driver.flow, driver.now), 20);
        control.set_state(&mut driver.flow, State::Recovery, driver.now);
        assert!(!control.doing_vegas_now);
        control.set_state(&mut driver.flow, State::Open, driver.now);
        assert!(control.doing_vegas_now);
    }
}
