//! Runs a lowered [`p4lang::ir::Program`] on packets.
//!
//! No clock, socket, thread or random source of its own: time and a seed are arguments. Per-packet state lives in a
//! [`layout::Layout`]-shaped frame that both executors share, persistent state (tables, registers, counters, meters) in
//! [`state`]; the interpreter in [`interp`] is the definition of what a program means, [`jit`] the speed; [`pipeline`] ties blocks together
//! the way the v1model architecture runs them; [`control`] is what a control plane sees.

mod bits;
pub mod context;
pub mod control;
pub mod executor;
pub mod hash;
pub mod interp;
pub mod jit;
pub mod layout;
pub mod pipeline;
pub mod replication;
pub mod rng;
pub mod state;
pub mod trace;
