//! Agents of hosts: options on packets as bytes and back, room for them, limits, what agents hear, and how they go; and taps.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use ::wire::frame::{self, Body};
use ::wire::options::Options;
use commands::load::Source;
use network::{
    AgentId, FlowId, Link, Network, NodeId, Outcome, Pattern, PortId, QueueLimit, TcpFlow, UdpFlow, What,
    ipv4, mac,
};
use transport::host::{
    Chain, Echo, Effects, FlowKey, Form, Handle, Insert, Keep, Kinds, OptionKind, Packet, PacketKind, Place,
    Report, Shim, Signal, Stamp, Verdict,
};
use transport::segment::{Ecn, Flags};
use units::{Bytes, Rate, Time};

const ALL: Kinds = Kinds::of(&[PacketKind::Syn, PacketKind::SynAck, PacketKind::Data, PacketKind::Ack]);
const DATA: Kinds = Kinds::of(&[PacketKind::Data]);
const ACK: Kinds = Kinds::of(&[PacketKind::Ack]);
const TCP: OptionKind = OptionKind { place: Place::Tcp, kind: 253 };
const IP: OptionKind = OptionKind { place: Place::Ip, kind: 30 };

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

impl Memory {
    /// Time in nanoseconds and bytes of each packet.
    fn packets(&self) -> Vec<(u64, Vec<u8>)> {
        let data = self.0.lock().unwrap();
        let (mut rest, mut packets) = (&data[24..], Vec::new());
        while !rest.is_empty() {
            let field = |i: usize| u32::from_le_bytes(rest[4 * i..4 * i + 4].try_into().unwrap());
            let end = 16 + field(2) as usize;
            packets.push((u64::from(field(0)) * 1_000_000_000 + u64::from(field(1)), rest[16..end].to_vec()));
            rest = &rest[end..];
        }
        packets
    }
}

/// Two hosts with a router between them; the second link is the narrow one.
struct Path3 {
    net: Network,
    hosts: [NodeId; 2],
    ports: [PortId; 4],
    file: Memory,
}

fn path(rate: Rate, queue: u64) -> Path3 {
    let mut net = Network::new(1);
    let (a, r, b) = (net.host("a"), net.router("r"), net.host("b"));
    let wire = |rate| Link {
        limit: QueueLimit { packets: Some(queue), bytes: None },
        ..Link::new(rate, Time::from_ms(2))
    };
    let (a_r, r_a) = net.link(a, r, wire(Rate::from_gbps(1)), wire(Rate::from_gbps(1))).unwrap();
    let (r_b, b_r) = net.link(r, b, wire(rate), wire(rate)).unwrap();
    let file = Memory::default();
    net.capture(b_r, Box::new(file.clone()), ::wire::pcap::WHOLE).unwrap();
    Path3 { net, hosts: [a, b], ports: [a_r, r_a, r_b, b_r], file }
}

impl Path3 {
    fn agent(&mut self, side: usize, shims: Vec<Box<dyn Shim>>) -> AgentId {
        self.net.add_agent(self.hosts[side], Chain::new(shims), true).unwrap()
    }
    fn tcp(&mut self, size: Option<u64>) -> FlowId {
        let flow = TcpFlow::new(self.hosts[0], self.hosts[1], "cubic");
        self.net.tcp(TcpFlow { size: size.map(Bytes::new), ..flow }).unwrap()
    }
    /// Runs to a time through all notices, and gives them.
    fn run(&mut self, until: Time) -> Vec<(u32, What)> {
        let mut notices = Vec::new();
        while self.net.run_until(until).unwrap() < until {
            notices.extend(self.net.take_agent_notices());
        }
        notices.extend(self.net.take_agent_notices());
        notices.into_iter().map(|n| (n.connection, n.what)).collect()
    }
    /// Every packet at the second host, with checksums checked: whether it came or left, fields and options.
    fn seen(&mut self) -> Vec<(bool, Packet, Vec<u8>)> {
        assert!(self.net.flush_captures().iter().all(Result::is_ok));
        let read = |bytes: Vec<u8>| {
            let wire = bytes.len() as u32;
            let (addresses, body) = frame::parse(&bytes, wire).unwrap();
            (addresses.from == ipv4(0), Packet::new(body, frame::options(&bytes, wire).unwrap()), bytes)
        };
        self.file.packets().into_iter().map(|(_, bytes)| read(bytes)).collect()
    }
}

