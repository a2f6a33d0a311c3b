//! Runs a lowered [`p4lang::ir::Program`] on packets.
//!
//! No clock, socket, thread or random source of its own: time and a seed are arguments. Per-packet state lives in a
//! `layout::Layout`-shaped frame that both executors share, persistent state (tables, registers, counters, meters) in
//! `state`; the interpreter in `interp` is the definition of what a program means, the JIT in `jit` is the speed;
//! `pipeline` ties them together the way the v1model architecture runs its blocks.

pub mod layout;
