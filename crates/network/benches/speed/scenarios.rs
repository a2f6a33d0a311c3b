//! The scenarios: two that other simulators were measured on, and many flows at once.

use std::path::Path;
use std::sync::Arc;

use commands::cli::Session;
use commands::load::Source;
use network::{FlowId, Link, Network, NodeId, PortId, QueueLimit, TcpFlow, ipv4, mac};
use p4lang::ir::Program;
use units::{Bytes, Random, Rate, Time};

/// The example's IPv4 router: checks and updates checksum and TTL, looks up the longest prefix.
pub fn p4_router() -> Arc<Program> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/p4/ipv4_router/ipv4_router.p4");
    Source { path, ..Default::default() }.program().expect("the example compiles")
}

fn router(net: &mut Network, name: &str, program: Option<&Arc<Program>>) -> NodeId {
    match program {
        Some(program) => net.switch(name, program.clone(), 1, None),
        None => net.router(name),
    }
}

/// An entry of a P4 router: packets for a host leave by that port.
fn entry(net: &mut Network, router: NodeId, host: u32, port: usize) {
    let pipeline = net.pipeline(router).expect("a switch");
    let [a, b, c, d] = ipv4(host);
    let target = mac(host).map(|byte| format!("{byte:02x}")).join(":");
    let line = format!("table_add routes next_hop {a}.{b}.{c}.{d}/32 => {port} 02:00:00:00:ff:00 {target}");
    Session { pipeline, now: 0 }.execute(&line).expect("a command").expect("an entry");
}

fn wire(rate: Rate, delay: Time, packets: u64) -> Link {
    Link { limit: QueueLimit { packets: Some(packets), bytes: None }, framing: 0, ..Link::new(rate, delay) }
}

/// N flows over 10 Gbit/s, 1 ms access links and a bottleneck of 1 Gbit/s, 8 ms with a queue of one BDP.
pub fn dumbbell(n: u64, control: &str, p4: Option<&Arc<Program>>) -> (Network, Vec<FlowId>, PortId) {
    let mut net = Network::new(1);
    let access = wire(Rate::from_gbps(10), Time::from_ms(1), 100_000);
    let bottleneck = wire(Rate::from_gbps(1), Time::from_ms(8), 1667);
    let (left, right) = (router(&mut net, "left", p4), router(&mut net, "right", p4));
    let (queue, _) = net.link(left, right, bottleneck.clone(), bottleneck).expect("link");
    let flows = (0..n)
        .map(|i| {
            let (a, b) = (net.host(&format!("a{i}")), net.host(&format!("b{i}")));
            net.link(a, left, access.clone(), access.clone()).expect("link");
            net.link(right, b, access.clone(), access.clone()).expect("link");
            net.tcp(TcpFlow { start: Time::from_secs(1) * i / n, ..TcpFlow::new(a, b, control) })
                .expect("flow")
        })
        .collect();
    if p4.is_some() {
        // Host 2i is on the left, 2i + 1 on the right; port 0 leads to the other router.
        for host in 0..2 * n as u32 {
            for (side, node) in [left, right].into_iter().enumerate() {
                let port = if host % 2 == side as u32 { 1 + host as usize / 2 } else { 0 };
                entry(&mut net, node, host, port);
            }
        }
    }
    (net, flows, queue)
}

