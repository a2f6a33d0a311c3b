//! P4_16 source to a checked and lowered [`ir::Program`]. No packets, no time, no I/O beyond reading includes.

pub mod ast;
pub mod check;
pub mod diag;
pub mod hir;
pub mod ir;
pub mod lex;
pub mod parse;
pub mod preprocess;
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
    let tokens = preprocess::Preprocessor::new(&mut sources, &mut diagnostics, options).run(main, path);
    let (program, found) = parse::parse(tokens);
    diagnostics.extend(found);
    let failed = diagnostics.iter().any(|d| d.severity == Severity::Error);
    (sources, (!failed).then_some(program), diagnostics)
}
