//! A TCP or UDP packet of a host, all headers from Ethernet on at once; the payload is zero bytes and is not written, only counted.
//!
//! A one's complement checksum does not change with zero bytes, so the checksums here are those of the whole packet.

use crate::bytes::put16;
use crate::checksum::{Sum, pseudo};
use crate::ethernet::{self, Mac, kind};
use crate::options::Options;
use crate::tcp::Segment;
use crate::{Ecn, WireError, ipv4, tcp, udp};

/// Where a packet comes from and goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Addresses {
    pub mac_from: Mac,
    pub mac_to: Mac,
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

/// Where what is above IP begins, in a packet without IP options.
const ABOVE: usize = ethernet::LEN + ipv4::LEN;

/// Writes the headers of a packet from Ethernet on; gives the length of the payload that follows them.
pub fn emit(addresses: &Addresses, body: &Body, ttl: u8, out: &mut Vec<u8>) -> u32 {
    let (header, payload, ecn, protocol) = match body {
        Body::Tcp(segment) => (segment.header_len(), segment.payload, segment.ecn, tcp::PROTOCOL),
        Body::Udp { payload, ecn } => (udp::LEN as u32, *payload, *ecn, udp::PROTOCOL),
    };
    // All that has a fixed place goes into one array and out in one go.
    let mut fixed = [0u8; ABOVE + tcp::LEN];
    fixed[..6].copy_from_slice(&addresses.mac_to);
    fixed[6..12].copy_from_slice(&addresses.mac_from);
    put16(&mut fixed, 12, kind::IPV4);
    let total = ipv4::LEN as u32 + header + payload;
    fixed[14] = 0x45;
    fixed[15] = ecn as u8;
    put16(&mut fixed, 16, total as u16);
    // Don't fragment.
    fixed[20] = 0x40;
    fixed[22] = ttl;
    fixed[23] = protocol;
    fixed[26..30].copy_from_slice(&addresses.from);
    fixed[30..34].copy_from_slice(&addresses.to);
    let check = Sum::of(&fixed[ethernet::LEN..ABOVE]).check();
    put16(&mut fixed, ethernet::LEN + 10, check);
    let ports = (addresses.port_from, addresses.port_to);
    let sum = pseudo(&addresses.from, &addresses.to, protocol, header + payload);
    out.clear();
    match body {
        Body::Tcp(segment) => {
            if let Some((_, tcp)) = fixed.split_last_chunk_mut() {
                segment.write_fixed(ports, header, tcp);
            }
            out.extend_from_slice(&fixed);
            segment.emit_options(out);
            let check = sum.with(&out[ABOVE..]).check();
            put16(out, ABOVE + tcp::CHECKSUM, check);
        }
        Body::Udp { payload, .. } => {
            out.extend_from_slice(&fixed[..ABOVE]);
            udp::Header { port_from: ports.0, port_to: ports.1, payload: *payload as u16 }.emit(sum, out);
        }
    }
    payload
}

/// As [`emit`], with options beside those of TCP itself, and a header between Ethernet and IP.
#[cold]
pub fn emit_with(addresses: &Addresses, body: &Body, ttl: u8, options: &Options, out: &mut Vec<u8>) -> u32 {
    let (header, payload, ecn, protocol) = match body {
        Body::Tcp(segment) => {
            let header = segment.header_len() + options.tcp.padded_len() as u32;
            (header, segment.payload, segment.ecn, tcp::PROTOCOL)
        }
        Body::Udp { payload, ecn } => (udp::LEN as u32, *payload, *ecn, udp::PROTOCOL),
    };
    out.clear();
    ethernet::Header { to: addresses.mac_to, from: addresses.mac_from, kind: kind::IPV4 }.emit(out);
    if let Some(header) = &options.between {
        out.truncate(ethernet::LEN - 2);
        header.emit(kind::IPV4, out);
    }
    let ip = ipv4::Header {
        from: addresses.from,
        to: addresses.to,
        protocol,
        ttl,
        ecn,
        dont_fragment: true,
        options: options.ip,
        payload: (header + payload) as u16,
        ..ipv4::Header::default()
    };
    ip.emit(out);
    let (port_from, port_to) = (addresses.port_from, addresses.port_to);
    let sum = pseudo(&addresses.from, &addresses.to, protocol, header + payload);
    match body {
        Body::Tcp(segment) => segment.emit((port_from, port_to), &options.tcp, sum, out),
        Body::Udp { payload, .. } => {
            udp::Header { port_from, port_to, payload: *payload as u16 }.emit(sum, out);
        }
    }
    payload
}

/// The IPv4 packet in a frame, not a fragment.
#[inline]
fn ip(bytes: &[u8], wire: u32) -> Result<ipv4::View<'_>, WireError> {
    if bytes.len() < ABOVE {
        return Err(WireError::Short);
    }
    let frame = ethernet::View::new(bytes)?;
    if frame.kind() != kind::IPV4 {
        return Err(WireError::NotIpv4);
    }
    let ip = ipv4::View::new(frame.payload(), (wire as usize).saturating_sub(ethernet::LEN))?;
    if ip.is_fragment() { Err(WireError::Fragment) } else { Ok(ip) }
}

/// Reads a packet from Ethernet on. `bytes` may end behind the headers; `wire` is the length of the whole packet.
///
/// # Errors
/// What a host does not take. UDP's checksum is not looked at.
pub fn parse(bytes: &[u8], wire: u32) -> Result<(Addresses, Body), WireError> {
    let ip = ip(bytes, wire)?;
    let mut addresses = Addresses { from: ip.from(), to: ip.to(), ..Addresses::default() };
    addresses.mac_to.copy_from_slice(&bytes[..6]);
    addresses.mac_from.copy_from_slice(&bytes[6..12]);
    let length = ip.payload_len();
    match ip.protocol() {
        tcp::PROTOCOL => {
            let view = tcp::View::new(ip.payload(), length)?;
            let segment = Segment::parse(&view, ip.ecn(), |_, _| ())?;
            view.verify(pseudo(&addresses.from, &addresses.to, tcp::PROTOCOL, length as u32))?;
            (addresses.port_from, addresses.port_to) = (view.port_from(), view.port_to());
            Ok((addresses, Body::Tcp(segment)))
        }
        udp::PROTOCOL => {
            let view = udp::View::new(ip.payload(), length)?;
            (addresses.port_from, addresses.port_to) = (view.port_from(), view.port_to());
            Ok((addresses, Body::Udp { payload: length as u32 - udp::LEN as u32, ecn: ip.ecn() }))
        }
        other => Err(WireError::Protocol(other)),
    }
}

/// The options of a packet from Ethernet on, but for those that a [`Segment`] has as fields. There is nothing between Ethernet and IP.
///
/// # Errors
/// As [`parse`], and an IP option with a wrong length.
pub fn options(bytes: &[u8], wire: u32) -> Result<Options, WireError> {
    let ip = ip(bytes, wire)?;
    let mut options = Options { ip: ipv4::Header::parse(&ip)?.options, ..Options::EMPTY };
    if ip.protocol() == tcp::PROTOCOL {
        let view = tcp::View::new(ip.payload(), ip.payload_len())?;
        // A header has no more than a list has room for.
        Segment::parse(&view, ip.ecn(), |kind, data| _ = options.tcp.push(kind, data))?;
    }
    Ok(options)
}
