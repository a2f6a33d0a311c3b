//! What hosts do: pages, transfers with the network to themselves, longer ways, many short flows.

use network::{Link, Network, NodeId, PageFlow, Pattern, QueueLimit, TcpFlow, UdpFlow};
use transport::segment::Ecn;
use units::{Bytes, Rate, Time};

/// Two hosts over a router; the link to the second has this rate and delay.
fn path(net: &mut Network, rate: Rate, delay: Time) -> (NodeId, NodeId) {
    let (a, r, b) = (net.host("a"), net.router("r"), net.host("b"));
    let wire = |rate, delay| Link { limit: QueueLimit::default(), ..Link::new(rate, delay) };
    let fast = wire(Rate::from_gbps(10), Time::from_us(1));
    net.link(a, r, fast.clone(), fast).unwrap();
    net.link(r, b, wire(rate, delay), wire(rate, delay)).unwrap();
    (a, b)
}

fn page(a: NodeId, b: NodeId, persistent: bool) -> PageFlow {
    PageFlow {
        flow: TcpFlow { start: Time::from_ms(100), ..TcpFlow::new(a, b, "cubic") },
        request: Bytes::new(500),
        response: Bytes::new(10_000),
        objects: 5,
        think: Time::from_ms(300),
        persistent,
    }
}

#[test]
fn a_page_over_one_connection() {
    let mut net = Network::new(1);
    let (client, server) = path(&mut net, Rate::from_gbps(1), Time::from_ms(10));
    let (id, flows) = net.page(page(client, server, true)).unwrap();
    net.run_until(Time::from_secs(10)).unwrap();
    let exchanges = net.exchanges(id);
    assert_eq!((exchanges.len(), flows.len()), (5, 1));
    for (i, exchange) in exchanges.iter().enumerate() {
        let took = exchange.answered.unwrap() - exchange.asked;
        // A round trip of 20 ms, with the handshake two; 10 kB fit into the first window.
        let round_trips = if i == 0 { 2 } else { 1 };
        let extra = took - Time::from_ms(20 * round_trips);
        assert!(extra < Time::from_us(400), "{i}: {took}");
        if i > 0 {
            assert_eq!(exchange.asked - exchanges[i - 1].answered.unwrap(), Time::from_ms(300));
        }
    }
    let outcome = net.outcome(flows[0]);
    assert_eq!(outcome.started, Some(Time::from_ms(100)));
    assert_eq!(outcome.finished, exchanges[4].answered);
    // What the client read, and what the server sent: 7 segments each time.
    assert_eq!(outcome.bytes_received, 50_000);
    assert!((37..50).contains(&outcome.statistics.segments_sent), "{:?}", outcome.statistics);
    assert!(net.connection(flows[0]).is_none());
    assert_eq!(net.packets(), 0);
}

#[test]
fn a_page_with_a_connection_for_each_object() {
    let mut net = Network::new(1);
    let (client, server) = path(&mut net, Rate::from_gbps(1), Time::from_ms(10));
    let page = PageFlow { think: Time::ZERO, ..page(client, server, false) };
    let (id, flows) = net.page(page).unwrap();
    net.run_until(Time::from_secs(10)).unwrap();
    let exchanges = net.exchanges(id);
    assert_eq!((exchanges.len(), flows.len()), (5, 5));
    for (exchange, flow) in exchanges.iter().zip(&flows) {
        let took = exchange.answered.unwrap() - exchange.asked;
        assert!(took > Time::from_ms(40) && took < Time::from_us(40_400), "{took}");
        assert_eq!(exchange.flow, *flow);
        assert_eq!(net.outcome(*flow).bytes_received, 10_000);
        assert_eq!(net.outcome(*flow).started, Some(exchange.asked));
    }
    assert_eq!(net.packets(), 0);
}

#[test]
fn a_page_gets_its_answers_over_a_bad_wire() {
    let mut net = Network::new(3);
    let (client, r, server) = (net.host("a"), net.router("r"), net.host("b"));
    let bad = Link { loss: 0.05, duplicate: 0.01, ..Link::new(Rate::from_mbps(20), Time::from_ms(5)) };
    net.link(client, r, bad.clone(), bad.clone()).unwrap();
    net.link(r, server, bad.clone(), bad).unwrap();
    let mut pages = Vec::new();
    for persistent in [true, false] {
        let page = PageFlow { response: Bytes::new(40_001), objects: 40, ..page(client, server, persistent) };
        pages.push(net.page(page).unwrap());
    }
    net.run_until(Time::from_secs(600)).unwrap();
    for (id, flows) in pages {
        assert!(net.exchanges(id).iter().all(|e| e.answered.is_some()) && net.exchanges(id).len() == 40);
        let received: u64 = flows.iter().map(|f| net.outcome(*f).bytes_received).sum();
        assert_eq!(received, 40 * 40_001);
    }
    assert_eq!(net.packets(), 0);
}

