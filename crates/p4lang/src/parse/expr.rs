//! Expressions and keysets (grammar rules `expression`, `keysetExpression`; P4_16 section 8).

use super::{Parsed, Parser};
use crate::ast::{Arg, BinaryOp, Expr, ExprKind, Path, TypeKind, TypeRef, UnaryOp};
use crate::diag::Diagnostic;
use crate::lex::{TokenKind, number, number_cost, unquote};
use crate::source::Span;

/// Binary operators with their precedence; bitwise ones bind tighter than comparisons, unlike C.
const BINARY: &[(&str, BinaryOp, u8)] = &[
    ("||", BinaryOp::Or, 1),
    ("&&", BinaryOp::And, 2),
    ("==", BinaryOp::Eq, 3),
    ("!=", BinaryOp::Ne, 3),
    ("<", BinaryOp::Lt, 4),
    (">", BinaryOp::Gt, 4),
    ("<=", BinaryOp::Le, 4),
    (">=", BinaryOp::Ge, 4),
    ("|", BinaryOp::BitOr, 5),
    ("^", BinaryOp::BitXor, 6),
    ("&", BinaryOp::BitAnd, 7),
    ("<<", BinaryOp::Shl, 8),
    ("++", BinaryOp::Concat, 9),
    ("+", BinaryOp::Add, 9),
    ("-", BinaryOp::Sub, 9),
    ("|+|", BinaryOp::AddSat, 9),
    ("|-|", BinaryOp::SubSat, 9),
    ("*", BinaryOp::Mul, 10),
    ("/", BinaryOp::Div, 10),
    ("%", BinaryOp::Mod, 10),
];
const SHIFT: u8 = 8;
const ADDITIVE: u8 = 9;

