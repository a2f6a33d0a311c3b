//! The simulator against what can be computed: queueing theory, links' arithmetic, conservation, one seed one result.

use network::{Aqm, GilbertElliott, Link, Network, NodeId, Pattern, PortId, QueueLimit, TcpFlow, UdpFlow};
use proptest::prelude::*;
use transport::segment::Ecn;
use units::{Bytes, Rate, Time};

/// Two hosts, with a bottleneck in front of the second; gives the hosts and the bottleneck's port.
fn path(net: &mut Network, bottleneck: Link) -> (NodeId, NodeId, PortId) {
    let (a, r, b) = (net.host("a"), net.router("r"), net.host("b"));
    let fast = Link { limit: QueueLimit::default(), ..Link::new(Rate::from_gbps(100), Time::ZERO) };
    net.link(a, r, fast.clone(), fast.clone()).unwrap();
    let (port, _) = net.link(r, b, bottleneck, fast).unwrap();
    (a, b, port)
}

fn datagrams(from: NodeId, to: NodeId, rate: Rate, pattern: Pattern) -> UdpFlow {
    UdpFlow { from, to, start: Time::ZERO, stop: None, rate, payload: 972, pattern, ecn: Ecn::NotEct }
}

#[test]
fn waiting_time_of_m_d_1() {
    // Packets of 1000 bytes at 80 Mbit/s: 100 us each. Mean wait: rho / (2 (1 - rho)) services (Pollaczek-Khinchine).
    for (load, seed) in [(50, 1), (80, 2), (90, 3)] {
        let mut net = Network::new(seed);
        let link =
            Link { limit: QueueLimit::default(), framing: 0, ..Link::new(Rate::from_mbps(80), Time::ZERO) };
        let (a, b, port) = path(&mut net, link);
        net.udp(datagrams(a, b, Rate::from_kbps(800 * load), Pattern::Poisson)).unwrap();
        net.run_until(Time::from_secs(400)).unwrap();
        let queue = net.queue(port);
        let mean_us = queue.wait_ps as f64 / queue.packets as f64 / 1e6;
        let rho = load as f64 / 100.0;
        let expected = 100.0 * rho / (2.0 * (1.0 - rho));
        assert!((mean_us / expected - 1.0).abs() < 0.04, "load {rho}: {mean_us} us, expected {expected}");
    }
}

#[test]
fn a_packet_takes_serialisation_and_propagation() {
    let mut net = Network::new(1);
    let link = Link { framing: 24, ..Link::new(Rate::from_mbps(10), Time::from_ms(3)) };
    let (a, b, _) = path(&mut net, link);
    let flow =
        UdpFlow { stop: Some(Time::from_ms(1)), ..datagrams(a, b, Rate::from_mbps(1), Pattern::Constant) };
    let flow = net.udp(flow).unwrap();
    net.run_until(Time::from_secs(1)).unwrap();
    let statistics = net.udp_statistics(flow).unwrap();
    assert_eq!(statistics.received, 1);
    // 1014 bytes at 100 Gbit/s, then 1024 bytes at 10 Mbit/s and 3 ms.
    let expected = Time::from_ps(81_120) + Time::from_ps(819_200_000) + Time::from_ms(3);
    assert_eq!(statistics.delay_max_ps, expected.as_ps());
}

#[test]
fn loss_is_what_was_asked_for() {
    let chain = GilbertElliott { to_bad: 0.01, to_good: 0.1, loss_good: 0.0, loss_bad: 0.8 };
    // The chain is bad 1/11 of the time.
    for (loss, burst_loss, expected) in [(0.02, None, 0.02), (0.0, Some(chain), 0.8 / 11.0)] {
        let mut net = Network::new(5);
        let link = Link { loss, burst_loss, ..Link::new(Rate::from_gbps(1), Time::ZERO) };
        let (a, b, port) = path(&mut net, link);
        let flow = net.udp(datagrams(a, b, Rate::from_mbps(100), Pattern::Constant)).unwrap();
        net.run_until(Time::from_secs(20)).unwrap();
        let sent = net.udp_statistics(flow).unwrap().sent as f64;
        let share = net.queue(port).lost as f64 / sent;
        assert!((share / expected - 1.0).abs() < 0.1, "{share}, expected {expected}");
    }
}

