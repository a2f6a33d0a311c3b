//! `#if` expressions: integers, `defined`, and C's operators.

use num_traits::ToPrimitive;

use super::Preprocessor;
use crate::lex::{Token, TokenKind, number, number_cost};
use crate::limits::Resource;
use crate::source::Span;

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    /// What is being read decides nothing, so that it may divide by zero.
    idle: bool,
}

impl Preprocessor<'_> {
    /// Whether the condition of `#if` or `#elif` holds; a bad one is reported and does not.
    pub(super) fn condition(&mut self, line: &[Token], whole: Span) -> bool {
        let mut text = Vec::with_capacity(line.len());
        let mut at = 0;
        while at < line.len() {
            if &*line[at].text != "defined" {
                text.push(line[at].clone());
                at += 1;
                continue;
            }
            let paren = line.get(at + 1).is_some_and(|t| t.is("("));
            let name = line.get(at + 1 + usize::from(paren));
            let defined = name.is_some_and(|t| self.macros.contains_key(&t.text));
            let digit = if defined { "1" } else { "0" };
            text.push(Token { kind: TokenKind::Number, text: digit.into(), ..line[at].clone() });
            at += if paren { 4 } else { 2 };
        }
        let tokens = self.expand(text);
        for token in tokens.iter().filter(|t| t.kind == TokenKind::Number) {
            self.spend("too-large", Resource::Work, number_cost(&token.text), whole);
        }
        if self.stopped {
            return false;
        }
        let mut reader = Reader { tokens: &tokens, at: 0, depth: 0, idle: false };
        match reader.ternary() {
            Some(value) if reader.at == tokens.len() => value != 0,
            _ => {
                self.error("bad-condition", whole, "this condition is not an integer expression").help =
                    Some("use integers, macros, `defined(NAME)` and C's operators".into());
                false
            }
        }
    }
}

/// Operators by rising precedence.
const LEVELS: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Reader<'_> {
    fn take(&mut self, punct: &str) -> bool {
        let yes = self.tokens.get(self.at).is_some_and(|t| t.is(punct));
        self.at += usize::from(yes);
        yes
    }

    fn ternary(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > 200 {
            return None;
        }
        let cond = self.binary(0)?;
        let value = if self.take("?") {
            let outer = self.idle;
            self.idle = outer || cond == 0;
            let then = self.ternary()?;
            if !self.take(":") {
                return None;
            }
            self.idle = outer || cond != 0;
            let otherwise = self.ternary()?;
            self.idle = outer;
            if cond != 0 { then } else { otherwise }
        } else {
            cond
        };
        self.depth -= 1;
        Some(value)
    }

    fn operator(&mut self, level: usize) -> Option<&'static str> {
        if LEVELS[level].contains(&">>")
            && self.tokens.get(self.at).is_some_and(|t| t.is(">"))
            && self.tokens.get(self.at + 1).is_some_and(|t| t.is(">") && !t.space)
        {
            self.at += 2;
            return Some(">>");
        }
        if LEVELS[level].contains(&">") && self.tokens.get(self.at + 1).is_some_and(|t| t.is(">") && !t.space)
        {
            return None;
        }
        LEVELS[level].iter().copied().find(|op| self.take(op))
    }

    fn binary(&mut self, level: usize) -> Option<i64> {
        if level == LEVELS.len() {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(op) = self.operator(level) {
            let outer = self.idle;
            self.idle |= op == "||" && left != 0 || op == "&&" && left == 0;
            let right = self.binary(level + 1)?;
            self.idle = outer;
            left = match op {
                "/" | "%" if self.idle && right == 0 => 0,
                "||" => i64::from(left != 0 || right != 0),
                "&&" => i64::from(left != 0 && right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "<<" => left.checked_shl(u32::try_from(right).ok()?)?,
                ">>" => left.checked_shr(u32::try_from(right).ok()?)?,
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                "/" => left.checked_div(right)?,
                _ => left.checked_rem(right)?,
            };
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<i64> {
        let mut prefixes = Vec::new();
        loop {
            match self.tokens.get(self.at) {
                Some(t) if t.is("!") || t.is("-") || t.is("+") || t.is("~") => prefixes.push(t.text.clone()),
                _ => break,
            }
            self.at += 1;
        }
        let mut value = if self.take("(") {
            let value = self.ternary()?;
            if !self.take(")") {
                return None;
            }
            value
        } else {
            let token = self.tokens.get(self.at)?;
            self.at += 1;
            match token.kind {
                TokenKind::Number => {
                    let text = token.text.trim_end_matches(['u', 'U', 'l', 'L']);
                    match text.strip_prefix('0') {
                        // As in C, other than in the program itself.
                        Some(octal) if octal.bytes().next().is_some_and(|b| b.is_ascii_digit()) => {
                            i64::from_str_radix(octal, 8).ok()?
                        }
                        _ => number(text).ok()?.value.to_i64()?,
                    }
                }
                TokenKind::Ident => 0,
                _ => return None,
            }
        };
        for prefix in prefixes.iter().rev() {
            value = match &**prefix {
                "!" => i64::from(value == 0),
                "-" => value.wrapping_neg(),
                "~" => !value,
                _ => value,
            };
        }
        Some(value)
    }
}
