//! Source files and places in them.
//!
//! A [`SourceMap`] owns the text of every file that took part in a compilation (the program, what it
//! includes, the built-in `core.p4` and declarations of architectures); a [`Span`] is a byte range in one of them. Text that a
//! macro produced carries the span of the macro's use, because that is the line a reader can change.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a program; more than this are no program but a mistake.
const MAX_BYTES: u64 = 64 << 20;

/// The text of a source file, without a byte order mark. Bytes that are not UTF-8 become replacement characters, as comments
/// in other encodings are common.
///
/// # Errors
/// As reading files; and `InvalidData` for files of more than 64 MiB and for those that are no text.
pub fn read(path: &Path) -> io::Result<String> {
    let wrong = |why: String| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return wrong(format!("it is larger than {} MiB", MAX_BYTES >> 20));
    }
    if let Some(at) = bytes.iter().position(|b| *b == 0) {
        let line = bytes[..at].iter().filter(|b| **b == b'\n').count() + 1;
        return wrong(format!("it is not text (line {line} has a zero byte)"));
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    Ok(String::from_utf8_lossy(text).into_owned())
}

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

    /// Line of a span's start, from 1.
    pub fn line(&self, span: Span) -> usize {
        self.file(span.file).line_starts.partition_point(|s| *s <= span.start).max(1)
    }

    /// The source text that a span covers.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }
}
