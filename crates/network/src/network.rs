//! A network and its state; see `build`, `flows` and `switches` for what is put in, `run` for what happens then.

use crate::agent::Agents;
use crate::capture::{Capture, Watcher};
use crate::events::Events;
use crate::flow::{Endpoint, Plan, Source};
use crate::large_pages::LargePages;
use crate::node::{Node, Planned, SwitchNode};
use crate::outgoing::Outside;
use crate::page::RequestResponse;
use crate::parts::Parts;
use crate::pool::Pool;
use crate::port::{Link, Port};
use crate::record::Recorder;
use units::Random;
use wire::packet::Written;

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
    pub(crate) large_pages: LargePages,
    pub(crate) parts: Parts,
    /// Events handled, packets carried over links, packets for connections that are gone.
    pub(crate) handled: u64,
    pub(crate) hops: u64,
    pub(crate) unclaimed: u64,
    /// A switch that is watched has something for its controller.
    pub(crate) pending: bool,
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
            large_pages: LargePages::default(),
            parts: Parts::default(),
            handled: 0,
            hops: 0,
            unclaimed: 0,
            pending: false,
        }
    }
}
