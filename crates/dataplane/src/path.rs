//! The architectures, and pipelines of programs of each.
//!
//! What the data plane asks of one is [`PacketPath`]. The trait is held against a second architecture (`ebpf`) and, on paper, a third
//! (docs/architectures.md).

use std::sync::Arc;

use p4lang::ir::{Package, Program};

use crate::executor::{Executor, View};
use crate::interp::Interpreter;
use crate::jit::function::NativePath;
use crate::jit::{Jit, JitError};
use crate::layout::Layout;
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
fn native(program: &Program) -> Option<(NativePath, View)> {
    let (path, view) = of(&program.package)?;
    Some((path.native()?, view))
}

impl Pipeline {
    /// A switch that runs the program with the interpreter. `seed` is for `random`.
    pub fn interpreted(program: Arc<Program>, seed: u64) -> Pipeline {
        let layout = Arc::new(Layout::new(&program));
        let executor = Arc::new(Interpreter::new(program.clone(), layout.clone()));
        Pipeline::with_executor(program, layout, executor, seed)
    }

    /// A switch that runs the program as native code.
    pub fn compiled(program: Arc<Program>, seed: u64) -> Result<Pipeline, JitError> {
        let layout = Arc::new(Layout::new(&program));
        let executor = Arc::new(Jit::with_path(program.clone(), layout.clone(), native(&program))?);
        Ok(Pipeline::with_executor(program, layout, executor, seed))
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
