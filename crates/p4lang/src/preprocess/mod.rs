//! The preprocessor: includes, macros and conditionals, as `cpp` treats P4 source (P4_16 section 6.2).
//!
//! Works on tokens. Its output has no newlines and no directives, ends with one `Eof`, and carries for text that a
//! macro made the span of the macro's use. Everything is bounded: include depth, macro work and output size each end
//! in a diagnostic, never in a hang.

mod condition;
mod expand;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::ast::Name;
use crate::diag::Diagnostic;
use crate::lex::{Token, TokenKind, lex, unquote};
use crate::limits::{Budget, Limits, MAX_ERRORS, Resource, beyond};
use crate::similar::similar;
use crate::source::{self, FileId, SourceMap, Span};

/// How to read a program.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `-I`: searched in order, before the built-in files.
    pub include_dirs: Vec<PathBuf>,
    /// `-D name=value`.
    pub defines: Vec<(String, String)>,
    /// For text from a stranger: nothing but the built-in files can be included.
    pub no_files: bool,
    /// What the compilation may use.
    pub limits: Limits,
}

const MAX_INCLUDE_DEPTH: usize = 64;
const DIRECTIVES: [&str; 14] = [
    "define", "elif", "elifdef", "elifndef", "else", "endif", "error", "if", "ifdef", "ifndef", "include",
    "pragma", "undef", "warning",
];
/// Directives that change no macro.
const CONDITIONALS: [&str; 8] = ["if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"];
/// Files that come with the reference compiler, or with a vendor's.
const OTHER_ARCHITECTURES: [&str; 10] = [
    "psa.p4",
    "bmv2/psa.p4",
    "pna.p4",
    "dpdk/pna.p4",
    "dpdk/psa.p4",
    "tna.p4",
    "t2na.p4",
    "ubpf_model.p4",
    "xdp_model.p4",
    "xsa.p4",
];
/// What an include costs beside its bytes, however short the file.
const INCLUDE_COST: usize = 256;

#[derive(Debug, Clone)]
pub(crate) struct Macro {
    /// `None`: object-like.
    params: Option<Vec<Name>>,
    variadic: bool,
    body: Vec<Token>,
}

pub struct Preprocessor<'a> {
    pub sources: &'a mut SourceMap,
    pub diagnostics: &'a mut Vec<Diagnostic>,
    options: &'a Options,
    /// Files that can always be included: name and text.
    builtin: &'a [(&'static str, &'static str)],
    macros: HashMap<Name, Rc<Macro>>,
    once: HashSet<PathBuf>,
    out: Vec<Token>,
    budget: &'a Budget,
    /// Macros that are being expanded, and are not expanded again until that is done.
    active: HashSet<Name>,
    /// Macro calls in arguments of macro calls, here.
    depth: u64,
    /// The next `__COUNTER__`.
    counter: u32,
    errors: usize,
    unknown_directives: usize,
    stopped: bool,
}

/// One `#if`.
struct Conditional {
    span: Span,
    /// This branch is being read.
    active: bool,
    /// Some branch was already taken.
    taken: bool,
    outer_active: bool,
    seen_else: bool,
}

impl<'a> Preprocessor<'a> {
    pub fn new(
        sources: &'a mut SourceMap,
        diagnostics: &'a mut Vec<Diagnostic>,
        options: &'a Options,
        budget: &'a Budget,
        builtin: &'a [(&'static str, &'static str)],
    ) -> Self {
        let mut this = Preprocessor {
            sources,
            diagnostics,
            options,
            builtin,
            macros: HashMap::new(),
            once: HashSet::new(),
            out: Vec::new(),
            budget,
            active: HashSet::new(),
            depth: 0,
            counter: 0,
            errors: 0,
            unknown_directives: 0,
            stopped: false,
        };
        let predefined =
            [("__P4_16__", "1"), ("__p4c__", "1"), ("__TARGET_BMV2__", "1"), ("__TIDEGATE__", "1")]
                .map(|(n, v)| (n.to_owned(), v.to_owned()));
        for (name, value) in predefined.iter().chain(&options.defines) {
            let file = this.sources.add(format!("<define {name}>"), value.as_str());
            let mut body = lex(this.sources, file, this.diagnostics);
            body.retain(|t| !matches!(t.kind, TokenKind::Eof | TokenKind::Newline));
            let made = Macro { params: None, variadic: false, body };
            this.macros.insert(Arc::from(name.as_str()), Rc::new(made));
        }
        this
    }

