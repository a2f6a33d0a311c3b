//! Runs a lowered [`p4lang::ir::Program`] on packets.
//!
//! No clock, socket, thread or random source of its own: time and a seed are arguments. Per-packet state lives in a
//! [`layout::Layout`]-shaped frame that both executors share, persistent state (tables, registers, counters, meters) in
//! [`state`]; the interpreter in [`interp`] is the definition of what a program means, [`jit`] the speed; [`runtime`] is one
//! switch's instance of a program, `path` the architectures, [`v1model`] the path of its packets through that architecture's blocks; the effects of [`control::Op`] stand in `target`.

// Tests of this crate share files with those beside it, which call it by its name.
#[cfg(test)]
extern crate self as dataplane;

mod bits;
mod budget;
pub mod clock;
pub mod context;
pub mod cost;
pub mod drops;
mod ebpf;
pub mod executor;
mod foresee;
pub mod hash;
pub mod interp;
pub mod jit;
#[allow(unsafe_code, reason = "a call of the kernel, of Linux alone")]
pub mod large_pages;
pub mod layout;
mod ordinary;
mod parser_shape;
mod path;
pub mod pipeline;
#[expect(unsafe_code, reason = "buffers taken apart and put together")]
mod pool;
#[allow(unsafe_code, reason = "an instruction of the processor")]
pub mod prefetch;
mod reads;
mod refused;
pub mod replication;
pub mod runtime;
pub mod state;
mod target;
pub mod trace;
pub mod v1model;
mod work;
