//! Statements and blocks (P4_16 section 12).

use super::{Failed, Parsed, Parser};
use crate::ast::{Annotation, BinaryOp, Block, Decl, DeclKind, Expr, ExprKind, Stmt, StmtKind, SwitchCase};
use crate::source::Span;

const COMPOUND: &[(&str, BinaryOp)] = &[
    ("+=", BinaryOp::Add),
    ("-=", BinaryOp::Sub),
    ("*=", BinaryOp::Mul),
    ("/=", BinaryOp::Div),
    ("%=", BinaryOp::Mod),
    ("<<=", BinaryOp::Shl),
    ("&=", BinaryOp::BitAnd),
    ("^=", BinaryOp::BitXor),
    ("|=", BinaryOp::BitOr),
    ("|+|=", BinaryOp::AddSat),
    ("|-|=", BinaryOp::SubSat),
];

impl Parser<'_> {
    /// `{ ... }` with the annotations before it.
    pub(super) fn block(&mut self, annotations: Vec<Annotation>) -> Parsed<Block> {
        let start = self.expect("{")?;
        let stmts = self.statements()?;
        let end = self.expect("}")?;
        Ok(Block { annotations, stmts, span: start.to(end) })
    }

    /// Statements up to `}` (or `transition`), with recovery at each.
    pub(super) fn statements(&mut self) -> Parsed<Vec<Stmt>> {
        let mut stmts = Vec::new();
        loop {
            let token = self.peek();
            if token.is("}") || token.kind == crate::lex::TokenKind::Eof || self.at_word("transition") {
                return Ok(stmts);
            }
            let started = self.at;
            match self.statement() {
                Ok(stmt) => stmts.push(stmt),
                Err(Failed) if self.trying > 0 || self.diagnostics.len() >= crate::limits::MAX_ERRORS => {
                    return Err(Failed);
                }
                Err(Failed) => self.skip_statement(started),
            }
        }
    }

    fn statement(&mut self) -> Parsed<Stmt> {
        self.nested(Self::statement_inner)
    }

    fn statement_inner(&mut self) -> Parsed<Stmt> {
        let start = self.peek().span;
        let annotations = self.annotations()?;
        if !annotations.is_empty()
            && ["if", "switch", "return", "exit", "break", "continue"].iter().any(|w| self.at_word(w))
            || !annotations.is_empty() && self.at(";")
        {
            return self.stray_annotation(&annotations);
        }
        let kind = match &*self.peek().text.clone() {
            ";" => {
                self.advance();
                StmtKind::Empty
            }
            "{" => StmtKind::Block(self.block(annotations)?),
            "if" => self.if_statement()?,
            "switch" => self.switch_statement()?,
            "for" => self.for_statement(annotations)?,
            "return" => {
                self.advance();
                let value = if self.at(";") { None } else { Some(self.expr()?) };
                self.expect(";")?;
                StmtKind::Return(value)
            }
            word @ ("exit" | "break" | "continue") => {
                self.advance();
                self.expect(";")?;
                match word {
                    "exit" => StmtKind::Exit,
                    "break" => StmtKind::Break,
                    _ => StmtKind::Continue,
                }
            }
            "const" => StmtKind::Decl(Box::new(self.const_decl(annotations)?)),
            _ => {
                let kind = self.simple_statement(annotations)?;
                self.expect(";")?;
                kind
            }
        };
        Ok(Stmt { kind, span: start.to(self.before()) })
    }

    fn stray_annotation<T>(&mut self, annotations: &[Annotation]) -> Parsed<T> {
        let span = annotations.first().map_or(self.peek().span, |a| a.span);
        self.fail_at(
            span,
            "only declarations, blocks and loops can be annotated here".into(),
            Some("annotate a block `{ ... }` around the statement, or remove the annotation".into()),
        )
    }

    /// A parser's state has neither `switch` nor loops (grammar rule `parserStatement`).
    pub(super) fn state_statements(&mut self, stmts: &[Stmt]) -> Parsed<()> {
        for stmt in stmts {
            let word = match &stmt.kind {
                StmtKind::Switch { .. } => "switch",
                StmtKind::For { .. } | StmtKind::ForIn { .. } => "for",
                StmtKind::Block(block) => {
                    self.state_statements(&block.stmts)?;
                    continue;
                }
                _ => continue,
            };
            let start = stmt.span.start;
            let span = Span { end: start + word.len() as u32, ..stmt.span };
            let help = if word == "for" { "loop over states" } else { "use `transition select`" };
            return self.fail_at(
                span,
                format!("`{word}` may not stand in a parser state"),
                Some(help.into()),
            );
        }
        Ok(())
    }

    /// A declaration, assignment or call, without its `;`.
    fn simple_statement(&mut self, annotations: Vec<Annotation>) -> Parsed<StmtKind> {
        if let Some(decl) = self.local_declaration(&annotations)? {
            return Ok(StmtKind::Decl(Box::new(decl)));
        }
        if !annotations.is_empty() {
            return self.stray_annotation(&annotations);
        }
        let left = self.nested(Self::unary)?;
        if self.at("=") {
            self.advance();
            let right = self.expr()?;
            return Ok(StmtKind::Assign { left, op: None, right });
        }
        if let Some((_, op)) = COMPOUND.iter().find(|(text, _)| self.at(text)) {
            self.advance();
            let right = self.expr()?;
            return Ok(StmtKind::Assign { left, op: Some(*op), right });
        }
        if self.at(">") && self.peek_at(1).is(">=") {
            self.advance();
            self.advance();
            let right = self.expr()?;
            return Ok(StmtKind::Assign { left, op: Some(BinaryOp::Shr), right });
        }
        if !matches!(left.kind, ExprKind::Call { .. }) {
            if self.at("==") {
                let span = self.peek().span;
                return self.fail_at(
                    span,
                    "a comparison is not a statement".into(),
                    Some("use `=` to assign".into()),
                );
            }
            if self.at("++") {
                let span = self.peek().span;
                return self.fail_at(
                    span,
                    "`++` joins bit strings in P4".into(),
                    Some("use `x = x + 1`".into()),
                );
            }
            return self.fail("`=` or a call");
        }
        Ok(StmtKind::Call(left))
    }

    /// `T x`, `T x = e` or `T(args) x` without the `;`, if that is what stands here.
    fn local_declaration(&mut self, annotations: &[Annotation]) -> Parsed<Option<Decl>> {
        let start = self.peek().span;
        let head = self.attempt(|p| {
            let ty = p.type_ref()?;
            if Self::is_name(p.peek()) {
                return Ok((ty, None));
            }
            let args = p.args()?;
            if Self::is_name(p.peek()) { Ok((ty, Some(args))) } else { Err(Failed) }
        });
        let Some((ty, args)) = head else { return Ok(None) };
        let name = self.ident()?;
        let kind = match args {
            None => {
                let ty = self.array_of(ty)?;
                let init = if self.take("=") { Some(self.expr()?) } else { None };
                DeclKind::Variable { ty, name, init }
            }
            Some(args) => {
                let body = self.instance_body()?;
                DeclKind::Instantiation { ty, args, name, body }
            }
        };
        Ok(Some(Decl { annotations: annotations.to_vec(), kind, span: start.to(self.before()) }))
    }

    /// `= { ... }` after an instantiation: implementations of abstract methods.
    pub(super) fn instance_body(&mut self) -> Parsed<Option<Vec<Decl>>> {
        if !self.take("=") {
            return Ok(None);
        }
        self.expect("{")?;
        let mut decls = Vec::new();
        while !self.at("}") {
            decls.push(self.nested(Self::top_level)?);
        }
        self.expect("}")?;
        Ok(Some(decls))
    }

    /// A variable declared in a parser or control, or an instance, with its `;`.
    pub(super) fn declaration_statement(&mut self, annotations: &[Annotation]) -> Parsed<Decl> {
        match self.local_declaration(annotations)? {
            Some(decl) => {
                self.expect(";")?;
                Ok(decl)
            }
            None => {
                // For the message: what a declaration would want here.
                self.type_ref()?;
                self.ident()?;
                self.fail("a declaration")
            }
        }
    }

    /// A branch, or the body of a loop: no declaration.
    fn single_statement(&mut self) -> Parsed<Stmt> {
        let stmt = self.statement()?;
        match stmt.kind {
            StmtKind::Decl(_) => self.fail_at(
                stmt.span,
                "a declaration cannot be all of a branch or loop".into(),
                Some("put it into a block: `{ ... }`".into()),
            ),
            _ => Ok(stmt),
        }
    }

    fn if_statement(&mut self) -> Parsed<StmtKind> {
        self.expect_word("if")?;
        self.expect("(")?;
        let cond = self.expr()?;
        if self.at("=") {
            let span = self.peek().span;
            return self.fail_at(
                span,
                "an assignment is not a condition".into(),
                Some("use `==` to compare".into()),
            );
        }
        self.expect(")")?;
        let then = Box::new(self.single_statement()?);
        let otherwise = if self.take_word("else") { Some(Box::new(self.single_statement()?)) } else { None };
        Ok(StmtKind::If { cond, then, otherwise })
    }

    fn switch_statement(&mut self) -> Parsed<StmtKind> {
        self.expect_word("switch")?;
        self.expect("(")?;
        let on = self.expr()?;
        self.expect(")")?;
        self.expect("{")?;
        let mut cases = Vec::new();
        while !self.at("}") {
            let start = self.peek().span;
            let label = if self.take_word("default") {
                Expr { kind: ExprKind::Default, span: start }
            } else {
                self.expr()?
            };
            if self.at("..") || self.at("&&&") {
                let (message, help) =
                    ("a label of `switch` is one value", "write a label for each value, or use `if`");
                self.go_on(start.to(self.peek().span), message, help)?;
                self.advance();
                self.expr()?;
            }
            self.expect(":")?;
            let annotations = self.annotations()?;
            let body = if self.at("{") { Some(self.block(annotations)?) } else { None };
            cases.push(SwitchCase { label, body, span: start.to(self.before()) });
        }
        self.expect("}")?;
        Ok(StmtKind::Switch { on, cases })
    }

    fn for_statement(&mut self, annotations: Vec<Annotation>) -> Parsed<StmtKind> {
        self.expect_word("for")?;
        self.expect("(")?;
        let head = self.attempt(|p| {
            p.annotations()?;
            let typed = !(Self::is_name(p.peek()) && p.word_at(1, "in"));
            let ty = if typed { Some(p.type_ref()?) } else { None };
            let name = p.ident()?;
            p.expect_word("in")?;
            Ok((ty, name))
        });
        if let Some((None, name)) = &head {
            return self.fail_at(
                name.span,
                format!("the loop does not say what type `{}` has", name.name),
                Some(format!("declare it here: `for (bit<8> {} in ...)`", name.name)),
            );
        }
        if let Some((ty, name)) = head {
            let over = self.range_expr()?;
            self.expect(")")?;
            let body = Box::new(self.single_statement()?);
            return Ok(StmtKind::ForIn { annotations, ty, name, over, body });
        }
        let init = self.for_list(";")?;
        self.expect(";")?;
        let cond = if self.at(";") {
            let span = self.peek().span;
            self.go_on(span, "a loop needs a condition", "write `true`, and leave the loop with `break`")?;
            Expr { kind: ExprKind::Bool(true), span }
        } else {
            self.expr()?
        };
        self.expect(";")?;
        let update = self.for_list(")")?;
        if let Some(stmt) = update.iter().find(|stmt| matches!(stmt.kind, StmtKind::Decl(_))) {
            return self.fail_at(
                stmt.span,
                "a loop's update declares nothing".into(),
                Some("declare the variable before the first `;`".into()),
            );
        }
        self.expect(")")?;
        let body = Box::new(self.single_statement()?);
        Ok(StmtKind::For { annotations, init, cond, update, body })
    }

    fn for_list(&mut self, end: &str) -> Parsed<Vec<Stmt>> {
        let mut list = Vec::new();
        while !self.at(end) {
            let start: Span = self.peek().span;
            let annotations = self.annotations()?;
            let kind = self.simple_statement(annotations)?;
            list.push(Stmt { kind, span: start.to(self.before()) });
            if !self.take(",") {
                break;
            }
        }
        Ok(list)
    }
}
