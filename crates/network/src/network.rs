//! A network and its state; see `build`, `flows` and `switches` for what is put in, `run` for what happens then.

use std::fmt;

use crate::agents::Agents;
use crate::capture::Capture;
use crate::events::Events;
use crate::flow::{Endpoint, Plan};
use crate::outside::Outside;
use crate::pool::Pool;
use crate::port::{Link, Port};
use crate::record::Recorder;
use crate::request_response::RequestResponse;
use crate::switches::{Planned, SwitchNode};
use crate::tap::Watcher;
use crate::udp::Source;
use units::Random;
use wire::packet::Written;

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
pub struct BuildError(pub(crate) String);

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BuildError {}

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
    /// A timer of a host's agent.
    Agent(u32),
}

/// A flow's number says which list it is in, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Tcp(u32),
    Udp(u32),
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
    pub(crate) pages: Vec<RequestResponse>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) actions: Vec<Action>,
    pub(crate) recorders: Vec<Recorder>,
    pub(crate) captures: Vec<Capture>,
    /// Of wires that are captured or tapped.
    pub(crate) watchers: Vec<Watcher>,
    /// What is to become of each switch, and what has.
    pub(crate) programs: Vec<Planned>,
    pub(crate) switches: Vec<Option<SwitchNode>>,
    /// Memory of packets that were bytes and are gone.
    pub(crate) written: Vec<Box<Written>>,
    pub(crate) outside: Outside,
    pub(crate) agents: Agents,
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
            watchers: Vec::new(),
            programs: Vec::new(),
            switches: Vec::new(),
            written: Vec::new(),
            outside: Outside::default(),
            agents: Agents::default(),
            seed,
            random: Random::new(seed),
            routed: false,
            handled: 0,
            hops: 0,
            unclaimed: 0,
            news: false,
        }
    }
}
