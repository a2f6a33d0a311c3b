//! Asking a network: what its recorders have, its counts, and what came of flows.

use transport::tcp::Connection;
use transport::udp;
use units::Time;

use crate::error::{BuildError, refuse};
use crate::event::Event;
use crate::flow::{FlowId, NO_PAGE, Outcome, Source};
use crate::network::{Kind, Network};
use crate::port::{Link, PortId, QueueStatistics};
use crate::record::{FlowSamples, Histogram, QueueSamples, Recorder};

impl Network {
    /// The link of a port as it is now.
    pub fn link_of(&self, port: PortId) -> &Link {
        &self.at_port(port).ports[port.0 as usize].link
    }

    /// Samples flows and queues on a period from now on.
    ///
    /// # Errors
    /// A period of zero.
    pub fn record(&mut self, period: Time, flows: bool, queues: &[PortId]) -> Result<(), BuildError> {
        if period.is_zero() {
            return refuse("the period of a recorder is 0; give one above 0".to_owned());
        }
        self.schedule_common(self.now, Event::Sample(self.recorders.len() as u32));
        self.recorders.push(Recorder {
            period: period.as_ps(),
            flows: flows.then(FlowSamples::default),
            ports: queues.iter().map(|p| p.0).collect(),
            queues: QueueSamples::default(),
        });
        Ok(())
    }

    /// Keeps the distribution of waiting times at a port from now on.
    pub fn record_waits(&mut self, port: PortId) {
        self.at_port_mut(port).ports[port.0 as usize].waits = Some(Vec::new());
    }

    /// Of one of a port's queues, if they were recorded and any packet has left it; a plain port has queue 0 alone.
    pub fn waits(&self, port: PortId, queue: usize) -> Option<&Histogram> {
        self.at_port(port).ports[port.0 as usize].waits.as_ref()?.get(queue)
    }

    /// What the recorders have, in the order in which they were made.
    pub fn recorded(&self) -> impl Iterator<Item = (Option<&FlowSamples>, &QueueSamples)> {
        self.recorders.iter().map(|r| (r.flows.as_ref(), &r.queues))
    }

    pub fn now(&self) -> Time {
        Time::from_ps(self.now)
    }

    /// Events handled, and packets carried over links.
    pub fn work(&self) -> (u64, u64) {
        self.all_parts().fold((0, 0), |(handled, hops), part| (handled + part.handled, hops + part.hops))
    }

    /// Packets under way.
    pub fn packets(&self) -> usize {
        self.all_parts().map(|part| part.packets.len()).sum()
    }

    pub fn queue(&self, port: PortId) -> &QueueStatistics {
        &self.at_port(port).ports[port.0 as usize].statistics
    }

    /// Packets and bytes waiting at a port now.
    pub fn depth(&mut self, port: PortId) -> (u64, u64) {
        let now = self.now;
        self.at_port_mut(port).ports[port.0 as usize].depth(now)
    }

    /// How long a port's wire is busy with what it has been given; for one whose queue is not managed, how long a packet that came
    /// now would wait.
    pub fn backlog(&self, port: PortId) -> Time {
        Time::from_ps(self.at_port(port).ports[port.0 as usize].backlog(self.now))
    }

    /// What came of a flow so far.
    pub fn outcome(&self, flow: FlowId) -> Outcome {
        match self.kinds[flow.index()] {
            Kind::Tcp(plan) => self.tcp_outcome(plan),
            Kind::Udp(source) => {
                let counts = self.udp_counts(source);
                Outcome {
                    started: (counts.sent > 0).then_some(self.sources[source as usize].planned.start),
                    bytes_received: counts.bytes_received,
                    ..Outcome::default()
                }
            }
        }
    }

    pub(crate) fn tcp_outcome(&self, plan: u32) -> Outcome {
        let sender = self.sender(plan);
        let mut outcome = self.at_endpoint(sender).plans[plan as usize].outcome;
        if self.is_divided() {
            outcome.take_received(&self.at_endpoint(sender ^ 1).plans[plan as usize].outcome);
        }
        if let Some(sender) = self.open(sender) {
            outcome.statistics = *sender.statistics();
        }
        if let Some(receiver) = self.open(sender ^ 1) {
            outcome.bytes_received = receiver.bytes_received();
        }
        outcome
    }

    /// The connection of an endpoint, wherever it is.
    pub(crate) fn open(&self, index: usize) -> Option<&Connection> {
        self.at_endpoint(index).endpoints[index].connection.as_deref()
    }

    pub(crate) fn udp_counts(&self, source: u32) -> udp::Statistics {
        let Source { host, peer_host, .. } = &self.sources[source as usize];
        let [sent, received] =
            [*host, *peer_host].map(|host| self.at_host(host).sources[source as usize].flow.statistics());
        udp::Statistics { sent: sent.sent, ..received }
    }

    /// The endpoint that sends a flow's data: of a page the server.
    pub(crate) fn sender(&self, plan: u32) -> usize {
        2 * plan as usize + usize::from(self.endpoints[2 * plan as usize].page != NO_PAGE)
    }

    /// The sending side of a TCP flow that is under way.
    pub fn connection(&self, flow: FlowId) -> Option<&Connection> {
        match self.kinds[flow.index()] {
            Kind::Tcp(plan) => self.open(self.sender(plan)),
            Kind::Udp(_) => None,
        }
    }

    /// Counts of a UDP flow.
    pub fn udp_statistics(&self, flow: FlowId) -> Option<udp::Statistics> {
        match self.kinds[flow.index()] {
            Kind::Tcp(_) => None,
            Kind::Udp(source) => Some(self.udp_counts(source)),
        }
    }
}
