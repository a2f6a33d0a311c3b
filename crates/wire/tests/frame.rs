//! What is written can be read, byte for byte; what is damaged is refused; any bytes are read or refused.

use proptest::prelude::*;
use wire::WireError;
use wire::frame::{Addresses, Body, emit, emit_with, options, parse};
use wire::options::{OptionList, Options};
use wire::tcp::{Ecn, Flags, SackBlocks, Segment, SynOptions};

const ADDRESSES: Addresses = Addresses {
    mac_from: [2, 0, 0, 0, 0, 1],
    mac_to: [2, 0, 0, 0, 0, 2],
    from: [10, 0, 0, 1],
    to: [10, 0, 0, 2],
    port_from: 40_000,
    port_to: 5201,
};

fn segments() -> impl Strategy<Value = Segment> {
    let sack = prop::collection::vec(any::<(u32, u32)>(), 0..=3);
    let numbers = (any::<u32>(), any::<u32>(), 0u32..1448, 0u16..0x200, any::<u16>(), 0u8..4);
    (numbers, any::<Option<(u32, u32)>>(), sack, any::<(u16, Option<u8>, bool)>()).prop_map(
        |((seq, ack, payload, flags, window, ecn), timestamps, sack, (mss, window_scale, sack_permitted))| {
            let flags = Flags(flags);
            let mut blocks = SackBlocks::default();
            // A SYN has no room for them beside its own options.
            let sack = if flags.has(Flags::SYN) { Vec::new() } else { sack };
            sack.iter().for_each(|(l, r)| blocks.push(*l, *r));
            let syn = flags.has(Flags::SYN).then_some(SynOptions { mss, window_scale, sack_permitted });
            Segment {
                seq,
                ack,
                payload,
                flags,
                window,
                ecn: Ecn::from_bits(ecn),
                syn,
                timestamps,
                sack: blocks,
            }
        },
    )
}

/// Options of kinds that TCP has no field for, in at most so many bytes.
fn lists(most: usize) -> impl Strategy<Value = OptionList> {
    let options = prop::collection::vec((30u8.., prop::collection::vec(any::<u8>(), 0..10)), 0..4);
    options.prop_map(move |options| {
        let mut list = OptionList::EMPTY;
        for (kind, data) in options {
            if list.as_bytes().len() + data.len() + 2 <= most {
                list.push(kind, &data).expect("there is room");
            }
        }
        list
    })
}

proptest! {
    #[test]
    fn segments_there_and_back(segment in segments()) {
        let mut bytes = Vec::new();
        let payload = emit(&ADDRESSES, &Body::Tcp(segment), 64, &mut bytes);
        prop_assert_eq!(payload, segment.payload);
        prop_assert_eq!(bytes.len() as u32, 34 + segment.header_len());
        let wire = bytes.len() as u32 + payload;
        prop_assert_eq!(parse(&bytes, wire), Ok((ADDRESSES, Body::Tcp(segment))));
    }

    /// IP and TCP options beside the segment's own are read back, and are in lengths and checksums.
    #[test]
    fn options_there_and_back(segment in segments(), ip in lists(40), tcp in lists(12)) {
        let sent = Options { ip, tcp, between: None };
        prop_assume!(segment.header_len() + tcp.padded_len() as u32 <= 60);
        let mut bytes = Vec::new();
        let payload = emit_with(&ADDRESSES, &Body::Tcp(segment), 64, &sent, &mut bytes);
        prop_assert_eq!(bytes.len() as u32, 34 + segment.header_len() + sent.padded_len());
        let wire = bytes.len() as u32 + payload;
        prop_assert_eq!(parse(&bytes, wire), Ok((ADDRESSES, Body::Tcp(segment))));
        prop_assert_eq!(options(&bytes, wire), Ok(sent));
        // Without any it is the same packet as without room for them.
        let mut plain = Vec::new();
        emit(&ADDRESSES, &Body::Tcp(segment), 64, &mut plain);
        emit_with(&ADDRESSES, &Body::Tcp(segment), 64, &Options::EMPTY, &mut bytes);
        prop_assert_eq!(bytes, plain);
    }

    #[test]
    fn one_wrong_bit_is_seen(segment in segments(), bit in 0usize..320) {
        let mut bytes = Vec::new();
        let payload = emit(&ADDRESSES, &Body::Tcp(segment), 64, &mut bytes);
        let wire = bytes.len() as u32 + payload;
        let at = 14 * 8 + bit;
        bytes[at / 8] ^= 1 << (at % 8);
        prop_assert!(parse(&bytes, wire).is_err());
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..120), wire in 0u32..2000) {
        let _ = parse(&bytes, wire);
        let _ = options(&bytes, wire);
    }

    #[test]
    fn datagrams_there_and_back(payload in 0u32..1400, ecn in 0u8..4) {
        let body = Body::Udp { payload, ecn: Ecn::from_bits(ecn) };
        let mut bytes = Vec::new();
        emit(&ADDRESSES, &body, 64, &mut bytes);
        prop_assert_eq!(parse(&bytes, 42 + payload), Ok((ADDRESSES, body)));
    }
}

#[test]
fn a_known_packet() {
    let segment = Segment {
        seq: 1,
        ack: 2,
        payload: 1448,
        flags: Flags::ACK | Flags::PSH,
        window: 500,
        ecn: Ecn::Ect0,
        timestamps: Some((3, 4)),
        ..Segment::default()
    };
    let mut bytes = Vec::new();
    emit(&ADDRESSES, &Body::Tcp(segment), 64, &mut bytes);
    let ip = [0x45, 2, 5, 0xdc, 0, 0, 0x40, 0, 64, 6, 0x21, 0x18, 10, 0, 0, 1, 10, 0, 0, 2];
    assert_eq!(bytes[14..34], ip);
    assert_eq!(bytes[34..38], [0x9c, 0x40, 0x14, 0x51]);
    assert_eq!(bytes[46..50], [0x80, 0x18, 0x01, 0xf4]);
    assert_eq!(bytes[54..], [1, 1, 8, 10, 0, 0, 0, 3, 0, 0, 0, 4]);
    assert_eq!(parse(&bytes[..60], 1514), Err(WireError::TcpHeader));
    assert_eq!(parse(&bytes, 1513), Err(WireError::LengthBeyondEnd));
}