fn make(kind: ExprKind, span: Span) -> Expr {
    Expr { kind, span }
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.nested(Self::ternary)
    }

    /// A width in angle brackets: stops at `>`.
    pub(super) fn width_expr(&mut self) -> Parsed<Expr> {
        self.nested(|p| p.binary(ADDITIVE))
    }

    fn ternary(&mut self) -> Parsed<Expr> {
        let cond = self.binary(1)?;
        self.after_condition(cond)
    }

    fn after_condition(&mut self, cond: Expr) -> Parsed<Expr> {
        if !self.take("?") {
            return Ok(cond);
        }
        let then = self.expr()?;
        self.expect(":")?;
        let otherwise = self.nested(|p| {
            let next = p.binary(1)?;
            if p.at("?") {
                p.chained(p.peek().span);
            }
            p.after_condition(next)
        })?;
        let span = cond.span.to(otherwise.span);
        Ok(make(
            ExprKind::Ternary { cond: Box::new(cond), then: Box::new(then), otherwise: Box::new(otherwise) },
            span,
        ))
    }

    /// `a ? b : c ? d : e` is `a ? b : (c ? d : e)`, as in C (section 8). By the precedences of the reference
    /// compiler's grammar it is `(a ? b : c) ? d : e`.
    fn chained(&mut self, span: Span) {
        let what = "the reference compiler takes all before this `?` for its condition";
        let warning = Diagnostic::warning("chained-conditional", span, what);
        self.warn(warning.help("write what follows `:` in parentheses, as in `a ? b : (c ? d : e)`"));
    }

    /// The binary operator here, with its precedence and number of tokens.
    fn operator(&self) -> Option<(BinaryOp, u8, usize)> {
        let token = self.peek();
        if token.kind != TokenKind::Punct {
            return None;
        }
        let next = self.peek_at(1);
        // What one macro makes has one place.
        let beside = next.span.start == token.span.end && next.span.file == token.span.file;
        let touching = (beside || next.span == token.span) && !next.space;
        if token.is(">") && touching {
            if next.is(">") {
                return Some((BinaryOp::Shr, SHIFT, 2));
            }
            if next.is(">=") {
                return None;
            }
        }
        // `[lo +: width]`
        if token.is("+") && next.is(":") && touching {
            return None;
        }
        BINARY.iter().find(|(text, ..)| **text == *token.text).map(|(_, op, level)| (*op, *level, 1))
    }

    fn binary(&mut self, min: u8) -> Parsed<Expr> {
        let mut left = self.unary()?;
        while let Some((op, level, tokens)) = self.operator() {
            if level < min {
                break;
            }
            for _ in 0..tokens {
                self.advance();
            }
            let right = self.nested(|p| p.binary(level + 1))?;
            // A left-leaning chain is as deep a tree as a nested one.
            self.higher()?;
            let span = left.span.to(right.span);
            left = make(ExprKind::Binary { op, left: Box::new(left), right: Box::new(right) }, span);
        }
        Ok(left)
    }

    pub(super) fn unary(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        let op = match &*self.peek().text {
            "!" => UnaryOp::Not,
            "~" => UnaryOp::Complement,
            "-" => UnaryOp::Neg,
            "+" => UnaryOp::Plus,
            "(" => {
                if let Some(ty) = self.cast_type() {
                    let operand = self.nested(Self::unary)?;
                    let span = start.to(operand.span);
                    return Ok(make(ExprKind::Cast { ty, operand: Box::new(operand) }, span));
                }
                return self.postfix();
            }
            _ => return self.postfix(),
        };
        if self.peek().kind != TokenKind::Punct {
            return self.postfix();
        }
        self.advance();
        let operand = self.nested(Self::unary)?;
        let span = start.to(operand.span);
        Ok(make(ExprKind::Unary { op, operand: Box::new(operand) }, span))
    }

    /// `(T)` before an operand.
    fn cast_type(&mut self) -> Option<TypeRef> {
        let named = {
            let first = self.peek_at(1);
            let name = if first.is(".") { self.peek_at(2) } else { first };
            name.kind == TokenKind::Ident && self.types.contains(&name.text)
        };
        if !named && !self.at_type_keyword(1) {
            return None;
        }
        self.attempt(|p| {
            p.expect("(")?;
            let ty = p.type_ref()?;
            p.expect(")")?;
            let next = p.peek();
            let operand = match next.kind {
                TokenKind::Ident | TokenKind::Number | TokenKind::Str => true,
                TokenKind::Punct => {
                    matches!(&*next.text, "(" | "{" | "{#}" | "!" | "~" | "-" | "+" | "." | "...")
                }
                _ => false,
            };
            if operand { Ok(ty) } else { Err(super::Failed) }
        })
    }

    pub(super) fn postfix(&mut self) -> Parsed<Expr> {
        let mut expr = self.primary()?;
        loop {
            self.higher()?;
            let start = expr.span;
            if self.take(".") {
                let name = self.ident()?;
                let span = start.to(name.span);
                expr = make(ExprKind::Member { base: Box::new(expr), name }, span);
            } else if self.take("[") {
                let first = self.expr()?;
                let kind = if self.take(":") {
                    let lo = self.expr()?;
                    ExprKind::Slice { base: Box::new(expr), hi: Box::new(first), lo: Box::new(lo) }
                } else if self.at("+") {
                    // e[lo +: width]
                    self.advance();
                    self.expect(":")?;
                    let width = Box::new(self.expr()?);
                    ExprKind::PlusSlice { base: Box::new(expr), lo: Box::new(first), width }
                } else {
                    ExprKind::Index { base: Box::new(expr), index: Box::new(first) }
                };
                let end = self.expect("]")?;
                expr = make(kind, start.to(end));
            } else if self.at("(") {
                let args = self.args()?;
                let span = start.to(self.before());
                expr = make(ExprKind::Call { callee: Box::new(expr), type_args: Vec::new(), args }, span);
            } else if self.at("<") && matches!(expr.kind, ExprKind::Name(_) | ExprKind::Member { .. }) {
                let is_type =
                    matches!(&expr.kind, ExprKind::Name(path) if self.types.contains(&path.ident.name));
                let Some(type_args) = self.attempt(|p| {
                    let args = p.type_args()?;
                    if p.at("(") || (p.at(".") && (is_type || p.word_at(1, "apply"))) {
                        Ok(args)
                    } else {
                        Err(super::Failed)
                    }
                }) else {
                    return Ok(expr);
                };
                if self.at("(") {
                    let args = self.args()?;
                    let span = start.to(self.before());
                    expr = make(ExprKind::Call { callee: Box::new(expr), type_args, args }, span);
                } else if let ExprKind::Name(path) = expr.kind {
                    let span = start.to(self.before());
                    let ty = TypeRef { kind: TypeKind::Named { path, args: type_args }, span };
                    expr = make(ExprKind::Type(ty), span);
                }
            } else {
                return Ok(expr);
            }
        }
    }

    /// `(a, b)`, `(x = a)`, `_` for one that does not matter.
    pub(super) fn args(&mut self) -> Parsed<Vec<Arg>> {
        self.expect("(")?;
        let mut args = Vec::new();
        while !self.at(")") {
            let name = if Self::is_name(self.peek()) && self.peek_at(1).is("=") {
                let name = self.ident()?;
                self.advance();
                Some(name)
            } else {
                None
            };
            let value = if self.at_word("_") {
                let span = self.advance().span;
                make(ExprKind::DontCare, span)
            } else {
                self.expr()?
            };
            args.push(Arg { name, value });
            if !self.comma(")")? {
                break;
            }
        }
        self.expect(")")?;
        Ok(args)
    }

    pub(super) fn primary(&mut self) -> Parsed<Expr> {
        let token = self.peek().clone();
        let span = token.span;
        match token.kind {
            TokenKind::Number => {
                self.advance();
                self.budget.work(number_cost(&token.text));
                self.budget.bytes(token.text.len() / 2);
                match number(&token.text) {
                    Ok(n) => {
                        Ok(make(ExprKind::Int { value: n.value, width: n.width, signed: n.signed }, span))
                    }
                    Err(why) => self.fail_at(span, why, None),
                }
            }
            TokenKind::Str => {
                self.advance();
                self.budget.work(token.text.len());
                self.budget.bytes(token.text.len());
                Ok(make(ExprKind::Str(unquote(&token.text)), span))
            }
            TokenKind::Ident => match &*token.text {
                "true" | "false" => {
                    self.advance();
                    Ok(make(ExprKind::Bool(&*token.text == "true"), span))
                }
                "this" => {
                    self.advance();
                    Ok(make(ExprKind::This, span))
                }
                _ if self.at_type_keyword(0) => {
                    let ty = self.type_ref()?;
                    let span = ty.span;
                    Ok(make(ExprKind::Type(ty), span))
                }
                _ if Self::is_name(&token) => {
                    let ident = self.ident()?;
                    Ok(make(ExprKind::Name(Path { rooted: false, ident }), span))
                }
                _ => self.fail("an expression"),
            },
            TokenKind::Punct => match &*token.text {
                "." => {
                    let path = self.path()?;
                    let span = span.to(path.ident.span);
                    Ok(make(ExprKind::Name(path), span))
                }
                "(" => {
                    self.advance();
                    let mut inner = self.expr()?;
                    let end = self.expect(")")?;
                    inner.span = span.to(end);
                    Ok(inner)
                }
                "{#}" => {
                    self.advance();
                    Ok(make(ExprKind::Invalid, span))
                }
                "..." => {
                    self.advance();
                    Ok(make(ExprKind::Ellipsis, span))
                }
                "{" => self.braces(),
                _ => self.fail("an expression"),
            },
            _ => self.fail("an expression"),
        }
    }

    /// `{ e, e }` or `{ f = e }`, either with a last `...`.
    fn braces(&mut self) -> Parsed<Expr> {
        let start = self.expect("{")?;
        let mut items = Vec::new();
        let mut fields = Vec::new();
        let mut ellipsis = false;
        while !self.at("}") {
            if self.at("...") {
                self.advance();
                ellipsis = true;
                self.take(",");
                break;
            }
            if Self::is_name(self.peek()) && self.peek_at(1).is("=") && items.is_empty() {
                let name = self.ident()?;
                self.advance();
                fields.push((name, self.expr()?));
            } else if fields.is_empty() {
                items.push(self.expr()?);
            } else {
                return self.fail("`field = value`");
            }
            if !self.take(",") {
                break;
            }
        }
        let end = self.expect("}")?;
        let kind = if fields.is_empty() {
            ExprKind::List { items, ellipsis }
        } else {
            ExprKind::StructInit { fields, ellipsis }
        };
        Ok(make(kind, start.to(end)))
    }

    /// A keyset before `:` in a `select` or an entry.
    pub(super) fn keyset(&mut self) -> Parsed<Expr> {
        if self.at("(") {
            let tuple = self.attempt(|p| {
                let start = p.expect("(")?;
                let mut items = Vec::new();
                while !p.at(")") {
                    items.push(p.simple_keyset()?);
                    if !p.comma(")")? {
                        break;
                    }
                }
                let end = p.expect(")")?;
                if !p.at(":") {
                    return Err(super::Failed);
                }
                Ok((items, start.to(end)))
            });
            if let Some((mut items, span)) = tuple {
                return Ok(match (items.pop(), items.is_empty()) {
                    (Some(only), true) => only,
                    (last, _) => {
                        items.extend(last);
                        make(ExprKind::List { items, ellipsis: false }, span)
                    }
                });
            }
        }
        self.simple_keyset()
    }

    /// `e`, `e &&& m`, `lo .. hi`, `_`, `default`.
    fn simple_keyset(&mut self) -> Parsed<Expr> {
        let start = self.peek().span;
        if self.take_word("_") {
            return Ok(make(ExprKind::DontCare, start));
        }
        if self.take_word("default") {
            return Ok(make(ExprKind::Default, start));
        }
        self.range_expr()
    }

    /// `e`, `e &&& m` or `lo .. hi`.
    pub(super) fn range_expr(&mut self) -> Parsed<Expr> {
        let first = self.expr()?;
        if self.take("&&&") {
            let mask = self.expr()?;
            let span = first.span.to(mask.span);
            return Ok(make(ExprKind::Mask { value: Box::new(first), mask: Box::new(mask) }, span));
        }
        if self.take("..") {
            let hi = self.expr()?;
            let span = first.span.to(hi.span);
            return Ok(make(ExprKind::Range { lo: Box::new(first), hi: Box::new(hi) }, span));
        }
        Ok(first)
    }
}
