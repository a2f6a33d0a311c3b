//! A network: hosts, routers, links, flows; and the loop that runs it.

use std::fmt;

use transport::cc::{CongestionControl, Flow, Reno};
use transport::segment::Segment;
use transport::tcp::{Connection, Statistics};
use units::Time;

use crate::events::{Event, Events, MAX_ID};
use crate::flow::{Action, Endpoint, FlowId, TcpFlow};
use crate::packet::{Packet, PacketId, Pool};
use crate::port::{Link, Port, PortId, QueueStatistics, Taken};
use crate::random::Random;
use crate::routes::towards;

/// A node's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeId(pub(crate) u32);

/// Bytes of an IPv4 header without options.
const IP_HEADER: u32 = 20;
const NO_HOST: u32 = u32::MAX;

/// A network that makes no sense; names the object and the cure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError(String);

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BuildError {}

fn refuse<T>(why: String) -> Result<T, BuildError> {
    Err(BuildError(why))
}

#[derive(Debug)]
struct Node {
    name: String,
    /// Index among the hosts; [`NO_HOST`] for a router.
    host: u32,
    ports: Vec<u32>,
    /// For a router: by destination host, the ports that lead there.
    routes: Vec<Ways>,
}

/// Ports that lead to one host, as a range of [`Network::ways`]; one way is the port itself.
#[derive(Debug, Clone, Copy, Default)]
struct Ways {
    first: u32,
    count: u32,
}

/// A network and its state.
#[derive(Debug)]
pub struct Network {
    now: u64,
    events: Events,
    packets: Pool,
    nodes: Vec<Node>,
    ports: Vec<Port>,
    /// Ports by ties; see [`Ways`].
    ways: Vec<u32>,
    hosts: Vec<u32>,
    endpoints: Vec<Endpoint>,
    flows: Vec<FlowPlan>,
    actions: Vec<Action>,
    random: Random,
    routed: bool,
    handled: u64,
    hops: u64,
}

#[derive(Debug)]
struct FlowPlan {
    size: Option<u64>,
}

impl Network {
    pub fn new(seed: u64) -> Network {
        Network {
            now: 0,
            events: Events::default(),
            packets: Pool::default(),
            nodes: Vec::new(),
            ports: Vec::new(),
            ways: Vec::new(),
            hosts: Vec::new(),
            endpoints: Vec::new(),
            flows: Vec::new(),
            actions: Vec::new(),
            random: Random::new(seed),
            routed: false,
            handled: 0,
            hops: 0,
        }
    }

    pub fn host(&mut self, name: &str) -> NodeId {
        let host = self.hosts.len() as u32;
        self.hosts.push(self.nodes.len() as u32);
        self.node(name, host)
    }

    /// A plain router: forwards by destination.
    pub fn router(&mut self, name: &str) -> NodeId {
        self.node(name, NO_HOST)
    }

