//! A program's instance and the path of packets through it, under one name.

pub use crate::runtime::Pipeline;
pub use crate::v1model::{DROP_PORT, Instance, MAX_COPIES, MAX_PASSES, Output, QueueInfo, Received, Work};