#[test]
fn a_full_queue_drops_at_its_limit() {
    for limit in [
        QueueLimit { packets: Some(5), bytes: None },
        QueueLimit { packets: None, bytes: Some(Bytes::new(5 * 1000)) },
    ] {
        let mut net = Network::new(1);
        let link = Link { limit, framing: 0, ..Link::new(Rate::from_mbps(8), Time::ZERO) };
        let (a, b, port) = path(&mut net, link);
        // Twice what the link carries: half is dropped, and the queue stands at its limit.
        net.udp(datagrams(a, b, Rate::from_mbps(16), Pattern::Constant)).unwrap();
        net.run_until(Time::from_secs(10)).unwrap();
        assert!(net.depth(port).0 >= 4 && net.depth(port).0 <= 5);
        let queue = net.queue(port);
        assert!(queue.dropped.abs_diff(10_000) < 20, "{}", queue.dropped);
        assert!(queue.wait_max_ps <= Time::from_ms(6).as_ps(), "{}", queue.wait_max_ps);
    }
}

#[test]
fn what_waits_is_sent_at_the_new_rate() {
    let mut net = Network::new(1);
    let link = Link { framing: 0, ..Link::new(Rate::from_mbps(8), Time::ZERO) };
    let (a, b, port) = path(&mut net, link.clone());
    // 20 packets of 1 ms each come within 2 ms; after 5 ms the link is ten times as fast.
    let flow =
        UdpFlow { stop: Some(Time::from_ms(2)), ..datagrams(a, b, Rate::from_mbps(80), Pattern::Constant) };
    let flow = net.udp(flow).unwrap();
    net.change_link(Time::from_us(5_010), port, Link { rate: Rate::from_mbps(80), ..link }).unwrap();
    net.run_until(Time::from_secs(1)).unwrap();
    let statistics = net.udp_statistics(flow).unwrap();
    assert_eq!(statistics.received, 20);
    // Six are done or under way at the old rate, fourteen take 0.1 ms each; the last one was sent at 1.9 ms.
    let last = Time::from_ps(statistics.delay_max_ps);
    assert!(last > Time::from_us(5_400) && last < Time::from_us(5_700), "{last}");
}

#[test]
fn a_wire_that_becomes_shorter_keeps_the_order() {
    for aqm in [None, Some(Aqm::FqCodel)] {
        let mut net = Network::new(1);
        let link = Link { framing: 0, aqm, ..Link::new(Rate::from_mbps(80), Time::from_ms(10)) };
        let (a, b, port) = path(&mut net, link.clone());
        // A packet each millisecond, which takes 0.1 ms to send; after 5.5 ms the wire takes 1 ms in place of 10.
        let stop = Some(Time::from_us(20_500));
        let flow =
            net.udp(UdpFlow { stop, ..datagrams(a, b, Rate::from_mbps(8), Pattern::Constant) }).unwrap();
        net.change_link(Time::from_us(5_500), port, Link { delay: Time::from_ms(1), ..link }).unwrap();
        net.run_until(Time::from_ms(60)).unwrap();
        let statistics = net.udp_statistics(flow).unwrap();
        assert_eq!((statistics.sent, statistics.received, statistics.reordered), (21, 21, 0));
        // The last of the long wire, sent at 5 ms, arrives at 15.1 ms, and nothing that is sent later does before.
        let expected: f64 =
            (0..=20).map(|ms| if ms <= 5 { 10.1 } else { (15.1 - f64::from(ms)).max(1.1) }).sum();
        let found = statistics.delay_ps as f64 / 1e9;
        assert!((found - expected).abs() < 0.01, "{found} ms, expected {expected}");
    }
}

/// A run with everything in it; gives counts that any change of order would change.
fn busy_network(seed: u64) -> (u64, u64, Vec<u64>) {
    let mut net = Network::new(seed);
    let (left, right) = (net.router("left"), net.router("right"));
    let middle = Link {
        limit: QueueLimit { packets: Some(60), bytes: None },
        loss: 0.002,
        jitter: Time::from_us(300),
        duplicate: 0.001,
        ..Link::new(Rate::from_mbps(100), Time::from_ms(4))
    };
    net.link(left, right, middle.clone(), middle).unwrap();
    let mut flows = Vec::new();
    for i in 0..6 {
        let (a, b) = (net.host(&format!("a{i}")), net.host(&format!("b{i}")));
        let access = Link::new(Rate::from_gbps(1), Time::from_us(10 * i));
        net.link(a, left, access.clone(), access.clone()).unwrap();
        net.link(right, b, access.clone(), access).unwrap();
        let control = if i % 2 == 0 { "cubic" } else { "reno" };
        let size = (i > 2).then(|| Bytes::new(1_000_000 + i));
        let start = Time::from_ms(50 * i);
        flows.push(net.tcp(TcpFlow { start, size, ..TcpFlow::new(a, b, control) }).unwrap());
        net.udp(datagrams(b, a, Rate::from_mbps(3), Pattern::Poisson)).unwrap();
    }
    net.run_until(Time::from_secs(8)).unwrap();
    let (events, hops) = net.work();
    (events, hops, flows.iter().map(|f| net.outcome(*f).bytes_received).collect())
}

