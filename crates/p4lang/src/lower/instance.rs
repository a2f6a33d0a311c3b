//! Instances of parsers, controls and extern objects.
//!
//! An instance of a control owns its tables, actions, objects and variables. Its parameters stand for the arguments of
//! its one application; if it is applied in several places they get storage of their own, so that its tables see the
//! same variables each time.

use std::collections::HashMap;

use super::{Binding, Lowered, Lowerer};
use crate::hir::{
    Call, Callee, Construct, DefId, DefKind, Expr, ExprKind as K, Stmt, StmtKind as S, Type, TypeParamId,
};
use crate::ir;
use crate::limits::Resource;
use crate::source::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct InstanceId(pub usize);

#[derive(Debug, Clone)]
pub(super) struct Instance {
    pub def: DefId,
    pub object: Object,
    /// Bindings that hold in its body.
    pub bindings: Vec<(DefId, Binding)>,
    pub types: Vec<(TypeParamId, Type)>,
    pub path: Vec<String>,
    /// Where it is made.
    pub span: Span,
    pub tables: HashMap<DefId, ir::TableId>,
    /// Applied in more than one place, or by code that is.
    pub shared: bool,
    /// Places in the code of instances around it that apply it.
    pub sites: usize,
    /// Instances that its code may apply.
    pub parts: Vec<InstanceId>,
    /// Its actions and tables are lowered.
    pub ready: bool,
}

/// What an instance is.
#[derive(Debug, Clone)]
pub(super) enum Object {
    /// A parser or control.
    Block,
    Counter(ir::CounterId),
    Meter(ir::MeterId),
    Register(ir::RegisterId),
    Profile(ir::ProfileId),
    /// Belongs to the table that names it.
    DirectCounter(ir::DirectCounter),
    DirectMeter(ir::DirectMeter, Box<MeterRead>),
    /// Without state of its own: v1model's `Checksum16`.
    Stateless,
}

/// Where a direct meter's colour is read to.
pub(super) type MeterRead = Option<ir::Place>;

