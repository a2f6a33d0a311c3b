//! A whole P4 switch, sans I/O: what the program does to a packet, and the queues that a switch has around it.
//!
//! Packets go in by [`Switch::receive`]; a port that is free to send asks [`Switch::transmit`]. The scheduler picks a queue,
//! the packet leaves it and runs egress, and either goes out or, if egress drops it, the next one is tried at once: a drop in
//! egress costs no time on the wire. Time is an argument.
//!
//! | file | what |
//! |---|---|
//! | `queue` | one queue: limits, depth, counts |
//! | `switch` | ports with queues around a pipeline |

mod queue;
mod switch;

pub use queue::{QueueLimit, QueueStatistics};
pub use switch::{Config, ConfigError, PortConfig, Switch};
