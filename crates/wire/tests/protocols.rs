//! Every protocol's plain form is written and read back, byte for byte; damaged bytes are refused; any bytes are read or refused.

mod layers;

use layers::{Layers, Network, Transport};
use proptest::prelude::*;
use wire::checksum::{Sum, update};
use wire::options::OptionList;
use wire::tcp::{Ecn, Flags, Segment};
use wire::{WireError, arp, ethernet, icmp, ipv4, ipv6, udp, vlan};

type Mac = ethernet::Mac;

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

fn transports() -> impl Strategy<Value = (u8, Transport)> {
    let tcp = (any::<(u16, u16)>(), any::<(u32, u32, u16)>(), 0u16..0x200, any::<(u32, u32)>(), bytes(10));
    let tcp = (tcp, bytes(60)).prop_map(|((ports, (seq, ack, window), flags, stamps, other), payload)| {
        let flags = Flags(flags & !Flags::SYN.0);
        let mut others = OptionList::EMPTY;
        others.push(253, &other).expect("there is room");
        let timestamps = Some(stamps);
        let len = payload.len() as u32;
        let segment = Segment { seq, ack, window, flags, timestamps, payload: len, ..Segment::default() };
        (6, Transport::Tcp { ports, segment, others, payload })
    });
    let udp = (any::<(u16, u16)>(), bytes(60)).prop_map(|((port_from, port_to), payload)| {
        (17, Transport::Udp(udp::Header { port_from, port_to, payload: payload.len() as u16 }, payload))
    });
    let header = any::<(u8, u8, [u8; 4])>().prop_map(|(kind, code, rest)| icmp::Header { kind, code, rest });
    let icmp = (header, bytes(60), any::<bool>()).prop_map(|(header, payload, v6)| match v6 {
        true => (58, Transport::Icmpv6(header, payload)),
        false => (1, Transport::Icmp(header, payload)),
    });
    prop_oneof![tcp, udp, icmp, bytes(60).prop_map(|rest| (89, Transport::Other(rest)))]
}

fn length(transport: &Transport) -> u16 {
    (match transport {
        Transport::Tcp { segment, others, payload, .. } => {
            segment.header_len() as usize + others.padded_len() + payload.len()
        }
        Transport::Udp(_, payload) | Transport::Icmp(_, payload) | Transport::Icmpv6(_, payload) => {
            8 + payload.len()
        }
        Transport::Other(rest) => rest.len(),
    }) as u16
}

/// The ECN field is IP's, and TCP's plain form has it too.
fn with_ecn(mut transport: Transport, ecn: Ecn) -> Transport {
    if let Transport::Tcp { segment, .. } = &mut transport {
        segment.ecn = ecn;
    }
    transport
}

fn extensions() -> impl Strategy<Value = Vec<ipv6::Extension>> {
    let one = (0usize..5, 0u8..3, any::<[u8; 64]>()).prop_map(|(which, units, filler)| {
        let kind = [0, 43, 44, 51, 60][which];
        let length = match kind {
            44 => 8,
            51 => 8 + 4 * usize::from(units),
            _ => 8 + 8 * usize::from(units),
        };
        let mut body = filler[..length - 1].to_vec();
        body[0] = units;
        if kind == 44 {
            // The whole packet in one fragment.
            body[1..3].fill(0);
        }
        ipv6::Extension::new(kind, body).expect("the length fits")
    });
    prop::collection::vec(one, 0..3)
}

fn networks() -> impl Strategy<Value = (u16, Network)> {
    let ends = any::<((Mac, [u8; 4]), (Mac, [u8; 4]))>();
    let arp = (any::<u16>(), ends).prop_map(|(operation, (sender, target))| {
        (ethernet::kind::ARP, Network::Arp(arp::Packet { operation, sender, target }))
    });
    let fields = any::<([u8; 4], [u8; 4], u8, u16, bool)>();
    let v4 = (fields, 0u8..64, 0u8..4, (2u8.., bytes(30)), transports()).prop_map(
        |((from, to, ttl, id, dont_fragment), dscp, ecn, (kind, data), (protocol, above))| {
            let ecn = Ecn::from_bits(ecn);
            let mut options = OptionList::EMPTY;
            options.push(kind, &data).expect("there is room");
            let payload = length(&above);
            let header = ipv4::Header {
                from,
                to,
                protocol,
                ttl,
                dscp,
                ecn,
                id,
                dont_fragment,
                options,
                payload,
                ..ipv4::Header::default()
            };
            (ethernet::kind::IPV4, Network::Ipv4(header, with_ecn(above, ecn)))
        },
    );
    let fields = (any::<([u8; 16], [u8; 16], u8)>(), 0u32..1 << 20, extensions());
    let v6 = (fields, 0u8..64, 0u8..4, transports()).prop_map(
        |(((from, to, hop_limit), flow_label, extensions), dscp, ecn, (protocol, above))| {
            let ecn = Ecn::from_bits(ecn);
            let payload = length(&above);
            let header =
                ipv6::Header { from, to, protocol, hop_limit, dscp, ecn, flow_label, extensions, payload };
            (ethernet::kind::IPV6, Network::Ipv6(header, with_ecn(above, ecn)))
        },
    );
    prop_oneof![arp, v4, v6, bytes(40).prop_map(|rest| (0x88b5, Network::Other(rest)))]
}

