//! Hosts that are not simulated. What such a host sends is put in as bytes, and enters the network by the host's link; what the
//! network delivers to it is taken out as bytes. Whoever runs the network sees to the time: it runs the network until a frame's
//! time before it puts the frame in.

use units::Time;

use crate::frame::Frame;
use crate::network::{BuildError, NO_HOST, Network, NodeId, refuse};

/// Buffers that are kept for the next frames.
const MAX_BUFFERS: usize = 4096;

/// A frame for a host that is not simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    pub host: NodeId,
    /// When the network delivered it.
    pub at: Time,
    /// From Ethernet on.
    pub bytes: Vec<u8>,
}

/// Which hosts are not simulated, and what there is for them.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// By host its node; [`NO_HOST`] for one that is simulated.
    nodes: Vec<u32>,
    outgoing: Vec<Outgoing>,
}

impl Outside {
    #[inline]
    pub fn has(&self, host: u32) -> bool {
        self.nodes.get(host as usize).is_some_and(|node| *node != NO_HOST)
    }

    pub fn put(&mut self, host: u32, now: u64, frame: Frame) {
        let Frame { mut bytes, more } = frame;
        // What the simulator only counts is zero bytes.
        bytes.resize(bytes.len() + more as usize, 0);
        let host = NodeId(self.nodes[host as usize]);
        self.outgoing.push(Outgoing { host, at: Time::from_ps(now), bytes });
    }
}

impl Network {
    /// Makes a host one that is not simulated.
    ///
    /// # Errors
    /// A node that is no host.
    pub fn set_outside(&mut self, host: NodeId) -> Result<(), BuildError> {
        let node = &self.nodes[host.0 as usize];
        if node.host == NO_HOST {
            return refuse(format!("{} is no host; only a host can be outside", node.name));
        }
        let index = node.host as usize;
        if self.outside.nodes.len() <= index {
            self.outside.nodes.resize(index + 1, NO_HOST);
        }
        self.outside.nodes[index] = host.0;
        Ok(())
    }

    /// A host that is not simulated sends a frame, from Ethernet on, now.
    pub fn inject(&mut self, host: NodeId, frame: &[u8]) {
        let Some(port) = self.nodes[host.0 as usize].ports.first().copied() else {
            self.unclaimed += 1;
            return;
        };
        let mut bytes = self.buffers.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(frame);
        let frame = Frame { bytes, more: 0 };
        let to = frame.host().unwrap_or(NO_HOST);
        let id = self.packets.add_frame(to, port, frame);
        self.send(port, id);
    }

    /// Takes what there is for hosts that are not simulated, in order of time, to the end of `into`.
    pub fn take_outgoing(&mut self, into: &mut Vec<Outgoing>) {
        into.append(&mut self.outside.outgoing);
    }

    /// Whether there is anything to take.
    pub fn has_outgoing(&self) -> bool {
        !self.outside.outgoing.is_empty()
    }

    /// Gives the bytes of a frame back, for the next one.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        if self.buffers.len() < MAX_BUFFERS {
            self.buffers.push(bytes);
        }
    }

    /// When something happens next.
    pub fn next_event(&self) -> Option<Time> {
        self.events.first().map(|(at, _)| Time::from_ps(at))
    }
}
