//! What a packet's bytes say, as far as a monitor needs it. Captures are read as they are: checksums are not looked at, as packets that
//! a host captures of itself have none yet, and lengths are those that IP says, as packets may be cut.
//!
//! Source: RFC 791, RFC 8200 (IP), RFC 9293 (TCP), RFC 7323 (timestamps), RFC 2018 (SACK), IEEE 802.1Q, the link types of
//! <https://www.tcpdump.org/linktypes.html>.

use std::net::{IpAddr, Ipv6Addr};

/// An address and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// IPv4 addresses as ::ffff:a.b.c.d.
    address: u128,
    pub port: u16,
}

impl Endpoint {
    pub fn new(address: IpAddr, port: u16) -> Endpoint {
        let address = match address {
            IpAddr::V4(four) => four.to_ipv6_mapped(),
            IpAddr::V6(six) => six,
        };
        Endpoint::from_bits(address.to_bits(), port)
    }

    pub(crate) fn from_bits(address: u128, port: u16) -> Endpoint {
        Endpoint { address, port }
    }

    pub(crate) fn bits(&self) -> u128 {
        self.address
    }

    pub fn address(&self) -> IpAddr {
        Ipv6Addr::from_bits(self.address).to_canonical()
    }
}

/// TCP's flags.
pub mod flag {
    pub const FIN: u8 = 1;
    pub const SYN: u8 = 2;
    pub const RST: u8 = 4;
    pub const ACK: u8 = 16;
}

/// A packet of TCP or UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen<'a> {
    /// Nanoseconds.
    pub time: u64,
    pub from: Endpoint,
    pub to: Endpoint,
    /// Bytes from the IP header on, as IP says.
    pub ip_len: u32,
    pub what: What<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'a> {
    Tcp(Tcp<'a>),
    /// Bytes of payload, and the first five as far as they were captured.
    Udp {
        payload: u32,
        first: [u8; 5],
        captured: u8,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tcp<'a> {
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    /// Bytes of payload on the wire.
    pub payload: u32,
    pub options: TcpOptions<'a>,
}

impl Tcp<'_> {
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Sequence numbers that it takes: payload, SYN and FIN.
    pub fn length(&self) -> u32 {
        self.payload + u32::from(self.has(flag::SYN)) + u32::from(self.has(flag::FIN))
    }

    /// The sequence number behind it.
    pub fn end(&self) -> u32 {
        self.seq.wrapping_add(self.length())
    }
}

/// As far as they were captured. They are looked at where a rule asks: most do not, and options of many lengths are hard to foresee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpOptions<'a>(&'a [u8]);

impl<'a> TcpOptions<'a> {
    /// TSval and TSecr.
    pub fn timestamps(self) -> Option<(u32, u32)> {
        let words = |eight: &[u8; 8]| {
            let [a, b, c, d, e, f, g, h] = *eight;
            (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
        };
        // Nearly all packets have timestamps alone, as RFC 7323 appendix A lays them out.
        if let [1, 1, 8, 10, value @ ..] = self.0
            && let Ok(value) = value.try_into()
        {
            return Some(words(value));
        }
        let found = self.each().filter(|(kind, _)| *kind == 8);
        found.filter_map(|(_, value)| value.try_into().ok()).last().map(words)
    }

    /// Whether there are blocks of a selective acknowledgment.
    pub fn has_sack(self) -> bool {
        self.each().any(|(kind, value)| kind == 5 && value.len() >= 8)
    }

    /// Kinds and values, up to one that makes no sense or was not captured whole.
    fn each(self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let mut options = self.0;
        std::iter::from_fn(move || {
            while let [1, rest @ ..] = options {
                options = rest;
            }
            let [kind @ 1..=u8::MAX, size @ 2..=u8::MAX, ..] = *options else { return None };
            let (option, rest) = options.split_at_checked(usize::from(size))?;
            options = rest;
            Some((kind, &option[2..]))
        })
    }
}

/// Why a packet is not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseen {
    /// Neither TCP nor UDP over IP, or a fragment but the first.
    Other,
    /// Its headers were not captured whole, or make no sense.
    Cut,
    /// The capture is of a link type that is not known.
    Link(u32),
}

const ETHERNET: u32 = 1;
const NULL: u32 = 0;
const LOOP: u32 = 108;
const RAW: [u32; 3] = [101, 12, 14];
const RAW4: u32 = 228;
const RAW6: u32 = 229;
const LINUX_COOKED: u32 = 113;
const LINUX_COOKED2: u32 = 276;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