fn insert(option: OptionKind, data: &[u8], on: Kinds) -> Box<dyn Shim> {
    Box::new(Insert::new(option, Stamp::Bytes(data.to_vec()), on, false))
}

fn rate(outcome: &Outcome, before: &Outcome, seconds: f64) -> f64 {
    (outcome.bytes_received - before.bytes_received) as f64 * 8.0 / seconds / 1e6
}

#[test]
fn an_agent_that_does_nothing_changes_nothing() {
    let run = |agents: bool| {
        let mut path = path(Rate::from_mbps(20), 20);
        if agents {
            path.agent(0, vec![Box::new(Signal { option: TCP })]);
            path.agent(1, vec![]);
        }
        let flow = path.tcp(Some(3_000_000));
        let udp = UdpFlow {
            from: path.hosts[0],
            to: path.hosts[1],
            start: Time::ZERO,
            stop: None,
            rate: Rate::from_mbps(2),
            payload: 500,
            pattern: Pattern::Constant,
            ecn: Ecn::Ect0,
        };
        path.net.udp(udp).unwrap();
        path.run(Time::from_secs(5));
        let Outcome { finished, ideal, statistics, .. } = path.net.outcome(flow);
        path.seen();
        (finished, ideal, statistics, path.net.work(), path.file.packets())
    };
    let (plain, with_agents) = (run(false), run(true));
    assert!(plain.0.is_some() && plain.2.retransmits > 0);
    assert_eq!(plain, with_agents);
}

#[test]
fn options_are_on_the_wire_and_read_at_the_other_host() {
    let mut path = path(Rate::from_mbps(50), 100);
    path.agent(0, vec![insert(TCP, b"to b", ALL), insert(IP, b"ip", DATA)]);
    path.agent(
        1,
        vec![
            insert(TCP, b"to a", ALL),
            Box::new(Report::new(TCP, None, false)),
            Box::new(Report::new(IP, None, false)),
        ],
    );
    path.tcp(Some(200_000));
    let notices = path.run(Time::from_secs(2));
    let report = |kind, data: &[u8]| (1, What::Report(kind, data.to_vec()));
    assert!(notices.contains(&report(253, b"to b")) && notices.contains(&report(30, b"ip")), "{notices:?}");
    let mut kinds = Vec::new();
    for (came, packet, _) in path.seen() {
        let expected: &[u8] = if came { b"to b" } else { b"to a" };
        assert_eq!(packet.find(TCP), Some(expected), "{packet:?}");
        let data = packet.kind() == PacketKind::Data;
        assert_eq!(packet.find(IP), (came && data).then_some(&b"ip"[..]));
        if data && packet.size() > 1400 {
            // MTU room is kept to the byte: 8 for TCP's option, 4 for IP's.
            let Body::Tcp(segment) = packet.body else { panic!("no TCP") };
            assert!((packet.size(), segment.payload) == (1500, 1436) || segment.flags.has(Flags::FIN));
        }
        if let Body::Tcp(segment) = packet.body
            && let Some(syn) = segment.syn
        {
            assert_eq!(syn.mss, 1460, "the MSS that a SYN says stays");
        }
        if !kinds.contains(&packet.kind()) {
            kinds.push(packet.kind());
        }
    }
    assert_eq!(kinds.len(), 4, "{kinds:?}");
    assert!(path.ports.iter().all(|port| path.net.queue(*port).too_large == 0));
}

#[test]
fn a_packet_for_the_agent_alone_does_not_reach_tcp() {
    let run = |consume| {
        let mut path = path(Rate::from_mbps(50), 100);
        path.agent(0, vec![insert(IP, b"\x21syn", Kinds::of(&[PacketKind::Syn]))]);
        path.agent(1, vec![Box::new(Report::new(IP, consume, false))]);
        path.tcp(Some(200_000));
        let notices = path.run(Time::from_secs(2));
        let reports = notices.iter().filter(|(_, what)| matches!(what, What::Report(..))).count();
        (reports, notices.contains(&(1, What::Established)))
    };
    assert_eq!(run(None), (1, true));
    assert_eq!(run(Some((0xf0, 0x30))), (1, true));
    assert_eq!(run(Some((0xf0, 0x20))), (1, false));
}

