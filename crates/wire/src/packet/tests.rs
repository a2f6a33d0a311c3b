use super::*;
use crate::tcp::SynOptions;

fn addresses() -> Addresses {
    Addresses {
        mac_from: [2, 0, 0, 0, 0, 1],
        mac_to: [2, 0, 0, 0, 0, 2],
        from: [10, 0, 0, 1],
        to: [10, 0, 0, 2],
        port_from: 10_000,
        port_to: 26_001,
    }
}

fn segments() -> Vec<Segment> {
    let data = Segment {
        seq: 7,
        ack: 0xffff_fff0,
        payload: 1448,
        flags: Flags::ACK | Flags::PSH,
        window: 501,
        ecn: Ecn::Ect0,
        timestamps: Some((5, 6)),
        ..Segment::default()
    };
    let mut sack = Segment { payload: 0, ..data };
    sack.sack.push(1, 2);
    sack.sack.push(9, 12);
    let syn = SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true };
    vec![
        data,
        sack,
        Segment { timestamps: None, payload: 1, ..data },
        Segment { flags: Flags::SYN, payload: 0, syn: Some(syn), ..data },
        Segment { flags: Flags::RST, payload: 0, timestamps: None, ..data },
    ]
}

fn written(packet: Packet) -> Written {
    let mut written = Written::default();
    written.set_packet(&addresses(), &packet);
    written
}

#[test]
fn what_is_written_bit_by_bit_is_what_is_written_at_once() {
    let mut all: Vec<(Packet, frame::Body)> =
        segments().into_iter().map(|s| (Packet::Tcp(s), frame::Body::Tcp(s))).collect();
    let datagram = Datagram { payload: 99, number: 3, sent: 4, ecn: Ecn::Ect1 };
    all.push((Packet::Udp(datagram), frame::Body::Udp { payload: 99, ecn: Ecn::Ect1 }));
    for (packet, body) in all {
        let mut at_once = Vec::new();
        let payload = frame::emit(&addresses(), &body, 64, &mut at_once);
        let mut written = written(packet);
        assert_eq!(written.bytes(), &at_once[..FRONT]);
        assert_eq!(written.wire_len(), (at_once.len() as u32 + payload).into());
        written.reach(FRONT);
        assert_eq!(written.bytes().len(), FRONT);
        written.reach(FRONT + 1);
        assert_eq!((written.bytes(), written.zeros()), (&at_once[..], payload));
        assert_eq!(written.wire_len(), (at_once.len() as u32 + payload).into());
    }
}

#[test]
fn a_host_reads_the_same_whether_all_is_written_or_not() {
    // What a program may have done to the front, and whether TCP's checksum is still right.
    type Change = fn(&mut Written);
    let changes: [(&str, Change, bool); 10] = [
        ("nothing", |_| (), true),
        ("a hop", |w| ip(w, 8, 63), true),
        ("CE", |w| ip(w, 1, w.bytes()[15] | 3), true),
        ("another target", |w| ip(w, 19, 9), false),
        ("another source", |w| ip(w, 12, 11), false),
        ("another port", |w| w.bytes_mut()[37] ^= 1, false),
        ("a wrong IP checksum", |w| w.bytes_mut()[24] ^= 1, false),
        ("a fragment", |w| ip(w, 6, 0x20), false),
        ("another protocol", |w| ip(w, 9, 47), false),
        ("a tag in front of IP", |w| w.replace_front(12, &[1; 16]), false),
    ];
    for segment in segments() {
        for (what, change, right) in changes {
            let mut lazy = written(Packet::Tcp(segment));
            let mut at_once = lazy.clone();
            change(&mut lazy);
            at_once.write_rest();
            change(&mut at_once);
            let lazy = lazy.arrive().map(|(ports, body)| (ports, format!("{body:?}")));
            let at_once = at_once.arrive().map(|(ports, body)| (ports, format!("{body:?}")));
            assert_eq!(lazy, at_once, "{what}: {segment:?}");
            assert_eq!(lazy.is_ok(), right, "{what}: {segment:?}");
        }
    }
}

/// Changes a byte of the IP header, and its checksum.
fn ip(written: &mut Written, at: usize, byte: u8) {
    let header = &mut written.bytes_mut()[14..34];
    header[at] = byte;
    header[10..12].fill(0);
    let check = Sum::of(header).check();
    put16(header, 10, check);
}

#[test]
fn headers_grow_into_the_room_in_front_and_beyond() {
    let mut written = Written::default();
    written.set_bytes(&[1, 2, 3, 4, 5], 7);
    let at = written.bytes()[2..].as_ptr();
    written.replace_front(2, &[9; 10]);
    assert_eq!(written.bytes(), [&[9; 10][..], &[3, 4, 5]].concat());
    assert_eq!(written.bytes()[10..].as_ptr(), at, "the payload stays where it is");
    written.replace_front(10, &[8; 1]);
    assert_eq!(written.bytes(), [8, 3, 4, 5]);
    written.replace_front(1, &[7; 200]);
    assert_eq!(written.bytes(), [&[7; 200][..], &[3, 4, 5]].concat());
    assert_eq!(written.wire_len(), 210);
    // More was parsed than is there.
    written.replace_front(900, &[6]);
    assert_eq!(written.bytes(), [6]);
    written.truncate(4);
    assert_eq!((written.bytes(), written.zeros()), (&[6][..], 3));
    written.fill();
    assert_eq!(written.bytes(), [6, 0, 0, 0]);
}

#[test]
fn headers_that_were_written_in_place_are_those_that_are_put_in_front() {
    for (parsed, headers) in [(2, 2), (2, 10), (5, 1), (9, 3), (0, 32), (4, 0)] {
        let mut put = Written::default();
        put.set_bytes(&[1, 2, 3, 4, 5], 7);
        let mut written = put.clone();
        let bytes: Vec<u8> = (10..10 + headers as u8).collect();
        let (room, start) = written.room();
        let behind = start + parsed.min(5);
        room[behind - headers..behind].copy_from_slice(&bytes);
        written.replaced_front(parsed, headers);
        put.replace_front(parsed, &bytes);
        assert_eq!(written, put, "{headers} bytes for {parsed}");
    }
}

#[test]
fn memory_that_is_used_again_has_nothing_left_of_the_packet_before() {
    let mut written = Written::default();
    for bytes in [&[1, 2, 3][..], &[4, 5, 6], &[7], &[], &[8; 300], &[9; 300], &[10; 3]] {
        written.set_bytes(bytes, 2);
        assert_eq!((written.bytes(), written.wire_len()), (bytes, bytes.len() as u64 + 2));
        written.replace_front(1, &[0; 5]);
        written.truncate(5);
    }
}

#[test]
fn a_packet_fits_into_its_place() {
    // Two lines of the cache, with what a network keeps beside it.
    assert!(size_of::<Packet>() <= 112);
}

#[test]
fn options_do_not_change_the_way() {
    let way = |data: &[u8]| {
        let mut options = crate::options::Options::EMPTY;
        if !data.is_empty() {
            options.ip.push(30, data).unwrap();
        }
        let mut bytes = Vec::new();
        let body = frame::Body::Tcp(Segment::default());
        frame::emit_with(&addresses(), &body, 64, &options, &mut bytes);
        Written::from(&bytes[..]).hash()
    };
    let ways = [way(&[]), way(&[1, 2]), way(&[9; 20])];
    assert_eq!(ways, [ways[0]; 3]);
}
