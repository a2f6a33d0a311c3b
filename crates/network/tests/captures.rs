//! Captures: what is in them, when, and in which order.

use std::io::Write;
use std::sync::{Arc, Mutex};

use network::{Link, Network, NodeId, Pattern, PortId, QueueLimit, TcpFlow, UdpFlow};
use transport::segment::{Ecn, Flags};
use transport::wire::{self, Body};
use units::{Bytes, Rate, Time};

/// A file in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Captured {
    ns: u64,
    wire_len: u32,
    bytes: Vec<u8>,
}

impl Memory {
    fn packets(&self) -> Vec<Captured> {
        let data = self.0.lock().unwrap();
        let (head, mut rest) = data.split_at(24);
        assert_eq!(head[..4], [0x4d, 0x3c, 0xb2, 0xa1]);
        let mut packets = Vec::new();
        while !rest.is_empty() {
            let field = |i: usize| u32::from_le_bytes(rest[4 * i..4 * i + 4].try_into().unwrap());
            let ns = u64::from(field(0)) * 1_000_000_000 + u64::from(field(1));
            let (wire_len, end) = (field(3), 16 + field(2) as usize);
            packets.push(Captured { ns, wire_len, bytes: rest[16..end].to_vec() });
            rest = &rest[end..];
        }
        packets
    }
}

fn path(net: &mut Network, rate: Rate, delay: Time) -> (NodeId, NodeId, [PortId; 4]) {
    let (a, r, b) = (net.host("a"), net.router("r"), net.host("b"));
    let wire =
        |rate, delay| Link { limit: QueueLimit { packets: Some(50), bytes: None }, ..Link::new(rate, delay) };
    let fast = wire(Rate::from_gbps(1), Time::from_us(1));
    let (a_r, r_a) = net.link(a, r, fast.clone(), fast).unwrap();
    let (r_b, b_r) = net.link(r, b, wire(rate, delay), wire(rate, delay)).unwrap();
    (a, b, [a_r, r_a, r_b, b_r])
}

#[test]
fn a_transfer_is_in_it_packet_by_packet() {
    let mut net = Network::new(1);
    let (a, b, [a_r, ..]) = path(&mut net, Rate::from_mbps(100), Time::from_ms(5));
    let file = Memory::default();
    net.capture(a_r, Box::new(file.clone()), ::wire::pcap::WHOLE).unwrap();
    let size = Some(Bytes::new(100_000));
    net.tcp(TcpFlow { start: Time::from_ms(3), size, ..TcpFlow::new(a, b, "reno") }).unwrap();
    net.run_until(Time::from_secs(2)).unwrap();
    assert!(net.flush_captures().iter().all(Result::is_ok));
    let packets = file.packets();
    assert!(packets.windows(2).all(|w| w[0].ns <= w[1].ns));
    let mut expected = 1;
    let mut flags = Vec::new();
    for packet in &packets {
        assert_eq!(packet.bytes.len() as u32, packet.wire_len);
        // Checksums are checked here.
        let (addresses, body) = wire::parse(&packet.bytes, packet.wire_len).unwrap();
        let Body::Tcp(segment) = body else { panic!("no TCP") };
        flags.push(segment.flags);
        if addresses.from == network::ipv4(0) && segment.payload > 0 {
            assert_eq!(segment.seq, expected);
            expected += segment.payload;
        }
    }
    assert_eq!(expected, 100_001);
    assert_eq!(packets[0].ns, 3_000_000);
    assert_eq!(flags[..3], [Flags::SYN, Flags::SYN | Flags::ACK, Flags::ACK]);
    // The answer has come when its last bit has: 74 bytes over two links each way.
    let at = |mbps: u64| 74_000 * 8 / mbps;
    assert_eq!(packets[1].ns, 3_000_000 + 2 * (5_001_000 + at(1000) + at(100)));
    // The window goes out back to back: 1514 bytes at 1 Gbit/s.
    assert_eq!(packets[3].ns - packets[2].ns, 12_112);
    assert!(flags.iter().filter(|f| f.has(Flags::FIN)).count() == 2);
}

#[test]
fn both_ends_of_a_wire_and_what_it_loses() {
    let mut net = Network::new(2);
    let (a, r) = (net.host("a"), net.router("r"));
    let b = net.host("b");
    let lossy = Link { loss: 0.3, ..Link::new(Rate::from_mbps(10), Time::from_ms(1)) };
    net.link(a, r, Link::new(Rate::from_gbps(1), Time::ZERO), Link::new(Rate::from_gbps(1), Time::ZERO))
        .unwrap();
    let (there, back) = net.link(r, b, lossy.clone(), lossy).unwrap();
    let (near, far) = (Memory::default(), Memory::default());
    net.capture(there, Box::new(near.clone()), 60).unwrap();
    net.capture(back, Box::new(far.clone()), 20).unwrap();
    let flow = UdpFlow {
        from: a,
        to: b,
        start: Time::ZERO,
        stop: Some(Time::from_ms(500)),
        rate: Rate::from_mbps(8),
        payload: 972,
        pattern: Pattern::Constant,
        ecn: Ecn::Ect0,
    };
    net.udp(flow).unwrap();
    net.run_until(Time::from_secs(1)).unwrap();
    net.flush_captures();
    let (near, far) = (near.packets(), far.packets());
    let lost = net.queue(there).lost as usize;
    assert_eq!((near.len(), near.len() - far.len()), (500, lost));
    assert!(lost > 100);
    assert!(near.iter().all(|p| p.wire_len == 1014 && p.bytes.len() == 60));
    assert!(far.iter().all(|p| p.wire_len == 1014 && p.bytes.len() == 20));
    // 1014 bytes at 1 Gbit/s to the router; at 10 Mbit/s and 1 ms from there.
    assert_eq!(near[0].ns, 8_112);
    let times: Vec<u64> = near.iter().map(|p| p.ns + 811_200 + 1_000_000).collect();
    assert!(far.iter().all(|p| times.contains(&p.ns)));
}

