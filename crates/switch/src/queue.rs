//! One queue of a port: first in, first out, tail drop by packets and bytes.

use std::collections::VecDeque;

use control::QueueConfig;
use dataplane::pipeline::{QueueInfo, Work};
use dataplane::prefetch::prefetch;

use crate::shaper::Shaper;

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStatistics {
    /// Packets and bytes taken.
    pub packets: u64,
    pub bytes: u64,
    /// Packets refused because the queue was full.
    pub dropped: u64,
    /// Packets that egress dropped after they had left the queue.
    pub dropped_in_egress: u64,
    /// Time in the queue, in picoseconds: summed over the packets that left it, and the longest.
    pub wait_ps: u128,
    pub wait_max_ps: u64,
}

/// A packet that can wait.
pub trait Queued {
    /// On the wire.
    fn bytes(&self) -> u64;
    /// When it came (picoseconds).
    fn came(&self) -> u64;
    /// It is the next to leave: what will be read of it may be asked for.
    fn next(&self) {}
    /// It is the one after that.
    fn second(&self) {}
}

impl Queued for Box<Work> {
    #[inline]
    fn bytes(&self) -> u64 {
        self.wire_len()
    }

    #[inline]
    fn came(&self) -> u64 {
        self.enqueued
    }

    // Most of a long queue has left the cache by the time that it is sent. Where the next packet's parts are is known since the
    // one before it left.
    #[inline]
    fn next(&self) {
        self.prefetch();
    }

    #[inline]
    fn second(&self) {
        prefetch(&**self, 2);
    }
}

#[derive(Debug)]
pub(crate) struct Waiting<T> {
    packet: T,
    bytes: u64,
    /// Packets in the queue when this one came.
    depth: u32,
}

/// A queue of a port.
#[derive(Debug)]
pub struct Queue<T> {
    pub(crate) config: QueueConfig,
    pub(crate) shaper: Option<Shaper>,
    /// Bytes that deficit round robin still owes.
    pub(crate) deficit: u64,
    waiting: VecDeque<Waiting<T>>,
    bytes: u64,
    pub(crate) statistics: QueueStatistics,
}

impl<T: Queued> Queue<T> {
    pub(crate) fn new(config: QueueConfig) -> Queue<T> {
        Queue {
            config,
            shaper: config.shaping.map(Shaper::new),
            deficit: 0,
            waiting: VecDeque::new(),
            bytes: 0,
            statistics: QueueStatistics::default(),
        }
    }

    /// Another limit holds for packets that come from now on; a shaper that stays as it is keeps its bucket.
    pub(crate) fn configure(&mut self, config: QueueConfig) {
        if config.shaping != self.config.shaping {
            self.shaper = config.shaping.map(Shaper::new);
        }
        self.config = config;
    }

    /// Whether it has no room for a packet of that many bytes.
    #[inline]
    fn full(&self, bytes: u64) -> bool {
        let limit = &self.config.limit;
        limit.packets.is_some_and(|most| self.waiting.len() as u64 >= most)
            || limit.bytes.is_some_and(|most| self.bytes + bytes > most.get())
    }

    /// Whether a packet of that many bytes would be the only one, and free to leave.
    #[inline]
    pub(crate) fn open(&self, bytes: u64) -> bool {
        self.waiting.is_empty() && self.shaper.is_none() && !self.full(bytes)
    }

    /// Counts a packet that left when it came.
    pub(crate) fn passed(&mut self, bytes: u64) {
        self.statistics.packets += 1;
        self.statistics.bytes += bytes;
    }

    /// Takes a packet, or gives it back if the queue is full.
    #[inline]
    pub(crate) fn push(&mut self, packet: T) -> Result<(), T> {
        let bytes = packet.bytes();
        if self.full(bytes) {
            self.statistics.dropped += 1;
            return Err(packet);
        }
        self.statistics.packets += 1;
        self.statistics.bytes += bytes;
        self.bytes += bytes;
        let depth = self.waiting.len() as u32;
        if depth == 0 {
            // Begins at the front again, whose memory is in the cache.
            self.waiting.clear();
        }
        self.waiting.push_back(Waiting { packet, bytes, depth });
        Ok(())
    }

    /// The first packet, with what egress learns of the queue, and how long it waited (picoseconds).
    #[inline]
    pub(crate) fn pop(&mut self, now: u64) -> Option<(T, QueueInfo, u64)> {
        let Waiting { packet, bytes, depth } = self.waiting.pop_front()?;
        self.bytes -= bytes;
        let wait = now.saturating_sub(packet.came());
        self.statistics.wait_ps += u128::from(wait);
        self.statistics.wait_max_ps = self.statistics.wait_max_ps.max(wait);
        if let Some(next) = self.waiting.front() {
            next.packet.next();
        }
        if let Some(after) = self.waiting.get(1) {
            after.packet.second();
        }
        let info = QueueInfo { enq_qdepth: depth, deq_qdepth: self.waiting.len() as u32 };
        Some((packet, info, wait))
    }

    /// What waits.
    pub(crate) fn packets_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.waiting.iter_mut().map(|waiting| &mut waiting.packet)
    }

    /// Takes out all that waits.
    pub(crate) fn take(&mut self) -> VecDeque<Waiting<T>> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }

    /// Bytes of the first packet, and when it came (picoseconds).
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.waiting.front().map(|w| (w.bytes, w.packet.came()))
    }

    /// The first packet.
    pub(crate) fn first_packet(&self) -> Option<&T> {
        self.waiting.front().map(|w| &w.packet)
    }

    /// Packets and bytes waiting.
    pub(crate) fn depth(&self) -> (u64, u64) {
        (self.waiting.len() as u64, self.bytes)
    }

    /// Takes what waits in another queue, behind what waits here, and its counts.
    pub(crate) fn adopt(&mut self, mut other: Queue<T>) {
        self.bytes += other.bytes;
        self.waiting.append(&mut other.waiting);
        let (mine, its) = (&mut self.statistics, &other.statistics);
        mine.packets += its.packets;
        mine.bytes += its.bytes;
        mine.dropped += its.dropped;
        mine.dropped_in_egress += its.dropped_in_egress;
        mine.wait_ps += its.wait_ps;
        mine.wait_max_ps = mine.wait_max_ps.max(its.wait_max_ps);
    }
}
