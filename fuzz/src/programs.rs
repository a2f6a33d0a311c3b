//! Any bytes as P4 source: diagnostics or a program within the budget, never a panic.

use p4lang::{Limits, Options, compile_str, parse_str};

pub(crate) fn options() -> Options {
    let limits = Limits { work: 10_000_000, bytes: 32 << 20, ..Limits::default() };
    Options { no_files: true, limits, ..Options::default() }
}

/// A whole source.
pub fn source(bytes: &[u8]) {
    compile_str("fuzz.p4", &String::from_utf8_lossy(bytes), None, &options());
}

const MACROS: &str = "#define A x x\n#define F(a) a a\n#define S(a) #a\n#define C(a, b) a ## b\n#define V(a, ...) a(__VA_ARGS__)\n";

/// Source after macros.
pub fn preprocess(bytes: &[u8]) {
    parse_str("fuzz.p4", &format!("{MACROS}{}", String::from_utf8_lossy(bytes)), None, &options());
}

const WORDS: &str = "a b T 1 8w5 \"s\" { } ( ) [ ] < > ; : , . ? = + - * / % & | ^ ~ ! @ ++ && || == <= << &&& .. ... {#} \
    _ +: action actions apply bit bool const control default else entries enum error extern for header \
    header_union if in inout int key out package parser return select size state struct switch table \
    this transition true tuple type typedef varbit void start accept";

/// Indices of P4's words, which makes texts that parse more often than bytes do.
pub fn parse(bytes: &[u8]) {
    let known: Vec<&str> = WORDS.split(' ').chain(["\n"]).collect();
    let words: Vec<&str> = bytes.iter().map(|byte| known[usize::from(*byte) % known.len()]).collect();
    parse_str("fuzz.p4", &words.join(" "), None, &options());
}
