//! The program's `main`: which architecture it is for, and its parsers and controls in the order of their roles.

use super::architecture::{Architecture, Param};
use super::instance::InstanceId;
use super::store::{Life, Store};
use super::{Binding, Flow, Lowered, Lowerer, NO_MAIN, OTHER_ARCHITECTURE, ebpf, v1model};
use crate::diag::{Diagnostic, counted};
use crate::hir::{Def, DefId, DefKind, Expr, Hir, InstanceDef, Type};
use crate::ir::{self, BlockId, ControlId, ParserId, Place};
use crate::source::{SourceMap, Span};

/// All architectures. A new one is registered here and, with the path of its packets, in the data plane.
pub(super) const ARCHITECTURES: &[&dyn Architecture] = &[&v1model::Lowering, &ebpf::Lowering];

/// What can be lowered: an instance of an architecture's package.
#[derive(Clone, Copy)]
pub(super) struct Main<'a> {
    pub arch: &'static dyn Architecture,
    def: &'a Def,
    instance: &'a InstanceDef,
}

impl<'a> Main<'a> {
    pub fn span(&self) -> Span {
        self.def.span
    }

    /// The program's `main`, or a warning that says why it cannot be run.
    pub fn find(hir: &'a Hir, sources: &SourceMap) -> Result<Main<'a>, Box<Diagnostic>> {
        let Some(main) = hir.main else {
            // The program's own last declaration, or its beginning if it has none.
            let own = |span: &Span| !sources.file(span.file).name.starts_with('<');
            let span = hir.defs.iter().map(|d| d.span).rfind(own).unwrap_or_default();
            let what = "the program has no `main`; it can be checked but not run";
            return Err(nothing_to_run(NO_MAIN, span, what));
        };
        let def = hir.def(main);
        let DefKind::Instance(instance) = &def.kind else {
            let what = "`main` is not a package; it cannot be run";
            return Err(nothing_to_run(NO_MAIN, def.span, what));
        };
        let package = &hir.def(instance.value.def).name;
        let known = |a: &&&dyn Architecture| {
            a.package() == &**package && a.roles().len() == instance.value.args.len()
        };
        match ARCHITECTURES.iter().find(known) {
            Some(arch) => Ok(Main { arch: *arch, def, instance }),
            None => {
                let all = ARCHITECTURES.iter().map(|a| format!("{}'s `{}`", a.name(), a.package()));
                let all = all.collect::<Vec<_>>().join(" and ");
                let what = format!("`main` is a `{package}`; it can be checked, but only {all} can be run");
                Err(nothing_to_run(OTHER_ARCHITECTURE, def.span, what))
            }
        }
    }
}

/// A program that is right but for no architecture.
fn nothing_to_run(code: &'static str, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    let help = "include v1model.p4 and end the program with `V1Switch(...) main;`";
    Box::new(Diagnostic::warning(code, span, message).help(help))
}

impl Lowerer<'_> {
    /// Lowers the program's `main`.
    pub(super) fn package(&mut self, main: Main<'_>) -> Lowered<()> {
        self.program.package_annotations = self.written(&main.def.annotations);
        let mut blocks = Vec::new();
        for (arg, role) in main.instance.value.args.iter().zip(self.arch.roles()) {
            match arg {
                Some(arg) => blocks.push(arg),
                None => {
                    return self.fail("bad-call", main.def.span, format!("the package has no {}", role.name));
                }
            }
        }
        self.bind(&blocks)?;
        let mut made = Vec::new();
        for block in &blocks {
            made.push(self.top_instance(block)?);
        }
        for ((instance, block), role) in made.into_iter().zip(blocks).zip(self.arch.roles()) {
            let id = match &block.ty {
                Type::Parser(..) => {
                    self.flow = Self::parser_flow();
                    let parser = self.top_parser(instance)?;
                    self.program.parsers.push(parser);
                    BlockId::Parser(ParserId(self.program.parsers.len() as u32 - 1))
                }
                _ => {
                    let control = self.run_control(instance, block)?;
                    self.program.controls.push(control);
                    BlockId::Control(ControlId(self.program.controls.len() as u32 - 1))
                }
            };
            self.program.package.blocks.push((role.name, id));
        }
        self.arch.package_end(self);
        self.controller_headers();
        self.type_info();
        self.control_ids();
        Ok(())
    }

    fn block_params(&self, block: &Expr) -> Vec<DefId> {
        let (Type::Parser(id, _) | Type::Control(id, _)) = &block.ty else { return Vec::new() };
        match &self.def(*id).kind {
            DefKind::Parser(p) => p.signature.params.clone(),
            DefKind::Control(c) => c.signature.params.clone(),
            _ => Vec::new(),
        }
    }

    /// Storage for what the blocks share, and what each of their parameters stands for.
    fn bind(&mut self, blocks: &[&Expr]) -> Lowered<()> {
        let roles = self.arch.roles();
        let mut params = Vec::new();
        for (block, role) in blocks.iter().zip(roles) {
            let found = self.block_params(block);
            if found.len() != role.params.len() {
                let what = format!("the {} has {}", role.name, counted(role.params.len(), "parameter"));
                return self.fail("bad-call", block.span, what);
            }
            params.push(found);
        }
        let mut stores = Vec::new();
        for (number, shared) in self.arch.shared().iter().enumerate() {
            let mut named = params[shared.named_by].iter().zip(roles[shared.named_by].params);
            let Some((param, _)) = named.find(|(_, param)| **param == Param::Shared(number)) else {
                stores.push(Store::Unit);
                continue;
            };
            let ty = self.param(*param).ty;
            let name = self.def(*param).name.to_string();
            let store = self.alloc(&ty, &name, Life::Global);
            if shared.intrinsic {
                self.intrinsic(shared.name, &ty, &store);
            }
            stores.push(store);
        }
        for (params, role) in params.into_iter().zip(roles) {
            for (param, stands_for) in params.into_iter().zip(role.params) {
                let binding = match stands_for {
                    Param::Packet => Binding::Packet,
                    Param::Shared(number) => Binding::Store(stores[*number].clone()),
                };
                self.env.insert(param, binding);
            }
        }
        Ok(())
    }

    /// Notes where intrinsic metadata is: a number by its name, a struct field by field.
    fn intrinsic(&mut self, name: &str, ty: &Type, store: &Store) {
        match store {
            Store::Scalar(Place::Var(var), _) => {
                self.program.package.intrinsic.push((name.to_owned(), *var));
            }
            Store::Struct(items) => {
                for ((field, ty), item) in self.fields(ty).iter().zip(&**items) {
                    self.intrinsic(&format!("{name}.{}", field.name), ty, item);
                }
            }
            _ => {}
        }
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
}
