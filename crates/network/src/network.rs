//! A network: hosts, routers, links, flows; building one and asking it.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use dataplane::pipeline::Pipeline;
use p4lang::ir::Program;
use switch::{PortConfig, Switch};
use transport::cc;
use transport::tcp::Connection;
use units::Time;

use crate::capture::Capture;
use crate::events::{Event, Events, MAX_ID};
use crate::flow::{Endpoint, FlowId, NO_PAGE, Outcome, Plan, TcpFlow};
use crate::outside::Outside;
use crate::packet::Pool;
use crate::page::Page;
use crate::port::{Link, Port, PortId, QueueStatistics};
use crate::random::Random;
use crate::record::{FlowSamples, Histogram, QueueSamples, Recorder};
use crate::routes::towards;
use crate::switch_node::{NO_PORT, SwitchNode};
use crate::udp::{Source, UdpFlow, UdpStatistics};

/// A node's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Nodes count from 0 in the order of making.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// In place of a host's index: a router.
pub(crate) const NO_HOST: u32 = u32::MAX;

/// A network that makes no sense; names the object and the cure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildError(String);

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BuildError {}

/// The last port number that v1model can send to: one more means that a packet is dropped.
const LAST_PORT: u32 = 510;

pub(crate) fn refuse<T>(why: String) -> Result<T, BuildError> {
    Err(BuildError(why))
}

#[derive(Debug)]
pub(crate) struct Node {
    pub name: String,
    /// Index among the hosts; [`NO_HOST`] for a router or a switch.
    pub host: u32,
    /// Index among the switches; [`NO_HOST`] for others.
    pub switch: u32,
    pub ports: Vec<u32>,
    /// By destination host, the ports that lead there.
    pub routes: Vec<Ways>,
}

/// Ports that lead to one host, as a range of [`Network::ways`]; one way is the port itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ways {
    pub first: u32,
    pub count: u32,
}

/// What is planned for a time.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Start(u32),
    Stop(u32),
    /// A page's next request.
    Ask(u32),
    Change(u32, Box<Link>),
}

/// A flow's number says which list it is in, and where.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Tcp(u32),
    Udp(u32),
}

/// A switch that is to be made when its ports are known.
#[derive(Debug)]
struct Planned {
    program: Arc<Program>,
    /// Queues of each port.
    queues: usize,
    cpu_port: Option<u32>,
    node: NodeId,
}

