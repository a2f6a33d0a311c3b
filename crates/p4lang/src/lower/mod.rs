//! Checked program to lowered program: everything inlined, instantiated and flattened (see [`crate::ir`]).
//!
//! The lowering walks the package's blocks as they would run. Every name that code can refer to is bound in
//! [`Lowerer::env`] to where it is stored or what it stands for; since P4 has no recursion a definition is bound at most
//! once at a time, so the environment is one flat map, and entering an instance of a parser or control puts that
//! instance's bindings in place.

mod architecture;
mod assign;
mod build;
mod call;
mod control_ids;
mod control_plane;
mod core;
pub mod ebpf;
mod entries;
mod expr;
mod instance;
mod order;
mod package;
mod parser;
mod places;
mod stmt;
mod store;
mod table;
pub mod v1model;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use crate::ast::{Annotation, AnnotationBody};
use crate::check::{Subst, consts, substitute};
use crate::diag::Diagnostic;
use crate::hir::{self, DefId, DefKind, Hir, Type};
use crate::ir::{self, Block, Program, Stmt};
use crate::limits::{Budget, Resource};
use crate::source::{SourceMap, Span};

use architecture::Architecture;
use instance::{Instance, InstanceId};
use store::Store;

/// Codes of the warnings for programs that are right and cannot be run.
pub const NO_MAIN: &str = "no-main";
pub const OTHER_ARCHITECTURE: &str = "unsupported-architecture";
pub const OWN_EXTERN: &str = "unsupported-extern";

/// Calls, instances and blocks within one another.
const MAX_DEPTH: usize = 200;
const MAX_BLOCKS: usize = 1_000;

/// Something that cannot be lowered was reported.
pub(crate) struct Failed;
type Lowered<T> = Result<T, Failed>;

/// What a definition stands for while code that mentions it is lowered.
#[derive(Debug, Clone)]
enum Binding {
    Store(Store),
    /// A constant or constructor argument.
    Value(hir::Expr),
    Instance(InstanceId),
    /// `packet_in` or `packet_out`.
    Packet,
    ValueSet(ir::ValueSetId),
}

/// What `return`, `exit`, `break` and `continue` do here.
#[derive(Debug, Clone, Default)]
struct Flow {
    /// Leaves the function, action or control around; with the place of its result.
    ret: Option<(ir::LabelId, Option<Store>)>,
    /// Leaves the outermost block; an action of a table also raises the flag.
    exit: Option<(ir::LabelId, Option<ir::VarId>)>,
    /// Break and continue of the loops around, innermost last.
    loops: Vec<(ir::LabelId, ir::LabelId)>,
    /// Copies that leaving by `exit` must still make, innermost last (section 12.5).
    copy_outs: Vec<Rc<Vec<(assign::Dest, Store)>>>,
}

struct Lowerer<'a> {
    arch: &'static dyn Architecture,
    hir: &'a Hir,
    sources: &'a SourceMap,
    budget: &'a Budget,
    program: Program,
    diagnostics: Vec<Diagnostic>,
    /// Places that were warned of: what is inlined is lowered at each of its calls.
    warned: std::collections::HashSet<Span>,
    env: HashMap<DefId, Binding>,
    types: Subst,
    instances: Vec<Instance>,
    header_types: HashMap<Type, ir::HeaderTypeId>,
    /// The block being filled.
    out: Block,
    flow: Flow,
    /// Control-plane names of the instances around.
    path: Vec<String>,
    next_label: u32,
    used_labels: std::collections::HashSet<ir::LabelId>,
    /// Inlined calls and instances around.
    depth: usize,
    /// Blocks around.
    blocks: usize,
    /// Variables for varbits that are empty, by width.
    empty_varbits: HashMap<u32, ir::VarId>,
    /// Actions that may exit.
    exiting: std::collections::HashSet<ir::ActionId>,
    /// Actions already lowered in the instance around, by definition; those without bound arguments.
    actions: HashMap<(Option<InstanceId>, DefId), ir::ActionId>,
    current: Option<InstanceId>,
    /// Instances of direct applications, by the instance and the call that apply them.
    direct: HashMap<(Option<InstanceId>, *const hir::Call), InstanceId>,
    field_lists: BTreeMap<u32, ir::FieldList>,
    /// New types and serializable enums that the control plane meets.
    control_types: std::collections::BTreeSet<DefId>,
    /// Names that the control plane knows generic types with their type arguments by.
    generic_names: HashMap<Type, String>,
    exited: Option<ir::VarId>,
    /// Whether an action's body is being lowered.
    in_action: bool,
    /// Actions that controls call directly, with the instance that they are of.
    called: std::collections::HashSet<(Option<InstanceId>, DefId)>,
    /// Calls of direct counters and meters: the object, the table's property for it, and where the call stands.
    direct_uses: Vec<(String, &'static str, Span)>,
}

