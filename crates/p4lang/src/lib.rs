//! P4_16 source to a checked and lowered [`ir::Program`]. No packets, no time, no I/O beyond reading includes.

pub mod ast;
pub mod check;
pub mod diag;
pub mod hir;
pub mod ir;
pub mod lex;
pub mod lower;
pub mod p4info;
pub mod parse;
pub mod preprocess;
pub mod render;
pub mod source;

use std::path::Path;

pub use preprocess::Options;

use diag::{Diagnostic, Severity};
use source::SourceMap;

/// Preprocesses and parses. No tree if there was an error.
pub fn parse_str(
    name: &str,
    text: &str,
    path: Option<&Path>,
    options: &Options,
) -> (SourceMap, Option<ast::Program>, Vec<Diagnostic>) {
    let mut sources = SourceMap::default();
    let mut diagnostics = Vec::new();
    let main = sources.add(name, text);
    let core = ("core.p4", include_str!("builtin/core.p4"));
    let builtin: Vec<_> = std::iter::once(core).chain(lower::declarations()).collect();
    let preprocessor = preprocess::Preprocessor::new(&mut sources, &mut diagnostics, options, &builtin);
    let tokens = preprocessor.run(main, path);
    let (program, found) = parse::parse(tokens);
    diagnostics.extend(found);
    let failed = diagnostics.iter().any(|d| d.severity == Severity::Error);
    (sources, (!failed).then_some(program), diagnostics)
}

/// What came of compiling a program.
#[derive(Debug)]
pub struct Compiled {
    pub sources: SourceMap,
    /// Absent if there was an error, or nothing that can be run (then a warning says so).
    pub program: Option<ir::Program>,
    /// In source order within each phase.
    pub diagnostics: Vec<Diagnostic>,
}

/// Codes of the warnings that say why a program without errors cannot be run.
pub const NOTHING_TO_RUN: [&str; 2] = [lower::NO_MAIN, lower::OTHER_ARCHITECTURE];

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
    let (sources, program, mut diagnostics) = parse_str(name, text, path, options);
    let mut lowered = None;
    if let Some(program) = program {
        let (hir, found) = check::check(&program);
        diagnostics.extend(found);
        if let Some(hir) = hir {
            let (program, found) = lower::lower(&hir, &sources);
            diagnostics.extend(found);
            lowered = program;
        }
    }
    Compiled { sources, program: lowered, diagnostics }
}
