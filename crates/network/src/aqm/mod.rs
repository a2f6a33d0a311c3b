//! Queue management of a plain port: a queue that is asked as packets come and leave, in place of drop tail alone.
//!
//! Such a port pulls, as a switch's does: which packet leaves is known when the wire is free, and not before. The queue's own limit
//! holds all the same. Packets are dropped, also those that could be marked.
//!
//! | file | what |
//! |---|---|
//! | `codel` | RFC 8289 |
//! | `pie` | RFC 8033 |

mod codel;
mod pie;

use std::collections::VecDeque;

use crate::pool::PacketId;
use units::Random;

use codel::Codel;
use pie::Pie;

/// How a port's queue is managed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aqm {
    /// RFC 8289, with its target of 5 ms and interval of 100 ms.
    Codel,
    /// RFC 8033, with its target of 15 ms.
    Pie,
}

impl Aqm {
    /// Names, as [`Aqm::by_name`] knows them.
    pub const NAMES: [&'static str; 2] = ["codel", "pie"];

    pub fn by_name(name: &str) -> Option<Aqm> {
        match name {
            "codel" => Some(Aqm::Codel),
            "pie" => Some(Aqm::Pie),
            _ => None,
        }
    }
}

/// A packet that waits: bytes on the wire, and when it came (picoseconds).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub packet: PacketId,
    pub bytes: u32,
    pub came: u64,
}

/// First in, first out.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    pub fn len(&self) -> u64 {
        self.waiting.len() as u64
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn push(&mut self, waiting: Waiting) {
        self.bytes += u64::from(waiting.bytes);
        self.waiting.push_back(waiting);
    }

    fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.bytes -= u64::from(first.bytes);
        Some(first)
    }
}

#[derive(Debug)]
enum Law {
    Codel(Codel),
    Pie(Pie),
}

/// A managed queue.
#[derive(Debug)]
pub(crate) struct Managed {
    pub fifo: Fifo,
    law: Law,
}

impl Managed {
    /// For packets of up to `largest` bytes.
    pub fn new(aqm: Aqm, largest: u32) -> Managed {
        let law = match aqm {
            Aqm::Codel => Law::Codel(Codel::new(u64::from(largest))),
            Aqm::Pie => Law::Pie(Pie::new(u64::from(largest))),
        };
        Managed { fifo: Fifo::default(), law }
    }

    /// Takes a packet, or says that it is to be dropped.
    pub fn enqueue(&mut self, waiting: Waiting, random: &mut Random) -> bool {
        if let Law::Pie(pie) = &mut self.law
            && pie.drops(waiting.came, &self.fifo, random)
        {
            return false;
        }
        self.fifo.push(waiting);
        true
    }

    /// The packet to be sent; those before it that are dropped go to `dropped`.
    pub fn dequeue(&mut self, now: u64, dropped: &mut Vec<PacketId>) -> Option<Waiting> {
        match &mut self.law {
            Law::Codel(codel) => codel.dequeue(now, &mut self.fifo, dropped),
            Law::Pie(pie) => {
                let first = self.fifo.pop()?;
                pie.left(now, first.came, &self.fifo);
                Some(first)
            }
        }
    }
}
