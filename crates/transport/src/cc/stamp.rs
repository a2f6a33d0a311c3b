//! A window and a rate from one field that switches stamp with the most congested hop's state (`systems/stamping`): the rate's
//! reference moves once in a round trip by the mean of its stamps, the rate itself with each ACK by the newest one. In the logarithm of
//! the rate this is a PI controller. The README of the system has the argument for its stability.
//!
//! The stamp is the time in queue of the fullest hop (`signal=queue`), or its utilisation with its queue (`signal=utilisation`),
//! both in parts of `base_rtt`, which is one constant of the network. A flow whose round trip is longer moves more slowly by as much, so
//! that flows of any round trip get the same share.
//!
//! With `rtt_weight` what the round trip has beyond the one without queues counts as well (section 5 of "Switches Know the Exact Amount of
//! Congestion"): the queue is the stamp, and this part of all other queues on the way. So a flow also gives way to queues that are not its
//! bottleneck: 0 is MAX, 1 is the round trip.
//!
//! After a loss the reference is halved, at most once in a round trip, and down to a packet in each: the least rate is for stamps
//! alone. Where nothing is stamped for a whole round trip, the reference grows by a packet in each, as Reno's window: then losses
//! alone say what the network can carry.

use units::{Bytes, Time};

use super::wire_window::{WireWindow, bytes};
use super::{Ack, CongestionControl, Flow, Options, RateSample, StampField, State};

/// Queue, in parts of the base round trip, from `eta` on at which the additive step is a fifth.
const LEAST_GATE: f64 = 0.2;
/// Below this share of `eta` the rate grows at the full gain, whatever the round trip.
const ROOM: f64 = 0.8;

#[derive(Debug)]
pub struct Stamp {
    wire: WireWindow,
    stamps: StampField,
    utilisation: bool,
    /// Part of the queues besides the longest that counts.
    rtt_weight: f64,
    /// Picoseconds.
    base_rtt: f64,
    /// Parts of the base round trip: set point, offset of the queue that is free, step of the search for free capacity.
    eta: f64,
    free_queue: f64,
    search: f64,
    gain: f64,
    /// Additive step as a share of the line rate; the bytes after which it shrinks; the least part of it that is left.
    step: f64,
    young: f64,
    least_step: f64,
    theta: f64,

    /// bit/s.
    reference: f64,
    rate: f64,
    /// Of the stamps since the reference moved.
    sum: f64,
    count: u32,
    seen: bool,
    idle: i32,
    /// Bytes acknowledged since the start.
    acked: f64,
    last_update: Option<u64>,
    cut_at: u64,
    /// A stamp should have come when this is acknowledged.
    quiet_until: u64,
}

impl Stamp {
    pub fn new(options: &mut Options) -> Stamp {
        let utilisation = options.one_of("signal", &[("queue", false), ("utilisation", true)]);
        Stamp {
            wire: WireWindow::new(options),
            stamps: StampField::new(options),
            utilisation,
            rtt_weight: options.number("rtt_weight", 0.0, 0.0..=1.0),
            base_rtt: options.time("base_rtt", Time::from_us(10)).as_ps().max(1) as f64,
            eta: options.number("eta", if utilisation { 0.98 } else { 1.0 }, 0.1..=2.0),
            free_queue: options.number("free_queue", 0.08, 0.0..=10.0),
            search: options.number("search", 0.05, 0.0..=0.5),
            gain: options.number("gain", 0.6, 0.0..=1.0),
            step: options.number("step", 0.02, 0.0..=1.0),
            young: options.size("young", Bytes::new(100_000)).get() as f64,
            least_step: options.number("least_step", 0.3, 0.0..=1.0),
            theta: options.number("theta", 0.3, 0.001..=100.0),
            reference: 0.0,
            rate: 0.0,
            sum: 0.0,
            count: 0,
            seen: false,
            idle: 0,
            acked: 0.0,
            last_update: None,
            cut_at: 0,
            quiet_until: 0,
        }
    }

    /// A stamp in picoseconds, and a part of what the round trip has beyond it and the one without queues.
    fn with_rtt(&self, stamp: f64, measured: Option<Time>, rtt: f64) -> f64 {
        let all = measured.map_or(stamp, |measured| measured.as_ps() as f64 - rtt);
        stamp + self.rtt_weight * (all - stamp).max(0.0)
    }

