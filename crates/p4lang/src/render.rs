//! Diagnostics for people and for machines.

use std::collections::HashMap;

use ariadne::{Cache, CharSet, Color, Config, Label, Report, ReportKind, Source};

use crate::diag::{Diagnostic, Severity};
use crate::source::{FileId, SourceMap, Span};

/// Diagnostics that are shown; more are counted.
const MAX_SHOWN: usize = 50;

/// Longer lines are not drawn.
const MAX_LINE: usize = 1_000;

struct Files<'a> {
    sources: &'a SourceMap,
    parsed: HashMap<FileId, Source<String>>,
}

impl Cache<FileId> for Files<'_> {
    type Storage = String;

    fn fetch(&mut self, id: &FileId) -> Result<&Source<String>, impl std::fmt::Debug> {
        let text = || Source::from(self.sources.file(*id).text.replace(is_unprintable, "\u{fffd}"));
        Ok::<_, std::convert::Infallible>(self.parsed.entry(*id).or_insert_with(text))
    }

    fn display<'a>(&self, id: &'a FileId) -> Option<impl std::fmt::Display + 'a> {
        Some(self.sources.file(*id).name.to_string())
    }
}

/// A span in a form that ariadne takes. Its offsets count characters.
fn place(sources: &SourceMap, span: Span) -> (FileId, std::ops::Range<usize>) {
    let text = &sources.file(span.file).text;
    let chars = |end: u32| text.get(..(end as usize).min(text.len())).map_or(0, |t| t.chars().count());
    let start = chars(span.start);
    (span.file, start..chars(span.end).max(start))
}

/// Whether the lines at both ends of a span are short enough to be drawn.
fn showable(sources: &SourceMap, span: Span) -> bool {
    let text = sources.file(span.file).text.as_bytes();
    [span.start, span.end].iter().all(|at| {
        let (before, after) = text.split_at((*at as usize).min(text.len()));
        let end = |b: &u8| *b == b'\n';
        let left = before.iter().rev().take(MAX_LINE).take_while(|b| !end(b)).count();
        let right = after.iter().take(MAX_LINE).take_while(|b| !end(b)).count();
        left + right < MAX_LINE
    })
}

/// Each with file, line, column, the line and a caret, what is wrong, and what would be right.
pub fn render(sources: &SourceMap, diagnostics: &[Diagnostic], color: bool) -> String {
    let mut out = Vec::new();
    let mut files = Files { sources, parsed: HashMap::new() };
    for d in diagnostics.iter().take(MAX_SHOWN) {
        let (kind, shade) = match d.severity {
            Severity::Error => (ReportKind::Error, Color::Red),
            Severity::Warning => (ReportKind::Warning, Color::Yellow),
        };
        let spans = d.related.iter().map(|(span, _)| *span).chain([d.span]);
        if spans.into_iter().any(|span| !showable(sources, span)) {
            out.extend_from_slice(line(sources, d).as_bytes());
            out.push(b'\n');
            if let Some(help) = &d.help {
                out.extend_from_slice(format!("  Help: {help}\n").as_bytes());
            }
            continue;
        }
        let at = place(sources, d.span);
        let label = if d.label.is_empty() { "here" } else { &d.label };
        let config = Config::default().with_color(color).with_char_set(if color {
            CharSet::Unicode
        } else {
            CharSet::Ascii
        });
        let mut report = Report::build(kind, at.clone())
            .with_config(config)
            .with_code(d.code)
            .with_message(printable(&d.message))
            .with_label(Label::new(at).with_message(label).with_color(shade));
        for (span, text) in &d.related {
            report = report
                .with_label(Label::new(place(sources, *span)).with_message(text).with_color(Color::Cyan));
        }
        if let Some(help) = &d.help {
            report = report.with_help(help);
        }
        // Writing to memory does not fail.
        let _ = report.finish().write(&mut files, &mut out);
    }
    let mut text = String::from_utf8_lossy(&out).into_owned();
    if diagnostics.len() > MAX_SHOWN {
        text.push_str(&format!("... and {} more\n", diagnostics.len() - MAX_SHOWN));
    }
    text
}

/// Whether a terminal would do something else with a character than show it. One character is shown in its place, so that
/// columns stay.
fn is_unprintable(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\r' | '\t')
}

fn printable(text: &str) -> String {
    let shown = |c: char| {
        if is_unprintable(c) { c.escape_default().to_string() } else { c.to_string() }
    };
    text.chars().map(shown).collect()
}

/// `file:line:column: error: message`.
pub fn line(sources: &SourceMap, d: &Diagnostic) -> String {
    let (line, column) = sources.line_column(d.span);
    let severity = match d.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    format!("{}:{line}:{column}: {severity}: {}", sources.file(d.span.file).name, printable(&d.message))
}

#[cfg(test)]
mod tests {
    use crate::{Options, compile_str};

    #[test]
    fn place_and_cure() {
        let compiled =
            compile_str("t.p4", "const bit<8> x = tru;\nconst bool y = 3;\n", None, &Options::default());
        let text = super::render(&compiled.sources, &compiled.diagnostics, false);
        for part in ["t.p4:1:18", "`tru` is not declared", "t.p4:2:16", "expected `bool`, found `int`"] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
    }

    #[test]
    fn long_lines_are_not_drawn() {
        let text = format!("const bit<8> x = {}tru;\n", " ".repeat(5_000));
        let compiled = compile_str("t.p4", &text, None, &Options::default());
        let shown = super::render(&compiled.sources, &compiled.diagnostics, false);
        assert!(shown.contains("t.p4:1:5018: error: `tru` is not declared"), "{shown}");
        assert!(shown.len() < 500, "{shown}");
    }
}
