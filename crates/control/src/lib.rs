//! What can be asked of a switch: operations, answers and errors as values, and the checks that need nothing but the program.
//! Nothing here runs a packet, keeps state or knows what time it is.
//!
//! | file | what |
//! |---|---|
//! | `ops/` | every operation, a file for each family |
//! | `answer` | what comes of them |
//! | `target` | the traits of what does them |
//! | `name`, `value`, `types` | what operations are made of |
//! | `check` | what the program alone decides: names, kinds, widths |
//! | `ports`, `generator` | settings of the parts around a program |
//! | `error` | why something was refused: kind, object, field, reason, cure |
//! | `describe` | what is made from the definitions: Python's dataclasses, the documentation's table |

#![forbid(unsafe_code)]

mod answer;
pub mod check;
pub mod describe;
mod error;
mod generator;
mod name;
pub mod ops;
mod ports;
mod target;
mod types;
mod value;

pub use answer::{
    Answer, Digest, Group, MirrorState, Node, PacketIn, QueueState, Row, Statistics, TableTotals,
};
pub use error::{Error, Kind, Result};
pub use generator::Generator;
pub use name::{Cells, Name, resolve};
pub use ops::{ArrayOp, CopiesOp, FixedOp, Op, ProfileOp, StateOp, TableOp, ValueSetOp};
pub use ports::{PortConfig, QueueConfig, QueueLimit, Scheduler, Shaping};
pub use target::{
    FixedParts, MOST_AT_A_TIME, MOST_CELLS_IN_ALL, MOST_COMPARED, MOST_IN_ALL, MOST_SHARES, Target,
};
pub use types::{
    At, Call, Choice, CrcParameters, EntryRef, Extras, Leads, MeterRates, Mirror, Put, Share, Words,
};
pub use value::{Match, Value, check_match, fits, matches};
