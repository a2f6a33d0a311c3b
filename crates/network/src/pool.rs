//! Packets under way, and the pool that they live in.

use wire::packet::Packet;
use wire::tcp::Segment;

use crate::event::MAX_ID;

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
                assert!(self.slots.len() < MAX_ID as usize, "more than {MAX_ID} packets at once");
                self.slots.push(slot);
                self.slots.len() as PacketId - 1
            }
        }
    }

    /// A slot for a packet that is bytes, which are still to be put in; writes no more than it must.
    pub fn reserve(&mut self, to: u32, next: u32, size: u32) -> PacketId {
        let Some(id) = self.free.pop() else {
            return self.add(Slot { endpoint: 0, to, next, size, packet: Packet::Bytes(None) });
        };
        let slot = &mut self.slots[id as usize];
        (slot.to, slot.next, slot.size) = (to, next, size);
        id
    }

    /// A slot for a segment, which `fill` writes in the place of what was there; the rest of the slot is still to be set. `None`, and no
    /// slot is taken, if it has nothing to write.
    #[inline]
    pub fn add_segment(&mut self, fill: impl FnOnce(&mut Segment) -> bool) -> Option<(PacketId, &mut Slot)> {
        let id = match self.free.last() {
            Some(id) => *id,
            None => self.spare(),
        };
        let slot = &mut self.slots[id as usize];
        if !matches!(slot.packet, Packet::Tcp(_)) {
            slot.packet = Packet::Tcp(Segment::default());
        }
        let Packet::Tcp(segment) = &mut slot.packet else { return None };
        if !fill(segment) {
            return None;
        }
        self.free.pop();
        Some((id, slot))
    }

    #[cold]
    fn spare(&mut self) -> PacketId {
        let packet = Packet::Tcp(Segment::default());
        let id = self.add(Slot { endpoint: 0, to: 0, next: 0, size: 0, packet });
        self.free(id);
        id
    }

    pub fn get(&self, id: PacketId) -> &Slot {
        &self.slots[id as usize]
    }

    pub fn get_mut(&mut self, id: PacketId) -> &mut Slot {
        &mut self.slots[id as usize]
    }

    /// Takes a packet out, as it is.
    pub fn take(&mut self, id: PacketId) -> Slot {
        let slot = &mut self.slots[id as usize];
        let packet = std::mem::replace(&mut slot.packet, Packet::Bytes(None));
        let taken = Slot { packet, ..*slot };
        self.free.push(id);
        taken
    }

    pub fn free(&mut self, id: PacketId) {
        self.free.push(id);
    }

    /// Addresses of the memory that they are in, and behind it.
    pub fn memory(&self) -> (usize, usize) {
        let from = self.slots.as_ptr() as usize;
        (from, from + self.slots.capacity() * size_of::<Slot>())
    }

    /// Packets that exist.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
