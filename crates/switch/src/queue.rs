//! One queue of a port: first in, first out, tail drop by packets and bytes.

use std::collections::VecDeque;

use dataplane::pipeline::{Pending, QueueInfo};
use units::Bytes;

/// How long a queue may get; a packet that would go beyond is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueLimit {
    pub packets: Option<u64>,
    pub bytes: Option<Bytes>,
}

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

#[derive(Debug)]
struct Waiting {
    packet: Pending,
    bytes: u64,
    /// Packets in the queue when this one came.
    depth: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub limit: QueueLimit,
    waiting: VecDeque<Waiting>,
    bytes: u64,
    pub statistics: QueueStatistics,
}

impl Queue {
    pub fn new(limit: QueueLimit) -> Queue {
        Queue { limit, ..Queue::default() }
    }

    /// Takes a packet, or gives it back if the queue is full.
    pub fn push(&mut self, packet: Pending) -> Result<(), Pending> {
        let bytes = packet.wire_len();
        let full = self.limit.packets.is_some_and(|most| self.waiting.len() as u64 >= most)
            || self.limit.bytes.is_some_and(|most| self.bytes + bytes > most.get());
        if full {
            self.statistics.dropped += 1;
            return Err(packet);
        }
        self.statistics.packets += 1;
        self.statistics.bytes += bytes;
        self.bytes += bytes;
        let depth = self.waiting.len() as u32;
        self.waiting.push_back(Waiting { packet, bytes, depth });
        Ok(())
    }

    /// The first packet, with what egress learns of the queue.
    pub fn pop(&mut self, now: u64) -> Option<(Pending, QueueInfo)> {
        let Waiting { packet, bytes, depth } = self.waiting.pop_front()?;
        self.bytes -= bytes;
        let wait = now.saturating_sub(packet.enqueued);
        self.statistics.wait_ps += u128::from(wait);
        self.statistics.wait_max_ps = self.statistics.wait_max_ps.max(wait);
        Some((packet, QueueInfo { enq_qdepth: depth, deq_qdepth: self.waiting.len() as u32 }))
    }

    /// Packets and bytes waiting.
    pub fn depth(&self) -> (u64, u64) {
        (self.waiting.len() as u64, self.bytes)
    }
}
