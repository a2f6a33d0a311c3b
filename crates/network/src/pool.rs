//! Packets under way, and the pool that they live in.

use wire::packet::{Packet, Written};

pub(crate) type PacketId = u32;

/// Of a packet that waits in its host.
pub(crate) const HELD: u32 = 1 << 31;

/// With [`HELD`]: it has come, and an agent of the host keeps it from TCP.
pub(crate) const CAME: u32 = 1 << 30;

/// A packet on its way.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    /// For TCP the endpoint (half of a flow) that it is for, for UDP the source that it is of.
    pub endpoint: u32,
    /// Index of the host that it is for.
    pub to: u32,
    /// Port that it is on the wire of, where no port keeps that; with [`HELD`], port that it is to be sent by.
    pub next: u32,
    /// Bytes from the IP header on.
    pub size: u32,
    pub packet: Packet,
}

/// Two lines of the cache.
const _: () = assert!(size_of::<Slot>() <= 128);

impl Slot {
    /// Becomes these bytes.
    #[inline]
    pub fn put(&mut self, written: Box<Written>) {
        match &mut self.packet {
            Packet::Bytes(empty) => *empty = Some(written),
            fields => *fields = Packet::Bytes(Some(written)),
        }
    }

    /// Bytes of VLAN tags, which do not count for an MTU.
    #[cold]
    pub fn tags(&self) -> u32 {
        match &self.packet {
            Packet::Bytes(Some(written)) => written.tags(),
            _ => 0,
        }
    }
}

/// Packets by id; ids are used again.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    slots: Vec<Slot>,
    free: Vec<PacketId>,
}

impl Pool {
    pub fn add(&mut self, slot: Slot) -> PacketId {
        match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as PacketId - 1
            }
        }
    }

    /// As [`Pool::add`], for what is bytes; writes no more than it must.
    pub fn add_written(&mut self, to: u32, next: u32, written: Box<Written>) -> PacketId {
        let size = written.size();
        let Some(id) = self.free.pop() else {
            let packet = Packet::Bytes(Some(written));
            return self.add(Slot { endpoint: 0, to, next, size, packet });
        };
        let slot = &mut self.slots[id as usize];
        (slot.to, slot.next, slot.size) = (to, next, size);
        slot.put(written);
        id
    }

    pub fn get(&self, id: PacketId) -> &Slot {
        &self.slots[id as usize]
    }

    pub fn get_mut(&mut self, id: PacketId) -> &mut Slot {
        &mut self.slots[id as usize]
    }

    /// Takes the bytes out of a slot, which stays.
    #[inline]
    pub fn take_written(&mut self, id: PacketId) -> Option<Box<Written>> {
        match &mut self.slots[id as usize].packet {
            Packet::Bytes(written) => written.take(),
            _ => None,
        }
    }

    pub fn free(&mut self, id: PacketId) {
        self.free.push(id);
    }

    /// Packets that exist.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
