//! Who does operations.

use std::sync::Arc;

use p4lang::ir::Program;
use units::Time;

use crate::ops::FixedOp;
use crate::{Answer, Error, Kind, Op, Result};

/// Runs a program, and does what is asked of its objects. Each operation is done whole, or refused with nothing changed.
pub trait Target {
    fn program(&self) -> &Arc<Program>;

    /// # Errors
    /// The operation is refused.
    fn act(&mut self, now: Time, op: &Op) -> Result<Answer>;

    /// Does all of these operations, or none; they are on the program's objects, and can be undone.
    ///
    /// # Errors
    /// Which operation is refused; nothing has changed.
    fn act_all(&mut self, now: Time, ops: &[Op]) -> std::result::Result<Vec<Answer>, (usize, Error)>;
}

/// Cells, members of groups, copies and actions of sets that operations which need not be done whole change while packets wait, unless
/// one alone changes more; an operation counts as a 64th of it at least.
pub const MOST_AT_A_TIME: usize = 4096;
/// Most operations of a batch that is done whole: packets wait for it.
pub const MOST_IN_ALL: usize = 4096;
/// Cells that such a batch may change in all: packets wait while they are copied and changed. One of more than 8 words counts as several.
pub const MOST_CELLS_IN_ALL: usize = 16_384;
/// Members of a group, or actions of an entry's set: packets wait while they are changed.
pub const MOST_SHARES: usize = 4096;
/// Fields that the members of a value set have together, whatever its size: a packet is compared with each.
pub const MOST_COMPARED: usize = 2048;

/// Has ports with queues, packet generators and a port for the controller around a program.
pub trait FixedParts {
    /// # Errors
    /// The operation is refused.
    fn act_fixed(&mut self, now: Time, op: &FixedOp) -> Result<Answer>;
}

impl FixedOp {
    /// What a program without ports and queues around it says.
    pub fn no_fixed_parts(&self) -> Error {
        let error = Error::new(Kind::Unsupported, format!("`{}` is for a switch with ports", self.name()));
        error.cure("a pipeline alone has none: use a switch of a network")
    }
}
