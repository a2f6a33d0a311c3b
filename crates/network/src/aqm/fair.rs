//! Queues by flow: deficit round robin over all flows (Shreedhar and Varghese 1995), and FQ-CoDel (RFC 8290).
//!
//! | | deficit round robin | FQ-CoDel |
//! |---|---|---|
//! | queues | one for each flow that has packets here | 1024, by a hash of addresses, protocol and ports with a salt |
//! | a new flow | at the end of the round | before the flows that have had a turn |
//! | in a queue | first in, first out | CoDel |
//! | no room | the last packet of the longest queue goes | half of the longest queue goes, from its head, 64 packets at most |

use std::collections::{HashMap, VecDeque};

use super::codel::Codel;
use super::{Fifo, FlowKey, Waiting};
use crate::pool::PacketId;
use crate::port::QueueLimit;

/// RFC 8290 section 5.2.3.
const QUEUES: u32 = 1024;

/// Section 4.1.3.
const BATCH: u64 = 64;

/// Which round a flow takes part in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Idle,
    New,
    Old,
}

#[derive(Debug)]
struct Flow {
    key: FlowKey,
    fifo: Fifo,
    codel: Option<Codel>,
    /// Bytes that it may still send in its turn.
    deficit: i64,
    round: Round,
}

/// Where a flow's queue is.
#[derive(Debug)]
enum Places {
    Hashed { salt: u64 },
    Exact { by_key: HashMap<FlowKey, u32, foldhash::fast::FixedState>, free: Vec<u32> },
}

#[derive(Debug)]
pub(crate) struct Fair {
    flows: Vec<Flow>,
    places: Places,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// Bytes of a turn: the largest packet.
    quantum: i64,
    packets: u64,
    bytes: u64,
}

impl Fair {
    /// One queue for each flow.
    pub fn drr(largest: u32) -> Fair {
        let places = Places::Exact { by_key: HashMap::default(), free: Vec::new() };
        Fair::made(largest, Vec::new(), places)
    }

    /// RFC 8290. Who knows the salt can choose flows that share a queue with another.
    pub fn fq_codel(largest: u32, salt: u64) -> Fair {
        let flow = |_| Flow::new(FlowKey::default(), Some(Codel::new(u64::from(largest))));
        Fair::made(largest, (0..QUEUES).map(flow).collect(), Places::Hashed { salt })
    }

    fn made(largest: u32, flows: Vec<Flow>, places: Places) -> Fair {
        let (new, old) = (VecDeque::new(), VecDeque::new());
        Fair { flows, places, new, old, quantum: i64::from(largest), packets: 0, bytes: 0 }
    }

    pub fn len(&self) -> u64 {
        self.packets
    }