/// Names of all architectures, as [`ir::Package::architecture`] has them.
pub fn architectures() -> impl Iterator<Item = &'static str> {
    package::ARCHITECTURES.iter().map(|arch| arch.name())
}

/// Declarations of all architectures: the files that programs can include, and their text.
pub fn declarations() -> impl Iterator<Item = (&'static str, &'static str)> {
    package::ARCHITECTURES.iter().map(|arch| arch.declarations())
}

/// Lowers a checked program for its architecture. `None` if there was an error.
pub fn lower(hir: &Hir, sources: &SourceMap, budget: &Budget) -> (Option<Program>, Vec<Diagnostic>) {
    let main = match package::Main::find(hir, sources) {
        Ok(main) => main,
        Err(warning) => return (None, vec![*warning]),
    };
    let package = ir::Package { architecture: main.arch.name(), ..Default::default() };
    let errors = hir.errors.iter().map(|e| e.to_string()).collect();
    let mut lowerer = Lowerer {
        arch: main.arch,
        hir,
        sources,
        budget,
        program: Program { package, errors, ..Default::default() },
        diagnostics: Vec::new(),
        warned: Default::default(),
        env: HashMap::new(),
        types: Subst::new(),
        instances: Vec::new(),
        header_types: HashMap::new(),
        out: Block::new(),
        flow: Flow::default(),
        path: Vec::new(),
        next_label: 0,
        used_labels: Default::default(),
        depth: 0,
        blocks: 0,
        empty_varbits: HashMap::new(),
        exiting: Default::default(),
        actions: HashMap::new(),
        current: None,
        direct: HashMap::new(),
        field_lists: BTreeMap::new(),
        control_types: std::collections::BTreeSet::new(),
        generic_names: HashMap::new(),
        exited: None,
        in_action: false,
        called: Default::default(),
        direct_uses: Vec::new(),
    };
    let span = main.span();
    let done = lowerer.package(main).and_then(|()| lowerer.bounded(span));
    if done.is_ok() {
        lowerer.v1_unattached();
    }
    let mut program = lowerer.program;
    program.field_lists = lowerer.field_lists.into_values().collect();
    if done.is_ok() {
        match crate::sizes::check(&program, &budget.limits, span) {
            Ok(room) => (program.room, program.queue_bytes) = (room, budget.limits.queue_bytes),
            Err(found) => lowerer.diagnostics.push(*found),
        }
    }
    let failed =
        done.is_err() || lowerer.diagnostics.iter().any(|d| d.severity == crate::diag::Severity::Error);
    ((!failed).then_some(program), lowerer.diagnostics)
}

impl<'a> Lowerer<'a> {
    fn fail<T>(&mut self, code: &'static str, span: Span, message: impl Into<String>) -> Lowered<T> {
        self.diagnostics.push(Diagnostic::error(code, span, message));
        Err(Failed)
    }

    fn fail_help<T>(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Lowered<T> {
        self.diagnostics.push(Diagnostic::error(code, span, message).help(help));
        Err(Failed)
    }

    /// An extern that the architecture does not have. The program is right, but nobody can run it here.
    fn own_extern<T>(&mut self, span: Span, what: String) -> Lowered<T> {
        let what = format!("{what}; the program can be checked but not run");
        let help = "take the extern out, or use one that the architecture declares";
        self.diagnostics.push(Diagnostic::warning(OWN_EXTERN, span, what).help(help));
        Err(Failed)
    }

    fn def(&self, id: DefId) -> &'a hir::Def {
        self.hir.def(id)
    }

    /// The type with the type arguments of the code around.
    fn ty(&self, ty: &Type) -> Type {
        substitute(ty, &self.types)
    }

    fn emit(&mut self, stmt: Stmt) {
        self.budget.spend(Resource::Statements, 1);
        self.out.push(stmt);
    }

