//! Links that become impaired, and whole again, with packets in their queues and on their wires: each of these comes out once, or is
//! counted as lost.

use network::{Aqm, GilbertElliott, Link, Network, NodeId, Pattern, PortId, QueueLimit, UdpFlow};
use proptest::prelude::*;
use transport::segment::Ecn;
use units::{Rate, Time};

const UNLIMITED: QueueLimit = QueueLimit { packets: None, bytes: None };

/// Two hosts, with a bottleneck in front of the second; gives the hosts and the bottleneck's port.
fn path(net: &mut Network, bottleneck: Link) -> (NodeId, NodeId, PortId) {
    let (a, r, b) = (net.host("a"), net.router("r"), net.host("b"));
    let fast = Link { limit: UNLIMITED, ..Link::new(Rate::from_gbps(100), Time::ZERO) };
    net.link(a, r, fast.clone(), fast.clone()).unwrap();
    let (port, _) = net.link(r, b, bottleneck, fast).unwrap();
    (a, b, port)
}

/// Packets of 1000 bytes.
fn datagrams(from: NodeId, to: NodeId, rate: Rate, stop: Time) -> UdpFlow {
    let (start, pattern) = (Time::ZERO, Pattern::Constant);
    UdpFlow { from, to, start, stop: Some(stop), rate, payload: 972, pattern, ecn: Ecn::NotEct }
}

/// A packet each millisecond, 21 in all, over a wire of 10 ms on which each takes 0.1 ms: six are sent by 5.5 ms.
#[test]
fn what_is_on_a_wire_that_becomes_impaired_arrives_as_it_would_have() {
    for aqm in [None, Some(Aqm::FqCodel)] {
        let whole = Link { framing: 0, aqm, ..Link::new(Rate::from_mbps(80), Time::from_ms(10)) };
        let lossy = Link { loss: 1.0, ..whole.clone() };
        let doubling = Link { duplicate: 1.0, ..whole.clone() };
        for (impaired, received, lost) in [(lossy, 6, 15), (doubling, 6 + 2 * 15, 0)] {
            let mut net = Network::new(1);
            let (a, b, port) = path(&mut net, whole.clone());
            let flow = net.udp(datagrams(a, b, Rate::from_mbps(8), Time::from_us(20_500))).unwrap();
            net.change_link(Time::from_us(5_500), port, impaired).unwrap();
            net.run_until(Time::from_ms(60)).unwrap();
            let statistics = net.udp_statistics(flow).unwrap();
            assert_eq!((statistics.sent, statistics.received), (21, received), "{aqm:?}");
            assert_eq!((net.queue(port).lost, statistics.reordered, net.packets()), (lost, 0, 0));
            let delay = Time::from_ps(statistics.delay_max_ps);
            assert!(delay > Time::from_us(10_100) && delay < Time::from_us(10_101), "{delay}");
        }
    }
}

#[test]
fn what_is_on_a_wire_that_loses_no_more_arrives_as_it_would_have() {
    for aqm in [None, Some(Aqm::FqCodel)] {
        let mut net = Network::new(1);
        let whole = Link { framing: 0, aqm, ..Link::new(Rate::from_mbps(80), Time::from_ms(10)) };
        let (a, b, port) = path(&mut net, Link { loss: 1.0, ..whole.clone() });
        let flow = net.udp(datagrams(a, b, Rate::from_mbps(8), Time::from_us(20_500))).unwrap();
        net.change_link(Time::from_us(5_500), port, whole).unwrap();
        net.run_until(Time::from_ms(60)).unwrap();
        let statistics = net.udp_statistics(flow).unwrap();
        assert_eq!((statistics.sent, statistics.received, net.queue(port).lost), (21, 15, 6), "{aqm:?}");
        assert_eq!((statistics.reordered, net.packets()), (0, 0));
    }
}

/// Twenty packets of 1 ms each come within 2 ms. What waits when the wire becomes lossy is sent over a lossy wire; and when the wire
/// becomes whole again, what has been lost by then stays lost.
#[test]
fn what_waits_is_sent_over_the_wire_as_it_is_then() {
    for managed in [false, true] {
        let mut net = Network::new(1);
        let aqm = managed.then_some(Aqm::FqCodel);
        let link = Link { framing: 0, aqm, ..Link::new(Rate::from_mbps(8), Time::from_ms(10)) };
        let (a, b, port) = path(&mut net, link.clone());
        let flow = net.udp(datagrams(a, b, Rate::from_mbps(80), Time::from_us(1_950))).unwrap();
        net.change_link(Time::from_us(5_500), port, Link { loss: 1.0, ..link }).unwrap();
        net.run_until(Time::from_ms(60)).unwrap();
        let statistics = net.udp_statistics(flow).unwrap();
        // Five have been sent and one is being sent.
        assert_eq!((statistics.sent, statistics.received, net.queue(port).lost), (20, 6, 14), "{managed}");
        assert_eq!((statistics.reordered, net.packets()), (0, 0));
    }
}