#[test]
fn one_seed_one_result_on_any_machine() {
    assert_eq!(busy_network(7), busy_network(7));
    assert_ne!(busy_network(7), busy_network(8));
    let (_, hops, received) = busy_network(7);
    sized_flows_are_whole(hops, &received);
}

/// Functions of the C library, whose last bit is each library's own: IEEE 754 asks for none of them.
const OWN_LAST_BIT: &str = "acos acosh asin asinh atan atan2 atanh cbrt cos cosh exp exp2 exp_m1 gamma hypot ln ln_1p ln_gamma log log10 \
                            log2 powf sin sin_cos sinh tan tanh";

#[test]
fn no_function_is_used_whose_last_bit_differs_between_machines() {
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let (mut folders, mut files, mut found) = (Vec::new(), 0, Vec::new());
    for part in ["units", "wire", "control", "dataplane", "switch", "transport", "network"] {
        folders.push(std::path::PathBuf::from(format!("{crates}/{part}/src")));
    }
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            // Tests stand at a file's end, or in files of their own.
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
            files += 1;
            for name in OWN_LAST_BIT.split_whitespace() {
                // As a method or as a function; `log` is also what others call theirs.
                let method = name != "log" && code.contains(&format!(".{name}("));
                if method
                    || code.contains(&format!("f64::{name}("))
                    || code.contains(&format!("f32::{name}("))
                {
                    found.push(format!("{}: {name}", path.display()));
                }
            }
        }
    }
    assert!(files > 100, "{files} files");
    assert!(found.is_empty(), "{found:#?}");
}

/// Flows with a size arrive whole, the others get what is left of the link.
fn sized_flows_are_whole(hops: u64, received: &[u64]) {
    assert_eq!(received[3..], [1_000_003, 1_000_004, 1_000_005]);
    assert!(hops > 100_000 && received[..3].iter().all(|r| *r > 1_000_000), "{hops} {received:?}");
}

/// Controls but for those that are made for one network: their windows come from its round trip and its telemetry.
fn for_any_network() -> Vec<&'static str> {
    let made_for_one = ["swift", "hpcc", "powertcp"];
    transport::cc::NAMES.iter().copied().filter(|name| !made_for_one.contains(name)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// Whatever the wire does, a transfer arrives whole, or goes on trying; and no packet is forgotten.
    #[test]
    fn transfers_survive_bad_wires(
        seed: u64,
        loss in 0.0f64..0.15,
        duplicate in 0.0f64..0.05,
        reorder in 0.0f64..0.1,
        jitter_us in 0u64..3000,
        delay_us in 0u64..40_000,
        queue in 2u64..200,
        size in 1u64..400_000,
        control in prop::sample::select(for_any_network()),
        sack: bool,
        timestamps: bool,
        offload: bool,
    ) {
        let mut net = Network::new(seed);
        let link = Link {
            loss,
            duplicate,
            reorder,
            reorder_by: Time::from_ms(5),
            jitter: Time::from_us(jitter_us),
            limit: QueueLimit { packets: Some(queue), bytes: None },
            ..Link::new(Rate::from_mbps(20), Time::from_us(delay_us))
        };
        let (a, r, b) = (net.host("a"), net.router("r"), net.host("b"));
        net.link(a, r, Link::new(Rate::from_gbps(1), Time::ZERO), Link::new(Rate::from_gbps(1), Time::ZERO)).unwrap();
        net.link(r, b, link.clone(), link).unwrap();
        let mut flow = TcpFlow { size: Some(Bytes::new(size)), ..TcpFlow::new(a, b, control) };
        for config in [&mut flow.config, &mut flow.receiver_config] {
            config.sack = sack;
            config.timestamps = timestamps;
            config.segmentation_offload = offload.then(|| Bytes::new(65_536));
            // Six, as elsewhere, are lost together in one of some 25 000 connections at a loss of 13 % in each direction.
            config.syn_retries = 12;
        }
        let flow = net.tcp(flow).unwrap();
        // BBR without SACK and timestamps has no round trip's time while it loses, and may need ten timeouts of 2 min.
        net.run_until(Time::from_secs(20_000)).unwrap();
        let outcome = net.outcome(flow);
        prop_assert_eq!(outcome.bytes_received, size);
        prop_assert!(outcome.finished.is_some());
        // Both ends are done and gone, and so are their packets.
        prop_assert!(net.connection(flow).is_none());
        prop_assert_eq!(net.packets(), 0);
    }
}
