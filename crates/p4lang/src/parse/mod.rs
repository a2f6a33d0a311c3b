//! Tokens to syntax tree: a recursive-descent parser for the grammar of P4_16 1.2.5 (appendix "P4 grammar").
//!
//! The grammar is ambiguous where types and expressions meet. `(x) - y` is a cast if `x` names a type, so the parser
//! keeps the names of declared types; a statement that may be a declaration, and `a < b > (c)`, are tried as such
//! first. Errors are collected: after one the parser skips to the next statement or declaration.

mod decl;
mod expr;
mod stmt;
mod table;
mod types;

use std::collections::HashSet;

use crate::ast::{Ident, Name, Program};
use crate::diag::Diagnostic;
use crate::lex::{Token, TokenKind};
use crate::limits::{Budget, MAX_ERRORS, beyond};
use crate::source::Span;

/// Nested expressions, types, blocks and declarations.
const MAX_DEPTH: usize = 150;

/// A syntax error was reported (or, while trying, noticed).
pub(crate) struct Failed;
type Parsed<T> = Result<T, Failed>;

pub struct Parser<'a> {
    budget: &'a Budget,
    tokens: Vec<Token>,
    at: usize,
    diagnostics: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    types: HashSet<Name>,
    depth: usize,
    /// Levels of the highest expression or type read in the construct around.
    height: u64,
    /// Nesting of speculative parses; errors are not reported in one.
    trying: usize,
}

/// Parses a whole program. A tree comes back even after errors, without what could not be read.
pub fn parse(tokens: Vec<Token>, budget: &Budget) -> (Program, Vec<Diagnostic>) {
    let mut parser = Parser {
        budget,
        tokens,
        at: 0,
        diagnostics: Vec::new(),
        warnings: Vec::new(),
        types: HashSet::new(),
        depth: 0,
        height: 0,
        trying: 0,
    };
    let mut decls = Vec::new();
    while parser.peek().kind != TokenKind::Eof && parser.diagnostics.len() < MAX_ERRORS {
        let before = parser.at;
        parser.height = 0;
        match parser.top_level() {
            Ok(decl) => decls.push(decl),
            Err(Failed) => parser.skip_declaration(before),
        }
    }
    parser.warnings.append(&mut parser.diagnostics);
    (Program { decls }, parser.warnings)
}

