//! The v1model architecture: the path of a packet through its blocks, as the reference switch has it.
//!
//! Ingress and egress are separate steps with a [`Pending`] packet between them, so that a switch may put queues there;
//! [`Pipeline::process`](crate::runtime::Pipeline::process) runs the whole path without queues. Every packet that comes in
//! leaves, is dropped with a counted reason, or is turned into others.
//!
//! | file | what |
//! |---|---|
//! | `path` | where packets come in and leave; the path of ordinary packets in one go |
//! | `passes` | one pass through ingress or egress, and what becomes of the packet after it |
//! | `copies` | clones and multicast copies |
//! | `metadata` | standard metadata in a frame, and the fields that a packet keeps from pass to pass |
//! | `native` | the path of ordinary packets as native code |

mod copies;
mod metadata;
mod native;
mod passes;
mod path;

pub(crate) use path::{Next, wire_len};
pub use path::{Output, Pending, QueueInfo, Received};

/// The port that drops.
pub const DROP_PORT: u32 = 511;
/// Resubmissions and recirculations that one packet may make.
pub const MAX_PASSES: u32 = 64;
/// Packets that one packet may turn into.
pub const MAX_COPIES: u32 = 4096;

/// `standard_metadata.instance_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Instance {
    Normal = 0,
    IngressClone = 1,
    EgressClone = 2,
    Recirculated = 4,
    Replicated = 5,
    Resubmitted = 6,
}

impl Instance {
    pub fn name(self) -> &'static str {
        match self {
            Instance::Normal => "normal",
            Instance::IngressClone => "ingress clone",
            Instance::EgressClone => "egress clone",
            Instance::Recirculated => "recirculated",
            Instance::Replicated => "replicated",
            Instance::Resubmitted => "resubmitted",
        }
    }
}