/// A queue of 5 packets is full before, at and after each change, and holds what it holds.
#[test]
fn a_queue_holds_its_limit_through_changes() {
    let limit = QueueLimit { packets: Some(5), bytes: None };
    let whole = Link { framing: 0, limit, ..Link::new(Rate::from_mbps(8), Time::from_ms(10)) };
    let jittery = Link { jitter: Time::from_us(1), ..whole.clone() };
    for links in [[&whole, &jittery], [&jittery, &whole]] {
        let mut net = Network::new(1);
        let (a, b, port) = path(&mut net, links[0].clone());
        let flow = net.udp(datagrams(a, b, Rate::from_mbps(80), Time::from_ms(100))).unwrap();
        for (change, at) in (1..).zip([20_500, 40_500, 40_501, 40_502, 60_500]) {
            net.change_link(Time::from_us(at), port, links[change % 2].clone()).unwrap();
        }
        for at in 1..100 {
            net.run_until(Time::from_us(1000 * at + 550)).unwrap();
            assert_eq!(net.depth(port), (5, 5000), "after {at} ms");
        }
        net.run_until(Time::from_ms(200)).unwrap();
        let (statistics, queue) = (net.udp_statistics(flow).unwrap(), net.queue(port));
        assert_eq!(statistics.received, queue.packets);
        assert_eq!((statistics.sent, net.packets()), (statistics.received + queue.dropped, 0));
        // A packet each millisecond until the flow ends, and then what is left in the queue.
        assert_eq!(statistics.received, 100 + 5);
        assert_eq!(statistics.reordered, 0);
    }
}

/// A plain wire whose first packet waits behind one that was sent while the wire lost packets; then its delay becomes longer.
#[test]
fn what_waits_behind_a_packet_of_an_impaired_wire_arrives_after_the_next_change() {
    let wire = |mbps, delay_us, loss| Link {
        loss,
        limit: QueueLimit { packets: Some(2), bytes: None },
        ..Link::new(Rate::from_mbps(mbps), Time::from_us(delay_us))
    };
    let mut net = Network::new(0);
    let (a, b, port) = path(&mut net, wire(40, 0, 0.0));
    let flow = net.udp(datagrams(a, b, Rate::from_mbps(7), Time::from_ms(50))).unwrap();
    for (at, link) in [(13_601, wire(1, 0, 0.3)), (14_401, wire(1, 0, 0.0)), (15_201, wire(1, 1, 0.0))] {
        net.change_link(Time::from_us(at), port, link).unwrap();
    }
    net.run_until(Time::from_secs(1)).unwrap();
    let (statistics, queue) = (net.udp_statistics(flow).unwrap(), *net.queue(port));
    assert_eq!(statistics.received + queue.lost + queue.dropped, statistics.sent);
    assert_eq!((net.packets(), net.depth(port)), (0, (0, 0)));
}

fn any_link() -> impl Strategy<Value = Link> {
    let chain = GilbertElliott { to_bad: 0.1, to_good: 0.3, loss_good: 0.0, loss_bad: 0.7 };
    let rate = prop::sample::select(vec![1u64, 8, 40, 200]);
    let impaired = prop_oneof![
        3 => Just((0.0, None, 0u64, 0.0)),
        1 => Just((0.3, None, 0, 0.0)),
        1 => Just((0.0, Some(chain), 0, 0.0)),
        1 => Just((0.0, None, 4_000, 0.0)),
        1 => Just((0.0, None, 0, 0.2)),
        1 => Just((0.1, None, 2_000, 0.1)),
    ];
    (rate, 0u64..30_000, 2u64..60, impaired).prop_map(|(rate, delay, limit, impaired)| {
        let (loss, burst_loss, jitter, reorder) = impaired;
        Link {
            loss,
            burst_loss,
            jitter: Time::from_us(jitter),
            reorder,
            reorder_by: Time::from_ms(7),
            limit: QueueLimit { packets: Some(limit), bytes: None },
            ..Link::new(Rate::from_mbps(rate), Time::from_us(delay))
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// A wire changes at random; each packet is received once, lost or dropped. Among plain wires alone none overtakes another.
    #[test]
    fn each_packet_comes_once_through_changes(
        seed: u64,
        links in prop::collection::vec((0u64..60_000, any_link()), 2..8),
        managed: bool,
        rate in 4u64..40,
    ) {
        let mut net = Network::new(seed);
        let aqm = managed.then_some(Aqm::FqCodel);
        let (a, b, port) = path(&mut net, Link { aqm, ..links[0].1.clone() });
        let flow = net.udp(datagrams(a, b, Rate::from_mbps(rate), Time::from_ms(50))).unwrap();
        for (at, link) in &links[1..] {
            net.change_link(Time::from_us(*at), port, Link { aqm, ..link.clone() }).unwrap();
        }
        net.run_until(Time::from_secs(20)).unwrap();
        let (statistics, queue) = (net.udp_statistics(flow).unwrap(), *net.queue(port));
        prop_assert_eq!(statistics.received + queue.lost + queue.dropped, statistics.sent, "{:?}", queue);
        // A packet that came twice would have been freed twice.
        prop_assert_eq!((net.packets(), net.depth(port)), (0, (0, 0)));
        let keeps_order = |link: &Link| {
            link.jitter.is_zero() && link.reorder == 0.0 && link.loss == 0.0 && link.burst_loss.is_none()
        };
        prop_assert!(statistics.reordered == 0 || !links.iter().all(|(_, link)| keeps_order(link)));
    }
}