impl Lowerer<'_> {
    fn add_instance(&mut self, instance: Instance) -> InstanceId {
        self.budget.spend(Resource::Instances, 1);
        self.instances.push(instance);
        InstanceId(self.instances.len() - 1)
    }

    /// An instance declared with a name.
    pub(super) fn instantiate_def(&mut self, id: DefId) -> Lowered<InstanceId> {
        let def = self.def(id);
        let DefKind::Instance(instance) = &def.kind else {
            return self.fail("unsupported", def.span, "this is not an instance");
        };
        let info = self.info(def);
        self.instantiate(&instance.value, &instance.ty, info)
    }

    /// A top-level instance, made when it is first used.
    pub(super) fn global_instance(&mut self, id: DefId) -> Lowered<InstanceId> {
        if let Some(Binding::Instance(known)) = self.env.get(&id) {
            return Ok(*known);
        }
        let path = std::mem::take(&mut self.path);
        let made = self.instantiate_def(id);
        self.path = path;
        let made = made?;
        self.env.insert(id, Binding::Instance(made));
        Ok(made)
    }

    pub(super) fn instance_of(&mut self, e: &Expr) -> Lowered<InstanceId> {
        match &e.kind {
            K::Ref(id) => match self.env.get(id) {
                Some(Binding::Instance(instance)) => Ok(*instance),
                Some(Binding::Value(value)) => {
                    let value = value.clone();
                    self.instance_of(&value)
                }
                _ => self.global_instance(*id),
            },
            K::Construct(construct) => {
                let name = self.def(construct.def).name.clone();
                let info = ir::Info { name: self.qualified(&name), span: e.span, ..Default::default() };
                self.instantiate(construct, &e.ty, info)
            }
            _ => self.fail("unsupported", e.span, "this is not an instance"),
        }
    }

    /// The instance of `C.apply(...)`, named after the type: one in each instance around, however often that code is
    /// lowered.
    pub(super) fn direct_instance(&mut self, id: DefId, call: &Call) -> Lowered<InstanceId> {
        // The checked program has the call once; a macro may give others the same place in the source.
        let site = (self.current, std::ptr::from_ref(call));
        if let Some(known) = self.direct.get(&site) {
            return Ok(*known);
        }
        let def = self.def(id);
        let construct =
            Construct { def: id, type_args: call.type_args.clone(), ctor: None, args: Vec::new() };
        let info = ir::Info { name: self.qualified(&def.name), span: call.span, ..Default::default() };
        let ty = match def.kind {
            DefKind::Parser(_) => Type::Parser(id, Vec::new()),
            _ => Type::Control(id, Vec::new()),
        };
        let made = self.instantiate(&construct, &ty, info)?;
        let around_shared = self.current.is_some_and(|around| self.instances[around.0].shared);
        if around_shared || !self.flow.loops.is_empty() {
            self.share(made);
        }
        self.direct.insert(site, made);
        Ok(made)
    }

    pub(super) fn instantiate(
        &mut self,
        construct: &Construct,
        ty: &Type,
        info: ir::Info,
    ) -> Lowered<InstanceId> {
        self.depth += 1;
        let made = self.instantiate_inner(construct, ty, info);
        self.depth -= 1;
        made
    }

    fn instantiate_inner(&mut self, construct: &Construct, ty: &Type, info: ir::Info) -> Lowered<InstanceId> {
        self.bounded(info.span)?;
        let def = self.def(construct.def);
        let (type_params, ctor_params, locals, uses) = match &def.kind {
            DefKind::Parser(p) => (&p.signature.type_params, &p.ctor_params, &p.locals, {
                let mut uses = HashMap::new();
                p.states.iter().for_each(|s| count_stmts(&s.body, 1, &mut uses));
                uses
            }),
            DefKind::Control(c) => (&c.signature.type_params, &c.ctor_params, &c.locals, {
                let mut uses = HashMap::new();
                count_stmts(&c.body.stmts, 1, &mut uses);
                uses
            }),
            _ => {
                let span = info.span;
                let object = self.extern_object(construct, ty, info)?;
                return Ok(self.add_instance(Instance {
                    def: construct.def,
                    object,
                    bindings: Vec::new(),
                    types: Vec::new(),
                    path: Vec::new(),
                    span,
                    tables: HashMap::new(),
                    shared: false,
                    sites: 0,
                    parts: Vec::new(),
                    ready: true,
                }));
            }
        };
        let types: Vec<_> =
            type_params.iter().copied().zip(construct.type_args.iter().map(|t| self.ty(t))).collect();
        if types.len() < type_params.len() {
            let message = format!("nothing says what the type parameters of `{}` are", def.name);
            return self.fail_help(
                "type-arguments",
                info.span,
                message,
                "write type arguments where it is made",
            );
        }
        let mut bindings = Vec::new();
        let mut parts = Vec::new();
        for (param, arg) in ctor_params.iter().zip(&construct.args) {
            let arg = match arg {
                Some(arg) => arg.clone(),
                None => match self.param(*param).default {
                    Some(default) => default,
                    None => continue,
                },
            };
            let object = matches!(
                self.ty(&self.param(*param).ty),
                Type::Extern(..) | Type::Parser(..) | Type::Control(..) | Type::Package(..)
            );
            bindings.push(if object {
                let made = self.instance_of(&arg)?;
                self.applied(made, uses.get(param).copied().unwrap_or(0));
                parts.push(made);
                (*param, Binding::Instance(made))
            } else {
                match self.constant(&arg) {
                    Some(value) => (*param, Binding::Value(value)),
                    None => {
                        return self.fail(
                            "not-constant",
                            arg.span,
                            "a constructor's argument must be known at compile time",
                        );
                    }
                }
            });
        }
        let path: Vec<String> = if info.name.is_empty() { Vec::new() } else { vec![info.name.clone()] };
        let outer_path = std::mem::replace(&mut self.path, path.clone());
        self.env.extend(bindings.iter().cloned());
        self.types.extend(types.iter().cloned());
        for local in locals {
            let made = match &self.def(*local).kind {
                DefKind::Instance(_) => {
                    let made = self.instantiate_def(*local)?;
                    self.applied(made, uses.get(local).copied().unwrap_or(0));
                    parts.push(made);
                    Binding::Instance(made)
                }
                DefKind::Const { value, .. } => {
                    Binding::Value(self.constant(value).unwrap_or_else(|| value.clone()))
                }
                DefKind::Variable { ty, .. } => {
                    let name = self.qualified(&self.def(*local).name.clone());
                    let ty = self.ty(ty);
                    Binding::Store(self.alloc(&ty, &name, super::store::Life::Local))
                }
                DefKind::ValueSet { ty, size } => Binding::ValueSet(self.value_set(*local, ty, *size)?),
                _ => continue,
            };
            self.env.insert(*local, made.clone());
            bindings.push((*local, made));
        }
        self.path = outer_path;
        Ok(self.add_instance(Instance {
            def: construct.def,
            object: Object::Block,
            bindings,
            types,
            path,
            span: info.span,
            tables: HashMap::new(),
            shared: false,
            sites: 0,
            parts,
            ready: false,
        }))
    }

    /// Counts places that apply an instance.
    fn applied(&mut self, id: InstanceId, sites: usize) {
        let instance = &mut self.instances[id.0];
        instance.sites += sites;
        if instance.sites > 1 {
            self.share(id);
        }
    }

    /// Its code is lowered more than once, and so is that of the instances that it applies.
    fn share(&mut self, id: InstanceId) {
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            let instance = &mut self.instances[id.0];
            if !std::mem::replace(&mut instance.shared, true) {
                self.budget.work(instance.parts.len());
                todo.extend(&instance.parts);
            }
        }
    }

    /// Puts an instance's bindings in place and runs `f`.
    pub(super) fn inside<T>(
        &mut self,
        id: InstanceId,
        f: impl FnOnce(&mut Self) -> Lowered<T>,
    ) -> Lowered<T> {
        let instance = &self.instances[id.0];
        self.budget.work(4 * (instance.bindings.len() + instance.types.len()));
        self.env.extend(instance.bindings.iter().cloned());
        self.types.extend(instance.types.iter().cloned());
        let path = std::mem::replace(&mut self.path, instance.path.clone());
        let current = self.current.replace(id);
        let result = f(self);
        self.path = path;
        self.current = current;
        result
    }

    /// `instance.apply(args)` of a control (parsers: see `parser`).
    pub(super) fn apply_instance(&mut self, id: InstanceId, call: &Call) -> Lowered<()> {
        let def = self.def(self.instances[id.0].def);
        let DefKind::Control(control) = &def.kind else {
            return self.fail(
                "unsupported",
                call.span,
                "a parser cannot be applied inside of a condition or loop",
            );
        };
        // A direct application knows its type arguments only now.
        if self.instances[id.0].types.len() < control.signature.type_params.len() {
            let types = control
                .signature
                .type_params
                .iter()
                .copied()
                .zip(call.type_args.iter().map(|t| self.ty(t)))
                .collect();
            self.instances[id.0].types = types;
        }
        let types = self.instances[id.0].types.clone();
        self.types.extend(types);
        let shared = self.instances[id.0].shared;
        let copies = if shared && self.instances[id.0].ready {
            self.rebind(id, &control.signature.params, call)?
        } else {
            let copies = self.bind_params(&call.arguments(&control.signature.params), shared, call.span)?;
            for param in &control.signature.params {
                if let Some(binding) = self.env.get(param).cloned() {
                    // A constant argument of one application is not that of the next.
                    let binding = match binding {
                        Binding::Value(value) if shared => {
                            let ty = self.ty(&self.param(*param).ty);
                            let name = self.qualified(&self.def(*param).name.clone());
                            let store = self.alloc(&ty, &name, super::store::Life::Local);
                            let value = self.value(&value)?;
                            self.assign(&store, value);
                            Binding::Store(store)
                        }
                        other => other,
                    };
                    self.instances[id.0].bindings.push((*param, binding));
                }
            }
            copies
        };
        self.inside(id, |l| {
            let label = l.label();
            l.inlined(label, None, copies, |l| l.control_body(id))
        })
    }

    /// Copies new arguments into the parameters that an instance already has.
    fn rebind(
        &mut self,
        id: InstanceId,
        params: &[DefId],
        call: &Call,
    ) -> Lowered<Vec<(super::assign::Dest, super::store::Store)>> {
        use super::expr::Value;
        use crate::ast::Direction;
        self.budget.work(4 * self.instances[id.0].bindings.len());
        let known: HashMap<DefId, Binding> = self.instances[id.0].bindings.iter().cloned().collect();
        let mut copies = Vec::new();
        for (param, arg) in call.arguments(params) {
            if let (Some(Binding::Instance(before)), Some(arg)) = (known.get(&param), arg) {
                self.rebind_object(id, param, *before, arg, call.span)?;
            }
            let (Some(Binding::Store(store)), Some(arg)) = (known.get(&param), arg) else { continue };
            let direction = self.param(param).direction;
            match direction {
                Direction::In | Direction::None => {
                    let value = self.value(arg)?;
                    self.assign(store, value);
                }
                _ if Self::is_dont_care(arg) => self.assign(store, Value::Default),
                _ => {
                    let dest = self.out_dest(arg)?;
                    let value = match (&dest, direction) {
                        (_, Direction::Out) => Value::Default,
                        (super::assign::Dest::Store(from), _) => Value::Store(from.clone()),
                        (slice, _) => Value::Scalar(slice.read()),
                    };
                    self.assign(store, value);
                    copies.push((dest, store.clone()));
                }
            }
        }
        Ok(copies)
    }

    /// Puts another object in the place of a parameter. Actions of tables are there once, and have the first one.
    fn rebind_object(
        &mut self,
        id: InstanceId,
        param: DefId,
        before: InstanceId,
        arg: &Expr,
        span: Span,
    ) -> Lowered<()> {
        let now = self.object_binding(arg)?;
        if matches!(now, Binding::Instance(now) if now == before) {
            return Ok(());
        }
        if !self.instances[id.0].tables.is_empty() {
            let message = format!(
                "this control has tables and was applied with another object as `{}` before",
                self.def(param).name
            );
            return self.fail_help("unsupported", span, message, "make an instance for each object");
        }
        for (known, binding) in &mut self.instances[id.0].bindings {
            if *known == param {
                binding.clone_from(&now);
            }
        }
        Ok(())
    }

    /// Locals, tables if that is still to do, and the apply block of the instance around.
    pub(super) fn control_body(&mut self, id: InstanceId) -> Lowered<()> {
        let def = self.def(self.instances[id.0].def);
        let DefKind::Control(control) = &def.kind else { return Ok(()) };
        for local in &control.locals {
            self.init_local(*local)?;
        }
        if !self.instances[id.0].ready {
            self.instances[id.0].ready = true;
            for local in &control.locals {
                if let DefKind::Table(_) = &self.def(*local).kind {
                    let table = self.table(*local)?;
                    self.instances[id.0].tables.insert(*local, table);
                }
            }
        }
        self.block(&control.body)
    }

    /// Sets a local variable of a parser or control to its initial value.
    pub(super) fn init_local(&mut self, id: DefId) -> Lowered<()> {
        use super::expr::Value;
        let DefKind::Variable { init, .. } = &self.def(id).kind else { return Ok(()) };
        let Some(Binding::Store(store)) = self.env.get(&id).cloned() else { return Ok(()) };
        let value = match init {
            Some(init) => self.value(init)?,
            None => Value::Default,
        };
        self.assign(&store, value);
        Ok(())
    }
}

