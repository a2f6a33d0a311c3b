//! Hosts that are not simulated. What such a host sends is put in as bytes, and enters the network by the host's link; what the
//! network delivers to it is taken out as bytes. Whoever runs the network sees to the time: it runs the network until a frame's
//! time before it puts the frame in.

use units::Time;

use wire::packet::{MOST_LARGE, Written};

use crate::error::{BuildError, refuse};
use crate::event::Event;
use crate::forward::target;
use crate::network::Network;
use crate::node::{NO_HOST, NodeId};
use crate::outgoing::Outgoing;

/// Packets whose memory is kept for the next ones.
const MAX_SPARE: usize = 4096;

impl Network {
    /// Makes a host one that is not simulated, of a group of hosts whose frames are taken together.
    ///
    /// # Errors
    /// A node that is not a host.
    pub fn set_outside(&mut self, host: NodeId, group: usize) -> Result<(), BuildError> {
        self.unite("hosts are real");
        let node = &self.nodes[host.0 as usize];
        if node.host == NO_HOST {
            return refuse(format!("{} is not a host; only a host can be outside", node.name));
        }
        let index = node.host as usize;
        self.outside.add(index, host, group);
        Ok(())
    }

    /// A host that is not simulated sends a frame, from Ethernet on, now.
    pub fn inject(&mut self, host: NodeId, frame: &[u8]) {
        self.unite("hosts are real");
        let Some(port) = self.nodes[host.0 as usize].ports.first().copied() else {
            self.unclaimed += 1;
            return;
        };
        let mut written = self.spare();
        written.set_bytes(frame, 0);
        let id = self.packets.reserve(target(&written), port, written.size());
        self.packets.get_mut(id).packet.put(written);
        self.send(port, id);
    }

    /// Takes what there is for the hosts of a group that are not simulated, in order of time, to the end of `into`.
    pub fn take_outgoing(&mut self, group: usize, into: &mut Vec<Outgoing>) {
        self.outside.take(group, into);
    }

    /// Whether there is anything to take for a group.
    pub fn has_outgoing(&self, group: usize) -> bool {
        self.outside.has_outgoing(group)
    }

    /// Memory for a packet that becomes bytes.
    #[inline]
    pub(crate) fn spare(&mut self) -> Box<Written> {
        self.written.pop().unwrap_or_default()
    }

    /// Gives a packet's memory back, for the next one.
    #[inline]
    pub fn recycle(&mut self, packet: Box<Written>) {
        if self.written.len() < if packet.is_large() { MOST_LARGE } else { MAX_SPARE } {
            self.written.push(packet);
        }
    }

    /// When something happens next.
    pub fn next_event(&mut self) -> Option<Time> {
        self.events.first().map(|(at, _)| Time::from_ps(at))
    }

    /// The group of the host that what happens next is about: a packet comes out of its wire, or its wire becomes free.
    pub fn next_group(&mut self) -> Option<usize> {
        let port = match self.events.first()?.1 {
            Event::Arrive(port) | Event::Free(port) => port,
            Event::Single(packet) => self.packets.get(packet).next,
            _ => return None,
        };
        let to = self.ports[port as usize].to;
        self.outside.group(self.nodes[to as usize].host)
    }
}
