//! The Simple Test Framework: a program, what to put in its tables, packets in, packets expected.
//!
//! It behaves as the reference compiler's runner for its software switch:
//!
//! - Statements run in order. Packets that come out are collected per port and compared at the end, in order, with the
//!   port's expectations: as many packets, each starting with the expected bytes (`$`: and ending there).
//! - `expect PORT` without data expects one packet with any content. The reference takes any number of packets then, none too.
//! - Packets on ports that no `packet` or `expect` mentions are ignored, unless `no_packet` is given; they are reported.
//! - In `add`, a larger priority wins; exact keys that are not mentioned match 0, all others anything.
//! - Tables and actions go by their full name or an end of it that is unambiguous.
//! - A second passes between a command and the packet after it, a millisecond between packets and for `wait`.
//!
//! Beyond it: `check_counter` is checked, so is `check_register`, `remove` removes, entries have handles, and a command that is refused fails the test.

mod compare;
mod names;
mod parse;
mod run;

pub use parse::{Call, Check, Comparison, Index, Pattern, Statement, parse};
pub use run::{Options, run};
