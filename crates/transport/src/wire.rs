//! Packets as bytes: Ethernet, IPv4, TCP, UDP; the payload is zero bytes and is not written, only counted.
//!
//! A one's complement checksum does not change with zero bytes, so the checksums here are those of the whole packet.
//! Source: RFC 791, RFC 9293 section 3.1, RFC 7323, RFC 2018, RFC 768, RFC 1071.

use std::fmt;

use crate::segment::{Ecn, Flags, SackBlocks, Segment, SynOptions};

pub const ETHERNET: usize = 14;
pub const IPV4: usize = 20;
const TYPE_IPV4: u16 = 0x0800;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// Where a packet comes from and goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Addresses {
    pub mac_from: [u8; 6],
    pub mac_to: [u8; 6],
    pub from: [u8; 4],
    pub to: [u8; 4],
    pub port_from: u16,
    pub port_to: u16,
}

/// What stands above IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    Tcp(Segment),
    /// Bytes of payload, and the ECN field.
    Udp {
        payload: u32,
        ecn: Ecn,
    },
}

/// Why bytes are no packet that a host takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    Short,
    NotIpv4,
    IpOptionsBeyondEnd,
    IpChecksum,
    Fragment,
    Protocol(u8),
    TcpHeader,
    TcpOption,
    TcpChecksum,
    UdpHeader,
    LengthBeyondEnd,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Short => f.write_str("too short"),
            WireError::NotIpv4 => f.write_str("not IPv4"),
            WireError::IpOptionsBeyondEnd => f.write_str("the IP header is longer than the packet"),
            WireError::IpChecksum => f.write_str("the IP checksum is wrong"),
            WireError::Fragment => f.write_str("a fragment"),
            WireError::Protocol(p) => write!(f, "IP protocol {p}"),
            WireError::TcpHeader => f.write_str("the TCP header is cut short"),
            WireError::TcpOption => f.write_str("a TCP option has a wrong length"),
            WireError::TcpChecksum => f.write_str("the TCP checksum is wrong"),
            WireError::UdpHeader => f.write_str("the UDP header is cut short"),
            WireError::LengthBeyondEnd => f.write_str("the IP length is larger than the packet"),
        }
    }
}

impl std::error::Error for WireError {}

/// The one's complement sum of 16-bit words (RFC 1071), not yet folded.
fn sum(bytes: &[u8]) -> u64 {
    let mut total = 0u64;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        total += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    let rest = words.remainder();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    total + u64::from(u32::from_be_bytes(last))
}

