//! Interpreter and JIT side by side on whole programs with random packets.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dataplane::pipeline::Pipeline;
use dataplane::rng::Rng;

fn programs() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut out = Vec::new();
    for dir in ["crates/p4lang/tests/accept", "crates/p4lang/tests/data"] {
        out.extend(std::fs::read_dir(root.join(dir)).unwrap().map(|e| e.unwrap().path()));
    }
    for dir in std::fs::read_dir(root.join("examples/p4")).unwrap() {
        let dir = dir.unwrap().path();
        if let Some(name) = dir.file_name().filter(|_| dir.is_dir()) {
            out.push(dir.join(name).with_extension("p4"));
        }
    }
    out.sort();
    out
}

/// Short packets of bytes that programs like to test for.
fn packet(rng: &mut Rng) -> Vec<u8> {
    let len = rng.between(0, 70) as usize;
    (0..len)
        .map(|_| match rng.between(0, 3) {
            0 => rng.between(0, 8) as u8,
            1 => 0,
            _ => rng.next_u64() as u8,
        })
        .collect()
}

#[test]
fn both_engines_agree() {
    for path in programs() {
        let compiled = p4lang::compile_file(&path, &p4lang::Options::default()).unwrap();
        let program = Arc::new(compiled.program.unwrap_or_else(|| panic!("{}", path.display())));
        let mut interp = Pipeline::interpreted(program.clone(), 7);
        let mut jit = Pipeline::compiled(program, 7).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut rng = Rng::new(1);
        for round in 0..300u64 {
            let (bytes, port) = (packet(&mut rng), rng.between(0, 4) as u32);
            let (mut a, mut b) = (Vec::new(), Vec::new());
            interp.process(round * 1_000_000, port, &bytes, &mut a);
            jit.process(round * 1_000_000, port, &bytes, &mut b);
            assert_eq!(a, b, "{} packet {round}: {bytes:02x?}", path.display());
        }
        assert_eq!(interp.drops(), jit.drops(), "{}", path.display());
        for (a, b) in interp.state.registers.iter().zip(&jit.state.registers) {
            assert_eq!(a.cells, b.cells, "{}", path.display());
        }
        assert_eq!(interp.state.counters, jit.state.counters, "{}", path.display());
        assert_eq!(interp.state.digests, jit.state.digests, "{}", path.display());
    }
}