    /// Whether the program has grown out of bounds; to be asked wherever code is copied.
    fn bounded(&mut self, span: Span) -> Lowered<()> {
        if let Some(resource) = self.budget.exhausted() {
            self.diagnostics.push(self.budget.report("too-large", resource, span));
            return Err(Failed);
        }
        if self.depth > MAX_DEPTH {
            let what = format!("calls and instances are nested more than {MAX_DEPTH} deep");
            return self.fail_help("too-large", span, what, "nest them less");
        }
        if self.blocks > MAX_BLOCKS {
            let what = format!("blocks are nested more than {MAX_BLOCKS} deep once everything is inlined");
            return self.fail_help("too-large", span, what, "nest them less");
        }
        Ok(())
    }

    /// Collects what `f` emits in a block of its own.
    fn in_block(&mut self, f: impl FnOnce(&mut Self) -> Lowered<()>) -> Lowered<Block> {
        let outer = std::mem::take(&mut self.out);
        self.blocks += 1;
        let result = f(self);
        self.blocks -= 1;
        let block = std::mem::replace(&mut self.out, outer);
        result.map(|()| block)
    }

    fn label(&mut self) -> ir::LabelId {
        self.next_label += 1;
        ir::LabelId(self.next_label)
    }

    fn leave(&mut self, label: ir::LabelId) {
        self.used_labels.insert(label);
        self.emit(Stmt::Break(label));
    }

    /// Emits `body`, as a labelled block only if something leaves it early.
    fn emit_labeled(&mut self, label: ir::LabelId, mut body: Block) {
        // Leaving at the very end is what happens anyway.
        if body.last() == Some(&Stmt::Break(label)) {
            body.pop();
        }
        if self.used_labels.contains(&label) && breaks(&body, label) {
            self.emit(Stmt::Labeled { label, body });
        } else {
            self.out.extend(body);
        }
    }

    /// The value of an expression that the constructor arguments around make constant.
    fn constant(&self, e: &hir::Expr) -> Option<hir::Expr> {
        use hir::ExprKind as K;
        let make = |kind| Some(hir::Expr { ty: e.ty.clone(), kind, span: e.span });
        match &e.kind {
            K::Ref(id) => match self.env.get(id) {
                Some(Binding::Value(value)) => self.constant(value),
                Some(_) => None,
                None => match &self.def(*id).kind {
                    DefKind::Const { value, .. } => self.constant(value),
                    _ => None,
                },
            },
            K::Unary(op, a) => make(consts::unary(*op, &self.constant(a)?, &e.ty)?),
            K::Binary(op, a, b) => {
                let (a, b) = (self.constant(a)?, self.constant(b)?);
                self.budget.work(consts::cost(*op, &a, &b));
                make(consts::binary(self.hir, *op, &a, &b, &e.ty)?.ok()?)
            }
            K::Ternary(c, a, b) => match self.constant(c)?.kind {
                K::Bool(true) => self.constant(a),
                K::Bool(false) => self.constant(b),
                _ => None,
            },
            K::Cast(a) if self.cast_fits(a, e) => {
                let a = self.constant(a)?;
                let value = match a.kind {
                    K::Int(value) => value,
                    K::Bool(value) => BigInt::from(u8::from(value)),
                    K::EnumMember(id, index) => match &self.def(id).kind {
                        DefKind::Enum(def) => def.members.get(index)?.1.clone()?,
                        _ => return None,
                    },
                    _ => return None,
                };
                make(match &self.ty(&e.ty) {
                    Type::Bool => K::Bool(value != BigInt::from(0)),
                    ty => K::Int(consts::wrap(value, ty)),
                })
            }
            K::Slice { base, hi, lo } => match self.constant(base)?.kind {
                K::Int(value) => make(K::Int(consts::slice(&value, *hi, *lo))),
                _ => None,
            },
            K::Field(base, index) => match self.constant(base)?.kind {
                K::Struct(items, _) | K::List(items) => match items.get(*index)? {
                    Some(item) => self.constant(item),
                    None => make(consts::default_of(self.hir, &self.ty(&e.ty))?),
                },
                _ => None,
            },
            _ if consts::is_const(e) => {
                let weight = consts::weight(e);
                self.budget.work(weight / 16);
                self.budget.bytes(weight / 8);
                Some(e.clone())
            }
            _ => None,
        }
    }

    /// An integer known once constructor arguments are.
    fn const_int(&mut self, e: &hir::Expr) -> Lowered<BigInt> {
        match self.constant(e).map(|e| e.kind) {
            Some(hir::ExprKind::Int(value)) => Ok(value),
            _ => self.fail("not-constant", e.span, "this must be known at compile time"),
        }
    }

