//! Reno: RFC 5681 with Linux's `tcp_reno_cong_avoid`; halves on congestion.

use units::Time;

use super::{Ack, CongestionControl, Flow};

#[derive(Debug, Default)]
pub struct Reno {}

impl CongestionControl for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        (flow.cwnd / 2).max(2)
    }

    fn cong_avoid(&mut self, flow: &mut Flow, ack: &Ack) {
        if let Some(acked) = flow.beyond_slow_start(ack.acked) {
            flow.additive_increase(flow.cwnd, acked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Driver;
    use super::*;

    /// RFC 5681 section 3.1: twice the window per round trip in slow start, one packet more beyond it; half after congestion.
    #[test]
    fn it_grows_and_shrinks_by_its_equations() {
        let rtt = Time::from_ms(20);
        let mut control = Reno::default();
        let mut driver = Driver::new(10, rtt);
        driver.flow.ssthresh = 80;
        for expected in [20, 40, 80] {
            driver.round(&mut control, rtt, 0);
            assert_eq!(driver.flow.cwnd, expected);
        }
        for round in 1..=50 {
            driver.round(&mut control, rtt, 0);
            assert!(driver.flow.cwnd.abs_diff(80 + round) <= 1, "{round}: {}", driver.flow.cwnd);
        }
        driver.flow.cwnd = 101;
        assert_eq!(control.ssthresh(&mut driver.flow, driver.now), 50);
        driver.flow.cwnd = 3;
        assert_eq!(control.ssthresh(&mut driver.flow, driver.now), 2);
    }
}
