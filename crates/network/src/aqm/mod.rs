//! Queue management of a plain port: a queue that is asked as packets come and leave, in place of drop tail alone.
//!
//! Such a port pulls, as a switch's does: which packet leaves is known when the wire is free, and not before. The queue's own limit
//! holds all the same. Packets are dropped, also those that could be marked.
//!
//! | file | what |
//! |---|---|
//! | `codel` | RFC 8289 |
//! | `pie` | RFC 8033 |
//! | `fair` | deficit round robin over flows; FQ-CoDel, RFC 8290 |
//! | `classes` | queues by class, as routers have them |

mod classes;
mod codel;
mod fair;
mod pie;

use std::collections::VecDeque;

use crate::pool::PacketId;
use crate::port::QueueLimit;
use units::Random;

pub(crate) use classes::Classes;
use codel::Codel;
use fair::Fair;
use pie::Pie;

/// How a port's queue is managed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aqm {
    /// RFC 8289, with its target of 5 ms and interval of 100 ms.
    Codel,
    /// RFC 8033, with its target of 15 ms.
    Pie,
    /// A queue for each flow, and deficit round robin.
    Drr,
    /// RFC 8290.
    FqCodel,
}

impl Aqm {
    /// Names, as [`Aqm::by_name`] knows them.
    pub const NAMES: [&'static str; 4] = ["codel", "pie", "drr", "fq_codel"];

    pub fn by_name(name: &str) -> Option<Aqm> {
        match name {
            "codel" => Some(Aqm::Codel),
            "pie" => Some(Aqm::Pie),
            "drr" => Some(Aqm::Drr),
            "fq_codel" => Some(Aqm::FqCodel),
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

/// Which flow a packet is of: addresses, protocol and ports, in one direction. What is no IPv4 packet is of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FlowKey(u128);

impl FlowKey {
    pub fn new(from: [u8; 4], to: [u8; 4], protocol: u8, port_from: u16, port_to: u16) -> FlowKey {
        let addresses = u128::from(u32::from_be_bytes(from)) << 32 | u128::from(u32::from_be_bytes(to));
        let ports = u128::from(port_from) << 16 | u128::from(port_to);
        FlowKey(u128::from(protocol) << 96 | addresses << 32 | ports)
    }

    /// All bits depend on all of the key's, and of the salt's.
    fn hash(self, salt: u64) -> u64 {
        use std::hash::BuildHasher;
        foldhash::quality::FixedState::with_seed(salt).hash_one(self)
    }
}

/// The flow of a packet: the endpoint that it is for, if it is still the segment that a host made, and how its key is found.
pub(crate) struct Flow<K> {
    pub endpoint: Option<u32>,
    pub key: K,
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

    /// All that wait.
    pub fn waiting_mut(&mut self) -> impl Iterator<Item = &mut Waiting> {
        self.waiting.iter_mut()
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

    fn pop_last(&mut self) -> Option<Waiting> {
        let last = self.waiting.pop_back()?;
        self.bytes -= u64::from(last.bytes);
        Some(last)
    }
}

/// A managed queue, or several.
#[derive(Debug)]
pub(crate) enum Managed {
    Codel(Fifo, Codel),
    Pie(Fifo, Pie),
    Fair(Fair),
    Classes(Classes),
}

/// What became of a packet that was handed to a managed queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offered {
    /// It waits; `ask`: the queue is to be asked for a packet as soon as the wire is free.
    Waits {
        ask: bool,
    },
    Dropped,
}

impl Managed {
    /// For packets of up to `largest` bytes; the salt is for a hash of flows.
    pub fn new(aqm: Aqm, largest: u32, salt: u64) -> Managed {
        match aqm {
            Aqm::Codel => Managed::Codel(Fifo::default(), Codel::new(u64::from(largest))),
            Aqm::Pie => Managed::Pie(Fifo::default(), Pie::new(u64::from(largest))),
            Aqm::Drr => Managed::Fair(Fair::drr(largest)),
            Aqm::FqCodel => Managed::Fair(Fair::fq_codel(largest, salt)),
        }
    }

    /// Packets that wait.
    pub fn len(&self) -> u64 {
        match self {
            Managed::Codel(fifo, _) | Managed::Pie(fifo, _) => fifo.len(),
            Managed::Fair(fair) => fair.len(),
            Managed::Classes(classes) => classes.port.waiting(),
        }
    }

    /// All packets that wait.
    pub fn waiting_mut(&mut self) -> Vec<&mut Waiting> {
        match self {
            Managed::Codel(fifo, _) | Managed::Pie(fifo, _) => fifo.waiting_mut().collect(),
            Managed::Fair(fair) => fair.waiting_mut().collect(),
            Managed::Classes(classes) => classes.port.waiting_mut().collect(),
        }
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        match self {
            Managed::Codel(fifo, _) | Managed::Pie(fifo, _) => fifo.bytes(),
            Managed::Fair(fair) => fair.bytes(),
            Managed::Classes(classes) => classes.port.bytes(),
        }
    }

    /// Whether there is no room for a packet of that many bytes.
    fn full(&self, limit: &QueueLimit, bytes: u64) -> bool {
        limit.packets.is_some_and(|most| self.len() >= most)
            || limit.bytes.is_some_and(|most| self.bytes() + bytes > most.get())
    }

    /// Takes a packet, or drops it. Packets that are dropped for it go to `dropped`. A queue may be full only while the wire is `busy`;
    /// queues by class have limits of their own.
    pub fn enqueue(
        &mut self,
        flow: Flow<impl FnOnce() -> FlowKey>,
        waiting: Waiting,
        (limit, busy): (&QueueLimit, bool),
        random: &mut Random,
        dropped: &mut Vec<PacketId>,
    ) -> Offered {
        let full = busy && self.full(limit, u64::from(waiting.bytes));
        match self {
            Managed::Codel(..) | Managed::Pie(..) if full => return Offered::Dropped,
            Managed::Codel(fifo, _) => fifo.push(waiting),
            Managed::Pie(fifo, pie) => {
                if pie.drops(waiting.came, fifo, random) {
                    return Offered::Dropped;
                }
                fifo.push(waiting);
            }
            Managed::Fair(fair) => {
                fair.enqueue((flow.key)(), waiting);
                while busy && fair.over(limit) {
                    fair.shorten(dropped);
                }
            }
            Managed::Classes(classes) => {
                return match classes.enqueue(flow, waiting) {
                    Some(ask) => Offered::Waits { ask },
                    None => Offered::Dropped,
                };
            }
        }
        Offered::Waits { ask: self.len() == 1 }
    }

    /// The packet to be sent by a wire that is free since `free_at`, and its queue; those before it that are dropped go to `dropped`.
    pub fn dequeue(
        &mut self,
        now: u64,
        free_at: u64,
        dropped: &mut Vec<PacketId>,
    ) -> Option<(Waiting, usize)> {
        match self {
            Managed::Codel(fifo, codel) => Some((codel.dequeue(now, fifo, dropped)?, 0)),
            Managed::Pie(fifo, pie) => {
                let first = fifo.pop()?;
                pie.left(now, first.came, fifo);
                Some((first, 0))
            }
            Managed::Fair(fair) => Some((fair.dequeue(now, dropped)?, 0)),
            Managed::Classes(classes) => classes.dequeue(now, free_at),
        }
    }

    /// How long a wire that is free since `free_at` has been idle while packets waited for it: only shapers of classes hold back.
    pub fn stalled(&self, now: u64, free_at: u64) -> u64 {
        match self {
            Managed::Classes(classes) => classes.stalled(now, free_at),
            _ => 0,
        }
    }

    /// The packet that waits behind the one that a queue has just given away, where packets of a queue keep their order.
    pub fn behind(&self, queue: usize) -> Option<PacketId> {
        match self {
            Managed::Codel(fifo, _) | Managed::Pie(fifo, _) => fifo.waiting.front().map(|first| first.packet),
            Managed::Classes(classes) => classes.port.first(queue).map(|first| first.packet),
            Managed::Fair(_) => None,
        }
    }

    /// From when on there is something to send; `None`: nothing waits.
    pub fn next(&self) -> Option<u64> {
        match self {
            Managed::Classes(classes) => classes.port.next().map(units::Time::as_ps),
            _ => (self.len() > 0).then_some(0),
        }
    }
}