fn fold(mut total: u64) -> u16 {
    while total >> 16 != 0 {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

/// Writes the headers of a packet from Ethernet on; gives the length of the payload that follows them.
pub fn emit(addresses: &Addresses, body: &Body, ttl: u8, out: &mut Vec<u8>) -> u32 {
    const ABOVE: usize = ETHERNET + IPV4;
    let (header, payload, ecn, protocol) = match body {
        Body::Tcp(segment) => (segment.header_len(), segment.payload, segment.ecn, PROTOCOL_TCP),
        Body::Udp { payload, ecn } => (8, *payload, *ecn, PROTOCOL_UDP),
    };
    // All that has a fixed place goes into one array and out in one go.
    let mut fixed = [0u8; ABOVE + 20];
    fixed[..6].copy_from_slice(&addresses.mac_to);
    fixed[6..12].copy_from_slice(&addresses.mac_from);
    put16(&mut fixed, 12, TYPE_IPV4);
    let total = IPV4 as u32 + header + payload;
    fixed[14] = 0x45;
    fixed[15] = ecn as u8;
    put16(&mut fixed, 16, total as u16);
    // Don't fragment.
    fixed[20] = 0x40;
    fixed[22] = ttl;
    fixed[23] = protocol;
    fixed[26..30].copy_from_slice(&addresses.from);
    fixed[30..34].copy_from_slice(&addresses.to);
    let check = fold(sum(&fixed[ETHERNET..ABOVE]));
    put16(&mut fixed, ETHERNET + 10, check);
    put16(&mut fixed, ABOVE, addresses.port_from);
    put16(&mut fixed, ABOVE + 2, addresses.port_to);
    out.clear();
    let at = match body {
        Body::Tcp(segment) => {
            fixed[ABOVE + 4..ABOVE + 8].copy_from_slice(&segment.seq.to_be_bytes());
            fixed[ABOVE + 8..ABOVE + 12].copy_from_slice(&segment.ack.to_be_bytes());
            put16(&mut fixed, ABOVE + 12, (header as u16 / 4) << 12 | segment.flags.0);
            put16(&mut fixed, ABOVE + 14, segment.window);
            out.extend_from_slice(&fixed);
            emit_options(segment, out);
            16
        }
        Body::Udp { payload, .. } => {
            put16(&mut fixed, ABOVE + 4, (8 + payload) as u16);
            out.extend_from_slice(&fixed[..ABOVE + 8]);
            6
        }
    };
    let pseudo =
        sum(&addresses.from) + sum(&addresses.to) + u64::from(protocol) + u64::from(header + payload);
    let mut check = fold(sum(&out[ABOVE..]) + pseudo);
    if check == 0 && protocol == PROTOCOL_UDP {
        check = 0xffff;
    }
    put16(out, ABOVE + at, check);
    payload
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn emit_options(segment: &Segment, out: &mut Vec<u8>) {
    if let Some(syn) = segment.syn {
        out.extend_from_slice(&[2, 4]);
        out.extend_from_slice(&syn.mss.to_be_bytes());
        if syn.sack_permitted && segment.timestamps.is_none() {
            out.extend_from_slice(&[1, 1, 4, 2]);
        }
    }
    if let Some((val, ecr)) = segment.timestamps {
        // SACK-permitted takes the place of the padding.
        let lead = if segment.syn.is_some_and(|s| s.sack_permitted) { [4, 2] } else { [1, 1] };
        let (val, ecr) = (val.to_be_bytes(), ecr.to_be_bytes());
        out.extend_from_slice(&[
            lead[0], lead[1], 8, 10, val[0], val[1], val[2], val[3], ecr[0], ecr[1], ecr[2], ecr[3],
        ]);
    }
    if let Some(shift) = segment.syn.and_then(|s| s.window_scale) {
        out.extend_from_slice(&[1, 3, 3, shift]);
    }
    let blocks = segment.sack.as_slice();
    if !blocks.is_empty() {
        out.extend_from_slice(&[1, 1, 5, 2 + 8 * blocks.len() as u8]);
        for (left, right) in blocks {
            out.extend_from_slice(&left.to_be_bytes());
            out.extend_from_slice(&right.to_be_bytes());
        }
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads a packet from Ethernet on. `bytes` may end behind the headers; `wire` is the length of the whole packet.
pub fn parse(bytes: &[u8], wire: u32) -> Result<(Addresses, Body), WireError> {
    if bytes.len() < ETHERNET + IPV4 {
        return Err(WireError::Short);
    }
    let mut addresses = Addresses::default();
    addresses.mac_to.copy_from_slice(&bytes[..6]);
    addresses.mac_from.copy_from_slice(&bytes[6..12]);
    let ip = &bytes[ETHERNET..];
    if be16(bytes, 12) != TYPE_IPV4 || ip[0] >> 4 != 4 {
        return Err(WireError::NotIpv4);
    }
    let ip_header = usize::from(ip[0] & 15) * 4;
    if ip_header < IPV4 || ip.len() < ip_header {
        return Err(WireError::IpOptionsBeyondEnd);
    }
    if fold(sum(&ip[..ip_header])) != 0 {
        return Err(WireError::IpChecksum);
    }
    let total = usize::from(be16(ip, 2));
    if total + ETHERNET > wire as usize || total < ip_header {
        return Err(WireError::LengthBeyondEnd);
    }
    if be16(ip, 6) & 0x3fff != 0 {
        return Err(WireError::Fragment);
    }
    addresses.from.copy_from_slice(&ip[12..16]);
    addresses.to.copy_from_slice(&ip[16..20]);
    let ecn = Ecn::from_bits(ip[1]);
    let above = &ip[ip_header..];
    let length = total - ip_header;
    match ip[9] {
        PROTOCOL_TCP => {
            let segment = parse_tcp(above, length, ecn)?;
            let header = usize::from(above[12] >> 4) * 4;
            let pseudo = sum(&addresses.from) + sum(&addresses.to) + u64::from(PROTOCOL_TCP) + length as u64;
            if fold(sum(&above[..header]) + pseudo) != 0 {
                return Err(WireError::TcpChecksum);
            }
            addresses.port_from = be16(above, 0);
            addresses.port_to = be16(above, 2);
            Ok((addresses, Body::Tcp(segment)))
        }
        PROTOCOL_UDP => {
            if above.len() < 8 || length < 8 {
                return Err(WireError::UdpHeader);
            }
            addresses.port_from = be16(above, 0);
            addresses.port_to = be16(above, 2);
            Ok((addresses, Body::Udp { payload: length as u32 - 8, ecn }))
        }
        other => Err(WireError::Protocol(other)),
    }
}

fn parse_tcp(bytes: &[u8], length: usize, ecn: Ecn) -> Result<Segment, WireError> {
    if bytes.len() < 20 {
        return Err(WireError::TcpHeader);
    }
    let header = usize::from(bytes[12] >> 4) * 4;
    if header < 20 || header > bytes.len() || header > length {
        return Err(WireError::TcpHeader);
    }
    let mut segment = Segment {
        seq: be32(bytes, 4),
        ack: be32(bytes, 8),
        flags: Flags(be16(bytes, 12) & 0x1ff),
        window: be16(bytes, 14),
        payload: (length - header) as u32,
        ecn,
        ..Segment::default()
    };
    let mut syn = SynOptions { mss: 536, window_scale: None, sack_permitted: false };
    let mut options = &bytes[20..header];
    while let Some(&kind) = options.first() {
        if kind == 0 {
            break;
        }
        if kind == 1 {
            options = &options[1..];
            continue;
        }
        let len = usize::from(*options.get(1).ok_or(WireError::TcpOption)?);
        if len < 2 || len > options.len() {
            return Err(WireError::TcpOption);
        }
        let value = &options[2..len];
        match (kind, value.len()) {
            (2, 2) => syn.mss = be16(value, 0),
            (3, 1) => syn.window_scale = Some(value[0]),
            (4, 0) => syn.sack_permitted = true,
            (8, 8) => segment.timestamps = Some((be32(value, 0), be32(value, 4))),
            (5, n) if n % 8 == 0 && n <= 32 => {
                let mut blocks = SackBlocks::default();
                for block in value.chunks_exact(8) {
                    blocks.push(be32(block, 0), be32(block, 4));
                }
                segment.sack = blocks;
            }
            (2..=5 | 8, _) => return Err(WireError::TcpOption),
            _ => {}
        }
        options = &options[len..];
    }
    if segment.flags.has(Flags::SYN) {
        segment.syn = Some(syn);
    }
    Ok(segment)
}