#[inline(always)]
fn half(bytes: &[u8], at: usize) -> Result<u16, Unseen> {
    bytes.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]])).ok_or(Unseen::Cut)
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Result<u32, Unseen> {
    bytes
        .get(at..at + 4)
        .map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
        .ok_or(Unseen::Cut)
}

/// Reads a packet of a capture. `wire_len` is what it had before it was cut.
///
/// # Errors
/// What a monitor does not look at.
pub fn read(link_type: u32, bytes: &[u8], wire_len: u32, time: u64) -> Result<Seen<'_>, Unseen> {
    usual(link_type, bytes, time).map_or_else(|| any(link_type, bytes, wire_len, time), Ok)
}

/// As [`read`], for what nearly all packets are: TCP over IPv4 without options over Ethernet without tags. None for others, and for such
/// as make no sense.
#[inline(always)]
pub(crate) fn usual(link_type: u32, bytes: &[u8], time: u64) -> Option<Seen<'_>> {
    let head = bytes.first_chunk::<54>()?;
    let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let is_tcp = half(12) == IPV4 && head[14] == 0x45 && head[23] == 6 && half(20) & 0x1fff == 0;
    let (total, header) = (usize::from(half(16)), usize::from(head[46] >> 4) * 4);
    if link_type != ETHERNET || !is_tcp || header < 20 || total < 20 + header {
        return None;
    }
    let tcp = Tcp {
        seq: word(38),
        ack: word(42),
        flags: head[47],
        window: half(48),
        payload: (total - 20 - header) as u32,
        options: TcpOptions(&bytes[54..bytes.len().min(34 + header)]),
    };
    let end =
        |address, port| Endpoint { address: u128::from(word(address)) | 0xffff << 32, port: half(port) };
    Some(Seen { time, from: end(26, 34), to: end(30, 36), ip_len: total as u32, what: What::Tcp(tcp) })
}

/// Where the packet of IP begins in these bytes, and its Ethernet type.
#[inline(always)]
fn network(link_type: u32, bytes: &[u8]) -> Result<(usize, u16), Unseen> {
    let (mut at, mut kind) = match link_type {
        ETHERNET => (14, half(bytes, 12)?),
        LINUX_COOKED => (16, half(bytes, 14)?),
        LINUX_COOKED2 => (20, half(bytes, 0)?),
        NULL | LOOP => (4, 0),
        RAW4 => (0, IPV4),
        RAW6 => (0, IPV6),
        raw if RAW.contains(&raw) => (0, 0),
        other => return Err(Unseen::Link(other)),
    };
    for _ in 0..4 {
        if TAGS.contains(&kind) {
            kind = half(bytes, at + 2)?;
            at += 4;
        }
    }
    let packet = bytes.get(at..).ok_or(Unseen::Cut)?;
    if kind == 0 {
        kind = match packet.first().ok_or(Unseen::Cut)? >> 4 {
            4 => IPV4,
            6 => IPV6,
            _ => return Err(Unseen::Other),
        };
    }
    Ok((at, kind))
}

/// As [`read`], for a packet of any kind.
pub(crate) fn any(link_type: u32, bytes: &[u8], wire_len: u32, time: u64) -> Result<Seen<'_>, Unseen> {
    let (at, kind) = network(link_type, bytes)?;
    let packet = &bytes[at..];
    let on_wire = (wire_len as usize).saturating_sub(at);
    match kind {
        IPV4 => ipv4(packet, on_wire, time),
        IPV6 => ipv6(packet, on_wire, time),
        _ => Err(Unseen::Other),
    }
}

/// What tells a packet from others of its flow, beside what [`Seen`] has, and from its copy on the other side of a router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// Time to live, or hop limit: a router makes it less.
    pub ttl: u8,
    /// Of IPv4.
    pub id: u16,
    /// The first bytes of the payload.
    pub payload: [u8; MARKED],
}

/// Bytes of the payload in a [`Mark`]: what captures of 68 bytes have behind headers of IPv4 and UDP, less a VLAN tag.
pub const MARKED: usize = 20;

