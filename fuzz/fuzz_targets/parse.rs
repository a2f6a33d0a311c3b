//! Any bytes as indices of P4's words, which makes texts that parse more often than bytes do: no panic, and no work beyond
//! the budget.
#![no_main]

use libfuzzer_sys::fuzz_target;

const WORDS: &[&str] = &[
    "a", "b", "T", "1", "8w5", "\"s\"", "{", "}", "(", ")", "[", "]", "<", ">", ";", ":", ",", ".", "?", "=", "+", "-",
    "*", "/", "%", "&", "|", "^", "~", "!", "@", "++", "&&", "||", "==", "<=", "<<", "&&&", "..", "...", "{#}", "_", "+:",
    "action", "actions", "apply", "bit", "bool", "const", "control", "default", "else", "entries", "enum", "error",
    "extern", "for", "header", "header_union", "if", "in", "inout", "int", "key", "out", "package", "parser", "return",
    "select", "size", "state", "struct", "switch", "table", "this", "transition", "true", "tuple", "type", "typedef",
    "varbit", "void", "start", "accept", "\n",
];

fuzz_target!(|bytes: &[u8]| {
    let words: Vec<&str> = bytes.iter().map(|byte| WORDS[*byte as usize % WORDS.len()]).collect();
    p4lang::parse_str("fuzz.p4", &words.join(" "), None, &p4lang::Options { no_files: true, ..Default::default() });
});
