//! Time per packet of the native code, beside loops written by hand that do the same work, and beside the interpreter; time to
//! compile and load. All in one run, the contenders in turns, the best of several rounds. Time is that of the thread on its core:
//! what other processes take of it in between does not count.
//!
//! `cargo bench -p dataplane --bench packets [-- [--json] [--once] [part...]]`

mod aqm;
mod by_hand;
mod crc;
mod dearest;
mod fair;
mod holds;
mod kinds;
mod load;
mod map;
mod meter;
mod monitor;
mod pacing;
mod setup;
mod stages;
mod stamp;
mod tables;

use dataplane::pipeline::{Output, Pipeline};
use rustix::time::{ClockId, clock_gettime};

/// Packets per turn of a contender.
const BATCH: usize = 1 << 15;

/// Measures one part of the report.
type Part = fn(&mut Vec<Figure>);

/// One figure of the report.
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    /// What it must reach: at most, or at least.
    goal: Option<(&'static str, f64)>,
}

/// Nanoseconds that this thread has run.
fn cpu_ns() -> f64 {
    let at = clock_gettime(ClockId::ThreadCPUTime);
    at.tv_sec as f64 * 1e9 + at.tv_nsec as f64
}

/// Turns of a contender, of which the fastest counts; one, where only what contenders do is to be compared.
fn rounds() -> usize {
    if std::env::args().any(|argument| argument == "--once") { 1 } else { 40 }
}

/// Nanoseconds per packet of each contender, run in turns.
fn race(contenders: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    race_for(rounds(), contenders)
}

/// As [`race`], with a number of turns.
fn race_for(rounds: usize, contenders: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; contenders.len()];
    for _ in 0..rounds {
        for (contender, best) in contenders.iter_mut().zip(&mut best) {
            let start = cpu_ns();
            contender();
            *best = best.min((cpu_ns() - start) / BATCH as f64);
        }
    }
    best
}

/// Runs all packets through a pipeline, giving each output's buffer back.
fn drive(pipeline: &mut Pipeline, packets: &[Vec<u8>], outputs: &mut Vec<Output>, count: usize) {
    for at in 0..count {
        pipeline.process(at as u64 * 1_000_000, 0, &packets[at % packets.len()], outputs);
        for output in outputs.drain(..) {
            std::hint::black_box(&output.bytes);
            pipeline.recycle(output.bytes);
        }
    }
}

/// As [`drive`], for a loop written by hand: frames come in and leave the same way.
fn drive_by_hand(
    packets: &[Vec<u8>],
    (outputs, pool): (&mut Vec<Output>, &mut Vec<Vec<u8>>),
    mut forward: impl FnMut(u64, &[u8], &mut Vec<u8>) -> Option<u32>,
) {
    for at in 0..BATCH {
        let mut bytes = pool.pop().unwrap_or_default();
        match forward(at as u64, &packets[at % packets.len()], &mut bytes) {
            Some(port) => outputs.push(Output { port, bytes, zero_len: 0 }),
            None => pool.push(bytes),
        }
        for mut output in outputs.drain(..) {
            std::hint::black_box(&output.bytes);
            output.bytes.clear();
            pool.push(output.bytes);
        }
    }
}

fn router(figures: &mut Vec<Figure>) {
    let routes = setup::routes();
    let packets = setup::packets(&routes);
    let program = setup::program("../../examples/p4/ipv4_router/ipv4_router.p4");
    let mut jit = Pipeline::compiled(program.clone(), 1).expect("the router compiles");
    let mut interpreter = Pipeline::interpreted(program, 1).unwrap();
    setup::add_routes(&mut jit, &routes);
    setup::add_routes(&mut interpreter, &routes);
    let mut hand = by_hand::Router::new(&routes);
    check(&mut jit, &packets, |bytes, out| hand.forward(bytes, out));
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let (mut out, mut pool) = (Vec::new(), Vec::new());
    let times = race(&mut [
        &mut || drive(&mut jit, &packets, &mut a, BATCH),
        &mut || drive_by_hand(&packets, (&mut out, &mut pool), |_, bytes, out| hand.forward(bytes, out)),
        // The interpreter runs a part of the batch.
        &mut || drive(&mut interpreter, &packets, &mut b, BATCH / 16),
    ]);
    let (jit, hand, interpreter) = (times[0], times[1], times[2] * 16.0);
    figures.extend([
        Figure { name: "router, native code", value: jit, unit: "ns/packet", goal: None },
        Figure { name: "router, native code", value: 1e3 / jit, unit: "Mpps", goal: Some(("at least", 8.0)) },
        Figure { name: "router, by hand", value: hand, unit: "ns/packet", goal: None },
        Figure {
            name: "router, native code / by hand",
            value: jit / hand,
            unit: "x",
            goal: Some(("at most", 1.25)),
        },
        Figure { name: "router, interpreter", value: interpreter, unit: "ns/packet", goal: None },
        Figure {
            name: "router, interpreter / native code",
            value: interpreter / jit,
            unit: "x",
            goal: Some(("at least", 20.0)),
        },
    ]);
}

