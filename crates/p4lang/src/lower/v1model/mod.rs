//! The v1model architecture: its package, its metadata and its externs.

mod externs;
mod objects;

use super::instance::InstanceId;
use super::store::{Life, Store};
use super::{Binding, Flow, Lowered, Lowerer, NO_MAIN, OTHER_ARCHITECTURE};
use crate::ast::AnnotationBody;
use crate::hir::{DefId, DefKind, Expr, Hir, Type};
use crate::ir::{self, Architecture, ControlId, ParserId, Place, Program, StandardMetadata, V1Model, VarId};
use crate::source::Span;

pub(super) fn empty_program(hir: &Hir) -> Program {
    Program {
        arch: Architecture::V1Model(V1Model {
            parser: ParserId(0),
            verify_checksum: ControlId(0),
            ingress: ControlId(1),
            egress: ControlId(2),
            compute_checksum: ControlId(3),
            deparser: ControlId(4),
            standard: StandardMetadata::default(),
        }),
        vars: Vec::new(),
        header_types: Vec::new(),
        headers: Vec::new(),
        stacks: Vec::new(),
        errors: hir.errors.iter().map(|e| e.to_string()).collect(),
        parsers: Vec::new(),
        controls: Vec::new(),
        actions: Vec::new(),
        tables: Vec::new(),
        profiles: Vec::new(),
        counters: Vec::new(),
        meters: Vec::new(),
        registers: Vec::new(),
        digests: Vec::new(),
        value_sets: Vec::new(),
        field_lists: Vec::new(),
        controller_headers: Vec::new(),
        p4_types: Vec::new(),
        package_annotations: Vec::new(),
    }
}

/// The package's blocks in order, by role.
const ROLES: [&str; 6] =
    ["parser", "checksum verification", "ingress", "egress", "checksum computation", "deparser"];

