//! Which hosts are not simulated, and frames for them that are still to be taken. Hosts are in groups; whoever sees to a group takes its
//! frames.

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
    /// By host its node and its group; [`NO_HOST`] for one that is simulated.
    nodes: Vec<(u32, u32)>,
    /// By group.
    outgoing: Vec<Vec<Outgoing>>,
}

impl Outside {
    /// Makes the host with this index one that is not simulated, of a group.
    pub fn add(&mut self, index: usize, host: NodeId, group: usize) {
        if self.nodes.len() <= index {
            self.nodes.resize(index + 1, (NO_HOST, 0));
        }
        self.nodes[index] = (host.0, group as u32);
        if self.outgoing.len() <= group {
            self.outgoing.resize_with(group + 1, Vec::new);
        }
    }

    pub fn take(&mut self, group: usize, into: &mut Vec<Outgoing>) {
        if let Some(outgoing) = self.outgoing.get_mut(group) {
            into.append(outgoing);
        }
    }

    pub fn has_outgoing(&self, group: usize) -> bool {
        self.outgoing.get(group).is_some_and(|outgoing| !outgoing.is_empty())
    }

    #[inline]
    pub fn has(&self, host: u32) -> bool {
        self.group(host).is_some()
    }

    /// The group of a host that is not simulated.
    #[inline]
    pub fn group(&self, host: u32) -> Option<usize> {
        let (node, group) = *self.nodes.get(host as usize)?;
        (node != NO_HOST).then_some(group as usize)
    }

    pub fn put(&mut self, host: u32, now: u64, mut packet: Box<Written>) {
        packet.fill();
        let (node, group) = self.nodes[host as usize];
        let outgoing = Outgoing { host: NodeId(node), at: Time::from_ps(now), packet };
        self.outgoing[group as usize].push(outgoing);
    }
}
