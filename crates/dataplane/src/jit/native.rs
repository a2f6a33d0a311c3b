//! What compiled code sees of a pass: one flat structure, filled in before a block runs and read back after it.

use std::alloc::Layout;

use units::SplitMix;

use super::compile::Compiled;
use crate::context::{DropReason, Requests};
use crate::state::meter::MeterCell;
use crate::state::{CounterCell, State};

/// All that a compiled block reads and writes apart from the frame. Lengths are bytes, `cursor` is bits.
#[repr(C)]
pub(crate) struct Native {
    pub frame: *mut u8,
    pub packet: *const u8,
    pub packet_len: u64,
    /// Where the parser stopped.
    pub cursor: u64,
    /// 0: no error.
    pub parser_error: u32,
    /// One of the numbers below, 0 for none.
    pub dropped: u32,
    /// What is left of the packet's work.
    pub work: u64,
    /// 1 once the program has asked the architecture for something (a clone, another pass, truncation).
    pub requested: u64,
    /// For whole paths: the port that the packet came in by, then the one that it leaves by; the time as
    /// programs see it; how far it came; the
    /// queue that the program chose.
    pub port: u64,
    pub now: u64,
    pub stage: u32,
    pub priority: u32,
    /// What egress learns of a packet that was in a queue; read by the half behind the queue only.
    pub departing: *const Departing,
    /// The deparser's output, how much of it is written and how much fits: a `Vec` that is taken apart while code runs.
    pub out: *mut u8,
    pub out_len: u64,
    pub out_capacity: u64,
    /// Bytes in front of the packet that headers may go to, too; once they are in the packet, how many bytes of them are.
    pub front: u64,
    /// Length of the packet as meters and counters see it.
    pub wire_len: u64,
    pub compiled: *const Compiled,
    /// For helpers: the rest of what a packet's way needs, and the time in picoseconds.
    pub state: *mut State,
    pub rng: *mut SplitMix,
    pub requests: *mut Requests,
    pub picoseconds: u64,
}

impl Native {
    /// The output as a `Vec`. Its memory is no more that of the structure then.
    ///
    /// # Safety
    /// The three fields are those of a `Vec` that was taken apart, and no other was made of them since.
    #[inline(always)]
    pub unsafe fn output(&self) -> Vec<u8> {
        // SAFETY: as the caller promises.
        unsafe { Vec::from_raw_parts(self.out, self.out_len as usize, self.out_capacity as usize) }
    }
}

/// What the code learns of a packet that leaves its queue, in words; times as programs see them.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Departing {
    pub rid: u64,
    pub instance: u64,
    pub enqueued: u64,
    pub waited: u64,
    pub enq_qdepth: u64,
    pub deq_qdepth: u64,
}

/// Values of [`Native::stage`]: where a packet is, or where it left the path.
pub(crate) mod stage {
    pub const INGRESS: u64 = 0;
    pub const EGRESS: u64 = 1;
    pub const DEPARSE: u64 = 2;
    pub const OUT: u64 = 3;
    /// Ready for its queue.
    pub const QUEUE: u64 = 4;
    /// Ingress has run and asked for nothing; without a port, the packet is dropped.
    pub const DECIDED: u64 = 5;
    /// As `OUT`, but the headers are in the packet, in front of what is behind the cursor.
    pub const REPLACED: u64 = 6;
    /// Egress has run and asked for nothing but that the packet be dropped.
    pub const REFUSED: u64 = 7;
}

pub(crate) const WORK_BUDGET: u64 = 1;
pub(crate) const ASSERTION: u64 = 2;
pub(crate) const ASSUMPTION: u64 = 3;

/// The reason behind [`Native::dropped`].
pub(crate) fn drop_reason(dropped: u32) -> Result<(), DropReason> {
    match u64::from(dropped) {
        0 => Ok(()),
        ASSERTION => Err(DropReason::Assertion),
        ASSUMPTION => Err(DropReason::Assumption),
        _ => Err(DropReason::WorkBudget),
    }
}

/// The action that an entry leads to by way of a profile.
#[repr(C)]
pub(crate) struct Outcome {
    /// Its data: limbs of each parameter in turn.
    pub args: *const u64,
    /// Index among the table's actions.
    pub action: u32,
}

/// Offset of the pointer to the elements within a `Vec<T>`.
///
/// Rust does not promise where in a `Vec` its pointer is, only that it is the same for every `Vec<T>` of one program; so one
/// is looked at.
pub(crate) fn vec_pointer<T>() -> usize {
    // A capacity and a length that no address equals.
    let mut sample: Vec<T> = Vec::with_capacity(3);
    let pointer = sample.as_mut_ptr() as usize;
    let words: [usize; 3] = {
        assert_eq!(size_of::<Vec<T>>(), size_of::<[usize; 3]>(), "a Vec is three words");
        // SAFETY: a Vec is three initialised words, which are only looked at.
        unsafe { std::ptr::from_ref(&sample).cast::<[usize; 3]>().read() }
    };
    let found = words.iter().position(|word| *word == pointer);
    // The pointer is one of the three words.
    found.expect("a Vec holds its pointer") * size_of::<usize>()
}

/// Cells whose fields are all 0 when they are new.
///
/// # Safety
///
/// A value of zero bytes is a valid one.
pub(crate) unsafe trait Zero: Sized {}

// SAFETY: two numbers.
unsafe impl Zero for CounterCell {}
// SAFETY: numbers, and a flag that is false.
unsafe impl Zero for MeterCell {}

/// So many new cells. The system zeroes their memory when they are first used: until then large arrays take none.
pub(crate) fn zeroed<T: Zero>(count: usize) -> Vec<T> {
    // More than there are addresses is more than a program may declare.
    let layout = Layout::array::<T>(count).expect("arrays fit in memory");
    if layout.size() == 0 {
        return Vec::new();
    }
    // SAFETY: the size is not 0; the memory is that of a `Vec` of this capacity, and its zero bytes are as many cells.
    unsafe {
        let cells = std::alloc::alloc_zeroed(layout);
        if cells.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        Vec::from_raw_parts(cells.cast(), count, count)
    }
}
