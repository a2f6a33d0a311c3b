//! Memory that is soon needed is asked for early. With thousands of connections each packet is of another one than the last, and what it
//! needs has left the caches since: its slot in the pool, its endpoint, and its connection. Nothing but time depends on it.

use dataplane::prefetch::prefetch;
use transport::tcp::Connection;

use crate::event::Event;
use crate::network::Network;
use crate::node::NO_HOST;
use crate::pool::{PacketId, Slot};

/// With fewer endpoints the caches hold all of them.
const CROWD: usize = 512;

const LINE: usize = 64;

impl Network {
    /// Whether there are so many endpoints that looking ahead pays.
    #[inline(always)]
    pub(crate) fn crowded(&self) -> bool {
        self.endpoints.len() > CROWD
    }

    /// These packets arrive next on a wire.
    pub(crate) fn packets_ahead(&self, [next, later]: [Option<PacketId>; 2]) {
        if let Some(later) = later {
            self.packet_ahead(later);
        }
        if let Some(next) = next
            && let Some(endpoint) = self.endpoints.get(self.packets.get(next).endpoint as usize)
        {
            prefetch(endpoint, 1);
        }
    }

    /// One event is about to be handled: the next one's packet or connection, and what of the one behind that is needed to find these.
    pub(crate) fn event_ahead(&self) {
        let [next, later] = self.events.guess();
        match next {
            Some((_, Event::Single(packet))) => self.packet_ahead(packet),
            Some((at, Event::Timer(endpoint))) => {
                let endpoint = &self.endpoints[endpoint as usize];
                if endpoint.has_work(at)
                    && let Some(connection) = &endpoint.connection
                {
                    prefetch(&**connection, size_of::<Connection>().div_ceil(LINE));
                }
            }
            _ => {}
        }
        match later {
            Some((_, Event::Single(packet))) => self.packet_ahead(packet),
            Some((_, Event::Timer(endpoint))) => prefetch(&self.endpoints[endpoint as usize], 1),
            _ => {}
        }
    }

    /// A packet will be looked at.
    #[inline]
    pub(crate) fn packet_ahead(&self, id: PacketId) {
        prefetch(self.packets.get(id), size_of::<Slot>().div_ceil(LINE));
    }

    /// A packet is on its way to a router's port: if a host is behind it, the packet's connection is next, and before that its endpoint.
    pub(crate) fn connection_ahead(&self, port: u32, id: PacketId) {
        let to = self.ports[port as usize].to;
        let Some(endpoint) = self.endpoints.get(self.packets.get(id).endpoint as usize) else { return };
        if self.nodes[to as usize].host == NO_HOST {
            prefetch(endpoint, 1);
        } else if let Some(connection) = &endpoint.connection {
            prefetch(&**connection, size_of::<Connection>().div_ceil(LINE));
        }
    }
}
