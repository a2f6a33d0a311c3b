//! Programs and pipelines from files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dataplane::pipeline::{self, Pipeline};
use p4lang::Limits;
use p4lang::diag::{Diagnostic, Severity};
use p4lang::ir::Program;
use p4lang::render::render;
use p4lang::source::SourceMap;
use serde_json::{Value, json};
use wire::pcap::unreadable;

use crate::{Failure, Result, fail};

/// What runs the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Engine {
    /// Native code if there can be any, else the interpreter, with a note.
    #[default]
    Auto,
    Interp,
    Jit,
}

impl std::str::FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Engine, String> {
        match text {
            "auto" => Ok(Engine::Auto),
            "interp" => Ok(Engine::Interp),
            "jit" => Ok(Engine::Jit),
            _ => Err(format!("no engine `{text}`; there are `auto`, `interp` and `jit`")),
        }
    }
}

/// A P4 file and how to preprocess it.
#[derive(Debug, Clone, Default)]
pub struct Source {
    pub path: PathBuf,
    /// Directories for includes.
    pub includes: Vec<PathBuf>,
    /// `NAME` or `NAME=TEXT`.
    pub defines: Vec<String>,
    /// What compiling it may use.
    pub limits: Limits,
}

/// A compiled file with everything that the compiler said.
pub struct Compiled {
    pub program: Option<Arc<Program>>,
    pub sources: SourceMap,
    pub diagnostics: Vec<Diagnostic>,
}

impl Source {
    pub fn compile(&self) -> Result<Compiled> {
        let options = p4lang::Options {
            include_dirs: self.includes.clone(),
            defines: self.defines.iter().map(|d| definition(d)).collect::<Result<_>>()?,
            limits: self.limits.clone(),
            no_files: false,
        };
        let compiled =
            p4lang::compile_file(&self.path, &options).map_err(|e| Failure(unreadable(&self.path, &e)))?;
        Ok(Compiled {
            program: compiled.program.map(Arc::new),
            sources: compiled.sources,
            diagnostics: compiled.diagnostics,
        })
    }

    /// The program, or all of its errors as one message.
    pub fn program(&self) -> Result<Arc<Program>> {
        self.compile()?.into_program()
    }
}

impl Compiled {
    fn into_program(self) -> Result<Arc<Program>> {
        if let Some(program) = self.program {
            return Ok(program);
        }
        let mut diagnostics = self.diagnostics;
        // What is a warning to those who check a program is an error to those who run it: that it is for another architecture, say.
        let kept = if diagnostics.iter().any(|d| d.severity == Severity::Error) {
            |d: &Diagnostic| d.severity == Severity::Error
        } else {
            |d: &Diagnostic| p4lang::NOTHING_TO_RUN.contains(&d.code)
        };
        diagnostics.retain(kept);
        for diagnostic in &mut diagnostics {
            diagnostic.severity = Severity::Error;
        }
        fail(render(&self.sources, &diagnostics, false).trim_end().to_owned())
    }
}

/// The default limits of compiling a program, but for these.
pub fn limits(given: impl IntoIterator<Item = (String, u64)>) -> Result<Limits> {
    let mut limits = Limits::default();
    for (name, value) in given {
        if !limits.set(&name, value) {
            let all: Vec<&str> = limits.all().into_iter().map(|(name, _)| name).collect();
            return fail(format!("there is no limit {name:?}; there are {}", all.join(", ")));
        }
    }
    Ok(limits)
}

/// Name and text of `NAME` or `NAME=TEXT`.
fn definition(text: &str) -> Result<(String, String)> {
    let (name, body) = text.split_once('=').unwrap_or((text, "1"));
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(letter) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return fail(format!("-D {text}: {name:?} is not a macro's name; write NAME or NAME=TEXT"));
    }
    Ok((name.to_owned(), body.to_owned()))
}

/// The program that is this text. It can include nothing but the architecture's declarations.
pub fn program_from_text(name: &str, text: &str, limits: Limits) -> Result<Arc<Program>> {
    let options = p4lang::Options { no_files: true, limits, ..p4lang::Options::default() };
    let compiled = p4lang::compile_str(name, text, None, &options);
    let (sources, diagnostics) = (compiled.sources, compiled.diagnostics);
    Compiled { program: compiled.program.map(Arc::new), sources, diagnostics }.into_program()
}

/// A switch that runs the program, and a note if it is not run in the usual way.
pub fn pipeline(program: Arc<Program>, engine: Engine, seed: u64) -> Result<(Pipeline, Option<String>)> {
    match engine {
        Engine::Interp => refuse(Pipeline::interpreted(program, seed)).map(|pipeline| (pipeline, None)),
        Engine::Jit => match Pipeline::compiled(program, seed) {
            Ok(pipeline) => Ok((pipeline, None)),
            Err(why) => fail(why.to_string()),
        },
        Engine::Auto => {
            let (pipeline, why) = refuse(Pipeline::new(program, seed))?;
            Ok((pipeline, why.map(|why| format!("{why}: the interpreter runs it, which is slower"))))
        }
    }
}

fn refuse<T>(made: std::result::Result<T, pipeline::Refused>) -> Result<T> {
    made.map_err(|why| Failure(why.to_string()))
}

/// Bytes of a file of commands or of a test, at most.
const MOST_TEXT: u64 = 64 << 20;

/// Text of a file that should be text: bytes that are not UTF-8 are refused with their line, and more than 64 MiB.
/// Without a byte order mark.
pub fn read_text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_TEXT + 1).read_to_end(&mut bytes));
    read.map_err(|e| Failure(unreadable(path, &e)))?;
    if bytes.len() as u64 > MOST_TEXT {
        return fail(format!(
            "{}: it has more than {} MiB; give a shorter file",
            path.display(),
            MOST_TEXT >> 20
        ));
    }
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if bytes.starts_with(MARK) {
        bytes.drain(..MARK.len());
    }
    String::from_utf8(bytes).map_err(|e| {
        let upto = e.utf8_error().valid_up_to();
        let line = e.as_bytes()[..upto].iter().filter(|b| **b == b'\n').count() + 1;
        Failure(format!("{}:{line}: this is not text (a byte that is not UTF-8)", path.display()))
    })
}

/// Diagnostics for machines.
pub fn diagnostics_json(sources: &SourceMap, diagnostics: &[Diagnostic]) -> Value {
    let place = |span| {
        let (line, column) = sources.line_column(span);
        (sources.file(span.file).name.to_string(), line, column)
    };
    diagnostics
        .iter()
        .map(|d| {
            let (file, line, column) = place(d.span);
            json!({
                "severity": if d.severity == Severity::Error { "error" } else { "warning" },
                "code": d.code,
                "message": d.message,
                "file": file,
                "line": line,
                "column": column,
                "label": d.label,
                "help": d.help,
                "related": d.related.iter().map(|(span, text)| {
                    let (file, line, column) = place(*span);
                    json!({"file": file, "line": line, "column": column, "message": text})
                }).collect::<Vec<_>>(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_end_is_refused() {
        let Failure(why) = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(why, "/dev/zero: it has more than 64 MiB; give a shorter file");
    }
}
