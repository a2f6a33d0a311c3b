//! Which queue of a port sends next.

use control::Scheduler;
use units::Time;

use crate::queue::{Queue, Queued};

/// What a port may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Queue(usize),
    /// Packets wait, but shapers hold them back until then.
    Wait(Time),
    Empty,
}

/// Where the round robins stand.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Round {
    turn: usize,
    /// The queue whose turn it is has got its quantum.
    credited: bool,
    /// Of the weighted round robin: bytes times weight that are queue 0's by right, if above 0; `None`: no packet has waited since.
    pub credit: Option<i64>,
}

impl Round {
    fn advance(&mut self, queues: usize) {
        self.turn = (self.turn + 1) % queues;
        self.credited = false;
    }
}

/// When the queue's first packet may leave; `None` if there is none.
fn opens<T: Queued>(queue: &Queue<T>) -> Option<Time> {
    queue.first().map(|(bytes, _)| queue.shaper.map_or(Time::ZERO, |s| s.opens(bytes)))
}

pub(crate) fn choose<T: Queued>(
    scheduler: Scheduler,
    round: &mut Round,
    queues: &mut [Queue<T>],
    now: Time,
) -> Choice {
    let mut earliest: Option<Time> = None;
    for queue in queues.iter() {
        if let Some(at) = opens(queue) {
            earliest = Some(earliest.map_or(at, |e| e.min(at)));
        }
    }
    match earliest {
        None => return Choice::Empty,
        Some(at) if at > now => return Choice::Wait(at),
        Some(_) => {}
    }
    let ready = |queue: &Queue<T>| opens(queue).is_some_and(|at| at <= now);
    let chosen = match scheduler {
        Scheduler::StrictPriority => queues.iter().rposition(ready),
        Scheduler::DeficitRoundRobin { quantum } => Some(by_deficit(quantum.get(), round, queues, now)),
        Scheduler::WeightedRoundRobin { quantum } => {
            let ready = [ready(&queues[0]), queues.get(1).is_some_and(ready)];
            Some(by_credit(quantum.get(), round, queues, ready))
        }
        Scheduler::TimeShiftedFifo => {
            let age = |queue: &Queue<T>| {
                let came = queue.first().map_or(u64::MAX, |(_, came)| came);
                now.as_ps().saturating_sub(came).saturating_add(queue.config.time_shift.as_ps())
            };
            let candidates = queues.iter().enumerate().filter(|(_, q)| ready(q));
            candidates.max_by_key(|(_, q)| age(q)).map(|(index, _)| index)
        }
    };
    chosen.map_or(Choice::Empty, Choice::Queue)
}

/// At least one queue is ready.
fn by_deficit<T: Queued>(quantum: u64, round: &mut Round, queues: &mut [Queue<T>], now: Time) -> usize {
    round.turn = round.turn.min(queues.len() - 1);
    loop {
        let queue = &mut queues[round.turn];
        let turn = quantum.saturating_mul(u64::from(queue.config.weight));
        match (queue.first(), opens(queue)) {
            (Some((bytes, _)), Some(at)) if at <= now => {
                if !round.credited {
                    queue.deficit = queue.deficit.saturating_add(turn);
                    round.credited = true;
                }
                if queue.deficit >= bytes {
                    queue.deficit -= bytes;
                    return round.turn;
                }
            }
            (None, _) => queue.deficit = 0,
            // Its shaper holds it back. It keeps what is left of one turn, or with each turn that a shaper ends early it would save up more.
            _ => queue.deficit = queue.deficit.min(turn),
        }
        round.advance(queues.len());
    }
}

/// Of two queues, at least one of which is ready.
fn by_credit<T: Queued>(quantum: u64, round: &mut Round, queues: &[Queue<T>], ready: [bool; 2]) -> usize {
    if ready != [true, true] {
        return usize::from(ready[1]);
    }
    let weight = |index: usize| i64::from(queues[index].config.weight);
    let quantum = i64::try_from(quantum).unwrap_or(i64::MAX);
    let credit = round.credit.unwrap_or_else(|| quantum.saturating_mul(weight(0) - weight(1)).min(0));
    let index = usize::from(credit <= 0);
    let bytes = queues[index].first().map_or(0, |(bytes, _)| i64::try_from(bytes).unwrap_or(i64::MAX));
    let change = bytes.saturating_mul(weight(1 - index));
    round.credit =
        Some(if index == 1 { credit.saturating_add(change) } else { credit.saturating_sub(change) });
    index
}
