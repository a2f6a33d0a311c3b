//! The ebpf_model architecture of the reference compiler: a parser and a control that accepts or drops the packet.
//!
//! Differences from the reference's target: counters are 64 bits wide, and a table may also match by longest prefix with
//! `hash_table`. A sparse counter array counts indices below its size only, and a warning says so.

use super::architecture::{Architecture, KeyUse, Param, Role, Shared};
use super::expr::Value;
use super::instance::{InstanceId, Object};
use super::{Lowered, Lowerer, build};
use crate::diag::Diagnostic;
use crate::hir::{Call, Construct, DefKind, Expr, ExprKind as K, TableDef, TableProperty, Type};
use crate::ir::{self, ControlId, CounterUnit, ExternCall, MatchKind, Package, ParserId, Place, Stmt, VarId};
use crate::ir::{StateRef, Transition};

/// As P4Info names it.
pub const NAME: &str = "ebpf_model";

/// The blocks of a program for ebpf_model.
#[derive(Debug, Clone, Copy)]
pub struct Filter {
    pub parser: ParserId,
    pub filter: ControlId,
    /// 1 if the parser accepted the packet. The compiler sets it: programs cannot see it.
    pub parsed: VarId,
    /// 1 if the filter did.
    pub accept: VarId,
}

impl Filter {
    /// Of a program's package; `None` if it is another architecture's.
    pub fn of(package: &Package) -> Option<Filter> {
        if package.architecture != NAME {
            return None;
        }
        Some(Filter {
            parser: package.parser(PARSER)?,
            filter: package.control(FILTER)?,
            parsed: package.field(PARSED)?,
            accept: package.field(ACCEPT)?,
        })
    }
}

const PARSER: &str = "parser";
const FILTER: &str = "filter";
const PARSED: &str = "parsed";
const ACCEPT: &str = "accept";

const ROLES: &[Role] = &[
    Role { name: PARSER, params: &[Param::Packet, Param::Shared(0)] },
    Role { name: FILTER, params: &[Param::Shared(0), Param::Shared(1)] },
];

const SHARED: &[Shared] = &[
    Shared { name: "headers", named_by: 1, intrinsic: false },
    Shared { name: ACCEPT, named_by: 1, intrinsic: true },
];

/// What the compiler asks of ebpf_model.
pub(super) struct Lowering;

impl Architecture for Lowering {
    fn name(&self) -> &'static str {
        NAME
    }

    fn declarations(&self) -> (&'static str, &'static str) {
        ("ebpf_model.p4", include_str!("ebpf_model.p4"))
    }

    fn package(&self) -> &'static str {
        "ebpfFilter"
    }

    fn roles(&self) -> &'static [Role] {
        ROLES
    }

    fn shared(&self) -> &'static [Shared] {
        SHARED
    }

    fn match_kinds(&self) -> &'static [(&'static str, KeyUse)] {
        &[("exact", KeyUse::Match(MatchKind::Exact)), ("lpm", KeyUse::Match(MatchKind::Lpm))]
    }

    fn function(&self, _: &mut Lowerer<'_>, _: &str, _: &Call) -> Lowered<Option<Value>> {
        Ok(None)
    }

    fn object(
        &self,
        l: &mut Lowerer<'_>,
        name: &str,
        (construct, _): (&Construct, &Type),
        info: ir::Info,
    ) -> Lowered<Option<Object>> {
        match name {
            "CounterArray" => {
                let size = argument(l, construct, 0, &info)?;
                let size = l.const_size(&size)?;
                let sparse = argument(l, construct, 1, &info)?;
                if matches!(l.constant(&sparse).map(|e| e.kind), Some(K::Bool(true))) {
                    let what = format!("`{}` counts indices below {size} only", info.name);
                    let help = "indices beyond that need an array as large as the largest of them";
                    l.diagnostics.push(Diagnostic::warning("sparse-counter", info.span, what).help(help));
                }
                let counter = ir::Counter { info, size, unit: CounterUnit::Packets, index_type_name: None };
                l.program.counters.push(counter);
                Ok(Some(Object::Counter(ir::CounterId(l.program.counters.len() as u32 - 1))))
            }
            // What they say is read from the table that names them.
            "array_table" | "hash_table" => Ok(Some(Object::Stateless)),
            _ => Ok(None),
        }
    }

    fn method(
        &self,
        l: &mut Lowerer<'_>,
        object: InstanceId,
        name: &str,
        call: &Call,
    ) -> Lowered<Option<Value>> {
        let (Object::Counter(counter), "increment") = (l.instances[object.0].object.clone(), name) else {
            return Ok(None);
        };
        let index = l.arg_scalar(call, 0)?;
        l.emit(Stmt::Extern(ExternCall::CounterCount { counter, index }));
        Ok(Some(Value::Unit))
    }

    fn property(
        &self,
        l: &mut Lowerer<'_>,
        property: &TableProperty,
        table: &mut ir::Table,
    ) -> Lowered<bool> {
        if &*property.name != "implementation" {
            return Ok(false);
        }
        let Some(construct) = constructor(l, &property.value) else {
            return l.fail("bad-table", property.span, NO_IMPLEMENTATION);
        };
        let size = argument(l, &construct, 0, &table.info)?;
        let size = l.const_size(&size)?;
        table.size = size.max(table.entries.len() as u64);
        Ok(true)
    }

    fn table(&self, l: &mut Lowerer<'_>, declared: &TableDef, table: &mut ir::Table) -> Lowered<()> {
        if declared.properties.iter().any(|property| &*property.name == "implementation") {
            return Ok(());
        }
        let message = format!("table `{}` has no `implementation`", table.info.name);
        l.fail_help("bad-table", table.info.span, message, "add `implementation = hash_table(64);`")
    }

    /// The parser notes that it has accepted the packet, so that one that rejects it drops it, whatever the reason.
    fn package_end(&self, l: &mut Lowerer<'_>) {
        let parsed = l.var(PARSED, 1, false, ir::VarHome::Global);
        l.program.package.intrinsic.push((PARSED.to_owned(), parsed));
        for parser in &mut l.program.parsers {
            let noted = StateRef::State(parser.states.len() as u32);
            let note = |next: &mut StateRef| {
                if *next == StateRef::Accept {
                    *next = noted;
                }
            };
            for state in &mut parser.states {
                match &mut state.next {
                    Transition::Direct(next) => note(next),
                    Transition::Select { cases, .. } => {
                        cases.iter_mut().for_each(|case| note(&mut case.next))
                    }
                }
            }
            let set = Stmt::Assign { dst: Place::Var(parsed), src: build::bit(true) };
            let next = Transition::Direct(StateRef::Accept);
            parser.states.push(ir::State { name: String::new(), body: vec![set], next });
        }
    }
}

const NO_IMPLEMENTATION: &str = "`implementation` must be an array_table or a hash_table";

fn argument(l: &mut Lowerer<'_>, construct: &Construct, index: usize, info: &ir::Info) -> Lowered<Expr> {
    match construct.args.get(index) {
        Some(Some(arg)) => Ok(arg.clone()),
        _ => l.fail("bad-call", info.span, "an argument is missing"),
    }
}

/// The constructor call of a table's implementation, made in place or declared with a name.
fn constructor(l: &Lowerer<'_>, value: &Expr) -> Option<Construct> {
    let construct = match &value.kind {
        K::Construct(construct) => construct,
        K::Ref(id) => match &l.def(*id).kind {
            DefKind::Instance(instance) => &instance.value,
            _ => return None,
        },
        _ => return None,
    };
    matches!(&*l.def(construct.def).name, "array_table" | "hash_table").then(|| construct.clone())
}
