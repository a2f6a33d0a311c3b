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
            prefetch(self.packets.get(later), size_of::<Slot>().div_ceil(LINE));
        }
        if let Some(next) = next
            && let Some(endpoint) = self.endpoints.get(self.packets.get(next).endpoint as usize)
        {
            prefetch(endpoint, 1);
        }
    }

    /// One event is about to be handled: the next one's packet or connection.
    pub(crate) fn event_ahead(&self) {
        match self.events.guess() {
            Some((_, Event::Single(packet))) => {
                prefetch(self.packets.get(packet), size_of::<Slot>().div_ceil(LINE))
            }
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
    }

    /// A packet is on its way to a router's port: if a host is behind it, the packet's connection is next.
    pub(crate) fn connection_ahead(&self, port: u32, id: PacketId) {
        let to = self.ports[port as usize].to;
        if self.nodes[to as usize].host != NO_HOST
            && let Some(endpoint) = self.endpoints.get(self.packets.get(id).endpoint as usize)
            && let Some(connection) = &endpoint.connection
        {
            prefetch(&**connection, size_of::<Connection>().div_ceil(LINE));
        }
    }
}