    /// All tokens of the program whose main file is already in the source map.
    pub fn run(mut self, main: FileId, path: Option<&Path>) -> Vec<Token> {
        self.file(main, path, 0);
        let end = self.sources.file(main).text.len() as u32;
        self.out.push(Token {
            kind: TokenKind::Eof,
            text: Arc::from(""),
            span: Span { file: main, start: end, end },
            space: true,
        });
        self.out
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.errors += 1;
        self.stopped |= self.errors >= MAX_ERRORS;
        self.diagnostics.push(Diagnostic::error(code, span, message));
        let last = self.diagnostics.len() - 1;
        &mut self.diagnostics[last]
    }

    /// Counts what is used; reports once what runs out, and stops.
    fn spend(&mut self, code: &'static str, resource: Resource, amount: usize, span: Span) -> bool {
        let fits = self.budget.spend(resource, amount as u64);
        if !fits && !self.stopped {
            self.diagnostics.push(self.budget.report(code, resource, span));
            self.stopped = true;
        }
        fits
    }

    fn file(&mut self, file: FileId, path: Option<&Path>, depth: usize) {
        let tokens = lex(self.sources, file, self.diagnostics);
        let mut conditionals: Vec<Conditional> = Vec::new();
        let mut chunk: Vec<Token> = Vec::new();
        // The parts so far of a string with conditionals inside.
        let mut string: Option<Token> = None;
        let mut string_text = String::new();
        let mut at = 0;
        let mut line_start = true;
        while at < tokens.len() && !self.stopped {
            let token = &tokens[at];
            if line_start && token.is("#") {
                let end = tokens[at..]
                    .iter()
                    .position(|t| matches!(t.kind, TokenKind::Newline | TokenKind::Eof))
                    .map_or(tokens.len(), |n| at + n);
                // A conditional changes no macro, so that it may stand among the arguments of a macro call.
                let conditional = tokens[at..end].get(1).is_some_and(|t| CONDITIONALS.contains(&&*t.text));
                if !conditional && conditionals.last().is_none_or(|c| c.active) {
                    self.flush(&mut chunk);
                }
                self.directive(&tokens[at..end], &mut conditionals, path, depth);
                at = end;
                continue;
            }
            at += 1;
            // `@pragma name ...` runs to the end of its line and says nothing that we act on.
            if token.is("@") && tokens.get(at).is_some_and(|t| &*t.text == "pragma") {
                while !matches!(tokens[at].kind, TokenKind::Newline | TokenKind::Eof) {
                    at += 1;
                }
                continue;
            }
            match token.kind {
                TokenKind::Newline => line_start = true,
                TokenKind::Eof => break,
                _ => {
                    line_start = false;
                    if conditionals.last().is_none_or(|c| c.active) {
                        if matches!(token.kind, TokenKind::StrPart | TokenKind::StrEnd) {
                            string_text.push_str(&token.text);
                            let whole = string.get_or_insert_with(|| token.clone());
                            if token.kind == TokenKind::StrEnd {
                                whole.kind = TokenKind::Str;
                                whole.span = whole.span.to(token.span);
                                whole.text = Arc::from(std::mem::take(&mut string_text));
                                chunk.extend(string.take());
                            }
                            continue;
                        }
                        if token.kind == TokenKind::Unknown && token.text.starts_with('"') {
                            let start = Span { end: token.span.start + 1, ..token.span };
                            self.error("unterminated-string", start, "this string never ends").help =
                                Some("close it with `\"`".into());
                        }
                        chunk.push(token.clone());
                    }
                }
            }
        }
        self.flush(&mut chunk);
        for open in conditionals {
            if self.stopped {
                break;
            }
            self.error("unterminated-conditional", open.span, "this conditional has no `#endif`").help =
                Some("add `#endif`".into());
        }
    }