    /// A stamp of so many base round trips has come; `commit`: the reference moves.
    fn update(&mut self, stamp: f64, commit: bool, rtt: f64) {
        let slow = (self.base_rtt / rtt).min(1.0);
        let newest = if self.utilisation { stamp } else { 1.0 + stamp - self.free_queue };
        self.sum += newest;
        self.count += 1;
        self.seen |= stamp > 0.0;
        let mut load = if commit { self.sum / f64::from(self.count) } else { newest };
        if commit && !self.utilisation {
            if self.seen {
                self.idle = 0;
            } else {
                // No queue in all of a round trip: there is room, and the longer it is so the more.
                let room = (self.search * f64::from(1u32 << self.idle.min(16))).max(self.free_queue);
                load = 1.0 - room.min(0.5);
                self.idle += 1;
            }
            self.seen = false;
        }
        let line = self.wire.line_rate;
        let age = (self.young / (self.young + self.acked)).sqrt();
        let mut step = self.step * line * slow * age.max(self.least_step);
        if load > self.eta {
            step *= (1.0 - (load - self.eta) / self.theta).max(LEAST_GATE);
        }
        let error = load / self.eta - 1.0;
        let slow = if error >= 0.0 || error > ROOM - 1.0 { slow } else { 1.0 };
        let divisor = 1.0 + self.gain * slow * error;
        self.rate = (self.reference / divisor + step).clamp(self.wire.min_rate.min(line), line);
        if commit {
            self.reference = self.rate;
            (self.sum, self.count) = (0.0, 0);
        }
    }
}

