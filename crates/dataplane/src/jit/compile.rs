//! From a program to functions in memory.

use std::cell::Cell;
use std::collections::HashSet;
use std::mem::offset_of;
use std::sync::Arc;

use cranelift_codegen::Context as CodegenContext;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, InstBuilder, UserFuncName};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, default_libcall_names};
use p4lang::ir::{ControlId, MeterUnit, ParserId, Program, StackId, Table, TableAction, VarId};

use super::JitError;
use super::function::{Gen, NativePath};
use super::native::Native;
use super::parser::error_code;
use super::written::written;
use crate::executor::{Part, View};
use crate::layout::Layout;
use crate::reads::reads;
use crate::refused::{MAX_STACK, Refused};
use crate::state::places::{Place, places};
use crate::state::words::words;

/// A compiled block.
pub(super) type BlockFn = unsafe extern "C" fn(*mut Native);

/// The code of one program. The code refers to the program and the layout, which is why it holds them.
pub struct Compiled {
    pub program: Arc<Program>,
    pub layout: Arc<Layout>,
    pub(crate) errors: Errors,
    /// Of the states that it works on.
    pub(super) shape: u64,
    /// By table.
    pub(crate) tables: Vec<TableShape>,
    /// Action data for actions that were given none.
    pub zeros: Vec<u64>,
    pub(super) parsers: Vec<BlockFn>,
    pub(super) controls: Vec<BlockFn>,
    /// The path of an ordinary packet: the whole of it, and up to and from a queue.
    pub paths: Option<Paths>,
    module: Option<JITModule>,
}

#[derive(Clone, Copy)]
pub struct Paths {
    pub(super) through: BlockFn,
    pub(super) receive: BlockFn,
    pub(super) depart: BlockFn,
}

/// What helpers know of a table.
pub(crate) struct TableShape {
    /// Words of action data of each action.
    pub action_words: Vec<usize>,
    pub meter: Option<MeterUnit>,
}

impl TableShape {
    /// Whether hits are recorded.
    pub fn tracked(table: &Table) -> bool {
        table.direct_counter.is_some() || table.direct_meter.is_some() || table.support_timeout
    }

    fn of(program: &Program, table: &Table) -> TableShape {
        let data = |action: &TableAction| {
            let params = &program[action.action].params;
            params.iter().map(|param| words(program[param.var].width)).sum()
        };
        TableShape {
            action_words: table.actions.iter().map(data).collect(),
            meter: table.direct_meter.as_ref().map(|meter| meter.unit),
        }
    }

    /// Of all tables, and as many words as any action has data.
    fn all(program: &Program) -> (Vec<TableShape>, Vec<u64>) {
        let all: Vec<TableShape> =
            program.tables.iter().map(|table| TableShape::of(program, table)).collect();
        let most = all.iter().flat_map(|table| &table.action_words).max().copied();
        (all, vec![0; most.unwrap_or(0)])
    }
}

/// Codes of the errors that helpers raise.
pub(crate) struct Errors {
    pub too_short: u64,
    pub header_too_short: u64,
    pub invalid_argument: u64,
}

impl Errors {
    fn of(program: &Program) -> Result<Errors, JitError> {
        Ok(Errors {
            too_short: error_code(program, "PacketTooShort")?,
            header_too_short: error_code(program, "HeaderTooShort")?,
            invalid_argument: error_code(program, "ParserInvalidArgument")?,
        })
    }
}

// SAFETY: the module's memory is not written after compilation, and nothing in it belongs to a thread.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

impl Drop for Compiled {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the functions are only called through a borrow of `self`, so none runs now or later.
            unsafe { module.free_memory() };
        }
    }
}

/// What all functions need to know of the program.
struct Shape {
    /// The stack that a header is in.
    stacks: Vec<Option<StackId>>,
    written: HashSet<VarId>,
    read: HashSet<VarId>,
    zeros: Vec<u64>,
    places: Vec<Place>,
    /// Whether the half of a path in front of the queue writes to headers; it does, as long as it is not compiled.
    writes: Cell<bool>,
}

