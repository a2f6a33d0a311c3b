//! Nodes: hosts, routers and P4 switches; a P4 switch also as it is planned and as it is made.

use std::sync::Arc;

use dataplane::clock::Clock;
use p4lang::ir::Program;
use switch::Switch;

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

/// The last port number that v1model can send to: one more means that a packet is dropped.
pub(crate) const LAST_PORT: u32 = 510;

#[derive(Debug, Clone)]
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

/// In place of a network's port: the switch has no port of that number.
pub(crate) const NO_PORT: u32 = u32::MAX;

/// A switch and, by its port numbers, the network's ports.
#[derive(Debug)]
pub(crate) struct SwitchNode {
    pub switch: Switch,
    pub ports: Vec<u32>,
    /// How many ports there are.
    pub links: usize,
    /// Whoever runs the network wants to know at once of digests and packets for the controller.
    pub watched: bool,
    /// Earliest event under way for the packet generator; `u64::MAX`: none.
    pub timer: u64,
}

/// A switch that is to be made when its ports are known.
#[derive(Debug)]
pub(crate) struct Planned {
    pub program: Arc<Program>,
    /// Queues of each port.
    pub queues: usize,
    pub cpu_port: Option<u32>,
    pub clock: Clock,
    /// See [`crate::network::Network::harden`].
    pub hardened: bool,
    pub node: NodeId,
}
