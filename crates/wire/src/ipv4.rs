//! IPv4 with options (RFC 791; DSCP of RFC 2474, ECN of RFC 3168). Not supported: putting fragments together.

use crate::bytes::{array, be16, put16};
use crate::checksum::{Sum, update};
use crate::options::{self, OptionList};
use crate::{Ecn, WireError};

/// Bytes of the header without options.
pub const LEN: usize = 20;

/// Where the checksum stands.
const CHECKSUM: usize = 10;

/// A packet's bytes. Its header is known to be there and to have a right checksum, and the whole packet is as long as it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// `bytes` may end behind the headers, and may go on behind the packet (Ethernet's padding); `wire` is how many there are on the
    /// wire.
    ///
    /// # Errors
    /// What is no IPv4 packet, or not all of one.
    #[inline]
    pub fn new(bytes: &'a [u8], wire: usize) -> Result<View<'a>, WireError> {
        if bytes.len() < LEN {
            return Err(WireError::Short);
        }
        if bytes[0] >> 4 != 4 {
            return Err(WireError::NotIpv4);
        }
        let view = View(bytes);
        let header = view.header_len();
        if header < LEN || bytes.len() < header {
            return Err(WireError::IpOptionsBeyondEnd);
        }
        if Sum::of(&bytes[..header]).check() != 0 {
            return Err(WireError::IpChecksum);
        }
        if view.total_len() > wire || view.total_len() < header {
            return Err(WireError::LengthBeyondEnd);
        }
        Ok(view)
    }
    pub fn header_len(&self) -> usize {
        usize::from(self.0[0] & 15) * 4
    }
    pub fn dscp(&self) -> u8 {
        self.0[1] >> 2
    }
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.0[1])
    }
    /// Bytes of header and payload.
    pub fn total_len(&self) -> usize {
        usize::from(be16(self.0, 2))
    }
    pub fn id(&self) -> u16 {
        be16(self.0, 4)
    }
    pub fn dont_fragment(&self) -> bool {
        self.0[6] & 0x40 != 0
    }
    pub fn more_fragments(&self) -> bool {
        self.0[6] & 0x20 != 0
    }
    /// In units of 8 bytes.
    pub fn fragment_offset(&self) -> u16 {
        be16(self.0, 6) & 0x1fff
    }
    /// A part of a packet, not a whole one.
    pub fn is_fragment(&self) -> bool {
        be16(self.0, 6) & 0x3fff != 0
    }
    pub fn ttl(&self) -> u8 {
        self.0[8]
    }
    pub fn protocol(&self) -> u8 {
        self.0[9]
    }
    pub fn checksum(&self) -> u16 {
        be16(self.0, CHECKSUM)
    }
    pub fn from(&self) -> [u8; 4] {
        array(self.0, 12)
    }
    pub fn to(&self) -> [u8; 4] {
        array(self.0, 16)
    }
    /// Of the bytes behind the fixed part.
    pub fn options(&self) -> options::Iter<'a> {
        options::Iter::new(&self.0[LEN..self.header_len()])
    }
    /// As much of the payload as there is.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[self.header_len()..self.total_len().min(self.0.len())]
    }
    /// Bytes of the payload on the wire.
    pub fn payload_len(&self) -> usize {
        self.total_len() - self.header_len()
    }
}

/// The header as fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    pub from: [u8; 4],
    pub to: [u8; 4],
    pub protocol: u8,
    pub ttl: u8,
    /// 0 to 63.
    pub dscp: u8,
    pub ecn: Ecn,
    pub id: u16,
    pub dont_fragment: bool,
    pub more_fragments: bool,
    /// In units of 8 bytes, 0 to 8191.
    pub fragment_offset: u16,
    pub options: OptionList,
    /// Bytes that follow the header.
    pub payload: u16,
}

impl Header {
    /// # Errors
    /// An option with a wrong length.
    pub fn parse(view: &View) -> Result<Header, WireError> {
        let options = &view.0[LEN..view.header_len()];
        Ok(Header {
            from: view.from(),
            to: view.to(),
            protocol: view.protocol(),
            ttl: view.ttl(),
            dscp: view.dscp(),
            ecn: view.ecn(),
            id: view.id(),
            dont_fragment: view.dont_fragment(),
            more_fragments: view.more_fragments(),
            fragment_offset: view.fragment_offset(),
            options: OptionList::parse(options, |_| true).map_err(|_| WireError::IpOption)?,
            payload: view.payload_len() as u16,
        })
    }

    /// Bytes of the header with its options.
    pub fn len(&self) -> usize {
        LEN + self.options.padded_len()
    }

    /// A header has no fewer than 20 bytes.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Appends the header with a right checksum.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let flags = u16::from(self.dont_fragment) << 14 | u16::from(self.more_fragments) << 13;
        out.extend_from_slice(&[0x40 | (self.len() / 4) as u8, self.dscp << 2 | self.ecn as u8]);
        out.extend_from_slice(&(self.len() as u16).saturating_add(self.payload).to_be_bytes());
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&(flags | self.fragment_offset & 0x1fff).to_be_bytes());
        out.extend_from_slice(&[self.ttl, self.protocol, 0, 0]);
        out.extend_from_slice(&self.from);
        out.extend_from_slice(&self.to);
        // What pads IPv4's options ends their list.
        self.options.emit(0, out);
        let check = Sum::of(&out[start..]).check();
        put16(out, start + CHECKSUM, check);
    }
}

/// Marks CE in a header that says that it can be marked, and brings its checksum up to date. Gives whether it was marked now.
pub fn mark_ce(packet: &mut [u8]) -> bool {
    let Some(header) = packet.get_mut(..LEN).filter(|h| h[0] >> 4 == 4 && matches!(h[1] & 3, 1 | 2)) else {
        return false;
    };
    let before = be16(header, 0);
    header[1] |= Ecn::Ce as u8;
    let check = update(be16(header, CHECKSUM), before, be16(header, 0));
    put16(header, CHECKSUM, check);
    true
}