impl Lowerer<'_> {
    /// Lowers the program's `main`.
    pub(super) fn package(&mut self) -> Lowered<()> {
        let Some(main) = self.hir.main else {
            // The program's own last declaration, or its beginning if it has none.
            let own = |span: &Span| !self.sources.file(span.file).name.starts_with('<');
            let span = self.hir.defs.iter().map(|d| d.span).rfind(own).unwrap_or_default();
            let what = "the program has no `main`; it can be checked but not run";
            return self.nothing_to_run(NO_MAIN, span, what);
        };
        let def = self.def(main);
        let DefKind::Instance(instance) = &def.kind else {
            return self.nothing_to_run(NO_MAIN, def.span, "`main` is not a package; it cannot be run");
        };
        let package = self.def(instance.value.def);
        if &*package.name != "V1Switch" || instance.value.args.len() != 6 {
            let message = format!(
                "`main` is a `{}`; it can be checked, but only v1model's `V1Switch` can be run",
                package.name
            );
            return self.nothing_to_run(OTHER_ARCHITECTURE, def.span, message);
        }
        self.program.package_annotations = super::written(&def.annotations, self.sources);
        let mut blocks = Vec::new();
        for (arg, role) in instance.value.args.iter().zip(ROLES) {
            match arg {
                Some(arg) => blocks.push(arg),
                None => return self.fail("bad-call", def.span, format!("the package has no {role}")),
            }
        }
        self.metadata(&blocks)?;
        let mut made = Vec::new();
        for block in &blocks {
            made.push(self.top_instance(block)?);
        }
        let parser = self.run_parser(made[0], blocks[0])?;
        self.program.parsers.push(parser);
        for (instance, block) in made.iter().zip(&blocks).skip(1) {
            let control = self.run_control(*instance, block)?;
            self.program.controls.push(control);
        }
        self.controller_headers();
        self.type_info();
        Ok(())
    }

    /// A program that is right but not for this architecture.
    fn nothing_to_run(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> Lowered<()> {
        let warning = crate::diag::Diagnostic::warning(code, span, message)
            .help("include v1model.p4 and end the program with `V1Switch(...) main;`");
        self.diagnostics.push(warning);
        Err(crate::lower::Failed)
    }

    fn block_params(&self, block: &Expr) -> Vec<DefId> {
        let (Type::Parser(id, _) | Type::Control(id, _)) = &block.ty else { return Vec::new() };
        match &self.def(*id).kind {
            DefKind::Parser(p) => p.signature.params.clone(),
            DefKind::Control(c) => c.signature.params.clone(),
            _ => Vec::new(),
        }
    }

    /// Storage for headers, user metadata and standard metadata, which all blocks share.
    fn metadata(&mut self, blocks: &[&Expr]) -> Lowered<()> {
        // Named as the ingress control names them.
        let ingress = self.block_params(blocks[2]);
        let [hdr, meta, standard] = ingress[..] else {
            return self.fail("bad-call", blocks[2].span, "the ingress control has three parameters");
        };
        let mut stores = Vec::new();
        for param in [hdr, meta, standard] {
            let ty = self.param(param).ty;
            let name = self.def(param).name.to_string();
            stores.push(self.alloc(&ty, &name, Life::Global));
        }
        let standard_type = self.param(standard).ty;
        if let Store::Struct(items) = &stores[2] {
            let mut fields = StandardMetadata::default();
            for ((field, _), item) in self.fields(&standard_type).iter().zip(items) {
                if let Store::Scalar(Place::Var(var), _) = item
                    && let Some(slot) = slot(&mut fields, &field.name)
                {
                    *slot = Some(*var);
                }
            }
            let Architecture::V1Model(v1) = &mut self.program.arch;
            v1.standard = fields;
        }
        let mut shared = stores.into_iter();
        let (Some(h), Some(m), Some(s)) = (shared.next(), shared.next(), shared.next()) else {
            return Ok(());
        };
        let all: Vec<(usize, Vec<Option<&Store>>)> = vec![
            (0, vec![None, Some(&h), Some(&m), Some(&s)]),
            (1, vec![Some(&h), Some(&m)]),
            (2, vec![Some(&h), Some(&m), Some(&s)]),
            (3, vec![Some(&h), Some(&m), Some(&s)]),
            (4, vec![Some(&h), Some(&m)]),
            (5, vec![None, Some(&h)]),
        ];
        for (index, stores) in all {
            for (param, store) in self.block_params(blocks[index]).into_iter().zip(stores) {
                let binding = match store {
                    Some(store) => Binding::Store(store.clone()),
                    None => Binding::Packet,
                };
                self.env.insert(param, binding);
            }
        }
        Ok(())
    }

    /// An instance named after its type.
    fn top_instance(&mut self, block: &Expr) -> Lowered<InstanceId> {
        self.path.clear();
        let params = self.block_params(block);
        let bound: Vec<_> = params.iter().filter_map(|p| self.env.get(p).map(|b| (*p, b.clone()))).collect();
        let id = self.instance_of(block)?;
        self.instances[id.0].bindings.extend(bound);
        Ok(id)
    }

    fn run_parser(&mut self, id: InstanceId, _block: &Expr) -> Lowered<ir::Parser> {
        self.flow = Self::parser_flow();
        self.top_parser(id)
    }

    fn run_control(&mut self, id: InstanceId, block: &Expr) -> Lowered<ir::Control> {
        let name = match &block.ty {
            Type::Control(id, _) => self.def(*id).name.to_string(),
            _ => String::new(),
        };
        let end = self.label();
        self.flow = Flow {
            ret: Some((end, None)),
            exit: Some((end, None)),
            loops: Vec::new(),
            copy_outs: Vec::new(),
        };
        let body = self.in_block(|l| {
            let inner = l.in_block(|l| l.inside(id, |l| l.control_body(id)))?;
            l.emit_labeled(end, inner);
            Ok(())
        })?;
        Ok(ir::Control { name, body })
    }

    /// Header types with `@controller_header`.
    fn controller_headers(&mut self) {
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
    fn type_info(&mut self) {
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

fn slot<'a>(fields: &'a mut StandardMetadata, name: &str) -> Option<&'a mut Option<VarId>> {
    Some(match name {
        "ingress_port" => &mut fields.ingress_port,
        "egress_spec" => &mut fields.egress_spec,
        "egress_port" => &mut fields.egress_port,
        "instance_type" => &mut fields.instance_type,
        "packet_length" => &mut fields.packet_length,
        "enq_timestamp" => &mut fields.enq_timestamp,
        "enq_qdepth" => &mut fields.enq_qdepth,
        "deq_timedelta" => &mut fields.deq_timedelta,
        "deq_qdepth" => &mut fields.deq_qdepth,
        "ingress_global_timestamp" => &mut fields.ingress_global_timestamp,
        "egress_global_timestamp" => &mut fields.egress_global_timestamp,
        "mcast_grp" => &mut fields.mcast_grp,
        "egress_rid" => &mut fields.egress_rid,
        "checksum_error" => &mut fields.checksum_error,
        "parser_error" => &mut fields.parser_error,
        "priority" => &mut fields.priority,
        _ => return None,
    })
}
