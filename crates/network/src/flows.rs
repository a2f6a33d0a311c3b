//! Adding flows to a network, and what is refused.

use std::ops::RangeInclusive;

use transport::cc;
use transport::udp::HEADERS as UDP_HEADERS;
use units::Time;

use crate::error::{BuildError, refuse};
use crate::event::{Event, MAX_ID};
use crate::flow::{Endpoint, FlowId, NO_PAGE, Outcome, Plan, Source, TcpFlow, UdpFlow};
use crate::network::{Action, Kind, Network};
use crate::node::NodeId;

/// Bytes of headers in front of an MSS.
pub(crate) const TCP_HEADERS: u32 = 40;

/// From Linux's least to what an IPv4 packet holds without options.
const MSS: RangeInclusive<u32> = 88..=65_495;

impl Network {
    /// Adds a TCP flow.
    ///
    /// # Errors
    /// Ends that are not two different hosts, a size of zero, a stop before the start, an unknown congestion control.
    pub fn tcp(&mut self, flow: TcpFlow) -> Result<FlowId, BuildError> {
        self.unite_for("a flow is added while it runs");
        let (start, stop) = (flow.start, flow.stop);
        let (id, plan) = self.add_tcp(flow, NO_PAGE)?;
        self.plan(start, Action::Start(plan));
        if let Some(stop) = stop {
            self.plan(stop, Action::Stop(plan));
        }
        Ok(id)
    }

    /// Adds a TCP flow that is still to be started; gives its plan too.
    pub(crate) fn add_tcp(&mut self, flow: TcpFlow, page: u32) -> Result<(FlowId, u32), BuildError> {
        let number = self.check_ends(
            flow.from,
            flow.to,
            flow.start,
            flow.stop,
            flow.config.mss.saturating_add(TCP_HEADERS),
        )?;
        if flow.size.is_some_and(|size| size.is_zero()) {
            return refuse(format!("flow {number} has the size 0; give it a size above 0"));
        }
        if let Err(why) = cc::new(&flow.congestion_control, &flow.control_options) {
            return refuse(format!("flow {number}: {why}"));
        }
        let ends = [&flow.config, &flow.receiver_config];
        if let Some(mss) = ends.map(|end| end.mss).into_iter().find(|mss| !MSS.contains(mss)) {
            let (least, most) = (MSS.start(), MSS.end());
            return refuse(format!("flow {number} has an MSS of {mss} bytes; give {least} to {most}"));
        }
        // Half of a buffer is window at first, and may become a quarter when segments are short: two segments must fit.
        if let Some(end) = ends.into_iter().find(|end| end.receive_buffer_max.get() < 8 * u64::from(end.mss))
        {
            let (most, least) = (end.receive_buffer_max.get(), 8 * u64::from(end.mss));
            return refuse(format!(
                "flow {number} has a receive buffer of at most {most} bytes; give it at least eight segments, {least} bytes"
            ));
        }
        if ends.iter().any(|end| end.initial_cwnd == 0) {
            return refuse(format!("flow {number} has an initial window of 0 packets; give it at least 1"));
        }
        let plan = self.plans.len() as u32;
        if 2 * plan + 2 > MAX_ID {
            return refuse(format!("flow {number} is one too many: at most {} fit", MAX_ID / 2));
        }
        let host = |node: NodeId| self.nodes[node.0 as usize].host;
        let (from, to) = (host(flow.from), host(flow.to));
        let hash = (self.random.next_u64() >> 32) as u32;
        let extra = flow.extra_delay.as_ps();
        for (host, peer_host, hold) in [(from, to, extra), (to, from, 0)] {
            self.endpoints.push(Endpoint::new((host, peer_host), hash, page, hold));
        }
        self.plans.push(Plan { number, flow, outcome: Outcome::default() });
        self.kinds.push(Kind::Tcp(plan));
        Ok((FlowId(number), plan))
    }

    /// Adds a UDP flow.
    ///
    /// # Errors
    /// As [`Network::tcp`]; and a rate or datagrams of zero.
    pub fn udp(&mut self, flow: UdpFlow) -> Result<FlowId, BuildError> {
        self.unite_for("a flow is added while it runs");
        let number = self.check_ends(
            flow.from,
            flow.to,
            flow.start,
            flow.stop,
            flow.payload.saturating_add(UDP_HEADERS),
        )?;
        if flow.rate.is_zero() || flow.payload == 0 {
            return refuse(format!(
                "flow {number} sends nothing: its rate and its datagrams must be above 0"
            ));
        }
        let host = |node: NodeId| self.nodes[node.0 as usize].host;
        let (from, to) = (host(flow.from), host(flow.to));
        let hash = (self.random.next_u64() >> 32) as u32;
        let source = self.sources.len() as u32;
        self.events.push(flow.start.as_ps().max(self.now), Event::Udp(source));
        self.sources.push(Source::new(flow, from, to, hash));
        self.kinds.push(Kind::Udp(source));
        Ok(FlowId(number))
    }

    pub(crate) fn plan(&mut self, at: Time, action: Action) {
        assert!(self.actions.len() < MAX_ID as usize, "more than {MAX_ID} actions are planned");
        self.actions.push(action);
        self.events.push(at.as_ps().max(self.now), Event::Action(self.actions.len() as u32 - 1));
    }

    fn check_ends(
        &self,
        from: NodeId,
        to: NodeId,
        start: Time,
        stop: Option<Time>,
        longest: u32,
    ) -> Result<u32, BuildError> {
        let number = self.kinds.len() as u32;
        for node in [from, to] {
            if !self.is_host(node) {
                return refuse(format!("flow {number} ends at {}, which is not a host", self.name(node)));
            }
            if self.outside.has(self.nodes[node.0 as usize].host) {
                return refuse(format!("flow {number} ends at {}, which is not simulated", self.name(node)));
            }
        }
        if from == to {
            return refuse(format!("flow {number} goes from {} to itself", self.name(from)));
        }
        if let Some(stop) = stop
            && stop < start
        {
            return refuse(format!("flow {number} stops at {stop}, before it starts at {start}"));
        }
        if self.routed {
            let host = |node: NodeId| self.nodes[node.0 as usize].host;
            self.check_way(number, host(from), host(to))?;
            self.check_fits(number, host(from), longest)?;
        }
        Ok(number)
    }

    pub(crate) fn check_way(&self, number: u32, from: u32, to: u32) -> Result<(), BuildError> {
        for (from, to) in [(from, to), (to, from)] {
            let node = &self.nodes[self.hosts[from as usize] as usize];
            if node.routes[to as usize].count == 0 {
                let to = &self.nodes[self.hosts[to as usize] as usize].name;
                return refuse(format!(
                    "flow {number}: there is no way from {} to {to}; add a link",
                    node.name
                ));
            }
        }
        Ok(())
    }

    /// Refuses packets that the host's own link cannot carry. Longer ones than a link further on can are lost there, and counted.
    pub(crate) fn check_fits(&self, number: u32, from: u32, longest: u32) -> Result<(), BuildError> {
        let node = &self.nodes[self.hosts[from as usize] as usize];
        let mtu = node.ports.iter().map(|p| self.ports[*p as usize].link.mtu).max();
        match mtu {
            Some(mtu) if longest > mtu => refuse(format!(
                "flow {number} has packets of {longest} bytes, and the link of {} an MTU of {mtu}; give the flow a smaller MSS \
                 or payload, or the link a larger MTU",
                node.name
            )),
            _ => Ok(()),
        }
    }
}
