//! What there is to show of a network that runs: flows and ports as they are now, with their rates since each was looked at last.
//!
//! A look is at a bounded number of them, however many there are: the flows that are asked for, and some of the others in turn.

use crate::flow::FlowId;
use crate::network::{Kind, Network};
use crate::port::PortId;

/// Of each flow: its number, goodput, congestion window, smoothed round-trip time, and retransmits.
pub const FLOW_COLUMNS: [&str; 5] = ["at", "rate_mbps", "cwnd_packets", "srtt_ms", "retransmits"];
/// Of each port: its place in the list that the view was made with, rate, and what waits; of several queues the sum and the longest delay.
pub const PORT_COLUMNS: [&str; 5] = ["at", "rate_mbps", "packets", "delay_ms", "dropped"];

/// A row for each flow or port that was looked at, by columns. NaN: not known.
pub type Rows = [Vec<f32>; 5];

/// What was counted at the last look.
#[derive(Debug, Clone, Copy)]
struct Counted {
    time: u64,
    bytes: u64,
    rate: f32,
}

impl Counted {
    const NOTHING: Counted = Counted { time: u64::MAX, bytes: 0, rate: f32::NAN };

    /// Mbit/s since the last look; at the same time as that, what it was then.
    fn rate(&mut self, now: u64, bytes: u64) -> f32 {
        let spent = now.saturating_sub(self.time);
        if spent > 0 {
            self.rate = (bytes.saturating_sub(self.bytes) as f64 * 8e6 / spent as f64) as f32;
        }
        if spent > 0 || self.time == u64::MAX {
            (self.time, self.bytes) = (now, bytes);
        }
        self.rate
    }
}

/// Somebody's view of a network.
#[derive(Debug, Default)]
pub struct View {
    ports: Vec<PortId>,
    /// So many of the flows at most, the first ones.
    flows: usize,
    of_ports: Vec<Counted>,
    of_flows: Vec<Counted>,
    next_port: usize,
    next_flow: usize,
}

impl View {
    /// Of these ports and of so many flows at most, the first ones.
    pub fn new(ports: Vec<PortId>, flows: usize) -> View {
        View { of_ports: vec![Counted::NOTHING; ports.len()], ports, flows, ..View::default() }
    }
}

/// The next so many of a number of things; after the last comes the first.
fn turn(next: &mut usize, count: usize, most: usize) -> impl Iterator<Item = usize> {
    let begin = *next;
    let taken = most.min(count);
    *next = if count == 0 { 0 } else { (begin + taken) % count };
    (begin..begin + taken).map(move |at| at % count)
}

fn ms(ps: u64) -> f32 {
    (ps as f64 / 1e9) as f32
}

fn push(rows: &mut Rows, row: [f32; 5]) {
    rows.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
}

impl Network {
    /// Looks at these flows, and in turn at `most` of all the view's flows and at `most` of its ports.
    pub fn look(&mut self, view: &mut View, flows: &[FlowId], most: usize) -> (Rows, Rows) {
        let (mut of_flows, mut of_ports) = (Rows::default(), Rows::default());
        let count = self.kinds.len().min(view.flows);
        view.of_flows.resize(count, Counted::NOTHING);
        let asked = flows.iter().map(|flow| flow.index()).filter(|flow| *flow < count);
        for flow in asked.chain(turn(&mut view.next_flow, count, most)) {
            push(&mut of_flows, self.flow_row(flow, &mut view.of_flows[flow]));
        }
        for at in turn(&mut view.next_port, view.ports.len(), most) {
            push(&mut of_ports, self.port_row(at, view.ports[at], &mut view.of_ports[at]));
        }
        (of_flows, of_ports)
    }

    fn flow_row(&self, number: usize, counted: &mut Counted) -> [f32; 5] {
        let at = number as f32;
        let plan = match self.kinds[number] {
            Kind::Tcp(plan) => plan,
            Kind::Udp(source) => {
                let bytes = self.udp_counts(source).bytes_received;
                return [at, counted.rate(self.now, bytes), f32::NAN, f32::NAN, f32::NAN];
            }
        };
        let sender = self.sender(plan);
        let outcome = self.tcp_outcome(plan);
        let rate = counted.rate(self.now, outcome.bytes_received);
        match self.open(sender) {
            Some(sender) => {
                let (flow, retransmits) = (sender.flow(), sender.statistics().retransmits);
                [at, rate, flow.cwnd as f32, ms(flow.srtt.as_ps()), retransmits as f32]
            }
            None => [at, rate, f32::NAN, f32::NAN, outcome.statistics.retransmits as f32],
        }
    }

    fn port_row(&mut self, at: usize, port: PortId, counted: &mut Counted) -> [f32; 5] {
        let (mut packets, mut delay, mut dropped, mut queues) = (0, 0, 0, 0);
        while let Some(queue) = self.queue_state(port, queues) {
            packets += queue.waiting_packets;
            delay = delay.max(queue.head_wait.as_ps());
            dropped += queue.dropped;
            queues += 1;
        }
        let now = self.now;
        let p = &mut self.at_port_mut(port).ports[port.0 as usize];
        if queues == 0 {
            packets = p.depth(now).0;
            (delay, dropped) = (p.delay(now), p.statistics.dropped);
        }
        let rate = counted.rate(now, p.sent_bytes());
        [at as f32, rate, packets as f32, ms(delay), dropped as f32]
    }
}
