//! Text to tokens (P4_16 section 6.3, 6.4), for the preprocessor and the parser alike.
//!
//! The lexer never fails: a byte that starts no token becomes [`TokenKind::Unknown`], and so does an unterminated
//! string up to the end of its line (the preprocessor reports it where it is not skipped); an unterminated comment is
//! reported and ends with the file. A string with whole conditionals inside comes in parts, with the
//! tokens of the directives between them: all but the last are a [`TokenKind::StrPart`]. Numbers stay text until [`number`] reads them, since the preprocessor may paste
//! and stringise them.

use std::collections::VecDeque;
use std::sync::Arc;

use num_bigint::BigInt;

use crate::ast::Name;
use crate::diag::Diagnostic;
use crate::source::{FileId, SourceMap, Span};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    Ident,
    Number,
    /// Text with its quotes and escapes.
    Str,
    /// The lines of a string before, or between, the conditionals inside of it.
    StrPart,
    /// What follows the last of them, to the closing quote.
    StrEnd,
    Punct,
    Newline,
    Unknown,
    Eof,
}

#[derive(Debug, Clone)]
pub struct Token {
    pub kind: TokenKind,
    pub text: Name,
    pub span: Span,
    /// White space or a comment stood before it.
    pub space: bool,
}

impl Token {
    pub fn is(&self, punct: &str) -> bool {
        self.kind == TokenKind::Punct && &*self.text == punct
    }
}

/// Longest first among those that share a prefix. `>>` and `>>=` are left to the parser (type arguments close
/// with `>>`).
const PUNCTS: &[&str] = &[
    "|+|=", "|-|=", "&&&", "|+|", "|-|", "<<=", "...", "{#}", "..", "&&", "||", "==", "!=", "<=", ">=", "<<",
    "++", "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "##", "{", "}", "(", ")", "[", "]", "<", ">", ";",
    ":", ",", ".", "?", "=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "@", "#",
];

pub fn is_punct(text: &str) -> bool {
    PUNCTS.contains(&text)
}

/// All tokens of a file, newlines included, ended by [`TokenKind::Eof`].
pub fn lex(sources: &SourceMap, file: FileId, diagnostics: &mut Vec<Diagnostic>) -> Vec<Token> {
    let before = diagnostics.len();
    let tokens = lex_with(sources, file, diagnostics, true);
    let open = |t: &Token| t.kind == TokenKind::Unknown && t.text.starts_with('"');
    if !(tokens.iter().any(|t| t.kind == TokenKind::StrPart) && tokens.iter().any(open)) {
        return tokens;
    }
    // A quote is missing somewhere: the string that seemed to go on over conditionals is the first that it can be missing from.
    diagnostics.truncate(before);
    lex_with(sources, file, diagnostics, false)
}

