//! Any bytes, with macros and conditionals around them: the preprocessor and parser end within their budget.
#![no_main]

use libfuzzer_sys::fuzz_target;

const HEAD: &str = "#define A x x\n#define F(a) a a\n#define S(a) #a\n#define C(a, b) a ## b\n#define V(a, ...) a(__VA_ARGS__)\n";

fuzz_target!(|bytes: &[u8]| {
    let text = format!("{HEAD}{}", String::from_utf8_lossy(bytes));
    p4lang::parse_str("fuzz.p4", &text, None, &p4lang::Options { no_files: true, ..Default::default() });
});
