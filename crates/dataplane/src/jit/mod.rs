//! The JIT: a program's parser, controls and deparser as native code, by way of Cranelift.
//!
//! Same observable behaviour as the interpreter for every program, packet and table state; a differential test holds it to
//! that. One function per block of the architecture; actions are compiled into the tables that call them.
//!
//! Nearly all `unsafe` of the crate lives here: calling generated code, and the helpers that generated code calls with raw addresses
//! (`make miri` runs these). The rest is a pool of buffers, prefetching, and the choice of a processor's own instructions.

mod compile;
mod data;
mod deparser;
mod exec;
mod expr;
mod externs;
pub(crate) mod flat;
pub(crate) mod function;
mod given;
pub(crate) mod helpers;
mod in_place;
mod known;
mod lookup;
pub(crate) mod native;
pub(crate) mod packet;
mod parser;
mod place;
mod services;
mod stmt;
mod table;
#[cfg(test)]
mod tests;
mod wide;
mod written;

pub use exec::Jit;

use crate::refused::Refused;

/// Why a program has no native code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JitError {
    /// Cranelift does not know this processor.
    #[error("no native code for this processor: {0}; use the interpreter")]
    Host(String),
    /// Cranelift refused the code.
    #[error("no native code for this program: {0}; use the interpreter")]
    Codegen(String),
    /// More code than one function may have. The interpreter runs such a program.
    #[error("the program is too large for native code; use the interpreter")]
    TooLarge,
    /// Nothing is to run the program.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The program breaks a rule of the IR.
    #[error("the lowered program is not well formed: {0}")]
    Malformed(&'static str),
}