    fn node(&mut self, name: &str, host: u32) -> NodeId {
        self.routed = false;
        self.nodes.push(Node { name: name.to_owned(), host, ports: Vec::new(), routes: Vec::new() });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Connects two nodes in both directions; gives the ports at `a` and at `b`.
    pub fn link(
        &mut self,
        a: NodeId,
        b: NodeId,
        there: Link,
        back: Link,
    ) -> Result<(PortId, PortId), BuildError> {
        let names = format!("the link {} - {}", self.nodes[a.0 as usize].name, self.nodes[b.0 as usize].name);
        if a == b {
            return refuse(format!("{names} connects a node to itself"));
        }
        for link in [&there, &back] {
            if link.rate.is_zero() {
                return refuse(format!("{names} has the rate 0; give it a rate above 0"));
            }
            for (what, share) in [("loss", link.loss), ("duplicate", link.duplicate)] {
                if !(0.0..=1.0).contains(&share) {
                    return refuse(format!("{names} has {what} {share}; give a share from 0 to 1"));
                }
            }
            if link.limit.packets == Some(0) && link.limit.bytes.is_none() {
                return refuse(format!("{names} has a queue of 0 packets; give it at least one"));
            }
        }
        for node in [a, b] {
            let node = &self.nodes[node.0 as usize];
            if node.host != NO_HOST && !node.ports.is_empty() {
                return refuse(format!("host {} has a link already; connect it to a router", node.name));
            }
        }
        self.routed = false;
        Ok((self.port(a, b, there), self.port(b, a, back)))
    }

    fn port(&mut self, from: NodeId, to: NodeId, link: Link) -> PortId {
        let id = self.ports.len() as u32;
        self.nodes[from.0 as usize].ports.push(id);
        self.ports.push(Port::new(link, to.0));
        PortId(id)
    }

    /// Adds a flow.
    pub fn tcp(&mut self, flow: TcpFlow) -> Result<FlowId, BuildError> {
        let id = self.flows.len() as u32;
        let name = |node: NodeId| &self.nodes[node.0 as usize].name;
        for node in [flow.from, flow.to] {
            if self.nodes[node.0 as usize].host == NO_HOST {
                return refuse(format!("flow {id} ends at {}, which is no host", name(node)));
            }
        }
        if flow.from == flow.to {
            return refuse(format!("flow {id} goes from {} to itself", name(flow.from)));
        }
        if flow.size.is_some_and(|size| size.is_zero()) {
            return refuse(format!("flow {id} has the size 0; give it a size above 0"));
        }
        if self.endpoints.len() as u32 + 2 > MAX_ID {
            return refuse(format!("flow {id} is one too many: at most {} fit", MAX_ID / 2));
        }
        let host = |node: NodeId| self.nodes[node.0 as usize].host;
        let (from, to) = (host(flow.from), host(flow.to));
        let hash = (self.random.next() >> 32) as u32;
        let make = |connection, peer, host, peer_host| Endpoint {
            connection,
            peer,
            host,
            peer_host,
            hash,
            timer: u64::MAX,
        };
        // The receiver sends nothing but ACKs; its control only says which ECN feedback to give.
        let mirror: Box<dyn CongestionControl> =
            transport::cc::by_name(flow.congestion_control.name()).unwrap_or_else(|| Box::<Reno>::default());
        let receiver = Connection::listen(flow.receiver_config, mirror);
        let sender = Connection::connect(flow.config, flow.congestion_control);
        self.endpoints.push(make(sender, 2 * id + 1, from, to));
        self.endpoints.push(make(receiver, 2 * id, to, from));
        self.flows.push(FlowPlan { size: flow.size.map(|size| size.get()) });
        self.act(flow.start, Action::Start(id));
        if let Some(stop) = flow.stop {
            if stop < flow.start {
                return refuse(format!("flow {id} stops at {stop}, before it starts at {}", flow.start));
            }
            self.act(stop, Action::Stop(id));
        }
        Ok(FlowId(id))
    }

    fn act(&mut self, at: Time, action: Action) {
        self.actions.push(action);
        self.events.push(at.as_ps().max(self.now), Event::Flow(self.actions.len() as u32 - 1));
    }

    /// Fills the routers' tables by shortest ways.
    fn route(&mut self) -> Result<(), BuildError> {
        let links: Vec<Vec<(u32, u32)>> = self
            .nodes
            .iter()
            .map(|n| n.ports.iter().map(|p| (*p, self.ports[*p as usize].to)).collect())
            .collect();
        self.ways.clear();
        for node in &mut self.nodes {
            node.routes.clear();
        }
        for (host, target) in self.hosts.iter().enumerate() {
            let ways = towards(*target, &links, |n| self.nodes[n as usize].host == NO_HOST);
            for (node, ports) in self.nodes.iter_mut().zip(ways) {
                let first = if ports.len() == 1 { ports[0] } else { self.ways.len() as u32 };
                node.routes.push(Ways { first, count: ports.len() as u32 });
                if ports.len() > 1 {
                    self.ways.extend(ports);
                }
            }
            debug_assert!(self.nodes.iter().all(|n| n.routes.len() == host + 1));
        }
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            let node = self.hosts[endpoint.host as usize];
            if self.nodes[node as usize].routes[endpoint.peer_host as usize].count == 0 {
                let to = self.hosts[endpoint.peer_host as usize];
                return refuse(format!(
                    "flow {}: there is no way from {} to {}; add a link",
                    index / 2,
                    self.nodes[node as usize].name,
                    self.nodes[to as usize].name
                ));
            }
        }
        self.routed = true;
        Ok(())
    }

