//! Any bytes as P4 source: diagnostics or a program, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    p4lang::compile_str("fuzz.p4", &text, None, &p4lang::Options::default());
});
