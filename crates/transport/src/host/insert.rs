//! Puts an option on packets that the host sends.

use std::collections::HashSet;

use units::Time;

use super::{Event, FlowKey, Handle, Kinds, OptionKind, Packet, PacketKind, Room, Shim, Verdict};

/// What the option's data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stamp {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The time at which the packet is sent, in nanoseconds, in 8 bytes.
    Clock,
}

/// Puts one option on each packet of some kinds. One that the header has no room for is left out, and counted.
#[derive(Debug, Clone)]
pub struct Insert {
    option: OptionKind,
    stamp: Stamp,
    on: Kinds,
    /// With `once`: the connections that have had theirs.
    had: Option<HashSet<u32>>,
}

impl Insert {
    /// With `once`, a connection's first packet of these kinds alone has the option.
    pub fn new(option: OptionKind, stamp: Stamp, on: Kinds, once: bool) -> Insert {
        Insert { option, stamp, on, had: once.then(HashSet::new) }
    }

    fn length(&self) -> usize {
        match &self.stamp {
            Stamp::Bytes(bytes) => bytes.len(),
            Stamp::Clock => 8,
        }
    }
}

impl Shim for Insert {
    fn option(&self) -> Option<OptionKind> {
        Some(self.option)
    }

    fn room(&self, _: &FlowKey, on: PacketKind) -> Room {
        if self.on.has(on) { self.option.room(self.length()) } else { Room::default() }
    }

    fn event(&mut self, _: Time, connection: &mut Handle, what: Event) {
        if let (Some(had), Event::Closed) = (&mut self.had, what) {
            had.remove(&connection.flow().connection);
        }
    }

    fn sent(&mut self, now: Time, connection: Option<&mut Handle>, packet: &mut Packet) -> Verdict {
        if self.on.has(packet.kind()) {
            if let (Some(had), Some(connection)) = (&mut self.had, &connection)
                && !had.insert(connection.flow().connection)
            {
                return Verdict::Pass;
            }
            let added = match &self.stamp {
                Stamp::Bytes(bytes) => packet.add(self.option, bytes),
                Stamp::Clock => packet.add(self.option, &(now.as_ps() / 1000).to_be_bytes()),
            };
            if let (Err(_), Some(connection)) = (added, connection) {
                connection.no_room(self.option.kind);
            }
        }
        Verdict::Pass
    }
}
