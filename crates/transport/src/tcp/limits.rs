//! What the agents of a host allow a connection at most, whatever its congestion control thinks (`SO_MAX_PACING_RATE`,
//! `snd_cwnd_clamp`).

use units::Rate;

use super::output::Sender;
use crate::cc::Flow;

/// `None`: no limit.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pacing: Option<Rate>,
    cwnd: Option<u32>,
    /// There is one.
    any: bool,
}

/// Of a connection without a limit.
const NO_CLAMP: u32 = u32::MAX / 4;

impl Sender {
    /// As in Linux, a connection that was limited once goes on spacing what it sends, and rises to its own rate with the next ACK.
    pub fn limit_pacing(&mut self, rate: Option<Rate>) {
        self.limits.pacing = rate;
        self.flow.paced |= rate.is_some();
        self.limits_changed();
    }

    pub fn limit_cwnd(&mut self, packets: Option<u32>) {
        self.limits.cwnd = packets.map(|packets| packets.max(1));
        self.flow.cwnd_clamp = self.limits.cwnd.unwrap_or(NO_CLAMP);
        self.limits_changed();
    }

    fn limits_changed(&mut self) {
        self.limits.any = self.limits.pacing.is_some() || self.limits.cwnd.is_some();
        self.keep_limits();
    }

    /// To be called whenever a congestion control has set window or rate.
    #[inline]
    pub fn keep_limits(&mut self) {
        if self.limits.any {
            self.limits.keep(&mut self.flow);
        }
    }
}

impl Limits {
    #[cold]
    fn keep(&self, flow: &mut Flow) {
        if let Some(rate) = self.pacing
            // A rate of zero is none yet.
            && (flow.pacing_rate.is_zero() || flow.pacing_rate > rate)
        {
            flow.pacing_rate = rate;
        }
        flow.cwnd = flow.cwnd.min(self.cwnd.unwrap_or(NO_CLAMP));
    }
}
