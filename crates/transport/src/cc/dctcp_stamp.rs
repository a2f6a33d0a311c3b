//! DCTCP whose alpha comes from the queue that switches stamp, not from the share of packets that are marked (Arslan and McKeown
//! 2019, section 1: DCTCP "could react faster and more accurately" so; the paper gives no rule).
//!
//! The window is cut by alpha / 2, as in RFC 8257 section 3.3, at most once per window of data. alpha is what takes the queue back to
//! the threshold in one round trip: all flows of a queue send in a round trip what drains in that time, so each has to take away
//! the share (queue - threshold) / RTT of its window, half of alpha. It is not averaged. Growth, and the response to losses, are
//! DCTCP's. Needs no ECN.

use units::Time;

use super::{Ack, CongestionControl, Event, Flow, Options, StampField, State};

#[derive(Debug)]
pub struct DctcpStamp {
    stamps: StampField,
    /// Picoseconds of queue that are left alone, as a marking threshold.
    threshold: f64,
    /// Offset whose acknowledgement ends the window that was cut last.
    next_cut: u64,
    /// Window before the last loss.
    loss_cwnd: u32,
}

impl DctcpStamp {
    /// Parameters: `threshold`, and those of [`StampField`].
    pub fn new(options: &mut Options) -> DctcpStamp {
        DctcpStamp {
            stamps: StampField::new(options),
            threshold: options.time("threshold", Time::ZERO).as_ps() as f64,
            next_cut: 0,
            loss_cwnd: 0,
        }
    }

    fn react_to_loss(&mut self, flow: &mut Flow) {
        self.loss_cwnd = flow.cwnd;
        flow.ssthresh = (flow.cwnd / 2).max(2);
    }
}

impl CongestionControl for DctcpStamp {
    fn name(&self) -> &'static str {
        "dctcp"
    }

    fn signal(&mut self, _flow: &mut Flow, _now: Time, kind: u16, data: &[u8]) {
        self.stamps.note(kind, data);
    }

    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        self.loss_cwnd = flow.cwnd;
        (flow.cwnd / 2).max(2)
    }

    fn cong_avoid(&mut self, flow: &mut Flow, ack: &Ack) {
        if let Some(acked) = flow.beyond_slow_start(ack.acked) {
            flow.additive_increase(flow.cwnd, acked);
        }
    }

    fn in_ack_event(&mut self, flow: &mut Flow, ack: &Ack) {
        let Some(queue) = self.stamps.take() else { return };
        let calm = matches!(flow.state, State::Open | State::Disorder);
        if queue <= self.threshold || flow.snd_una < self.next_cut || !calm {
            return;
        }
        let rtt = ack.rtt.unwrap_or(flow.srtt).as_ps().max(1) as f64;
        let alpha = (2.0 * (queue - self.threshold) / rtt).min(1.0);
        let cut = (f64::from(flow.cwnd) * alpha / 2.0).round() as u32;
        flow.cwnd = (flow.cwnd - cut).max(2);
        flow.ssthresh = flow.cwnd;
        self.next_cut = flow.snd_nxt;
    }

    fn set_state(&mut self, flow: &mut Flow, state: State, _now: Time) {
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
}

#[cfg(test)]
mod tests {
    use super::super::testing::Driver;
    use super::*;

    const RTT: Time = Time::from_us(100);

    /// A flow with a window of 100 packets in congestion avoidance, and a threshold of 20 us.
    fn begun() -> (DctcpStamp, Driver) {
        let given =
            vec![("threshold".to_owned(), "20 us".to_owned()), ("stamp_unit".to_owned(), "1 us".to_owned())];
        let mut options = Options::new(&given);
        let control = DctcpStamp::new(&mut options);
        assert_eq!(options.finish("dctcp"), Ok(()));
        let mut driver = Driver::new(100, RTT);
        driver.flow.ssthresh = 2;
        driver.flow.ecn = false;
        driver.send();
        (control, driver)
    }

    /// An ACK of one packet that has this stamp, a round trip after the packet was sent.
    fn ack(control: &mut DctcpStamp, driver: &mut Driver, stamp: &[u8]) {
        control.signal(&mut driver.flow, driver.now, 253, stamp);
        let at = driver.now.max(Time::from_secs(1) + RTT);
        driver.ack(control, at, 1, 0);
    }

    #[test]
    fn the_window_falls_by_what_is_above_the_threshold() {
        for (queue, expected) in [(20, 100), (21, 99), (30, 90), (50, 70), (70, 50), (200, 50)] {
            let (mut control, mut driver) = begun();
            ack(&mut control, &mut driver, &[queue, 1]);
            assert_eq!(driver.flow.cwnd, expected, "{queue} us");
        }
    }

    #[test]
    fn once_for_each_window_of_data() {
        let (mut control, mut driver) = begun();
        for _ in 0..99 {
            ack(&mut control, &mut driver, &[30, 1]);
            // It grows by a packet in a round trip.
            assert!((90..=91).contains(&driver.flow.cwnd), "{}", driver.flow.cwnd);
        }
        ack(&mut control, &mut driver, &[30, 1]);
        assert_eq!(driver.flow.cwnd, 82);
    }

    #[test]
    fn no_stamp_is_no_congestion() {
        let (mut control, mut driver) = begun();
        for _ in 0..101 {
            ack(&mut control, &mut driver, &[30, 0]);
        }
        assert_eq!(driver.flow.cwnd, 101);
    }

    #[test]
    fn a_loss_halves_the_window() {
        let (mut control, mut driver) = begun();
        assert_eq!(control.ssthresh(&mut driver.flow, driver.now), 50);
        control.set_state(&mut driver.flow, State::Recovery, driver.now);
        assert_eq!(driver.flow.ssthresh, 50);
        driver.flow.cwnd = 50;
        assert_eq!(control.undo_cwnd(&mut driver.flow), 100);
        control.cwnd_event(&mut driver.flow, Event::Loss, driver.now);
        assert_eq!(driver.flow.ssthresh, 25);
    }
}