#[test]
fn an_option_is_sent_with_a_pure_ack() {
    let mut path = path(Rate::from_mbps(50), 100);
    path.agent(0, vec![]);
    path.agent(1, vec![Box::new(Report::new(IP, None, false))]);
    let flow = path.tcp(Some(2_000_000));
    assert_eq!(path.net.send_option(0, IP, b"early"), Ok(false), "not before it is established");
    path.run(Time::from_ms(100));
    let before = path.net.outcome(flow).statistics;
    assert_eq!(path.net.send_option(0, IP, b"now"), Ok(true));
    assert!(path.net.send_option(0, IP, &[0; 39]).is_err(), "it does not fit");
    let notices = path.run(Time::from_ms(200));
    assert!(notices.contains(&(1, What::Report(30, b"now".to_vec()))), "{notices:?}");
    path.run(Time::from_secs(2));
    let outcome = path.net.outcome(flow);
    assert!(outcome.finished.is_some() && outcome.statistics.retransmits == before.retransmits);
}

#[test]
fn the_ideal_time_knows_the_room() {
    // One flow alone, on a path that only its own rate limits: as fast as can be, options counted.
    let run = |options: bool| {
        let mut path = path(Rate::from_mbps(100), 10_000);
        if options {
            path.agent(0, vec![insert(IP, &[7; 34], DATA)]);
        }
        let flow = path.tcp(Some(1_000_000));
        path.run(Time::from_secs(3));
        path.net.outcome(flow).ideal.unwrap()
    };
    let (plain, with_options) = (run(false), run(true));
    // 1448 bytes of payload a packet, or 1412 of them.
    let packets = 1_000_000_f64 / 1412.0 - 1_000_000_f64 / 1448.0;
    let longer = packets.round() * 1514.0 * 8.0 / 100e6;
    let measured = (with_options - plain).as_ps() as f64 / 1e12;
    assert!((measured - longer).abs() < 3e-4, "{measured} {longer}");
}

#[test]
fn a_stamp_is_echoed_and_reaches_the_congestion_control() {
    let mut path = path(Rate::from_mbps(20), 50);
    path.agent(
        0,
        vec![
            Box::new(Insert::new(IP, Stamp::Clock, DATA, false)),
            Box::new(Report::new(TCP, None, false)),
            Box::new(Signal { option: TCP }),
        ],
    );
    path.agent(1, vec![Box::new(Echo::new(IP, TCP, Keep::Latest, ACK, 8))]);
    path.tcp(Some(400_000));
    let notices = path.run(Time::from_secs(2));
    let time = |data: &[u8]| u64::from_be_bytes(data.try_into().unwrap());
    let echoed: Vec<u64> = notices
        .iter()
        .filter_map(|(connection, what)| match what {
            What::Report(253, data) if *connection == 0 => Some(time(data)),
            _ => None,
        })
        .collect();
    // The last stamp that came is what each ACK says.
    let mut last = None;
    let mut acks = 0;
    for (came, packet, _) in path.seen() {
        match packet.kind() {
            PacketKind::Data if came => last = packet.find(IP).map(time),
            PacketKind::Ack if !came => {
                assert_eq!(packet.find(TCP).map(time), last);
                acks += 1;
                assert!(last.is_none_or(|at| echoed.contains(&at)));
            }
            _ => {}
        }
    }
    assert!(acks > 30 && echoed.len() > 30 && echoed.is_sorted(), "{acks} {}", echoed.len());
}

#[test]
fn the_largest_stamp_since_the_last_echo_is_echoed_once() {
    let mut echo = Echo::new(IP, TCP, Keep::Max, ACK, 8);
    let data = |value: u8| {
        let segment = transport::segment::Segment { payload: 9, ..Default::default() };
        let mut packet = Packet::new(Body::Tcp(segment), Options::EMPTY);
        packet.add(IP, &[0, value]).unwrap();
        packet
    };
    let ack = || Packet::new(Body::Tcp(transport::segment::Segment::default()), Options::EMPTY);
    let mut effects = Effects::default();
    let (mut one, other) = (FlowKey::default(), FlowKey { connection: 7, ..FlowKey::default() });
    one.connection = 3;
    for value in [5, 200, 9] {
        echo.received(Time::ZERO, Some(&mut effects.of(one)), &mut data(value));
    }
    let mut sent = [one, one, other].map(|flow| {
        let mut packet = ack();
        echo.sent(Time::ZERO, Some(&mut effects.of(flow)), &mut packet);
        packet.find(TCP).map(<[u8]>::to_vec)
    });
    assert_eq!(sent[0].take(), Some(vec![0, 200]));
    assert_eq!(sent, [None, None, None]);
}