fn lex_with(
    sources: &SourceMap,
    file: FileId,
    diagnostics: &mut Vec<Diagnostic>,
    conditionals_in_strings: bool,
) -> Vec<Token> {
    let text = sources.file(file).text.clone();
    let puncts: Vec<Name> = PUNCTS.iter().map(|p| Arc::from(*p)).collect();
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len() / 4);
    let mut at = 0;
    let mut space = false;
    let span = |start: usize, end: usize| Span { file, start: start as u32, end: end as u32 };
    let newline: Name = Arc::from("\n");
    // Where the tokens of the current line start.
    let mut line = 0;
    // End of the line with a directive that has strings.
    let mut line_end = 0;
    // A string that began before this place does not end.
    let mut open_until = 0;
    // The parts that are still to come of a string with conditionals inside.
    let mut parts = VecDeque::new();
    // A string that began before this place has no such parts.
    let mut no_parts_until = if conditionals_in_strings { 0 } else { bytes.len() };
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        if parts.front().is_some_and(|(from, _)| *from == start) {
            at = parts.pop_front().map_or(start, |(_, to)| to);
            let kind = if parts.is_empty() { TokenKind::StrEnd } else { TokenKind::StrPart };
            out.push(Token { kind, text: Arc::from(&text[start..at]), span: span(start, at), space });
            space = false;
            if kind == TokenKind::StrPart {
                out.push(Token {
                    kind: TokenKind::Newline,
                    text: newline.clone(),
                    span: span(at, at),
                    space,
                });
                line = out.len();
            }
            continue;
        }
        match byte {
            b'\n' => {
                at += 1;
                out.push(Token {
                    kind: TokenKind::Newline,
                    text: newline.clone(),
                    span: span(start, at),
                    space,
                });
                line = out.len();
                space = false;
                continue;
            }
            b'\\' if continuation(&bytes[at + 1..]).is_some() => {
                at += 1 + continuation(&bytes[at + 1..]).unwrap_or(0);
                space = true;
                continue;
            }
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                at += 1;
                space = true;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    let joined = if bytes[at] == b'\\' { continuation(&bytes[at + 1..]) } else { None };
                    at += 1 + joined.unwrap_or(0);
                }
                space = true;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                match text[at + 2..].find("*/") {
                    Some(length) => at += 2 + length + 2,
                    None => {
                        at = bytes.len();
                        diagnostics.push(
                            Diagnostic::error(
                                "unterminated-comment",
                                span(start, start + 2),
                                "this comment never ends",
                            )
                            .help("close it with `*/`"),
                        );
                    }
                }
                space = true;
                continue;
            }
            _ => {}
        }
        let kind = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                while at < bytes.len() && is_word(bytes[at]) {
                    at += 1;
                }
                TokenKind::Ident
            }
            b'0'..=b'9' => {
                while at < bytes.len() && is_word(bytes[at]) {
                    at += 1;
                }
                TokenKind::Number
            }
            b'"' => {
                // A string may go over several lines, but a directive ends with its line.
                if matches!(out.get(line), Some(first) if first.is("#")) {
                    if line_end <= start {
                        line_end = text[start..].find('\n').map_or(bytes.len(), |end| start + end);
                    }
                    match string_end(&bytes[start..line_end]) {
                        Ok(length) => {
                            at += length;
                            TokenKind::Str
                        }
                        Err(_) => {
                            at = line_end;
                            TokenKind::Unknown
                        }
                    }
                } else if start < open_until {
                    // An escaped quote of a string without an end has none either.
                    at += text[start..].find('\n').unwrap_or(text.len() - start);
                    TokenKind::Unknown
                } else {
                    match string_end(&bytes[start..]) {
                        Ok(length) => {
                            at += length;
                            TokenKind::Str
                        }
                        Err(length) => {
                            if start >= no_parts_until {
                                match string_parts(bytes, start) {
                                    Ok(found) => {
                                        parts = found;
                                        continue;
                                    }
                                    Err(end) => no_parts_until = end,
                                }
                            }
                            open_until = start + length;
                            at += text[start..].find('\n').unwrap_or(text.len() - start);
                            TokenKind::Unknown
                        }
                    }
                }
            }
            _ => match PUNCTS.iter().position(|p| bytes[at..].starts_with(p.as_bytes())) {
                Some(index) => {
                    at += PUNCTS[index].len();
                    out.push(Token {
                        kind: TokenKind::Punct,
                        text: puncts[index].clone(),
                        span: span(start, at),
                        space,
                    });
                    space = false;
                    continue;
                }
                None => {
                    at += text[at..].chars().next().map_or(1, char::len_utf8);
                    TokenKind::Unknown
                }
            },
        };
        // A string's escape may end in the middle of a character.
        while at < bytes.len() && !text.is_char_boundary(at) {
            at += 1;
        }
        at = at.min(bytes.len());
        out.push(Token { kind, text: Arc::from(&text[start..at]), span: span(start, at), space });
        space = false;
    }
    let end = bytes.len();
    out.push(Token { kind: TokenKind::Eof, text: Arc::from(""), span: span(end, end), space });
    out
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Length of the line end after a backslash, if one follows.
fn continuation(rest: &[u8]) -> Option<usize> {
    let blanks = rest.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
    (rest.get(blanks) == Some(&b'\n')).then_some(blanks + 1)
}

/// A number's value, width and signedness.
pub struct Number {
    pub value: BigInt,
    pub width: Option<u32>,
    pub signed: bool,
}

/// Digits of a number.
const MAX_DIGITS: usize = 100_000;

/// Steps of work that [`number`] takes: decimal digits cost their square.
pub fn number_cost(text: &str) -> usize {
    let digits = text.len().min(MAX_DIGITS);
    1 + text.len() / 64 + digits * digits / 10_000
}

/// Reads `12`, `0x1F`, `0b10_01`, `0o17`, `0d9`, `8w255`, `4s0b1010` (section 6.4.3.2).
pub fn number(text: &str) -> Result<Number, String> {
    let digits_end = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'_').count();
    let (width, signed, body) = match text.as_bytes().get(digits_end) {
        Some(mark @ (b'w' | b's')) if digits_end > 0 => {
            let width: u32 = text[..digits_end]
                .parse()
                .map_err(|_| format!("`{}` is not a width", &text[..digits_end]))?;
            (Some(width), *mark == b's', &text[digits_end + 1..])
        }
        _ => (None, false, text),
    };
    let (radix, digits) = match body.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &body[2..]),
        [b'0', b'b' | b'B', ..] => (2, &body[2..]),
        [b'0', b'o' | b'O', ..] => (8, &body[2..]),
        [b'0', b'd' | b'D', ..] => (10, &body[2..]),
        _ => (10, body),
    };
    let digits: Vec<u8> = digits.bytes().filter(|b| *b != b'_').collect();
    let base = match radix {
        16 => "hexadecimal",
        2 => "binary",
        8 => "octal",
        _ => "decimal",
    };
    if digits.is_empty() {
        return Err(format!("`{text}` has no {base} digits"));
    }
    if digits.len() > MAX_DIGITS {
        return Err("this number has too many digits".to_owned());
    }
    let value = BigInt::parse_bytes(&digits, radix)
        .ok_or_else(|| format!("`{text}` has digits that are not {base}"))?;
    Ok(Number { value, width, signed })
}

