//! A packet as shims see it.

use wire::frame::Body;
use wire::options::{NoRoom, OptionList, Options};
use wire::tcp::{Flags, MAX_LEN};

/// Which header an option stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Ip,
    Tcp,
}

/// An option: the header that it stands in, and its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionKind {
    pub place: Place,
    pub kind: u8,
}

impl OptionKind {
    /// # Errors
    /// Kinds that carry no data, and those that TCP itself has.
    pub fn new(place: Place, kind: u8) -> Result<OptionKind, String> {
        match (place, kind) {
            (_, 0 | 1) => {
                Err(format!("option kind {kind} is padding; choose another, as 30 (IPv4) or 253 (TCP)"))
            }
            (Place::Tcp, 2..=5 | 8) => Err(format!(
                "option kind {kind} is TCP's own; choose another, as the experimental 253 or 254"
            )),
            _ => Ok(OptionKind { place, kind }),
        }
    }
}

/// What kind of packet it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    Syn,
    SynAck,
    /// TCP with payload.
    Data,
    /// TCP with neither payload nor SYN.
    Ack,
    Udp,
}

/// A set of kinds of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds(u8);

impl Kinds {
    pub const fn of(kinds: &[PacketKind]) -> Kinds {
        let (mut set, mut at) = (0, 0);
        while at < kinds.len() {
            set |= 1 << kinds[at] as u8;
            at += 1;
        }
        Kinds(set)
    }

    pub const fn has(self, kind: PacketKind) -> bool {
        self.0 >> kind as u8 & 1 == 1
    }
}

/// A packet between a connection and the host's port: its fields, and the options beside TCP's own. Addresses and ports are the
/// connection's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    pub body: Body,
    options: Options,
}

impl Packet {
    pub fn new(body: Body, options: Options) -> Packet {
        Packet { body, options }
    }

    pub fn kind(&self) -> PacketKind {
        let Body::Tcp(segment) = &self.body else { return PacketKind::Udp };
        match (segment.flags.has(Flags::SYN), segment.flags.has(Flags::ACK), segment.payload) {
            (true, false, _) => PacketKind::Syn,
            (true, true, _) => PacketKind::SynAck,
            (false, _, 0) => PacketKind::Ack,
            (false, ..) => PacketKind::Data,
        }
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Bytes from the IP header on.
    pub fn size(&self) -> u32 {
        20 + self.options.padded_len()
            + match &self.body {
                Body::Tcp(segment) => segment.header_len() + segment.payload,
                Body::Udp { payload, .. } => 8 + payload,
            }
    }

    /// The data of an option, if the packet has it.
    pub fn find(&self, option: OptionKind) -> Option<&[u8]> {
        match option.place {
            Place::Ip => self.options.ip.find(option.kind),
            Place::Tcp => self.options.tcp.find(option.kind),
        }
    }

    /// Adds an option.
    ///
    /// # Errors
    /// The header has no room for it beside what it has; a UDP header has none.
    pub fn add(&mut self, option: OptionKind, data: &[u8]) -> Result<(), NoRoom> {
        match option.place {
            Place::Ip => self.options.ip.push(option.kind, data),
            Place::Tcp => {
                let own = match &self.body {
                    Body::Tcp(segment) => segment.header_len() as usize,
                    Body::Udp { .. } => MAX_LEN,
                };
                let mut after: OptionList = self.options.tcp;
                after.push(option.kind, data)?;
                if own + after.padded_len() > MAX_LEN {
                    let left = MAX_LEN.saturating_sub(own + self.options.tcp.as_bytes().len());
                    return Err(NoRoom { needed: data.len() + 2, left });
                }
                self.options.tcp = after;
                Ok(())
            }
        }
    }

    /// Takes an option out. Gives whether it was there.
    pub fn remove(&mut self, option: OptionKind) -> bool {
        match option.place {
            Place::Ip => self.options.ip.remove(option.kind),
            Place::Tcp => self.options.tcp.remove(option.kind),
        }
    }
}