#[test]
fn sack_blocks_come_first_and_what_finds_no_room_is_counted() {
    let mut path = path(Rate::from_mbps(10), 8);
    let agent = path.agent(1, vec![insert(TCP, &[1; 10], ALL)]);
    path.tcp(Some(2_000_000));
    path.run(Time::from_secs(10));
    let (mut without, mut with) = (0, 0);
    for (came, packet, _) in path.seen() {
        let Body::Tcp(segment) = packet.body else { continue };
        if !came {
            let room = 40 - (segment.header_len() - 20) >= 12;
            assert_eq!(packet.find(TCP).is_some(), room, "{packet:?}");
            *if room { &mut with } else { &mut without } += 1;
        }
    }
    assert!(with > 0 && without > 0);
    assert_eq!(path.net.agent_counts(agent).no_room, without);
}

#[test]
fn a_pacing_rate_is_set_lifted_and_gone_with_its_agent() {
    let mut path = path(Rate::from_mbps(100), 300);
    let (agent, other) = (path.agent(0, vec![]), path.agent(0, vec![]));
    let flow = path.tcp(None);
    let mut at = Time::ZERO;
    let mut over = |path: &mut Path3, seconds: u64| {
        // After a second everything has settled.
        at += Time::from_secs(1);
        path.run(at);
        let before = path.net.outcome(flow);
        at += Time::from_secs(seconds);
        path.run(at);
        rate(&path.net.outcome(flow), &before, seconds as f64)
    };
    assert!(over(&mut path, 1) > 85.0);
    path.net.limit_pacing(agent, 0, Some(Rate::from_mbps(30)));
    path.net.limit_pacing(other, 0, Some(Rate::from_mbps(10)));
    let measured = over(&mut path, 2);
    assert!((measured - 10.0).abs() < 0.2, "{measured}");
    path.net.remove_agent(other);
    let measured = over(&mut path, 2);
    assert!((measured - 30.0).abs() < 0.6, "{measured}");
    path.net.limit_pacing(agent, 0, None);
    assert!(over(&mut path, 2) > 85.0);
    path.net.limit_cwnd(agent, 0, Some(5));
    // Five packets in a round trip of 8 ms and some.
    let measured = over(&mut path, 2);
    assert!((5.0..7.3).contains(&measured), "{measured}");
    path.net.remove_agent(agent);
    assert!(over(&mut path, 4) > 85.0);
}

#[test]
fn an_agent_that_goes_takes_its_options_with_it_and_one_may_come_later() {
    let mut path = path(Rate::from_mbps(50), 100);
    path.tcp(None);
    path.run(Time::from_ms(200));
    let agent = path.agent(0, vec![insert(TCP, &[9; 6], DATA)]);
    let notices = path.run(Time::from_ms(400));
    assert_eq!(notices, [(0, What::Opened), (0, What::Established)], "it hears of what is there");
    path.net.remove_agent(agent);
    path.run(Time::from_ms(600));
    let full: Vec<_> = path
        .seen()
        .into_iter()
        .filter(|(came, packet, _)| *came && packet.size() == 1500)
        .map(|(_, packet, _)| (packet.find(TCP).is_some(), packet.body))
        .map(|(with, body)| if let Body::Tcp(s) = body { (with, s.payload) } else { (with, 0) })
        .collect();
    let changes: Vec<_> = full.chunk_by(|a, b| a == b).map(|run| run[0]).collect();
    assert_eq!(changes, [(false, 1448), (true, 1440), (false, 1448)]);
}

/// Drops every tenth data packet, holds those that come for some time, and sends an ACK more now and then.
#[derive(Debug)]
struct Meddler {
    seen: u32,
    next: Option<Time>,
    flow: Option<FlowKey>,
}

