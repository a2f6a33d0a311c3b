//! Text to tokens (P4_16 section 6.3, 6.4), for the preprocessor and the parser alike.
//!
//! The lexer never fails: a byte that starts no token becomes [`TokenKind::Unknown`], and so does an unterminated
//! string up to the end of its line (the preprocessor reports it where it is not skipped); an unterminated comment is
//! reported and ends with the file. Numbers stay text until [`number`] reads them, since the preprocessor may paste
//! and stringise them.

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
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
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
                    at += if bytes[at] == b'\\' && at + 1 < bytes.len() { 2 } else { 1 };
                }
                at = at.min(bytes.len());
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

/// Whether a line is one of the directives that are acted on.
fn is_directive(line: &[u8]) -> bool {
    let blank = |b: &&u8| matches!(b, b' ' | b'\t');
    let hash = line.iter().take_while(blank).count();
    if line.get(hash) != Some(&b'#') {
        return false;
    }
    let line = &line[hash + 1..];
    let line = &line[line.iter().take_while(blank).count()..];
    let word = &line[..line.iter().take_while(|b| is_word(**b)).count()];
    let words = ["define", "elif", "else", "endif", "error", "if", "ifdef", "ifndef", "include", "undef"];
    words.iter().any(|w| w.as_bytes() == word)
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
