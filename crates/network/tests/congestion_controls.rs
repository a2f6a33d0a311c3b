//! The congestion controls in a dumbbell: each one's steady state against its source, and against what other simulators measured.

use network::{FlowId, Link, Network, PortId, QueueLimit, TcpFlow};
use transport::cc::State;
use transport::tcp::EcnMode;
use units::{Rate, Time};

/// Bytes of a full packet and of its payload.
const PACKET: f64 = 1500.0;
const PAYLOAD: f64 = 1448.0;

/// N flows through one bottleneck. Round trips are without queues; the queue is in packets.
struct Dumbbell {
    control: &'static str,
    flows: u64,
    rate: Rate,
    rtt: Time,
    queue: u64,
    mark_above: Option<u64>,
    ecn: EcnMode,
    seed: u64,
    /// Flow i starts at i/N of it.
    start_within: Time,
    /// Segmentation-offload bursts.
    offload: bool,
    /// A round trip of its own for each flow, in place of `rtt`.
    rtts: Vec<Time>,
}

impl Dumbbell {
    /// 100 Mbit/s, 20 ms, a queue of one BDP.
    fn new(control: &'static str) -> Dumbbell {
        Dumbbell {
            control,
            flows: 1,
            rate: Rate::from_mbps(100),
            rtt: Time::from_ms(20),
            queue: 167,
            mark_above: None,
            ecn: EcnMode::default(),
            seed: 1,
            start_within: Time::from_secs(1),
            offload: true,
            rtts: Vec::new(),
        }
    }

    /// The one that other simulators were measured on: 1 Gbit/s, 20 ms, a queue of one BDP.
    fn reference(control: &'static str, flows: u64) -> Dumbbell {
        Dumbbell { flows, rate: Rate::from_gbps(1), queue: 1667, ..Dumbbell::new(control) }
    }

    fn build(&self) -> Run {
        let mut net = Network::new(self.seed);
        let limit = |packets| QueueLimit { packets: Some(packets), bytes: None };
        let bottleneck = Link {
            limit: limit(self.queue),
            mark_above: self.mark_above,
            framing: 0,
            ..Link::new(self.rate, self.rtt * 4 / 10)
        };
        let (left, right) = (net.router("left"), net.router("right"));
        let (queue, _) = net.link(left, right, bottleneck.clone(), bottleneck).unwrap();
        let flows = (0..self.flows)
            .map(|i| {
                let rtt = self.rtts.get(i as usize).copied().unwrap_or(self.rtt);
                // What the bottleneck's two directions do not take, four wires have.
                let delay = (rtt - self.rtt * 8 / 10) / 4;
                let access = Link { limit: limit(100_000), framing: 0, ..Link::new(self.rate * 10, delay) };
                let (a, b) = (net.host(&format!("a{i}")), net.host(&format!("b{i}")));
                net.link(a, left, access.clone(), access.clone()).unwrap();
                net.link(right, b, access.clone(), access).unwrap();
                let start = self.start_within * i / self.flows;
                let mut flow = TcpFlow { start, ..TcpFlow::new(a, b, self.control) };
                flow.config.ecn = self.ecn;
                flow.receiver_config.ecn = self.ecn;
                if !self.offload {
                    flow.config.segmentation_offload = None;
                }
                net.tcp(flow).unwrap()
            })
            .collect();
        Run { net, queue, flows }
    }
}

struct Run {
    net: Network,
    queue: PortId,
    flows: Vec<FlowId>,
}

/// What was seen in a part of a run.
#[derive(Debug)]
struct Seen {
    /// Goodput of each flow and of all, in Mbit/s.
    each: Vec<f64>,
    goodput: f64,
    jain: f64,
    /// Milliseconds of queue, sampled each millisecond; and packets, at each sample.
    delay_ms: f64,
    depths: Vec<u64>,
    dropped: u64,
    marked: u64,
}

impl Run {
    fn received(&self) -> Vec<u64> {
        self.flows.iter().map(|f| self.net.outcome(*f).bytes_received).collect()
    }

