//! HPCC: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019. Telemetry of each hop ([`super::telemetry`]) gives the
//! bytes in flight of the fullest link; the window follows them.
//!
//! Known deviations:
//! - Losses are the stack's affair (SACK, retransmission timeout): they do not change the window. The paper's network has none.
//! - `max_stage` is 0, as the authors now advise (and as their figures were made), not the 5 that is printed; eta is 0.95.
//! - Without telemetry, as on an ACK whose options left no room, the window stays.

use units::{Bytes, Time};

use super::telemetry::{Interval, Telemetry};
use super::wire_window::{WireWindow, bytes};
use super::{Ack, CongestionControl, Flow, Options, RateSample};

#[derive(Debug)]
pub struct Hpcc {
    wire: WireWindow,
    eta: f64,
    max_stage: u32,
    /// Additive increase in bytes.
    increase: f64,
    kind: u16,
    telemetry: Telemetry,
    /// Bytes in flight of the fullest link, as a share of what it carries in a round trip; filtered.
    utilisation: f64,
    /// Reference window and window, in bytes.
    reference: f64,
    window: f64,
    stage: u32,
    /// The reference moves when this is acknowledged.
    last_update: u64,
}

impl Hpcc {
    pub fn new(options: &mut Options) -> Hpcc {
        Hpcc {
            wire: WireWindow::new(options),
            eta: options.number("eta", 0.95, 0.1..=1.0),
            max_stage: options.count("max_stage", 0, 0..=1000),
            increase: options.size("additive_increase", Bytes::new(80)).get() as f64,
            kind: options.count("telemetry_kind", 253, 1..=0xffff) as u16,
            telemetry: Telemetry::default(),
            utilisation: 1.0,
            reference: 0.0,
            window: 0.0,
            stage: 0,
            last_update: 0,
        }
    }

    /// MeasureInflight.
    fn measure(&mut self, hops: &[Interval], rtt: f64) {
        let rtt_ns = rtt / 1e3;
        let mut most: Option<(f64, f64)> = None;
        for hop in hops.iter().filter(|hop| hop.ns > 0.0) {
            let queued = hop.queues[0].min(hop.queues[1]) / bytes(hop.rate, rtt);
            let used = queued + hop.sent * 8e9 / hop.ns / hop.rate;
            if most.is_none_or(|(most, _)| used > most) {
                most = Some((used, hop.ns));
            }
        }
        if let Some((used, ns)) = most {
            let weight = ns.min(rtt_ns) / rtt_ns;
            self.utilisation = (1.0 - weight) * self.utilisation + weight * used;
        }
    }

    /// ComputeWind.
    fn compute(&mut self, commit: bool, limits: [f64; 2]) {
        let multiplies = self.utilisation >= self.eta || self.stage >= self.max_stage;
        let scaled =
            if multiplies { self.reference * self.eta / self.utilisation.max(1e-6) } else { self.reference };
        self.window = (scaled + self.increase).clamp(limits[0], limits[1]);
        if commit {
            self.stage = if multiplies { 0 } else { self.stage + 1 };
            self.reference = self.window;
        }
    }
}

