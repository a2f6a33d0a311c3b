//! One pass of one packet through one block: what executors read and write.

use p4lang::ir::{CloneKind, LOOP_BUDGET};

use crate::state::State;
use crate::trace::Trace;
use units::SplitMix;

/// Why a packet did not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
    /// `egress_spec` was 511 after ingress.
    Ingress,
    /// `egress_spec` was 511 after egress.
    Egress,
    /// [`LOOP_BUDGET`] ran out.
    LoopBudget,
    Assertion,
    Assumption,
    /// Resubmitted or recirculated too often.
    Recirculation,
    /// A multicast group without members, or one that does not exist.
    EmptyGroup,
    /// Turned into too many packets.
    Copies,
}

impl DropReason {
    pub const ALL: [DropReason; 8] = [
        DropReason::Ingress,
        DropReason::Egress,
        DropReason::LoopBudget,
        DropReason::Assertion,
        DropReason::Assumption,
        DropReason::Recirculation,
        DropReason::EmptyGroup,
        DropReason::Copies,
    ];

    pub fn name(self) -> &'static str {
        match self {
            DropReason::Ingress => "dropped in ingress",
            DropReason::Egress => "dropped in egress",
            DropReason::LoopBudget => "loop budget",
            DropReason::Assertion => "assertion",
            DropReason::Assumption => "assumption",
            DropReason::Recirculation => "recirculation limit",
            DropReason::EmptyGroup => "empty multicast group",
            DropReason::Copies => "copy limit",
        }
    }
}

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
    pub loop_budget: u32,
    pub requests: Requests,
    pub rng: &'a mut SplitMix,
    pub trace: Option<&'a mut Trace>,
}

impl Context<'_> {
    /// Bytes that no header was made of.
    pub fn payload(&self) -> &[u8] {
        self.packet.get(self.cursor.div_ceil(8)..).unwrap_or(&[])
    }

    /// Before each top-level block.
    pub fn refill(&mut self) {
        self.loop_budget = LOOP_BUDGET;
    }
}