/// Counts the applications of each instance: `times` for each that is written.
fn count_stmts(stmts: &[Stmt], times: usize, uses: &mut HashMap<DefId, usize>) {
    for stmt in stmts {
        match &stmt.kind {
            S::Block(b) => count_stmts(&b.stmts, times, uses),
            S::Call(call) => count_call(call, times, uses),
            S::If { then, otherwise, .. } => {
                count_stmts(&then.stmts, times, uses);
                count_stmts(&otherwise.stmts, times, uses);
            }
            S::SwitchAction { cases, default, .. } => {
                cases.iter().for_each(|(_, b)| count_stmts(&b.stmts, times, uses));
                default.iter().for_each(|b| count_stmts(&b.stmts, times, uses));
            }
            S::Switch { cases, default, .. } => {
                cases.iter().for_each(|(_, b)| count_stmts(&b.stmts, times, uses));
                default.iter().for_each(|b| count_stmts(&b.stmts, times, uses));
            }
            // A body that is unrolled applies what it applies several times.
            S::For { body, .. } | S::ForRange { body, .. } | S::ForIn { body, .. } => {
                count_stmts(&body.stmts, 2, uses);
            }
            _ => {}
        }
    }
}

fn count_call(call: &Call, times: usize, uses: &mut HashMap<DefId, usize>) {
    if let Callee::Apply(Expr { kind: K::Ref(id), .. }) = &call.callee {
        *uses.entry(*id).or_default() += times;
    }
}
