//! The fuzzers' corpora (`fuzz/corpus`), once through the fuzzers' entry points: what a fuzzer has found stays mended, on any
//! toolchain and in seconds. `make fuzz` searches on from them.

#[path = "../../../fuzz/src/captures.rs"]
mod captures;
#[path = "../../../fuzz/src/frames.rs"]
mod frames;
#[path = "../../../fuzz/src/lower.rs"]
mod lower;
#[path = "../../../fuzz/src/packets.rs"]
mod packets;
#[path = "../../../fuzz/src/programs.rs"]
mod programs;
#[path = "../../../fuzz/src/writes.rs"]
mod writes;

use std::fs;
use std::path::Path;

/// Of each target its name and what it does.
type Entry = (&'static str, fn(&[u8]));

const TARGETS: [Entry; 8] = [
    ("source", programs::source),
    ("preprocess", programs::preprocess),
    ("parse", programs::parse),
    ("lower", lower::lower),
    ("packets", packets::packets),
    ("writes", writes::writes),
    ("captures", captures::captures),
    ("frames", frames::frames),
];

#[test]
fn corpora() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut named: Vec<String> = fs::read_dir(root.join("fuzz_targets"))
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    named.sort();
    let mut known: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    known.sort();
    assert_eq!(named, known, "targets in fuzz/fuzz_targets, and those that are replayed");
    for (name, target) in TARGETS {
        let mut files: Vec<_> =
            fs::read_dir(root.join("corpus").join(name)).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "the corpus of {name} is empty");
        for file in files {
            let bytes = fs::read(&file).unwrap();
            if let Err(fault) = std::panic::catch_unwind(|| target(&bytes)) {
                eprintln!("{} fails", file.display());
                std::panic::resume_unwind(fault);
            }
        }
    }
}
