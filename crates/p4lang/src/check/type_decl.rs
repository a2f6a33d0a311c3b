//! Declarations of structs, headers, unions and enums (P4_16 section 7.2).

use std::collections::{HashMap, HashSet};

use num_bigint::BigInt;

use super::{Checker, consts};
use crate::ast::{self, DeclKind as D, Ident};
use crate::hir::{DefId, DefKind, EnumDef, FieldDef, StructDef, Type};
use crate::source::Span;

impl Checker {
    pub(super) fn struct_like(
        &mut self,
        decl: &ast::Decl,
        s: &ast::StructLike,
        kind: fn(StructDef) -> DefKind,
    ) -> Option<DefId> {
        self.declaring.push(s.name.name.clone());
        let def = self.scoped(|c| {
            let type_params = c.declare_type_params(&s.type_params);
            let mut fields: Vec<FieldDef> = Vec::new();
            let mut names: HashMap<ast::Name, Span> = HashMap::new();
            for field in &s.fields {
                let ty = c.ty(&field.ty);
                if let Some(span) = names.get(&field.name.name).copied() {
                    c.error(
                        "duplicate",
                        field.name.span,
                        format!("field `{}` is declared twice", field.name.name),
                    )
                    .related
                    .push((span, "first declared here".into()));
                    continue;
                }
                names.insert(field.name.name.clone(), field.name.span);
                c.field_rules(&decl.kind, &ty, field);
                fields.push(FieldDef {
                    name: field.name.name.clone(),
                    ty,
                    annotations: c.annotations(&field.annotations),
                    span: field.name.span,
                });
            }
            if matches!(decl.kind, D::Header(_)) {
                let second = fields.iter().filter(|f| matches!(f.ty, Type::Varbit(_))).nth(1);
                if let Some(span) = second.map(|f| f.span) {
                    let message = format!("the header `{}` has a second varbit field", s.name.name);
                    c.error("varbit", span, message).help = Some("a header can have one at most".into());
                }
            }
            StructDef { type_params, fields }
        });
        self.declaring.pop();
        Some(self.named(&s.name, decl, kind(def)))
    }

    fn field_rules(&mut self, container: &D, ty: &Type, field: &ast::Field) {
        let (good, help) = match container {
            D::Header(_) => {
                (self.allowed_in_header(ty), "bit, int, varbit, bool, serializable enums and structs of them")
            }
            D::HeaderUnion(_) => (matches!(ty, Type::Header(..) | Type::Param(_) | Type::Unknown), "headers"),
            _ => (
                self.storable(ty) || matches!(ty, Type::String | Type::Int | Type::List(_)),
                "types with run-time values",
            ),
        };
        if !good {
            let shown = self.show(ty);
            let what = match container {
                D::Header(_) => "header",
                D::HeaderUnion(_) => "header union",
                _ => "struct",
            };
            self.error(
                "bad-type",
                field.ty.span,
                format!("a {what} cannot have a field of type `{shown}`"),
            )
            .help = Some(format!("its fields may be {help}"));
        }
    }

    pub(super) fn enum_decl(
        &mut self,
        decl: &ast::Decl,
        name: &Ident,
        underlying: Option<&ast::TypeRef>,
        members: &[(Ident, Option<ast::Expr>, Vec<ast::Annotation>)],
    ) -> Option<DefId> {
        let under = underlying.map(|t| {
            let ty = self.ty(t);
            if !matches!(ty, Type::Bits { .. } | Type::Unknown) {
                let shown = self.show(&ty);
                self.error("bad-type", t.span, format!("an enum cannot be represented by `{shown}`")).help =
                    Some("use `bit<W>` or `int<W>`".into());
                return Type::Unknown;
            }
            ty
        });
        let mut out: Vec<(ast::Name, Option<BigInt>)> = Vec::new();
        let mut names: HashSet<&ast::Name> = HashSet::new();
        for (member, value, annotations) in members {
            self.annotations(annotations);
            if !names.insert(&member.name) {
                self.error("duplicate", member.span, format!("member `{}` is declared twice", member.name));
                continue;
            }
            let value = match (&under, value) {
                (Some(ty), Some(value)) => {
                    let checked = self.expr(value, Some(ty));
                    if let (Type::Int, Some(number)) = (&checked.ty, consts::int_value(&checked))
                        && !consts::fits(number, ty)
                    {
                        let message =
                            format!("{} does not fit in `{}`", consts::brief(number), self.show(ty));
                        self.error("bad-size", value.span, message).help =
                            Some("give the enum a wider representation".into());
                        out.push((member.name.clone(), None));
                        continue;
                    }
                    let refused = checked.ty == Type::Unknown;
                    let checked = self.coerce(checked, ty);
                    let known = consts::int_value(&checked).cloned();
                    if known.is_none() && !refused && checked.ty != Type::Unknown {
                        self.error(
                            "not-constant",
                            value.span,
                            "the value of a member must be known at compile time",
                        );
                    }
                    known
                }
                (Some(_), None) => {
                    self.error(
                        "missing-value",
                        member.span,
                        format!("member `{}` needs a value", member.name),
                    )
                    .help = Some("an enum with a representation gives every member one".into());
                    None
                }
                (None, Some(value)) => {
                    self.error("bad-type", value.span, "only an enum with a representation has values")
                        .help = Some("write `enum bit<8> ...`".into());
                    None
                }
                (None, None) => None,
            };
            out.push((member.name.clone(), value));
        }
        if out.is_empty() {
            self.error("bad-type", name.span, format!("the enum `{}` has no members", name.name));
        }
        Some(self.named(name, decl, DefKind::Enum(EnumDef { underlying: under, members: out })))
    }
}
