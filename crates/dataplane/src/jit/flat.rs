//! The path of ordinary packets as native code: one structure filled in where the packet comes in, and one call.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use units::SplitMix;

use super::compile::{Compiled, Paths};
use super::native::{Departing, Native, drop_reason, stage};
use crate::context::{DropReason, Requests};
use crate::state::State;

/// How far a packet came on the path of ordinary packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Through {
    /// Parser, checksum verification and ingress ran; the rest is for the caller to decide, or the packet is dropped.
    Ingress(Result<(), DropReason>),
    /// Ingress has run and drops the packet; nothing else was asked for.
    Dropped,
    /// So did egress, and drops the packet; nothing else was asked for.
    Refused,
    /// So did egress, for this port.
    Egress { port: u32, result: Result<(), DropReason> },
    /// For this port; the headers are in the buffer, after [`Flat::through`] with the payload behind them.
    Out { port: u32 },
    /// For this port; so many bytes of headers are in the packet, in front of what the parser has not read.
    Replaced { port: u32, headers: usize },
    /// Ingress has run, and the packet is for this port's queue of this priority.
    Queue { port: u32, priority: u32 },
}

/// Where and when a packet comes in.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrival {
    pub port: u32,
    /// In the unit of the architecture's timestamps.
    pub now: u64,
}

/// What egress learns of a packet that leaves its queue. Times are in the unit of the architecture's timestamps.
#[derive(Debug, Clone, Copy)]
pub struct Departure {
    pub port: u32,
    pub rid: u32,
    /// Which kind of packet it is, in the architecture's numbers.
    pub instance: u32,
    pub now: u64,
    pub enqueued: u64,
    pub waited: u64,
    pub enq_qdepth: u32,
    pub deq_qdepth: u32,
}

/// What native code works on.
pub struct Passage<'a> {
    /// Laid out for the program.
    pub frame: &'a mut [u8],
    /// How far the parser has read, in bits.
    pub cursor: usize,
    pub state: &'a mut State,
    pub rng: &'a mut SplitMix,
    /// What the packet asks for is added.
    pub requests: &'a mut Requests,
    /// Picoseconds.
    pub now: u64,
    /// Bytes on the wire.
    pub wire_len: u64,
    /// What is left of the packet's work.
    pub work: u64,
}

/// What came of a packet: how far it came, how far the parser has read in bits, and what is left of the packet's work.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    pub came: Through,
    pub cursor: usize,
    pub work: u64,
}

/// The bytes of a packet.
pub(super) enum Bytes<'a> {
    Read(&'a [u8]),
    /// From a place on, and in front of it room for headers. The half behind a queue writes them there.
    Replace(&'a mut [u8], usize),
}

/// What native code works on, and where its output goes back to when it has run, however that ends.
struct Running<'a> {
    native: Native,
    out: &'a mut Vec<u8>,
}

impl Drop for Running<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: `native` was made of the `Vec` that is written over, whose memory nobody has used since but the blocks, and what these
        // have appended is initialised and within the capacity.
        unsafe { std::ptr::write(self.out, self.native.output()) };
    }
}

impl Compiled {
    /// What blocks see. The memory of the output is theirs, as long as they run.
    ///
    /// The frame has the layout that the code was compiled for, and the state is that of the program. All pointers are valid while what
    /// they come from is borrowed, which it is until whoever calls this and the blocks returns.
    #[inline(always)]
    fn native(
        &self,
        on: Passage<'_>,
        out: &mut Vec<u8>,
        bytes: Bytes<'_>,
        at: Arrival,
        departing: *const Departing,
    ) -> Native {
        let Passage { frame, cursor, state, rng, requests, now, wire_len, work } = on;
        let (packet, packet_len, front) = match bytes {
            Bytes::Read(packet) => (packet.as_ptr(), packet.len(), 0),
            Bytes::Replace(all, start) => {
                let packet = &mut all[start..];
                let len = packet.len();
                (all.as_mut_ptr().wrapping_add(start).cast_const(), len, start)
            }
        };
        assert!(state.shape == self.shape, "the state is that of the program");
        debug_assert!(
            state
                .registers
                .iter()
                .zip(&self.program.registers)
                .all(|(r, declared)| r.len() as u64 == declared.size)
        );
        assert!(frame.len() >= self.layout.frame_len, "the frame is laid out for the program");
        Native {
            frame: frame.as_mut_ptr(),
            packet,
            packet_len: packet_len as u64,
            cursor: cursor as u64,
            parser_error: 0,
            dropped: 0,
            work,
            out: out.as_mut_ptr(),
            out_len: out.len() as u64,
            out_capacity: out.capacity() as u64,
            front: front as u64,
            wire_len,
            requested: 0,
            port: u64::from(at.port),
            now: at.now,
            stage: 0,
            priority: 0,
            departing,
            compiled: self,
            state,
            rng,
            requests,
            picoseconds: now,
        }
    }

