//! The JIT does what the interpreter does: the same packets through both, compared in every output byte and all state.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::{below, fill, packet, queued};
use dataplane::layout::Layout;
use dataplane::pipeline::Pipeline;
use p4lang::ir::Program;
use units::SplitMix;

/// Runs `packets` random packets against random entries, a fresh switch every 200. Gives how many were counted by the program.
fn compare(name: &str, program: &Arc<Program>, packets: u32, seed: u64) -> u64 {
    let mut rng = SplitMix::new(seed);
    let mut counted = 0;
    let mut left = packets;
    while left > 0 {
        let seed = rng.next_u64();
        let jit = Pipeline::compiled(program.clone(), seed).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut both = [Pipeline::interpreted(program.clone(), seed).unwrap(), jit];
        fill(&mut both, &mut rng);
        let [interpreter, jit] = &mut both;
        for round in 0..left.min(200) {
            let bytes = packet(program, &mut rng);
            let port = below(&mut rng, 4) as u32;
            let now = u64::from(round) * 1_000_000_000;
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            if round % 2 == 0 {
                interpreter.process(now, port, &bytes, &mut expected);
                jit.process(now, port, &bytes, &mut found);
            } else {
                expected = queued(interpreter, now, port, &bytes, round % 4 == 1);
                found = queued(jit, now, port, &bytes, round % 4 == 1);
            }
            let same = expected == found && interpreter.drops() == jit.drops();
            if !same {
                let mut again = Vec::new();
                let trace = interpreter.process_traced(now, port, &bytes, &mut again);
                panic!("{name}: packet {bytes:02x?} gives {found:02x?} instead of {expected:02x?}\n{trace}");
            }
        }
        left -= left.min(200);
        let (a, b) = (&interpreter.state, &jit.state);
        assert_eq!(a.registers, b.registers, "{name}: registers");
        assert_eq!(a.counters, b.counters, "{name}: counters");
        counted += a.counters.iter().flatten().map(|cell| cell.packets).sum::<u64>();
        assert_eq!(a.digests, b.digests, "{name}: digests");
        for (known, other) in a.tables.iter().zip(&b.tables) {
            let counts = |table: &dataplane::state::table::TableState| -> Vec<_> {
                table.iter().map(|(handle, entry)| (handle, entry.packets, entry.bytes)).collect()
            };
            assert_eq!(counts(known), counts(other), "{name}: direct counters");
        }
    }
    counted
}

fn sources() -> Vec<std::path::PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = [
        "tests/data",
        "../../examples/p4",
        "../../python/tidegate/systems",
        "../p4lang/tests/data",
        "../p4lang/tests/accept",
    ]
    .map(|f| here.join(f))
    .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is part of the repository") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "p4") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// All programs of the repository.
#[test]
fn programs() {
    let mut ran = 0;
    for path in sources() {
        let compiled = p4lang::compile_file(&path, &p4lang::Options::default()).expect("readable");
        let Some(program) = compiled.program else {
            // A part that others include; it may need what they define before it.
            let text = std::fs::read_to_string(&path).expect("readable");
            assert!(!text.contains(" main;"), "{}: {:?}", path.display(), compiled.diagnostics);
            continue;
        };
        let name = path.display().to_string();
        let frame = Layout::new(&program).expect("small").frame_len;
        assert!(
            frame as u128 <= p4lang::sizes::frame(&program),
            "{name}: the compiler counts {frame} bytes as fewer"
        );
        let counted = compare(&name, &Arc::new(program), 2000, 7);
        assert!(
            counted > 0 || !name.contains("/systems/meter/"),
            "{name}: no packet came as far as its meters"
        );
        ran += 1;
    }
    assert!(ran >= 50, "only {ran} programs were compared");
}
