//! Any bytes as packets through a program that uses most of the language: both engines do the same.
#![no_main]

use std::sync::{Arc, Mutex, OnceLock};

use dataplane::pipeline::Pipeline;
use libfuzzer_sys::fuzz_target;

static ENGINES: OnceLock<Mutex<(Pipeline, Pipeline)>> = OnceLock::new();

fn engines() -> Mutex<(Pipeline, Pipeline)> {
    let source = include_str!("../../crates/dataplane/tests/data/everything.p4");
    let compiled = p4lang::compile_str("everything.p4", source, None, &p4lang::Options::default());
    let program = Arc::new(compiled.program.expect("the program is part of the tests"));
    let jit = Pipeline::compiled(program.clone(), 1).expect("the program has native code");
    Mutex::new((Pipeline::interpreted(program, 1).unwrap(), jit))
}

fuzz_target!(|bytes: &[u8]| {
    let mut pair = ENGINES.get_or_init(engines).lock().expect("no run before this one failed");
    let (mut a, mut b) = (Vec::new(), Vec::new());
    pair.0.process(0, 1, bytes, &mut a);
    pair.1.process(0, 1, bytes, &mut b);
    assert_eq!(a, b);
});
