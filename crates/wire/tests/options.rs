//! Options with a wrong length are refused wherever they stand, and no others are.

use proptest::prelude::*;
use wire::frame::{Addresses, Body, emit, options, parse};
use wire::options::OptionList;
use wire::tcp::Segment;

/// Kinds that hosts know, with the lengths that each may have (RFC 9293 section 3.2, RFC 7323, RFC 2018).
fn tcp_allows(kind: u8, length: usize) -> bool {
    match kind {
        2 => length == 4,
        3 => length == 3,
        4 => length == 2,
        5 => length >= 2 && (length - 2).is_multiple_of(8),
        8 => length == 10,
        _ => true,
    }
}

/// Whether all lengths in a header's options are right.
fn well_formed(bytes: &[u8], allows: impl Fn(u8, usize) -> bool) -> bool {
    let mut at = 0;
    while at < bytes.len() && bytes[at] != 0 {
        if bytes[at] == 1 {
            at += 1;
            continue;
        }
        let Some(length) = bytes.get(at + 1).map(|length| usize::from(*length)) else { return false };
        if length < 2 || at + length > bytes.len() || !allows(bytes[at], length) {
            return false;
        }
        at += length;
    }
    true
}

/// Bytes of a header's options: mostly options, of which some have a wrong length.
fn areas() -> impl Strategy<Value = Vec<u8>> {
    let kinds = prop::sample::select(vec![0u8, 1, 1, 2, 3, 4, 5, 8, 30, 253, 255]);
    let usual = prop::sample::select(vec![2u8, 3, 4, 6, 10, 18]);
    let option = (kinds, prop_oneof![4 => usual, 1 => any::<u8>()], any::<[u8; 40]>());
    let options = prop::collection::vec(option, 0..8);
    (options, 0usize..=10).prop_map(|(options, words)| {
        let mut bytes = Vec::new();
        for (kind, length, data) in options {
            bytes.push(kind);
            if kind > 1 {
                bytes.push(length);
                bytes.extend_from_slice(&data[..usize::from(length).saturating_sub(2).min(data.len())]);
            }
        }
        bytes.resize(4 * words, 1);
        bytes
    })
}

/// The Internet checksum (RFC 1071) of 16-bit words.
fn checksum(bytes: &[u8], first: u32) -> [u8; 2] {
    let words =
        bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |b| u32::from(*b)));
    let mut sum: u32 = first + words.sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!sum as u16).to_be_bytes()
}

/// A TCP segment without payload in an IPv4 packet, with these bytes as options of both headers and right checksums.
fn packet(ip: &[u8], tcp: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    emit(&Addresses::default(), &Body::Tcp(Segment::default()), 64, &mut bytes);
    assert_eq!(bytes.len(), 54);
    bytes[46] = ((5 + tcp.len() / 4) as u8) << 4;
    bytes[50..52].fill(0);
    bytes.extend_from_slice(tcp);
    let length = bytes.len() - 34;
    let check = checksum(&bytes[34..], 6 + length as u32);
    bytes[50..52].copy_from_slice(&check);
    bytes[14] = 0x45 + (ip.len() / 4) as u8;
    bytes[16..18].copy_from_slice(&((20 + ip.len() + length) as u16).to_be_bytes());
    bytes[24..26].fill(0);
    bytes.splice(34..34, ip.iter().copied());
    let check = checksum(&bytes[14..34 + ip.len()], 0);
    bytes[24..26].copy_from_slice(&check);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn a_list_has_right_lengths_only(area in areas()) {
        let read = OptionList::parse(&area, |_| true);
        prop_assert_eq!(read.is_ok(), well_formed(&area, |_, _| true), "{:?}", area);
    }

    #[test]
    fn a_host_takes_right_lengths_only(area in areas()) {
        let bytes = packet(&[], &area);
        let read = parse(&bytes, bytes.len() as u32);
        prop_assert_eq!(read.is_ok(), well_formed(&area, tcp_allows), "{:?} {:?}", area, read);
    }

    #[test]
    fn agents_see_right_lengths_only(ip in areas(), tcp in areas()) {
        let bytes = packet(&ip, &tcp);
        let right = well_formed(&ip, |_, _| true) && well_formed(&tcp, tcp_allows);
        prop_assert_eq!(options(&bytes, bytes.len() as u32).is_ok(), right, "{:?} {:?}", ip, tcp);
    }
}
