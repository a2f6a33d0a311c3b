//! Macro expansion.

use std::sync::Arc;

use super::{Macro, Preprocessor, join};
use crate::ast::Name;
use crate::diag::counted;
use crate::lex::{Token, TokenKind, is_punct};
use crate::limits::Resource;
use crate::source::Span;

/// What is still to be read: tokens in reverse, with marks where a macro's expansion ends (until then that macro
/// is not expanded again).
enum Item {
    Token(Token),
    End(Name),
}

impl Preprocessor<'_> {
    /// Expands every macro in `tokens`.
    pub(super) fn expand(&mut self, tokens: Vec<Token>) -> Vec<Token> {
        let mut out = Vec::with_capacity(tokens.len());
        let mut todo: Vec<Item> = tokens.into_iter().rev().map(Item::Token).collect();
        while let Some(item) = todo.pop() {
            let token = match item {
                Item::End(name) => {
                    self.active.remove(&name);
                    continue;
                }
                Item::Token(token) => token,
            };
            if self.stopped {
                break;
            }
            if token.kind != TokenKind::Ident || self.active.contains(&token.text) {
                out.push(token);
                continue;
            }
            if let Some(text) = self.predefined(&token) {
                self.made(text.text.len(), token.span);
                out.push(text);
                continue;
            }
            let Some(found) = self.macros.get(&token.text).cloned() else {
                out.push(token);
                continue;
            };
            let args = match &found.params {
                None => Vec::new(),
                Some(params) => {
                    let ends = todo.iter().rev().take_while(|i| matches!(i, Item::End(_))).count();
                    self.made(ends, token.span);
                    let next = todo.len().checked_sub(ends + 1).and_then(|at| match &todo[at] {
                        Item::Token(t) => Some(t),
                        Item::End(_) => None,
                    });
                    if !next.is_some_and(|t| t.is("(")) {
                        out.push(token);
                        continue;
                    }
                    let Some(args) = self.arguments(&token, params.len(), found.variadic, &mut todo) else {
                        continue;
                    };
                    args
                }
            };
            let body = self.substitute(&found, args, token.span);
            if self.stopped {
                break;
            }
            self.active.insert(token.text.clone());
            todo.push(Item::End(token.text.clone()));
            for (index, mut t) in body.into_iter().enumerate().rev() {
                t.span = token.span;
                if index == 0 {
                    t.space = token.space;
                }
                todo.push(Item::Token(t));
            }
        }
        out
    }

    /// Counts tokens and bytes that macros make.
    fn made(&mut self, amount: usize, span: Span) -> bool {
        self.spend("macro-limit", Resource::Macros, amount, span)
    }

    fn predefined(&mut self, token: &Token) -> Option<Token> {
        let make = |kind, text: String| Token { kind, text: Arc::from(text), ..token.clone() };
        match &*token.text {
            "__LINE__" => Some(make(TokenKind::Number, self.sources.line(token.span).to_string())),
            "__COUNTER__" => {
                self.counter += 1;
                Some(make(TokenKind::Number, (self.counter - 1).to_string()))
            }
            "__FILE__" => {
                Some(make(TokenKind::Str, format!("{:?}", self.sources.file(token.span.file).name)))
            }
            _ => None,
        }
    }

    /// Takes `( a, b )` off `todo`.
    fn arguments(
        &mut self,
        name: &Token,
        arity: usize,
        variadic: bool,
        todo: &mut Vec<Item>,
    ) -> Option<Vec<Vec<Token>>> {
        let mut args: Vec<Vec<Token>> = vec![Vec::new()];
        let mut depth = 0;
        loop {
            let token = match todo.pop() {
                Some(Item::Token(token)) => token,
                Some(Item::End(name)) => {
                    self.active.remove(&name);
                    continue;
                }
                None => {
                    self.error(
                        "macro-call",
                        name.span,
                        format!("the arguments of macro `{}` are never closed", name.text),
                    )
                    .help = Some("add `)`".into());
                    return None;
                }
            };
            if token.is("(") {
                depth += 1;
                if depth == 1 {
                    continue;
                }
            } else if token.is(")") {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            } else if token.is(",") && depth == 1 && !(variadic && args.len() == arity) {
                args.push(Vec::new());
                continue;
            }
            if let Some(last) = args.last_mut() {
                last.push(token);
            }
        }
        if arity == 0 && args.len() == 1 && args[0].is_empty() {
            args.clear();
        }
        if variadic && args.len() + 1 == arity {
            args.push(Vec::new());
        }
        if args.len() != arity {
            let message =
                format!("macro `{}` takes {}, not {}", name.text, counted(arity, "argument"), args.len());
            self.error("macro-call", name.span, message);
            return None;
        }
        Some(args)
    }

    /// The body with its parameters replaced, `#` and `##` done. What it makes is counted as it is made.
    fn substitute(&mut self, found: &Macro, args: Vec<Vec<Token>>, span: Span) -> Vec<Token> {
        self.made(1 + found.body.len(), span);
        let Some(params) = &found.params else {
            return self.paste(found.body.clone(), span);
        };
        // Few macros have so many parameters that looking for them takes long.
        let look_up = params.len() / 16;
        let index = |t: &Token| {
            (t.kind == TokenKind::Ident).then(|| params.iter().position(|p| *p == t.text)).flatten()
        };
        let mut expanded: Vec<Option<Vec<Token>>> = vec![None; args.len()];
        let mut out = Vec::new();
        let rest = found.variadic.then(|| params.len() - 1);
        let chosen;
        let body = match rest {
            Some(rest) if found.body.iter().any(is_va_opt) => {
                chosen = with_va_opt(&found.body, !args[rest].is_empty());
                &chosen
            }
            _ => &found.body,
        };
        let mut at = 0;
        while at < body.len() && !self.stopped {
            let token = &body[at];
            self.made(look_up, span);
            if token.is("#")
                && let Some(param) = body.get(at + 1).and_then(index)
            {
                // Quotes and backslashes may double.
                let bytes: usize = args[param].iter().map(|t| t.text.len()).sum();
                if !self.made(args[param].len() + 2 * bytes, span) {
                    break;
                }
                let text = format!("{:?}", join(&args[param]));
                out.push(Token { kind: TokenKind::Str, text: Arc::from(text), span, space: token.space });
                at += 2;
                continue;
            }
            match index(token) {
                Some(param) => {
                    let pasted =
                        body.get(at + 1).is_some_and(|t| t.is("##")) || (at > 0 && body[at - 1].is("##"));
                    if !pasted && expanded[param].is_none() {
                        if !self.made(args[param].len(), span) || !self.deeper(span) {
                            break;
                        }
                        let value = self.expand(args[param].clone());
                        self.depth -= 1;
                        expanded[param] = Some(value);
                    }
                    let text =
                        if pasted { &args[param] } else { expanded[param].as_ref().unwrap_or(&args[param]) };
                    if !self.made(text.len(), span) {
                        break;
                    }
                    let first = out.len();
                    out.extend(text.iter().cloned());
                    if let Some(t) = out.get_mut(first) {
                        t.space = token.space;
                    } else if pasted && rest == Some(param) && ends_with_comma(&out) {
                        // `, ## __VA_ARGS__` leaves no comma where there are no arguments.
                        out.truncate(first - 2);
                    } else if pasted {
                        out.push(Token { text: Arc::from(""), ..token.clone() });
                    }
                }
                None => out.push(token.clone()),
            }
            at += 1;
        }
        self.paste(out, span)
    }

    /// Joins the neighbours of every `##`. Two that do not make one token stay two, side by side, as in the reference
    /// compiler's preprocessor. An argument without tokens stands as a token without text, which goes in the end.
    fn paste(&mut self, tokens: Vec<Token>, span: Span) -> Vec<Token> {
        if !tokens.iter().any(|t| t.is("##") || t.text.is_empty()) {
            return tokens;
        }
        let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
        let mut iter = tokens.into_iter();
        while let Some(token) = iter.next() {
            if !token.is("##") {
                out.push(token);
                continue;
            }
            let Some(right) = iter.next() else { break };
            let Some(left) = out.pop() else {
                out.push(right);
                continue;
            };
            if left.text.is_empty() {
                out.push(Token { space: left.space, ..right });
            } else if right.text.is_empty() {
                out.push(left);
            } else if let Some(kind) = pasted_kind(&left, &right) {
                if !self.made(left.text.len() + right.text.len(), span) {
                    break;
                }
                let text = format!("{}{}", left.text, right.text);
                out.push(Token { kind, text: Arc::from(text), ..left });
            } else {
                out.push(left);
                out.push(Token { space: false, ..right });
            }
        }
        out.retain(|t| !t.text.is_empty());
        out
    }
}

