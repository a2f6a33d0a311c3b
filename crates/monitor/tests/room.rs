//! What senders have the monitor keep is bounded for all connections together.

use monitor::{Options, Rule, Watch};

#[path = "../../dataplane/tests/counting/mod.rs"]
mod counting;

use counting::HELD;

const RAW_IP: u32 = 101;
const RULES: [Rule; 4] = [Rule::Exact, Rule::Tshark, Rule::Tcptrace, Rule::Timestamps];
const MIB: u64 = 1 << 20;
/// A connection and its place in the table, without lists.
const CONNECTION: u64 = 2048;

fn options(rule: Rule, rtt_bytes: u64) -> Options {
    Options { files: Vec::new(), rule, most_flows: 1000, rtt_bytes, samples: None, second: None }
}

/// Segments of 1000 bytes, with timestamps that count them, and acknowledgments that echo these.
struct Senders {
    watch: Watch,
    options: Options,
    began: i64,
}

impl Senders {
    fn new(rule: Rule, rtt_bytes: u64) -> Senders {
        let (options, began) = (options(rule, rtt_bytes), HELD.get());
        Senders { watch: Watch::new(&options, 0).expect("no file"), options, began }
    }

    fn packet(&mut self, time: u64, ports: [u16; 2], seq: u32, ack: u32, payload: u16, stamps: [u32; 2]) {
        let from_client = ports[1] == 80;
        let mut packet = vec![0x45, 0];
        packet.extend((52 + payload).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        let ends: [u8; 2] = if from_client { [1, 2] } else { [2, 1] };
        ends.iter().for_each(|end| packet.extend([10, 0, 0, *end]));
        ports.iter().for_each(|port| packet.extend(port.to_be_bytes()));
        packet.extend(seq.to_be_bytes());
        packet.extend(ack.to_be_bytes());
        packet.extend([0x80, 0x10, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
        stamps.iter().for_each(|stamp| packet.extend(stamp.to_be_bytes()));
        let wire = 52 + u32::from(payload);
        self.watch.packet(RAW_IP, &packet, wire, time).expect("no file");
    }

    fn segment(&mut self, time: u64, connection: u16, number: u32) {
        self.packet(time, [1000 + connection, 80], 1000 * number, 1, 1000, [number + 1, 0]);
    }

    /// Acknowledges all before a segment, as the one before it came.
    fn acknowledge(&mut self, time: u64, connection: u16, number: u32) {
        self.packet(time, [80, 1000 + connection], 1, 1000 * number, 0, [1, number]);
    }

    fn held(&self) -> u64 {
        (HELD.get() - self.began) as u64
    }

    fn number(&self, name: &str) -> u64 {
        self.watch.seen().answer(&self.options)[name].as_u64().expect("a number")
    }

    fn flow(&self, port: u16) -> serde_json::Value {
        let answer = self.watch.seen().answer(&self.options);
        let flows = answer["flows"].as_array().expect("a list");
        flows.iter().find(|flow| flow["src_port"] == port).expect("the flow").clone()
    }

    fn warnings(self) -> Vec<String> {
        let mut seen = self.watch.end().expect("no file");
        seen.warn();
        seen.warnings
    }
}

#[test]
fn segments_that_wait() {
    for rule in RULES {
        let mut senders = Senders::new(rule, MIB);
        let (connections, segments) = (100, 2000);
        for connection in 0..connections {
            let begin = u64::from(connection) * u64::from(segments);
            senders.acknowledge(begin, connection, 0);
            (0..segments).for_each(|number| senders.segment(begin + u64::from(number), connection, number));
        }
        let all = u64::from(connections) * CONNECTION;
        assert!(senders.held() < MIB + all + MIB / 4, "{rule:?}: {}", senders.held());
        let unsampled = senders.number("unsampled_segments");
        assert!((100_000..200_000).contains(&unsampled), "{rule:?}: {unsampled}");

        // What is acknowledged gives its memory back, and others are sampled.
        (0..connections).for_each(|connection| senders.acknowledge(200_000, connection, segments));
        assert!(senders.held() < all + 100 * 256 * 24, "{rule:?}: {}", senders.held());
        senders.acknowledge(300_000, connections, 0);
        (0..segments).for_each(|number| senders.segment(300_000, connections, number));
        (1..=segments).for_each(|number| senders.acknowledge(400_000, connections, number));
        let samples = senders.flow(1000 + connections)["rtt_samples"].as_u64().expect("a number");
        assert!(samples >= u64::from(segments) - 1, "{rule:?}: {samples}");
        assert_eq!(senders.number("unsampled_segments"), unsampled);
        // The first of these had no memory yet.
        assert!(senders.number("samples_without_detail") <= u64::from(connections));
        let warnings = senders.warnings();
        let expected = format!(
            "{unsampled} segments give no round-trip time, as there was no memory to keep them; give more with --rtt-memory"
        );
        assert_eq!(warnings[0], expected, "{rule:?}");
    }
}

/// Of one direction some wait, however much memory there is.
#[test]
fn segments_of_one_direction_that_wait() {
    for rule in RULES {
        let mut senders = Senders::new(rule, 1 << 30);
        senders.acknowledge(0, 0, 0);
        (0..12_000).for_each(|number| senders.segment(u64::from(number) + 1, 0, number));
        (1..=12_000).for_each(|number| senders.acknowledge(20_000 + u64::from(number), 0, number));
        let samples = senders.flow(1000)["rtt_samples"].as_u64().expect("a number");
        assert!((9_990..=10_001).contains(&samples), "{rule:?}: {samples}");
    }
}

/// One segment after the other, with round-trip times of all sizes.
fn sizes(senders: &mut Senders, connection: u16, samples: u32) {
    let mut time = senders.watch.seen().last;
    senders.acknowledge(time, connection, 0);
    for number in 0..samples {
        senders.segment(time, connection, number);
        time += 1 << (number % 45);
        senders.acknowledge(time, connection, number + 1);
    }
}

#[test]
fn samples_of_many_sizes() {
    let mut senders = Senders::new(Rule::Exact, MIB);
    let (connections, samples) = (20, 5000);
    (0..connections).for_each(|connection| sizes(&mut senders, connection, samples));
    let all = u64::from(connections) * CONNECTION;
    assert!(senders.held() < MIB + all + MIB / 4, "{}", senders.held());
    let without = senders.number("samples_without_detail");
    assert!((10_000..100_000).contains(&without), "{without}");
    for connection in 0..connections {
        let flow = senders.flow(1000 + connection);
        assert_eq!((&flow["rtt_samples"], &flow["rtt_ms_min"]), (&samples.into(), &1e-6.into()));
    }
    let first = senders.flow(1000);
    let middle = first["rtt_ms_p50"].as_f64().expect("all are known") * 1e6;
    assert!((middle / f64::from(1 << 22) - 1.0).abs() < 0.001, "{middle}");
    assert!(senders.flow(1000 + connections - 1)["rtt_ms_p50"].is_null());
    let warnings = senders.warnings();
    assert!(
        warnings[0].starts_with(&format!("{without} round-trip times are in `rtt_samples`")),
        "{warnings:?}"
    );
}

#[test]
fn room_for_all() {
    let mut senders = Senders::new(Rule::Exact, 64 * MIB);
    (0..20).for_each(|connection| sizes(&mut senders, connection, 5000));
    assert_eq!(senders.number("samples_without_detail"), 0);
    assert_eq!(senders.number("unsampled_segments"), 0);
    assert_eq!(senders.warnings(), [""; 0]);
}

#[test]
fn idle_connections_make_room_where_memory_is_short() {
    let mut senders = Senders::new(Rule::Exact, MIB);
    (0..20).for_each(|connection| sizes(&mut senders, connection, 5000));
    let now = senders.watch.seen().last + 100;
    senders.segment(now, 900, 0);
    assert_eq!(senders.watch.make_room(50), 20);
    assert_eq!(senders.watch.make_room(50), 0);
    let before = senders.number("samples_without_detail");
    sizes(&mut senders, 901, 5000);
    assert_eq!(senders.number("samples_without_detail"), before);
}
