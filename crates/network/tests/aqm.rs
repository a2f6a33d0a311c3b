//! CoDel and PIE as queues of a plain port: what they do to TCP, beside what ns-3 has on the same dumbbell; and that no packet is
//! forgotten.

use network::{Aqm, Link, Network, NodeId, Pattern, PortId, QueueLimit, TcpFlow, UdpFlow};
use transport::segment::Ecn;
use units::{Rate, Time};

/// N hosts on each side, 1 Gbit/s and 20 ms between them.
fn dumbbell(aqm: Option<Aqm>, flows: u32, seed: u64) -> (Network, PortId) {
    let mut net = Network::new(seed);
    let (left, right) = (net.router("left"), net.router("right"));
    let limit = QueueLimit { packets: Some(10_000), bytes: None };
    let bottleneck = Link { aqm, limit, framing: 0, ..Link::new(Rate::from_gbps(1), Time::from_ms(8)) };
    let (port, _) = net.link(left, right, bottleneck.clone(), bottleneck).unwrap();
    for index in 0..flows {
        let (a, b) = (net.host(&format!("a{index}")), net.host(&format!("b{index}")));
        let access = Link { limit, framing: 0, ..Link::new(Rate::from_gbps(10), Time::from_ms(1)) };
        net.link(a, left, access.clone(), access.clone()).unwrap();
        net.link(b, right, access.clone(), access).unwrap();
        let start = Time::from_ms(u64::from(1000 * index / flows));
        net.tcp(TcpFlow { start, ..TcpFlow::new(a, b, "cubic") }).unwrap();
    }
    (net, port)
}

/// Mean delay of a packet and share of the link, from 2 to 10 s; and drops from the start.
fn measure(aqm: Aqm, seed: u64) -> (f64, f64, u64) {
    let (mut net, port) = dumbbell(Some(aqm), 10, seed);
    net.run_until(Time::from_secs(2)).unwrap();
    let before = *net.queue(port);
    net.run_until(Time::from_secs(10)).unwrap();
    let after = *net.queue(port);
    let wait = (after.wait_ps - before.wait_ps) as f64 / (after.packets - before.packets) as f64;
    (wait * 1e-9, (after.busy_ps - before.busy_ps) as f64 / 8e12, after.dropped)
}

#[test]
fn cubic_over_codel_and_pie_waits_as_long_as_in_ns3() {
    // PIE's drops are random: a run of eight seconds is off by 2 ms and more.
    for (aqm, ns3_ms, seeds) in [(Aqm::Codel, 4.79, 1), (Aqm::Pie, 13.78, 8)] {
        let mut delays = 0.0;
        for seed in 1..=seeds {
            let (delay, share, dropped) = measure(aqm, seed);
            delays += delay;
            assert!(share > 0.97 && dropped > 20, "{aqm:?}, seed {seed}: {share}, {dropped} drops");
        }
        let mean = delays / seeds as f64;
        assert!((mean - ns3_ms).abs() < 1.0, "{aqm:?}: {mean} ms, ns-3 has {ns3_ms}");
    }
}

fn path(link: Link) -> (Network, NodeId, NodeId, PortId) {
    let mut net = Network::new(3);
    let (a, r, b) = (net.host("a"), net.router("r"), net.host("b"));
    let fast = Link::new(Rate::from_gbps(10), Time::ZERO);
    net.link(a, r, fast.clone(), fast.clone()).unwrap();
    let (port, _) = net.link(r, b, link, fast).unwrap();
    (net, a, b, port)
}

#[test]
fn every_packet_arrives_waits_or_was_dropped() {
    for aqm in [Aqm::Codel, Aqm::Pie] {
        let limit = QueueLimit { packets: Some(500), bytes: None };
        let link = Link { aqm: Some(aqm), limit, ..Link::new(Rate::from_mbps(10), Time::from_ms(1)) };
        let (mut net, a, b, port) = path(link);
        let flow = UdpFlow {
            from: a,
            to: b,
            start: Time::ZERO,
            stop: Some(Time::from_secs(5)),
            rate: Rate::from_mbps(15),
            payload: 972,
            pattern: Pattern::Poisson,
            ecn: Ecn::NotEct,
        };
        let flow = net.udp(flow).unwrap();
        net.run_until(Time::from_secs(3)).unwrap();
        assert!(net.depth(port).0 > 0);
        net.run_until(Time::from_secs(10)).unwrap();
        let udp = net.udp_statistics(flow).unwrap();
        let queue = *net.queue(port);
        assert_eq!(net.depth(port), (0, 0));
        assert_eq!(udp.sent, udp.received + queue.dropped, "{aqm:?}");
        assert_eq!(queue.packets, udp.received);
        assert!(queue.dropped > 1000, "{aqm:?} {}", queue.dropped);
        assert_eq!(net.packets(), 0);
    }
}

#[test]
fn a_queue_that_is_never_long_is_left_alone() {
    // Packets leave when they would leave a plain queue, too.
    let times = [None, Some(Aqm::Codel), Some(Aqm::Pie)].map(|aqm| {
        let (mut net, a, b, port) = path(Link { aqm, ..Link::new(Rate::from_mbps(100), Time::from_ms(1)) });
        let flow = UdpFlow {
            from: a,
            to: b,
            start: Time::ZERO,
            stop: Some(Time::from_secs(2)),
            rate: Rate::from_mbps(60),
            payload: 972,
            pattern: Pattern::Poisson,
            ecn: Ecn::NotEct,
        };
        let flow = net.udp(flow).unwrap();
        net.run_until(Time::from_secs(3)).unwrap();
        let (udp, queue) = (net.udp_statistics(flow).unwrap(), *net.queue(port));
        assert_eq!((udp.sent, queue.dropped), (udp.received, 0));
        assert!(queue.wait_ps > 0);
        (queue.wait_ps, queue.wait_max_ps, queue.busy_ps, udp.delay_max_ps)
    });
    assert_eq!(times[0], times[1]);
    assert_eq!(times[0], times[2]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut net = Network::new(1);
    let (a, r) = (net.host("a"), net.router("r"));
    let link = Link {
        aqm: Some(Aqm::Pie),
        mark_above: Some(3),
        ..Link::new(Rate::from_mbps(100), Time::from_ms(1))
    };
    let refused = net.link(a, r, link.clone(), link).unwrap_err().to_string();
    assert_eq!(refused, "the link a - r has queue management and a threshold for marks; give it one of them");
}
