//! Puts an option on packets that the host sends.

use units::Time;

use super::{FlowKey, Handle, Kinds, OptionKind, Packet, PacketKind, Place, Room, Shim, Verdict};

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
    fn length(&self) -> u32 {
        2 + match &self.stamp {
            Stamp::Bytes(bytes) => bytes.len() as u32,
            Stamp::Clock => 8,
        }
    }
}

impl Shim for Insert {
    fn room(&self, _: &FlowKey, on: PacketKind) -> Room {
        match self.option.place {
            _ if !self.on.has(on) => Room::default(),
            Place::Ip => Room { ip: self.length(), tcp: 0 },
            Place::Tcp => Room { ip: 0, tcp: self.length() },
        }
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
