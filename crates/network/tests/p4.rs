//! P4 switches in the network: packets become bytes, go through a program, and are read again.

use std::path::Path;
use std::sync::Arc;

use commands::cli::Session;
use commands::load::Source;
use network::{FlowId, Link, Network, NodeId, PortId, QueueLimit, TcpFlow, UdpFlow, ipv4, mac};
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
    let mut net = Network::new(1);
    let routers = ["left", "right"].map(|name| {
        if p4 {
            net.switch(name, program("examples/p4/ipv4_router/ipv4_router.p4"), 1, None)
        } else {
            net.router(name)
        }
    });
    let middle = wire(Rate::from_mbps(100), Time::from_ms(5), 100);
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
    (net, pairs, port)
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
    let ((depth, _), counts) = net.switch_queue(port, 0).unwrap();
    assert!(depth <= 100 && counts.dropped > 0 && counts.wait_max_ps <= Time::from_us(12_200).as_ps());
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

#[test]
fn nodes_that_are_no_switches_have_no_pipeline() {
    let mut net = Network::new(1);
    let r = net.router("r");
    assert_eq!(net.pipeline(r).err().unwrap().to_string(), "r is no P4 switch");
}
