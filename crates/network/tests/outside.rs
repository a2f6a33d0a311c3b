//! Hosts that are not simulated: frames go in and come out as they are, when they should.

use std::path::Path;
use std::sync::Arc;

use commands::cli::Session;
use commands::load::Source;
use network::{Link, Network, NodeId, Outgoing, TcpFlow, ipv4, mac};
use p4lang::ir::Program;
use units::{Rate, Time};
use wire::packet::Written;

fn program(path: &str) -> Arc<Program> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    Source { path, ..Default::default() }.program().unwrap()
}

/// Two hosts at ports 3 and 7 of a switch that sends between them.
fn pair(link: &Link) -> (Network, NodeId, [NodeId; 2]) {
    let mut net = Network::new(1);
    let switch = net.switch("s", program("examples/p4/source_routing/source_routing.p4"), 1, None);
    let hosts = ["a", "b"].map(|name| net.host(name));
    for (host, number) in hosts.into_iter().zip([3, 7]) {
        net.link_at(host, switch, link.clone(), link.clone(), [None, Some(number)]).unwrap();
        net.set_outside(host, 0).unwrap();
    }
    (net, switch, hosts)
}

fn taken(net: &mut Network) -> Vec<Outgoing> {
    let mut out = Vec::new();
    net.take_outgoing(0, &mut out);
    out
}

/// An IPv4 packet of that many bytes from Ethernet on, from the first host to the second.
fn ip_frame(length: usize) -> Vec<u8> {
    let mut frame = [mac(1).as_slice(), &mac(0), &[8, 0, 0x45, 0]].concat();
    frame.extend_from_slice(&(length as u16 - 14).to_be_bytes());
    frame.extend_from_slice(&[0, 0, 0, 0, 64, 200, 0, 0]);
    frame.extend_from_slice(&ipv4(0));
    frame.extend_from_slice(&ipv4(1));
    frame.resize(length, 0xa5);
    frame
}

#[test]
fn frames_pass_a_router_as_they_are_and_when_they_should() {
    let mut net = Network::new(1);
    let (a, r, b) = (net.host("a"), net.router("r"), net.host("b"));
    let link = Link::new(Rate::from_mbps(8), Time::from_ms(1));
    for host in [a, b] {
        net.link(host, r, link.clone(), link.clone()).unwrap();
        net.set_outside(host, 0).unwrap();
    }
    net.run_through(Time::from_ms(5)).unwrap();
    let frame = ip_frame(1000);
    net.inject(a, &frame);
    // Nobody knows where these go.
    net.inject(a, &[]);
    net.inject(a, &[1; 13]);
    net.inject(a, &[0xff; 60]);
    assert_eq!(net.next_event(), Some(Time::from_ms(7)));
    net.run_through(Time::from_ms(20)).unwrap();
    // Twice a millisecond to send 1000 bytes, and one on the way.
    let packet = Box::new(Written::from(&frame[..]));
    assert_eq!(taken(&mut net), [Outgoing { host: b, at: Time::from_ms(9), packet }]);
    assert!(!net.has_outgoing(0));
    assert_eq!(net.packets(), 0);
}

#[test]
fn each_group_of_hosts_has_its_frames_and_its_events() {
    let mut net = Network::new(1);
    let link = Link::new(Rate::from_mbps(8), Time::from_ms(1));
    let (a, r, b) = (net.host("a"), net.router("r"), net.host("b"));
    for (group, host) in [(2, a), (5, b)] {
        net.link(host, r, link.clone(), link.clone()).unwrap();
        net.set_outside(host, group).unwrap();
    }
    assert_eq!(net.next_group(), None);
    net.run_through(Time::from_ms(5)).unwrap();
    net.inject(a, &ip_frame(1000));
    // It arrives at the router, which is nobody's.
    assert_eq!((net.next_event(), net.next_group()), (Some(Time::from_ms(7)), None));
    net.run_through(Time::from_ms(7)).unwrap();
    assert_eq!((net.next_event(), net.next_group()), (Some(Time::from_ms(9)), Some(5)));
    net.run_through(Time::from_ms(9)).unwrap();
    assert_eq!([0, 2, 5, 6].map(|group| net.has_outgoing(group)), [false, false, true, false]);
    let mut out = Vec::new();
    [0, 2, 6].into_iter().for_each(|group| net.take_outgoing(group, &mut out));
    assert!(out.is_empty());
    net.take_outgoing(5, &mut out);
    assert_eq!(out.iter().map(|frame| frame.host).collect::<Vec<_>>(), [b]);
    assert!(!net.has_outgoing(5));
}