/// The mark of a packet that was read from these bytes.
pub fn mark(link_type: u32, bytes: &[u8], seen: &Seen) -> Mark {
    let mut mark = Mark::default();
    let Ok((at, kind)) = network(link_type, bytes) else { return mark };
    let packet = &bytes[at..];
    if kind == IPV4 {
        mark.id = half(packet, 4).unwrap_or_default();
    }
    mark.ttl = packet.get(if kind == IPV4 { 8 } else { 7 }).copied().unwrap_or_default();
    if let What::Udp { payload, .. } = seen.what {
        let begin = (seen.ip_len - payload) as usize;
        let there = packet.get(begin..packet.len().min(seen.ip_len as usize)).unwrap_or_default();
        let count = there.len().min(MARKED);
        mark.payload[..count].copy_from_slice(&there[..count]);
    }
    mark
}

#[inline(always)]
fn ipv4(bytes: &[u8], on_wire: usize, time: u64) -> Result<Seen<'_>, Unseen> {
    let header = usize::from(bytes.first().ok_or(Unseen::Cut)? & 15) * 4;
    if header < 20 || bytes.len() < 20 {
        return Err(Unseen::Cut);
    }
    if half(bytes, 6)? & 0x1fff != 0 {
        return Err(Unseen::Other);
    }
    // 0: longer than 16 bits can say, as segmentation offload makes them.
    let total = match usize::from(half(bytes, 2)?) {
        0 => on_wire,
        total => total,
    };
    let address = |at| word(bytes, at).map(|four| u128::from(four) | 0xffff << 32);
    above(bytes, header, total, bytes[9], [address(12)?, address(16)?], time)
}

fn ipv6(bytes: &[u8], on_wire: usize, time: u64) -> Result<Seen<'_>, Unseen> {
    if bytes.len() < 40 {
        return Err(Unseen::Cut);
    }
    let total = match usize::from(half(bytes, 4)?) {
        0 => on_wire,
        length => 40 + length,
    };
    let address = |at: usize| {
        let mut sixteen = [0; 16];
        sixteen.copy_from_slice(&bytes[at..at + 16]);
        u128::from_be_bytes(sixteen)
    };
    let (mut at, mut protocol) = (40, bytes[6]);
    // Hop-by-hop, routing, fragment, authentication, destination options.
    while matches!(protocol, 0 | 43 | 44 | 51 | 60) {
        if protocol == 44 && half(bytes, at + 2)? & 0xfff8 != 0 {
            return Err(Unseen::Other);
        }
        let length = usize::from(half(bytes, at)? & 0xff);
        let next = bytes[at];
        at += match protocol {
            44 => 8,
            51 => (length + 2) * 4,
            _ => (length + 1) * 8,
        };
        protocol = next;
    }
    above(bytes, at, total, protocol, [address(8), address(24)], time)
}

#[inline(always)]
fn above(
    bytes: &[u8],
    at: usize,
    total: usize,
    protocol: u8,
    addresses: [u128; 2],
    time: u64,
) -> Result<Seen<'_>, Unseen> {
    let bytes = &bytes[..total.min(bytes.len())];
    let part = bytes.get(at..).ok_or(Unseen::Cut)?;
    let length = total - at;
    let what = match protocol {
        6 => What::Tcp(tcp(part, length)?),
        17 => {
            let payload = part.get(8..).ok_or(Unseen::Cut)?;
            let captured = payload.len().min(5);
            let mut first = [0; 5];
            first[..captured].copy_from_slice(&payload[..captured]);
            What::Udp { payload: length as u32 - 8, first, captured: captured as u8 }
        }
        _ => return Err(Unseen::Other),
    };
    let end = |address, port| Endpoint { address, port };
    Ok(Seen {
        time,
        from: end(addresses[0], half(part, 0)?),
        to: end(addresses[1], half(part, 2)?),
        ip_len: total as u32,
        what,
    })
}

#[inline(always)]
fn tcp(bytes: &[u8], length: usize) -> Result<Tcp<'_>, Unseen> {
    if bytes.len() < 20 {
        return Err(Unseen::Cut);
    }
    let header = usize::from(bytes[12] >> 4) * 4;
    if header < 20 || header > length {
        return Err(Unseen::Cut);
    }
    Ok(Tcp {
        seq: word(bytes, 4)?,
        ack: word(bytes, 8)?,
        flags: bytes[13],
        window: half(bytes, 14)?,
        payload: (length - header) as u32,
        options: TcpOptions(&bytes[20..header.min(bytes.len())]),
    })
}
