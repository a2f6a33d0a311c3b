//! The simulator's speed, beside ns-2 where it is installed: `cargo bench -p network --bench speed [-- --json]`.
//!
//! User CPU time on one core, the least of three runs, contenders in turns. Several threads beside one: time by the clock.

mod ns2;
mod scenarios;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::{Command, Stdio};
use std::time::Instant;

use network::{FlowId, Network};
use units::Time;

/// User CPU seconds of this process, and of its children that have ended, from `/proc` in ticks of 10 ms.
fn cpu(field: usize) -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may hold spaces.
    let after: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    after.get(field).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0) / 100.0
}

pub fn children_cpu() -> f64 {
    cpu(13)
}

fn own_cpu() -> f64 {
    // Nanoseconds on a processor, where the kernel counts them; ticks elsewhere.
    std::fs::read_to_string("/proc/self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .map_or_else(|| cpu(11), |ns| ns * 1e-9)
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// Prints what is measured: for a reader, or as a row of JSON on a line.
struct Report {
    json: bool,
}

impl Report {
    fn line(&self, what: &str, value: f64, unit: &str, goal: &str) {
        if self.json {
            println!("{{\"what\":{what:?},\"value\":{value},\"unit\":{unit:?}}}");
        } else {
            println!("{what:<52} {value:>10.2} {unit}{goal}");
        }
    }
}

/// The least of three runs; CPU seconds and packets carried.
fn least(mut run: impl FnMut() -> u64) -> (f64, u64) {
    let mut best = (f64::MAX, 0);
    for _ in 0..3 {
        let before = own_cpu();
        let hops = run();
        best = (best.0.min(own_cpu() - before), hops);
    }
    best
}

/// What came of all flows.
fn outcomes(net: &Network, flows: &[FlowId]) -> u64 {
    let mut hash = DefaultHasher::new();
    flows.iter().for_each(|flow| format!("{:?}", net.outcome(*flow)).hash(&mut hash));
    hash.finish()
}

/// The least times by the clock on one thread and on several, in turns, and packets carried; what came of it is to be the same.
fn on_threads(threads: usize, make: impl Fn() -> (Network, Vec<FlowId>), until: Time) -> ([f64; 2], u64) {
    let mut best = [f64::MAX; 2];
    let mut seen = None;
    for turn in 0..10 {
        let (mut net, flows) = make();
        let threads = [1, threads][turn % 2];
        net.set_threads(threads).expect("a number of threads");
        let before = Instant::now();
        net.run_until(until).expect("routes");
        let (used, why) = net.threads();
        assert_eq!(used, threads, "{}", why.unwrap_or_default());
        best[turn % 2] = before.elapsed().as_secs_f64().min(best[turn % 2]);
        let came = (net.work(), outcomes(&net, &flows));
        assert_eq!(*seen.get_or_insert(came), came, "on {threads} threads");
    }
    (best, seen.map_or(0, |((_, hops), _)| hops))
}

/// One scenario alone, once: `-- only clos-p4` prints its CPU nanoseconds for each packet and hop, for pairs of two versions; and on
/// standard error what came of it, which is to be the same for both. `-- only clos-p4 2`: on two threads, nanoseconds by the clock.
fn only(name: &str, threads: usize) {
    let program = name.ends_with("-p4").then(scenarios::p4_router);
    let ((mut net, flows), until) = match name.trim_end_matches("-p4") {
        "dumbbell" => {
            let (net, flows, _) = scenarios::dumbbell(50, "cubic", program.as_ref());
            ((net, flows), Time::from_secs(5))
        }
        "clos" => (scenarios::clos("cubic", program.as_ref()), Time::from_ms(50)),
        "crowd" => (scenarios::crowd(10_000, 100_000), Time::from_secs(10)),
        "long-300" => (scenarios::long(300), Time::from_secs(20)),
        "long-6000" => (scenarios::long(6_000), Time::from_secs(20)),
        other => panic!(
            "no scenario {other}: use dumbbell, clos, crowd, long-300 or long-6000; the first two with -p4 for P4 routers"
        ),
    };
    net.set_threads(threads.max(1)).expect("a number of threads");
    let (before, began) = (own_cpu(), Instant::now());
    net.run_until(until).expect("routes");
    let spent = if threads == 0 { own_cpu() - before } else { began.elapsed().as_secs_f64() };
    println!("{:.2}", spent * 1e9 / net.work().1 as f64);
    eprintln!("{:?} events and hops, outcomes {:016x}", net.work(), outcomes(&net, &flows));
    if let (used, Some(why)) = net.threads() {
        eprintln!("on {used} of {threads} threads: {why}");
    }
}

type Part = (&'static str, fn(&Report));

/// What is measured together, in a process of its own: memory that one scenario has freed lies differently from new memory, which
/// made the last one up to a fifth slower.
const PARTS: [Part; 6] = [
    ("dumbbell", dumbbells),
    ("p4", p4_beside_plain),
    ("clos", clos),
    ("crowd", crowds),
    ("long-300", |report| long(300, report)),
    ("long-6000", |report| long(6_000, report)),
];

fn dumbbells(report: &Report) {
    for n in [50, 10, 1] {
        // With few flows ns-2 spends its time on the losses at the start, which are not the same: no comparison.
        let peer = if n == 50 { ns2::dumbbell_seconds(n) } else { None };
        let (seconds, hops) = least(|| {
            let (mut net, ..) = scenarios::dumbbell(n, "cubic", None);
            net.run_until(Time::from_secs(10)).expect("routes");
            net.work().1
        });
        let name = format!("dumbbell, {n} CUBIC flows, 10 s");
        report.line(&name, seconds, "s of CPU", "");
        let aim = if n == 50 { "   (aim: 56)" } else { "" };
        report.line(&format!("{name}: a packet-hop"), seconds * 1e9 / hops as f64, "ns", aim);
        if n == 50 {
            report.line(&format!("{name}: peak memory"), peak_mib(), "MiB", "   (at most 30)");
        }
        if let Some(peer) = peer {
            report.line(&format!("{name}: ns-2"), peer, "s of CPU", "");
            report.line(&format!("{name}: this / ns-2"), seconds / peer, "x", "   (at most 1)");
        }
    }
}

fn p4_beside_plain(report: &Report) {
    let program = scenarios::p4_router();
    let both = |name: &str, aim: &str, run: &dyn Fn(bool) -> (f64, u64)| {
        let (plain, p4) = (run(false), run(true));
        report.line(&format!("{name}, P4 in every router"), p4.0, "s of CPU", "");
        report.line(&format!("{name}, P4: a packet-hop"), p4.0 * 1e9 / p4.1 as f64, "ns", aim);
        report.line(&format!("{name}: P4 / plain"), p4.0 / plain.0, "x", "   (at most 3)");
    };
    both("dumbbell, 50 flows", "   (aim: 100)", &|p4| {
        least(|| {
            let (mut net, ..) = scenarios::dumbbell(50, "cubic", p4.then_some(&program));
            net.run_until(Time::from_secs(10)).expect("routes");
            net.work().1
        })
    });
    both("Clos", "   (aim: 157)", &|p4| {
        least(|| {
            let (mut net, _) = scenarios::clos("cubic", p4.then_some(&program));
            net.run_until(Time::from_ms(100)).expect("routes");
            net.work().1
        })
    });
    let (by_clock, hops) = on_threads(2, || scenarios::clos("cubic", Some(&program)), Time::from_ms(100));
    for (threads, seconds) in ["one thread", "two threads"].iter().zip(by_clock) {
        let name = format!("Clos, P4, {threads}: a packet-hop by the clock");
        report.line(&name, seconds * 1e9 / hops as f64, "ns", "");
    }
    report.line("Clos, P4: one thread / two", by_clock[0] / by_clock[1], "x", "   (aim: 1.7)");
}

fn clos(report: &Report) {
    let peer = ns2::clos_seconds();
    let mut seen = (0.0, 0.0);
    let (seconds, hops) = least(|| {
        let (mut net, flows) = scenarios::clos("cubic", None);
        net.run_until(Time::from_ms(20)).expect("routes");
        let before = scenarios::received(&net, &flows);
        net.run_until(Time::from_ms(100)).expect("routes");
        let rates: Vec<f64> = scenarios::received(&net, &flows)
            .iter()
            .zip(before)
            .map(|(after, before)| (after - before) as f64 * 8.0 / 0.08 / 1e9)
            .collect();
        seen = (rates.iter().sum(), scenarios::jain(&rates));
        net.work().1
    });
    report.line("Clos, 192 hosts, 0.1 s", seconds, "s of CPU", "");
    report.line("Clos: a packet-hop", seconds * 1e9 / hops as f64, "ns", "   (aim: 69)");
    report.line("Clos: goodput", seen.0, "Gbit/s", "   (ns-3: 104.1)");
    report.line("Clos: Jain's index", seen.1, "", "   (ns-3: 0.79)");
    if let Some(peer) = peer {
        report.line("Clos: ns-2", peer, "s of CPU", "");
        report.line("Clos: this / ns-2", seconds / peer, "x", "   (at most 1)");
    }
}

fn crowds(report: &Report) {
    let per_hop = [10u64, 100, 1_000, 10_000].map(|n| {
        let (seconds, hops) = least(|| {
            let (mut net, _) = scenarios::crowd(n, 1_000_000_000 / n);
            net.run_until(Time::from_secs(20)).expect("routes");
            net.work().1
        });
        let ns = seconds * 1e9 / hops as f64;
        report.line(&format!("{n} flows through 10 Gbit/s: a packet-hop"), ns, "ns", "");
        ns
    });
    let (low, high) = per_hop.iter().fold((f64::MAX, 0.0f64), |(l, h), v| (l.min(*v), h.max(*v)));
    report.line("10 to 10 000 flows: slowest / fastest hop", high / low, "x", "   (at most 2)");
    report.line("10 000 flows: peak memory", peak_mib(), "MiB", "   (at most 1024)");
}

fn long(flows: u64, report: &Report) {
    let (seconds, hops) = least(|| {
        let (mut net, _) = scenarios::long(flows);
        net.run_until(Time::from_secs(20)).expect("routes");
        net.work().1
    });
    let name = format!("{flows} long flows at once through 1 Gbit/s: a packet-hop");
    report.line(&name, seconds * 1e9 / hops as f64, "ns", "");
}

/// Each part in a new process; with `json` their rows in one list.
fn all_parts(json: bool) {
    let mut rows = Vec::new();
    for (part, _) in PARTS {
        let mut one = Command::new(std::env::current_exe().expect("this program's path"));
        one.args(["part", part]).args(json.then_some("--json"));
        if json {
            let done = one.stderr(Stdio::inherit()).output().expect("a process for a part");
            assert!(done.status.success(), "{part}: {}", done.status);
            rows.extend(String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned));
        } else {
            let done = one.status().expect("a process for a part");
            assert!(done.success(), "{part}: {done}");
        }
    }
    if json {
        println!("[{}]", rows.join(","));
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        let parts = PARTS.map(|(name, _)| name).join(", ");
        println!(
            "speed [--json] [part NAME | only SCENARIO [THREADS]]\n\nThe parts are {parts}; without one, all."
        );
        return;
    }
    let after = |word: &str, places: usize| {
        let at = words.iter().position(|w| w == word)?;
        words.get(at + places).map(String::as_str)
    };
    if let Some(scenario) = after("only", 1) {
        let threads = after("only", 2).map_or(0, |n| n.parse().expect("a number of threads"));
        return only(scenario, threads);
    }
    let json = words.iter().any(|word| word == "--json");
    let Some(part) = after("part", 1) else { return all_parts(json) };
    let (_, run) = PARTS.iter().find(|(name, _)| *name == part).expect("a part of this benchmark");
    run(&Report { json });
}