/// Whose instructions code may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    This,
    /// Those of the architecture's first processors alone.
    #[cfg_attr(not(test), expect(dead_code, reason = "the code of any processor is for tests"))]
    Any,
}

/// What a function is made from.
enum Source<'a> {
    Parser(ParserId),
    Control(ControlId),
    /// A part of the path of ordinary packets.
    Path(NativePath, &'a View, Part),
}

impl Compiled {
    pub fn new(
        program: Arc<Program>,
        layout: Arc<Layout>,
        path: Option<(NativePath, View)>,
        processor: Processor,
    ) -> Result<Compiled, JitError> {
        let errors = Errors::of(&program)?;
        let (tables, zeros) = TableShape::all(&program);
        let mut module = module(processor)?;
        let shape = Shape {
            stacks: stack_of_header(&program),
            written: written(&program),
            read: reads(&program),
            zeros,
            places: places(&program),
            writes: Cell::new(true),
        };
        let mut builder = FunctionBuilderContext::new();
        let mut context = module.make_context();
        let mut define = |name: &str, source: Source<'_>| -> Result<FuncId, JitError> {
            let mut signature = module.make_signature();
            signature.params.push(AbiParam::new(I64));
            let id =
                module.declare_function(name, Linkage::Local, &signature).map_err(|error| no_code(&error))?;
            context.func.signature = signature;
            context.func.name = UserFuncName::user(0, id.as_u32());
            let result = build((&program, &layout, &shape), &mut context, &mut builder, &module, &source);
            let result = result.and_then(|()| {
                module.define_function(id, &mut context).map_err(|error| no_code(&error))?;
                // Slots, and what the register allocator has spilled.
                let layout = context.compiled_code().and_then(|code| code.buffer.frame_layout());
                let frame = layout.map_or(0, |layout| u64::from(layout.frame_to_fp_offset));
                if frame > MAX_STACK { Err(Refused::Stack(frame).into()) } else { Ok(()) }
            });
            module.clear_context(&mut context);
            result.map(|()| id)
        };
        let blocks = || {
            let parsers = (0..program.parsers.len() as u32)
                .map(|id| define(&format!("parser{id}"), Source::Parser(ParserId(id))))
                .collect::<Result<Vec<_>, JitError>>()?;
            let controls = (0..program.controls.len() as u32)
                .map(|id| define(&format!("control{id}"), Source::Control(ControlId(id))))
                .collect::<Result<Vec<_>, JitError>>()?;
            // Without them packets take the blocks one by one.
            let paths = match path {
                None => None,
                Some((path, view)) => {
                    let mut part = |name, part| match define(name, Source::Path(path, &view, part)) {
                        Err(JitError::TooLarge) => Ok(None),
                        other => other.map(Some),
                    };
                    let through = part("through", Part::Through)?;
                    let receive = part("receive", Part::Receive)?;
                    let depart = part("depart", Part::Depart)?;
                    through.zip(receive).zip(depart)
                }
            };
            Ok((parsers, controls, paths))
        };
        let defined = blocks();
        let finished = defined.and_then(|defined| {
            module.finalize_definitions().map_err(|error| no_code(&error))?;
            Ok(defined)
        });
        let (parsers, controls, paths) = match finished {
            Ok(finished) => finished,
            Err(error) => {
                // SAFETY: no code of it was ever handed out.
                unsafe { module.free_memory() };
                return Err(error);
            }
        };
        let function = |id: FuncId| {
            let code = module.get_finalized_function(id);
            // SAFETY: the function was compiled with exactly this signature and calling convention.
            unsafe { std::mem::transmute::<*const u8, BlockFn>(code) }
        };
        let parsers = parsers.into_iter().map(function).collect();
        let controls = controls.into_iter().map(function).collect();
        let paths = paths.map(|((through, receive), depart)| Paths {
            through: function(through),
            receive: function(receive),
            depart: function(depart),
        });
        Ok(Compiled {
            shape: crate::state::shape(&program),
            program,
            layout,
            errors,
            tables,
            // Code refers to them: they stay where they are.
            zeros: shape.zeros,
            parsers,
            controls,
            paths,
            module: Some(module),
        })
    }

    /// What helpers see of a program, where there is no code to call them.
    #[cfg(test)]
    pub(super) fn without_code(program: Arc<Program>, layout: Arc<Layout>) -> Compiled {
        let (tables, zeros) = TableShape::all(&program);
        Compiled {
            shape: crate::state::shape(&program),
            errors: Errors::of(&program).expect("the program has the language's errors"),
            program,
            layout,
            tables,
            zeros,
            parsers: Vec::new(),
            controls: Vec::new(),
            paths: None,
            module: None,
        }
    }
}

