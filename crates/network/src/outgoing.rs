//! Which hosts are not simulated, and frames for them that are still to be taken.

use units::Time;
use wire::packet::Written;

use crate::node::{NO_HOST, NodeId};

/// A frame for a host that is not simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    pub host: NodeId,
    /// When the network delivered it.
    pub at: Time,
    /// With payload that is real.
    pub packet: Box<Written>,
}

/// Which hosts are not simulated, and what there is for them.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// By host its node; [`NO_HOST`] for one that is simulated.
    nodes: Vec<u32>,
    outgoing: Vec<Outgoing>,
}

impl Outside {
    /// Makes the host with this index one that is not simulated.
    pub fn add(&mut self, index: usize, host: NodeId) {
        if self.nodes.len() <= index {
            self.nodes.resize(index + 1, NO_HOST);
        }
        self.nodes[index] = host.0;
    }

    pub fn take(&mut self, into: &mut Vec<Outgoing>) {
        into.append(&mut self.outgoing);
    }

    pub fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    #[inline]
    pub fn has(&self, host: u32) -> bool {
        self.nodes.get(host as usize).is_some_and(|node| *node != NO_HOST)
    }

    pub fn put(&mut self, host: u32, now: u64, mut packet: Box<Written>) {
        packet.fill();
        let host = NodeId(self.nodes[host as usize]);
        self.outgoing.push(Outgoing { host, at: Time::from_ps(now), packet });
    }
}
