//! One pass of one packet through one block: what executors read and write.

use p4lang::ir::CloneKind;

use crate::state::State;
use crate::trace::Trace;

pub use crate::drops::DropReason;
use units::SplitMix;

/// What a pass asks the architecture to do with the packet afterwards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// Kind, session, field list; the last call wins.
    pub clone: Option<(CloneKind, u32, Option<u32>)>,
    pub resubmit: Option<Option<u32>>,
    pub recirculate: Option<Option<u32>>,
    /// Bytes that the packet keeps.
    pub truncate: Option<u32>,
}

pub struct Context<'a> {
    /// Laid out by [`crate::layout::Layout`].
    pub frame: &'a mut [u8],
    /// The packet's bytes; in a control, those after the parsed headers start at `cursor / 8`.
    pub packet: &'a [u8],
    /// How far the parser has read, in bits.
    pub cursor: usize,
    /// Where the deparser writes.
    pub out: &'a mut Vec<u8>,
    pub state: &'a mut State,
    /// Picoseconds.
    pub now: u64,
    /// Bytes on the wire, for counters and meters.
    pub wire_len: u64,
    /// What is left of the work that the packet may cause, in units of [`crate::cost`].
    pub work: u64,
    pub requests: Requests,
    pub rng: &'a mut SplitMix,
    pub trace: Option<&'a mut Trace>,
}

impl Context<'_> {
    /// Bytes that no header was made of.
    pub fn payload(&self) -> &[u8] {
        self.packet.get(self.cursor.div_ceil(8)..).unwrap_or(&[])
    }

    /// Takes so much of the work that is left; if that is more than there is, the packet is to be dropped.
    pub fn charge(&mut self, cost: u64) -> Result<(), DropReason> {
        let left = self.work.checked_sub(cost);
        self.work = left.unwrap_or(0);
        left.map(|_| ()).ok_or(DropReason::WorkBudget)
    }
}
