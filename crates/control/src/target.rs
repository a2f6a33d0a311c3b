//! Who does operations.

use std::sync::Arc;

use p4lang::ir::Program;
use units::Time;

use crate::ops::FixedOp;
use crate::{Answer, Error, Op, Result};

/// Runs a program, and does what is asked of its objects. Each operation is done whole, or refused with nothing changed.
pub trait Target {
    fn program(&self) -> &Arc<Program>;

    /// # Errors
    /// The operation is refused.
    fn act(&mut self, now: Time, op: &Op) -> Result<Answer>;
}

/// Has ports with queues, packet generators and a port for the controller around a program.
pub trait FixedParts {
    /// # Errors
    /// The operation is refused.
    fn act_fixed(&mut self, now: Time, op: &FixedOp) -> Result<Answer>;
}

impl FixedOp {
    /// What a program without ports and queues around it says.
    pub fn no_fixed_parts(&self) -> Error {
        let error = Error::invalid(format!("`{}` is for a switch with ports", self.name()));
        error.cure("a pipeline alone has none: use a switch of a network")
    }
}
