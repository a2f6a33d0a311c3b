//! A packet as shims see it.

pub use wire::between::Form;
use wire::between::{self, Between};
use wire::frame::Body;
use wire::options::{NoRoom, OptionList, Options};
use wire::tcp::{Flags, MAX_LEN};

use super::Room;

/// Which header an option stands in, or that it is one between Ethernet and IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Ip,
    Tcp,
    Between(Form),
}

/// An option: the header that it stands in, and its kind, which has 8 bits; or a header of its own, and its EtherType.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionKind {
    pub place: Place,
    pub kind: u16,
}

impl OptionKind {
    /// # Errors
    /// Kinds that carry no data, those that TCP itself has, and EtherTypes that mean something else to a host.
    pub fn new(place: Place, kind: u16) -> Result<OptionKind, String> {
        match (place, kind) {
            (Place::Between(_), _) => between::demand_type(kind).map(|()| OptionKind { place, kind }),
            (_, 256..) => Err(format!("option kind {kind} has more than 8 bits; choose one up to 255")),
            (_, 0 | 1) => {
                Err(format!("option kind {kind} is padding; choose another, as 30 (IPv4) or 253 (TCP)"))
            }
            (Place::Tcp, 2..=5 | 8) => Err(format!(
                "option kind {kind} is TCP's own; choose another, as the experimental 253 or 254"
            )),
            _ => Ok(OptionKind { place, kind }),
        }
    }

    /// Bytes that it takes of a packet, with so much data.
    pub fn room(self, data: usize) -> Room {
        let option = data as u32 + 2;
        match self.place {
            Place::Ip => Room { ip: option, ..Room::default() },
            Place::Tcp => Room { tcp: option, ..Room::default() },
            Place::Between(form) => Room { between: Between::len_of(form, data) as u32, ..Room::default() },
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

    /// Bytes behind the Ethernet header.
    pub fn size(&self) -> u32 {
        20 + self.options.padded_len()
            + match &self.body {
                Body::Tcp(segment) => segment.header_len() + segment.payload,
                Body::Udp { payload, .. } => 8 + payload,
            }
    }

    /// The data of an option, if the packet has it: of the first, where there are several.
    pub fn find(&self, option: OptionKind) -> Option<&[u8]> {
        self.all(option).next()
    }

    /// The data of each option of a kind.
    pub fn all(&self, option: OptionKind) -> impl Iterator<Item = &[u8]> {
        let (list, form) = match option.place {
            Place::Ip => (Some(&self.options.ip), None),
            Place::Tcp => (Some(&self.options.tcp), None),
            Place::Between(form) => (None, Some(form)),
        };
        let header = self.options.between.as_ref().filter(|h| (Some(h.form), h.kind) == (form, option.kind));
        let listed = list.into_iter().flat_map(OptionList::iter);
        listed
            .filter(move |(kind, _)| u16::from(*kind) == option.kind)
            .map(|(_, data)| data)
            .chain(header.map(Between::data))
    }

    /// Adds an option.
    ///
    /// # Errors
    /// The header has no room for it beside what it has; a UDP header has none. There is one header between Ethernet and IP at most.
    pub fn add(&mut self, option: OptionKind, data: &[u8]) -> Result<(), NoRoom> {
        match option.place {
            Place::Ip => self.options.ip.push(option.kind as u8, data),
            Place::Between(_) if self.options.between.is_some() => {
                Err(NoRoom { needed: data.len(), left: 0 })
            }
            Place::Between(form) => {
                self.options.between = Some(Between::new(form, option.kind, data)?);
                Ok(())
            }
            Place::Tcp => {
                let own = match &self.body {
                    Body::Tcp(segment) => segment.header_len() as usize,
                    Body::Udp { .. } => MAX_LEN,
                };
                let mut after: OptionList = self.options.tcp;
                after.push(option.kind as u8, data)?;
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
            Place::Ip => self.options.ip.remove(option.kind as u8),
            Place::Tcp => self.options.tcp.remove(option.kind as u8),
            Place::Between(_) => {
                let there = self.find(option).is_some();
                self.options.between = self.options.between.filter(|_| !there);
                there
            }
        }
    }
}