#[test]
fn a_vlan_tag_does_not_count_for_the_mtu() {
    let mut net = Network::new(1);
    let (a, r) = (net.host("a"), net.router("r"));
    let link = Link::new(Rate::from_gbps(1), Time::ZERO);
    let (port, _) = net.link(a, r, link.clone(), link).unwrap();
    net.set_outside(a, 0).unwrap();
    let mut tagged = ip_frame(1514);
    tagged.splice(12..12, [0x81, 0, 0, 5]);
    for (frame, taken, refused) in [(ip_frame(1514), 1, 0), (ip_frame(1515), 1, 1), (tagged, 2, 1)] {
        net.inject(a, &frame);
        assert_eq!((net.queue(port).packets, net.queue(port).too_large), (taken, refused));
    }
}

#[test]
fn switch_ports_have_the_numbers_that_are_asked_for() {
    let (mut net, switch, _) = pair(&Link::new(Rate::from_gbps(1), Time::ZERO));
    let other = net.host("c");
    let link = Link::new(Rate::from_gbps(1), Time::ZERO);
    for (number, why) in [
        (7, "s has a port 7 already; give it another number"),
        (511, "s cannot have a port 511; the last is 510"),
    ] {
        let refused = net.link_at(other, switch, link.clone(), link.clone(), [None, Some(number)]);
        assert_eq!(refused.unwrap_err().to_string(), why);
    }
    // The next one without a number is behind the last.
    net.link(other, switch, link.clone(), link).unwrap();
    let config = |net: &mut Network, number| net.control(switch, |s, _| s.port_config(number)).unwrap();
    assert!(config(&mut net, 8).is_ok());
    let refused = config(&mut net, 5).unwrap_err().to_string();
    assert_eq!(refused, "there is no port 5; the ports are 3, 7, 8");
}

#[test]
fn frames_of_all_sizes_pass_a_switch() {
    let mut net = Network::new(1);
    let mut link = Link::new(Rate::from_gbps(10), Time::from_us(10));
    link.mtu = 9000;
    let switch = net.switch("s", program("examples/p4/learning_switch/learning_switch.p4"), 1, None);
    let hosts = [2, 500].map(|number| {
        let host = net.host("h");
        net.link_at(host, switch, link.clone(), link.clone(), [None, Some(number)]).unwrap();
        net.set_outside(host, 0).unwrap();
        host
    });
    let pipeline = net.pipeline(switch).unwrap();
    let mut session = Session { pipeline, now: 0 };
    session.execute("table_add destination forward 02:00:00:00:00:02 => 500").unwrap().unwrap();
    for length in [14, 15, 60, 64, 1514, 9014] {
        // No IPv4: a type of its own.
        let mut frame = [mac(1).as_slice(), &mac(0), &[0x88, 0xb5]].concat();
        frame.resize(length, length as u8);
        net.inject(hosts[0], &frame);
        let end = net.now() + Time::from_ms(1);
        net.run_through(end).unwrap();
        let out = taken(&mut net);
        assert_eq!(out.len(), 1, "{length}");
        assert!(out[0].host == hosts[1] && out[0].packet.bytes() == frame, "{length}");
    }
    // Too short for the parser, and not to be crashed by.
    for length in 0..14 {
        net.inject(hosts[0], &vec![0; length]);
    }
    net.run_through(Time::from_secs(1)).unwrap();
    assert_eq!(net.packets(), 0);
}

#[test]
fn flows_are_between_simulated_hosts() {
    let (mut net, _, [a, b]) = pair(&Link::new(Rate::from_gbps(1), Time::ZERO));
    let refused = net.tcp(TcpFlow::new(a, b, "cubic")).unwrap_err().to_string();
    assert_eq!(refused, "flow 0 ends at a, which is not simulated");
    let router = net.router("r");
    let refused = net.set_outside(router, 0).unwrap_err().to_string();
    assert_eq!(refused, "r is not a host; only a host can be outside");
}