/// 192 hosts under 12 top-of-rack routers, 4 pods with 2 aggregation routers each, 2 cores; each host sends to one other.
pub fn clos(control: &str, p4: Option<&Arc<Program>>) -> (Network, Vec<FlowId>) {
    let mut net = Network::new(1);
    let link = |gbps| wire(Rate::from_gbps(gbps), Time::from_us(5), 200);
    let hosts: Vec<NodeId> = (0..192).map(|i| net.host(&format!("h{i}"))).collect();
    let tors: Vec<NodeId> = (0..12).map(|i| router(&mut net, &format!("tor{i}"), p4)).collect();
    let aggregations: Vec<NodeId> = (0..8).map(|i| router(&mut net, &format!("agg{i}"), p4)).collect();
    let cores: Vec<NodeId> = (0..2).map(|i| router(&mut net, &format!("core{i}"), p4)).collect();
    for (i, host) in hosts.iter().enumerate() {
        net.link(*host, tors[i / 16], link(1), link(1)).expect("link");
    }
    // Ways up: from a top-of-rack router to each aggregation router of its pod, from there to each core.
    let (mut to_aggregation, mut to_core) = (Vec::new(), Vec::new());
    for (i, tor) in tors.iter().enumerate() {
        let pod = i / 3;
        to_aggregation.push(
            [0, 1].map(|k| net.link(*tor, aggregations[2 * pod + k], link(10), link(10)).expect("link").0),
        );
    }
    for aggregation in &aggregations {
        to_core.push([0, 1].map(|k| net.link(*aggregation, cores[k], link(40), link(40)).expect("link").0));
    }
    // By destination, as the other simulators had it. Ports have the order in which the links were made above.
    for d in 0..192usize {
        if p4.is_some() {
            for (i, tor) in tors.iter().enumerate() {
                entry(&mut net, *tor, d as u32, if d / 16 == i { d % 16 } else { 16 + (d & 1) });
            }
            for (i, aggregation) in aggregations.iter().enumerate() {
                let port = if d / 48 == i / 2 { d / 16 % 3 } else { 3 + (d >> 1 & 1) };
                entry(&mut net, *aggregation, d as u32, port);
            }
            for core in &cores {
                entry(&mut net, *core, d as u32, 2 * (d / 48) + (d & 1));
            }
            continue;
        }
        for (i, tor) in tors.iter().enumerate() {
            if d / 16 != i {
                net.set_route(*tor, hosts[d], to_aggregation[i][d & 1]).expect("route");
            }
        }
        for (i, aggregation) in aggregations.iter().enumerate() {
            if d / 48 != i / 2 {
                net.set_route(*aggregation, hosts[d], to_core[i][d >> 1 & 1]).expect("route");
            }
        }
    }
    let mut x: u64 = 1;
    let flows = (0..192usize)
        .map(|i| {
            x = (1_103_515_245 * x + 12_345) % (1 << 31);
            let d = (x >> 8) as usize % 191;
            let d = if d >= i { d + 1 } else { d };
            let mut flow =
                TcpFlow { start: Time::from_us(10 * i as u64), ..TcpFlow::new(hosts[i], hosts[d], control) };
            for config in [&mut flow.config, &mut flow.receiver_config] {
                config.rto_min = Time::from_ms(10);
                config.delayed_ack_min = Time::from_ms(1);
                config.delayed_ack_max = Time::from_ms(1);
                // The others have no segmentation offload.
                config.segmentation_offload = None;
            }
            net.tcp(flow).expect("flow")
        })
        .collect();
    (net, flows)
}

/// N flows of a size between two routers' hosts, all at once.
pub fn crowd(n: u64, size: u64) -> (Network, Vec<FlowId>) {
    let mut net = Network::new(1);
    let (left, right) = (net.router("left"), net.router("right"));
    let middle = wire(Rate::from_gbps(10), Time::from_ms(5), 10_000);
    net.link(left, right, middle.clone(), middle).expect("link");
    let access = wire(Rate::from_gbps(10), Time::from_us(100), 10_000);
    let mut ends = Vec::new();
    for i in 0..100 {
        let (a, b) = (net.host(&format!("a{i}")), net.host(&format!("b{i}")));
        net.link(a, left, access.clone(), access.clone()).expect("link");
        net.link(right, b, access.clone(), access.clone()).expect("link");
        ends.push((a, b));
    }
    let flows = (0..n)
        .map(|i| {
            let (a, b) = ends[(i % 100) as usize];
            let start = Time::from_us(100 * i);
            net.tcp(TcpFlow { start, size: Some(Bytes::new(size)), ..TcpFlow::new(a, b, "cubic") })
                .expect("flow")
        })
        .collect();
    (net, flows)
}

/// N long flows at once through 1 Gbit/s with one queue of a BDP, round trips of 1 to 224 ms, log-uniform: the workload of
/// `separation.fct`. With many, none has more than a few packets under way, and each packet is of another flow than the last.
pub fn long(n: u64) -> (Network, Vec<FlowId>) {
    let mut net = Network::new(1);
    let (left, right) = (net.router("left"), net.router("right"));
    let edge = wire(Rate::from_gbps(40), Time::from_us(5), 1_000_000);
    let middle = wire(Rate::from_gbps(1), Time::from_us(5), 4_000);
    net.link(left, right, middle.clone(), middle).expect("link");
    let pairs: Vec<(NodeId, NodeId)> = (0..20)
        .map(|i| {
            let (a, b) = (net.host(&format!("a{i}")), net.host(&format!("b{i}")));
            net.link(a, left, edge.clone(), edge.clone()).expect("link");
            net.link(b, right, edge.clone(), edge.clone()).expect("link");
            (a, b)
        })
        .collect();
    let mut random = Random::new(1);
    let flows = (0..n)
        .map(|i| {
            let (a, b) = pairs[(i % 20) as usize];
            let start = Time::from_us((random.unit() * 1e6) as u64);
            let extra_delay = Time::from_us((1e3 * 224f64.powf(random.unit())) as u64);
            let mut flow = TcpFlow { start, extra_delay, ..TcpFlow::new(a, b, "cubic") };
            flow.receiver_config.receive_buffer_max = Bytes::new(200_000_000);
            net.tcp(flow).expect("flow")
        })
        .collect();
    (net, flows)
}

pub fn received(net: &Network, flows: &[FlowId]) -> Vec<u64> {
    flows.iter().map(|f| net.outcome(*f).bytes_received).collect()
}

pub fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|r| r * r).sum::<f64>())
}
