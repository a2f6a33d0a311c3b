//! Packets, and the pool that they live in.

use transport::segment::{Ecn, Segment};
use wire::ethernet;
use wire::ipv4::mark_ce;

use crate::frame::Frame;
use crate::udp::Datagram;

pub(crate) type PacketId = u32;

/// Of a packet that waits in its host.
pub(crate) const HELD: u32 = 1 << 31;

/// With [`HELD`]: it has come, and an agent of the host keeps it from TCP.
pub(crate) const CAME: u32 = 1 << 30;

/// What a packet carries.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Tcp(Segment),
    Udp(Datagram),
    /// Bytes, since a P4 switch has had it.
    Frame(Frame),
}

/// A packet on its way.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    /// For TCP the endpoint (half of a flow) that it is for, for UDP the source that it is of.
    pub endpoint: u32,
    /// Index of the host that it is for.
    pub to: u32,
    /// Port that it is on the wire of, where no port keeps that; with [`HELD`], port that it is to be sent by.
    pub next: u32,
    /// Bytes from the IP header on.
    pub size: u32,
    pub body: Body,
}

impl Packet {
    /// Bytes of VLAN tags, which do not count for an MTU.
    #[cold]
    pub fn tags(&self) -> u32 {
        let Body::Frame(frame) = &self.body else { return 0 };
        let kinds = frame.bytes.get(12..).unwrap_or(&[]).chunks_exact(4);
        4 * kinds.take_while(|tag| matches!(tag[..2], [0x81, 0] | [0x88, 0xa8])).count() as u32
    }

    /// Marks CE, if the packet says that it can be marked. Gives whether it was not marked before.
    pub fn mark_ce(&mut self) -> bool {
        let ecn = match &mut self.body {
            Body::Tcp(segment) => &mut segment.ecn,
            Body::Udp(datagram) => &mut datagram.ecn,
            Body::Frame(frame) => return mark_ce(frame.bytes.get_mut(ethernet::LEN..).unwrap_or_default()),
        };
        let marked = matches!(ecn, Ecn::Ect0 | Ecn::Ect1);
        if marked {
            *ecn = Ecn::Ce;
        }
        marked
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

    /// As [`Pool::add`], for what a P4 switch sends; writes no more than it must.
    pub fn add_frame(&mut self, to: u32, next: u32, frame: Frame) -> PacketId {
        let size = frame.size();
        let Some(id) = self.free.pop() else {
            return self.add(Packet { endpoint: 0, to, next, size, body: Body::Frame(frame) });
        };
        let packet = &mut self.packets[id as usize];
        (packet.to, packet.next, packet.size) = (to, next, size);
        match &mut packet.body {
            Body::Frame(empty) => *empty = frame,
            other => *other = Body::Frame(frame),
        }
        id
    }

    pub fn get(&self, id: PacketId) -> &Packet {
        &self.packets[id as usize]
    }

    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id as usize]
    }

    /// Takes a frame out of its packet, which goes back to the pool.
    pub fn take_frame(&mut self, id: PacketId) -> Option<Frame> {
        self.free.push(id);
        match &mut self.packets[id as usize].body {
            Body::Frame(frame) => Some(std::mem::take(frame)),
            _ => None,
        }
    }

    pub fn free(&mut self, id: PacketId) {
        self.free.push(id);
    }

    /// Packets that exist.
    pub fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }
}
