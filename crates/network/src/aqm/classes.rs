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
}

impl Classes {
    pub fn new(config: &PortConfig) -> Classes {
        Classes { port: Port::new(config), filter: HashMap::default(), said: Vec::new() }
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

    /// The packet to be sent, and its queue.
    pub fn dequeue(&mut self, now: u64) -> Option<(Waiting, usize)> {
        let now = Time::from_ps(now);
        let popped = self.port.pop(now)?;
        self.port.sent(now, popped.queue, u64::from(popped.packet.bytes));
        Some((popped.packet, popped.queue))
    }
}