fn is_va_opt(token: &Token) -> bool {
    token.kind == TokenKind::Ident && &*token.text == "__VA_OPT__"
}

/// A body with what is in `__VA_OPT__( )`, or without it.
fn with_va_opt(body: &[Token], wanted: bool) -> Vec<Token> {
    let mut out = Vec::with_capacity(body.len());
    // Parentheses that are open inside of it.
    let mut depth = 0;
    let mut at = 0;
    while at < body.len() {
        let token = &body[at];
        at += 1;
        if depth == 0 {
            if is_va_opt(token) && body.get(at).is_some_and(|t| t.is("(")) {
                at += 1;
                depth = 1;
            } else {
                out.push(token.clone());
            }
            continue;
        }
        if token.is("(") {
            depth += 1;
        } else if token.is(")") {
            depth -= 1;
        }
        if depth > 0 && wanted {
            out.push(token.clone());
        }
    }
    out
}

/// `, ##` at the end.
fn ends_with_comma(tokens: &[Token]) -> bool {
    matches!(tokens, [.., comma, paste] if comma.is(",") && paste.is("##"))
}

/// What two tokens make together, if they make one.
fn pasted_kind(left: &Token, right: &Token) -> Option<TokenKind> {
    let word = |t: &Token| matches!(t.kind, TokenKind::Ident | TokenKind::Number);
    let both = |kind: TokenKind| left.kind == kind && right.kind == kind;
    if word(left) && word(right) {
        Some(left.kind)
    } else if both(TokenKind::Punct) && is_punct(&format!("{}{}", left.text, right.text)) {
        Some(TokenKind::Punct)
    } else {
        None
    }
}
