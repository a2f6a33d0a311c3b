//! PowerTCP: Addanki et al., "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI 2022, Algorithms 1 and 2. The
//! window follows the power of the fullest link: bytes in flight times the rate at which they change.
//!
//! Known deviations:
//! - The weight of a sample is the time since the last one, at most a round trip (the paper does not say so, the filter needs it).
//! - beta is `line_rate` times the round trip over `flows`, 50 unless given; the paper prints no number of flows.
//! - Losses are the stack's affair, as in [`super::hpcc`].
//! - `signal=rtt` is theta-PowerTCP: without telemetry, from the round trip and its gradient, once per round trip.

use std::collections::VecDeque;

use units::Time;

use super::telemetry::{Interval, Telemetry};
use super::wire_window::{WireWindow, bytes};
use super::{Ack, CongestionControl, Flow, Options, RateSample};

#[derive(Debug)]
pub struct PowerTcp {
    wire: WireWindow,
    theta: bool,
    gamma: f64,
    flows: f64,
    kind: u16,
    telemetry: Telemetry,
    /// Normalised power, filtered.
    power: f64,
    /// Bytes.
    window: f64,
    /// Windows of earlier round trips: the offset that was next when they were remembered.
    windows: VecDeque<(u64, f64)>,
    /// Of theta: when the last ACK came, with its round trip in picoseconds.
    previous: Option<(Time, f64)>,
    last_update: u64,
}

impl PowerTcp {
    pub fn new(options: &mut Options) -> PowerTcp {
        PowerTcp {
            wire: WireWindow::new(options),
            theta: options.one_of("signal", &[("telemetry", false), ("rtt", true)]),
            gamma: options.number("gamma", 0.9, 0.01..=1.0),
            flows: options.number("flows", 50.0, 1.0..=1e6),
            kind: options.count("telemetry_kind", 253, 1..=0xffff) as u16,
            telemetry: Telemetry::default(),
            power: 1.0,
            window: 0.0,
            windows: VecDeque::new(),
            previous: None,
            last_update: 0,
        }
    }

    /// NormPower: of the hop with the most of it.
    fn sample_hops(&mut self, hops: &[Interval], rtt: f64) {
        let mut most: Option<(f64, f64)> = None;
        for hop in hops.iter().filter(|hop| hop.ns > 0.0) {
            let line = hop.rate / 8e9;
            // Bytes per nanosecond that came to the queue, and bytes in flight.
            let current = (hop.queues[1] - hop.queues[0] + hop.sent) / hop.ns;
            let voltage = hop.queues[1] + bytes(hop.rate, rtt);
            let power = current * voltage / (line * bytes(hop.rate, rtt));
            if most.is_none_or(|(most, _)| power > most) {
                most = Some((power, hop.ns * 1e3));
            }
        }
        if let Some((power, time)) = most {
            self.smooth(power, time, rtt);
        }
    }

    fn smooth(&mut self, power: f64, time: f64, rtt: f64) {
        let weight = time.min(rtt) / rtt;
        self.power = (1.0 - weight) * self.power + weight * power.max(0.0);
    }

    /// Of Algorithm 2. True: there was a sample before.
    fn sample_rtt(&mut self, now: Time, sample: f64, rtt: f64) -> bool {
        let Some((at, before)) = self.previous.replace((now, sample)) else { return false };
        let time = now.saturating_sub(at).as_ps() as f64;
        if time > 0.0 {
            self.smooth((1.0 + (sample - before) / time) * sample / rtt, time, rtt);
        }
        true
    }

    /// UpdateWindow.
    fn update(&mut self, una: u64, limits: [f64; 2], increase: f64) {
        // The window when what is acknowledged now was sent.
        while self.windows.len() > 1 && self.windows[1].0 <= una {
            self.windows.pop_front();
        }
        let old = self.windows.front().map_or(self.window, |(_, window)| *window);
        let next = old / self.power.max(1e-6) + increase;
        let window = self.gamma * next + (1.0 - self.gamma) * self.window;
        self.window = window.clamp(limits[0], limits[1]);
    }
}

