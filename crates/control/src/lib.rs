//! What can be asked of a switch, as values: settings, their checks and the errors. Nothing here runs a packet.
//!
//! | file | what |
//! |---|---|
//! | `error` | why something was refused: kind, object, field, reason, cure |
//! | `ports` | settings of ports, queues, schedulers and shapers |
//! | `generator` | settings of packet generators |

mod error;
mod generator;
mod ports;

pub use error::{Error, Kind, Result};
pub use generator::Generator;
pub use ports::{PortConfig, QueueConfig, QueueLimit, Scheduler, Shaping};