pub(super) fn module(processor: Processor) -> Result<JITModule, JitError> {
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", "speed"),
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("enable_verifier", verify),
        // A function with a large frame touches each of its pages in turn, so that a stack that is too small ends at its guard page.
        ("enable_probestack", "true"),
        ("probestack_strategy", "inline"),
    ] {
        flags.set(name, value).map_err(|error| JitError::Codegen(error.to_string()))?;
    }
    let isa = cranelift_native::builder_with_options(processor == Processor::This)
        .map_err(|why| JitError::Host(why.to_owned()))?
        .finish(settings::Flags::new(flags))
        .map_err(|error| JitError::Host(error.to_string()))?;
    Ok(JITModule::new(JITBuilder::with_isa(isa, default_libcall_names())))
}

/// Why a program has no native code: short memory is nothing that it is to blame for.
fn no_code(error: &ModuleError) -> JitError {
    match error {
        ModuleError::Allocation { .. } => Refused::Memory.into(),
        _ => JitError::Codegen(error.to_string()),
    }
}

fn build(
    (program, layout, shape): (&Program, &Layout, &Shape),
    context: &mut CodegenContext,
    builder: &mut FunctionBuilderContext,
    module: &JITModule,
    source: &Source<'_>,
) -> Result<(), JitError> {
    let target = module.target_config();
    let b = FunctionBuilder::new(&mut context.func, builder);
    let sets = (shape.stacks.as_slice(), &shape.written, &shape.read);
    let mut g = Gen::new(program, layout, sets, (&shape.zeros, &shape.places), b, target.default_call_conv);
    g.frame = g.load_ctx_fixed(offset_of!(Native, frame));
    if let Source::Path(_, _, Part::Depart) = source
        && !shape.writes.get()
    {
        g.count_changes();
    }
    match source {
        Source::Parser(id) => g.parser(&program[*id])?,
        Source::Control(id) => g.stmts(&program[*id].body)?,
        Source::Path(path, view, part) => path(&mut g, view, *part)?,
    }
    g.small_enough()?;
    if let Source::Path(_, _, Part::Receive) = source {
        shape.writes.set(g.in_place.written);
    }
    if g.alive {
        let out = g.out;
        g.jump(out);
    }
    let out = g.out;
    g.start(out);
    if let Some(stage) = g.stage {
        let stage = g.b.use_var(stage);
        g.store_ctx(offset_of!(Native, stage), 4, stage);
    }
    g.b.ins().return_(&[]);
    g.b.seal_all_blocks();
    g.b.finalize(target);
    Ok(())
}

fn stack_of_header(program: &Program) -> Vec<Option<StackId>> {
    let mut of = vec![None; program.headers.len()];
    for (index, stack) in program.stacks.iter().enumerate() {
        let first = stack.first_header.index();
        let count = (stack.len * stack.header_stride) as usize;
        of[first..first + count].fill(Some(StackId(index as u32)));
    }
    of
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// A process with a limit of memory would find that a program can be run which takes more where there is none.
    #[test]
    fn short_memory_does_not_mean_the_interpreter() {
        let short = ModuleError::Allocation { err: io::ErrorKind::OutOfMemory.into() };
        assert!(matches!(no_code(&short), JitError::Refused(Refused::Memory)));
        let other = ModuleError::Undeclared("f".to_owned());
        assert!(matches!(no_code(&other), JitError::Codegen(_)));
    }
}
