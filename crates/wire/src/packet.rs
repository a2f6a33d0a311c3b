//! A packet on its way through a network.
//!
//! A simulated host's packet is the [`Segment`] or [`Datagram`] that the host made, and has no bytes. A P4 switch, a capture and a host
//! that is not simulated need bytes: then it becomes [`Written`], which keeps what it was made of. Bytes are written as far as somebody
//! looks: first Ethernet, IPv4 and the ports ([`FRONT`]), the rest of the headers only if a program's parser can get there
//! ([`Written::reach`]). At a host, the segment is taken back if nothing that its checksum covers has changed ([`Written::arrive`]);
//! else what is missing is written as it was sent, and all is parsed and checked as any bytes are. So a program that changes an
//! address or a port and forgets the checksum loses its packets, as it would on a real network.
//!
//! In front of the bytes there is room for headers that a program adds ([`Written::replace_front`]); behind them payload may be zeros
//! that are only counted.

use std::ops::{Deref, DerefMut};

use smallvec::SmallVec;

use crate::between::{Between, Form};
use crate::bytes::{array, be16, be32, put16, put32};
use crate::checksum::{Sum, pseudo};
use crate::frame::{self, Addresses};
use crate::options::OptionList;
use crate::tcp::{Flags, Segment};
use crate::{Ecn, WireError, ethernet, ipv4, tcp, udp};

/// Bytes that are written first: Ethernet, IPv4 without options, and the ports.
pub const FRONT: usize = ethernet::LEN + ipv4::LEN + 4;

/// Room in front, and for headers in a packet's own memory; more is on the heap.
const HEADROOM: usize = 32;
const INLINE: usize = 128;

/// A UDP datagram that a simulated host sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Datagram {
    pub payload: u32,
    /// Of its source's datagrams, from 0 on; and when it was sent, in picoseconds. Neither is on the wire.
    pub number: u64,
    pub sent: u64,
    pub ecn: Ecn,
}

/// A packet on its way.
#[derive(Debug, Clone)]
pub enum Packet {
    Tcp(Segment),
    Udp(Datagram),
    /// As bytes; `None` for a packet that is somewhere else.
    Bytes(Option<Box<Written>>),
}

impl Packet {
    /// Becomes bytes.
    #[inline]
    pub fn put(&mut self, written: Box<Written>) {
        match self {
            Packet::Bytes(empty) => *empty = Some(written),
            fields => *fields = Packet::Bytes(Some(written)),
        }
    }

    /// Takes the bytes, if it is bytes.
    #[inline]
    pub fn take(&mut self) -> Option<Box<Written>> {
        match self {
            Packet::Bytes(written) => written.take(),
            Packet::Tcp(_) | Packet::Udp(_) => None,
        }
    }

    /// Marks CE, if the packet says that it can be marked. Gives whether it was not marked before.
    pub fn mark_ce(&mut self) -> bool {
        let ecn = match self {
            Packet::Tcp(segment) => &mut segment.ecn,
            Packet::Udp(datagram) => &mut datagram.ecn,
            Packet::Bytes(written) => return written.as_mut().is_some_and(|written| written.mark_ce()),
        };
        let marked = matches!(ecn, Ecn::Ect0 | Ecn::Ect1);
        if marked {
            *ecn = Ecn::Ce;
        }
        marked
    }
}

/// The fields that a packet was made of, if it was.
#[derive(Debug, Clone, Copy)]
enum MadeOf {
    Bytes,
    Tcp(Segment),
    Udp(Datagram),
}

/// Bytes of memory from which on a packet is large: not many such are kept for packets to come.
const LARGE: usize = 16 << 10;

/// Large packets that are kept, if there are no more of others.
pub const MOST_LARGE: usize = 64;

/// A packet as bytes, from Ethernet on.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Written {
    /// Where the bytes begin in `buf`.
    start: u32,
    /// Bytes of payload behind them that are zero, and only counted.
    zeros: u32,
    /// Bytes of headers between `buf` and the payload that are not written yet.
    unwritten: u32,
    /// Bytes from Ethernet on when it was made of fields.
    sent_len: u32,
    /// IPv4 addresses and ports with which it was sent, if it was made of fields.
    sent: [u32; 3],
    buf: SmallVec<[u8; INLINE]>,
    /// What it was made of; no fields: of bytes.
    made_of: MadeOf,
}

