//! P4 switches in the network: packets become bytes, go through a program, and are read again.

use std::path::Path;
use std::sync::Arc;

use commands::cli::Session;
use commands::load::Source;
use network::{BESIDE, FlowId, Link, Network, NodeId, PortId, QueueLimit, TcpFlow, UdpFlow, ipv4, mac};
use p4lang::ir::Program;
use transport::segment::Ecn;
use transport::tcp::EcnMode;
use units::{Bytes, Rate, Time};

fn program(path: &str) -> Arc<Program> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    Source { path, ..Default::default() }.program().unwrap()
}

fn wire(rate: Rate, delay: Time, packets: u64) -> Link {
    Link { limit: QueueLimit { packets: Some(packets), bytes: None }, ..Link::new(rate, delay) }
}

/// N pairs of hosts over two routers, plain or with the example's program.
fn dumbbell(n: u32, p4: bool) -> (Network, Vec<(NodeId, NodeId)>, PortId) {
    let (net, pairs, port, _) = dumbbell_over(wire(Rate::from_mbps(100), Time::from_ms(5), 100), n, p4);
    (net, pairs, port)
}

/// The port and its node are the left router's.
fn dumbbell_over(middle: Link, n: u32, p4: bool) -> (Network, Vec<(NodeId, NodeId)>, PortId, NodeId) {
    let mut net = Network::new(1);
    let routers = ["left", "right"].map(|name| {
        if p4 {
            net.switch(name, program("examples/p4/ipv4_router/ipv4_router.p4"), 1, None)
        } else {
            net.router(name)
        }
    });
    let (port, _) = net.link(routers[0], routers[1], middle.clone(), middle).unwrap();
    let mut pairs = Vec::new();
    for i in 0..n {
        let (a, b) = (net.host(&format!("a{i}")), net.host(&format!("b{i}")));
        let access = wire(Rate::from_gbps(1), Time::from_us(100), 1000);
        net.link(a, routers[0], access.clone(), access.clone()).unwrap();
        net.link(b, routers[1], access.clone(), access).unwrap();
        pairs.push((a, b));
    }
    if p4 {
        for (side, router) in routers.into_iter().enumerate() {
            let pipeline = net.pipeline(router).unwrap();
            let mut session = Session { pipeline, now: 0 };
            // Host 2i is on the left, 2i + 1 on the right; port 0 leads to the other router.
            for host in 0..2 * n {
                let port = if host % 2 == side as u32 { 1 + host / 2 } else { 0 };
                let [a, b, c, d] = ipv4(host);
                let target = mac(host).map(|byte| format!("{byte:02x}")).join(":");
                let line = format!(
                    "table_add routes next_hop {a}.{b}.{c}.{d}/32 => {port} 02:00:00:00:ff:00 {target}"
                );
                session.execute(&line).unwrap().unwrap();
            }
        }
    }
    (net, pairs, port, routers[0])
}

fn run(p4: bool) -> (Vec<u64>, Network, PortId) {
    let (mut net, pairs, port) = dumbbell(3, p4);
    let flows: Vec<FlowId> =
        pairs.iter().map(|(a, b)| net.tcp(TcpFlow::new(*a, *b, "cubic")).unwrap()).collect();
    net.run_until(Time::from_secs(10)).unwrap();
    (flows.iter().map(|f| net.outcome(*f).bytes_received).collect(), net, port)
}

#[test]
fn tcp_through_p4_routers_is_tcp_through_routers() {
    let (plain, _, _) = run(false);
    let (p4, net, port) = run(true);
    let (plain, p4): (u64, u64) = (plain.iter().sum(), p4.iter().sum());
    // 95.6 Mbit/s of payload for nearly ten seconds.
    assert!(plain > 117_000_000 && p4 > 117_000_000, "{plain} {p4}");
    assert!(plain.abs_diff(p4) < plain / 100, "{plain} {p4}");
    let queue = net.queue_state(port, 0).unwrap();
    assert!(queue.waiting_packets <= 100 && queue.dropped > 0);
    assert!(queue.wait_max <= Time::from_us(12_200).as_ps());
}

#[test]
fn a_long_wire_holds_no_more_than_it_may() {
    for p4 in [false, true] {
        // A packet of 1014 bytes each 2 ms, for which there is room on the wire a hundred times.
        let most = Some(Bytes::new(100 * (1014 + BESIDE)));
        let long = Link { most, ..wire(Rate::from_mbps(100), Time::from_secs(1), 1000) };
        let (mut net, pairs, port, left) = dumbbell_over(long, 1, p4);
        let flow = net
            .udp(UdpFlow {
                from: pairs[0].0,
                to: pairs[0].1,
                start: Time::ZERO,
                stop: Some(Time::from_ms(1990)),
                rate: Rate::from_mbps(4),
                payload: 972,
                pattern: network::Pattern::Constant,
                ecn: Ecn::NotEct,
            })
            .unwrap();
        net.run_until(Time::from_ms(899)).unwrap();
        assert_eq!(net.packets(), 100, "p4: {p4}");
        // As they come out at the other end, others have room.
        net.run_until(Time::from_secs(4)).unwrap();
        let (sent, received) = (net.udp_statistics(flow).unwrap().sent, net.outcome(flow).bytes_received);
        assert_eq!((sent, received, net.packets()), (995, 200 * 972, 0), "p4: {p4}");
        assert_eq!(net.queue(port).dropped, 795, "p4: {p4}");
        if p4 {
            let counts = net.control(left, |switch, _| switch.statistics()).unwrap();
            assert_eq!((counts.received, counts.transmitted), (995, 200));
            assert_eq!(counts.dropped, [("queue memory", 795)]);
        }
    }
}

