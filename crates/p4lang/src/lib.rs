//! P4_16 source to a checked and lowered [`ir::Program`]. No packets, no time, no I/O beyond reading includes.

#![forbid(unsafe_code)]

pub mod ast;
pub mod check;
pub mod diag;
pub mod hir;
pub mod ir;
pub mod lex;
pub mod limits;
pub mod lower;
mod p4_14;
pub mod p4info;
pub mod parse;
mod platform;
pub mod preprocess;
pub mod render;
mod similar;
pub mod sizes;
pub mod source;

use std::path::Path;
use std::rc::Rc;

pub use limits::{Budget, Limits};
pub use preprocess::Options;
pub use similar::{similar, similar_object};

use diag::{Diagnostic, Severity};
use source::{SourceMap, Span};

/// Preprocesses and parses. No tree if there was an error.
pub fn parse_str(
    name: &str,
    text: &str,
    path: Option<&Path>,
    options: &Options,
) -> (SourceMap, Option<ast::Program>, Vec<Diagnostic>) {
    parse_within(name, text, path, options, &Budget::new(&options.limits))
}

/// Errors of the preprocessor after which its output is not the program.
const UNREADABLE: [&str; 5] =
    ["unterminated-string", "unterminated-comment", "macro-call", "macro-limit", "too-large"];

fn parse_within(
    name: &str,
    text: &str,
    path: Option<&Path>,
    options: &Options,
    budget: &Budget,
) -> (SourceMap, Option<ast::Program>, Vec<Diagnostic>) {
    let mut sources = SourceMap::default();
    let mut diagnostics = Vec::new();
    if text.len() as u64 > options.limits.source_bytes {
        let main = sources.add(name, "");
        let start = Span { file: main, start: 0, end: 0 };
        diagnostics.push(limits::beyond("too-large", "source_bytes", options.limits.source_bytes, start));
        return (sources, None, diagnostics);
    }
    let main = sources.add(name, text);
    if let Some((what, at)) = other_format(text) {
        let span = source::Span { file: main, start: at, end: at + 1 };
        let help = "give the P4_16 source (.p4) that it was made from";
        return (sources, None, vec![Diagnostic::error("not-p4", span, what).help(help)]);
    }
    let core = ("core.p4", include_str!("builtin/core.p4"));
    let builtin: Vec<_> = std::iter::once(core).chain(lower::declarations()).collect();
    let preprocessor =
        preprocess::Preprocessor::new(&mut sources, &mut diagnostics, options, budget, &builtin);
    let tokens = preprocessor.run(main, path);
    if let Some(found) = p4_14::found(&tokens) {
        diagnostics.push(found);
        return (sources, None, diagnostics);
    }
    // After these the parser would read what nobody has written, or not all of it.
    if diagnostics.iter().any(|d| UNREADABLE.contains(&d.code)) {
        return (sources, None, diagnostics);
    }
    let (program, mut found) = parse::parse(tokens, budget);
    keep_errors(&mut found);
    diagnostics.extend(found);
    let failed = diagnostics.iter().any(|d| d.severity == Severity::Error);
    (sources, (!failed).then_some(program), diagnostics)
}

/// What a text is that is no P4_16 but comes from a P4 compiler, and where it starts.
fn other_format(text: &str) -> Option<(&'static str, u32)> {
    let start = text.trim_start();
    let at = u32::try_from(text.len() - start.len()).ok()?;
    // Neither a brace nor a lower-case name before a brace can start a P4_16 program.
    let what = if start.starts_with('{') && start.contains("\"header_types\"") {
        "this is a program compiled for the reference switch (BMv2 JSON), not P4_16 source"
    } else if start.starts_with('{') {
        "this is JSON, not P4_16 source"
    } else if start.starts_with("# proto-file: p4/config/v1/p4info.proto") || start.starts_with("pkg_info {")
    {
        "this is a P4Info, not P4_16 source"
    } else {
        return None;
    };
    Some((what, at))
}

/// What came of compiling a program.
#[derive(Debug)]
pub struct Compiled {
    pub sources: SourceMap,
    /// Absent if there was an error, or nothing that can be run (then a warning says so).
    pub program: Option<ir::Program>,
    /// In source order within each phase.
    pub diagnostics: Vec<Diagnostic>,
    /// What was used of each limit, by name ([`Limits`]).
    pub used: Vec<(&'static str, u64)>,
}

/// Codes of the warnings that say why a program without errors cannot be run.
pub const NOTHING_TO_RUN: [&str; 3] = [lower::NO_MAIN, lower::OTHER_ARCHITECTURE, lower::OWN_EXTERN];

/// Warnings that are kept.
const MAX_WARNINGS: usize = 1_000;

/// Stack for a compilation: syntax trees may be deep, and debug builds have large frames.
const STACK: usize = 1 << 29;

/// Compiles program text. `path` is where it came from, for quoted includes.
pub fn compile_str(name: &str, text: &str, path: Option<&Path>, options: &Options) -> Compiled {
    std::thread::scope(|scope| {
        let work = || compile_here(name, text, path, options);
        match std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work) {
            Ok(thread) => match thread.join() {
                Ok(compiled) => compiled,
                Err(panic) => std::panic::resume_unwind(panic),
            },
            // Without room for a thread of its own, what there is must do.
            Err(_) => compile_here(name, text, path, options),
        }
    })
}

/// Compiles the program in a file. The error is one of reading the file.
pub fn compile_file(path: &Path, options: &Options) -> std::io::Result<Compiled> {
    let text = source::read(path)?;
    Ok(compile_str(&path.display().to_string(), &text, Some(path), options))
}

impl Compiled {
    /// Whether any diagnostic is an error.
    pub fn failed(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }
}

fn compile_here(name: &str, text: &str, path: Option<&Path>, options: &Options) -> Compiled {
    let budget = Rc::new(Budget::new(&options.limits));
    let (sources, program, mut diagnostics) = parse_within(name, text, path, options, &budget);
    let mut lowered = None;
    if let Some(program) = program {
        let (hir, mut found) = check::check(&program, &budget);
        keep_errors(&mut found);
        diagnostics.extend(found);
        if let Some(hir) = hir {
            let (program, mut found) = lower::lower(&hir, &sources, &budget);
            keep_errors(&mut found);
            diagnostics.extend(found);
            lowered = program;
        }
    }
    keep_some(&mut diagnostics);
    Compiled { sources, program: lowered, diagnostics, used: budget.all_used() }
}

/// Of one phase's errors, those beyond the first [`limits::MAX_ERRORS`] are left out.
fn keep_errors(found: &mut Vec<Diagnostic>) {
    let mut errors = 0;
    found.retain(|d| {
        errors += usize::from(d.severity == Severity::Error);
        d.severity != Severity::Error || errors <= limits::MAX_ERRORS
    });
}

/// Warnings beyond the first [`MAX_WARNINGS`] are left out.
fn keep_some(diagnostics: &mut Vec<Diagnostic>) {
    let mut warnings = 0;
    diagnostics.retain(|d| {
        warnings += usize::from(d.severity == Severity::Warning);
        d.severity == Severity::Error || warnings <= MAX_WARNINGS
    });
}
