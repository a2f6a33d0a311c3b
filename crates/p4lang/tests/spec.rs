//! What the specification forbids is refused, at its place; what stands beside it is not.
//!
//! `spec/*.txt` hold the cases. Each begins with a line `## SECTION: what it shows`; its program follows. A line that
//! ends in `//~ CODE` is where the first error must be, and what its code must be; a case without one must be accepted.
//! `SECTION` followed by `(bare)` leaves out core.p4 and v1model.p4, which the others include; `(main)` puts the program
//! into a v1model program: it declares `control I(inout H h, inout M m, inout standard_metadata_t sm)`.
//!
//! `spec/sections.tsv` lists the sections of P4_16 1.2.5 (chapters, sections, appendices) with the numbers of their cases
//! that are refused and accepted, or why no program can break them. `later` are features of later versions.
//!
//! `spec/rules.tsv` lists what the text says must, may not or cannot be: the section, the rule in few words, the titles of
//! its cases with ` | ` between them, and a note. A rule without a case that is refused has one of these as its note:
//! `shown` (it permits something, or binds the compiler; the case that is accepted shows it), `accepted: why` (a program
//! that breaks it compiles), `runtime: the test` (behaviour of a packet, or a warning), `architecture: whose` (a duty of
//! an architecture, target or control plane), `advice`, or `undefined: where it is said what happens`. Rows of the section
//! `extra` hold the cases that are refused for another reason than a sentence of the specification.

use std::collections::{HashMap, HashSet};
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

/// A case's title without the word in parentheses that says how it is compiled.
fn plain(title: &str) -> String {
    title.replace("(bare) ", "").replace("(main) ", "")
}

/// What is wrong with the rules: cases that there are not, rules that nothing shows, cases and sections without a rule.
fn wrong_rules(rules: &str, index: &str, cases: &[Case], is_file: impl Fn(&str) -> bool) -> Vec<String> {
    let mut refused: HashMap<String, bool> = HashMap::new();
    let mut wrong = Vec::new();
    for case in cases {
        if refused.insert(plain(&case.title), case.program.contains("//~ ")).is_some() {
            wrong.push(format!("{}: a title of two cases", plain(&case.title)));
        }
    }
    let sections: Vec<&str> = index.lines().skip(1).filter_map(|line| line.split('\t').next()).collect();
    let place = |section: &str| sections.iter().position(|s| *s == section);
    let (mut with_rules, mut with_rule) = (HashSet::new(), HashSet::new());
    let mut last = 0;
    for line in rules.lines().skip(1) {
        let [section, rule, titles, note] = line.split('\t').collect::<Vec<_>>()[..] else {
            wrong.push(format!("not four columns: {line}"));
            continue;
        };
        let mut say = |what: &str| wrong.push(format!("{section} {rule}: {what}"));
        match place(section) {
            Some(at) if at < last => say("not in the order of sections.tsv"),
            Some(at) => last = at,
            None if section == "extra" => last = sections.len(),
            None => say("no such section"),
        }
        with_rules.insert(section);
        let titles: Vec<&str> = titles.split(" | ").filter(|t| !t.is_empty()).collect();
        titles.iter().filter(|t| !refused.contains_key(**t)).for_each(|t| say(&format!("no case `{t}`")));
        with_rule.extend(titles.iter().copied());
        let broken = titles.iter().any(|t| refused.get(*t) == Some(&true));
        let (kind, detail) = note.split_once(": ").unwrap_or((note, ""));
        match kind {
            "" if broken => {}
            "shown" if !broken && !titles.is_empty() => {}
            "shown" if broken => say("a case breaks it, the note says that none can"),
            "accepted" if !broken && !titles.is_empty() && !detail.is_empty() => {}
            "runtime" if titles.is_empty() && is_file(detail) => {}
            "runtime" => say("no such test"),
            "architecture" | "undefined" if titles.is_empty() && !detail.is_empty() => {}
            "advice" if titles.is_empty() => {}
            _ => say("no case breaks it, and no reason"),
        }
    }
    let mut without: Vec<_> =
        refused.iter().filter(|(t, refused)| **refused && !with_rule.contains(t.as_str())).collect();
    without.sort();
    wrong.extend(without.iter().map(|(title, _)| format!("{title}: a case without a rule")));
    for line in index.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        // Cases of the architecture's and P4Runtime's rules are in rows of other sections.
        if fields[4].is_empty()
            && !matches!(fields[0], "v1model" | "P4Runtime")
            && !with_rules.contains(fields[0])
        {
            wrong.push(format!("{} {}: a section without a rule", fields[0], fields[3]));
        }
    }
    wrong
}

#[test]
fn each_rule_has_a_case_or_a_reason() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spec");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let wrong =
        wrong_rules(&read("rules.tsv"), &read("sections.tsv"), &cases(), |path| root.join(path).is_file());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rules_with_gaps_are_found() {
    let case = |title: &str, program: &str| Case {
        file: String::new(),
        title: title.to_owned(),
        program: program.to_owned(),
    };
    let cases = [
        case("1.1 (main) a", "x //~ syntax\n"),
        case("1.1 b", "x\n"),
        case("1.2 c", "x //~ syntax\n"),
        case("1.2 b", "x\n"),
        case("1.2 (bare) b", "x\n"),
    ];
    let index = "head\n1.1\t1\t1\tA\t\n1.2\t1\t0\tB\t\n1.3\t1\t0\tC\t\n1.4\t0\t0\tD\tnone\n";
    let rules = "head\n1.2\tr\t1.1 a | 1.1 b\t\n1.1\ts\t1.1 b\t\n1.2\tt\t1.1 d\truntime: gone\n\
        1.2\tu\t\truntime: here\n1.4\tv\t1.1 a\tshown\n9\tw\t\tadvice\n";
    assert_eq!(
        wrong_rules(rules, index, &cases, |path| path == "here"),
        [
            "1.2 b: a title of two cases",
            "1.1 s: not in the order of sections.tsv",
            "1.1 s: no case breaks it, and no reason",
            "1.2 t: no case `1.1 d`",
            "1.2 t: no such test",
            "1.4 v: a case breaks it, the note says that none can",
            "9 w: no such section",
            "1.2 c: a case without a rule",
            "1.3 C: a section without a rule",
        ]
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
