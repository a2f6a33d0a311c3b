//! Interpreter against JIT on random programs, packets and state: every output byte, drop, register, counter and digest.
//!
//! `TIDEGATE_PROGRAMS` and `TIDEGATE_PACKETS` set how many programs, and packets for each; `TIDEGATE_SEED` the first
//! program's seed. A difference names the seed, so that one program can be run again. With `TIDEGATE_SECONDS` there are as
//! many programs as take so long; how many that were is printed, to be seen with `--nocapture`.

#[path = "../common/mod.rs"]
mod common;
mod program;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dataplane::context::DropReason;
use dataplane::pipeline::Pipeline;
use units::SplitMix;
use wire::frame::Addresses;
use wire::packet::{Datagram, Packet, Written};
use wire::tcp::{Flags, Segment};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// The seeds of the programs: the time that is set decides how many, or else the number.
fn seeds(programs: u64) -> impl Iterator<Item = u64> {
    let first = setting("TIDEGATE_SEED", 1);
    let until = match setting("TIDEGATE_SECONDS", 0) {
        0 => None,
        seconds => Some(Instant::now() + Duration::from_secs(seconds)),
    };
    (first..).take_while(move |seed| match until {
        Some(until) => Instant::now() < until,
        None => *seed < first + programs,
    })
}

/// Bytes without a plan; the other half of the packets follow the parser.
fn noise(rng: &mut SplitMix) -> Vec<u8> {
    let len = rng.between(0, 160) as usize;
    (0..len)
        .map(|_| match rng.between(0, 5) {
            0 => 0,
            1 => 0xff,
            2 => rng.between(0, 8) as u8,
            3 => 0x80,
            _ => rng.next_u64() as u8,
        })
        .collect()
}

/// A generated program, which the compiler takes.
fn compiled(seed: u64, source: &str) -> Arc<p4lang::ir::Program> {
    let compiled = p4lang::compile_str("generated.p4", source, None, &p4lang::Options::default());
    let Some(program) = compiled.program else {
        let errors: Vec<_> = compiled
            .diagnostics
            .iter()
            .filter(|d| d.severity == p4lang::diag::Severity::Error)
            .cloned()
            .collect();
        panic!("seed {seed}:\n{}\n{source}", p4lang::render::render(&compiled.sources, &errors, false));
    };
    Arc::new(program)
}