/// Length of the string at the start of a text; or of what was looked at if it does not end. A line with a directive cannot
/// be part of one.
fn string_end(text: &[u8]) -> Result<usize, usize> {
    let mut at = 1;
    loop {
        match text.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at += 2,
            Some(b'\n') if is_directive(&text[at + 1..]) => return Err(at),
            Some(_) => at += 1,
            None => return Err(text.len()),
        }
    }
}

/// Where the parts begin and end of a string at `start` with conditionals inside, each from its `#if` to its `#endif`: what
/// `cpp` makes of it, which sees lines and not strings. Or the end of what was looked at if that is no such string.
fn string_parts(text: &[u8], start: usize) -> Result<VecDeque<(usize, usize)>, usize> {
    let mut parts = VecDeque::new();
    let (mut from, mut at, mut depth) = (start, start + 1, 0usize);
    loop {
        match text.get(at).ok_or(text.len())? {
            b'"' => {
                parts.push_back((from, at + 1));
                return if depth == 0 { Ok(parts) } else { Err(at) };
            }
            b'\\' => at += 2,
            b'\n' => {
                at += 1;
                while let Some(word) = directive(&text[at.min(text.len())..]) {
                    depth = match word {
                        b"if" | b"ifdef" | b"ifndef" => depth + 1,
                        b"elif" | b"elifdef" | b"elifndef" | b"else" if depth > 0 => depth,
                        b"endif" if depth > 0 => depth - 1,
                        _ => return Err(at),
                    };
                    if from < at {
                        parts.push_back((from, at));
                    }
                    at += line_length(&text[at..]).ok_or(at)?;
                    from = at;
                }
            }
            _ => at += 1,
        }
    }
}

/// Length of a line with its end, and of those that a backslash joins to it. `None` if it has no end, or not its own.
fn line_length(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'\n' => return Some(at + 1),
            b'\\' => at += 1 + continuation(&text[at + 1..]).unwrap_or(0),
            // A comment may go over several lines.
            b'/' if text.get(at + 1) == Some(&b'*') => return None,
            _ => at += 1,
        }
    }
}

/// Whether a line is one of the directives that are acted on.
fn is_directive(line: &[u8]) -> bool {
    let words = [
        "define", "elif", "elifdef", "elifndef", "else", "endif", "error", "if", "ifdef", "ifndef",
        "include", "undef",
    ];
    directive(line).is_some_and(|word| words.iter().any(|w| w.as_bytes() == word))
}

/// The word after the `#` that a line begins with.
fn directive(line: &[u8]) -> Option<&[u8]> {
    let blank = |b: &&u8| matches!(b, b' ' | b'\t');
    let hash = line.iter().take_while(blank).count();
    let line = line[hash..].strip_prefix(b"#")?;
    let line = &line[line.iter().take_while(blank).count()..];
    Some(&line[..line.iter().take_while(|b| is_word(**b)).count()])
}

/// The value of a string token: quotes off, escapes resolved.
pub fn unquote(text: &str) -> String {
    let inner = text.strip_prefix('"').unwrap_or(text);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (text, value, width, signed) in [
            ("0", 0, None, false),
            ("0x1F", 31, None, false),
            ("8w0b1010_0101", 0xa5, Some(8), false),
            ("4s0d7", 7, Some(4), true),
            ("0o17", 15, None, false),
            ("1_000", 1000, None, false),
        ] {
            let number = number(text).unwrap();
            assert_eq!((number.value, number.width, number.signed), (value.into(), width, signed), "{text}");
        }
        for text in ["0x", "8w", "8W5", "4S1", "0b12", "12abc", "99999999999w1", "1_6w5"] {
            assert!(number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tokens() {
        let mut sources = SourceMap::default();
        let file = sources.add("t", "a&&&b // c\n{#} |+| x/*y*/..z \"q\\\"\" 8w1");
        let mut diagnostics = Vec::new();
        let texts: Vec<_> =
            lex(&sources, file, &mut diagnostics).iter().map(|t| t.text.to_string()).collect();
        assert_eq!(texts, ["a", "&&&", "b", "\n", "{#}", "|+|", "x", "..", "z", "\"q\\\"\"", "8w1", ""]);
        assert!(diagnostics.is_empty());
    }
}
