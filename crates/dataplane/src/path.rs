//! The architectures, and pipelines of programs of each.
//!
//! What the data plane asks of one is [`PacketPath`]. The trait is held against a second architecture (`ebpf`) and, on paper, a third
//! (docs/architectures.md).

use std::sync::Arc;

use p4lang::ir::{Package, Program};

use crate::cost::WORK_BUDGET;
use crate::executor::{Executor, View};
use crate::interp::Interpreter;
use crate::jit::function::NativePath;
use crate::jit::{Jit, JitError};
use crate::layout::Layout;
use crate::refused::{Refused, check_depth};
use crate::runtime::{PacketPath, Pipeline};
use crate::{ebpf, v1model};

/// The paths of all architectures. A new one is registered here and in the compiler.
const PATHS: &[&dyn PacketPath] = &[&v1model::Path, &ebpf::Path];

/// The path of a program's packets, and its view of the program. `None` if the program is of no architecture.
fn of(package: &Package) -> Option<(&'static dyn PacketPath, View)> {
    let path = PATHS.iter().find(|path| path.name() == package.architecture)?;
    Some((*path, path.view(package)?))
}

/// What makes native code of the path of a program's packets, if there is such a thing.
pub(crate) fn native(program: &Program) -> Option<(NativePath, View)> {
    let (path, view) = of(&program.package)?;
    Some((path.native()?, view))
}

/// How much longer the interpreter takes for the same work, about.
const INTERPRETER_SLOWER: u64 = 32;

/// Stack for generating code: it recurses over expressions, which may be deep.
const STACK: usize = 1 << 28;

fn layout(program: &Program) -> Result<Arc<Layout>, Refused> {
    check_depth(program)?;
    Layout::new(program).map(Arc::new)
}

fn on_large_stack<T: Send>(work: impl Fn() -> T + Sync) -> T {
    std::thread::scope(|scope| {
        match std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, &work) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // Without room for a thread of its own, what there is must do.
            Err(_) => work(),
        }
    })
}

impl Pipeline {
    /// A switch that runs the program with the interpreter. `seed` is for `random`.
    ///
    /// # Errors
    /// A program that nothing is to run.
    pub fn interpreted(program: Arc<Program>, seed: u64) -> Result<Pipeline, Refused> {
        let layout = layout(&program)?;
        let executor = Arc::new(Interpreter::new(program.clone(), layout.clone()));
        Ok(Pipeline::with_executor(program, layout, executor, seed))
    }

    /// A switch that runs the program as native code.
    ///
    /// # Errors
    /// A program that has no native code, or that nothing is to run.
    pub fn compiled(program: Arc<Program>, seed: u64) -> Result<Pipeline, JitError> {
        let layout = layout(&program)?;
        let jit = on_large_stack(|| Jit::with_path(program.clone(), layout.clone(), native(&program)))?;
        Ok(Pipeline::with_executor(program, layout, Arc::new(jit), seed))
    }

    /// A switch that runs the program as native code, or interpreted where there can be none: then the work for one packet is
    /// limited to as much less as the interpreter is slower. What stands in the way of native code comes with it.
    ///
    /// # Errors
    /// A program that nothing is to run.
    pub fn new(program: Arc<Program>, seed: u64) -> Result<(Pipeline, Option<JitError>), Refused> {
        match Pipeline::compiled(program.clone(), seed) {
            Ok(pipeline) => Ok((pipeline, None)),
            Err(JitError::Refused(why)) => Err(why),
            Err(why) => {
                let mut pipeline = Pipeline::interpreted(program, seed)?;
                pipeline.set_work_budget(WORK_BUDGET / INTERPRETER_SLOWER);
                Ok((pipeline, Some(why)))
            }
        }
    }

    pub fn with_executor(
        program: Arc<Program>,
        layout: Arc<Layout>,
        executor: Arc<dyn Executor>,
        seed: u64,
    ) -> Pipeline {
        // A test here shows it.
        let of = of(&program.package).expect("each architecture of the compiler has a path");
        Pipeline::of_path(of, program, layout, executor, seed)
    }
}

#[cfg(test)]
mod tests {
    use super::PATHS;

    #[test]
    fn each_architecture_of_the_compiler_has_a_path() {
        let paths: Vec<&str> = PATHS.iter().map(|path| path.name()).collect();
        assert_eq!(paths, p4lang::lower::architectures().collect::<Vec<_>>());
    }
}