#[test]
fn interpreter_and_jit_agree() {
    let packets = setting("TIDEGATE_PACKETS", 150);
    let (mut reasons, mut digests, mut copies) = (BTreeSet::new(), 0, 0);
    let mut programs = 0;
    for seed in seeds(setting("TIDEGATE_PROGRAMS", 600)) {
        programs += 1;
        let mut rng = SplitMix::new(seed);
        let source = program::generate(&mut rng);
        let program = compiled(seed, &source);
        let jit = Pipeline::compiled(program.clone(), seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let mut both = [Pipeline::interpreted(program.clone(), seed).unwrap(), jit];
        common::fill(&mut both, &mut rng);
        let [interp, jit] = &mut both;
        for round in 0..packets {
            let bytes =
                if common::coin(&mut rng) { noise(&mut rng) } else { common::packet(&program, &mut rng) };
            let port = rng.between(0, 3) as u32;
            let (mut a, mut b) = (Vec::new(), Vec::new());
            if round % 2 == 0 {
                interp.process(round * 1_000_000, port, &bytes, &mut a);
                jit.process(round * 1_000_000, port, &bytes, &mut b);
            } else {
                a = common::queued(interp, round * 1_000_000, port, &bytes, round % 4 == 1);
                b = common::queued(jit, round * 1_000_000, port, &bytes, round % 4 == 1);
            }
            copies += a.len().saturating_sub(1);
            let same = a == b
                && interp.state.registers == jit.state.registers
                && interp.state.counters == jit.state.counters
                && interp.drops() == jit.drops();
            if !same {
                let mut again = Vec::new();
                let trace = interp.process_traced(round * 1_000_000, port, &bytes, &mut again);
                panic!(
                    "seed {seed}, packet {round} {bytes:02x?}:\ninterpreter {a:02x?} {:?}\nJIT         {b:02x?} {:?}\n{trace}\n{source}",
                    interp.drops(),
                    jit.drops()
                );
            }
        }
        assert_eq!(interp.state.digests, jit.state.digests, "seed {seed}:\n{source}");
        reasons.extend(interp.drops().keys().copied());
        digests += interp.state.digests.len();
    }
    println!("{programs} programs with {packets} packets each: no difference");
    // Agreement means little if the programs never get there.
    if programs >= 60 {
        use DropReason::{Assumption, Egress, EmptyGroup, Ingress, Recirculation};
        for reason in [Ingress, Egress, Assumption, Recirculation, EmptyGroup] {
            assert!(reasons.contains(&reason), "no packet was dropped for {}", reason.name());
        }
        assert!(digests > 0 && copies > 0, "{digests} digests, {copies} copies");
    }
}

/// A host's packet, written as far as the ports.
fn sent(rng: &mut SplitMix) -> Box<Written> {
    let addresses = Addresses {
        mac_from: [2, 0, 0, 0, 0, 1],
        mac_to: [2, 0, 0, 0, 0, rng.between(0, 3) as u8],
        from: [10, 0, 0, 1],
        to: [10, 0, 0, rng.between(0, 3) as u8],
        port_from: rng.next_u64() as u16,
        port_to: rng.between(0, 3) as u16,
    };
    let packet = match common::coin(rng) {
        true => Packet::Udp(Datagram { payload: rng.between(0, 1400) as u32, ..Datagram::default() }),
        false => Packet::Tcp(Segment {
            seq: rng.next_u64() as u32,
            flags: Flags::ACK,
            payload: rng.between(0, 1400) as u32,
            timestamps: common::coin(rng).then_some((1, 2)),
            ..Segment::default()
        }),
    };
    let mut written = Box::new(Written::default());
    written.set_packet(&addresses, &packet);
    written
}

/// The program with a parser that ends behind its first state, and without checksums of the payload: what is left of the parser, and
/// these, look at all of a packet.
fn shallow(source: &str) -> String {
    let line = |line: &str| match line.trim_start().starts_with("transition select(m.v,") {
        true => "transition accept; }\n".to_owned(),
        false => format!("{line}\n"),
    };
    source.lines().map(line).collect::<String>().replace("_checksum_with_payload(", "_checksum(")
}

#[test]
fn headers_that_are_not_written_yet_make_no_difference() {
    let (programs, first) = (setting("TIDEGATE_PROGRAMS", 600), setting("TIDEGATE_SEED", 1));
    let (mut left, mut unwritten) = (0, 0);
    for seed in first..first + programs {
        let mut rng = SplitMix::new(seed);
        let source = shallow(&program::generate(&mut rng));
        let program = compiled(seed, &source);
        let native = || Pipeline::compiled(program.clone(), seed).expect("becomes native code");
        let mut all = [Pipeline::interpreted(program.clone(), seed).unwrap(), native(), native()];
        common::fill(&mut all, &mut rng);
        for round in 0..40 {
            let (packet, port) = (sent(&mut rng), rng.between(0, 3) as u32);
            let mut at_once = packet.clone();
            at_once.write_rest();
            let packets = [packet.clone(), packet, at_once];
            let mut out = Vec::new();
            for (pipeline, packet) in all.iter_mut().zip(packets) {
                out.push(common::queued_packet(pipeline, round * 1_000_000, port, packet, round % 2 == 0));
            }
            left += out[0].len();
            unwritten += out[0].iter().zip(&out[2]).filter(|(late, at_once)| late != at_once).count();
            for (_, packet) in out.iter_mut().flatten() {
                packet.write_rest();
            }
            assert_eq!(out[0], out[1], "seed {seed}, packet {round}: interpreter and JIT\n{source}");
            assert_eq!(out[1], out[2], "seed {seed}, packet {round}: late and at once\n{source}");
        }
        let [interpreted, late, at_once] = &all;
        assert_eq!(interpreted.drops(), at_once.drops(), "seed {seed}:\n{source}");
        assert_eq!(late.drops(), at_once.drops(), "seed {seed}:\n{source}");
        assert_eq!(late.state.digests, at_once.state.digests, "seed {seed}:\n{source}");
        assert_eq!(late.state.counters, at_once.state.counters, "seed {seed}:\n{source}");
    }
    // It means little if all programs look at everything.
    assert!(programs < 60 || (unwritten > 100 && unwritten < left), "{unwritten} of {left}");
}