#[test]
fn one_seed_one_result_with_p4() {
    assert_eq!(run(true).0, run(true).0);
}

#[test]
fn transfers_end_and_nothing_is_left() {
    let (mut net, pairs, _) = dumbbell(2, true);
    let mut flows = Vec::new();
    for (i, (a, b)) in pairs.iter().enumerate() {
        let size = Some(Bytes::new(1_000_000 + i as u64));
        flows.push(net.tcp(TcpFlow { size, ..TcpFlow::new(*a, *b, "reno") }).unwrap());
        let udp = UdpFlow {
            from: *b,
            to: *a,
            start: Time::ZERO,
            stop: Some(Time::from_secs(1)),
            rate: Rate::from_mbps(8),
            payload: 972,
            pattern: network::Pattern::Constant,
            ecn: Ecn::NotEct,
        };
        flows.push(net.udp(udp).unwrap());
    }
    net.run_until(Time::from_secs(60)).unwrap();
    let received: Vec<u64> = flows.iter().map(|f| net.outcome(*f).bytes_received).collect();
    assert_eq!(received, [1_000_000, 972_000, 1_000_001, 972_000]);
    assert_eq!(net.packets(), 0);
}

#[test]
fn a_program_marks_and_tcp_answers() {
    let mut net = Network::new(1);
    let (a, b) = (net.host("a"), net.host("b"));
    let marker = net.switch("marker", program("examples/p4/ecn_marker/ecn_marker.p4"), 1, None);
    let fast = wire(Rate::from_gbps(1), Time::from_ms(2), 10_000);
    net.link(a, marker, fast.clone(), fast.clone()).unwrap();
    net.link(marker, b, wire(Rate::from_mbps(50), Time::from_ms(2), 1000), fast).unwrap();
    let mut session = Session { pipeline: net.pipeline(marker).unwrap(), now: 0 };
    session.execute("register_write threshold 0 20").unwrap().unwrap();
    let mut flow = TcpFlow::new(a, b, "reno");
    flow.config.ecn = EcnMode::On;
    flow.receiver_config.ecn = EcnMode::On;
    let flow = net.tcp(flow).unwrap();
    net.run_until(Time::from_secs(10)).unwrap();
    let outcome = net.outcome(flow);
    // The queue of 1000 packets never fills: marks hold the window, and nothing is lost.
    assert!(outcome.statistics.ece_received > 10, "{:?}", outcome.statistics);
    assert_eq!(outcome.statistics.retransmits, 0);
    assert!(outcome.bytes_received > 55_000_000, "{}", outcome.bytes_received);
}

/// Number and time of a datagram outlive the bytes, whether or not the program has parsed UDP.
#[test]
fn the_delay_of_datagrams_is_known_behind_p4() {
    for parsed in ["", "p.extract(h.ports); p.extract(h.tcp);"] {
        let mut net = Network::new(1);
        let (a, b) = (net.host("a"), net.host("b"));
        let switch = net.switch("switch", changing(parsed, ""), 1, None);
        let link = Link { framing: 0, ..wire(Rate::from_mbps(8), Time::from_ms(1), 1000) };
        net.link(a, switch, link.clone(), link.clone()).unwrap();
        net.link(b, switch, link.clone(), link).unwrap();
        let udp = UdpFlow {
            from: a,
            to: b,
            start: Time::ZERO,
            stop: Some(Time::from_ms(100)),
            rate: Rate::from_mbps(4),
            payload: 972,
            pattern: network::Pattern::Constant,
            ecn: Ecn::NotEct,
        };
        let flow = net.udp(udp).unwrap();
        net.run_until(Time::from_secs(1)).unwrap();
        let counts = net.udp_statistics(flow).unwrap();
        // A millisecond for each link, and as long to be sent on it.
        let each = Time::from_ms(4).as_ps();
        assert_eq!((counts.received, counts.reordered), (counts.sent, 0));
        assert_eq!(
            (counts.delay_max_ps, counts.delay_ps),
            (each, u128::from(each) * u128::from(counts.received))
        );
    }
}

