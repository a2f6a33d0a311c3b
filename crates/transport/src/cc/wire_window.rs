//! A window in bytes of the wire and a rate of the wire, as data-centre controls compute them, made the packets and the payload rate
//! that TCP goes by.

use units::{Rate, Time};

use super::{Flow, Options, State};

/// What a control is told of its host and its path.
#[derive(Debug, Clone)]
pub struct WireWindow {
    /// Of the host's own link, bit/s.
    pub line_rate: f64,
    /// Round trip without queues, if it is given: else the least that was measured.
    rtt: Option<Time>,
    /// Bytes that a full packet has on the wire besides its payload.
    overhead: u32,
    pub min_rate: f64,
    /// Packets that may be in flight whatever the window.
    min_cwnd: u32,
}

impl WireWindow {
    pub fn new(options: &mut Options) -> WireWindow {
        let line_rate = options.rate("line_rate", Rate::from_gbps(10)).as_bps() as f64;
        WireWindow {
            line_rate,
            rtt: options.given_time("rtt"),
            overhead: options.count("overhead", 66, 0..=1000),
            // No host sends faster than its line.
            min_rate: (options.rate("min_rate", Rate::from_mbps(100)).as_bps() as f64).min(line_rate),
            min_cwnd: options.count("min_cwnd", 1, 1..=1000),
        }
    }

    /// Round trip without queues in picoseconds.
    pub fn rtt(&self, flow: &Flow) -> f64 {
        let measured = if flow.min_rtt == Time::MAX { Time::from_us(10) } else { flow.min_rtt };
        self.rtt.unwrap_or(measured).as_ps().max(1) as f64
    }

    /// Bytes that the line carries in a round trip.
    pub fn line_window(&self, flow: &Flow) -> f64 {
        bytes(self.line_rate, self.rtt(flow))
    }

    /// Sets the window of so many bytes, and the rate of a window in each round trip. After a retransmission timeout the window starts
    /// slowly (RFC 5681 section 3.1) until recovery ends: it grows by the packets that an ACK has delivered.
    pub fn set(&self, flow: &mut Flow, window: f64, delivered: u32) {
        let packet = f64::from(flow.mss + self.overhead);
        // The last packet may reach beyond the window.
        let packets = (window / packet).ceil().max(f64::from(self.min_cwnd)).min(f64::from(flow.cwnd_clamp));
        let slow = if flow.state == State::Loss { flow.cwnd.saturating_add(delivered) } else { u32::MAX };
        flow.cwnd = slow.min(packets as u32);
        let rate = window * 8e12 / self.rtt(flow);
        let payload = rate.clamp(self.min_rate, self.line_rate) * f64::from(flow.mss) / packet;
        flow.pacing_rate = Rate::from_bps_f64(payload);
    }
}

/// Bytes at a rate in bit/s over a time in picoseconds.
pub fn bytes(rate: f64, time: f64) -> f64 {
    rate * time / 8e12
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Driver, controlled};
    use super::*;

    #[test]
    fn a_line_slower_than_the_least_rate_is_the_least_rate() {
        let wire = controlled(WireWindow::new, &[("line_rate", "50 Mbit/s"), ("min_cwnd", "1000")]);
        let mut flow = Driver::new(80, Time::from_us(100)).flow;
        flow.cwnd_clamp = 20;
        wire.set(&mut flow, 1e9, 4);
        assert_eq!(flow.cwnd, 20);
        let payload = 50e6 * f64::from(flow.mss) / f64::from(flow.mss + 66);
        assert!((flow.pacing_rate.as_bps() as f64 - payload).abs() < 1.0, "{:?}", flow.pacing_rate);
    }

    #[test]
    fn after_a_timeout_the_window_starts_slowly() {
        let wire = controlled(WireWindow::new, &[("line_rate", "10 Gbit/s"), ("rtt", "100 us")]);
        let mut flow = Driver::new(80, Time::from_us(100)).flow;
        wire.set(&mut flow, 60_000.0, 4);
        let whole = flow.cwnd;
        assert!(whole > 20, "{whole}");
        (flow.state, flow.cwnd) = (State::Loss, 1);
        let mut windows = vec![];
        for delivered in [1, 2, 4, 100] {
            wire.set(&mut flow, 60_000.0, delivered);
            windows.push(flow.cwnd);
        }
        assert_eq!(windows, [2, 4, 8, whole]);
    }
}
