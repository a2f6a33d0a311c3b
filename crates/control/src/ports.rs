//! Settings of ports: queues, the scheduler that chooses among them, shapers.

use units::{Bytes, Rate, Time};

use crate::{Error, Kind, Result};

/// A rate, and how many bytes may go at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shaping {
    pub rate: Rate,
    pub burst: Bytes,
}

impl Shaping {
    fn check(&self, what: &str) -> Result<()> {
        if self.rate.is_zero() || self.burst.is_zero() {
            let error = Error::invalid(format!("the shaper of {what} lets nothing through"));
            return Err(error.of(what).field("shaper").cure("give it a rate and a burst above 0"));
        }
        Ok(())
    }
}

/// How long a queue may get; a packet that would go beyond is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueLimit {
    pub packets: Option<u64>,
    pub bytes: Option<Bytes>,
}

/// What is set of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueConfig {
    pub limit: QueueLimit,
    /// Share of the port, for the round robins.
    pub weight: u32,
    /// How much earlier its packets count as having come, for the time-shifted FIFO.
    pub time_shift: Time,
    pub shaping: Option<Shaping>,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig { limit: QueueLimit::default(), weight: 1, time_shift: Time::ZERO, shaping: None }
    }
}

impl From<QueueLimit> for QueueConfig {
    fn from(limit: QueueLimit) -> QueueConfig {
        QueueConfig { limit, ..QueueConfig::default() }
    }
}

impl QueueConfig {
    fn check(&self, what: &str) -> Result<()> {
        if self.limit.packets == Some(0) || self.limit.bytes.is_some_and(|b| b.is_zero()) {
            let error = Error::invalid(format!("{what} holds nothing")).field("limit");
            return Err(error.of(what).cure("give it room for a packet"));
        }
        self.shaping.map_or(Ok(()), |shaping| shaping.check(what))?;
        if self.weight == 0 {
            let error = Error::invalid(format!("{what} has the weight 0")).field("weight");
            return Err(error.of(what).cure("give it one above 0"));
        }
        Ok(())
    }
}

/// How a port chooses among its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduler {
    /// The queue with the highest number goes first.
    #[default]
    StrictPriority,
    /// Deficit round robin (Shreedhar and Varghese 1995): in a round each queue may send `quantum` times its weight. A queue
    /// that is empty saves nothing up.
    DeficitRoundRobin { quantum: Bytes },
    /// For two queues, of which the one with the higher number goes first as long as it leaves the other its share by weights
    /// (RFC 9332 section 4.2.2 and appendix A.1). Shares count only while packets wait in both, and anew when none has waited: the
    /// first queue may then send `quantum` times its weight before the other has a turn.
    WeightedRoundRobin { quantum: Bytes },
    /// Whichever packet has waited longest, its queue's `time_shift` added (RFC 9332 section 4.1.2 and appendix A).
    TimeShiftedFifo,
}

impl Scheduler {
    pub const NAMES: [&str; 4] =
        ["strict priority", "deficit round robin", "weighted round robin", "time-shifted FIFO"];

    /// # Errors
    /// A name that is none of [`Scheduler::NAMES`].
    pub fn named(name: &str, quantum: Bytes) -> Result<Scheduler> {
        Ok(match name {
            "strict priority" => Scheduler::StrictPriority,
            "deficit round robin" => Scheduler::DeficitRoundRobin { quantum },
            "weighted round robin" => Scheduler::WeightedRoundRobin { quantum },
            "time-shifted FIFO" => Scheduler::TimeShiftedFifo,
            other => {
                let known = Scheduler::NAMES.join(", ");
                let error = Error::new(Kind::NotFound, format!("there is no scheduler `{other}`"));
                return Err(error.field("scheduler").cure(format!("known: {known}")));
            }
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Scheduler::StrictPriority => Scheduler::NAMES[0],
            Scheduler::DeficitRoundRobin { .. } => Scheduler::NAMES[1],
            Scheduler::WeightedRoundRobin { .. } => Scheduler::NAMES[2],
            Scheduler::TimeShiftedFifo => Scheduler::NAMES[3],
        }
    }

    /// Of the round robins; 0 for the others.
    pub fn quantum(self) -> Bytes {
        match self {
            Scheduler::DeficitRoundRobin { quantum } | Scheduler::WeightedRoundRobin { quantum } => quantum,
            Scheduler::StrictPriority | Scheduler::TimeShiftedFifo => Bytes::new(0),
        }
    }
}

/// What is set of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortConfig {
    /// `standard_metadata.priority` chooses by number; a priority beyond the last queue uses the last.
    pub queues: Vec<QueueConfig>,
    pub scheduler: Scheduler,
    pub shaping: Option<Shaping>,
}

impl PortConfig {
    /// Queues by strict priority.
    pub fn new(queues: impl IntoIterator<Item = impl Into<QueueConfig>>) -> PortConfig {
        let queues = queues.into_iter().map(Into::into).collect();
        PortConfig { queues, scheduler: Scheduler::default(), shaping: None }
    }

    /// # Errors
    /// No queue, a queue that holds nothing, a shaper without a rate, a weight or quantum of zero, a scheduler that is not for
    /// so many queues.
    pub fn check(&self, port: u32) -> Result<()> {
        let what = format!("port {port}");
        if self.queues.is_empty() {
            let error = Error::invalid(format!("{what} has no queue")).field("queues");
            return Err(error.of(what).cure("give it at least one"));
        }
        self.shaping.map_or(Ok(()), |shaping| shaping.check(&what))?;
        for (number, queue) in self.queues.iter().enumerate() {
            queue.check(&format!("queue {number} of {what}"))?;
        }
        match self.scheduler {
            Scheduler::DeficitRoundRobin { quantum } | Scheduler::WeightedRoundRobin { quantum }
                if quantum.is_zero() =>
            {
                let error = Error::invalid(format!("{what} has a quantum of 0 bytes")).field("quantum");
                Err(error.of(what).cure("give it about one packet"))
            }
            Scheduler::WeightedRoundRobin { .. } if self.queues.len() != 2 => {
                let error = Error::invalid(format!("{what} has {} queues", self.queues.len()));
                Err(error.of(what).field("scheduler").cure("the weighted round robin is for two"))
            }
            _ => Ok(()),
        }
    }
}