#[test]
fn a_change_of_rate_changes_the_times_of_what_waits() {
    let mut net = Network::new(1);
    let (a, b, [_, _, r_b, _]) = path(&mut net, Rate::from_mbps(8), Time::from_us(1));
    let file = Memory::default();
    net.capture(r_b, Box::new(file.clone()), 64).unwrap();
    let mut faster = net.link_of(r_b).clone();
    faster.rate = Rate::from_mbps(80);
    net.change_link(Time::from_us(5_500), r_b, faster).unwrap();
    // 20 packets of 1000 bytes on the wire come within 2 ms; five are sent in 1 ms each, the others in 0.1 ms each.
    let flow = UdpFlow {
        from: a,
        to: b,
        start: Time::ZERO,
        stop: Some(Time::from_ms(2)),
        rate: Rate::from_mbps(80),
        payload: 958,
        pattern: Pattern::Constant,
        ecn: Ecn::NotEct,
    };
    net.udp(flow).unwrap();
    // Before the last one is sent.
    net.run_until(Time::from_us(6_350)).unwrap();
    net.flush_captures();
    assert_eq!(file.packets().len(), 10);
    net.run_until(Time::from_secs(1)).unwrap();
    net.flush_captures();
    let packets = file.packets();
    let gaps: Vec<u64> = packets.windows(2).map(|w| (w[1].ns - w[0].ns) / 1000).collect();
    assert_eq!(packets.len(), 21);
    assert_eq!(gaps, [[1000; 6].as_slice(), &[100; 14]].concat());
}

#[test]
fn what_makes_no_sense() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no space"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut net = Network::new(1);
    let (.., [a_r, r_a, ..]) = path(&mut net, Rate::from_mbps(8), Time::from_us(1));
    let error = net.capture(a_r, Box::new(Full), 60).unwrap_err().to_string();
    assert_eq!(error, "a capture cannot be written: no space");
    net.capture(a_r, Box::new(Memory::default()), 60).unwrap();
    net.capture(r_a, Box::new(Memory::default()), 60).unwrap();
    let error = net.capture(r_a, Box::new(Memory::default()), 60).unwrap_err().to_string();
    assert_eq!(error, "the port of r to a is captured already");
}

#[test]
fn a_capture_that_is_ended_has_what_came_before() {
    let mut net = Network::new(1);
    let (a, b, [a_r, ..]) = path(&mut net, Rate::from_mbps(100), Time::from_ms(5));
    let (first, second) = (Memory::default(), Memory::default());
    net.tcp(TcpFlow { start: Time::ZERO, ..TcpFlow::new(a, b, "reno") }).unwrap();
    net.capture(a_r, Box::new(first.clone()), 60).unwrap();
    net.run_until(Time::from_ms(100)).unwrap();
    net.end_capture(a_r).unwrap();
    assert!(net.end_capture(a_r).is_err());
    net.run_until(Time::from_ms(200)).unwrap();
    net.flush_captures();
    let count = first.packets().len();
    assert!(count > 100);
    assert!(first.packets().iter().all(|packet| packet.ns <= 100_000_000));
    net.capture(a_r, Box::new(second.clone()), 60).unwrap();
    net.run_until(Time::from_ms(300)).unwrap();
    net.flush_captures();
    assert_eq!(first.packets().len(), count);
    assert!(second.packets()[0].ns > 200_000_000);
}

#[test]
fn a_capture_that_is_ended_keeps_neither_its_sink_nor_its_place() {
    struct Counted {
        _held: std::sync::Arc<()>,
    }
    impl Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut net = Network::new(1);
    let (a, b, [a_r, r_a, ..]) = path(&mut net, Rate::from_mbps(100), Time::from_ms(5));
    net.tcp(TcpFlow { start: Time::ZERO, ..TcpFlow::new(a, b, "reno") }).unwrap();
    let sinks = std::sync::Arc::new(());
    net.capture(r_a, Box::new(Memory::default()), 60).unwrap();
    for turn in 1..20 {
        net.capture(a_r, Box::new(Counted { _held: sinks.clone() }), 60).unwrap();
        net.run_until(Time::from_ms(turn * 10)).unwrap();
        assert_eq!(net.flush_captures().len(), 2);
        assert_eq!(std::sync::Arc::strong_count(&sinks), 2);
        net.end_capture(a_r).unwrap();
        assert_eq!(std::sync::Arc::strong_count(&sinks), 1);
    }
}
