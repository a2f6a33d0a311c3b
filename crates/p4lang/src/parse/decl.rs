//! Declarations (P4_16 sections 7, 11, 13, 14, 15, 20).

use super::{Failed, Parsed, Parser};
use crate::ast::Parser as ParserDecl;
use crate::ast::{
    Annotation, AnnotationBody, Control, Decl, DeclKind, Field, Function, Ident, Method, Param, Prototype,
    SelectCase, State, StructLike, Transition, TypeSource,
};
use crate::lex::TokenKind;
use crate::preprocess::join;

type Signature = (Ident, Vec<Ident>, Vec<Param>, Option<Vec<Param>>);

impl Parser<'_> {
    pub(super) fn top_level(&mut self) -> Parsed<Decl> {
        let start = self.peek().span;
        if self.take(";") {
            return Ok(Decl { annotations: Vec::new(), kind: DeclKind::Empty, span: start });
        }
        let annotations = self.annotations()?;
        let kind = match &*self.peek().text.clone() {
            "const" => return self.const_decl(annotations),
            "action" => return self.action(annotations),
            "header" => DeclKind::Header(self.struct_like()?),
            "header_union" => DeclKind::HeaderUnion(self.struct_like()?),
            "struct" => DeclKind::Struct(self.struct_like()?),
            "enum" => self.enum_decl()?,
            "typedef" => self.typedef()?,
            "type" if !self.peek_at(1).is("(") && !self.peek_at(1).is("<") => self.typedef()?,
            "error" if self.peek_at(1).is("{") => {
                self.advance();
                DeclKind::Error { members: self.names()? }
            }
            "match_kind" if self.peek_at(1).is("{") => {
                self.advance();
                self.expect("{")?;
                let mut members = Vec::new();
                while members.is_empty() || !self.at("}") {
                    let name = self.ident()?;
                    let value = if self.take("=") { Some(self.expr()?) } else { None };
                    members.push((name, value));
                    if !self.take(",") {
                        break;
                    }
                }
                self.expect("}")?;
                DeclKind::MatchKind { members }
            }
            "extern" => self.extern_decl()?,
            "parser" => self.parser_decl()?,
            "control" => self.control_decl()?,
            "package" => {
                self.advance();
                let name = self.type_name()?;
                let type_params = self.type_params()?;
                let params = self.ctor_params()?;
                self.expect(";")?;
                DeclKind::Package { name, type_params, params }
            }
            _ => return self.function_or_instance(annotations),
        };
        Ok(Decl { annotations, kind, span: start.to(self.before()) })
    }

    /// The name of a type being declared.
    fn type_name(&mut self) -> Parsed<Ident> {
        let name = self.ident()?;
        self.types.insert(name.name.clone());
        Ok(name)
    }

    fn names(&mut self) -> Parsed<Vec<Ident>> {
        self.expect("{")?;
        let mut names = vec![self.ident()?];
        while self.comma("}")? {
            names.push(self.ident()?);
        }
        self.expect("}")?;
        Ok(names)
    }

    pub(super) fn annotations(&mut self) -> Parsed<Vec<Annotation>> {
        let mut annotations = Vec::new();
        while self.at("@") {
            annotations.push(self.annotation()?);
        }
        Ok(annotations)
    }

    fn annotation(&mut self) -> Parsed<Annotation> {
        let start = self.expect("@")?;
        let name = self.word_name()?;
        let body = if self.at("(") {
            self.free_annotation()?
        } else if self.at("[") {
            self.structured_annotation()?
        } else {
            AnnotationBody::None
        };
        Ok(Annotation { name, body, span: start.to(self.before()) })
    }

    /// Anything between balanced parentheses; as expressions too if that is what it is.
    fn free_annotation(&mut self) -> Parsed<AnnotationBody> {
        let open = self.at;
        self.advance();
        let mut depth = 1;
        while depth > 0 {
            let token = self.peek();
            if token.kind == TokenKind::Eof {
                let span = self.tokens[open].span;
                return self.fail_at(span, "this annotation is never closed".into(), Some("add `)`".into()));
            }
            depth += i32::from(token.is("(")) - i32::from(token.is(")"));
            self.advance();
        }
        let end = self.at;
        let text = join(&self.tokens[open + 1..end - 1]);
        self.at = open + 1;
        let exprs = self.attempt(|p| {
            let mut exprs = Vec::new();
            while p.at + 1 < end {
                exprs.push(p.expr()?);
                if p.at + 1 < end && !p.take(",") {
                    return Err(Failed);
                }
            }
            if p.at + 1 == end { Ok(exprs) } else { Err(Failed) }
        });
        self.at = end;
        Ok(AnnotationBody::Free { text, exprs })
    }

    fn structured_annotation(&mut self) -> Parsed<AnnotationBody> {
        self.expect("[")?;
        let body = if Self::is_name(self.peek()) && self.peek_at(1).is("=") {
            let mut pairs = Vec::new();
            while !self.at("]") {
                let key = self.ident()?;
                self.expect("=")?;
                pairs.push((key, self.expr()?));
                if !self.comma("]")? {
                    break;
                }
            }
            AnnotationBody::KeyValue(pairs)
        } else {
            let mut items = Vec::new();
            while !self.at("]") {
                items.push(self.expr()?);
                if !self.comma("]")? {
                    break;
                }
            }
            AnnotationBody::List(items)
        };
        self.expect("]")?;
        Ok(body)
    }

    pub(super) fn const_decl(&mut self, annotations: Vec<Annotation>) -> Parsed<Decl> {
        let start = self.expect_word("const")?;
        let ty = self.type_ref()?;
        let name = self.ident()?;
        self.expect("=")?;
        let value = self.expr()?;
        self.expect(";")?;
        Ok(Decl { annotations, kind: DeclKind::Const { ty, name, value }, span: start.to(self.before()) })
    }

    /// The block of an action, function or control, which may have annotations of its own.
    fn body(&mut self) -> Parsed<crate::ast::Block> {
        let annotations = self.annotations()?;
        self.block(annotations)
    }

    fn action(&mut self, annotations: Vec<Annotation>) -> Parsed<Decl> {
        let start = self.expect_word("action")?;
        let name = self.ident()?;
        let params = self.params()?;
        let body = self.body()?;
        Ok(Decl { annotations, kind: DeclKind::Action { name, params, body }, span: start.to(self.before()) })
    }

    fn struct_like(&mut self) -> Parsed<StructLike> {
        self.advance();
        let name = self.type_name()?;
        let type_params = self.type_params()?;
        self.expect("{")?;
        let mut fields = Vec::new();
        while !self.at("}") {
            let annotations = self.annotations()?;
            let start = self.peek().span;
            let ty = self.type_ref()?;
            let name = self.ident()?;
            let ty = self.array_of(ty)?;
            self.expect(";")?;
            fields.push(Field { annotations, ty, name, span: start.to(self.before()) });
        }
        self.expect("}")?;
        Ok(StructLike { name, type_params, fields })
    }

    fn enum_decl(&mut self) -> Parsed<DeclKind> {
        self.advance();
        let underlying = if self.at_type_keyword(0) || Self::is_name(self.peek_at(1)) {
            Some(self.type_ref()?)
        } else {
            None
        };
        let name = self.type_name()?;
        self.expect("{")?;
        let mut members = Vec::new();
        while !self.at("}") {
            let annotations = self.annotations()?;
            let member = self.ident()?;
            let value = if self.take("=") { Some(self.expr()?) } else { None };
            members.push((member, value, annotations));
            if !self.take(",") {
                break;
            }
        }
        self.expect("}")?;
        Ok(DeclKind::Enum { name, underlying, members })
    }

    fn typedef(&mut self) -> Parsed<DeclKind> {
        let is_type = &*self.advance().text == "type";
        let annotations = self.annotations()?;
        let ty = if matches!(&*self.peek().text, "struct" | "header" | "header_union" | "enum") {
            let start = self.peek().span;
            let kind = match &*self.peek().text {
                "struct" => DeclKind::Struct(self.struct_like()?),
                "header" => DeclKind::Header(self.struct_like()?),
                "enum" => self.enum_decl()?,
                _ => DeclKind::HeaderUnion(self.struct_like()?),
            };
            TypeSource::Decl(Box::new(Decl { annotations, kind, span: start.to(self.before()) }))
        } else {
            TypeSource::Type(self.type_ref()?)
        };
        let name = self.type_name()?;
        self.expect(";")?;
        Ok(if is_type { DeclKind::NewType { name, ty } } else { DeclKind::Typedef { name, ty } })
    }

    fn extern_decl(&mut self) -> Parsed<DeclKind> {
        self.advance();
        let object = self.attempt(|p| {
            let name = p.ident()?;
            let type_params = p.type_params()?;
            if p.at("{") || p.at(";") { Ok((name, type_params)) } else { Err(Failed) }
        });
        let Some((name, type_params)) = object else {
            let proto = self.prototype()?;
            self.expect(";")?;
            return Ok(DeclKind::ExternFunction(proto));
        };
        self.types.insert(name.name.clone());
        let mut methods = Vec::new();
        if !self.take(";") {
            self.expect("{")?;
            while !self.at("}") {
                methods.push(self.method(&name)?);
            }
            self.expect("}")?;
        }
        Ok(DeclKind::Extern { name, type_params, methods })
    }

    fn method(&mut self, object: &Ident) -> Parsed<Method> {
        let start = self.peek().span;
        let annotations = self.annotations()?;
        let is_abstract = self.take_word("abstract");
        let proto = if *self.peek().text == *object.name && self.peek_at(1).is("(") {
            let name = self.ident()?;
            Prototype { return_type: None, name, type_params: Vec::new(), params: self.ctor_params()? }
        } else {
            self.prototype()?
        };
        self.expect(";")?;
        Ok(Method { annotations, is_abstract, proto, span: start.to(self.before()) })
    }

    /// `T name<U>(params)`.
    fn prototype(&mut self) -> Parsed<Prototype> {
        // A type parameter may be the return type, before the parser has seen it declared; types are parsed by
        // form, so that needs no care.
        let return_type = Some(self.type_ref()?);
        let name = self.ident()?;
        let type_params = self.type_params()?;
        let params = self.params()?;
        Ok(Prototype { return_type, name, type_params, params })
    }

    fn function_or_instance(&mut self, annotations: Vec<Annotation>) -> Parsed<Decl> {
        let start = self.peek().span;
        let rooted = self.at(".") && self.peek_at(1).kind == TokenKind::Ident;
        if !rooted && matches!(self.peek().kind, TokenKind::Punct | TokenKind::Unknown) {
            return self.fail("a declaration");
        }
        let ty = self.type_ref()?;
        if self.at("(") {
            let args = self.args()?;
            let name = self.ident()?;
            let body = self.instance_body()?;
            self.expect(";")?;
            let kind = DeclKind::Instantiation { ty, args, name, body };
            return Ok(Decl { annotations, kind, span: start.to(self.before()) });
        }
        let name = self.ident()?;
        if !self.at("(") && !self.at("<") {
            let message = format!("`{}` is declared outside of any parser or control", name.name);
            let help = if &*name.name == "main" {
                "an instance has parentheses after its type: `V1Switch(...) main;`"
            } else {
                "variables live in parsers, controls, actions and functions; a `const` may stand here"
            };
            return self.fail_at(name.span, message, Some(help.into()));
        }
        let type_params = self.type_params()?;
        let params = self.params()?;
        let proto = Prototype { return_type: Some(ty), name, type_params, params };
        let body = self.body()?;
        Ok(Decl {
            annotations,
            kind: DeclKind::Function(Function { proto, body }),
            span: start.to(self.before()),
        })
    }

    /// Name, type parameters, parameters and, of a full declaration, constructor parameters.
    fn signature(&mut self) -> Parsed<Signature> {
        self.advance();
        let name = self.type_name()?;
        let type_params = self.type_params()?;
        let params = self.params()?;
        if self.take(";") {
            return Ok((name, type_params, params, None));
        }
        let ctor_params = if self.at("(") { self.ctor_params()? } else { Vec::new() };
        Ok((name, type_params, params, Some(ctor_params)))
    }

    fn parser_decl(&mut self) -> Parsed<DeclKind> {
        let (name, type_params, params, ctor_params) = self.signature()?;
        let Some(ctor_params) = ctor_params else {
            return Ok(DeclKind::ParserType { name, type_params, params });
        };
        self.expect("{")?;
        let mut locals = Vec::new();
        let mut states = Vec::new();
        while !self.at("}") {
            let annotations = self.annotations()?;
            if self.at_word("state") {
                states.push(self.state(annotations)?);
            } else if self.at(";") {
                return self.stray_semicolon();
            } else if !states.is_empty() {
                let span = self.peek().span;
                return self.fail_at(
                    span,
                    "a parser declares everything else before its states".into(),
                    Some("move this before the first `state`".into()),
                );
            } else if self.at_word("const") {
                locals.push(self.const_decl(annotations)?);
            } else if self.at_word("value_set") {
                locals.push(self.value_set(annotations)?);
            } else {
                locals.push(self.declaration_statement(&annotations)?);
            }
        }
        self.expect("}")?;
        Ok(DeclKind::Parser(ParserDecl { name, type_params, params, ctor_params, locals, states }))
    }

    fn value_set(&mut self, annotations: Vec<Annotation>) -> Parsed<Decl> {
        let start = self.expect_word("value_set")?;
        let mut args = self.type_args()?;
        let (Some(ty), true) = (args.pop(), args.is_empty()) else {
            return self.fail_at(start, "`value_set` takes one type argument".into(), None);
        };
        self.expect("(")?;
        let size = self.expr()?;
        self.expect(")")?;
        let name = self.ident()?;
        self.expect(";")?;
        Ok(Decl { annotations, kind: DeclKind::ValueSet { ty, size, name }, span: start.to(self.before()) })
    }

    fn state(&mut self, annotations: Vec<Annotation>) -> Parsed<State> {
        let start = self.expect_word("state")?;
        let name = self.ident()?;
        self.expect("{")?;
        let body = self.statements()?;
        self.state_statements(&body)?;
        let transition = if self.take_word("transition") { Some(self.transition()?) } else { None };
        self.expect("}")?;
        Ok(State { annotations, name, body, transition, span: start.to(self.before()) })
    }

    fn transition(&mut self) -> Parsed<Transition> {
        if !self.at_word("select") {
            let name = self.ident()?;
            self.expect(";")?;
            return Ok(Transition::Direct(name));
        }
        let start = self.advance().span;
        self.expect("(")?;
        let mut keys = Vec::new();
        while !self.at(")") {
            keys.push(self.expr()?);
            if !self.comma(")")? {
                break;
            }
        }
        self.expect(")")?;
        self.expect("{")?;
        let mut cases = Vec::new();
        while !self.at("}") {
            let start = self.peek().span;
            let keyset = self.keyset()?;
            self.expect(":")?;
            let next = self.ident()?;
            self.expect(";")?;
            cases.push(SelectCase { keyset, next, span: start.to(self.before()) });
        }
        let end = self.expect("}")?;
        Ok(Transition::Select { keys, cases, span: start.to(end) })
    }

    fn control_decl(&mut self) -> Parsed<DeclKind> {
        let (name, type_params, params, ctor_params) = self.signature()?;
        let Some(ctor_params) = ctor_params else {
            return Ok(DeclKind::ControlType { name, type_params, params });
        };
        self.expect("{")?;
        let mut locals = Vec::new();
        let apply = loop {
            if self.at("}") {
                return self.fail("`apply { ... }`: a control needs one");
            }
            let started = self.at;
            let annotations = self.annotations()?;
            if self.at_word("apply") && (self.peek_at(1).is("{") || self.peek_at(1).is("@")) {
                self.advance();
                break self.body()?;
            }
            let local = match &*self.peek().text.clone() {
                ";" => self.stray_semicolon(),
                "action" => self.action(annotations),
                "table" => self.table(annotations),
                "const" => self.const_decl(annotations),
                _ => self.declaration_statement(&annotations),
            };
            match local {
                Ok(decl) => locals.push(decl),
                // Go on with the next local; a declaration skipped here ends at its own `;` or `}`.
                Err(Failed)
                    if self.trying == 0
                        && self.peek().kind != TokenKind::Eof
                        && self.diagnostics.len() < crate::limits::MAX_ERRORS =>
                {
                    self.skip_declaration(started);
                }
                Err(Failed) => return Err(Failed),
            }
        };
        self.expect("}")?;
        Ok(DeclKind::Control(Control { name, type_params, params, ctor_params, locals, apply }))
    }
}