/// A program that forwards between its ports 0 and 1, and from half a second on changes each packet.
fn changing(parsed: &str, change: &str) -> Arc<Program> {
    let source = format!(
        r#"#include <v1model.p4>
header ethernet_t {{ bit<48> to; bit<48> from; bit<16> kind; }}
header ipv4_t {{
    bit<16> v_ihl_tos; bit<16> len; bit<16> id; bit<16> frag; bit<8> ttl; bit<8> protocol; bit<16> check;
    bit<32> src; bit<32> dst;
}}
header ports_t {{ bit<16> src; bit<16> dst; }}
header tcp_t {{ bit<32> seq; bit<32> ack; bit<16> flags; bit<16> window; bit<16> check; bit<16> urgent; }}
struct headers {{ ethernet_t ethernet; ipv4_t ipv4; ports_t ports; tcp_t tcp; }}
struct meta_t {{ bit<32> sum; }}
parser P(packet_in p, out headers h, inout meta_t m, inout standard_metadata_t s) {{
    state start {{ p.extract(h.ethernet); p.extract(h.ipv4); {parsed} transition accept; }}
}}
control V(inout headers h, inout meta_t m) {{ apply {{}} }}
control I(inout headers h, inout meta_t m, inout standard_metadata_t s) {{
    bit<16> old;
    apply {{
        s.egress_spec = 1 - s.ingress_port;
        h.ipv4.ttl = h.ipv4.ttl - 1;
        if (s.ingress_global_timestamp > 500000) {{ {change} }}
    }}
}}
control E(inout headers h, inout meta_t m, inout standard_metadata_t s) {{ apply {{}} }}
control C(inout headers h, inout meta_t m) {{
    apply {{
        update_checksum(h.ipv4.v_ihl_tos[15:0] != 0 && h.ipv4.id != 0xdead,
            {{ h.ipv4.v_ihl_tos, h.ipv4.len, h.ipv4.id, h.ipv4.frag, h.ipv4.ttl, h.ipv4.protocol, h.ipv4.src, h.ipv4.dst }},
            h.ipv4.check, HashAlgorithm.csum16);
    }}
}}
control D(packet_out p, in headers h) {{ apply {{ p.emit(h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;"#
    );
    let compiled = p4lang::compile_str("changing.p4", &source, None, &p4lang::Options::default());
    let errors = p4lang::render::render(&compiled.sources, &compiled.diagnostics, false);
    Arc::new(compiled.program.unwrap_or_else(|| panic!("{errors}")))
}

/// What a host takes does not hang on whether the switch has looked at TCP: what the program breaks is lost, what it mends is not.
#[test]
fn a_program_that_forgets_a_checksum_loses_its_packets() {
    const PORTS: &str = "p.extract(h.ports);";
    const TCP: &str = "p.extract(h.ports); p.extract(h.tcp);";
    // RFC 1624, equation 3.
    const MEND: &str = "m.sum = (bit<32>)~h.tcp.check + (bit<32>)~old + (bit<32>)h.ipv4.src[15:0];
        m.sum = (m.sum & 0xffff) + (m.sum >> 16); m.sum = (m.sum & 0xffff) + (m.sum >> 16);
        h.tcp.check = ~m.sum[15:0];";
    let nat = "old = h.ipv4.src[15:0]; h.ipv4.src = h.ipv4.src ^ 0x100;";
    let mended = format!("{nat} {MEND}");
    let cases = [
        ("nothing", "", "", true),
        ("nothing, ports parsed", PORTS, "", true),
        ("nothing, TCP parsed", TCP, "", true),
        ("DSCP", "", "h.ipv4.v_ihl_tos = h.ipv4.v_ihl_tos | 0x20;", true),
        ("an address", "", nat, false),
        ("an address, ports parsed", PORTS, nat, false),
        ("an address, TCP parsed", TCP, nat, false),
        ("an address, and TCP's checksum", TCP, &mended, true),
        ("a port", PORTS, "h.ports.dst = h.ports.dst ^ 1;", false),
        ("a port, TCP parsed", TCP, "h.ports.src = h.ports.src ^ 1;", false),
        ("TCP's checksum", TCP, "h.tcp.check = h.tcp.check ^ 1;", false),
        ("the window", TCP, "h.tcp.window = h.tcp.window - 1;", false),
        ("the IP header, its checksum left", "", "h.ipv4.id = 0xdead;", false),
        ("the length", "", "h.ipv4.len = h.ipv4.len - 1;", false),
        ("a fragment", "", "h.ipv4.frag = 0x2000;", false),
    ];
    for (what, parsed, change, received) in cases {
        let mut net = Network::new(1);
        let (a, b) = (net.host("a"), net.host("b"));
        let switch = net.switch("switch", changing(parsed, change), 1, None);
        let link = wire(Rate::from_mbps(100), Time::from_ms(1), 1000);
        net.link(a, switch, link.clone(), link.clone()).unwrap();
        net.link(b, switch, link.clone(), link).unwrap();
        let flow = net.tcp(TcpFlow::new(a, b, "reno")).unwrap();
        let mut at = |ms: u64| {
            net.run_until(Time::from_ms(ms)).unwrap();
            net.outcome(flow).bytes_received
        };
        let (before, then, after) = (at(490), at(520), at(1000));
        assert!(before > 1_000_000, "{what}: {before}");
        assert_eq!(after > then, received, "{what}: {before} {then} {after}");
    }
}

#[test]
fn nodes_that_are_no_switches_have_no_pipeline() {
    let mut net = Network::new(1);
    let r = net.router("r");
    assert_eq!(net.pipeline(r).err().unwrap().to_string(), "r is not a P4 switch");
}
