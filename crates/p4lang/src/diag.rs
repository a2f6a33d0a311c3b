//! Diagnostics: what the compiler has to say about a program.

use crate::source::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
}

/// One finding, with its place and its cure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Stable kebab-case name of the kind of finding, e.g. `type-mismatch`, `uninitialized-read`.
    pub code: &'static str,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// Where, and what to write beside the caret (may be empty).
    pub span: Span,
    pub label: String,
    /// Other places that matter, each with a word on why ("declared here").
    pub related: Vec<(Span, String)>,
    /// What would be right, if that is known.
    pub help: Option<String>,
}

/// So many of what is named in the singular: `1 argument`, `2 arguments`.
pub fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

impl Diagnostic {
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: brief(message.into()),
            span,
            label: String::new(),
            related: Vec::new(),
            help: None,
        }
    }

    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = brief(text.into());
        self
    }

    pub fn related(mut self, span: Span, text: impl Into<String>) -> Self {
        self.related.push((span, brief(text.into())));
        self
    }

    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(brief(text.into()));
        self
    }
}

/// The same text, where words of the program that it repeats are not too long to read: of more than 200 characters the
/// first and the last ones are left.
fn brief(text: String) -> String {
    const MOST: usize = 200;
    const KEPT: usize = 60;
    if text.len() <= MOST {
        return text;
    }
    let shorter = |word: &str| {
        if word.len() <= MOST {
            return word.to_owned();
        }
        let first: String = word.chars().take(KEPT).collect();
        let mut last: Vec<char> = word.chars().rev().take(KEPT).collect();
        last.reverse();
        format!("{first}...{}", last.into_iter().collect::<String>())
    };
    text.split(' ').map(shorter).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_of_a_program_are_cut_where_they_are_repeated() {
        let long = "\u{e9}".repeat(500_000);
        let span = Span { file: crate::source::FileId(0), start: 0, end: 1 };
        let error =
            Diagnostic::error("unknown-name", span, format!("`{long}` is not declared")).help(long.clone());
        assert!(error.message.starts_with("`\u{e9}") && error.message.ends_with("\u{e9}` is not declared"));
        assert!(
            error.message.chars().count() < 160 && error.help.is_some_and(|help| help.chars().count() < 160)
        );
        let short = "w".repeat(200);
        assert_eq!(Diagnostic::error("unknown-name", span, short.clone()).message, short);
    }
}
