//! P4_16 source to a checked and lowered [`ir::Program`]. No packets, no time, no I/O beyond reading includes.

pub mod ast;
pub mod diag;
pub mod hir;
pub mod ir;
pub mod source;