    /// Expands the text between two directives into the output.
    fn flush(&mut self, chunk: &mut Vec<Token>) {
        if chunk.is_empty() {
            return;
        }
        let text = std::mem::take(chunk);
        let expanded = self.expand(text);
        let room = self.budget.limits.tokens.saturating_sub(self.budget.used(Resource::Tokens)) as usize;
        if let Some(first) = expanded.get(room) {
            self.spend("too-large", Resource::Tokens, expanded.len(), first.span);
        } else {
            self.spend("too-large", Resource::Tokens, expanded.len(), Span::default());
        }
        if !self.stopped {
            self.out.extend(expanded);
        }
    }

    fn directive(
        &mut self,
        line: &[Token],
        conditionals: &mut Vec<Conditional>,
        path: Option<&Path>,
        depth: usize,
    ) {
        let Some(name) = line.get(1) else { return };
        let rest = &line[2..];
        let whole = line[0].span.to(line[line.len() - 1].span);
        let active = conditionals.last().is_none_or(|c| c.active);
        match &*name.text {
            "if" | "ifdef" | "ifndef" => {
                let holds = active && self.branch(&name.text, rest, whole);
                conditionals.push(Conditional {
                    span: whole,
                    active: holds,
                    taken: holds,
                    outer_active: active,
                    seen_else: false,
                });
            }
            "elif" | "elifdef" | "elifndef" | "else" => {
                let is_else = &*name.text == "else";
                let Some((seen_else, wants)) =
                    conditionals.last().map(|c| (c.seen_else, c.outer_active && !c.taken))
                else {
                    self.error("bad-directive", whole, format!("`#{}` without `#if`", name.text));
                    return;
                };
                if seen_else {
                    self.error("bad-directive", whole, format!("`#{}` after `#else`", name.text));
                }
                let holds = wants && (is_else || self.branch(&name.text[2..], rest, whole));
                if let Some(open) = conditionals.last_mut() {
                    open.active = holds;
                    open.taken |= holds;
                    open.seen_else = is_else;
                }
            }
            "endif" => {
                if conditionals.pop().is_none() {
                    self.error("bad-directive", whole, "`#endif` without `#if`");
                }
            }
            _ if !active => {}
            "define" => self.define(rest, whole),
            "undef" => match rest.first() {
                Some(t) if t.kind == TokenKind::Ident => {
                    self.macros.remove(&t.text);
                }
                _ => {
                    self.error("bad-directive", whole, "`#undef` wants a macro's name");
                }
            },
            "include" => self.include(rest, whole, path, depth),
            "error" => {
                let text = join(rest);
                self.error("user-error", whole, format!("#error {text}"));
            }
            "warning" => {
                let text = join(rest);
                self.diagnostics.push(Diagnostic::warning("user-warning", whole, format!("#warning {text}")));
            }
            "pragma" => {
                if rest.first().is_some_and(|t| &*t.text == "once")
                    && let Some(path) = path
                {
                    self.once.insert(path.to_path_buf());
                }
            }
            "line" | "ident" => {}
            // `# 12 "file"`: left by a preprocessor that ran before us.
            _ if name.kind == TokenKind::Number => {}
            other => self.unknown_directive(other, whole),
        }
    }

    /// The reference compiler takes what it does not know for a comment, and programs have such comments.
    fn unknown_directive(&mut self, word: &str, whole: Span) {
        self.unknown_directives += 1;
        if self.unknown_directives > MAX_ERRORS {
            return;
        }
        let message = format!("unknown preprocessor directive `#{word}`: the line is left out");
        let near = similar(word, DIRECTIVES.into_iter());
        let help = near.map_or("comments begin with `//`".into(), |near| format!("did you mean `#{near}`?"));
        self.diagnostics.push(Diagnostic::warning("bad-directive", whole, message).help(help));
    }