#[test]
fn a_transfer_alone_takes_its_ideal_time() {
    for size in [1, 1448, 1449, 14_480, 14_000] {
        for (rate, delay) in
            [(Rate::from_mbps(10), Time::from_us(1)), (Rate::from_gbps(40), Time::from_ms(3))]
        {
            let mut net = Network::new(1);
            let (a, b) = path(&mut net, rate, delay);
            let start = Time::from_ms(7);
            let size = Some(Bytes::new(size));
            let flow = net.tcp(TcpFlow { start, size, ..TcpFlow::new(a, b, "cubic") }).unwrap();
            net.run_until(Time::from_secs(10)).unwrap();
            let outcome = net.outcome(flow);
            assert_eq!(outcome.finished.unwrap() - start, outcome.ideal.unwrap(), "{size:?} {rate} {delay}");
        }
    }
}

#[test]
fn a_flow_with_a_longer_way() {
    let mut net = Network::new(1);
    let (a, b) = path(&mut net, Rate::from_gbps(1), Time::from_ms(1));
    let flows: Vec<_> = [0, 30]
        .map(|ms| {
            let size = Some(Bytes::new(1000));
            let flow = TcpFlow { size, extra_delay: Time::from_ms(ms), ..TcpFlow::new(a, b, "reno") };
            net.tcp(flow).unwrap()
        })
        .into();
    net.run_until(Time::from_secs(1)).unwrap();
    let took = |i: usize| net.outcome(flows[i]).finished.unwrap();
    // SYN and data wait, SYN-ACK does not.
    let more = took(1) - took(0);
    assert!(more <= Time::from_ms(60) && more > Time::from_us(59_950), "{more}");
    assert_eq!(net.outcome(flows[1]).ideal.unwrap(), took(1));
}

#[test]
fn many_short_flows_come_and_go() {
    let mut net = Network::new(1);
    let (a, b) = path(&mut net, Rate::from_gbps(10), Time::from_us(5));
    let flows: Vec<_> = (0..100_000u64)
        .map(|i| {
            let (start, size) = (Time::from_us(10 * i), Some(Bytes::new(1 + i % 5000)));
            net.tcp(TcpFlow { start, size, ..TcpFlow::new(a, b, "cubic") }).unwrap()
        })
        .collect();
    net.run_until(Time::from_secs(2)).unwrap();
    for (i, flow) in flows.iter().enumerate() {
        let outcome = net.outcome(*flow);
        assert_eq!(outcome.bytes_received, 1 + i as u64 % 5000);
        // Flows hardly meet: each takes about its ideal time.
        let took = outcome.finished.unwrap() - outcome.started.unwrap();
        assert!(took >= outcome.ideal.unwrap() && took < outcome.ideal.unwrap() + Time::from_us(20));
        assert!(net.connection(*flow).is_none());
    }
    assert_eq!(net.packets(), 0);
}

#[test]
fn a_page_that_makes_no_sense() {
    let mut net = Network::new(1);
    let (a, b) = path(&mut net, Rate::from_gbps(1), Time::from_ms(1));
    for wrong in [
        PageFlow { objects: 0, ..page(a, b, true) },
        PageFlow { request: Bytes::new(0), ..page(a, b, true) },
        PageFlow { response: Bytes::new(0), ..page(a, b, false) },
    ] {
        assert!(net.page(wrong).unwrap_err().to_string().starts_with("a page asks for nothing"));
    }
    let error = net.page(page(a, a, true)).unwrap_err().to_string();
    assert_eq!(error, "flow 0 goes from a to itself");
}

#[test]
fn a_run_in_small_portions_is_the_same() {
    // Four hosts send every millisecond, so that many events fall together at each end.
    let run = |events: Option<u64>| {
        let mut net = Network::new(1);
        for _ in 0..4 {
            let (a, b) = path(&mut net, Rate::from_mbps(80), Time::from_ms(1));
            net.udp(UdpFlow {
                from: a,
                to: b,
                start: Time::ZERO,
                stop: None,
                rate: Rate::from_mbps(8),
                payload: 972,
                pattern: Pattern::Constant,
                ecn: Ecn::NotEct,
            })
            .unwrap();
        }
        let mut work = Vec::new();
        for ms in 1..=200 {
            let end = Time::from_ms(ms);
            match events {
                None => drop(net.run_until(end).unwrap()),
                Some(events) => while net.run_some(end, events).unwrap() < end {},
            }
            work.push(net.work());
        }
        work
    };
    let whole = run(None);
    assert!(whole[199].0 > 1000);
    for events in [1, 2, 7, 1000] {
        assert_eq!(run(Some(events)), whole, "{events} at a time");
    }
}