    fn watch(&mut self, from: Time, to: Time) -> Seen {
        self.net.run_until(from).unwrap();
        let (before, queue) = (self.received(), *self.net.queue(self.queue));
        let (mut delay_ms, mut depths) = (0.0, Vec::new());
        for ms in from.as_ms()..to.as_ms() {
            self.net.run_until(Time::from_ms(ms + 1)).unwrap();
            delay_ms += self.net.backlog(self.queue).as_secs_f64() * 1e3;
            depths.push(self.net.depth(self.queue).0);
        }
        let seconds = (to - from).as_secs_f64();
        let rate = |(now, then): (u64, u64)| (now - then) as f64 * 8e-6 / seconds;
        let each: Vec<f64> = self.received().into_iter().zip(before).map(rate).collect();
        let goodput: f64 = each.iter().sum();
        let squares: f64 = each.iter().map(|r| r * r).sum();
        let after = *self.net.queue(self.queue);
        Seen {
            jain: goodput * goodput / (each.len() as f64 * squares),
            goodput,
            each,
            delay_ms: delay_ms / depths.len() as f64,
            depths,
            dropped: after.dropped - queue.dropped,
            marked: after.marked - queue.marked,
        }
    }
}

const fn s(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

/// Goodput that a link can carry.
fn most(rate: Rate) -> f64 {
    rate.as_mbps_f64() * PAYLOAD / PACKET
}

#[test]
fn each_alone_fills_the_link() {
    // DCTCP's K: above a seventh of the BDP (section 3.4 of its paper).
    for (control, mark_above) in [
        ("reno", None),
        ("cubic", None),
        ("htcp", None),
        ("vegas", None),
        ("dctcp", Some(30)),
        ("bbr", None),
        ("bbr3", None),
        ("prague", Some(20)),
    ] {
        let seen = Dumbbell { mark_above, ..Dumbbell::new(control) }.build().watch(s(5), s(20));
        let share = seen.goodput / most(Rate::from_mbps(100));
        assert!(share > 0.9, "{control} fills {share:.3} of the link");
        assert_eq!(seen.marked > 0, mark_above.is_some(), "{control}");
    }
}

#[test]
fn vegas_keeps_two_to_four_packets_waiting() {
    let seen = Dumbbell { offload: false, ..Dumbbell::new("vegas") }.build().watch(s(20), s(30));
    // An ACK for two packets sends two, and the packet that is being sent is not in the queue.
    let mean = seen.depths.iter().sum::<u64>() as f64 / seen.depths.len() as f64;
    assert!((1.5..=5.5).contains(&mean), "{mean} packets");
    assert_eq!(seen.dropped, 0);
}

#[test]
fn htcp_takes_less_time_to_a_full_queue_than_reno() {
    // After a loss at 2 BDP, Reno needs about 140 round trips of 20 to 40 ms; H-TCP's increase grows with time.
    let losses = |control| {
        let mut run = Dumbbell { rtt: Time::from_ms(100), queue: 833, ..Dumbbell::new(control) }.build();
        run.watch(s(20), s(120));
        run.net.outcome(run.flows[0]).statistics.fast_recoveries
    };
    let (htcp, reno) = (losses("htcp"), losses("reno"));
    assert!(htcp > 2 * reno, "{htcp} {reno}");
}

/// Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.3: the queue of N synchronised flows goes up to K + N and
/// down by A = 1/2 sqrt(2 N (C RTT + K)) packets from there.
#[test]
fn dctcp_queue_against_its_analysis() {
    // C RTT: packets of 1500 bytes.
    for (rate, rtt, k) in [
        (Rate::from_mbps(100), Time::from_ms(20), 60),
        (Rate::from_gbps(1), Time::from_ms(4), 120),
        (Rate::from_gbps(10), Time::from_us(100), 65),
    ] {
        let setup = Dumbbell {
            rate,
            rtt,
            queue: 2000,
            mark_above: Some(k),
            offload: false,
            ..Dumbbell::new("dctcp")
        };
        let seen = setup.build().watch(s(4), s(6));
        let bdp = rate.as_bps() as f64 * rtt.as_secs_f64() / (8.0 * PACKET);
        let amplitude = 0.5 * (2.0 * (bdp + k as f64)).sqrt();
        let mut depths = seen.depths.clone();
        depths.sort_unstable();
        // Without the bursts on the way to the queue.
        let (low, high) = (depths[depths.len() / 50] as f64, depths[depths.len() * 49 / 50] as f64);
        let what = format!("{rate}, {rtt}: queue {low} to {high} packets, K {k}, A {amplitude:.1}");
        assert!(seen.goodput > 0.99 * most(rate), "{what}: {} Mbit/s", seen.goodput);
        assert_eq!(seen.dropped, 0, "{what}");
        assert!(high > k as f64 - 2.0 && high < k as f64 + 4.0, "{what}");
        assert!(high - low > amplitude && high - low < 2.0 * amplitude, "{what}");
    }
}

/// ns-3's DCTCP on this dumbbell: 964.0 Mbit/s, 2.89 ms, no drops, 86 906 marks. Its bursts are single packets.
#[test]
fn ten_dctcp_flows_as_ns_3_has_them() {
    let setup = Dumbbell { mark_above: Some(280), offload: false, ..Dumbbell::reference("dctcp", 10) };
    let mut run = setup.build();
    let seen = run.watch(s(2), s(10));
    assert!((seen.goodput - 965.3).abs() < 2.0, "{}", seen.goodput);
    assert!((seen.delay_ms - 2.89).abs() < 0.1, "{}", seen.delay_ms);
    assert!(seen.jain > 0.8 && seen.dropped == 0, "{} {}", seen.jain, seen.dropped);
    let marked = run.net.queue(run.queue).marked as f64;
    assert!((marked / 86_906.0 - 1.0).abs() < 0.1, "{marked}");
}

/// ns-3's BBRv1 on this dumbbell: 957.7 Mbit/s, 0.64 ms. Its bursts are single packets; Linux's are 45 at this rate, of which BBR
/// allows for three: 135 packets more than the BDP are in flight when its queue counts as drained, 1.6 ms.
#[test]
fn one_bbr_flow() {
    let seen = Dumbbell::reference("bbr", 1).build().watch(s(2), s(10));
    assert!(seen.goodput > 955.0, "{}", seen.goodput);
    assert!(seen.delay_ms > 0.64 && seen.delay_ms < 0.64 + 1.62, "{}", seen.delay_ms);
}

#[test]
fn two_bbr_flows_share() {
    // With a queue of four BDP: with less than their two windows need, both lose all the time.
    let setup = Dumbbell { flows: 2, queue: 668, ..Dumbbell::new("bbr") };
    let seen = setup.build().watch(s(20), s(60));
    assert!(seen.jain > 0.95, "{}", seen.jain);
    assert!(seen.goodput > 0.95 * most(Rate::from_mbps(100)), "{}", seen.goodput);
    // Each has up to two BDP of its share in flight: about one BDP waits.
    assert!((10.0..35.0).contains(&seen.delay_ms), "{}", seen.delay_ms);
}

#[test]
fn bbr_probes_for_the_round_trip_every_ten_seconds() {
    let mut run = Dumbbell::new("bbr").build();
    let mut small = Vec::new();
    for ms in 0..45_000 {
        run.net.run_until(Time::from_ms(ms)).unwrap();
        let cwnd = run.net.connection(run.flows[0]).map_or(0, |c| c.flow().cwnd);
        if ms > 1_000 && cwnd <= 4 && small.last().is_none_or(|last| ms - last > 1_000) {
            small.push(ms);
        }
    }
    assert_eq!(small.len(), 4, "{small:?}");
    for pair in small.windows(2) {
        assert!((9_900..10_800).contains(&(pair[1] - pair[0])), "{small:?}");
    }
}

#[test]
fn bbr3_loses_less_than_bbr_in_a_shallow_queue() {
    // A tenth of the BDP, and two flows: version 1 does not heed losses, version 3 keeps them near its threshold of 2 %.
    let lost = |control| {
        let setup = Dumbbell { flows: 2, queue: 17, ..Dumbbell::new(control) };
        let mut run = setup.build();
        let seen = run.watch(s(5), s(25));
        let sent = run.net.queue(run.queue).packets as f64;
        assert!(seen.goodput > 0.8 * most(Rate::from_mbps(100)), "{control}: {}", seen.goodput);
        run.net.queue(run.queue).dropped as f64 / sent
    };
    let (first, third) = (lost("bbr"), lost("bbr3"));
    assert!(third < 0.025 && first > 3.0 * third, "{first:.4} {third:.4}");
}

#[test]
fn two_bbr3_flows_share() {
    let setup = Dumbbell { flows: 2, queue: 334, ..Dumbbell::new("bbr3") };
    let seen = setup.build().watch(s(20), s(80));
    assert!(seen.jain > 0.9, "{}", seen.jain);
    assert!(seen.goodput > 0.95 * most(Rate::from_mbps(100)), "{}", seen.goodput);
}

#[test]
fn bbr3_keeps_a_marked_queue_short() {
    // A path of 2 ms: marks count. Without them the queue holds what probing leaves.
    let queue = |mark_above, ecn| {
        let setup = Dumbbell {
            flows: 4,
            rtt: Time::from_ms(2),
            queue: 500,
            mark_above,
            ecn,
            ..Dumbbell::new("bbr3")
        };
        let seen = setup.build().watch(s(5), s(15));
        assert!(seen.goodput > 0.9 * most(Rate::from_mbps(100)), "{}", seen.goodput);
        seen.delay_ms
    };
    let plain = queue(None, EcnMode::Passive);
    for ecn in [EcnMode::On, EcnMode::Accurate] {
        let marked = queue(Some(5), ecn);
        assert!(marked < 0.8 * plain, "{ecn:?}: {marked} {plain}");
    }
}

/// draft-briscoe-iccrg-prague-congestion-control section 2.4.4: flows with round trips below 25 ms get about the same rate. With
/// DCTCP, as with Reno and CUBIC, the longer round trip gets less.
#[test]
fn prague_does_not_depend_on_the_round_trip_where_others_do() {
    let ratio = |control, mark_above| {
        // Ten flows: with two of them a step of marks finds always the same one.
        let rtts = [5, 20].map(Time::from_ms).repeat(5);
        let rtt = Time::from_ms(5);
        let setup = Dumbbell { flows: 10, rtt, rtts, mark_above, ..Dumbbell::new(control) };
        let seen = setup.build().watch(s(20), s(60));
        assert!(seen.goodput > 0.95 * most(Rate::from_mbps(100)), "{control}: {}", seen.goodput);
        let sum = |first: usize| seen.each.iter().skip(first).step_by(2).sum::<f64>();
        sum(0) / sum(1)
    };
    let prague = ratio("prague", Some(10));
    assert!((0.8..1.25).contains(&prague), "{prague}");
    let dctcp = ratio("dctcp", Some(10));
    assert!(dctcp > 3.0, "{dctcp}");
    // The queue of 20 ms, in both round trips, makes them 25 and 40 ms.
    let cubic = ratio("cubic", None);
    assert!(cubic > 1.2 && cubic < 2.0, "{cubic}");
}

/// The datacentre that TIMELY is for: 10 Gbit/s, 20 us.
#[test]
fn timely_keeps_the_queue_below_t_low() {
    for flows in [1, 4, 10] {
        let setup = Dumbbell {
            flows,
            rate: Rate::from_gbps(10),
            rtt: Time::from_us(20),
            queue: 5_000,
            start_within: Time::from_ms(10),
            ..Dumbbell::new("timely")
        };
        let seen = setup.build().watch(Time::from_ms(200), Time::from_ms(700));
        assert!(flows > 1 || seen.goodput > 0.9 * most(Rate::from_gbps(10)), "{}", seen.goodput);
        // Bursts of 16 KiB that meet are taken for congestion: the more flows, the more is lost by it.
        assert!(seen.goodput > 0.7 * most(Rate::from_gbps(10)), "{flows}: {}", seen.goodput);
        assert!(seen.jain > 0.85 && seen.dropped == 0, "{flows}: {} {}", seen.jain, seen.dropped);
        assert!(seen.delay_ms < 0.05, "{flows}: {} ms", seen.delay_ms);
    }
}

/// ns-3's Reno on this dumbbell: 3.06, 12.11 and 14.41 ms. Its bursts are single packets. With few losses in eight seconds it matters
/// when flows start: shifts of some milliseconds give 12.0 to 14.4 ms with ten flows, and 13.6 to 14.5 with fifty. So the mean of
/// five such runs is compared with ns-3's one.
#[test]
fn reno_as_ns_3_has_it() {
    const SHIFTS: [u64; 5] = [960, 980, 1000, 1020, 1040];
    for (flows, delay_ms, within) in [(1, 3.06, 0.1), (10, 12.11, 2.7), (50, 14.41, 0.8)] {
        let mut mean = 0.0;
        for start_within in SHIFTS.map(Time::from_ms) {
            let setup = Dumbbell { offload: false, start_within, ..Dumbbell::reference("reno", flows) };
            let seen = setup.build().watch(s(2), s(10));
            assert!((seen.goodput - 965.3).abs() < 2.0, "{flows}: {}", seen.goodput);
            mean += seen.delay_ms / SHIFTS.len() as f64;
        }
        assert!((mean - delay_ms).abs() < within, "{flows}: {mean} ms");
    }
}

/// Windows between losses of one flow: for each time without a loss, seconds since its beginning and packets; and the window before.
fn epochs(mut run: Run, end: Time) -> Vec<(u32, Vec<(f64, u32)>)> {
    let mut epochs: Vec<(u32, Vec<(f64, u32)>)> = Vec::new();
    let (mut start, mut open) = (Time::ZERO, false);
    let mut now = Time::ZERO;
    while now < end {
        now += Time::from_ms(5);
        run.net.run_until(now).unwrap();
        let Some(connection) = run.net.connection(run.flows[0]) else { continue };
        let flow = connection.flow();
        if flow.state != State::Open || flow.in_slow_start() {
            open = false;
            continue;
        }
        if !open {
            (start, open) = (now, true);
            epochs.push((flow.prior_cwnd, Vec::new()));
        }
        if let Some((_, samples)) = epochs.last_mut() {
            samples.push(((now - start).as_secs_f64(), flow.cwnd));
        }
    }
    epochs
}

/// RFC 5681 section 3.1, equation 3: one packet per round trip. With a queue that is never empty the round trip is the window
/// over the rate C, so that W^2 grows by 2 C per second.
#[test]
fn reno_grows_by_one_packet_per_round_trip() {
    let epochs = epochs(Dumbbell::new("reno").build(), s(40));
    assert!(epochs.len() > 4, "{}", epochs.len());
    let rate = 100e6 / (8.0 * PACKET);
    for (before, samples) in &epochs[1..epochs.len() - 1] {
        let first = f64::from(samples[0].1);
        assert!((first - f64::from(*before) / 2.0).abs() <= 2.0, "{before} {first}");
        for (t, cwnd) in samples {
            let expected = (first * first + 2.0 * rate * t).sqrt();
            assert!(
                (f64::from(*cwnd) / expected - 1.0).abs() < 0.02,
                "{t} s: {cwnd}, expected {expected:.1}"
            );
        }
    }
}

/// RFC 9438 section 4.2: W(t) = C (t - K)^3 + W_max, with K the time at which it is back at W_max; W_max is less than the window before
/// if that was less than the one before it (section 4.7).
#[test]
fn cubic_follows_its_window_function() {
    let setup = Dumbbell { rtt: Time::from_ms(100), queue: 833, ..Dumbbell::new("cubic") };
    let epochs = epochs(setup.build(), s(120));
    let mut last_max = 0.0;
    let mut compared = 0;
    for (index, (before, samples)) in epochs.iter().enumerate() {
        let before = f64::from(*before);
        let w_max = if before < last_max { before * (1.0 + 0.7) / 2.0 } else { before };
        last_max = w_max;
        if index == 0 || index + 1 == epochs.len() {
            continue;
        }
        let first = f64::from(samples[0].1);
        assert!((first / before - 0.7).abs() < 0.01, "{first} {before}");
        let k = ((w_max - first) / 0.4).cbrt();
        for (t, cwnd) in samples {
            let expected = 0.4 * (t - k).powi(3) + w_max;
            let cwnd = f64::from(*cwnd);
            assert!(
                (cwnd / expected - 1.0).abs() < 0.02,
                "{t:.2} s: {cwnd}, expected {expected:.1}, K {k:.2}"
            );
            compared += 1;
        }
    }
    assert!(compared > 5_000, "{compared}");
}

#[test]
fn random_phases_come_from_the_seed() {
    for control in ["bbr", "bbr3"] {
        let received = |seed| {
            let mut run = Dumbbell { flows: 2, seed, ..Dumbbell::new(control) }.build();
            run.net.run_until(s(10)).unwrap();
            run.received()
        };
        assert_eq!(received(5), received(5), "{control}");
        assert_ne!(received(5), received(6), "{control}");
    }
}