/// Words that cannot name anything.
const RESERVED: &[&str] = &[
    "abstract",
    "action",
    "actions",
    "bit",
    "bool",
    "break",
    "const",
    "continue",
    "control",
    "default",
    "else",
    "entries",
    "enum",
    "error",
    "exit",
    "extern",
    "false",
    "for",
    "header",
    "header_union",
    "if",
    "in",
    "inout",
    "int",
    "key",
    "list",
    "match_kind",
    "out",
    "package",
    "parser",
    "return",
    "select",
    "state",
    "string",
    "struct",
    "switch",
    "table",
    "this",
    "transition",
    "true",
    "tuple",
    "type",
    "typedef",
    "value_set",
    "varbit",
    "void",
    "_",
];
/// Reserved words that still may name things (grammar rule `nonTypeName`; `list` as type name).
const CONTEXTUAL: &[&str] = &["actions", "entries", "key", "list", "state", "type"];

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at]
    }

    fn peek_at(&self, ahead: usize) -> &Token {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn advance(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
            self.budget.work(2);
            if let Some(resource) = self.budget.exhausted() {
                self.give_up(self.budget.report("too-large", resource, token.span));
            }
        }
        token
    }

    /// Goes to the end of the text: what follows cannot be read.
    fn give_up(&mut self, why: Diagnostic) {
        // Reported even while trying: a retry would only meet it again.
        if !self.given_up() {
            self.diagnostics.push(why);
        }
        self.at = self.tokens.len() - 1;
    }

    fn given_up(&self) -> bool {
        self.diagnostics.last().is_some_and(|d| matches!(d.code, "nesting" | "too-large"))
    }

    /// One more level on top of what has been read of the construct here.
    fn higher(&mut self) -> Parsed<()> {
        self.height += 1;
        let limit = self.budget.limits.depth;
        if self.height <= limit {
            return Ok(());
        }
        let span = self.peek().span;
        self.give_up(beyond("nesting", "depth", limit, span));
        Err(Failed)
    }

    fn at(&self, punct: &str) -> bool {
        self.peek().is(punct)
    }

    fn at_word(&self, word: &str) -> bool {
        self.word_at(0, word)
    }

    fn word_at(&self, ahead: usize, word: &str) -> bool {
        let token = self.peek_at(ahead);
        token.kind == TokenKind::Ident && &*token.text == word
    }

    fn take(&mut self, punct: &str) -> bool {
        let yes = self.at(punct);
        if yes {
            self.advance();
        }
        yes
    }

    fn take_word(&mut self, word: &str) -> bool {
        let yes = self.at_word(word);
        if yes {
            self.advance();
        }
        yes
    }

    fn expect(&mut self, punct: &str) -> Parsed<Span> {
        if self.at(punct) {
            return Ok(self.advance().span);
        }
        // Missing at the end of the line before is where a reader would put it.
        if matches!(punct, ";" | ")" | "]" | "}") && self.at > 0 {
            let before = self.tokens[self.at - 1].span;
            let span = Span { start: before.end.saturating_sub(1).max(before.start), ..before };
            let found = describe(self.peek());
            return self.fail_at(
                span,
                format!("expected `{punct}` after this, found {found}"),
                Some(format!("add `{punct}`")),
            );
        }
        self.fail(&format!("`{punct}`"))
    }

    fn expect_word(&mut self, word: &str) -> Parsed<Span> {
        if self.at_word(word) {
            return Ok(self.advance().span);
        }
        self.fail(&format!("`{word}`"))
    }

    fn fail<T>(&mut self, expected: &str) -> Parsed<T> {
        let found = describe(self.peek());
        let span = self.peek().span;
        self.fail_at(span, format!("expected {expected}, found {found}"), None)
    }

    fn fail_at<T>(&mut self, span: Span, message: String, help: Option<String>) -> Parsed<T> {
        if self.trying == 0 && !self.given_up() {
            let mut diagnostic = Diagnostic::error("syntax", span, message);
            diagnostic.help = help;
            self.diagnostics.push(diagnostic);
        }
        Err(Failed)
    }

    /// An error after which the rest can be read as if it were right, so that no other message follows from it.
    fn go_on(&mut self, span: Span, message: &str, help: &str) -> Parsed<()> {
        let failed = self.fail_at(span, message.to_owned(), Some(help.to_owned()));
        if self.trying > 0 { failed } else { Ok(()) }
    }

    fn is_name(token: &Token) -> bool {
        token.kind == TokenKind::Ident
            && (!RESERVED.contains(&&*token.text) || CONTEXTUAL.contains(&&*token.text))
    }

    /// A name being declared or referred to.
    fn ident(&mut self) -> Parsed<Ident> {
        if Self::is_name(self.peek()) {
            let token = self.advance();
            return Ok(Ident { name: token.text, span: token.span });
        }
        if self.peek().kind == TokenKind::Ident {
            let token = self.peek().clone();
            return self.fail_at(
                token.span,
                format!("expected a name, found the keyword `{}`", token.text),
                None,
            );
        }
        self.fail("a name")
    }

    /// The name of an annotation: any word.
    fn word_name(&mut self) -> Parsed<Ident> {
        if self.peek().kind == TokenKind::Ident {
            let token = self.advance();
            return Ok(Ident { name: token.text, span: token.span });
        }
        self.fail("a name")
    }

    /// Whether a comma stands here, and with it another item of a list that `close` ends.
    fn comma(&mut self, close: &str) -> Parsed<bool> {
        let comma = self.peek().span;
        if !self.take(",") {
            return Ok(false);
        }
        if self.at(close) {
            return self.fail_at(comma, "nothing follows this comma".into(), Some("remove it".into()));
        }
        Ok(true)
    }

    /// A `;` where the grammar has none.
    fn stray_semicolon<T>(&mut self) -> Parsed<T> {
        let span = self.peek().span;
        self.fail_at(span, "no `;` may stand here".into(), Some("remove it".into()))
    }

    /// Runs `f` one level deeper.
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            let span = self.peek().span;
            let what = format!("nested more than {MAX_DEPTH} levels deep");
            self.give_up(Diagnostic::error("nesting", span, what).help("split it up"));
            return Err(Failed);
        }
        let around = std::mem::take(&mut self.height);
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        let higher = self.higher();
        self.height = self.height.max(around);
        result.and_then(|made| higher.map(|()| made))
    }

    /// A warning, once for a place that is read again after a try.
    fn warn(&mut self, warning: Diagnostic) {
        let new = self.warnings.iter().all(|known| known.span != warning.span);
        if new && self.warnings.len() < MAX_ERRORS {
            self.warnings.push(warning);
        }
    }

    /// Runs `f`; if it fails, nothing was read and nothing reported.
    fn attempt<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Option<T> {
        // Tries within tries could take exponential time.
        if self.trying >= 4 {
            return None;
        }
        let start = self.at;
        self.trying += 1;
        let result = f(self).ok();
        self.trying -= 1;
        if result.is_none() && !self.given_up() {
            self.at = start;
        }
        result
    }

    /// After an error in a declaration: to where the next seems to start.
    fn skip_declaration(&mut self, started: usize) {
        if self.at == started {
            self.advance();
        }
        let mut depth = 0i32;
        // Braces that the failed declaration opened.
        for token in &self.tokens[started..self.at] {
            depth += i32::from(token.is("{")) - i32::from(token.is("}"));
        }
        let mut depth = depth.max(0);
        loop {
            let token = self.peek();
            if token.kind == TokenKind::Eof {
                return;
            }
            if depth == 0 && token.kind == TokenKind::Ident && STARTS.contains(&&*token.text) {
                return;
            }
            if token.is("{") {
                depth += 1;
            } else if token.is("}") {
                depth -= 1;
                if depth <= 0 {
                    self.advance();
                    self.take(";");
                    return;
                }
            } else if token.is(";") && depth == 0 {
                self.advance();
                return;
            }
            self.advance();
        }
    }

    /// After an error in a statement: past its `;`, or to the `}` that ends the block.
    fn skip_statement(&mut self, started: usize) {
        if self.at == started && !self.at("}") {
            self.advance();
        }
        let mut depth = 0;
        loop {
            let token = self.peek();
            if token.kind == TokenKind::Eof || (depth == 0 && token.is("}")) {
                return;
            }
            if token.is("{") {
                depth += 1;
            } else if token.is("}") {
                depth -= 1;
                if depth == 0 {
                    self.advance();
                    return;
                }
            } else if token.is(";") && depth == 0 {
                self.advance();
                return;
            }
            self.advance();
        }
    }
}

/// Words that start a declaration at top level.
const STARTS: &[&str] = &[
    "header",
    "struct",
    "header_union",
    "enum",
    "typedef",
    "parser",
    "control",
    "package",
    "extern",
    "action",
    "error",
    "match_kind",
    "const",
];

fn describe(token: &Token) -> String {
    match token.kind {
        TokenKind::Eof => "the end of the file".to_owned(),
        TokenKind::Str => format!("the string {}", token.text),
        // Text from a web page may have blanks, quotes and dashes that look like others.
        TokenKind::Unknown if !token.text.is_ascii() => {
            let code = token.text.chars().next().map_or(0, u32::from);
            format!("the character `{}` (U+{code:04X})", token.text)
        }
        _ => format!("`{}`", token.text),
    }
}
