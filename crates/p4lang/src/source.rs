//! Source files and places in them.
//!
//! A [`SourceMap`] owns the text of every file that took part in a compilation (the program, what it
//! includes, the built-in `core.p4` and `v1model.p4`); a [`Span`] is a byte range in one of them. Text that a
//! macro produced carries the span of the macro's use, because that is the line a reader can change.

use std::sync::Arc;

/// Index of a file in the [`SourceMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

/// Byte range `start..end` in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    pub file: FileId,
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// The smallest span that covers both; `self` if they lie in different files.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// One source file.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Path as the user would recognise it; built-in files are `<core.p4>` and `<v1model.p4>`.
    pub name: Arc<str>,
    pub text: Arc<str>,
    /// Byte offset of the start of each line.
    line_starts: Vec<u32>,
}

/// All files of one compilation.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    pub fn add(&mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> FileId {
        let text: Arc<str> = text.into();
        let mut line_starts = vec![0];
        line_starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        self.files.push(SourceFile { name: name.into(), text, line_starts });
        FileId(self.files.len() as u32 - 1)
    }

    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Line and column of a span's start, both from 1; the column counts characters.
    pub fn line_column(&self, span: Span) -> (u32, u32) {
        let file = self.file(span.file);
        let line = file.line_starts.partition_point(|s| *s <= span.start).max(1);
        let start = file.line_starts[line - 1] as usize;
        let upto = (span.start as usize).min(file.text.len());
        let column =
            file.text.as_bytes()[start.min(upto)..upto].iter().filter(|b| (**b & 0xC0) != 0x80).count();
        (line as u32, column as u32 + 1)
    }

    /// The source text that a span covers.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }
}
