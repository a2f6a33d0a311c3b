//! What comes out of a token bucket, exactly: the policer of the reference experiments under a load above its rate.

use std::path::Path;

use commands::cli::Session;
use commands::load::Source;
use network::{Link, Network, NodeId, Pattern, UdpFlow};
use transport::segment::Ecn;
use units::{Rate, Time};

/// Two hosts on a switch that polices what the first one sends: Mbit/s, and a bucket of so many bits.
fn policed(rate: u64, burst: u64) -> (Network, NodeId, NodeId, NodeId) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tidegate/systems/reference/policer.p4");
    let program = Source { path, ..Default::default() }.program().unwrap();
    let mut net = Network::new(1);
    let (a, b) = (net.host("a"), net.host("b"));
    let switch = net.switch("policer", program, 1, None);
    for host in [a, b] {
        let wire = Link::new(Rate::from_gbps(10), Time::from_us(10));
        net.link(host, switch, wire.clone(), wire).unwrap();
    }
    let mut session = Session { pipeline: net.pipeline(switch).unwrap(), now: 0 };
    for (register, value) in [("rate", rate), ("burst", burst), ("tokens", burst)] {
        session.execute(&format!("register_write PolicerIngress.{register} 0 {value}")).unwrap().unwrap();
    }
    (net, a, b, switch)
}

fn datagrams(from: NodeId, to: NodeId, rate: Rate, start: Time, stop: Time) -> UdpFlow {
    let (pattern, ecn) = (Pattern::Constant, Ecn::NotEct);
    UdpFlow { from, to, start, stop: Some(stop), rate, payload: 972, pattern, ecn }
}

/// Of a frame: 972 bytes of payload, UDP, IPv4 and Ethernet.
const FRAME: u64 = (972 + 28 + 14) * 8;

#[test]
fn rate_times_time_and_one_bucket_come_out() {
    for (rate, burst) in [(40, 1_048_576), (1, 8 * FRAME), (399, 3 * FRAME), (800, 100_000)] {
        let (mut net, a, b, switch) = policed(rate, burst);
        let (start, stop) = (Time::from_ms(5), Time::from_ms(2005));
        let flow = net.udp(datagrams(a, b, Rate::from_gbps(1), start, stop)).unwrap();
        net.run_until(Time::from_secs(3)).unwrap();
        let udp = net.udp_statistics(flow).unwrap();
        let mut session = Session { pipeline: net.pipeline(switch).unwrap(), now: 0 };
        let mut read = |what: &str| -> u64 {
            let answer = session.execute(&format!("register_read PolicerIngress.{what} 0")).unwrap().unwrap();
            answer.rsplit(' ').next().unwrap().parse().unwrap()
        };
        let (left, last) = (read("tokens"), read("filled"));
        // From the first packet on the bucket is never full again: what came in is the bucket, and the rate since then.
        let first = (start + Time::from_us(10) + Time::from_ns(811)).as_us();
        assert_eq!(udp.received * FRAME + left, burst + rate * (last - first), "{rate} Mbit/s");
        assert!(left < FRAME);
        // It policed: more came than passed.
        assert!(udp.sent > 240_000 && udp.received < udp.sent, "{udp:?}");
    }
}

#[test]
fn below_the_rate_all_comes_out_and_a_pause_fills_one_bucket() {
    let burst = 20 * FRAME;
    let (mut net, a, b, _) = policed(100, burst);
    let below = net.udp(datagrams(a, b, Rate::from_mbps(98), Time::ZERO, Time::from_ms(500))).unwrap();
    // After half a second: 30 packets at once find a full bucket, and what comes in meanwhile: less than a packet.
    let at = |ms| Time::from_ms(ms);
    let again =
        net.udp(datagrams(a, b, Rate::from_gbps(10), at(1000), at(1000) + Time::from_us(24))).unwrap();
    net.run_until(Time::from_secs(2)).unwrap();
    let [below, again] = [below, again].map(|flow| net.udp_statistics(flow).unwrap());
    assert_eq!(below.received, below.sent);
    assert_eq!((again.sent, again.received), (30, 20));
}
