//! What the specification forbids is refused, at its place; what stands beside it is not.
//!
//! `spec/*.txt` hold the cases. Each begins with a line `## SECTION: what it shows`; its program follows. A line that
//! ends in `//~ CODE` is where the first error must be, and what its code must be; a case without one must be accepted.
//! `SECTION` followed by `(bare)` leaves out core.p4 and v1model.p4, which the others include; `(main)` puts the program
//! into a v1model program: it declares `control I(inout H h, inout M m, inout standard_metadata_t sm)`.

use std::path::Path;

use p4lang::diag::Severity;
use p4lang::{Compiled, Options};

const INCLUDES: &str = "#include <core.p4>\n#include <v1model.p4>\n";
const BEFORE: &str = "header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; } struct H { h_t h; } \
    struct M { bit<8> x; bit<16> n; }\n";
const AFTER: &str = "
parser P(packet_in b, out H h, inout M m, inout standard_metadata_t sm) { state start { b.extract(h.h); transition accept; } }
control V(inout H h, inout M m) { apply {} }
control E(inout H h, inout M m, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in H h) { apply { b.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
";

struct Case {
    file: String,
    title: String,
    program: String,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spec");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    let mut out: Vec<Case> = Vec::new();
    for path in paths {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            match (line.strip_prefix("## "), out.last_mut()) {
                (Some(title), _) => {
                    out.push(Case { file: file.clone(), title: title.to_owned(), program: String::new() });
                }
                (None, Some(case)) if case.file == file => {
                    case.program.push_str(line);
                    case.program.push('\n');
                }
                _ => {}
            }
        }
    }
    out
}

/// The program compiled, and the number of lines put before it.
fn compile(case: &Case) -> (Compiled, u32) {
    let mut before = String::new();
    let mut after = "";
    if !case.title.contains("(bare)") {
        before.push_str(INCLUDES);
    }
    if case.title.contains("(main)") {
        before.push_str(BEFORE);
        after = AFTER;
    }
    let lines = before.lines().count() as u32;
    let text = format!("{before}{}{after}", case.program);
    (p4lang::compile_str("t.p4", &text, None, &Options::default()), lines)
}

#[test]
fn cases_are_refused_where_they_are_wrong() {
    let mut wrong = Vec::new();
    for case in cases() {
        let expected = case.program.lines().zip(1..).find_map(|(line, number)| {
            line.split_once("//~ ").map(|(_, code)| (number, code.trim().to_owned()))
        });
        let (compiled, before) = compile(&case);
        let first = compiled.diagnostics.iter().find(|d| d.severity == Severity::Error);
        let found = first.map(|d| {
            let line = compiled.sources.line_column(d.span).0;
            (line.saturating_sub(before), d.code.to_owned())
        });
        if found != expected {
            let message = first.map_or("", |d| d.message.as_str());
            wrong.push(format!(
                "{}: {}: expected {expected:?}, found {found:?} {message}",
                case.file, case.title
            ));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn v1model_has_two_revisions() {
    for (version, expected) in
        [("20180101", false), ("20200408", false), ("20170101", true), ("-5", true), ("20210101", true)]
    {
        let text = format!("#define V1MODEL_VERSION {version}\n#include <v1model.p4>\n");
        let compiled = p4lang::compile_str("t.p4", &text, None, &Options::default());
        let found = compiled.diagnostics.iter().any(|d| d.code == "user-error");
        assert_eq!((found, compiled.failed()), (expected, expected), "{version}");
    }
}
