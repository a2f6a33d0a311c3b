//! Tables (P4_16 section 14.2).

use super::{Parsed, Parser};
use crate::ast::Annotation;
use crate::ast::{ActionRef, Decl, DeclKind, Entry, KeyElement, Property, PropertyKind, Table};
use crate::lex::TokenKind;

impl Parser<'_> {
    pub(super) fn table(&mut self, annotations: Vec<Annotation>) -> Parsed<Decl> {
        let start = self.expect_word("table")?;
        let name = self.ident()?;
        self.expect("{")?;
        let mut properties = Vec::new();
        while !self.at("}") {
            properties.push(self.property()?);
        }
        let end = self.expect("}")?;
        Ok(Decl { annotations, kind: DeclKind::Table(Table { name, properties }), span: start.to(end) })
    }

    fn property(&mut self) -> Parsed<Property> {
        let start = self.peek().span;
        let annotations = self.annotations()?;
        let is_const = self.take_word("const");
        let name = self.ident()?;
        self.expect("=")?;
        let listed = matches!(&*name.name, "key" | "actions" | "entries") && self.at("{");
        if listed && &*name.name != "entries" && (is_const || !annotations.is_empty()) {
            let what = if is_const { "`const`" } else { "annotation" };
            return self.fail_at(
                start,
                format!("the property `{}` takes no {what}", name.name),
                Some("remove it".into()),
            );
        }
        let kind = if listed {
            self.expect("{")?;
            let kind = match &*name.name {
                "key" => PropertyKind::Key(self.listed(Self::key_element)?),
                "actions" => PropertyKind::Actions(self.listed(Self::action_ref_listed)?),
                _ => PropertyKind::Entries(self.listed(Self::entry)?),
            };
            self.expect("}")?;
            if self.at(";") {
                return self.stray_semicolon();
            }
            kind
        } else if matches!(&*name.name, "key" | "actions" | "entries") {
            return self.fail("`{`");
        } else {
            let value = self.expr()?;
            self.expect(";")?;
            PropertyKind::Other { name, value }
        };
        Ok(Property { annotations, is_const, kind, span: start.to(self.before()) })
    }

    fn listed<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.at("}") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn key_element(&mut self) -> Parsed<KeyElement> {
        let start = self.peek().span;
        let expr = self.expr()?;
        self.expect(":")?;
        let match_kind = self.ident()?;
        let annotations = self.annotations()?;
        self.expect(";")?;
        Ok(KeyElement { annotations, expr, match_kind, span: start.to(self.before()) })
    }

    fn action_ref_listed(&mut self) -> Parsed<ActionRef> {
        let annotations = self.annotations()?;
        let action = self.action_ref(annotations)?;
        self.expect(";")?;
        Ok(action)
    }

    fn action_ref(&mut self, annotations: Vec<Annotation>) -> Parsed<ActionRef> {
        let start = self.peek().span;
        let path = self.path()?;
        let args = if self.at("(") { Some(self.args()?) } else { None };
        Ok(ActionRef { annotations, path, args, span: start.to(self.before()) })
    }

    fn entry(&mut self) -> Parsed<Entry> {
        let start = self.peek().span;
        let is_const = self.take_word("const");
        let priority = if self.at_word("priority") && self.peek_at(1).is("=") {
            self.advance();
            self.advance();
            if !self.at("(") && self.peek().kind != TokenKind::Number {
                return self.fail("a number or `(`");
            }
            let value = self.primary()?;
            self.expect(":")?;
            Some(value)
        } else {
            None
        };
        let keyset = self.keyset()?;
        self.expect(":")?;
        let action = self.action_ref(Vec::new())?;
        let annotations = self.annotations()?;
        self.expect(";")?;
        Ok(Entry { annotations, is_const, priority, keyset, action, span: start.to(self.before()) })
    }
}
