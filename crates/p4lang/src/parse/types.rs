//! Types, type parameters and parameters (grammar rules `typeRef`, `parameterList`).

use super::{Parsed, Parser};
use crate::ast::{Direction, Ident, Param, Path, TypeKind, TypeRef};
use crate::lex::TokenKind;

impl Parser<'_> {
    /// Whether a type may start here, going by keywords alone.
    pub(super) fn at_type_keyword(&self, ahead: usize) -> bool {
        let token = self.peek_at(ahead);
        token.kind == TokenKind::Ident
            && (matches!(
                &*token.text,
                "bit" | "int" | "bool" | "varbit" | "string" | "error" | "tuple" | "void" | "match_kind"
            ) || (&*token.text == "list" && self.peek_at(ahead + 1).is("<")))
    }

    pub(super) fn type_ref(&mut self) -> Parsed<TypeRef> {
        self.nested(Self::type_ref_inner)
    }

    fn type_ref_inner(&mut self) -> Parsed<TypeRef> {
        let start = self.peek().span;
        let kind = match &*self.peek().text.clone() {
            "bool" => self.word(TypeKind::Bool),
            "error" => self.word(TypeKind::Error),
            "match_kind" => self.word(TypeKind::MatchKind),
            "string" => self.word(TypeKind::String),
            "void" => self.word(TypeKind::Void),
            "_" => self.word(TypeKind::DontCare),
            "bit" => {
                self.advance();
                TypeKind::Bit(if self.at("<") { Some(self.width()?) } else { None })
            }
            "int" => {
                self.advance();
                if self.at("<") { TypeKind::IntN(self.width()?) } else { TypeKind::Int }
            }
            "varbit" => {
                self.advance();
                TypeKind::Varbit(self.width()?)
            }
            "tuple" => {
                self.advance();
                TypeKind::Tuple(self.type_args()?)
            }
            "list" if self.peek_at(1).is("<") => {
                self.advance();
                let mut args = self.type_args()?;
                match (args.pop(), args.is_empty()) {
                    (Some(element), true) => TypeKind::List(Box::new(element)),
                    _ => return self.fail_at(start, "`list` takes one type argument".into(), None),
                }
            }
            _ => {
                let path = self.path()?;
                let args = if self.at("<") { self.type_args()? } else { Vec::new() };
                TypeKind::Named { path, args }
            }
        };
        let ty = TypeRef { kind, span: start.to(self.before()) };
        self.sizes(ty)
    }

    /// The type with the sizes in brackets that follow a name, as in C, if there are any.
    pub(super) fn array_of(&mut self, ty: TypeRef) -> Parsed<TypeRef> {
        if self.at("[") { self.nested(|p| p.sizes(ty)) } else { Ok(ty) }
    }

    fn sizes(&mut self, mut ty: TypeRef) -> Parsed<TypeRef> {
        let start = ty.span;
        while self.take("[") {
            let size = self.expr()?;
            self.expect("]")?;
            self.higher()?;
            ty = TypeRef {
                span: start.to(self.before()),
                kind: TypeKind::Stack { element: Box::new(ty), size: Box::new(size) },
            };
        }
        Ok(ty)
    }

    fn word(&mut self, kind: TypeKind) -> TypeKind {
        self.advance();
        kind
    }

    /// Span of the token just read.
    pub(super) fn before(&self) -> crate::source::Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    pub(super) fn path(&mut self) -> Parsed<Path> {
        let rooted = self.take(".");
        Ok(Path { rooted, ident: self.ident()? })
    }

    /// `<w>` or `<(w)>`.
    fn width(&mut self) -> Parsed<Box<crate::ast::Expr>> {
        self.expect("<")?;
        let width = self.width_expr()?;
        self.close_angle()?;
        Ok(Box::new(width))
    }

    /// `>`; of `>=` only the first half.
    fn close_angle(&mut self) -> Parsed<()> {
        if self.at(">=") {
            let at = self.at;
            self.tokens[at].text = "=".into();
            self.tokens[at].span.start += 1;
            return Ok(());
        }
        self.expect(">").map(|_| ())
    }

    pub(super) fn type_args(&mut self) -> Parsed<Vec<TypeRef>> {
        self.expect("<")?;
        let mut args = Vec::new();
        while !self.at(">") {
            args.push(self.type_ref()?);
            if !self.comma(">")? {
                break;
            }
        }
        self.close_angle()?;
        Ok(args)
    }

    /// `<T, U>` of a declaration, or nothing.
    pub(super) fn type_params(&mut self) -> Parsed<Vec<Ident>> {
        let mut names = Vec::new();
        if self.take("<") {
            while names.is_empty() || !self.at(">") {
                let name = self.ident()?;
                self.types.insert(name.name.clone());
                names.push(name);
                if !self.comma(">")? {
                    break;
                }
            }
            self.close_angle()?;
        }
        Ok(names)
    }

    /// `(in T x, ...)`.
    pub(super) fn params(&mut self) -> Parsed<Vec<Param>> {
        self.expect("(")?;
        let mut params = Vec::new();
        while !self.at(")") {
            let annotations = self.annotations()?;
            let start = self.peek().span;
            let direction = match &*self.peek().text {
                "in" => Direction::In,
                "out" => Direction::Out,
                "inout" => Direction::InOut,
                _ => Direction::None,
            };
            if direction != Direction::None {
                self.advance();
            }
            let ty = self.type_ref()?;
            let name = self.ident()?;
            let ty = self.array_of(ty)?;
            let default = if self.take("=") { Some(self.expr()?) } else { None };
            params.push(Param { annotations, direction, ty, name, default, span: start.to(self.before()) });
            if !self.comma(")")? {
                break;
            }
        }
        self.expect(")")?;
        Ok(params)
    }

    /// Parameters of a constructor or package: none has a direction.
    pub(super) fn ctor_params(&mut self) -> Parsed<Vec<Param>> {
        let params = self.params()?;
        match params.iter().find(|p| p.direction != Direction::None) {
            None => Ok(params),
            Some(param) => self.fail_at(
                param.span,
                format!("the constructor parameter `{}` has a direction", param.name.name),
                Some("its argument is known at compile time: remove `in`, `out` or `inout`".into()),
            ),
        }
    }
}
