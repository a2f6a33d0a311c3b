//! What the agents of a host allow a connection at most, whatever its congestion control asks for (`SO_MAX_PACING_RATE`,
//! `snd_cwnd_clamp`).

use units::Rate;

use super::sender::Sender;
use crate::cc::NO_CLAMP;

impl Sender {
    /// As in Linux, a connection that was limited once goes on spacing what it sends, and rises to its own rate with the next ACK.
    pub fn limit_pacing(&mut self, rate: Option<Rate>) {
        self.max_pacing_rate = rate.unwrap_or(Rate::ZERO);
        self.flow.paced |= rate.is_some();
        self.limits_changed();
    }

    pub fn limit_cwnd(&mut self, packets: Option<u32>) {
        self.flow.cwnd_clamp = packets.map_or(NO_CLAMP, |packets| packets.max(1));
        self.limits_changed();
    }

    fn limits_changed(&mut self) {
        self.flow.limited = !self.max_pacing_rate.is_zero() || self.flow.cwnd_clamp != NO_CLAMP;
        self.keep_limits();
    }

    /// To be called whenever a congestion control has set window or rate.
    #[inline]
    pub fn keep_limits(&mut self) {
        if self.flow.limited {
            self.apply_limits();
        }
    }

    #[cold]
    fn apply_limits(&mut self) {
        let (flow, most) = (&mut self.flow, self.max_pacing_rate);
        // A pacing rate of zero is not known yet.
        if !most.is_zero() && (flow.pacing_rate.is_zero() || flow.pacing_rate > most) {
            flow.pacing_rate = most;
        }
        flow.cwnd = flow.cwnd.min(flow.cwnd_clamp);
    }
}