fn frames() -> impl Strategy<Value = Layers> {
    let tag = (0u8..8, any::<bool>(), 0u16..4096);
    (any::<(Mac, Mac)>(), prop::collection::vec(tag, 0..3), networks()).prop_map(
        |((to, from), tags, (kind, network))| {
            let count = tags.len();
            let tag = |(i, (priority, drop_eligible, id))| {
                let kind = if i + 1 < count { ethernet::kind::VLAN } else { kind };
                vlan::Tag { priority, drop_eligible, id, kind }
            };
            let tags: Vec<vlan::Tag> = tags.into_iter().enumerate().map(tag).collect();
            let kind = if count > 0 { ethernet::kind::VLAN } else { kind };
            Layers { ethernet: ethernet::Header { to, from, kind }, tags, network }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn frames_there_and_back(frame in frames()) {
        let bytes = frame.emit();
        prop_assert_eq!(Layers::parse(&bytes), Ok(frame));
    }

    #[test]
    fn a_cut_frame_is_refused_or_shorter(frame in frames(), cut in 1usize..80) {
        let bytes = frame.emit();
        let cut = cut.min(bytes.len());
        let read = Layers::parse(&bytes[..bytes.len() - cut]);
        prop_assert!(read != Ok(frame));
    }

    /// What can be read is written in one form, which is read as the same.
    #[test]
    fn any_bytes(kind in 0usize..4, bytes in bytes(120)) {
        let kind = [ethernet::kind::ARP, ethernet::kind::IPV4, ethernet::kind::IPV6, ethernet::kind::VLAN][kind];
        let mut frame = [&[0; 12][..], &kind.to_be_bytes()].concat();
        frame.extend_from_slice(&bytes);
        if let Ok(read) = Layers::parse(&frame)
            && read.fits()
        {
            prop_assert_eq!(Layers::parse(&read.emit()), Ok(read));
        }
    }

    /// RFC 1624: an updated checksum is the one computed anew.
    #[test]
    fn updates(mut words in prop::collection::vec(any::<u16>(), 1..30), at in any::<prop::sample::Index>(), new: u16) {
        let sum = |words: &[u16]| Sum::of(&words.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<_>>());
        let before = sum(&words).check();
        let at = at.index(words.len());
        let old = std::mem::replace(&mut words[at], new);
        let after = update(before, old, new);
        // Words that are all zero have the sum 0, others never: 0 and all ones are the same number.
        let anew = sum(&words).check();
        prop_assert!(after == anew || (after.is_multiple_of(0xffff) && anew.is_multiple_of(0xffff)));
    }

    #[test]
    fn marks(ecn in 0u8..4, dscp in 0u8..64, id: u16) {
        let header = ipv4::Header { ecn: Ecn::from_bits(ecn), dscp, id, ..ipv4::Header::default() };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        let markable = ecn == 1 || ecn == 2;
        prop_assert_eq!(ipv4::mark_ce(&mut bytes), markable);
        let view = ipv4::View::new(&bytes, bytes.len()).expect("the checksum is right");
        prop_assert_eq!(view.ecn() == Ecn::Ce, markable || ecn == 3);
        prop_assert!(!ipv4::mark_ce(&mut bytes));
    }
}

#[test]
fn refused() {
    let mut header = Vec::new();
    ipv4::Header { payload: 4, ..ipv4::Header::default() }.emit(&mut header);
    let v4 = |bytes: &[u8], wire| ipv4::View::new(bytes, wire).map(|_| ());
    assert_eq!(v4(&header[..19], 24), Err(WireError::Short));
    assert_eq!(v4(&header, 23), Err(WireError::LengthBeyondEnd));
    assert_eq!(v4(&header, 24), Ok(()));
    header[0] = 0x46;
    assert_eq!(v4(&header, 24), Err(WireError::IpOptionsBeyondEnd));
    header[0] = 0x65;
    assert_eq!(v4(&header, 24), Err(WireError::NotIpv4));
    header[0] = 0x45;
    header[8] ^= 1;
    assert_eq!(v4(&header, 24), Err(WireError::IpChecksum));
    // An option that reaches beyond its header, which IPv4 can say with a right checksum.
    let mut options = Vec::new();
    ipv4::Header::default().emit(&mut options);
    options.extend_from_slice(&[30, 5, 0, 0]);
    options[0] = 0x46;
    options[3] = 24;
    options[10..12].fill(0);
    let check = Sum::of(&options).check();
    options[10..12].copy_from_slice(&check.to_be_bytes());
    let view = ipv4::View::new(&options, 24).expect("it is a packet");
    assert_eq!(ipv4::Header::parse(&view), Err(WireError::IpOption));
    // An extension header that is not all there.
    let mut v6 = Vec::new();
    let extensions = vec![ipv6::Extension::new(60, vec![1; 15]).expect("16 bytes")];
    ipv6::Header { extensions, protocol: 59, ..ipv6::Header::default() }.emit(&mut v6);
    assert!(ipv6::View::new(&v6, v6.len()).is_ok());
    assert_eq!(ipv6::View::new(&v6[..50], 56), Err(WireError::ExtensionHeader));
    assert_eq!(ipv6::Extension::new(60, vec![1; 14]), Err(WireError::ExtensionHeader));
    assert_eq!(ipv6::Extension::new(6, vec![0; 7]), Err(WireError::ExtensionHeader));
    assert_eq!(arp::View::new(&[0; 28]).map(|_| ()), Err(WireError::Arp));
    assert_eq!(icmp::View::new(&[8; 8], Sum::default()).map(|_| ()), Err(WireError::IcmpChecksum));
}
