//! What only the control plane sees of a program: headers of its packets, and types that P4Info names.

use super::Lowerer;
use crate::ast::AnnotationBody;
use crate::hir::DefKind;
use crate::ir;

impl Lowerer<'_> {
    /// Header types with `@controller_header`.
    pub(super) fn controller_headers(&mut self) {
        let mut found = Vec::new();
        let hir = self.hir;
        for def in &hir.defs {
            let DefKind::Header(_) = &def.kind else { continue };
            let Some(annotation) = def.annotations.iter().find(|a| &*a.name.name == "controller_header")
            else {
                continue;
            };
            let direction = match &annotation.body {
                AnnotationBody::Free { exprs: Some(exprs), .. } => match exprs.first().map(|e| &e.kind) {
                    Some(crate::ast::ExprKind::Str(text)) => text.clone(),
                    _ => continue,
                },
                _ => continue,
            };
            let DefKind::Header(header) = &def.kind else { continue };
            let fields = header
                .fields
                .iter()
                .map(|f| ir::ControllerField {
                    name: f.name.to_string(),
                    width: self.scalar_width(&f.ty).unwrap_or(0),
                    annotations: super::written(&f.annotations, self.sources),
                    type_name: self.control_type(&f.ty),
                    id: super::id_annotation(&f.annotations),
                })
                .collect();
            let info = ir::Info {
                name: def.name.to_string(),
                id: super::id_annotation(&def.annotations),
                span: def.span,
                ..Default::default()
            };
            found.push(ir::ControllerHeader { info, direction, fields });
        }
        self.program.controller_headers = found;
    }

    /// New types and serializable enums that the control plane meets.
    pub(super) fn type_info(&mut self) {
        let mut types = Vec::new();
        for id in &self.control_types {
            let def = self.hir.def(*id);
            match &def.kind {
                DefKind::Enum(e) => {
                    let Some(width) = e.underlying.as_ref().and_then(|u| self.scalar_width(u)) else {
                        continue;
                    };
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
                    types.push(ir::P4Type::SerializableEnum { name: def.name.to_string(), width, members });
                }
                DefKind::NewType { ty } => {
                    let Some(width) = self.scalar_width(ty) else { continue };
                    let translation =
                        def.annotations.iter().find(|a| &*a.name.name == "p4runtime_translation").and_then(
                            |a| match &a.body {
                                AnnotationBody::Free { exprs: Some(exprs), .. } => {
                                    match exprs.first().map(|e| &e.kind) {
                                        Some(crate::ast::ExprKind::Str(uri)) => {
                                            let sdn_width = match exprs.get(1).map(|e| &e.kind) {
                                                Some(crate::ast::ExprKind::Int { value, .. }) => {
                                                    u32::try_from(value).ok()
                                                }
                                                _ => None,
                                            };
                                            Some(ir::Translation { uri: uri.clone(), sdn_width })
                                        }
                                        _ => None,
                                    }
                                }
                                _ => None,
                            },
                        );
                    types.push(ir::P4Type::NewType { name: def.name.to_string(), width, translation });
                }
                _ => {}
            }
        }
        self.program.p4_types.extend(types);
    }
}