impl Default for Written {
    fn default() -> Written {
        Written {
            start: HEADROOM as u32,
            zeros: 0,
            unwritten: 0,
            sent_len: 0,
            sent: [0; 3],
            buf: SmallVec::from_elem(0, HEADROOM),
            made_of: MadeOf::Bytes,
        }
    }
}

impl From<&[u8]> for Written {
    fn from(bytes: &[u8]) -> Written {
        let mut written = Written::default();
        written.set_bytes(bytes, 0);
        written
    }
}

/// The same on the wire, and as much of it is written.
impl PartialEq for Written {
    fn eq(&self, other: &Written) -> bool {
        let behind = |w: &Written| (w.zeros, w.unwritten);
        self.bytes() == other.bytes() && behind(self) == behind(other)
    }
}

impl Eq for Written {}

/// The bytes that are written.
impl Deref for Written {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes()
    }
}

impl DerefMut for Written {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}

impl Written {
    /// Becomes a packet of these bytes, with `zeros` bytes of payload behind them.
    #[inline]
    pub fn set_bytes(&mut self, bytes: &[u8], zeros: u32) {
        // The memory of one as long needs no more than the bytes.
        if self.buf.len() == HEADROOM + bytes.len() {
            self.start = HEADROOM as u32;
            self.buf[HEADROOM..].copy_from_slice(bytes);
        } else {
            self.begin(0);
            self.buf.extend_from_slice(bytes);
        }
        (self.zeros, self.unwritten) = (zeros, 0);
        self.made_of = MadeOf::Bytes;
    }

    /// Becomes a copy of another packet.
    pub fn copy_from(&mut self, other: &Written) {
        let Written { start, zeros, unwritten, sent_len, sent, buf, made_of } = other;
        self.buf.clear();
        self.buf.extend_from_slice(buf);
        (self.start, self.zeros, self.unwritten) = (*start, *zeros, *unwritten);
        (self.sent_len, self.sent) = (*sent_len, *sent);
        self.made_of = *made_of;
    }

    /// Makes room for so many bytes, whatever they are.
    #[inline]
    fn begin(&mut self, bytes: usize) {
        if self.buf.len() != HEADROOM + bytes {
            self.buf.resize(HEADROOM + bytes, 0);
        }
        self.start = HEADROOM as u32;
    }

    /// Becomes what a host's packet looks like on the wire, written as far as the ports; keeps the packet, if it is fields.
    #[inline(always)]
    pub fn set_packet(&mut self, addresses: &Addresses, packet: &Packet) {
        let (header, payload, ecn, protocol) = match packet {
            Packet::Tcp(segment) => {
                self.made_of = MadeOf::Tcp(*segment);
                (segment.header_len(), segment.payload, segment.ecn, tcp::PROTOCOL)
            }
            Packet::Udp(datagram) => {
                self.made_of = MadeOf::Udp(*datagram);
                (udp::LEN as u32, datagram.payload, datagram.ecn, udp::PROTOCOL)
            }
            Packet::Bytes(_) => return,
        };
        let above = ipv4::LEN as u32 + header + payload;
        let total = u32::from(above as u16);
        let sent = [
            u32::from_be_bytes(addresses.from),
            u32::from_be_bytes(addresses.to),
            u32::from(addresses.port_from) << 16 | u32::from(addresses.port_to),
        ];
        let first = (0x4500 | ecn as u32) << 16 | total;
        let kind = TTL << 24 | u32::from(protocol) << 16;
        let sum = Sum::default().with_u32(first).with_u32(DONT_FRAGMENT).with_u32(kind);
        let check = sum.with_u32(sent[0]).with_u32(sent[1]).check();
        self.begin(FRONT);
        // Word by word where they stay: a copy of what has just been written would wait for it.
        if let Some(front) = self.buf[HEADROOM..].first_chunk_mut::<FRONT>() {
            front[..6].copy_from_slice(&addresses.mac_to);
            front[6..12].copy_from_slice(&addresses.mac_from);
            put16(front, 12, ethernet::kind::IPV4);
            put32(front, 14, first);
            put32(front, 18, DONT_FRAGMENT);
            put32(front, 22, kind | u32::from(check));
            put32(front, 26, sent[0]);
            put32(front, 30, sent[1]);
            put32(front, 34, sent[2]);
        }
        self.zeros = payload;
        self.unwritten = header - 4;
        self.sent_len = ethernet::LEN as u32 + above;
        self.sent = sent;
    }

