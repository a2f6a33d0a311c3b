//! What the specification forbids is refused, at its place; what stands beside it is not.
//!
//! `spec/*.txt` hold the cases. Each begins with a line `## SECTION: what it shows`; its program follows. A line that
//! ends in `//~ CODE` is where the first error must be, and what its code must be; a case without one must be accepted.
//! `SECTION` followed by `(bare)` leaves out core.p4 and v1model.p4, which the others include; `(main)` puts the program
//! into a v1model program: it declares `control I(inout H h, inout M m, inout standard_metadata_t sm)`.
//!
//! `spec/sections.tsv` lists the sections of P4_16 1.2.5 (chapters, sections, appendices) with the numbers of their cases
//! that are refused and accepted, or why no program can break them. `later` are features of later versions.

use std::collections::HashMap;
use std::fmt::Write;
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
    paths.retain(|p| p.extension().is_some_and(|e| e == "txt"));
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

/// The index with the numbers of cases as they are; and what is wrong with it.
fn indexed(index: &str, cases: &[Case]) -> (String, Vec<String>) {
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    for case in cases {
        let section = case.title.split(' ').next().unwrap();
        let (refused, accepted) = counts.entry(section).or_default();
        *if case.program.contains("//~ ") { refused } else { accepted } += 1;
    }
    let mut lines = index.lines();
    let mut out = lines.next().unwrap().to_owned();
    let mut wrong = Vec::new();
    for line in lines {
        let [section, _, _, title, note] = line.split('\t').collect::<Vec<_>>()[..] else {
            wrong.push(format!("not five columns: {line}"));
            continue;
        };
        let (refused, accepted) = counts.remove(section).unwrap_or_default();
        if refused == 0 && note.is_empty() {
            wrong.push(format!("{section} {title}: no case that is refused, and no reason"));
        }
        write!(out, "\n{section}\t{refused}\t{accepted}\t{title}\t{note}").unwrap();
    }
    wrong.extend(counts.keys().map(|section| format!("{section}: cases of a section that there is not")));
    (out + "\n", wrong)
}

#[test]
fn each_section_has_a_case_or_a_reason() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spec/sections.tsv");
    let index = std::fs::read_to_string(path).unwrap();
    let (counted, wrong) = indexed(&index, &cases());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let moved: Vec<_> = counted.lines().zip(index.lines()).filter(|(a, b)| a != b).map(|(a, _)| a).collect();
    assert!(moved.is_empty(), "write these lines into sections.tsv:\n{}", moved.join("\n"));
}

#[test]
fn an_index_with_a_gap_is_found() {
    let case = |title: &str, program: &str| Case {
        file: String::new(),
        title: title.to_owned(),
        program: program.to_owned(),
    };
    let cases = [case("1.1 a", "x //~ syntax\n"), case("1.1 b", "x\n"), case("1.4 c", "x //~ syntax\n")];
    let index = "head\n1\t0\t0\tOne\tin its sections\n1.1\t0\t0\tA\t\n1.2\t1\t0\tB\t\n";
    let (counted, wrong) = indexed(index, &cases);
    assert_eq!(counted, "head\n1\t0\t0\tOne\tin its sections\n1.1\t1\t1\tA\t\n1.2\t0\t0\tB\t\n");
    assert_eq!(
        wrong,
        ["1.2 B: no case that is refused, and no reason", "1.4: cases of a section that there is not"]
    );
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
