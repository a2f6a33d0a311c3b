//! What somebody who looks at a network is shown, beside what recorders have.

use network::{FlowId, Link, Network, Pattern, PortId, TcpFlow, UdpFlow, View};
use transport::segment::Ecn;
use units::{Rate, Time};

/// Hosts a and b beside a router, and flows of UDP at 1, 2, ... Mbit/s; gives the ports and the flows.
fn network(udp: u64) -> (Network, Vec<PortId>, Vec<FlowId>) {
    let mut net = Network::new(1);
    let (a, r, b) = (net.host("a"), net.router("r"), net.host("b"));
    let link = || Link::new(Rate::from_mbps(200), Time::from_ms(1));
    let (a_r, r_a) = net.link(a, r, link(), link()).unwrap();
    let slow = Link::new(Rate::from_mbps(20), Time::from_ms(1));
    let (r_b, b_r) = net.link(r, b, if udp == 0 { slow } else { link() }, link()).unwrap();
    let load = |rate| UdpFlow {
        from: a,
        to: b,
        start: Time::ZERO,
        stop: None,
        rate: Rate::from_mbps(rate),
        payload: 1000,
        pattern: Pattern::Constant,
        ecn: Ecn::NotEct,
    };
    let flows = (1..=udp).map(|rate| net.udp(load(rate)).unwrap()).collect();
    if udp == 0 {
        net.tcp(TcpFlow::new(a, b, "reno")).unwrap();
    }
    (net, vec![a_r, r_a, r_b, b_r], flows)
}

#[test]
fn a_look_is_what_a_recorder_would_have() {
    let (mut net, ports, _) = network(0);
    net.record(Time::from_ms(250), true, &[ports[2]]).unwrap();
    let mut view = View::new(ports, 7);
    net.run_until(Time::from_ms(250)).unwrap();
    net.look(&mut view, &[], 10);
    net.run_until(Time::from_ms(500)).unwrap();
    let ([flow, rate, cwnd, srtt, retransmits], [port, wire, packets, delay, dropped]) =
        net.look(&mut view, &[], 10);
    let (recorded, queues) = net.recorded().next().unwrap();
    let recorded = recorded.unwrap();
    assert_eq!(recorded.time.last(), Some(&Time::from_ms(500).as_ps()));
    assert_eq!((flow, port), (vec![0.0], vec![0.0, 1.0, 2.0, 3.0]));
    assert_eq!(cwnd[0], *recorded.cwnd.last().unwrap() as f32);
    assert_eq!(srtt[0], (*recorded.srtt.last().unwrap() as f64 / 1e9) as f32);
    assert_eq!(retransmits[0], *recorded.retransmits.last().unwrap() as f32);
    let since = |counts: &[u64]| (counts[2] - counts[1]) as f32 * 8e-6 / 0.25;
    assert!((rate[0] - since(&recorded.bytes_received)).abs() < 1e-3);
    assert!((wire[2] - since(&queues.sent_bytes)).abs() < 1e-3 && wire[2] > 15.0);
    assert_eq!(packets[2], *queues.packets.last().unwrap() as f32);
    assert_eq!(delay[2], (*queues.delay.last().unwrap() as f64 / 1e9) as f32);
    assert_eq!(dropped[2], *queues.dropped.last().unwrap() as f32);
}

#[test]
fn udp_has_its_rate_and_a_second_look_at_one_time_keeps_it() {
    let (mut net, ports, _) = network(3);
    let mut view = View::new(ports, 7);
    let ([_, first, ..], _) = net.look(&mut view, &[], 10);
    assert!(first.iter().all(|rate| rate.is_nan()));
    net.run_until(Time::from_secs(1)).unwrap();
    let ([_, rates, cwnd, ..], _) = net.look(&mut view, &[], 10);
    let ([_, again, ..], _) = net.look(&mut view, &[], 10);
    for (wanted, rate) in [1.0, 2.0, 3.0].into_iter().zip(&rates) {
        // What is sold is that of IP packets, with headers of 28 bytes.
        assert!((rate - wanted * 1000.0 / 1028.0).abs() < 0.02 * wanted, "{rate} instead of {wanted}");
    }
    assert_eq!(rates, again);
    assert!(cwnd.iter().all(|cwnd| cwnd.is_nan()));
}

#[test]
fn a_look_is_at_so_many_and_all_have_their_turn() {
    let (mut net, ports, flows) = network(7);
    let mut view = View::new(ports, 7);
    let mut seen = Vec::new();
    for _ in 0..4 {
        let ([at, ..], [ports, ..]) = net.look(&mut view, &[flows[5]], 2);
        assert_eq!((at.len(), ports.len(), at[0]), (3, 2, 5.0));
        seen.extend_from_slice(&at[1..]);
    }
    assert_eq!(seen, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.0]);
    let ([at, ..], _) = net.look(&mut View::new(Vec::new(), 3), &[flows[5], flows[1]], 10);
    assert_eq!(at, [1.0, 0.0, 1.0, 2.0]);
    let mut empty = Network::new(1);
    let ([at, ..], _) = empty.look(&mut View::new(Vec::new(), 7), &[], 2);
    assert!(at.is_empty());
}
