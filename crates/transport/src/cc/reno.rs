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
