//! Sends an option that came back to where it came from, in another option.

use std::collections::HashMap;

use units::Time;

use super::{Event, FlowKey, Handle, Kinds, OptionKind, Packet, PacketKind, Room, Shim, Verdict};

/// Which of the values that came is echoed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The last one; on every packet, until another comes.
    Latest,
    /// The largest since the last echo, as a number in network order; once.
    Max,
}

/// Reads an option of packets that come, and puts its data into an option of packets that leave by the same connection.
#[derive(Debug, Clone)]
pub struct Echo {
    read: OptionKind,
    write: OptionKind,
    keep: Keep,
    on: Kinds,
    /// Longest data that is echoed, which decides on the room.
    most: usize,
    /// By connection.
    values: HashMap<u32, Vec<u8>>,
}

impl Echo {
    pub fn new(read: OptionKind, write: OptionKind, keep: Keep, on: Kinds, most: usize) -> Echo {
        Echo { read, write, keep, on, most, values: HashMap::new() }
    }
}

impl Shim for Echo {
    fn option(&self) -> Option<OptionKind> {
        Some(self.read)
    }

    fn room(&self, _: &FlowKey, on: PacketKind) -> Room {
        if self.on.has(on) { self.write.room(self.most) } else { Room::default() }
    }

    fn event(&mut self, _: Time, connection: &mut Handle, what: Event) {
        if what == Event::Closed {
            self.values.remove(&connection.flow().connection);
        }
    }

    fn received(&mut self, _: Time, connection: Option<&mut Handle>, packet: &mut Packet) -> Verdict {
        let (Some(connection), Some(data)) = (connection, packet.find(self.read)) else {
            return Verdict::Pass;
        };
        if data.len() <= self.most {
            let value = self.values.entry(connection.flow().connection).or_default();
            let larger = (data.len(), data) > (value.len(), &value[..]);
            if self.keep == Keep::Latest || larger {
                data.clone_into(value);
            }
        }
        Verdict::Pass
    }

    fn sent(&mut self, _: Time, connection: Option<&mut Handle>, packet: &mut Packet) -> Verdict {
        let Some(connection) = connection.filter(|_| self.on.has(packet.kind())) else {
            return Verdict::Pass;
        };
        let number = connection.flow().connection;
        if let Some(value) = self.values.get(&number) {
            match packet.add(self.write, value) {
                Err(_) => connection.no_room(self.write.kind),
                Ok(()) if self.keep == Keep::Max => _ = self.values.remove(&number),
                Ok(()) => {}
            }
        }
        Verdict::Pass
    }
}
