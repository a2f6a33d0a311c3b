//! No source text makes the compiler panic, hang or eat the machine's memory.
//!
//! `TIDEGATE_MUTANTS` sets how many mutants of each program are tried.

use p4lang::diag::Severity;
use p4lang::lex::{TokenKind, lex};
use p4lang::source::SourceMap;
use p4lang::{Options, compile_str};

/// A small generator (xorshift), so that a failure can be repeated.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

fn programs() -> Vec<String> {
    let mut paths: Vec<_> = ["accept", "data"]
        .iter()
        .flat_map(|d| std::fs::read_dir(format!("{}/tests/{d}", env!("CARGO_MANIFEST_DIR"))).unwrap())
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    paths.iter().map(|p| std::fs::read_to_string(p).unwrap()).collect()
}

/// Tokens with the line ends that directives need.
fn words(text: &str) -> Vec<String> {
    let mut sources = SourceMap::default();
    let file = sources.add("t", text);
    lex(&sources, file, &mut Vec::new())
        .into_iter()
        .filter(|t| t.kind != TokenKind::Eof)
        .map(|t| t.text.to_string())
        .collect()
}

#[test]
fn mutated_programs() {
    let count = std::env::var("TIDEGATE_MUTANTS").ok().and_then(|v| v.parse().ok()).unwrap_or(15);
    let mut rng = Rng(0x1234_5678_9abc_def1);
    let all: Vec<Vec<String>> = programs().iter().map(|p| words(p)).collect();
    for base in &all {
        for _ in 0..count {
            let mut tokens = base.clone();
            for _ in 0..=rng.below(4) {
                let at = rng.below(tokens.len());
                match rng.below(5) {
                    0 => {
                        tokens.remove(at);
                    }
                    1 => tokens.insert(at, tokens[rng.below(tokens.len())].clone()),
                    2 => {
                        let other = &all[rng.below(all.len())];
                        tokens[at] = other[rng.below(other.len())].clone();
                    }
                    3 => {
                        let other = rng.below(tokens.len());
                        tokens.swap(at, other);
                    }
                    _ => {
                        let odd = [
                            "0",
                            "99999999999",
                            "-1",
                            "65536w1",
                            "{",
                            ")",
                            "\"",
                            "@",
                            "#define X(",
                            "0s1",
                            "bit<0>",
                            "int<1>",
                            "..",
                            "&&&",
                        ];
                        tokens[at] = odd[rng.below(odd.len())].to_owned();
                    }
                }
            }
            let text = tokens.join(" ").replace(" \n ", "\n");
            let result =
                std::panic::catch_unwind(|| compile_str("mutant.p4", &text, None, &Options::default()));
            assert!(result.is_ok(), "panicked on:\n{text}");
        }
    }
}

#[test]
fn random_bytes() {
    let mut rng = Rng(77);
    for _ in 0..300 {
        let len = rng.below(200);
        let bytes: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
        compile_str("noise.p4", &String::from_utf8_lossy(&bytes), None, &Options::default());
    }
}

/// Small texts that ask for a lot.
#[test]
fn explosions() {
    let mut doubling =
        String::from("#include <core.p4>\n#include <v1model.p4>\nvoid f0(inout bit<8> x) { x = x + 1; }\n");
    for i in 1..40 {
        doubling.push_str(&format!("void f{i}(inout bit<8> x) {{ f{0}(x); f{0}(x); }}\n", i - 1));
    }
    doubling.push_str("struct H {} struct M { bit<8> x; } parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } } control V(inout H h, inout M m) { apply {} } control I(inout H h, inout M m, inout standard_metadata_t s) { apply { f39(m.x); } } control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} } control D(packet_out p, in H h) { apply {} } V1Switch(P(), V(), I(), E(), V(), D()) main;");
    let mut nested = String::from("struct S0 { bit<8> x; }\n");
    for i in 1..60 {
        nested.push_str(&format!("struct S{i} {{ S{0} a; S{0} b; }}\n", i - 1));
    }
    nested.push_str("control c() { S59 big; apply { big.a.a.a = big.a.a.b; } }\nconst int z = 1; const bool b = S59.minSizeInBits() > 3;");
    for text in [
        doubling,
        nested,
        "const int x = 1 << 1000000000000;".to_owned(),
        "const int x = (1 << 100000) * (1 << 100000);".to_owned(),
        "const bit<65535> x = 65535w1 << 65534; const bit<99999999> y = 0;".to_owned(),
        format!("const int x = {};", "9".repeat(200_000)),
        "#include \"self.p4\"\n".to_owned(),
        format!("const bool b = {}true;", "!".repeat(50_000)),
        format!(
            "control c(inout bit<8> x) {{ apply {{ {} }} }}",
            "if (x == 1) { x = 2; } else ".repeat(5_000)
        ),
    ] {
        compile_str("large.p4", &text, None, &Options::default());
    }
}

/// Of each phase's errors the first 100 are said.
#[test]
fn many_errors() {
    let control = |statement: &str| format!("control c() {{ apply {{ {} }} }}", statement.repeat(150));
    for (code, text) in [
        ("syntax", "const;\n".repeat(150)),
        ("syntax", control("1 = ;\n")),
        ("unknown-name", (0..150).map(|i| format!("const bit<8> a{i} = b;\n")).collect()),
        ("unknown-name", control("a = 1;\n")),
        ("annotation", (0..150).map(|i| format!("@name(1) const bit<8> a{i} = 1;\n")).collect()),
        ("user-error", "#error no\n".repeat(150)),
    ] {
        let compiled = compile_str("many.p4", &text, None, &Options::default());
        let errors = compiled.diagnostics.iter().filter(|d| d.severity == Severity::Error);
        let of_code = errors.clone().filter(|d| d.code == code).count();
        assert_eq!((errors.count(), of_code), (100, 100), "{code}: {:?}", compiled.diagnostics.first());
    }
}