impl Shim for Meddler {
    fn event(&mut self, now: Time, connection: &mut Handle, what: transport::host::Event) {
        if what == transport::host::Event::Established {
            self.flow = Some(*connection.flow());
            self.next = Some(now + Time::from_ms(10));
        }
    }
    fn sent(&mut self, _: Time, _: Option<&mut Handle>, packet: &mut Packet) -> Verdict {
        self.seen += u32::from(packet.kind() == PacketKind::Data);
        if packet.kind() == PacketKind::Data && self.seen.is_multiple_of(50) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    }
    fn received(&mut self, now: Time, _: Option<&mut Handle>, _: &mut Packet) -> Verdict {
        Verdict::Hold(now + Time::from_ms(20))
    }
    fn wakeup(&self) -> Option<Time> {
        self.next
    }
    fn advance(&mut self, now: Time, effects: &mut Effects) {
        self.next = Some(now + Time::from_ms(100));
        if let Some(flow) = self.flow {
            let segment =
                transport::segment::Segment { flags: Flags::ACK, window: 4242, ..Default::default() };
            let mut packet = Packet::new(Body::Tcp(segment), Options::EMPTY);
            packet.add(IP, b"extra").unwrap();
            effects.of(flow).send(packet);
        }
    }
}

#[test]
fn shims_drop_hold_answer_and_have_timers() {
    let mut path = path(Rate::from_mbps(50), 1000);
    let agent = path.agent(0, vec![Box::new(Meddler { seen: 0, next: None, flow: None })]);
    let flow = path.tcp(Some(500_000));
    let notices = path.run(Time::from_secs(5));
    let outcome = path.net.outcome(flow);
    let counts = path.net.agent_counts(agent);
    assert!(outcome.finished.is_some());
    assert!(
        counts.dropped > 5 && outcome.statistics.retransmits >= counts.dropped - 1,
        "{counts:?} {outcome:?}"
    );
    assert!(counts.held > 100);
    // The handshake waits too: 8 ms there and back, 20 ms held.
    let seen = path.seen();
    let first = path.file.packets();
    assert!(first[2].0 - first[1].0 > 28_000_000, "{} {}", first[1].0, first[2].0);
    let extra = seen.iter().filter(|(_, packet, _)| packet.find(IP) == Some(b"extra")).count();
    assert!(extra >= 3, "{extra}");
    assert_eq!(notices, [(0, What::Opened), (0, What::Established), (0, What::Closed)]);
}

#[test]
fn packets_with_options_that_make_no_sense_are_dropped() {
    let mut net = Network::new(1);
    let (a, b) = (net.host("a"), net.host("b"));
    let link = Link::new(Rate::from_gbps(1), Time::from_us(10));
    net.link(a, b, link.clone(), link).unwrap();
    net.add_agent(b, Chain::new(vec![Box::new(Report::new(IP, None, false))]), true).unwrap();
    net.tcp(TcpFlow { start: Time::from_ms(1), ..TcpFlow::new(a, b, "reno") }).unwrap();
    let mut syn = Vec::new();
    let segment = transport::segment::Segment { flags: Flags::SYN, ..Default::default() };
    let addresses = frame::Addresses {
        mac_from: mac(0),
        mac_to: mac(1),
        from: ipv4(0),
        to: ipv4(1),
        port_from: 10_000,
        port_to: 26_000,
    };
    let mut options = Options::EMPTY;
    options.ip.push(30, &[1, 2]).unwrap();
    frame::emit_with(&addresses, &Body::Tcp(segment), 64, &options, &mut syn);
    // The option says that it is longer than the header; the checksum is right all the same.
    syn[35] = 9;
    syn[24..26].fill(0);
    let check = ::wire::checksum::Sum::of(&syn[14..38]).check();
    syn[24..26].copy_from_slice(&check.to_be_bytes());
    net.set_outside(a, 0).unwrap();
    net.inject(a, &syn);
    net.run_until(Time::from_ms(1)).unwrap();
    assert_eq!(net.malformed_options(), 1);
    // A shim that ends behind the packet.
    net.add_agent(b, Chain::new(vec![Box::new(Report::new(SHIM, None, false))]), true).unwrap();
    net.inject(a, &[&syn[..12], &[0x88, 0xb5, 8, 0, 9, 1, 2, 3]].concat());
    // Agents that listen end a run early.
    while net.run_until(Time::from_ms(2)).unwrap() < Time::from_ms(2) {}
    assert_eq!(net.malformed_options(), 2);
    assert!(
        net.add_agent(a, Chain::default(), false).is_err(),
        "hosts outside have no agents of the simulator"
    );
}

