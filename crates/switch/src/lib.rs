//! A whole P4 switch, sans I/O: what the program does to a packet, and the fixed parts that a switch has around it.
//!
//! Packets go in by [`Switch::receive`]; a port that is free to send asks [`Switch::transmit`]. The scheduler picks a queue,
//! the packet leaves it and runs egress, and either goes out or, if egress drops it, the next one is tried at once: a drop in
//! egress uses no link time. Time is an argument.
//!
//! | file | what |
//! |---|---|
//! | `queue` | one queue: limits, depth, counts |
//! | `port` | queues, scheduler and shaper of a port, of this switch or of a plain router |
//! | `scheduler` | which queue is next: strict priority, deficit and weighted round robin, time-shifted FIFO |
//! | `shaper` | how fast a queue or a port may send |
//! | `generator` | packets on a period |
//! | `fixed` | what is asked of a switch: the effects of [`control::FixedOp`] |
//! | `switch` | ports with queues around a pipeline; the controller's side |

#![forbid(unsafe_code)]

mod fixed;
mod generator;
mod port;
mod queue;
mod scheduler;
mod shaper;
mod switch;

pub use control::{Generator, PacketIn, PortConfig, QueueConfig, QueueLimit, Scheduler, Shaping, Statistics};
pub use port::{Popped, Port};
pub use queue::{QueueStatistics, Queued};
pub use switch::{Config, Departure, LONGEST_OUT, MAX_PACKET_INS, Passed, Replaced, Switch};