    /// Whether what follows `#if`, `#ifdef` or `#ifndef` holds.
    fn branch(&mut self, word: &str, rest: &[Token], whole: Span) -> bool {
        if word == "if" {
            return self.condition(rest, whole);
        }
        match rest.first() {
            Some(t) if t.kind == TokenKind::Ident => self.macros.contains_key(&t.text) == (word == "ifdef"),
            _ => {
                self.error("bad-directive", whole, format!("`#{word}` wants a macro's name"));
                false
            }
        }
    }

    fn define(&mut self, rest: &[Token], whole: Span) {
        let Some(name) = rest.first().filter(|t| t.kind == TokenKind::Ident) else {
            self.error("bad-directive", whole, "`#define` wants a macro's name");
            return;
        };
        let mut params = None;
        let mut variadic = false;
        let mut at = 1;
        if rest.get(1).is_some_and(|t| t.is("(") && !t.space) {
            let mut names = Vec::new();
            at = 2;
            loop {
                match rest.get(at) {
                    Some(t) if t.is(")") => break,
                    Some(t) if t.is(",") => {}
                    Some(t) if t.is("...") => {
                        variadic = true;
                        // `args...` has a name of its own.
                        if rest[at - 1].kind != TokenKind::Ident {
                            names.push(Arc::from("__VA_ARGS__"));
                        }
                    }
                    Some(t) if t.kind == TokenKind::Ident => names.push(t.text.clone()),
                    _ => {
                        self.error(
                            "bad-directive",
                            whole,
                            format!("the parameters of macro `{}` want `)`", name.text),
                        );
                        return;
                    }
                }
                at += 1;
            }
            at += 1;
            params = Some(names);
        }
        let made = Macro { params, variadic, body: rest[at..].to_vec() };
        self.macros.insert(name.text.clone(), Rc::new(made));
    }

    fn include(&mut self, rest: &[Token], whole: Span, from: Option<&Path>, depth: usize) {
        let expanded;
        let rest = match rest.first() {
            Some(t) if t.kind == TokenKind::Ident => {
                expanded = self.expand(rest.to_vec());
                &expanded[..]
            }
            _ => rest,
        };
        let (name, quoted) = match rest.first() {
            Some(t) if t.kind == TokenKind::Str => (unquote(&t.text), true),
            Some(t) if t.is("<") => {
                let mut name = String::new();
                for token in &rest[1..] {
                    if token.is(">") {
                        break;
                    }
                    name.push_str(&token.text);
                }
                (name, false)
            }
            _ => {
                self.error("bad-directive", whole, "`#include` wants \"file\" or <file>");
                return;
            }
        };
        if depth >= MAX_INCLUDE_DEPTH {
            self.error(
                "include-depth",
                whole,
                format!("includes are nested more than {MAX_INCLUDE_DEPTH} deep"),
            )
            .help = Some("does a file include itself? Give it an include guard".into());
            self.stopped = true;
            return;
        }
        let mut tried = Vec::new();
        let files = !self.options.no_files;
        let beside =
            (quoted && files).then(|| from.and_then(Path::parent).map(Path::to_path_buf).unwrap_or_default());
        for dir in beside.iter().chain(self.options.include_dirs.iter().filter(|_| files)) {
            let path = dir.join(&name);
            if path.is_file() {
                if self.once.contains(&path) {
                    return;
                }
                match source::read(&path) {
                    Ok(text) => {
                        if self.counted(&text, whole) {
                            let file = self.sources.add(path.display().to_string(), text);
                            self.file(file, Some(&path), depth + 1);
                        }
                    }
                    Err(error) => {
                        self.error("include", whole, format!("cannot read `{}`: {error}", path.display()));
                    }
                }
                return;
            }
            tried.push(if dir.as_os_str().is_empty() { ".".to_owned() } else { dir.display().to_string() });
        }
        if let Some((name, text)) = self.builtin.iter().find(|(n, _)| *n == name) {
            if self.counted(text, whole) {
                let file = self.sources.add(format!("<{name}>"), *text);
                self.file(file, None, depth + 1);
            }
            return;
        }
        let names: Vec<&str> = self.builtin.iter().map(|(name, _)| *name).collect();
        if files && OTHER_ARCHITECTURES.contains(&name.as_str()) {
            self.error("include", whole, format!("cannot find `{name}`")).help = Some(
                "it declares another architecture: with -I and its directory the program can be checked, not run"
                    .into(),
            );
            return;
        }
        tried.push(format!("the built-in files ({})", names.join(", ")));
        self.error("include", whole, format!("cannot find `{name}`")).help = Some(if files {
            format!("searched {}; add its directory with -I", tried.join(", "))
        } else {
            format!("this program can include only {}; preprocess it first", names.join(", "))
        });
    }
}