fn registers(figures: &mut Vec<Figure>) {
    let packets = setup::packets(&setup::routes());
    let program = setup::program("benches/data/three_registers.p4");
    let mut jit = Pipeline::compiled(program, 1).expect("the program compiles");
    let mut hand = by_hand::Registers::new();
    let mut now = 0;
    check(&mut jit, &packets, |bytes, out| {
        now += 1;
        hand.forward(now - 1, bytes, out)
    });
    let mut a = Vec::new();
    let (mut out, mut pool) = (Vec::new(), Vec::new());
    let times = race(&mut [&mut || drive(&mut jit, &packets, &mut a, BATCH), &mut || {
        drive_by_hand(&packets, (&mut out, &mut pool), |now, bytes, out| hand.forward(now, bytes, out))
    }]);
    let (jit, hand) = (times[0], times[1]);
    figures.extend([
        Figure { name: "three registers, native code", value: jit, unit: "ns/packet", goal: None },
        Figure { name: "three registers, by hand", value: hand, unit: "ns/packet", goal: None },
        Figure {
            name: "three registers, native code / by hand",
            value: jit / hand,
            unit: "x",
            goal: Some(("at most", 1.5)),
        },
    ]);
}

/// The two must do the same, or their times say nothing.
fn check(
    pipeline: &mut Pipeline,
    packets: &[Vec<u8>],
    mut hand: impl FnMut(&[u8], &mut Vec<u8>) -> Option<u32>,
) {
    let mut forwarded = 0;
    for (at, packet) in packets.iter().enumerate() {
        let mut outputs = Vec::new();
        pipeline.process(at as u64 * 1_000_000, 0, packet, &mut outputs);
        let mut bytes = Vec::new();
        let port = hand(packet, &mut bytes);
        let expected: Vec<Output> =
            port.map(|port| Output { port, bytes, zero_len: 0 }).into_iter().collect();
        assert_eq!(outputs, expected);
        forwarded += outputs.len();
    }
    assert!(forwarded * 10 > packets.len() * 9, "most packets are forwarded");
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let (options, parts): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|a| a.starts_with('-'));
    let all: [(&str, Part); 14] = [
        ("router", router),
        ("registers", registers),
        ("meter", meter::measure),
        ("fair", fair::measure),
        ("monitor", monitor::measure),
        ("aqm", aqm::measure),
        ("pacing", pacing::measure),
        ("stamp", stamp::measure),
        ("kinds", kinds::measure),
        ("stages", stages::measure),
        ("tables", tables::measure),
        ("holds", holds::measure),
        ("dearest", dearest::measure),
        ("load", load::measure),
    ];
    let names = || all.map(|(name, _)| name).join(", ");
    if options.iter().any(|option| ["--help", "-h"].contains(&option.as_str())) {
        println!(
            "packets [--json] [--each] [--once] [part...]\n\nMeasures all parts, or those that are named: {}. --each: `dearest` shows each of its programs. \
             --once: one turn, in which native code has to do as what is written by hand does; its times say little.",
            names()
        );
        return;
    }
    // Cargo says `--bench`.
    let known = ["--json", "--each", "--once", "--bench"];
    if let Some(unknown) = options.iter().find(|option| !known.contains(&option.as_str())) {
        eprintln!("there is no option {unknown}; the only ones are --json, --each, --once and --help");
        std::process::exit(2);
    }
    if let Some(unknown) = parts.iter().find(|part| all.iter().all(|(name, _)| name != *part)) {
        eprintln!("there is no part {unknown}; give one of {}", names());
        std::process::exit(2);
    }
    let mut figures = Vec::new();
    for (name, measure) in all {
        if parts.is_empty() || parts.iter().any(|part| *part == name) {
            measure(&mut figures);
        }
    }
    if json {
        let items: Vec<String> = figures.iter().map(as_json).collect();
        println!("[\n{}\n]", items.join(",\n"));
        return;
    }
    for Figure { name, value, unit, goal } in &figures {
        let goal = match goal {
            Some((bound, limit)) => format!("   ({bound} {limit} {unit})"),
            None => String::new(),
        };
        println!("{name:<44} {value:>10.2} {unit}{goal}");
    }
}

/// Names and units need no escapes.
fn as_json(figure: &Figure) -> String {
    let Figure { name, value, unit, goal } = figure;
    let goal = match goal {
        Some((bound, limit)) => format!(", \"goal\": \"{bound} {limit}\""),
        None => String::new(),
    };
    format!("  {{\"name\": \"{name}\", \"value\": {value:.3}, \"unit\": \"{unit}\"{goal}}}")
}
