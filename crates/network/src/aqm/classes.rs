//! Queues by class, as routers have them: a filter puts a flow into a queue, a scheduler chooses among the queues.
//!
//! The queues, their limits, shapers and the scheduler are those of a P4 switch's port ([`switch::Port`]). Flows that the filter
//! does not know go to the first queue.

use std::collections::HashMap;

use switch::{Port, PortConfig, Queued};
use units::Time;

use super::{FlowKey, Waiting};

impl Queued for Waiting {
    fn bytes(&self) -> u64 {
        u64::from(self.bytes)
    }

    fn came(&self) -> u64 {
        self.came
    }
}

#[derive(Debug)]
pub(crate) struct Classes {
    pub port: Port<Waiting>,
    filter: HashMap<FlowKey, u32, foldhash::fast::FixedState>,
}

impl Classes {
    pub fn new(config: &PortConfig) -> Classes {
        Classes { port: Port::new(config), filter: HashMap::default() }
    }

    /// Puts a flow's packets into a queue from now on, or into the first as those of unknown flows.
    pub fn assign(&mut self, key: FlowKey, queue: Option<u32>) {
        match queue {
            Some(queue) => self.filter.insert(key, queue),
            None => self.filter.remove(&key),
        };
    }

    /// Takes a packet; gives whether the port is to be asked for one now. `None`: there is no room.
    pub fn enqueue(&mut self, key: FlowKey, waiting: Waiting) -> Option<bool> {
        let queue = self.filter.get(&key).copied().unwrap_or(0) as usize;
        self.port.push(queue.min(self.port.len() - 1), waiting).ok()
    }

    /// The packet to be sent, and its queue.
    pub fn dequeue(&mut self, now: u64) -> Option<(Waiting, usize)> {
        let now = Time::from_ps(now);
        let popped = self.port.pop(now)?;
        self.port.sent(now, popped.queue, u64::from(popped.packet.bytes));
        Some((popped.packet, popped.queue))
    }
}