    fn const_size(&mut self, e: &hir::Expr) -> Lowered<u64> {
        let value = self.const_int(e)?;
        match u64::try_from(&value) {
            Ok(size) if size <= 1 << 28 => Ok(size),
            _ => {
                let shown = consts::brief(&value);
                self.fail("bad-size", e.span, format!("the size {shown} is out of range (0 to {})", 1 << 28))
            }
        }
    }

    /// Name and annotations of an object for the control plane.
    fn info(&self, def: &hir::Def) -> ir::Info {
        let given = crate::check::name_annotation(&def.annotations);
        let name = self.qualified(given.as_ref().unwrap_or(&def.name));
        ir::Info { name, ..self.described(&def.annotations, def.span) }
    }

    /// All but the name.
    fn described(&self, annotations: &[Annotation], span: Span) -> ir::Info {
        ir::Info {
            name: String::new(),
            id: id_annotation(annotations),
            hidden: annotations.iter().any(|a| &*a.name.name == "hidden"),
            annotations: self.written(annotations),
            span,
        }
    }

    /// Annotations, but for those that [`ir::Info`] has fields for.
    fn written(&self, annotations: &[Annotation]) -> Vec<ir::Annotation> {
        let mut out = Vec::new();
        for annotation in annotations {
            let name = &*annotation.name.name;
            let made = match &annotation.body {
                AnnotationBody::None | AnnotationBody::Free { .. }
                    if matches!(name, "name" | "id" | "hidden" | "__abstract") =>
                {
                    continue;
                }
                AnnotationBody::None => ir::Annotation::Free(format!("@{name}")),
                AnnotationBody::Free { text, .. } => ir::Annotation::Free(format!("@{name}({text})")),
                AnnotationBody::List(items) => ir::Annotation::Structured {
                    name: name.to_owned(),
                    body: ir::StructuredBody::List(items.iter().filter_map(annotation_value).collect()),
                },
                AnnotationBody::KeyValue(pairs) => {
                    let pairs = pairs.iter();
                    let pairs =
                        pairs.filter_map(|(key, e)| Some((key.name.to_string(), annotation_value(e)?)));
                    ir::Annotation::Structured {
                        name: name.to_owned(),
                        body: ir::StructuredBody::Pairs(pairs.collect()),
                    }
                }
            };
            self.budget.bytes(made.weight());
            out.push(made);
        }
        out
    }

    /// A name below the instances around; one that starts with a dot is complete.
    fn qualified(&self, name: &str) -> String {
        match name.strip_prefix('.') {
            Some(complete) => complete.to_owned(),
            None => {
                let mut out = self.path.join(".");
                if !out.is_empty() {
                    out.push('.');
                }
                out.push_str(name);
                self.budget.bytes(out.len());
                out
            }
        }
    }
}

/// Whether any statement leaves `label`.
fn breaks(block: &[Stmt], label: ir::LabelId) -> bool {
    block.iter().any(|s| match s {
        Stmt::Break(l) => *l == label,
        Stmt::If { then, otherwise, .. } => breaks(then, label) || breaks(otherwise, label),
        Stmt::Switch { cases, default, .. } => {
            cases.iter().any(|(_, b)| breaks(b, label)) || breaks(default, label)
        }
        Stmt::Labeled { body, .. } | Stmt::Loop { body, .. } => breaks(body, label),
        _ => false,
    })
}

/// The number in `@id(n)`.
fn id_annotation(annotations: &[Annotation]) -> Option<u32> {
    annotations.iter().find(|a| &*a.name.name == "id").and_then(|a| match &a.body {
        AnnotationBody::Free { exprs: Some(exprs), .. } => match exprs.first().map(|e| &e.kind) {
            Some(crate::ast::ExprKind::Int { value, .. }) => u32::try_from(value).ok(),
            _ => None,
        },
        _ => None,
    })
}

/// A value in a structured annotation, which the checker has put in place of the expression.
fn annotation_value(e: &crate::ast::Expr) -> Option<ir::AnnotationValue> {
    match &e.kind {
        crate::ast::ExprKind::Int { value, .. } => value.to_i64().map(ir::AnnotationValue::Int),
        crate::ast::ExprKind::Str(text) => Some(ir::AnnotationValue::String(text.clone())),
        crate::ast::ExprKind::Bool(value) => Some(ir::AnnotationValue::Bool(*value)),
        _ => None,
    }
}

fn has_annotation(annotations: &[Annotation], name: &str) -> bool {
    annotations.iter().any(|a| &*a.name.name == name)
}
