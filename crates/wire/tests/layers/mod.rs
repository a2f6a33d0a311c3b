//! All headers of any frame, read and written by the modules of the protocols; for tests.

use wire::checksum::{Sum, pseudo};
use wire::options::OptionList;
use wire::tcp::{Ecn, Segment};
use wire::{WireError, arp, ethernet, icmp, ipv4, ipv6, tcp, udp, vlan};

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers {
    pub ethernet: ethernet::Header,
    pub tags: Vec<vlan::Tag>,
    pub network: Network,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    Arp(arp::Packet),
    Ipv4(ipv4::Header, Transport),
    Ipv6(ipv6::Header, Transport),
    Other(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    Tcp { ports: (u16, u16), segment: Segment, others: OptionList, payload: Vec<u8> },
    Udp(udp::Header, Vec<u8>),
    Icmp(icmp::Header, Vec<u8>),
    Icmpv6(icmp::Header, Vec<u8>),
    Other(Vec<u8>),
}

impl Layers {
    pub fn parse(bytes: &[u8]) -> Result<Layers, WireError> {
        let view = ethernet::View::new(bytes)?;
        let ethernet = ethernet::Header::parse(&view);
        let (mut kind, mut rest, mut tags) = (ethernet.kind, view.payload(), Vec::new());
        while vlan::is_tag(kind) {
            let tag = vlan::View::new(rest)?;
            tags.push(vlan::Tag::parse(&tag));
            (kind, rest) = (tag.kind(), tag.payload());
        }
        let network = match kind {
            ethernet::kind::ARP => Network::Arp(arp::Packet::parse(&arp::View::new(rest)?)),
            ethernet::kind::IPV4 => {
                let view = ipv4::View::new(rest, rest.len())?;
                let whole = |protocol| {
                    let sum = pseudo(&view.from(), &view.to(), protocol, view.payload_len() as u32);
                    Transport::parse(protocol, view.payload(), view.ecn(), sum)
                };
                let above = match view.is_fragment() {
                    true => Transport::Other(view.payload().to_vec()),
                    false => whole(view.protocol())?,
                };
                Network::Ipv4(ipv4::Header::parse(&view)?, above)
            }
            ethernet::kind::IPV6 => {
                let view = ipv6::View::new(rest, rest.len())?;
                let whole = |protocol| {
                    let sum = pseudo(&view.from(), &view.to(), protocol, view.payload_len() as u32);
                    Transport::parse(protocol, view.payload(), view.ecn(), sum)
                };
                let above = match view.is_fragment() {
                    true => Transport::Other(view.payload().to_vec()),
                    false => whole(view.protocol())?,
                };
                Network::Ipv6(ipv6::Header::parse(&view), above)
            }
            _ => Network::Other(rest.to_vec()),
        };
        Ok(Layers { ethernet, tags, network })
    }

    /// Whether TCP's options take as many bytes once more: a header may have had them in fewer bytes than Linux pads them to, or in more.
    pub fn fits(&self) -> bool {
        let (length, above) = match &self.network {
            Network::Ipv4(header, above) => (header.payload, above),
            Network::Ipv6(header, above) => (header.payload, above),
            _ => return true,
        };
        match above {
            Transport::Tcp { segment, others, payload, .. } => {
                segment.header_len() as usize + others.padded_len() + payload.len() == usize::from(length)
            }
            _ => true,
        }
    }

    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.ethernet.emit(&mut out);
        self.tags.iter().for_each(|tag| tag.emit(&mut out));
        match &self.network {
            Network::Arp(packet) => packet.emit(&mut out),
            Network::Ipv4(header, above) => {
                header.emit(&mut out);
                let length = u32::from(header.payload);
                above.emit(pseudo(&header.from, &header.to, header.protocol, length), &mut out);
            }
            Network::Ipv6(header, above) => {
                header.emit(&mut out);
                let length = u32::from(header.payload);
                above.emit(pseudo(&header.from, &header.to, header.protocol, length), &mut out);
            }
            Network::Other(rest) => out.extend_from_slice(rest),
        }
        out
    }
}

impl Transport {
    fn parse(protocol: u8, bytes: &[u8], ecn: Ecn, sum: Sum) -> Result<Transport, WireError> {
        Ok(match protocol {
            tcp::PROTOCOL => {
                let view = tcp::View::new(bytes, bytes.len())?;
                let mut others = OptionList::EMPTY;
                let segment = Segment::parse(&view, ecn, |kind, data| {
                    others.push(kind, data).expect("they were in a header");
                })?;
                let ports = (view.port_from(), view.port_to());
                view.verify(sum.with(view.payload()))?;
                Transport::Tcp { ports, segment, others, payload: view.payload().to_vec() }
            }
            udp::PROTOCOL => {
                let view = udp::View::new(bytes, bytes.len())?;
                if view.len() != bytes.len() {
                    return Err(WireError::LengthBeyondEnd);
                }
                view.verify(sum)?;
                Transport::Udp(udp::Header::parse(&view), view.payload().to_vec())
            }
            icmp::PROTOCOL => {
                let view = icmp::View::new(bytes, Sum::default())?;
                Transport::Icmp(icmp::Header::parse(&view), view.payload().to_vec())
            }
            icmp::PROTOCOL_V6 => {
                let view = icmp::View::new(bytes, sum)?;
                Transport::Icmpv6(icmp::Header::parse(&view), view.payload().to_vec())
            }
            _ => Transport::Other(bytes.to_vec()),
        })
    }

    fn emit(&self, sum: Sum, out: &mut Vec<u8>) {
        match self {
            Transport::Tcp { ports, segment, others, payload } => {
                segment.emit(*ports, others, sum.with(payload), out);
                out.extend_from_slice(payload);
            }
            Transport::Udp(header, payload) => {
                header.emit(sum.with(payload), out);
                out.extend_from_slice(payload);
            }
            Transport::Icmp(header, payload) => header.emit(payload, Sum::default(), out),
            Transport::Icmpv6(header, payload) => header.emit(payload, sum, out),
            Transport::Other(rest) => out.extend_from_slice(rest),
        }
    }
}