    /// What is written, from Ethernet on.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buf.as_slice()[self.start as usize..]
    }

    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buf.as_mut_slice()[self.start as usize..]
    }

    /// Bytes of payload behind the headers that are zero, and only counted.
    pub fn zeros(&self) -> u32 {
        self.zeros
    }

    /// Bytes from Ethernet on.
    #[inline]
    pub fn wire_len(&self) -> u64 {
        (self.buf.len() - self.start as usize) as u64 + u64::from(self.unwritten) + u64::from(self.zeros)
    }

    /// Bytes from the IP header on.
    #[inline]
    pub fn size(&self) -> u32 {
        (self.wire_len() as u32).saturating_sub(ethernet::LEN as u32)
    }

    /// Bytes of VLAN tags, which do not count for an MTU.
    #[cold]
    pub fn tags(&self) -> u32 {
        let kinds = self.bytes().get(12..).unwrap_or(&[]).chunks_exact(4);
        4 * kinds.take_while(|tag| matches!(tag[..2], [0x81, 0] | [0x88, 0xa8])).count() as u32
    }

    /// For splitting ties between ways: addresses and ports.
    pub fn hash(&self) -> u32 {
        let bytes = self.bytes();
        if bytes.get(14).is_some_and(|first| matches!(first, 0x46..=0x4f)) {
            return self.hash_behind_options();
        }
        hash(bytes.get(26..38).unwrap_or(&[]).iter())
    }

    /// Ports stand behind IP options, which may be others in each packet of a flow.
    #[cold]
    fn hash_behind_options(&self) -> u32 {
        let bytes = self.bytes();
        let ports = ethernet::LEN + usize::from(bytes[14] & 15) * 4;
        let part = |from: usize, to: usize| bytes.get(from..to).unwrap_or(&[]);
        hash(part(26, 34).iter().chain(part(ports, ports + 4)))
    }

    /// What the type field says.
    #[inline]
    pub fn kind(&self) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes().get(12..14)?.try_into().ok()?))
    }

    /// The IPv4 destination; `None` for what is no IPv4 packet.
    #[inline]
    pub fn destination(&self) -> Option<[u8; 4]> {
        let bytes = self.bytes();
        let destination = bytes.get(30..34)?.try_into().ok()?;
        (bytes[12..14] == ethernet::kind::IPV4.to_be_bytes()).then_some(destination)
    }

    /// Protocol, addresses and ports of an IPv4 packet, with VLAN tags or without. The ports are 0 in fragments, and where a protocol has
    /// none.
    pub fn five_tuple(&self) -> Option<(u8, Addresses)> {
        let bytes = self.bytes();
        let ip = bytes.get(ethernet::LEN + self.tags() as usize..)?;
        let kind = ethernet::LEN + self.tags() as usize - 2;
        if bytes[kind..kind + 2] != ethernet::kind::IPV4.to_be_bytes() || ip.len() < ipv4::LEN {
            return None;
        }
        let address = |at: usize| [ip[at], ip[at + 1], ip[at + 2], ip[at + 3]];
        let whole = ip[6] & 0x3f == 0 && ip[7] == 0;
        let above = ip.get(usize::from(ip[0] & 15) * 4..).filter(|above| whole && above.len() >= 4);
        let (port_from, port_to) = match (ip[9], above) {
            (tcp::PROTOCOL | udp::PROTOCOL, Some(above)) => {
                (u16::from_be_bytes([above[0], above[1]]), u16::from_be_bytes([above[2], above[3]]))
            }
            _ => (0, 0),
        };
        let (from, to) = (address(12), address(16));
        Some((ip[9], Addresses { from, to, port_from, port_to, ..Addresses::default() }))
    }

    fn mark_ce(&mut self) -> bool {
        let bytes = self.bytes_mut();
        // What stands between Ethernet and IP may look like an IPv4 header.
        bytes.get(12..14) == Some(&ethernet::kind::IPV4.to_be_bytes())
            && ipv4::mark_ce(bytes.get_mut(ethernet::LEN..).unwrap_or_default())
    }

    /// Sees to it that the first `bytes` bytes of the headers are written, as far as there are headers.
    #[inline]
    pub fn reach(&mut self, bytes: usize) {
        if self.unwritten > 0 && bytes > self.bytes().len() {
            self.write_rest();
        }
    }

    /// Writes what is still missing of the headers, as the host sent them.
    #[cold]
    pub fn write_rest(&mut self) {
        if std::mem::take(&mut self.unwritten) == 0 {
            return;
        }
        let [from, to, ports] = self.sent;
        let sum = |protocol, length| pseudo(&from.to_be_bytes(), &to.to_be_bytes(), protocol, length);
        match &self.made_of {
            MadeOf::Tcp(segment) => {
                let sum = sum(tcp::PROTOCOL, segment.header_len() + segment.payload);
                // The whole header goes in the place of the ports, which then become again what they are by now. There are four
                // bytes: if no others, then of the room in front.
                let at = self.buf.len() - 4;
                let last: [u8; 4] = array(&self.buf, at);
                self.buf.truncate(at);
                let ports = split(ports);
                segment.emit(ports, &OptionList::EMPTY, sum, &mut self.buf);
                self.buf[at..at + 4].copy_from_slice(&last);
            }
            MadeOf::Udp(datagram) => {
                let length = udp::LEN as u32 + datagram.payload;
                let field = (length as u16).to_be_bytes();
                let check = sum(udp::PROTOCOL, length).with_u32(ports).with(&field).check_udp();
                self.buf.extend_from_slice(&field);
                self.buf.extend_from_slice(&check.to_be_bytes());
            }
            MadeOf::Bytes => {}
        }
    }

    /// Writes all headers.
    pub fn whole(&mut self) -> &[u8] {
        self.write_rest();
        self.bytes()
    }

    /// Makes payload that is only counted real.
    pub fn fill(&mut self) {
        self.write_rest();
        let zeros = std::mem::take(&mut self.zeros);
        self.buf.resize(self.buf.len() + zeros as usize, 0);
    }

    /// Whether it has memory for more than a few usual packets.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.buf.capacity() > LARGE
    }

    /// All memory in front of the payload and what is written of it, and where in it the packet begins: for headers that
    /// are put in the place of others, see [`Written::replaced_front`].
    #[inline]
    pub fn room(&mut self) -> (&mut [u8], usize) {
        (&mut self.buf, self.start as usize)
    }

    /// The first `parsed` bytes have been replaced by as many bytes of headers in [`Written::room`], right in front of what
    /// is behind.
    #[inline]
    pub fn replaced_front(&mut self, parsed: usize, headers: usize) {
        let behind = self.start as usize + parsed.min(self.bytes().len());
        debug_assert!(headers <= behind, "there is room for the headers");
        self.start = behind.saturating_sub(headers) as u32;
    }

    /// Puts `headers` in the place of the first `parsed` bytes. What is behind them stays where it is, if there is room in front.
    #[inline]
    pub fn replace_front(&mut self, parsed: usize, headers: &[u8]) {
        let behind = self.start as usize + parsed.min(self.bytes().len());
        match behind.checked_sub(headers.len()) {
            Some(start) => {
                self.buf[start..behind].copy_from_slice(headers);
                self.start = start as u32;
            }
            None => self.grow_front(behind, headers),
        }
    }

    #[cold]
    fn grow_front(&mut self, behind: usize, headers: &[u8]) {
        let mut buf = SmallVec::with_capacity(HEADROOM + headers.len() + self.buf.len() - behind);
        buf.resize(HEADROOM, 0);
        buf.extend_from_slice(headers);
        buf.extend_from_slice(&self.buf[behind..]);
        (self.start, self.buf) = (HEADROOM as u32, buf);
    }

    /// Takes off the header of a form that the type field says.
    ///
    /// # Errors
    /// The packet ends within it, or it is longer than hosts take.
    #[cold]
    pub fn take_between(&mut self, form: Form) -> Result<Between, WireError> {
        let (header, payload) = Between::parse(self.whole(), form)?;
        let mut front = [0; ethernet::LEN];
        front.copy_from_slice(&self.bytes()[..ethernet::LEN]);
        put16(&mut front, 12, payload);
        self.replace_front(ethernet::LEN + header.wire_len(), &front);
        Ok(header)
    }

    /// Cuts the packet off behind that many bytes.
    pub fn truncate(&mut self, bytes: u32) {
        self.write_rest();
        let kept = self.bytes().len() as u32;
        self.zeros = self.zeros.min(bytes.saturating_sub(kept));
        self.buf.truncate(self.start as usize + bytes.min(kept) as usize);
    }

    /// The packet has come to a host, which takes it as fields. Gives the ports, from and to.
    ///
    /// # Errors
    /// What a host does not take: see [`frame::parse`].
    #[inline]
    pub fn arrive(&mut self) -> Result<((u16, u16), Arrived<'_>), WireError> {
        let (ports, datagram) = if self.is_as_sent() { self.take_back() } else { self.parse()? };
        let arrived = match (datagram, &self.made_of) {
            (Some((payload, ecn)), made_of) => {
                let as_sent = ports == split(self.sent[2]);
                let sent = match made_of {
                    MadeOf::Udp(datagram) if as_sent => Some(*datagram),
                    _ => None,
                };
                Arrived::Udp { payload, ecn, sent }
            }
            (None, MadeOf::Tcp(segment)) => Arrived::Tcp(segment),
            (None, _) => return Err(WireError::NotIpv4),
        };
        Ok((ports, arrived))
    }

    /// What it was made of, with the ECN field that it has now; of a datagram length and ECN field.
    fn take_back(&mut self) -> Above {
        let ecn = Ecn::from_bits(self.bytes()[15]);
        let ports = split(self.sent[2]);
        match &mut self.made_of {
            MadeOf::Tcp(segment) => segment.ecn = ecn,
            MadeOf::Udp(datagram) => return (ports, Some((datagram.payload, ecn))),
            MadeOf::Bytes => {}
        }
        (ports, None)
    }

    /// Reads and checks all bytes; a segment becomes what the packet is made of.
    #[inline(never)]
    fn parse(&mut self) -> Result<Above, WireError> {
        self.write_rest();
        let (addresses, body) = frame::parse(self.bytes(), self.wire_len() as u32)?;
        let ports = (addresses.port_from, addresses.port_to);
        match body {
            frame::Body::Tcp(segment) => {
                self.made_of = MadeOf::Tcp(segment);
                Ok((ports, None))
            }
            frame::Body::Udp { payload, ecn } => Ok((ports, Some((payload, ecn)))),
        }
    }

    /// Whether a host would read from the bytes exactly the fields that the packet was made of, but for the ECN field: nobody has read
    /// or written what is behind the ports, the lengths are the same, and all that TCP's checksum covers in front is. IPv4's
    /// checksum is right.
    fn is_as_sent(&self) -> bool {
        let bytes = self.bytes();
        if self.unwritten == 0
            || bytes.len() != FRONT
            || self.wire_len() != u64::from(self.sent_len)
            || [be32(bytes, 26), be32(bytes, 30), be32(bytes, 34)] != self.sent
        {
            return false;
        }
        let (protocol, plain) = match &self.made_of {
            // What SYNs read as depends on their options.
            MadeOf::Tcp(segment) => {
                let plain =
                    !segment.flags.any(Flags::SYN) && segment.syn.is_none() && segment.flags.0 < 0x200;
                (tcp::PROTOCOL, plain && self.unwritten as usize + 4 <= tcp::MAX_LEN)
            }
            MadeOf::Udp(_) => (udp::PROTOCOL, true),
            MadeOf::Bytes => return false,
        };
        let total = u32::from(be16(bytes, 16)) + ethernet::LEN as u32;
        plain
            && be16(bytes, 12) == ethernet::kind::IPV4
            && bytes[14] == 0x45
            && total == self.sent_len
            && be16(bytes, 20) & 0x3fff == 0
            && bytes[23] == protocol
            && Sum::of(&bytes[ethernet::LEN..ethernet::LEN + ipv4::LEN]).check() == 0
    }
}

fn hash<'a>(fields: impl Iterator<Item = &'a u8>) -> u32 {
    fields.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Both ports, from and to, of one word.
fn split(ports: u32) -> (u16, u16) {
    ((ports >> 16) as u16, ports as u16)
}

/// Of what hosts send.
const DONT_FRAGMENT: u32 = 0x4000;
const TTL: u32 = 64;

/// Ports, from and to; of a datagram the length of its payload and the ECN field.
type Above = ((u16, u16), Option<(u32, Ecn)>);

/// What a host takes of a packet that was bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived<'a> {
    Tcp(&'a Segment),
    /// `sent`: the datagram that it was, if a simulated host sent it and its ports are what they were.
    Udp {
        payload: u32,
        ecn: Ecn,
        sent: Option<Datagram>,
    },
}

impl Arrived<'_> {
    pub fn is_tcp(&self) -> bool {
        matches!(self, Arrived::Tcp(_))
    }
}

#[cfg(test)]
mod tests;
