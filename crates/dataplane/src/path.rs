//! What the data plane asks of an architecture: the path of packets through the blocks of a program.
//!
//! A path decides in which order blocks run, what intrinsic metadata says before and after each, and what becomes of the packet.
//! Time reaches it in picoseconds; the unit of timestamps that programs see (microseconds in v1model) is its own. The trait is
//! held against a second architecture (`ebpf`) and, on paper, a third (docs/architectures.md).

use std::any::Any;
use std::sync::Arc;

use p4lang::ir::{Package, Program};
use wire::packet::Written;

use crate::jit::JitError;
use crate::jit::function::Gen;
use crate::pipeline::{Output, Pipeline, QueueInfo, Received, Work};
use crate::trace::Trace;
use crate::{ebpf, v1model};

/// The paths of all architectures. A new one is registered here and in the compiler.
const PATHS: &[&dyn PacketPath] = &[&v1model::Path, &ebpf::Path];

/// Where a program's blocks and intrinsic metadata are, in a form that only its architecture's path knows.
pub(crate) type View = Arc<dyn Any + Send + Sync>;

/// The path of a program's packets, and its view of the program. `None` if the program is of no architecture.
pub(crate) fn of(package: &Package) -> Option<(&'static dyn PacketPath, View)> {
    let path = PATHS.iter().find(|path| path.name() == package.architecture)?;
    Some((*path, path.view(package)?))
}

/// The path of packets in one architecture. It keeps nothing between packets: what lives longer is in the pipeline.
pub(crate) trait PacketPath: Sync {
    /// The architecture's name in [`Package::architecture`].
    fn name(&self) -> &'static str;

    /// `None` if the package lacks a block or field that the path needs.
    fn view(&self, package: &Package) -> Option<View>;

    /// Bytes of a packet, from its start, that the program can look at; `usize::MAX`: all that there are.
    fn reach(&self, program: &Program, view: &View) -> usize {
        let _ = (program, view);
        usize::MAX
    }

    /// See [`Pipeline::process`].
    fn process(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        port: u32,
        bytes: &[u8],
        outputs: &mut Vec<Output>,
        trace: Option<&mut Trace>,
    );

    /// See [`Pipeline::receive`]; the packet has come by the port.
    fn receive(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        packet: (u32, Box<Written>),
        pending: &mut Vec<Box<Work>>,
        at_once: &mut dyn FnMut(u32, u32) -> bool,
    ) -> Received;

    /// See [`Pipeline::depart`].
    fn depart(
        &self,
        pipeline: &mut Pipeline,
        now: u64,
        work: Box<Work>,
        queue: QueueInfo,
        pending: &mut Vec<Box<Work>>,
    ) -> Option<Box<Written>>;

    /// What makes native code of the path of ordinary packets. Without it packets take the blocks one by one.
    fn native(&self) -> Option<NativePath> {
        None
    }
}

/// Fills the body of a function in.
pub(crate) type NativePath = fn(&mut Gen<'_, '_>, &View, Part) -> Result<(), JitError>;

/// A function that [`crate::executor::Executor`] calls for a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All blocks in turn.
    Through,
    /// Those before a queue, and those after.
    Receive,
    Depart,
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