impl CongestionControl for Stamp {
    fn name(&self) -> &'static str {
        "stamp"
    }

    fn init(&mut self, flow: &mut Flow, _now: Time) {
        self.rate = self.wire.line_rate;
        self.reference = self.rate;
        self.quiet_until = flow.snd_nxt + self.wire.line_window(flow) as u64;
        self.wire.set(flow, self.wire.line_window(flow), 0);
    }

    fn signal(&mut self, _flow: &mut Flow, _now: Time, kind: u16, data: &[u8]) {
        self.stamps.note(kind, data);
    }

    fn ssthresh(&mut self, flow: &mut Flow, _now: Time) -> u32 {
        flow.ssthresh
    }

    fn cong_avoid(&mut self, _flow: &mut Flow, _ack: &Ack) {}

    fn cong_control(&mut self, flow: &mut Flow, ack: &Ack, sample: &RateSample) -> bool {
        self.acked += f64::from(sample.acked_sacked) * f64::from(flow.mss);
        let rtt = self.wire.rtt(flow);
        if let Some(stamp) = self.stamps.take() {
            let commit = self.last_update.is_some_and(|last| ack.una > last);
            let stamp = self.with_rtt(stamp, sample.rtt, rtt);
            self.update(stamp / self.base_rtt, commit, rtt);
            if commit || self.last_update.is_none() {
                self.last_update = Some(flow.snd_nxt);
            }
            self.quiet_until = flow.snd_nxt;
        } else if ack.una > self.quiet_until {
            // A round trip without a stamp.
            self.quiet_until = flow.snd_nxt;
            if flow.state < State::Recovery {
                self.reference += f64::from(flow.mss) * 8e12 / rtt;
                self.reference = self.reference.min(self.wire.line_rate);
                self.rate = self.reference;
            }
        }
        self.wire.set(flow, bytes(self.rate, rtt), sample.acked_sacked);
        true
    }

    fn set_state(&mut self, flow: &mut Flow, state: State, _now: Time) {
        if state >= State::Recovery && flow.snd_una >= self.cut_at {
            self.cut_at = flow.snd_nxt;
            // Of what was really out, which the receiver's window or the sender's data may have limited.
            let packet = f64::from(flow.mss) * 8e12 / self.wire.rtt(flow);
            let out = f64::from(flow.packets_out) * packet;
            self.reference = (self.reference.min(out) / 2.0).max(packet);
            self.rate = self.rate.min(self.reference);
        }
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
    use super::super::testing::{Driver, controlled};
    use super::*;

    const RTT: f64 = 10e6;

    fn queue() -> Stamp {
        let mut control =
            controlled(Stamp::new, &[("line_rate", "25 Gbit/s"), ("base_rtt", "10 us"), ("rtt", "10 us")]);
        (control.reference, control.rate) = (25e9, 25e9);
        // An old flow.
        control.acked = 1e9;
        control
    }

    /// N flows over one link in fluid form, stamped with its queue, a commit each round trip: rates in the end, and the queue
    /// in parts of a round trip. `first`: the share of the line rate that each starts with.
    fn fluid(first: &[f64], rtts: &[f64], rounds: usize) -> (Vec<f64>, f64) {
        let mut flows: Vec<Stamp> = first
            .iter()
            .map(|share| {
                let mut flow = queue();
                (flow.reference, flow.rate) = (25e9 * share, 25e9 * share);
                flow
            })
            .collect();
        let mut stamp = 0.0;
        for round in 1..=rounds {
            for (flow, rtt) in flows.iter_mut().zip(rtts) {
                flow.update(stamp, (round as f64 * RTT) % rtt < RTT, *rtt);
            }
            // The queue is what is in flight beyond the line.
            let out: f64 = flows.iter().zip(rtts).map(|(flow, rtt)| flow.rate * rtt / RTT).sum();
            let pipe: f64 = flows.iter().zip(rtts).map(|(flow, rtt)| flow.rate * rtt / RTT).sum::<f64>()
                / flows.iter().map(|flow| flow.rate).sum::<f64>();
            stamp = (out / 25e9 - pipe).max(0.0);
        }
        (flows.iter().map(|flow| flow.rate).collect(), stamp)
    }

    #[test]
    fn other_queues_count_by_the_weight_of_the_rtt() {
        let ps = |us: u64| Some(Time::from_us(us));
        for (weight, expected) in [("0", 3e6), ("0.25", 4e6), ("1", 7e6)] {
            let control = controlled(Stamp::new, &[("rtt_weight", weight), ("rtt", "10 us")]);
            assert_eq!(control.with_rtt(3e6, ps(17), 10e6), expected);
            // A round trip without the stamp's queue in it, and an ACK that measured none.
            assert_eq!(control.with_rtt(3e6, ps(12), 10e6), 3e6);
            assert_eq!(control.with_rtt(3e6, None, 10e6), 3e6);
        }
    }

    #[test]
    fn it_settles_with_a_small_queue_and_equal_shares() {
        for count in [2, 8, 32] {
            let first: Vec<_> = (0..count).map(|flow| if flow == 0 { 1.0 } else { 0.1 }).collect();
            let (rates, stamp) = fluid(&first, &vec![RTT; count], 4000);
            let (least, most) = rates.iter().fold((f64::MAX, 0.0f64), |(l, m), r| (l.min(*r), m.max(*r)));
            assert!(most / least < 1.05, "{count}: {least} to {most}");
            let sum: f64 = rates.iter().sum::<f64>() / 25e9;
            assert!((0.98..1.4).contains(&sum) && stamp < 0.4, "{count}: {sum} {stamp}");
        }
    }

    const SLOTS: usize = 16;
    /// Of the base round trip: a fifth of the time of a packet. Groups whose shares still converge make steps that are smaller.
    const STEADY: f64 = 0.01;

    /// Flows over one link in fluid form, with the delay of the feedback: a stamp tells of the windows a round trip ago. There are
    /// equal flows, in groups that commit at other times of a round trip, one for each control. Capacities, each for so many slots
    /// of a sixteenth of a round trip, are parts of the line. Returns the queue in parts of the base round trip, by slot.
    fn stepped(controls: &mut [Stamp], flows: f64, rtt: f64, capacities: &[(f64, usize)]) -> Vec<f64> {
        let mut queues = vec![0.0; SLOTS];
        let groups = controls.len();
        for (capacity, slots) in capacities {
            for _ in 0..*slots {
                let (now, stamp) = (queues.len(), queues[queues.len() - SLOTS]);
                let mut rate = 0.0;
                for (group, control) in controls.iter_mut().enumerate() {
                    control.update(stamp, now % SLOTS == group * SLOTS / groups, rtt);
                    rate += control.rate * flows / groups as f64;
                }
                // What windows hold beyond the pipe.
                queues.push((rate / (25e9 * capacity) - 1.0).max(0.0) * rtt / controls[0].base_rtt);
            }
        }
        queues
    }

    fn range(values: &[f64]) -> f64 {
        values.iter().fold(0.0f64, |most, value| most.max(*value))
            - values.iter().fold(f64::MAX, |least, value| least.min(*value))
    }

    /// Gain of the loop around its fixed point, as in the README of the system: of the law, and of the gate on the additive step.
    fn loop_gain(control: &Stamp, flows: f64, rtt: f64) -> f64 {
        let k = (control.base_rtt / rtt).min(1.0);
        let step = control.step * control.least_step;
        // The error e is that at which the cut and the additive step are equal: load * (1 - 1 / y) = flows * k * step * gate.
        let load = |e: f64| 1.0 + (control.free_queue + e) * control.base_rtt / rtt;
        let gate = |e: f64| (1.0 - e / control.theta).max(LEAST_GATE);
        let cut = |e: f64| 1.0 + control.gain * k * e;
        let (mut low, mut high) = (0.0, 100.0);
        for _ in 0..100 {
            let e = (low + high) / 2.0;
            let grows = flows * k * step * gate(e) > load(e) * (1.0 - 1.0 / cut(e));
            (low, high) = if grows { (e, high) } else { (low, e) };
        }
        let slope = if gate(low) > LEAST_GATE { flows * step / control.theta } else { 0.0 };
        // An error is the load's times rtt / base_rtt, which k takes back.
        k * rtt / control.base_rtt * (control.gain * load(low) / cut(low).powi(2) + slope)
    }

    /// The loop's gain, and how far the queue still swings in 20 round trips long after steps of the capacity, in parts of the
    /// base round trip. Steps begin within a round trip: a swing whose period is two round trips is not seen by flows that commit together.
    fn swings(flows: f64, rtt: f64, groups: usize, gain: &str) -> (f64, f64) {
        let new = || {
            let options =
                [("line_rate", "25 Gbit/s"), ("base_rtt", "10 us"), ("rtt", "10 us"), ("gain", gain)];
            let mut control = controlled(Stamp::new, &options);
            (control.reference, control.acked) = (25e9 / flows, 1e9);
            control
        };
        let mut controls: Vec<Stamp> = (0..groups).map(|_| new()).collect();
        // At the last capacity, of which steps are a larger part.
        let gain = loop_gain(&controls[0], flows / 0.97, rtt);
        let round = |count| count * SLOTS + 5;
        let capacities = [(1.0, round(2000)), (0.7, round(2000)), (1.0, round(2000)), (0.97, round(2000))];
        let queues = stepped(&mut controls, flows, rtt, &capacities);
        (gain, range(&queues[queues.len() - 20 * SLOTS..]))
    }

    /// The README's condition, with the constants of this file: the loop of up to 16 old flows settles after a step.
    #[test]
    fn with_a_loop_gain_below_one_a_step_settles_at_any_round_trip() {
        for rtt in [10e6, 30e6, 100e6, 1e9, 10e9] {
            for flows in [1.0, 2.0, 8.0, 16.0] {
                for groups in [1, 4] {
                    let (gain, swing) = swings(flows, rtt, groups, "0.6");
                    assert!(gain < 1.0, "{rtt} {flows}: {gain}");
                    assert!(swing < STEADY, "{rtt} {flows} {groups}: {gain} {swing}");
                }
            }
        }
    }

    #[test]
    fn with_a_loop_gain_above_one_it_swings_within_bounds() {
        for rtt in [10e6, 30e6, 100e6, 1e9, 10e9] {
            for flows in [24.0, 32.0, 64.0] {
                let (gain, swing) = swings(flows, rtt, 1, "0.6");
                assert!(gain > 1.0, "{rtt} {flows}: {gain}");
                assert!((10.0 * STEADY..1.0).contains(&swing), "{rtt} {flows}: {gain} {swing}");
            }
            let (gain, swing) = swings(2.0, rtt, 1, "1");
            assert!(gain > 1.0 && swing > 10.0 * STEADY, "{rtt}: {gain} {swing}");
        }
    }

    #[test]
    fn a_flow_of_ten_times_the_round_trip_moves_more_slowly() {
        let mut near = queue();
        let mut far = queue();
        near.update(1.0, false, RTT);
        far.update(1.0, false, 10.0 * RTT);
        assert!(25e9 - near.rate > 5.0 * (25e9 - far.rate), "{} {}", near.rate, far.rate);
    }

    #[test]
    fn no_queue_for_long_is_room() {
        let mut control = queue();
        (control.reference, control.rate) = (1e9, 1e9);
        let mut rates = vec![];
        for _ in 0..8 {
            control.update(0.0, true, RTT);
            rates.push(control.rate);
        }
        assert!(rates.windows(2).all(|pair| pair[1] > pair[0]));
        assert!(rates[7] / rates[6] > rates[1] / rates[0]);
    }

    #[test]
    fn without_stamps_it_grows_by_a_packet_a_round_trip_and_halves_for_losses() {
        let rtt = Time::from_us(10);
        let mut control = queue();
        let mut driver = Driver::new(30, rtt);
        control.init(&mut driver.flow, driver.now);
        (control.reference, control.rate) = (1e9, 1e9);
        control.quiet_until = 0;
        driver.send();
        for _ in 0..90 {
            driver.ack(&mut control, driver.now + Time::from_us(1), 1, 0);
        }
        // Three windows of thirty packets at most: as many steps of 0.8 Gbit/s.
        assert!(control.reference > 1e9 && control.reference <= 25e9, "{}", control.reference);
        let before = control.reference;
        control.set_state(&mut driver.flow, State::Recovery, driver.now);
        assert!(control.reference <= before / 2.0);
        let halved = control.reference;
        control.set_state(&mut driver.flow, State::Loss, driver.now);
        assert_eq!(control.reference, halved, "once in a round trip");
    }
}