/// A network and its state.
#[derive(Debug)]
pub struct Network {
    pub(crate) now: u64,
    pub(crate) events: Events,
    pub(crate) packets: Pool,
    pub(crate) nodes: Vec<Node>,
    pub(crate) ports: Vec<Port>,
    /// Ports by ties; see [`Ways`].
    pub(crate) ways: Vec<u32>,
    /// Nodes of the hosts.
    pub(crate) hosts: Vec<u32>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) plans: Vec<Plan>,
    pub(crate) sources: Vec<Source>,
    pub(crate) pages: Vec<Page>,
    kinds: Vec<Kind>,
    pub(crate) actions: Vec<Action>,
    pub(crate) recorders: Vec<Recorder>,
    pub(crate) captures: Vec<Capture>,
    /// What is to become of each switch, and what has.
    programs: Vec<Planned>,
    pub(crate) switches: Vec<Option<SwitchNode>>,
    /// Bytes of frames that are gone.
    pub(crate) buffers: Vec<Vec<u8>>,
    pub(crate) outside: Outside,
    pub(crate) seed: u64,
    pub(crate) random: Random,
    pub(crate) routed: bool,
    /// Events handled, packets carried over links, packets for connections that are gone.
    pub(crate) handled: u64,
    pub(crate) hops: u64,
    pub(crate) unclaimed: u64,
    /// A switch that is watched has something for its controller.
    pub(crate) news: bool,
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
            plans: Vec::new(),
            sources: Vec::new(),
            pages: Vec::new(),
            kinds: Vec::new(),
            actions: Vec::new(),
            recorders: Vec::new(),
            captures: Vec::new(),
            programs: Vec::new(),
            switches: Vec::new(),
            buffers: Vec::new(),
            outside: Outside::default(),
            seed,
            random: Random::new(seed),
            routed: false,
            handled: 0,
            hops: 0,
            unclaimed: 0,
            news: false,
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

    /// A switch that runs a P4 program. Its ports have the numbers of its links in the order in which they are made, from 0 on,
    /// unless [`Network::link_at`] gives them others; the limits of its links are those of its queues. `cpu_port` is the port number
    /// of its controller.
    pub fn switch(
        &mut self,
        name: &str,
        program: Arc<Program>,
        queues: usize,
        cpu_port: Option<u32>,
    ) -> NodeId {
        let id = self.node(name, NO_HOST);
        self.nodes[id.0 as usize].switch = self.switches.len() as u32;
        self.programs.push(Planned { program, queues: queues.max(1), cpu_port, node: id });
        self.switches.push(None);
        id
    }

    /// The pipeline of a switch, to set up its tables and read its state. To be called when all links are there.
    ///
    /// # Errors
    /// A node that is no switch.
    pub fn pipeline(&mut self, node: NodeId) -> Result<&mut Pipeline, BuildError> {
        Ok(self.made(node)?.switch.pipeline())
    }

    /// Does something to a switch that is not for its pipeline alone: sets a port anew, starts a packet generator, sends a
    /// packet out. What comes of it happens from now on.
    ///
    /// # Errors
    /// A node that is no switch.
    pub fn control<T>(
        &mut self,
        node: NodeId,
        act: impl FnOnce(&mut Switch, Time) -> T,
    ) -> Result<T, BuildError> {
        let now = self.now();
        let result = act(&mut self.made(node)?.switch, now);
        self.attend(self.nodes[node.0 as usize].switch);
        Ok(result)
    }

    /// Ends [`Network::run_until`] early whenever this switch has something for its controller.
    ///
    /// # Errors
    /// A node that is no switch.
    pub fn watch(&mut self, node: NodeId) -> Result<(), BuildError> {
        self.made(node)?.watched = true;
        Ok(())
    }

    fn made(&mut self, node: NodeId) -> Result<&mut SwitchNode, BuildError> {
        self.make_switches()?;
        let Node { switch, name, .. } = &self.nodes[node.0 as usize];
        match self.switches.get_mut(*switch as usize) {
            Some(Some(made)) => Ok(made),
            _ => refuse(format!("{name} is no P4 switch")),
        }
    }

    /// A switch's queue: packets and bytes waiting, and its counts.
    pub fn switch_queue(&self, port: PortId, queue: usize) -> Option<((u64, u64), switch::QueueStatistics)> {
        let made = self.switches.iter().flatten().find(|s| s.ports.contains(&port.0))?;
        let (depth, counts) = made.switch.queue(self.ports[port.0 as usize].number, queue)?;
        Some((depth, *counts))
    }

    /// Makes the switches, with the ports that they have by now.
    fn make_switches(&mut self) -> Result<(), BuildError> {
        for (index, planned) in self.programs.iter().enumerate() {
            let node = &self.nodes[planned.node.0 as usize];
            if self.switches[index].as_ref().is_some_and(|made| made.links == node.ports.len()) {
                continue;
            }
            let numbers = |port: &u32| self.ports[*port as usize].number;
            let count = node.ports.iter().map(numbers).max().map_or(0, |most| most as usize + 1);
            let mut by_number = vec![NO_PORT; count];
            let mut ports = vec![None; count];
            for port in &node.ports {
                let p = &self.ports[*port as usize];
                let limit = switch::QueueLimit { packets: p.link.limit.packets, bytes: p.link.limit.bytes };
                by_number[p.number as usize] = *port;
                ports[p.number as usize] = Some(PortConfig::new(vec![limit; planned.queues]));
            }
            let config = switch::Config { ports, cpu_port: planned.cpu_port, seed: self.seed ^ index as u64 };
            // Switches of one program share its code.
            let same = |other: &usize| Arc::ptr_eq(&self.programs[*other].program, &planned.program);
            let twin = (0..index).find(same).and_then(|other| self.switches[other].as_ref());
            let made = match twin {
                Some(twin) => twin.switch.another(&config),
                None => Switch::new(planned.program.clone(), &config),
            };
            let made = made.map_err(|e| BuildError(format!("switch {}: {e}", node.name)))?;
            for port in &node.ports {
                self.ports[*port as usize].of_switch = index as u32;
            }
            self.switches[index] = Some(SwitchNode {
                switch: made,
                ports: by_number,
                links: node.ports.len(),
                watched: false,
                timer: u64::MAX,
            });
        }
        Ok(())
    }

    fn node(&mut self, name: &str, host: u32) -> NodeId {
        self.routed = false;
        let node =
            Node { name: name.to_owned(), host, switch: NO_HOST, ports: Vec::new(), routes: Vec::new() };
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    fn name(&self, node: NodeId) -> &str {
        &self.nodes[node.0 as usize].name
    }

    fn is_host(&self, node: NodeId) -> bool {
        self.nodes[node.0 as usize].host != NO_HOST
    }

    /// Connects two nodes in both directions; gives the ports at `a` and at `b`.
    ///
    /// # Errors
    /// A link of a node to itself, a second link of a host, and a link that [`Network::change_link`] would refuse.
    pub fn link(
        &mut self,
        a: NodeId,
        b: NodeId,
        there: Link,
        back: Link,
    ) -> Result<(PortId, PortId), BuildError> {
        self.link_at(a, b, there, back, [None, None])
    }

    /// As [`Network::link`], with the numbers of the ports at `a` and at `b`, where they are switches.
    ///
    /// # Errors
    /// As [`Network::link`]; and a number that the node has given to another link, or that v1model does not have.
    pub fn link_at(
        &mut self,
        a: NodeId,
        b: NodeId,
        there: Link,
        back: Link,
        numbers: [Option<u32>; 2],
    ) -> Result<(PortId, PortId), BuildError> {
        let names = format!("the link {} - {}", self.name(a), self.name(b));
        if a == b {
            return refuse(format!("{names} connects a node to itself"));
        }
        check_link(&names, &there)?;
        check_link(&names, &back)?;
        for node in [a, b] {
            if self.is_host(node) && !self.nodes[node.0 as usize].ports.is_empty() {
                return refuse(format!(
                    "host {} has a link already; connect it to a router",
                    self.name(node)
                ));
            }
        }
        for (node, link) in [(a, &there), (b, &back)] {
            if link.aqm.is_some() && self.nodes[node.0 as usize].switch != NO_HOST {
                return refuse(format!(
                    "{names}: the queues of the P4 switch {} are managed by its program; leave `aqm` out",
                    self.name(node)
                ));
            }
        }
        let mut given = [0, 0];
        for (node, (number, given)) in [a, b].into_iter().zip(numbers.into_iter().zip(&mut given)) {
            *given = self.number(node, number)?;
        }
        let numbers = given;
        self.routed = false;
        Ok((self.port(a, b, there, numbers), self.port(b, a, back, [numbers[1], numbers[0]])))
    }

    /// The number of a node's next port: the one that is asked for, or the one behind the last.
    fn number(&self, node: NodeId, asked: Option<u32>) -> Result<u32, BuildError> {
        let mut taken = self.nodes[node.0 as usize].ports.iter().map(|p| self.ports[*p as usize].number);
        let Some(number) = asked else { return Ok(taken.max().map_or(0, |last| last + 1)) };
        if taken.any(|other| other == number) {
            return refuse(format!(
                "{} has a port {number} already; give it another number",
                self.name(node)
            ));
        }
        if number > LAST_PORT {
            return refuse(format!(
                "{} cannot have a port {number}; the last is {LAST_PORT}",
                self.name(node)
            ));
        }
        Ok(number)
    }

    fn port(&mut self, from: NodeId, to: NodeId, link: Link, [number, to_port]: [u32; 2]) -> PortId {
        let id = self.ports.len() as u32;
        self.nodes[from.0 as usize].ports.push(id);
        self.ports.push(Port::new(link, to.0, to_port, number));
        PortId(id)
    }

    /// Adds a TCP flow.
    ///
    /// # Errors
    /// Ends that are not two different hosts, a size of zero, a stop before the start, an unknown congestion control.
    pub fn tcp(&mut self, flow: TcpFlow) -> Result<FlowId, BuildError> {
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
        if cc::by_name(&flow.congestion_control).is_none() {
            let known = cc::NAMES.join(", ");
            let name = &flow.congestion_control;
            return refuse(format!("flow {number}: there is no congestion control `{name}`; known: {known}"));
        }
        let ends = [&flow.config, &flow.receiver_config];
        if let Some(mss) = ends.map(|end| end.mss).into_iter().find(|mss| !MSS.contains(mss)) {
            let (least, most) = (MSS.start(), MSS.end());
            return refuse(format!("flow {number} has an MSS of {mss} bytes; give {least} to {most}"));
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
        let hash = (self.random.next() >> 32) as u32;
        let extra = flow.extra_delay.as_ps();
        for (host, peer_host, hold) in [(from, to, extra), (to, from, 0)] {
            let timer = u64::MAX;
            self.endpoints.push(Endpoint { connection: None, host, peer_host, hash, page, timer, hold });
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
        let hash = (self.random.next() >> 32) as u32;
        let source = self.sources.len() as u32;
        self.events.push(flow.start.as_ps().max(self.now), Event::Udp(source));
        self.sources.push(Source::new(flow, from, to, hash));
        self.kinds.push(Kind::Udp(source));
        Ok(FlowId(number))
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
                return refuse(format!("flow {number} ends at {}, which is no host", self.name(node)));
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

    fn check_way(&self, number: u32, from: u32, to: u32) -> Result<(), BuildError> {
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

    pub(crate) fn plan(&mut self, at: Time, action: Action) {
        self.actions.push(action);
        self.events.push(at.as_ps().max(self.now), Event::Action(self.actions.len() as u32 - 1));
    }

    /// Changes a port's link at a time.
    ///
    /// # Errors
    /// A rate of zero, shares beyond 0 to 1, a queue that holds nothing.
    pub fn change_link(&mut self, at: Time, port: PortId, link: Link) -> Result<(), BuildError> {
        let to = self.ports[port.0 as usize].to;
        check_link(&format!("the link to {}", self.nodes[to as usize].name), &link)?;
        self.plan(at, Action::Change(port.0, Box::new(link)));
        Ok(())
    }

    /// The link of a port as it is now.
    pub fn link_of(&self, port: PortId) -> &Link {
        &self.ports[port.0 as usize].link
    }

    /// Fills the tables of hosts and routers by shortest ways.
    pub(crate) fn route(&mut self) -> Result<(), BuildError> {
        self.make_switches()?;
        let links: Vec<Vec<(u32, u32)>> = self
            .nodes
            .iter()
            .map(|n| n.ports.iter().map(|p| (*p, self.ports[*p as usize].to)).collect())
            .collect();
        self.ways.clear();
        for node in &mut self.nodes {
            node.routes.clear();
        }
        for target in &self.hosts {
            let ways = towards(*target, &links, |n| self.nodes[n as usize].host == NO_HOST);
            for (node, ports) in self.nodes.iter_mut().zip(ways) {
                let first = if ports.len() == 1 { ports[0] } else { self.ways.len() as u32 };
                node.routes.push(Ways { first, count: ports.len() as u32 });
                if ports.len() > 1 {
                    self.ways.extend(ports);
                }
            }
        }
        for (number, kind) in self.kinds.iter().enumerate() {
            let (from, to, longest) = match kind {
                Kind::Tcp(plan) => {
                    let endpoint = &self.endpoints[2 * *plan as usize];
                    let mss = self.plans[*plan as usize].flow.config.mss;
                    (endpoint.host, endpoint.peer_host, mss + TCP_HEADERS)
                }
                Kind::Udp(source) => {
                    let source = &self.sources[*source as usize];
                    (source.host, source.peer_host, source.flow.payload.saturating_add(UDP_HEADERS))
                }
            };
            self.check_way(number as u32, from, to)?;
            self.check_fits(number as u32, from, longest)?;
        }
        self.routed = true;
        Ok(())
    }

    /// Refuses packets that the host's own link cannot carry. Longer ones than a link further on can are lost there, and counted.
    fn check_fits(&self, number: u32, from: u32, longest: u32) -> Result<(), BuildError> {
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

    /// Sends packets for `to` out of this port of a router, whatever the shortest way is. To be called when all links
    /// are there.
    ///
    /// # Errors
    /// A port of another node, a target that is no host.
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

    /// Samples flows and queues on a period from now on.
    ///
    /// # Errors
    /// A period of zero.
    pub fn record(&mut self, period: Time, flows: bool, queues: &[PortId]) -> Result<(), BuildError> {
        if period.is_zero() {
            return refuse("the period of a recorder is 0; give one above 0".to_owned());
        }
        self.events.push(self.now, Event::Sample(self.recorders.len() as u32));
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
        self.ports[port.0 as usize].waits = Some(Vec::new());
    }

    /// Of one of a port's queues, if they were recorded and any packet has left it; a plain port has queue 0 alone.
    pub fn waits(&self, port: PortId, queue: usize) -> Option<&Histogram> {
        self.ports[port.0 as usize].waits.as_ref()?.get(queue)
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
        (self.handled, self.hops)
    }

    /// Packets under way.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    pub fn queue(&self, port: PortId) -> &QueueStatistics {
        &self.ports[port.0 as usize].statistics
    }

    /// Packets and bytes waiting at a port now.
    pub fn depth(&mut self, port: PortId) -> (u64, u64) {
        let now = self.now;
        self.ports[port.0 as usize].depth(now)
    }

    /// How long a port's wire is busy with what it has been given; for one whose queue is not managed, how long a packet that came
    /// now would wait.
    pub fn backlog(&self, port: PortId) -> Time {
        Time::from_ps(self.ports[port.0 as usize].backlog(self.now))
    }

    /// What came of a flow so far.
    pub fn outcome(&self, flow: FlowId) -> Outcome {
        match self.kinds[flow.index()] {
            Kind::Tcp(plan) => self.tcp_outcome(plan),
            Kind::Udp(source) => {
                let source = &self.sources[source as usize];
                Outcome {
                    started: (source.statistics.sent > 0).then_some(source.flow.start),
                    bytes_received: source.statistics.bytes_received,
                    ..Outcome::default()
                }
            }
        }
    }

    pub(crate) fn tcp_outcome(&self, plan: u32) -> Outcome {
        let mut outcome = self.plans[plan as usize].outcome;
        let sender = self.sender(plan);
        if let Some(sender) = &self.endpoints[sender].connection {
            outcome.statistics = *sender.statistics();
        }
        if let Some(receiver) = &self.endpoints[sender ^ 1].connection {
            outcome.bytes_received = receiver.bytes_received();
        }
        outcome
    }

    /// The endpoint that sends a flow's data: of a page the server.
    pub(crate) fn sender(&self, plan: u32) -> usize {
        2 * plan as usize + usize::from(self.endpoints[2 * plan as usize].page != NO_PAGE)
    }

    /// The sending side of a TCP flow that is under way.
    pub fn connection(&self, flow: FlowId) -> Option<&Connection> {
        match self.kinds[flow.index()] {
            Kind::Tcp(plan) => self.endpoints[self.sender(plan)].connection.as_deref(),
            Kind::Udp(_) => None,
        }
    }

    /// Counts of a UDP flow.
    pub fn udp_statistics(&self, flow: FlowId) -> Option<UdpStatistics> {
        match self.kinds[flow.index()] {
            Kind::Tcp(_) => None,
            Kind::Udp(source) => Some(self.sources[source as usize].statistics),
        }
    }
}

/// Bytes of headers in front of an MSS, and of a datagram.
const TCP_HEADERS: u32 = 40;
pub(crate) const UDP_HEADERS: u32 = 28;

/// From Linux's least to what an IPv4 packet holds without options.
const MSS: RangeInclusive<u32> = 88..=65_495;

fn check_link(names: &str, link: &Link) -> Result<(), BuildError> {
    if link.rate.is_zero() {
        return refuse(format!("{names} has the rate 0; give it a rate above 0"));
    }
    let mut shares = vec![("loss", link.loss), ("duplicate", link.duplicate), ("reorder", link.reorder)];
    if let Some(chain) = link.burst_loss {
        shares.extend([("to_bad", chain.to_bad), ("to_good", chain.to_good)]);
        shares.extend([("loss_good", chain.loss_good), ("loss_bad", chain.loss_bad)]);
    }
    for (what, share) in shares {
        if !(0.0..=1.0).contains(&share) {
            return refuse(format!("{names} has {what} {share}; give a share from 0 to 1"));
        }
    }
    if link.limit.packets == Some(0) || link.limit.bytes.is_some_and(|b| b.is_zero()) {
        return refuse(format!("{names} has a queue that holds nothing; give it room for a packet"));
    }
    if link.aqm.is_some() && link.mark_above.is_some() {
        return refuse(format!(
            "{names} has queue management and a threshold for marks; give it one of them"
        ));
    }
    if link.mtu < 576 {
        return refuse(format!("{names} has an MTU of {}; give it at least 576", link.mtu));
    }
    Ok(())
}
