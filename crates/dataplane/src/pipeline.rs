//! A program's instance and what goes through it, under one name.

pub use crate::cost::WORK_BUDGET;
pub use crate::refused::{MAX_DEPTH, MAX_STACK, Refused};
pub use crate::runtime::Pipeline;
pub use crate::v1model::{DROP_PORT, MAX_COPIES, MAX_PASSES};
pub use crate::work::{Output, QueueInfo, Received, Work};
