//! A port: queues, the scheduler that chooses among them, and a shaper. What waits is a P4 switch's packet, or any other.

use std::collections::VecDeque;

use control::{PortConfig, QueueState, Scheduler};
use dataplane::pipeline::QueueInfo;
use units::Time;

use crate::queue::{Queue, Queued, Waiting};
use crate::scheduler::{Choice, Round, choose};
use crate::shaper::Shaper;

/// A packet that has left its queue.
#[derive(Debug)]
pub struct Popped<T> {
    pub packet: T,
    pub queue: usize,
    /// What it found, and what it leaves.
    pub info: QueueInfo,
    /// Picoseconds in the queue.
    pub waited: u64,
    /// On the wire, as it came.
    pub(crate) bytes: u64,
    /// Of the weighted round robin, before it left.
    pub(crate) credit: Option<i64>,
}

/// Queues, a scheduler and a shaper.
#[derive(Debug)]
pub struct Port<T> {
    pub(crate) queues: Vec<Queue<T>>,
    scheduler: Scheduler,
    shaper: Option<Shaper>,
    round: Round,
    /// Packets waiting in all queues.
    waiting: u64,
    /// Shapers held back what waits when it was last asked for.
    held_until: Option<Time>,
}

impl<T: Queued> Port<T> {
    pub fn new(config: &PortConfig) -> Port<T> {
        Port {
            queues: config.queues.iter().map(|q| Queue::new(*q)).collect(),
            scheduler: config.scheduler,
            shaper: config.shaping.map(Shaper::new),
            round: Round::default(),
            waiting: 0,
            held_until: None,
        }
    }

    /// What is set of it.
    pub fn config(&self) -> PortConfig {
        PortConfig {
            queues: self.queues.iter().map(|q| q.config).collect(),
            scheduler: self.scheduler,
            shaping: self.shaper.map(|s| s.shaping),
        }
    }

    /// Sets it anew. What waits in a queue that is taken away goes to the last one that is left.
    pub fn configure(&mut self, config: &PortConfig) {
        for (queue, new) in self.queues.iter_mut().zip(&config.queues) {
            queue.configure(*new);
        }
        for new in config.queues.iter().skip(self.queues.len()) {
            self.queues.push(Queue::new(*new));
        }
        let removed: Vec<Queue<T>> = self.queues.drain(config.queues.len()..).collect();
        if let Some(last) = self.queues.last_mut() {
            removed.into_iter().for_each(|queue| last.adopt(queue));
        }
        if self.shaper.map(|s| s.shaping) != config.shaping {
            self.shaper = config.shaping.map(Shaper::new);
        }
        self.scheduler = config.scheduler;
    }

    /// Takes out all that waits.
    pub(crate) fn take(&mut self) -> Vec<VecDeque<Waiting<T>>> {
        self.held_until = None;
        self.waiting = 0;
        self.queues.iter_mut().map(Queue::take).collect()
    }

