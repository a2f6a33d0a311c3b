//! Packets as switches and paths hand them on: one that comes in, one between ingress and egress, one that leaves.

use wire::packet::Written;

use crate::budget::Budget;
use crate::prefetch::prefetch;

/// A packet that leaves a switch without queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub port: u32,
    pub bytes: Vec<u8>,
    /// Bytes of payload behind `bytes` that are only counted.
    pub zero_len: u32,
}

/// A packet for ingress.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub port: u32,
    pub packet: Box<Written>,
    /// Which kind of packet it is, in the architecture's numbers; 0: one that has come by a port.
    pub instance: u32,
    /// Work on whose frame the listed fields are kept, and the list.
    pub kept: Option<(Box<Work>, u32)>,
    pub passes: u32,
    pub budget: Budget,
}

impl Incoming {
    /// One that has come by a port.
    pub fn new(port: u32, packet: Box<Written>, budget: Budget) -> Incoming {
        Incoming { port, packet, instance: 0, kept: None, passes: 0, budget }
    }
}

/// What an architecture whose packets are copied or take several passes keeps of one. Others leave it alone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pass {
    /// See [`Incoming::instance`].
    pub instance: u32,
    pub rid: u32,
    pub truncate: Option<u32>,
    pub passes: u32,
}

/// A packet between ingress and egress, with its headers and metadata. It comes from a pool, and goes back there.
#[derive(Debug)]
pub struct Work {
    pub port: u32,
    /// Queue that the program chose.
    pub priority: u32,
    /// Picoseconds.
    pub enqueued: u64,
    pub ingress_port: u32,
    /// How far the parser has read, in bits.
    pub(crate) cursor: usize,
    pub(crate) frame: Box<[u8]>,
    /// `None` in the pool.
    pub(crate) packet: Option<Box<Written>>,
    pub(crate) pass: Pass,
    pub(crate) budget: Budget,
}

impl Work {
    pub(crate) fn new(frame: Box<[u8]>) -> Work {
        Work {
            port: 0,
            priority: 0,
            enqueued: 0,
            ingress_port: 0,
            cursor: 0,
            frame,
            packet: None,
            pass: Pass::default(),
            budget: Budget::default(),
        }
    }

    /// Takes a packet for a port.
    #[inline]
    pub(crate) fn take(
        &mut self,
        packet: Box<Written>,
        port: u32,
        now: u64,
        ingress_port: u32,
        (cursor, budget): (usize, Budget),
    ) {
        self.port = port;
        self.priority = 0;
        self.enqueued = now;
        self.ingress_port = ingress_port;
        self.cursor = cursor;
        self.packet = Some(packet);
        self.budget = budget;
    }

    /// The packet is the next to leave its queue: what egress will read of it is asked for.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&*self.frame, 3);
        if let Some(packet) = &self.packet {
            prefetch(&**packet, 3);
        }
    }

    /// Bytes on the wire, as the packet came.
    #[inline]
    pub fn wire_len(&self) -> u64 {
        self.packet.as_ref().map_or(0, |packet| packet.wire_len())
    }
}

/// What a queue tells egress.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueInfo {
    /// Packets in the queue when the packet came and when it left.
    pub enq_qdepth: u32,
    pub deq_qdepth: u32,
}

/// What came of a packet that a switch with queues took.
#[derive(Debug)]
pub enum Received {
    /// It is for its queue.
    Queue(Box<Work>),
    /// It has left already.
    Out(Box<Written>),
    /// It has turned into others, or was dropped.
    Other,
}

/// What came of a pass through ingress or egress.
#[derive(Debug)]
pub(crate) enum Next {
    Ingress(Incoming),
    Egress(Box<Work>),
    /// By a port.
    Out(u32, Box<Written>),
}
