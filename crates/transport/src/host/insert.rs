//! Puts an option on packets that the host sends.

use units::Time;

use super::{FlowKey, Handle, Kinds, OptionKind, Packet, PacketKind, Room, Shim, Verdict};

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
    pub option: OptionKind,
    pub stamp: Stamp,
    pub on: Kinds,
}

impl Insert {
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

    fn sent(&mut self, now: Time, connection: Option<&mut Handle>, packet: &mut Packet) -> Verdict {
        if self.on.has(packet.kind()) {
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