    /// All packets that wait.
    pub fn waiting_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.queues.iter_mut().flat_map(Queue::packets_mut)
    }

    #[inline]
    fn choose(&mut self, now: Time) -> Choice {
        if self.waiting == 0 {
            return Choice::Empty;
        }
        if let [queue] = &self.queues[..]
            && queue.shaper.is_none()
            && self.shaper.is_none()
        {
            return Choice::Queue(0);
        }
        // The port's shaper goes by what waits; what egress makes of it is charged afterwards.
        let choice = match self.opens() {
            at if at > now => Choice::Wait(at),
            _ => choose(self.scheduler, &mut self.round, &mut self.queues, now),
        };
        self.held_until = match choice {
            Choice::Wait(at) => Some(at),
            _ => None,
        };
        choice
    }

    /// The queue that a packet would go through without waiting, if the wire is free: there is nothing to wait for, and no
    /// turn to keep.
    #[inline(always)]
    pub(crate) fn open(&self, priority: u32, bytes: u64) -> Option<usize> {
        let in_turn = matches!(self.scheduler, Scheduler::DeficitRoundRobin { .. }) && self.queues.len() > 1;
        if self.waiting > 0 || self.shaper.is_some() || in_turn {
            return None;
        }
        let index = self.queue_of(priority);
        self.queues[index].open(bytes).then_some(index)
    }

    /// The queue that packets of a priority wait in.
    #[inline]
    pub(crate) fn queue_of(&self, priority: u32) -> usize {
        (priority as usize).min(self.queues.len() - 1)
    }

    /// Takes a packet into a queue; gives whether the port is to be asked for one now. Gives the packet back if the queue is full.
    ///
    /// # Errors
    /// A full queue.
    #[inline]
    pub fn push(&mut self, index: usize, packet: T) -> Result<bool, T> {
        let queue = &mut self.queues[index];
        let was_empty = queue.first().is_none();
        queue.push(packet)?;
        self.waiting += 1;
        if self.waiting == 1 {
            self.round.credit = None;
        }
        Ok(self.waiting == 1 || (was_empty && self.held_until.is_some()))
    }

    /// Takes the next packet out of its queue, if shapers do not hold it back.
    #[inline(always)]
    pub fn pop(&mut self, now: Time) -> Option<Popped<T>> {
        let credit = self.round.credit;
        let Choice::Queue(index) = self.choose(now) else { return None };
        let queue = &mut self.queues[index];
        let (bytes, _) = queue.first()?;
        let (packet, info, waited) = queue.pop(now.as_ps())?;
        self.waiting -= 1;
        Some(Popped { packet, queue: index, info, waited, bytes, credit })
    }

    /// The first packet that waits in a queue.
    pub fn first(&self, queue: usize) -> Option<&T> {
        self.queues.get(queue)?.first_packet()
    }

    /// Sends nothing until then.
    pub(crate) fn hold(&mut self, until: Time) {
        self.held_until = Some(until);
    }

    /// A packet that was popped is not sent: it costs the port nothing.
    pub(crate) fn not_sent(&mut self, popped: &Popped<()>) {
        let queue = &mut self.queues[popped.queue];
        queue.statistics.dropped_in_egress += 1;
        match self.scheduler {
            Scheduler::DeficitRoundRobin { .. } => queue.deficit += popped.bytes,
            Scheduler::WeightedRoundRobin { .. } => self.round.credit = popped.credit,
            Scheduler::StrictPriority | Scheduler::TimeShiftedFifo => {}
        }
    }

    /// So many bytes of a queue are sent.
    #[inline]
    pub fn sent(&mut self, now: Time, queue: usize, bytes: u64) {
        let queue = &mut self.queues[queue];
        for shaper in [&mut queue.shaper, &mut self.shaper].into_iter().flatten() {
            shaper.charge(now, bytes);
        }
    }

    /// From when on it has something to send, as far as is known since it was last asked; `None`: nothing waits.
    pub fn next(&self) -> Option<Time> {
        (self.waiting > 0).then(|| self.held_until.unwrap_or(Time::ZERO))
    }

    /// Packets that wait.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.queues.iter().map(|queue| queue.depth().1).sum()
    }

    /// Queues.
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// What is in a queue, and its counts.
    pub fn queue(&self, now: Time, number: usize) -> Option<QueueState> {
        let queue = self.queues.get(number)?;
        let (waiting_packets, waiting_bytes) = queue.depth();
        let came = queue.first().map(|(_, came)| Time::from_ps(came));
        let counts = &queue.statistics;
        Some(QueueState {
            waiting_packets,
            waiting_bytes,
            head_wait: came.map_or(Time::ZERO, |came| now.saturating_sub(came)),
            packets: counts.packets,
            bytes: counts.bytes,
            dropped: counts.dropped,
            dropped_in_egress: counts.dropped_in_egress,
            wait_sum: counts.wait_ps,
            wait_max: counts.wait_max_ps,
        })
    }

    /// When the port's own shaper lets the smallest of the first packets through.
    fn opens(&self) -> Time {
        let Some(shaper) = &self.shaper else { return Time::ZERO };
        let smallest = self.queues.iter().filter_map(|q| q.first()).map(|(bytes, _)| bytes).min();
        shaper.opens(smallest.unwrap_or(0))
    }
}