impl Preprocessor<'_> {
    /// Whether there is room for an included file.
    fn counted(&mut self, text: &str, span: Span) -> bool {
        self.spend("too-large", Resource::Included, text.len() + INCLUDE_COST, span)
    }

    /// One level deeper into arguments of macro calls, unless that is too deep.
    fn deeper(&mut self, span: Span) -> bool {
        let limit = self.budget.limits.macro_depth;
        if self.depth >= limit && !self.stopped {
            self.diagnostics.push(beyond("macro-limit", "macro_depth", limit, span));
            self.stopped = true;
        }
        self.depth += 1;
        !self.stopped
    }
}

/// Text of tokens, spaced as they were.
pub(crate) fn join(tokens: &[Token]) -> String {
    let mut out = String::new();
    for token in tokens {
        if token.space && !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&token.text);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> (String, Vec<String>) {
        let mut sources = SourceMap::default();
        let mut diagnostics = Vec::new();
        let options = Options::default();
        let main = sources.add("t.p4", text);
        let budget = Budget::new(&options.limits);
        let tokens =
            Preprocessor::new(&mut sources, &mut diagnostics, &options, &budget, &[]).run(main, None);
        let text: Vec<_> = tokens.iter().map(|t| &*t.text).collect();
        (text.join(" ").trim().to_owned(), diagnostics.iter().map(|d| d.message.clone()).collect())
    }

    #[test]
    fn macros_and_conditionals() {
        for (text, expected) in [
            ("#define A 3\nA B", "3 B"),
            ("#define F(x, y) x + y * x\nF(1, (2, 3))", "1 + ( 2 , 3 ) * 1"),
            ("#define F(x) x\nF", "F"),
            ("#define A B\n#define B A\nA", "A"),
            ("#define CAT(a, b) a##b\nCAT(x, 1)", "x1"),
            ("#define CAT(a, b) a##b c\nCAT(x, )", "x c"),
            ("#define CAT(a, b) c a##b\nCAT(, y)", "c y"),
            ("#define OP(a) < ## = a\nOP(1)", "<= 1"),
            ("#define P(a) bit<16> ## a ##_x = ## a;\nP(in)", "bit < 16 > in_x = in ;"),
            ("#define V(f, ...) f(0, ## __VA_ARGS__)\nV(g, 1, 2)\nV(g)", "g ( 0 , 1 , 2 ) g ( 0 )"),
            ("#define V(f, a...) f(0, ## a)\nV(g, 1, 2)\nV(g)", "g ( 0 , 1 , 2 ) g ( 0 )"),
            ("#define V(a...) a\nV() V(1, 2)", "1 , 2"),
            ("#define V(f, ...) f __VA_OPT__((f) ,) (__VA_ARGS__)\nV(g, 1)\nV(h)", "g ( g ) , ( 1 ) h ( )"),
            ("#define S(a) #a\nS(x + 1)", "\"x + 1\""),
            ("#define V(f, ...) f(__VA_ARGS__)\nV(g, 1, 2)", "g ( 1 , 2 )"),
            ("#if 1 + 1 == 2 && !defined(X)\na\n#else\nb\n#endif", "a"),
            ("#ifdef X\na\n#elif 0\nb\n#else\nc\n#endif", "c"),
            ("#ifndef X\n#define X\na\n#endif\n#ifndef X\nb\n#endif", "a"),
            ("#if 0\n#if 1\na\n#endif\n#else\nb\n#endif", "b"),
            ("#define A \\\n 7\nA", "7"),
            ("#define F(x) G(x)\n#define G(x) x x\nF(F(1))", "1 1 1 1"),
            ("#define EMPTY\nEMPTY a", "a"),
            ("#define F() 5\nF()", "5"),
            ("__LINE__\n__LINE__", "1 2"),
            ("__COUNTER__ __COUNTER__", "0 1"),
            ("#ifdef X\na\n#elifdef X\nb\n#elifndef X\nc\n#elifndef Y\nd\n#endif", "c"),
            ("#if defined(N) && 8 / N == 2 || !N && (1 ? 1 : 1 / N)\na\n#endif", "a"),
            ("#if 010 == 8 && 0 == 00 && 0x10 == 16 && 017L == 15\na\n#endif", "a"),
            ("#define F(x, y) x + y\nF(1,\n#ifdef X\n2\n#elif 1\n3)\nF(\n#endif\n4, 5)", "1 + 3 4 + 5"),
            ("#define F(x) <x>\nF(\n#if 0\n#define F 1\n#endif\n2)", "< 2 >"),
            ("// b \\  \nc\na", "a"),
            ("#\n# 3 \"x\"\n#ident \"y\"\n#line 4\na", "a"),
            // Conditionals inside of strings, as in annotations that restrict a table's entries.
            (
                "#define A\n(\"a;\n#ifdef A\n b;\n#else\n c;\n#endif\n#if 0\nd;\n#endif // A\n\") e",
                "( \"a;\n b;\n\" ) e",
            ),
            ("(\"a\n  # if 0\n#if 1\n b\n#endif\n#endif\nc\\\" d\" e)", "( \"a\nc\\\" d\" e )"),
            ("#if 0\n\"a\n#if 1\nb\n#endif\n\" c\n#else\nd\n#endif", "d"),
            ("#if 0\nit\"s a quote\n#if 1\n\"\"\n#endif\n#endif\na", "a"),
        ] {
            assert_eq!(run(text), (expected.to_owned(), vec![]), "{text}");
        }
    }

    #[test]
    fn faults_are_reported() {
        for (text, expected) in [
            ("#if 1", "no `#endif`"),
            ("#endif", "without `#if`"),
            ("#include \"nowhere.p4\"", "cannot find"),
            ("#frobnicate", "unknown preprocessor directive"),
            ("  #x.apply(); // it's off\n#", "unknown preprocessor directive `#x`"),
            ("#error no way", "#error no way"),
            ("#if 1 +\n#endif", "condition"),
            ("#if 08\n#endif", "condition"),
            ("#define F(x) x\nF(1", "never closed"),
            ("#define F(x) x\nF(1\n#define G\n)", "never closed"),
            ("a(\"b)\n#if 1\nc\n#endif\nd(\"e\")", "this string never ends"),
            ("a(\"b\n#if 0\nc\n#endif\n", "this string never ends"),
            ("a(\"b\n#if 0 /* c\n */\n#endif\n\")", "this string never ends"),
        ] {
            let (_, messages) = run(text);
            assert!(messages.iter().any(|m| m.contains(expected)), "{text}: {messages:?}");
        }
    }

    #[test]
    fn explosions_are_bounded() {
        let mut text = String::from("#define A0 x x\n");
        for i in 1..60 {
            text.push_str(&format!("#define A{i} A{} A{}\n", i - 1, i - 1));
        }
        text.push_str("A59");
        let (_, messages) = run(&text);
        assert!(messages.iter().any(|m| m.contains("macro")), "{messages:?}");
    }
}
