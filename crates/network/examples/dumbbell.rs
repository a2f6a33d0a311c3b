//! N flows through one bottleneck: `dumbbell [N] [congestion control] [seed] [K]`, with CE marks above K packets.
//! Prints goodput, fairness, queue and cost.

use std::time::Instant;

use network::{Link, Network, QueueLimit, TcpFlow};
use units::{Rate, Time};

fn main() {
    let mut args = std::env::args().skip(1);
    let n: u64 = args.next().map_or(10, |a| a.parse().expect("number of flows"));
    let control = args.next().unwrap_or_else(|| "cubic".to_owned());
    let seed = args.next().map_or(1, |a| a.parse().expect("seed"));
    let mark_above = args.next().map(|a| a.parse().expect("packets"));
    let mut net = Network::new(seed);
    let limit = |packets| QueueLimit { packets: Some(packets), bytes: None };
    let access =
        Link { limit: limit(100_000), framing: 0, ..Link::new(Rate::from_gbps(10), Time::from_ms(1)) };
    let bottleneck = Link {
        limit: limit(1667),
        framing: 0,
        mark_above,
        ..Link::new(Rate::from_gbps(1), Time::from_ms(8))
    };
    let (left, right) = (net.router("left"), net.router("right"));
    let (queue, _) = net.link(left, right, bottleneck.clone(), bottleneck).unwrap();
    let flows: Vec<_> = (0..n)
        .map(|i| {
            let (a, b) = (net.host(&format!("a{i}")), net.host(&format!("b{i}")));
            net.link(a, left, access.clone(), access.clone()).unwrap();
            net.link(right, b, access.clone(), access.clone()).unwrap();
            net.tcp(TcpFlow { start: Time::from_secs(1) * i / n, ..TcpFlow::new(a, b, &control) }).unwrap()
        })
        .collect();
    let started = Instant::now();
    net.run_until(Time::from_secs(2)).unwrap();
    let before: Vec<u64> = flows.iter().map(|f| net.outcome(*f).bytes_received).collect();
    let queue_before = *net.queue(queue);
    let (mut backlog, samples) = (0.0, 8000);
    for i in 1..=samples {
        net.run_until(Time::from_secs(2) + Time::from_ms(i)).unwrap();
        backlog += net.backlog(queue).as_secs_f64();
    }
    let spent = started.elapsed().as_secs_f64();
    let rates: Vec<f64> = flows
        .iter()
        .zip(before)
        .map(|(f, b)| (net.outcome(*f).bytes_received - b) as f64 * 8.0 / 8e6)
        .collect();
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|r| r * r).sum();
    let q = *net.queue(queue);
    let wait = (q.wait_ps - queue_before.wait_ps) as f64 / (q.packets - queue_before.packets) as f64 * 1e-9;
    let (events, hops) = net.work();
    let count = |f: fn(&transport::tcp::Statistics) -> u64| {
        flows.iter().map(|i| f(&net.outcome(*i).statistics)).sum::<u64>()
    };
    println!(
        "{control} N={n}: goodput {sum:.1} Mbit/s, Jain {:.3}, queue {:.2} ms (per packet {wait:.2}), drops {}, marks {}, retransmits {}, timeouts {}, recoveries {}, undos {}, probes {}",
        sum * sum / (n as f64 * squares),
        backlog / samples as f64 * 1e3,
        q.dropped,
        q.marked,
        count(|s| s.retransmits),
        count(|s| s.timeouts),
        count(|s| s.fast_recoveries),
        count(|s| s.undos),
        count(|s| s.probes),
    );
    println!(
        "{spent:.3} s, {hops} hops, {:.1} ns/hop, {:.2} events/hop",
        spent * 1e9 / hops as f64,
        events as f64 / hops as f64
    );
}
