//! Drives a control with hand-made ACKs, as a connection would.

use units::Time;

use super::{Ack, CongestionControl, Flow, RateSample};

pub const MSS: u32 = 1000;

#[derive(Debug)]
pub struct Driver {
    pub flow: Flow,
    pub now: Time,
    /// State of the flow when the packets that are out were sent, the first one first.
    sent: std::collections::VecDeque<Sent>,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    at: Time,
    first_sent: Time,
    delivered: u64,
    delivered_at: Time,
    delivered_ce: u64,
    lost: u64,
    in_flight: u32,
}

impl Driver {
    /// An established connection with ECN, whose only round trip so far took `rtt`.
    pub fn new(cwnd: u32, rtt: Time) -> Driver {
        let mut flow = Flow::new(cwnd, MSS);
        flow.snd_una = 1;
        flow.snd_nxt = 1;
        flow.ecn = true;
        flow.accurate_ecn = true;
        flow.is_cwnd_limited = true;
        (flow.srtt, flow.min_rtt) = (rtt, rtt);
        Driver { flow, now: Time::from_secs(1), sent: Default::default() }
    }

    /// Sends what the window allows.
    pub fn send(&mut self) {
        while self.flow.in_flight() < self.flow.cwnd {
            self.send_one();
        }
    }

    fn send_one(&mut self) {
        let flow = &mut self.flow;
        if flow.packets_out == 0 {
            flow.first_sent = self.now;
            flow.delivered_at = self.now;
        }
        flow.packets_out += 1;
        flow.snd_nxt += u64::from(MSS);
        flow.max_packets_out = flow.max_packets_out.max(flow.packets_out);
        flow.last_sent = self.now;
        self.sent.push_back(Sent {
            at: self.now,
            first_sent: flow.first_sent,
            delivered: flow.delivered,
            delivered_at: flow.delivered_at,
            delivered_ce: flow.delivered_ce,
            lost: flow.lost,
            in_flight: flow.in_flight(),
        });
    }

    /// The first `count` packets out are acknowledged at `at`, some of them marked; what the window allows is sent.
    pub fn ack(&mut self, control: &mut dyn CongestionControl, at: Time, count: u32, ce: u32) {
        self.send();
        self.acked(control, at, count, ce);
        self.send();
    }

    fn acked(&mut self, control: &mut dyn CongestionControl, at: Time, count: u32, ce: u32) {
        self.now = at;
        let prior_in_flight = self.flow.in_flight();
        let count = count.min(self.flow.packets_out);
        let mut newest = None;
        for _ in 0..count {
            newest = self.sent.pop_front();
        }
        let Some(newest) = newest else { return };
        let flow = &mut self.flow;
        flow.packets_out -= count;
        flow.snd_una += u64::from(count * MSS);
        flow.delivered += u64::from(count);
        flow.delivered_ce += u64::from(ce);
        flow.delivered_at = at;
        let rtt = at - newest.at;
        flow.min_rtt = flow.min_rtt.min(rtt);
        flow.srtt = flow.srtt - flow.srtt / 8 + rtt / 8;
        flow.first_sent = newest.at;
        let interval = (newest.at - newest.first_sent).max(at - newest.delivered_at);
        let ack = Ack {
            now: at,
            una: flow.snd_una,
            acked: count,
            rtt: Some(rtt),
            in_flight: flow.in_flight(),
            ece: ce > 0,
            ce,
            advanced: true,
        };
        control.in_ack_event(flow, &ack);
        control.pkts_acked(flow, &ack);
        if control.takes_over() {
            let sample = RateSample {
                prior_delivered: newest.delivered,
                prior_delivered_ce: newest.delivered_ce,
                prior_at: Some(newest.delivered_at),
                delivered: flow.delivered - newest.delivered,
                delivered_ce: flow.delivered_ce - newest.delivered_ce,
                interval: (interval >= flow.min_rtt).then_some(interval),
                rtt: Some(rtt),
                acked_sacked: count,
                prior_in_flight,
                tx_in_flight: newest.in_flight,
                prior_lost: newest.lost,
                ..RateSample::default()
            };
            control.cong_control(flow, &ack, &sample);
        } else {
            control.cong_avoid(flow, &ack);
        }
    }

    /// A round trip: all that is out is acknowledged packet by packet, evenly spaced from `rtt` after now on; the first `ce` of
    /// them were marked.
    pub fn round(&mut self, control: &mut dyn CongestionControl, rtt: Time, ce: u32) {
        self.send();
        let packets = self.flow.packets_out;
        let start = self.now + rtt;
        for i in 0..packets {
            let at = start + rtt * u64::from(i) / u64::from(packets) / 1000;
            self.ack(control, at, 1, u32::from(i < ce));
        }
    }
}

/// A path without losses: packets leave it one after the other, and their ACKs come a round trip after they had left.
#[derive(Debug)]
pub struct Pipe {
    /// Time between two packets at the bottleneck.
    pub spacing: Time,
    /// Round trip without queue.
    pub rtt: Time,
    free_at: Time,
    acks: std::collections::VecDeque<Time>,
}

impl Pipe {
    pub fn new(spacing: Time, rtt: Time) -> Pipe {
        Pipe { spacing, rtt, free_at: Time::ZERO, acks: Default::default() }
    }

    /// Packets waiting for the bottleneck.
    pub fn queue(&self, now: Time) -> u64 {
        self.free_at.saturating_sub(now).as_ps() / self.spacing.as_ps()
    }

    /// Runs a control over the path, with pacing, until a time; `see` looks after each ACK.
    pub fn run<C: CongestionControl>(
        &mut self,
        driver: &mut Driver,
        control: &mut C,
        until: Time,
        mut see: impl FnMut(&Driver, &C, u64),
    ) {
        while driver.now < until {
            let sends = (driver.flow.in_flight() < driver.flow.cwnd)
                .then(|| driver.flow.pacing_until.max(driver.now));
            match (sends, self.acks.front().copied()) {
                (Some(at), next) if next.is_none_or(|ack| at < ack) => {
                    driver.now = at;
                    driver.flow.is_cwnd_limited = false;
                    driver.send_one();
                    let gap = driver.flow.pacing_rate.time_for(units::Bytes::new(u64::from(MSS)));
                    driver.flow.pacing_until = at + gap;
                    self.free_at = self.free_at.max(at) + self.spacing;
                    self.acks.push_back(self.free_at + self.rtt);
                }
                (_, Some(at)) => {
                    self.acks.pop_front();
                    driver.flow.is_cwnd_limited = sends.is_none();
                    driver.acked(control, at, 1, 0);
                    see(driver, control, self.queue(at));
                }
                (_, None) => return,
            }
        }
    }
}

/// A control with its parameters.
pub fn controlled<C>(new: impl FnOnce(&mut super::Options) -> C, pairs: &[(&str, &str)]) -> C {
    let given: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut options = super::Options::new(&given);
    let control = new(&mut options);
    assert_eq!(options.finish("test"), Ok(()));
    control
}
