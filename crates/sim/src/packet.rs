//! Packets, and the pool that they live in.

use transport::segment::{Ecn, Segment};

use crate::udp::Datagram;

pub(crate) type PacketId = u32;

/// What a packet carries.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body {
    Tcp(Segment),
    Udp(Datagram),
}

/// A packet on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// For TCP the endpoint (half of a flow) that it is for, for UDP the source that it is of.
    pub endpoint: u32,
    /// Index of the host that it is for.
    pub to: u32,
    /// Node that it comes to next, where no port keeps that.
    pub next: u32,
    /// Bytes from the IP header on.
    pub size: u32,
    pub body: Body,
}

impl Packet {
    pub fn ecn(&mut self) -> &mut Ecn {
        match &mut self.body {
            Body::Tcp(segment) => &mut segment.ecn,
            Body::Udp(datagram) => &mut datagram.ecn,
        }
    }
}

/// Packets by id; ids are used again.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    packets: Vec<Packet>,
    free: Vec<PacketId>,
}

impl Pool {
    pub fn add(&mut self, packet: Packet) -> PacketId {
        match self.free.pop() {
            Some(id) => {
                self.packets[id as usize] = packet;
                id
            }
            None => {
                self.packets.push(packet);
                self.packets.len() as PacketId - 1
            }
        }
    }

    pub fn get(&self, id: PacketId) -> &Packet {
        &self.packets[id as usize]
    }

    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id as usize]
    }

    pub fn free(&mut self, id: PacketId) {
        self.free.push(id);
    }

    /// Packets that exist.
    pub fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}