    /// Runs blocks whose output is appended to a buffer, and gives what they make of the rest.
    #[inline(always)]
    pub(super) fn enter<T>(
        &self,
        (on, out): (Passage<'_>, &mut Vec<u8>),
        bytes: Bytes<'_>,
        at: Arrival,
        departing: *const Departing,
        blocks: impl FnOnce(&mut Native) -> T,
    ) -> T {
        let native = self.native(on, out, bytes, at, departing);
        let mut running = Running { native, out };
        blocks(&mut running.native)
    }
}

/// The functions of the path.
pub struct Flat {
    pub(super) paths: Paths,
    /// Has their code.
    pub(super) compiled: Arc<Compiled>,
}

impl Flat {
    /// Runs a packet that comes in through all blocks, with the metadata of a packet that meets no queue, and stops where its
    /// path leaves that of ordinary packets. The frame need not be zeroed.
    #[inline(always)]
    pub fn through(&self, on: Passage<'_>, out: Vec<u8>, packet: &[u8], at: Arrival) -> (Passed, Vec<u8>) {
        // Given back as it is read from the structure: to move a `Vec` whose fields were just written would wait for that.
        let mut out = ManuallyDrop::new(out);
        let native = &mut self.compiled.native(on, &mut out, Bytes::Read(packet), at, std::ptr::null());
        // SAFETY: the structure is filled in for the program's blocks.
        unsafe { (self.paths.through)(native) };
        // SAFETY: it was taken apart above, and what the blocks appended is initialised and within the capacity.
        (Left::by(native).passed(), unsafe { native.output() })
    }

    /// The first half of [`Flat::through`], up to a queue. If `at_once` says that a packet for this port and of this
    /// priority need not wait, the second half follows, as of a packet that leaves an empty queue when it comes. The packet
    /// begins at a place in the bytes.
    #[inline(always)]
    pub fn receive(
        &self,
        on: (Passage<'_>, &mut Vec<u8>),
        (bytes, start): (&mut [u8], usize),
        at: Arrival,
        at_once: &mut impl FnMut(u32, u32) -> bool,
    ) -> Passed {
        self.compiled
            .enter(on, Bytes::Replace(bytes, start), at, std::ptr::null(), |native| {
                let departing;
                // SAFETY: `enter` fills the structure in for the program's blocks, and the first half leaves it as the second
                // expects it but for what egress learns of the queue, which outlives that half.
                unsafe {
                    (self.paths.receive)(native);
                    if u64::from(native.stage) == stage::QUEUE && at_once(native.port as u32, native.priority)
                    {
                        departing = Departing { enqueued: native.now, ..Departing::default() };
                        native.departing = &departing;
                        (self.paths.depart)(native);
                    }
                }
                Left::by(native)
            })
            .passed()
    }

    /// The second half, from a queue on. The frame is as ingress left it, and the packet begins at a place in the bytes.
    #[inline(always)]
    pub fn depart(
        &self,
        on: (Passage<'_>, &mut Vec<u8>),
        (bytes, start): (&mut [u8], usize),
        departure: &Departure,
    ) -> Passed {
        let departing = Departing {
            rid: u64::from(departure.rid),
            instance: u64::from(departure.instance),
            enqueued: departure.enqueued,
            waited: departure.waited,
            enq_qdepth: u64::from(departure.enq_qdepth),
            deq_qdepth: u64::from(departure.deq_qdepth),
        };
        let at = Arrival { port: departure.port, now: departure.now };
        self.compiled
            .enter(on, Bytes::Replace(bytes, start), at, &departing, |native| {
                // SAFETY: as above.
                unsafe { (self.paths.depart)(native) };
                Left::by(native)
            })
            .passed()
    }
}

/// What native code says of a packet that has left a path. What came of it is made of this once the output is back in its place: then
/// the cases are told apart only once, by whoever asks.
struct Left {
    stage: u32,
    port: u32,
    priority: u32,
    dropped: u32,
    front: u64,
    cursor: u64,
    work: u64,
}

impl Left {
    #[inline(always)]
    fn by(native: &Native) -> Left {
        let &Native { stage, port, priority, dropped, front, cursor, work, .. } = native;
        if native.requested != 0 && matches!(u64::from(stage), stage::OUT | stage::REPLACED) {
            // What is asked for behind egress comes too late.
            // SAFETY: `enter` filled the pointer in, of what it borrows.
            unsafe { *native.requests = Requests::default() };
        }
        Left { stage, port: port as u32, priority, dropped, front, cursor, work }
    }

    #[inline(always)]
    fn passed(self) -> Passed {
        let Left { port, priority, .. } = self;
        let came = match u64::from(self.stage) {
            stage::OUT => Through::Out { port },
            stage::REPLACED => Through::Replaced { port, headers: self.front as usize },
            stage::QUEUE => Through::Queue { port, priority },
            stage::DECIDED => Through::Dropped,
            stage::REFUSED => Through::Refused,
            stage::INGRESS => Through::Ingress(drop_reason(self.dropped)),
            stage::EGRESS => Through::Egress { port, result: drop_reason(self.dropped) },
            // After egress only a drop ends the path.
            _ => Through::Egress {
                port,
                result: Err(drop_reason(self.dropped).err().unwrap_or(DropReason::WorkBudget)),
            },
        };
        Passed { came, cursor: self.cursor as usize, work: self.work }
    }
}
