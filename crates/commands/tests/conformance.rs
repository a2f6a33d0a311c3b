//! The examples, and the language checked chapter by chapter: every program in `tests/p4/<chapter>/` with its STF test,
//! on both engines. Expected values are worked out by hand from the specification (P4_16 1.2.5).

use std::path::{Path, PathBuf};

use commands::load::{Engine, Source};
use commands::stf::{Options, run};

fn stf_files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "stf") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Runs every test below a folder of this crate; at least `least` of them.
fn folder(dir: &str, least: usize) {
    let tests = stf_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(dir));
    assert!(tests.len() >= least, "{dir} has only {} tests", tests.len());
    let mut failures = String::new();
    for test in &tests {
        let source = Source { path: test.with_extension("p4"), ..Default::default() };
        let program = source.program().unwrap_or_else(|e| panic!("{e}"));
        for engine in [Engine::Interp, Engine::Jit] {
            let options = Options { engine, ..Default::default() };
            match run(program.clone(), test, options, &mut || Ok(())) {
                Ok(answer) if answer["ok"] == true => {}
                Ok(answer) => {
                    failures.push_str(&format!("{engine:?} {}\n", answer["text"].as_str().unwrap_or("")))
                }
                Err(error) => failures.push_str(&format!("{engine:?} {error}\n")),
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn examples() {
    folder("../../examples/p4", 6);
}

#[test]
fn ch06_names_and_calls() {
    folder("tests/p4/ch06_names_and_calls", 3);
}

#[test]
fn ch07_types() {
    folder("tests/p4/ch07_types", 3);
}

#[test]
fn ch08_expressions() {
    folder("tests/p4/ch08_expressions", 5);
}

#[test]
fn ch09_sizes() {
    folder("tests/p4/ch09_sizes", 1);
}

#[test]
fn ch10_functions() {
    folder("tests/p4/ch10_functions", 1);
}

#[test]
fn ch11_constants_and_variables() {
    folder("tests/p4/ch11_constants_and_variables", 1);
}

#[test]
fn ch12_statements() {
    folder("tests/p4/ch12_statements", 4);
}

#[test]
fn ch13_parsing() {
    folder("tests/p4/ch13_parsing", 6);
}

#[test]
fn ch14_tables() {
    folder("tests/p4/ch14_tables", 3);
}

#[test]
fn ch15_parameterisation() {
    folder("tests/p4/ch15_parameterisation", 1);
}

#[test]
fn ch16_deparsing() {
    folder("tests/p4/ch16_deparsing", 1);
}

#[test]
fn ch17_architecture() {
    folder("tests/p4/ch17_architecture", 1);
}

#[test]
fn ch18_evaluation() {
    folder("tests/p4/ch18_evaluation", 2);
}

#[test]
fn ch19_static_assertions() {
    folder("tests/p4/ch19_static_assertions", 1);
}

#[test]
fn ch20_annotations() {
    folder("tests/p4/ch20_annotations", 1);
}

#[test]
fn v1model() {
    folder("tests/p4/v1model", 8);
}

#[test]
fn ebpf() {
    folder("tests/p4/ebpf", 2);
}

#[test]
fn messages_in_the_trace() {
    let test = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4/v1model/messages.stf");
    let source = Source { path: test.with_extension("p4"), ..Default::default() };
    let program = source.program().unwrap_or_else(|e| panic!("{e}"));
    let options = Options { trace: true, engine: Engine::Interp, ..Default::default() };
    let answer = run(program, &test, options, &mut || Ok(())).unwrap_or_else(|e| panic!("{e}"));
    let trace = answer["trace"].to_string();
    for message in [
        "log: plain",
        "log: low -2, header (a:1,b:2,pair:(low:-2,high:3)) and 1",
        "log: ((a:0,b:0,pair:(low:0,high:0)),(a:0,b:0,pair:(low:0,high:0)))254",
    ] {
        assert!(trace.contains(message), "{message}: {trace}");
    }
}
