//! The JIT: a program's parser, controls and deparser as native code, by way of Cranelift.
//!
//! Same observable behaviour as the interpreter for every program, packet and table state; a differential test holds it to
//! that. One function per block of the architecture; actions are compiled into the tables that call them.
//!
//! `unsafe` lives here only: calling generated code, and the helpers that generated code calls with raw addresses.

mod compile;
mod data;
mod deparser;
mod exec;
mod expr;
mod externs;
pub(crate) mod function;
pub(crate) mod helpers;
pub(crate) mod native;
pub(crate) mod packet;
mod parser;
mod parser_shape;
mod place;
mod services;
mod stmt;
mod table;
#[cfg(test)]
mod tests;
mod wide;
mod written;

use std::fmt;

pub use exec::Jit;

/// Why a program has no native code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JitError {
    /// Cranelift does not know this processor.
    Host(String),
    /// Cranelift refused the code.
    Codegen(String),
    /// More code than one function may have. The interpreter runs such a program.
    TooLarge,
    /// The program breaks a rule of the IR.
    Malformed(&'static str),
}

impl fmt::Display for JitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JitError::Host(why) => write!(f, "no native code for this processor: {why}; use the interpreter"),
            JitError::Codegen(why) => {
                write!(f, "no native code for this program: {why}; use the interpreter")
            }
            JitError::TooLarge => {
                f.write_str("the program is too large for native code; use the interpreter")
            }
            JitError::Malformed(why) => write!(f, "the lowered program is not well formed: {why}"),
        }
    }
}

impl std::error::Error for JitError {}