impl CongestionControl for PowerTcp {
    fn name(&self) -> &'static str {
        "powertcp"
    }

    fn init(&mut self, flow: &mut Flow, _now: Time) {
        self.window = self.wire.line_window(flow);
        self.windows.push_back((0, self.window));
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
        let rtt = self.wire.rtt(flow);
        let commit = ack.una > self.last_update;
        let fresh = if self.theta {
            sample.rtt.is_some_and(|sample| self.sample_rtt(ack.now, sample.as_ps() as f64, rtt)) && commit
        } else {
            self.telemetry.take().is_some_and(|hops| {
                self.sample_hops(&hops, rtt);
                true
            })
        };
        if fresh {
            let most = self.wire.line_window(flow);
            let limits = [bytes(self.wire.min_rate, rtt).min(most), most];
            self.update(ack.una, limits, most / self.flows);
        }
        if commit {
            self.last_update = flow.snd_nxt;
            self.windows.push_back((flow.snd_nxt, self.window));
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
    use super::super::testing::controlled;
    use super::*;

    const RTT: f64 = 10e6;
    const LINE: f64 = 31_250.0;

    fn power(queues: [f64; 2], sent: f64) -> f64 {
        let mut control = controlled(PowerTcp::new, &[]);
        control.sample_hops(&[Interval { ns: 10_000.0, sent, queues, rate: 25e9 }], RTT);
        control.power
    }

    #[test]
    fn power_is_current_times_voltage() {
        // A full link with no queue; with a standing queue of a BDP; with one that grows by half of the link's rate.
        assert!((power([0.0, 0.0], LINE) - 1.0).abs() < 1e-9);
        assert!((power([LINE, LINE], LINE) - 2.0).abs() < 1e-9);
        assert!((power([0.0, LINE / 2.0], LINE) - 1.5 * 1.5).abs() < 1e-9);
        // A queue that drains as fast as the link sends: nothing comes.
        assert_eq!(power([LINE, 0.0], LINE), 0.0);
    }

    /// The fixed point of the paper: N flows leave a queue of N beta, their windows are the BDP and that, and it does not move.
    #[test]
    fn the_fixed_point_is_the_sum_of_the_increases() {
        for flows in [2u32, 10, 50] {
            let mut control = controlled(PowerTcp::new, &[("flows", "50")]);
            let beta = LINE / 50.0;
            let expected = f64::from(flows) * beta;
            control.window = (LINE + expected) / f64::from(flows);
            let first = control.window;
            control.windows.push_back((0, control.window));
            let (mut queue, mut before) = (expected, vec![control.window; 10]);
            control.power = 1.0 + expected / LINE;
            for step in 0..1000 {
                // An ACK in each tenth of a round trip, of what was sent with the window of then.
                let old = before[step % 10];
                let next = (old * f64::from(flows) - LINE).max(0.0);
                let hop = Interval { ns: 1000.0, sent: LINE / 10.0, queues: [queue, next], rate: 25e9 };
                control.sample_hops(&[hop], RTT);
                queue = next;
                control.windows[0].1 = old;
                before[step % 10] = control.window;
                control.update(0, [1.0, LINE], beta);
            }
            assert!((control.window / first - 1.0).abs() < 1e-6, "{flows}: {} for {first}", control.window);
            assert!((queue / expected - 1.0).abs() < 1e-3, "{flows}: {queue} for {expected}");
        }
    }

    #[test]
    fn theta_goes_by_the_round_trip_and_its_gradient() {
        let mut control = controlled(PowerTcp::new, &[("signal", "rtt")]);
        assert!(!control.sample_rtt(Time::from_us(100), 10e6, RTT));
        assert!(control.sample_rtt(Time::from_us(110), 10e6, RTT));
        assert!((control.power - 1.0).abs() < 1e-9);
        // Five microseconds more in ten: one and a half times the rate, one and a half times what is in flight.
        assert!(control.sample_rtt(Time::from_us(120), 15e6, RTT));
        assert!((control.power - 2.25).abs() < 1e-9);
    }
}