    /// Sends packets for `to` out of this port of a router, whatever the shortest way is. To be called when all links are there.
    pub fn set_route(&mut self, router: NodeId, to: NodeId, port: PortId) -> Result<(), BuildError> {
        if !self.routed {
            self.route()?;
        }
        let host = self.nodes[to.0 as usize].host;
        let node = &mut self.nodes[router.0 as usize];
        if host == NO_HOST || !node.ports.contains(&port.0) {
            return refuse(format!("a route of {} needs a host and a port of that router", node.name));
        }
        node.routes[host as usize] = Ways { first: port.0, count: 1 };
        Ok(())
    }

    pub fn now(&self) -> Time {
        Time::from_ps(self.now)
    }

    /// Events handled, and packets carried over links.
    pub fn work(&self) -> (u64, u64) {
        (self.handled, self.hops)
    }

    /// Packets under way.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    pub fn queue(&mut self, port: PortId) -> &QueueStatistics {
        &self.ports[port.0 as usize].statistics
    }

    /// Packets and bytes waiting at a port now.
    pub fn depth(&mut self, port: PortId) -> (u64, u64) {
        let now = self.now;
        self.ports[port.0 as usize].depth(now)
    }

    /// How long a packet that came to a port now would wait.
    pub fn backlog(&self, port: PortId) -> Time {
        Time::from_ps(self.ports[port.0 as usize].backlog(self.now))
    }

    /// The sending side of a flow, as its congestion control sees it.
    pub fn sender(&self, flow: FlowId) -> &Flow {
        self.endpoints[2 * flow.0 as usize].connection.flow()
    }

    pub fn connection(&self, flow: FlowId) -> &Connection {
        &self.endpoints[2 * flow.0 as usize].connection
    }

    pub fn statistics(&self, flow: FlowId) -> &Statistics {
        self.endpoints[2 * flow.0 as usize].connection.statistics()
    }

    /// Bytes that the receiving application has read.
    pub fn bytes_received(&self, flow: FlowId) -> u64 {
        self.endpoints[2 * flow.0 as usize + 1].connection.bytes_received()
    }

    /// Runs until `end`; events at that time are done.
    pub fn run_until(&mut self, end: Time) -> Result<(), BuildError> {
        if !self.routed {
            self.route()?;
        }
        let end = end.as_ps();
        while let Some((at, event)) = self.events.first() {
            if at > end {
                break;
            }
            debug_assert!(at >= self.now);
            self.handled += 1;
            self.step(at, event);
        }
        self.now = self.now.max(end);
        Ok(())
    }

    /// Handles the first event.
    #[inline]
    fn step(&mut self, at: u64, event: Event) {
        self.now = at;
        if let Event::Arrive(port) = event {
            let p = &mut self.ports[port as usize];
            let to = p.to;
            let Some((packet, next)) = p.arrive(at) else { return };
            match next {
                Some(next) => self.events.replace_first(next, event),
                None => self.events.drop_first(),
            }
            self.hops += 1;
            self.deliver(to, packet);
            return;
        }
        self.events.drop_first();
        match event {
            Event::Arrive(_) => {}
            Event::Timer(endpoint) => self.on_timer(endpoint),
            Event::Flow(action) => self.on_action(self.actions[action as usize]),
            Event::Stray(packet) => {
                self.hops += 1;
                self.deliver(self.packets.get(packet).next, packet);
            }
        }
    }

    /// A packet has come to a node.
    #[inline]
    fn deliver(&mut self, to: u32, id: PacketId) {
        let node = &self.nodes[to as usize];
        if node.host == NO_HOST {
            let packet = self.packets.get(id);
            let ways = node.routes[packet.to as usize];
            let port = if ways.count == 1 {
                ways.first
            } else {
                let hash = self.endpoints[packet.endpoint as usize].hash;
                self.ways[(ways.first + hash % ways.count) as usize]
            };
            self.send(port, id);
            return;
        }
        let packet = self.packets.get(id);
        let (endpoint, segment) = (packet.endpoint, packet.segment);
        self.packets.free(id);
        self.endpoints[endpoint as usize].connection.receive(Time::from_ps(self.now), &segment);
        self.pump(endpoint);
    }

    #[inline]
    fn send(&mut self, port: u32, id: PacketId) {
        let p = &mut self.ports[port as usize];
        match p.push(self.now, id, self.packets.get_mut(id)) {
            Taken::Queued { first: None } => {}
            Taken::Queued { first: Some(at) } => self.events.push(at, Event::Arrive(port)),
            Taken::Dropped => self.packets.free(id),
            Taken::Stray { at } => self.stray(port, id, at),
        }
    }

    /// A packet on a wire that loses, doubles or delays.
    fn stray(&mut self, port: u32, id: PacketId, at: u64) {
        let p = &mut self.ports[port as usize];
        self.packets.get_mut(id).next = p.to;
        let jitter = p.link.jitter.as_ps() as f64;
        if self.random.chance(p.link.duplicate) {
            let copy = self.packets.add(*self.packets.get(id));
            let later = (self.random.unit() * jitter) as u64;
            self.events.push(at + later, Event::Stray(copy));
        }
        if self.random.chance(p.link.loss) {
            p.statistics.lost += 1;
            self.packets.free(id);
            return;
        }
        let later = (self.random.unit() * jitter) as u64;
        self.events.push(at + later, Event::Stray(id));
    }

    /// Sends what an endpoint has to send, and sets its timer.
    fn pump(&mut self, index: u32) {
        let now = Time::from_ps(self.now);
        loop {
            let endpoint = &mut self.endpoints[index as usize];
            let Some(segment) = endpoint.connection.transmit(now) else { break };
            let packet = Packet {
                endpoint: endpoint.peer,
                to: endpoint.peer_host,
                next: 0,
                size: size_of_packet(&segment),
                segment,
            };
            let node = self.hosts[endpoint.host as usize];
            let port = self.nodes[node as usize].ports[0];
            let id = self.packets.add(packet);
            self.send(port, id);
        }
        let endpoint = &mut self.endpoints[index as usize];
        let wake = endpoint.connection.next_wakeup(now).as_ps();
        if wake < endpoint.timer {
            endpoint.timer = wake;
            self.events.push(wake.max(self.now), Event::Timer(index));
        }
    }

    fn on_timer(&mut self, index: u32) {
        let now = Time::from_ps(self.now);
        let endpoint = &mut self.endpoints[index as usize];
        // An event that an earlier one has overtaken.
        if endpoint.timer != self.now {
            return;
        }
        endpoint.timer = u64::MAX;
        endpoint.connection.advance(now);
        self.pump(index);
    }

    fn on_action(&mut self, action: Action) {
        match action {
            Action::Start(flow) => {
                let size = self.flows[flow as usize].size;
                let connection = &mut self.endpoints[2 * flow as usize].connection;
                connection.write(size.unwrap_or(u64::MAX));
                if size.is_some() {
                    connection.close();
                }
                self.pump(2 * flow);
            }
            Action::Stop(flow) => {
                self.endpoints[2 * flow as usize].connection.stop_writing();
                self.pump(2 * flow);
            }
        }
    }
}

fn size_of_packet(segment: &Segment) -> u32 {
    IP_HEADER + segment.header_len() + segment.payload
}
