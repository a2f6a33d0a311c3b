//! What only the control plane sees of a program: headers of its packets, and types that P4Info names.

use std::collections::HashSet;

use super::{Lowerer, id_annotation};
use crate::ast::{Annotation, AnnotationBody, ExprKind as Ast};
use crate::hir::{DefId, DefKind, FieldDef, Type};
use crate::ir;

impl Lowerer<'_> {
    /// Header types with `@controller_header`.
    pub(super) fn controller_headers(&mut self) {
        let hir = self.hir;
        for def in &hir.defs {
            let DefKind::Header(header) = &def.kind else { continue };
            let Some(annotation) = def.annotations.iter().find(|a| &*a.name.name == "controller_header")
            else {
                continue;
            };
            let Some(direction) = string_annotation(annotation) else { continue };
            let info = ir::Info {
                name: def.name.to_string(),
                id: id_annotation(&def.annotations),
                span: def.span,
                ..Default::default()
            };
            let nested = header.fields.iter().any(|f| matches!(self.ty(&f.ty), Type::Struct(..)));
            let mut fields = Vec::new();
            for field in &header.fields {
                // As the reference compiler has it: once a header is flattened, `@name` counts for none of its fields.
                let name = match crate::check::name_annotation(&field.annotations) {
                    Some(given) if !nested => given.trim_start_matches('.').to_owned(),
                    _ => field.name.to_string(),
                };
                let ty = self.ty(&field.ty);
                self.controller_field(name, field, &ty, &mut fields);
            }
            self.program.controller_headers.push(ir::ControllerHeader { info, direction, fields });
        }
    }

    /// A field of a controller header; a struct's fields are named after it and have its annotations too.
    fn controller_field(
        &mut self,
        name: String,
        field: &FieldDef,
        ty: &Type,
        out: &mut Vec<ir::ControllerField>,
    ) {
        if let Type::Struct(..) = ty {
            for (inner, ty) in self.fields(ty) {
                let own = |a: &&Annotation| !inner.annotations.iter().any(|b| b.name.name == a.name.name);
                let annotations =
                    inner.annotations.iter().chain(field.annotations.iter().filter(own)).cloned().collect();
                let described = FieldDef { annotations, ..inner.clone() };
                self.controller_field(format!("{name}.{}", inner.name), &described, &ty, out);
            }
            return;
        }
        out.push(ir::ControllerField {
            name,
            width: self.scalar_width(ty).unwrap_or(0),
            annotations: self.written(&field.annotations),
            type_name: self.control_type(ty),
            id: id_annotation(&field.annotations),
        });
    }

    /// Bits of a type's values in the control plane, before `@p4runtime_translation`; 0 where they are names.
    pub(super) fn shown_width(&self, ty: &Type) -> u32 {
        match ty {
            Type::Error => 0,
            other => self.scalar_width(other).unwrap_or(0),
        }
    }

    pub(super) fn is_plain_enum(&self, ty: &Type) -> bool {
        let Type::Enum(id) = ty else { return false };
        matches!(&self.def(*id).kind, DefKind::Enum(def) if def.underlying.is_none())
    }

    /// The type of a digest, of a register's cells or of a member of one; types with names are noted for P4Info.
    pub(super) fn data_type(&mut self, ty: &Type) -> ir::DataType {
        self.control_type(ty);
        match ty {
            Type::Bool => ir::DataType::Bool,
            Type::Error => ir::DataType::Error,
            Type::Varbit(width) => ir::DataType::Varbit(*width),
            Type::New(id) => ir::DataType::NewType(self.def(*id).name.to_string()),
            Type::Enum(id) if self.is_plain_enum(ty) => ir::DataType::Enum(self.def(*id).name.to_string()),
            Type::Enum(id) => ir::DataType::SerializableEnum(self.def(*id).name.to_string()),
            Type::Tuple(types) => ir::DataType::Tuple(types.iter().map(|ty| self.data_type(ty)).collect()),
            Type::Struct(id, args) => {
                let name = self.type_name(ty, *id, args);
                let known = |t: &ir::P4Type| matches!(t, ir::P4Type::Struct { name: n, .. } if *n == name);
                if !self.program.p4_types.iter().any(known) {
                    let fields = self.fields(ty);
                    let fields = fields
                        .iter()
                        .map(|(field, ty)| (field.name.to_string(), self.data_type(ty)))
                        .collect();
                    self.program.p4_types.push(ir::P4Type::Struct { name: name.clone(), fields });
                }
                ir::DataType::Struct(name)
            }
            Type::Header(id, args) => {
                let name = self.type_name(ty, *id, args);
                let known = |t: &ir::P4Type| matches!(t, ir::P4Type::Header { name: n, .. } if *n == name);
                if !self.program.p4_types.iter().any(known) {
                    let mut fields = Vec::new();
                    self.header_members(ty, "", &mut fields);
                    self.program.p4_types.push(ir::P4Type::Header { name: name.clone(), fields });
                }
                ir::DataType::Header(name)
            }
            other => ir::DataType::Bits {
                width: self.scalar_width(other).unwrap_or(0),
                signed: self.is_signed(other),
            },
        }
    }

    /// The control plane's name of a struct or header. As in the reference compiler, a generic one is numbered for each
    /// list of type arguments.
    fn type_name(&mut self, ty: &Type, id: DefId, args: &[Type]) -> String {
        let name = self.def(id).name.to_string();
        if args.is_empty() {
            return name;
        }
        if let Some(known) = self.generic_names.get(ty) {
            return known.clone();
        }
        let mut taken: HashSet<&str> = self.hir.top.iter().map(|id| &*self.def(*id).name).collect();
        taken.extend(self.generic_names.values().map(String::as_str));
        self.budget.work(2 * taken.len());
        let mut numbered = (0..=taken.len()).map(|number| format!("{name}_{number}"));
        let free = numbered.find(|name| !taken.contains(name.as_str())).unwrap_or(name);
        self.generic_names.insert(ty.clone(), free.clone());
        free
    }

    /// The control plane's name of the type of a digest, if it has one.
    pub(super) fn digest_name(&mut self, ty: &Type) -> Option<String> {
        match ty {
            Type::Struct(id, args) | Type::Header(id, args) => Some(self.type_name(ty, *id, args)),
            _ => self.type_def(ty).map(|id| self.def(id).name.to_string()),
        }
    }

    /// Fields of a header; a struct's are named after it.
    fn header_members(&self, ty: &Type, prefix: &str, out: &mut Vec<(String, ir::DataType)>) {
        for (field, ty) in self.fields(ty) {
            let name = format!("{prefix}{}", field.name);
            match &ty {
                Type::Struct(..) => self.header_members(&ty, &format!("{name}."), out),
                Type::Varbit(width) => out.push((name, ir::DataType::Varbit(*width))),
                other => {
                    let signed = self.is_signed(other);
                    let width = self.scalar_width(other).unwrap_or(0);
                    out.push((name, ir::DataType::Bits { width, signed }));
                }
            }
        }
    }

    /// The control plane meets a value of this type; gives its name, if it is a new type.
    pub(super) fn control_type(&mut self, ty: &Type) -> Option<String> {
        match ty {
            Type::Error => {
                let known = |t: &ir::P4Type| matches!(t, ir::P4Type::Error);
                if !self.program.p4_types.iter().any(known) {
                    self.program.p4_types.push(ir::P4Type::Error);
                }
                None
            }
            Type::Enum(id) => {
                self.control_types.insert(*id);
                None
            }
            Type::New(id) => {
                if self.control_types.insert(*id)
                    && let DefKind::NewType { ty } = &self.def(*id).kind
                {
                    self.control_type(ty);
                }
                Some(self.def(*id).name.to_string())
            }
            _ => None,
        }
    }

    /// Enums and new types that the control plane meets.
    pub(super) fn type_info(&mut self) {
        for id in self.control_types.clone() {
            let made = self.named_type(id);
            self.program.p4_types.extend(made);
        }
    }

    fn named_type(&mut self, id: DefId) -> Option<ir::P4Type> {
        let def = self.def(id);
        let name = def.name.to_string();
        Some(match &def.kind {
            DefKind::Enum(e) => {
                let Some(underlying) = &e.underlying else {
                    let members = e.members.iter().map(|(name, _)| name.to_string()).collect();
                    return Some(ir::P4Type::Enum { name, members });
                };
                let width = self.scalar_width(underlying)?;
                let members = e
                    .members
                    .iter()
                    .map(|(name, value)| {
                        let value = value.clone().unwrap_or_default();
                        let bits = super::build::signed_constant(&value, width.max(1));
                        let value = match bits.kind {
                            ir::ExprKind::Const(value) => value,
                            _ => Default::default(),
                        };
                        (name.to_string(), value)
                    })
                    .collect();
                ir::P4Type::SerializableEnum { name, width, members }
            }
            DefKind::NewType { ty } => {
                // A new type of a new type is one of what that is made of.
                let mut ty = ty;
                while let Type::New(inner) = ty
                    && let DefKind::NewType { ty: below } = &self.def(*inner).kind
                {
                    ty = below;
                }
                let translation = def.annotations.iter().find(|a| &*a.name.name == TRANSLATION);
                let others: Vec<Annotation> =
                    def.annotations.iter().filter(|a| &*a.name.name != TRANSLATION).cloned().collect();
                ir::P4Type::NewType {
                    name,
                    original: self.data_type(ty),
                    annotations: self.written(&others),
                    translation: translation.and_then(|a| translated(&a.body)),
                }
            }
            _ => return None,
        })
    }
}

const TRANSLATION: &str = "p4runtime_translation";

/// The one string of an annotation.
fn string_annotation(annotation: &Annotation) -> Option<String> {
    let AnnotationBody::Free { exprs: Some(exprs), .. } = &annotation.body else { return None };
    match &exprs.first()?.kind {
        Ast::Str(text) => Some(text.clone()),
        _ => None,
    }
}

/// `"uri", string`, `"uri", 32` or `"uri", bit<32>`. The last is a type and no expression, so the text counts.
fn translated(body: &AnnotationBody) -> Option<ir::Translation> {
    let AnnotationBody::Free { text, .. } = body else { return None };
    let (uri, rest) = text.trim().strip_prefix('"')?.split_once('"')?;
    let shown: String = rest.trim_start().strip_prefix(',')?.split_whitespace().collect();
    let bits = shown.strip_prefix("bit<").and_then(|bits| bits.strip_suffix('>')).unwrap_or(&shown);
    Some(ir::Translation { uri: uri.to_owned(), sdn_width: bits.parse().ok() })
}
