//! The JIT: a program's parser, controls and deparser as native code, by way of Cranelift.
//!
//! Same observable behaviour as the interpreter for every program, packet and table state; a differential test holds it to
//! that. One function per block of the architecture; actions are compiled into the tables that call them.
//!
//! Nearly all `unsafe` of the crate lives in the modules here that are marked: calling generated code, and what generated code calls
//! with raw addresses (`make miri` runs these). The rest is a pool of buffers, prefetching, and the choice of a processor's own
//! instructions. Elsewhere the compiler refuses it.

#[expect(unsafe_code, reason = "the code's memory, and its addresses as functions")]
mod compile;
mod data;
mod deparser;
#[expect(unsafe_code, reason = "calls of the code")]
mod exec;
mod expr;
mod externs;
#[expect(unsafe_code, reason = "calls of the code")]
pub(crate) mod flat;
pub(crate) mod function;
mod given;
#[expect(unsafe_code, reason = "called with raw addresses")]
pub(crate) mod helpers;
mod in_place;
mod known;
mod lookup;
#[expect(unsafe_code, reason = "what code sees of the rest")]
pub(crate) mod native;
#[expect(unsafe_code, reason = "called with raw addresses")]
pub(crate) mod packet;
mod parser;
mod place;
#[expect(unsafe_code, reason = "called with raw addresses")]
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