/// Two hosts on one link, captured at the second.
fn link_of_two() -> Path3 {
    let mut net = Network::new(1);
    let hosts = [net.host("a"), net.host("b")];
    let link = Link::new(Rate::from_mbps(50), Time::from_ms(2));
    let (a, b) = net.link(hosts[0], hosts[1], link.clone(), link).unwrap();
    let file = Memory::default();
    net.capture(b, Box::new(file.clone()), ::wire::pcap::WHOLE).unwrap();
    Path3 { net, hosts, ports: [a, b, a, b], file }
}

const SHIM: OptionKind = OptionKind { place: Place::Between(Form::Shim), kind: 0x88b5 };
const TAG: OptionKind = OptionKind { place: Place::Between(Form::Tag), kind: 0x9900 };

#[test]
fn headers_between_ethernet_and_ip_are_written_and_read() {
    for (option, data, sent) in [
        (SHIM, &b"stamp"[..], &b"\x88\xb5\x08\x00\x05stamp\x45"[..]),
        (TAG, b"ab", b"\x99\x00ab\x08\x00\x45"),
    ] {
        let mut path = link_of_two();
        path.agent(0, vec![insert(option, data, ALL), Box::new(Report::new(TCP, None, false))]);
        path.agent(
            1,
            vec![
                Box::new(Echo::new(option, TCP, Keep::Latest, ACK, 8)),
                Box::new(Report::new(option, None, false)),
            ],
        );
        let flow = path.tcp(Some(200_000));
        let notices = path.run(Time::from_secs(2));
        assert!(path.net.outcome(flow).finished.is_some());
        for told in [(1, What::Report(option.kind, data.to_vec())), (0, What::Report(253, data.to_vec()))] {
            assert_eq!(notices.iter().filter(|notice| **notice == told).count(), 1, "{told:?} {notices:?}");
        }
        assert!(path.net.flush_captures().iter().all(Result::is_ok));
        let forward = |frame: &&Vec<u8>| frame[6..12] == mac(0);
        let frames: Vec<_> = path.file.packets().into_iter().map(|(_, bytes)| bytes).collect();
        assert!(frames.iter().filter(forward).all(|frame| frame[12..].starts_with(sent)));
        // The header comes off the MSS: packets have 1500 bytes behind Ethernet, and none is too large.
        let longest = frames
            .iter()
            .filter(forward)
            .map(|frame| u16::from_be_bytes([frame[sent.len() + 13], frame[sent.len() + 14]]));
        assert_eq!(longest.max(), Some(1500 + 3 - sent.len() as u16));
        assert_eq!((path.net.queue(path.ports[0]).too_large, path.net.malformed_options()), (0, 0));
    }
}

#[test]
fn nobody_else_takes_a_header_between_ethernet_and_ip() {
    // A host whose agents do not know it, and a router.
    for known in [None, Some(TAG)] {
        let mut two = link_of_two();
        two.agent(0, vec![insert(SHIM, b"stamp", ALL)]);
        two.agent(
            1,
            known.map(|option| -> Box<dyn Shim> { Box::new(Signal { option }) }).into_iter().collect(),
        );
        two.tcp(Some(1000));
        assert_eq!(two.run(Time::from_secs(2)), [(0, What::Opened)]);
    }
    let mut three = path(Rate::from_mbps(50), 100);
    three.agent(0, vec![insert(SHIM, b"stamp", ALL)]);
    three.agent(1, vec![Box::new(Signal { option: SHIM })]);
    three.tcp(Some(1000));
    assert_eq!(three.run(Time::from_secs(2)), [(0, What::Opened)]);
    assert!(three.seen().is_empty());
}