impl CongestionControl for Hpcc {
    fn name(&self) -> &'static str {
        "hpcc"
    }

    fn init(&mut self, flow: &mut Flow, _now: Time) {
        self.window = self.wire.line_window(flow);
        self.reference = self.window;
        self.last_update = flow.snd_nxt;
        self.wire.set(flow, self.window, 0);
    }

    fn signal(&mut self, _flow: &mut Flow, _now: Time, kind: u16, data: &[u8]) {
        if kind == self.kind {
            self.telemetry.note(data);
        }
    }

    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        flow.ssthresh
    }

    fn cong_avoid(&mut self, _flow: &mut Flow, _ack: &Ack) {}

    fn cong_control(&mut self, flow: &mut Flow, ack: &Ack, sample: &RateSample) -> bool {
        if let Some(hops) = self.telemetry.take() {
            self.measure(&hops, self.wire.rtt(flow));
            let commit = ack.una > self.last_update;
            let most = self.wire.line_window(flow);
            let least = bytes(self.wire.min_rate, self.wire.rtt(flow)).min(most);
            self.compute(commit, [least, most]);
            if commit {
                self.last_update = flow.snd_nxt;
            }
        }
        self.wire.set(flow, self.window, sample.acked_sacked);
        true
    }

    fn takes_over(&self) -> bool {
        true
    }

    fn undo_cwnd(&mut self, flow: &mut Flow) -> u32 {
        flow.cwnd
    }

    fn needs_pacing(&self) -> bool {
        true
    }

    fn burst(&self, _flow: &Flow) -> Option<u32> {
        Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::telemetry::tests::field;
    use super::super::testing::{Driver, controlled};
    use super::*;

    const RTT: Time = Time::from_us(10);
    const OPTIONS: &[(&str, &str)] =
        &[("line_rate", "25 Gbit/s"), ("rtt", "10 us"), ("additive_increase", "0 B")];

    /// An ACK each microsecond, with telemetry of one link of 25 Gbit/s that has sent `sent` units of 128 bytes so far, and sends
    /// `more` in each, and has `queue` units of 80 bytes.
    fn acked(hpcc: &mut Hpcc, driver: &mut Driver, sent: &mut u64, more: u64, queue: u64, times: u64) {
        for _ in 0..times {
            let now = driver.now + Time::from_us(1);
            *sent += more;
            hpcc.signal(&mut driver.flow, now, 253, &field(&[(2, now.as_ns(), *sent, queue)]));
            driver.ack(hpcc, now, 1, 0);
        }
    }

    #[test]
    fn the_window_follows_what_is_in_flight() {
        let mut hpcc = controlled(Hpcc::new, OPTIONS);
        let mut driver = Driver::new(100, RTT);
        hpcc.init(&mut driver.flow, driver.now);
        // 25 Gbit/s over 10 us are 31 250 bytes: 30 packets with their headers.
        assert_eq!((hpcc.window, driver.flow.cwnd), (31_250.0, 30));
        // A full link without a queue: 24.4 units of 128 bytes a microsecond. Half of a link, rounded up.
        let mut sent = 0;
        acked(&mut hpcc, &mut driver, &mut sent, 12, 0, 100);
        assert!((hpcc.utilisation - 12.0 * 128.0 / 3125.0).abs() < 0.01, "{}", hpcc.utilisation);
        assert_eq!(hpcc.window, 31_250.0);
        // A queue of half of what is in flight: one and a half in all.
        acked(&mut hpcc, &mut driver, &mut sent, 24, 15_625 / 80, 30);
        assert!((hpcc.utilisation - 1.48).abs() < 0.05, "{}", hpcc.utilisation);
        assert!(hpcc.window < 31_250.0 * 0.95 / 1.3);
    }

    /// Acting with each ACK, but from a reference that moves once in a round trip.
    #[test]
    fn within_a_round_trip_the_reaction_does_not_compound() {
        let mut hpcc = controlled(Hpcc::new, OPTIONS);
        let mut driver = Driver::new(1000, RTT);
        hpcc.init(&mut driver.flow, driver.now);
        driver.flow.cwnd = 1000;
        driver.send();
        hpcc.last_update = driver.flow.snd_nxt;
        acked(&mut hpcc, &mut driver, &mut 0, 24, 390, 60);
        let expected = 31_250.0 * 0.95 / hpcc.utilisation;
        assert!((hpcc.window - expected).abs() < 1.0, "{} {expected}", hpcc.window);
    }

    #[test]
    fn without_telemetry_the_window_stays() {
        let mut hpcc = controlled(Hpcc::new, OPTIONS);
        let mut driver = Driver::new(100, RTT);
        hpcc.init(&mut driver.flow, driver.now);
        for _ in 0..50 {
            driver.ack(&mut hpcc, driver.now + Time::from_us(1), 1, 0);
        }
        assert_eq!(hpcc.window, 31_250.0);
    }
}