    /// All packets that wait.
    pub fn waiting_mut(&mut self) -> impl Iterator<Item = &mut Waiting> {
        self.flows.iter_mut().flat_map(|flow| flow.fifo.waiting_mut())
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether more waits than may.
    pub fn over(&self, limit: &QueueLimit) -> bool {
        limit.packets.is_some_and(|most| self.packets > most)
            || limit.bytes.is_some_and(|most| self.bytes > most.get())
    }

    /// The queue of a flow.
    fn place(&mut self, key: FlowKey) -> u32 {
        let (by_key, free) = match &mut self.places {
            Places::Hashed { salt } => return (key.hash(*salt) % u64::from(QUEUES)) as u32,
            Places::Exact { by_key, free } => (by_key, free),
        };
        *by_key.entry(key).or_insert_with(|| match free.pop() {
            Some(place) => {
                self.flows[place as usize].key = key;
                place
            }
            None => {
                self.flows.push(Flow::new(key, None));
                self.flows.len() as u32 - 1
            }
        })
    }

    pub fn enqueue(&mut self, key: FlowKey, waiting: Waiting) {
        let place = self.place(key);
        let flow = &mut self.flows[place as usize];
        flow.fifo.push(waiting);
        self.packets += 1;
        self.bytes += u64::from(waiting.bytes);
        if flow.round == Round::Idle {
            let hashed = matches!(self.places, Places::Hashed { .. });
            (flow.deficit, flow.round) = (self.quantum, if hashed { Round::New } else { Round::Old });
            if hashed { &mut self.new } else { &mut self.old }.push_back(place);
        }
    }

    /// Drops from the longest queue, as there is no room.
    pub fn shorten(&mut self, dropped: &mut Vec<PacketId>) {
        let active = self.new.iter().chain(&self.old);
        let Some(longest) = active.max_by_key(|place| self.flows[**place as usize].fifo.bytes()) else {
            return;
        };
        let fifo = &mut self.flows[*longest as usize].fifo;
        let (before, size) = (fifo.len(), fifo.bytes());
        match self.places {
            Places::Exact { .. } => dropped.extend(fifo.pop_last().map(|last| last.packet)),
            Places::Hashed { .. } => {
                let goes = (before / 2).clamp(1, BATCH);
                dropped.extend((0..goes).map_while(|_| fifo.pop()).map(|first| first.packet));
            }
        }
        self.packets -= before - fifo.len();
        self.bytes -= size - fifo.bytes();
    }

    /// The packet to be sent; those before it that CoDel drops go to `dropped`.
    pub fn dequeue(&mut self, now: u64, dropped: &mut Vec<PacketId>) -> Option<Waiting> {
        loop {
            let of_new = !self.new.is_empty();
            let round = if of_new { &mut self.new } else { &mut self.old };
            let place = *round.front()?;
            let flow = &mut self.flows[place as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                flow.round = Round::Old;
                round.pop_front();
                self.old.push_back(place);
                continue;
            }
            let (before, size) = (flow.fifo.len(), flow.fifo.bytes());
            let next = match &mut flow.codel {
                Some(codel) => codel.dequeue(now, &mut flow.fifo, dropped),
                None => flow.fifo.pop(),
            };
            self.packets -= before - flow.fifo.len();
            self.bytes -= size - flow.fifo.bytes();
            if let Some(next) = next {
                flow.deficit -= i64::from(next.bytes);
                return Some(next);
            }
            round.pop_front();
            // A new flow has a turn among the others before it is forgotten, lest it be new again at once (section 4.2).
            if of_new {
                flow.round = Round::Old;
                self.old.push_back(place);
            } else {
                flow.round = Round::Idle;
                if let Places::Exact { by_key, free } = &mut self.places {
                    by_key.remove(&flow.key);
                    free.push(place);
                }
            }
        }
    }
}

impl Flow {
    fn new(key: FlowKey, codel: Option<Codel>) -> Flow {
        Flow { key, fifo: Fifo::default(), codel, deficit: 0, round: Round::Idle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(packet: u32, bytes: u32, came: u64) -> Waiting {
        Waiting { packet, bytes, came }
    }

    fn key(n: u16) -> FlowKey {
        FlowKey::new([10, 0, 0, 1], [10, 0, 0, 2], 6, n, 80)
    }

    /// Flows of small and large packets send the same number of bytes.
    #[test]
    fn bytes_are_shared() {
        let mut fair = Fair::drr(1514);
        for n in 0..3000 {
            fair.enqueue(key(1), packet(1, 1514, 0));
            if n < 1000 {
                fair.enqueue(key(2), packet(2, 100, 0));
                fair.enqueue(key(3), packet(3, 600, 0));
            }
        }
        let mut sent = [0u64; 4];
        for _ in 0..600 {
            let next = fair.dequeue(0, &mut Vec::new()).expect("packets wait");
            sent[next.packet as usize] += u64::from(next.bytes);
        }
        assert!(sent[1].abs_diff(sent[2]) <= 2 * 1514 && sent[1].abs_diff(sent[3]) <= 2 * 1514, "{sent:?}");
    }

    /// All that goes in comes out or is dropped, in order within a flow, and nothing of a flow stays.
    #[test]
    fn nothing_is_lost() {
        let mut random = units::Random::new(7);
        for mut fair in [Fair::drr(1514), Fair::fq_codel(1514, 0)] {
            let (mut dropped, mut out) = (Vec::new(), Vec::new());
            for n in 0..20_000u32 {
                let flow = (random.unit() * 40.0) as u16;
                fair.enqueue(key(flow), packet(u32::from(flow) << 20 | n, 1500, u64::from(n)));
                if fair.len() > 100 {
                    fair.shorten(&mut dropped);
                }
                if random.chance(0.9) {
                    out.extend(fair.dequeue(u64::from(n), &mut dropped).map(|w| w.packet));
                }
            }
            while let Some(next) = fair.dequeue(20_000, &mut dropped) {
                out.push(next.packet);
            }
            assert_eq!((fair.len(), fair.bytes()), (0, 0));
            assert_eq!(out.len() + dropped.len(), 20_000);
            for flow in 0..40 {
                let of: Vec<&u32> = out.iter().filter(|p| **p >> 20 == flow).collect();
                assert!(of.is_sorted());
            }
            assert!(fair.new.is_empty() && fair.old.is_empty());
            if let Places::Exact { by_key, free } = &fair.places {
                assert!(by_key.is_empty() && free.len() == fair.flows.len() && free.len() <= 40);
            }
        }
    }

    /// A flow that sends now and then goes before those that have a queue.
    #[test]
    fn sparse_flows_go_first() {
        let mut fair = Fair::fq_codel(1514, 0);
        for n in 0..100 {
            fair.enqueue(key(1), packet(n, 1514, 0));
        }
        fair.dequeue(0, &mut Vec::new());
        fair.dequeue(0, &mut Vec::new());
        fair.enqueue(key(2), packet(1000, 100, 0));
        assert_eq!(fair.dequeue(0, &mut Vec::new()).map(|w| w.packet), Some(1000));
    }

    /// Flows that share a queue with one salt do not with most others (section 4.1).
    #[test]
    fn the_salt_chooses_who_shares_a_queue() {
        let share = |salt: u64| {
            let mut fair = Fair::fq_codel(1514, salt);
            let mine = fair.place(key(0));
            (1..20_000).filter(|n| fair.place(key(*n)) == mine).collect::<Vec<u16>>()
        };
        let chosen = share(0);
        assert!((5..50).contains(&chosen.len()), "{}", chosen.len());
        assert_eq!(share(0), chosen);
        for salt in 1..20 {
            let still = share(salt).iter().filter(|n| chosen.contains(n)).count();
            assert!(still <= 2, "{still} of {} with salt {salt}", chosen.len());
        }
    }

    /// The longest queue loses its packets, and no other.
    #[test]
    fn overflow_hits_the_longest() {
        let mut fair = Fair::fq_codel(1514, 0);
        for n in 0..200 {
            fair.enqueue(key(1), packet(n, 1514, 0));
        }
        fair.enqueue(key(2), packet(1000, 100, 0));
        let mut dropped = Vec::new();
        fair.shorten(&mut dropped);
        assert_eq!(dropped, (0..64).collect::<Vec<_>>());
        assert_eq!(fair.len(), 137);
    }
}
