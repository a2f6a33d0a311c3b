//! Queues by class, as routers have them: a filter puts a flow into a queue, a scheduler chooses among the queues.
//!
//! The queues, their limits, shapers and the scheduler are those of a P4 switch's port ([`switch::Port`]). Flows that the filter
//! does not know go to the first queue.

use std::collections::HashMap;

use switch::{Port, PortConfig, Queued};
use units::Time;

use super::{Flow, FlowKey, Waiting};

impl Queued for Waiting {
    fn bytes(&self) -> u64 {
        u64::from(self.bytes)
    }

    fn came(&self) -> u64 {
        self.came
    }
}

/// In place of a queue's number: it is not known, or too large to be kept.
const UNKNOWN: u8 = u8::MAX;

#[derive(Debug)]
pub(crate) struct Classes {
    pub port: Port<Waiting>,
    filter: HashMap<FlowKey, u32, foldhash::fast::FixedState>,
    /// By endpoint, what the filter has said of packets for it: a byte for each rather than a look into the filter.
    said: Vec<u8>,
    /// Since when packets wait, if they do; and how long the wire has been idle while some did, up to the last that was sent.
    since: u64,
    stalled: u64,
}

impl Classes {
    pub fn new(config: &PortConfig) -> Classes {
        Classes {
            port: Port::new(config),
            filter: HashMap::default(),
            said: Vec::new(),
            since: 0,
            stalled: 0,
        }
    }

    /// Puts a flow's packets into a queue from now on, or into the first as those of unknown flows.
    pub fn assign(&mut self, key: FlowKey, queue: Option<u32>) {
        self.said.clear();
        match queue {
            Some(queue) => self.filter.insert(key, queue),
            None => self.filter.remove(&key),
        };
    }

    /// Takes a packet; gives whether the port is to be asked for one now. `None`: there is no room.
    pub fn enqueue(&mut self, flow: Flow<impl FnOnce() -> FlowKey>, waiting: Waiting) -> Option<bool> {
        let queue = self.queue_of(flow) as usize;
        if self.port.waiting() == 0 {
            self.since = waiting.came;
        }
        self.port.push(queue.min(self.port.len() - 1), waiting).ok()
    }

    fn queue_of(&mut self, Flow { endpoint, key }: Flow<impl FnOnce() -> FlowKey>) -> u32 {
        let said = endpoint.and_then(|endpoint| self.said.get(endpoint as usize));
        if let Some(queue) = said.filter(|queue| **queue != UNKNOWN) {
            return u32::from(*queue);
        }
        let queue = self.filter.get(&key()).copied().unwrap_or(0);
        if let Some(endpoint) = endpoint {
            let place = endpoint as usize;
            if self.said.len() <= place {
                self.said.resize(place + 1, UNKNOWN);
            }
            self.said[place] = u8::try_from(queue).unwrap_or(UNKNOWN);
        }
        queue
    }

    /// The packet to be sent by a wire that is free since `free_at`, and its queue.
    pub fn dequeue(&mut self, now: u64, free_at: u64) -> Option<(Waiting, usize)> {
        let popped = self.port.pop(Time::from_ps(now))?;
        self.stalled += now.saturating_sub(self.since.max(free_at));
        let now = Time::from_ps(now);
        self.port.sent(now, popped.queue, u64::from(popped.packet.bytes));
        Some((popped.packet, popped.queue))
    }

    /// How long a wire that is free since `free_at` has been idle while packets waited for it, in picoseconds.
    pub fn stalled(&self, now: u64, free_at: u64) -> u64 {
        let still = if self.port.waiting() > 0 { now.saturating_sub(self.since.max(free_at)) } else { 0 };
        self.stalled + still
    }
}

#[cfg(test)]
mod tests {
    use control::{QueueConfig, QueueLimit, Shaping};
    use units::{Bytes, Rate};

    use super::*;
    use crate::pool::PacketId;

    const US: u64 = 1_000_000;

    fn classes(shaping: Option<Shaping>) -> Classes {
        Classes::new(&PortConfig::new([QueueConfig { shaping, ..QueueLimit::default().into() }]))
    }

    fn offer(classes: &mut Classes, came: u64) {
        let flow = Flow { endpoint: None, key: FlowKey::default };
        let waiting = Waiting { packet: PacketId::default(), bytes: 1000, came };
        assert!(classes.enqueue(flow, waiting).is_some());
    }

    #[test]
    fn a_wire_is_stalled_while_a_shaper_holds_packets_back() {
        let shaping = Shaping { rate: Rate::from_bps(8_000_000), burst: Bytes::new(1500) };
        let mut shaped = classes(Some(shaping));
        offer(&mut shaped, 0);
        offer(&mut shaped, 0);
        assert!(shaped.dequeue(0, 0).is_some());
        // The wire is free again at 1 us; the next packet may go when 500 bytes more have come, at 500 us.
        assert!(shaped.dequeue(US, US).is_none());
        assert_eq!(shaped.stalled(100 * US, US), 99 * US);
        assert!(shaped.dequeue(600 * US, US).is_some());
        assert_eq!(shaped.stalled(9000 * US, 601 * US), 599 * US);
        // Idle with nothing to send does not count; from the next packet on it would.
        offer(&mut shaped, 10_000 * US);
        assert_eq!(shaped.stalled(10_001 * US, 601 * US), 600 * US);
    }

    #[test]
    fn a_wire_is_not_stalled_without_shapers() {
        let mut plain = classes(None);
        for (at, packets, free_at) in [(0, 1, 0), (700 * US, 2, US)] {
            (0..packets).for_each(|_| offer(&mut plain, at));
            assert!(plain.dequeue(at, free_at).is_some());
        }
        assert!(plain.dequeue(701 * US, 701 * US).is_some());
        assert_eq!(plain.stalled(9000 * US, 702 * US), 0);
    }
}