#[test]
fn there_is_one_header_between_ethernet_and_ip() {
    let mut path = link_of_two();
    let agent = path.agent(0, vec![insert(SHIM, b"first", ALL), insert(TAG, b"ab", DATA)]);
    let counter =
        path.agent(1, vec![Box::new(Report::new(SHIM, None, true)), Box::new(Report::new(TAG, None, true))]);
    path.tcp(Some(100_000));
    let notices = path.run(Time::from_secs(2));
    assert!(path.net.agent_counts(agent).no_room >= 69 && path.net.agent_counts(counter).no_room == 0);
    let kinds: Vec<_> = notices
        .iter()
        .filter_map(|(_, what)| if let What::Report(kind, _) = what { Some(*kind) } else { None })
        .collect();
    assert!(kinds.len() > 70 && kinds.iter().all(|kind| *kind == SHIM.kind));
}

fn program(path: &str) -> Arc<p4lang::ir::Program> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    Source { path, ..Default::default() }.program().unwrap()
}

#[test]
fn a_link_does_not_take_the_port_of_a_tap() {
    let mut path = path(Rate::from_mbps(20), 20);
    let Path3 { net, ports: [.., r_b, b_r], .. } = &mut path;
    let monitor = net.switch("monitor", program("crates/network/tests/data/monitor.p4"), 1, Some(64));
    let router = net.router("r2");
    net.tap(*r_b, monitor, 6, 1).unwrap();
    net.tap(*b_r, monitor, 0, 1).unwrap();
    let link = Link::new(Rate::from_mbps(20), Time::ZERO);
    let mut refused = |number| {
        let made = net.link_at(monitor, router, link.clone(), link.clone(), [number, None]);
        made.unwrap_err().to_string()
    };
    let cure = "is taken by a tap; give the link or the tap another number";
    assert_eq!(refused(Some(6)), format!("port 6 of monitor {cure}"));
    // The number that a link gets if none is asked for.
    assert_eq!(refused(None), format!("port 0 of monitor {cure}"));
    net.link_at(monitor, router, link.clone(), link.clone(), [Some(7), None]).unwrap();
    // What taps have taken on one switch is free on another.
    net.link_at(router, monitor, link.clone(), link, [Some(6), Some(8)]).unwrap();
}

#[test]
fn a_tap_sees_what_a_capture_there_has() {
    let run = |tapped: bool| {
        let mut path = path(Rate::from_mbps(20), 20);
        let Path3 { net, hosts: [host, _], ports: [.., r_b, b_r], .. } = &mut path;
        // A switch without any link that sends all that it gets to its controller.
        let monitor = net.switch("monitor", program("crates/network/tests/data/monitor.p4"), 1, Some(64));
        if tapped {
            net.tap(*r_b, monitor, 6, 1).unwrap();
            net.tap(*b_r, monitor, 7, 1).unwrap();
            assert!(net.tap(*b_r, monitor, 7, 1).is_err());
            let why = net.tap(*b_r, *host, 7, 1).unwrap_err().to_string();
            assert_eq!(why, "a is not a P4 switch; a tap needs one");
        }
        let flow = path.tcp(Some(300_000));
        path.run(Time::from_secs(3));
        let mut seen = Vec::new();
        path.net
            .control(monitor, |switch, _| {
                while let Some(packet) = switch.take_packet_in() {
                    let mut bytes = packet.bytes;
                    bytes.resize(bytes.len() + packet.more as usize, 0);
                    seen.push(bytes);
                }
            })
            .unwrap();
        let outcome = path.net.outcome(flow);
        path.net.flush_captures().into_iter().for_each(|done| done.unwrap());
        let captured: Vec<_> = path.file.packets().into_iter().map(|(_, bytes)| bytes).collect();
        (seen, captured, outcome.finished, outcome.statistics)
    };
    let (seen, captured, finished, statistics) = run(true);
    let (nothing, same, finished_before, statistics_before) = run(false);
    assert!(nothing.is_empty());
    assert_eq!((&captured, finished, statistics), (&same, finished_before, statistics_before));
    // What comes to the second host, in order; and what it sends, which the tap sees at the link's other end.
    for (port, from) in [(6u16, ipv4(0)), (7, ipv4(1))] {
        let tapped: Vec<_> = seen.iter().filter(|b| b[..2] == port.to_be_bytes()).map(|b| &b[2..]).collect();
        let there: Vec<_> = captured.iter().filter(|b| b[26..30] == from).map(|b| &b[..]).collect();
        assert!(tapped.len() > 100 && tapped == there, "{} {}", tapped.len(), there.len());
    }
}
