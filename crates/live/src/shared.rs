//! What others see of a network that is live: the network itself between packets, whether there is something for a controller,
//! and how its threads are.
//!
//! The network stands behind a mutex. A thread holds it while it puts packets in and runs the network, a batch at a time, and not while
//! it reads, writes or sleeps; between batches it hands it over to whoever else waits. Several threads have a group of ports each. So
//! packets are handled one after the other, whichever threads they came by.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use network::{Histogram, Network, NodeId};
use parking_lot::{Condvar, Mutex, MutexGuard};
use units::Time;

use crate::clock::{Clock, monotonic};
use crate::interface::Failure;
use crate::opening::Opened;
use crate::port::{Counts, Kind};

/// A host that is outside, and the interface that it is reached by.
#[derive(Debug, Clone)]
pub struct Wiring {
    pub host: NodeId,
    /// File of the interface's network namespace; `None`: that of this process.
    pub netns: Option<PathBuf>,
    pub interface: String,
    pub kind: Kind,
}

/// A port as it is.
#[derive(Debug, Clone)]
pub struct PortStatus {
    pub interface: String,
    pub kind: Kind,
    pub mtu: u32,
    pub up: bool,
    /// Why it is not the kind that would be better.
    pub notice: Option<String>,
    pub counts: Counts,
}

/// A port whose interface is gone, or has been opened again.
pub(crate) struct Exchange {
    pub(crate) number: usize,
    /// `None`: the interface is gone.
    pub(crate) opened: Option<Opened>,
}

/// How much later than they should have frames left.
#[derive(Debug, Clone, Default)]
pub struct Lateness {
    pub distribution: Histogram,
    pub most: Time,
}

/// What one of the threads shares with all others.
pub(crate) struct Worker {
    /// When it will look at the network again by itself, in picoseconds. It is written while the thread has the network.
    pub(crate) planned: AtomicU64,
    /// It takes in frames, or has some and waits for the network.
    pub(crate) awake: AtomicBool,
    /// Up to when it has taken in all frames, in nanoseconds of the monotonic clock.
    pub(crate) taken: AtomicU64,
    /// It will look at the network, and need not be woken for it.
    pub(crate) coming: AtomicBool,
    /// Somebody wants to know the state.
    pub(crate) asked: AtomicBool,
    /// Wakes it.
    pub(crate) bell: OwnedFd,
    /// Ports that it is to exchange.
    exchanges: Mutex<Vec<Exchange>>,
}

impl Worker {
    pub(crate) fn new(bell: OwnedFd) -> Worker {
        Worker {
            planned: AtomicU64::new(u64::MAX),
            awake: AtomicBool::new(false),
            taken: AtomicU64::new(0),
            coming: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            bell,
            exchanges: Mutex::default(),
        }
    }

    pub(crate) fn ring(&self) {
        // It cannot fail but for a full counter, which wakes the thread as well.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    pub(crate) fn take_exchanges(&self) -> Vec<Exchange> {
        std::mem::take(&mut *self.exchanges.lock())
    }

    fn will_look_by(&self, due: u64) -> bool {
        self.planned.load(Ordering::Acquire) <= due
    }
}

/// What the threads and others share.
pub struct Shared {
    pub(crate) network: Arc<Mutex<Network>>,
    /// Those who want the network between packets.
    visitors: AtomicUsize,
    pub(crate) clock: Clock,
    /// The threads. A port belongs to the one whose number is the port's, modulo how many there are.
    pub(crate) workers: Vec<Worker>,
    pub(crate) stopping: AtomicBool,
    /// There is something for a controller.
    pending: Mutex<bool>,
    heard: Condvar,
    pub(crate) state: Mutex<State>,
    pub(crate) told: Condvar,
    /// What an operator should know, until somebody takes it.
    messages: Mutex<VecDeque<String>>,
}

/// Messages that wait for somebody; older ones are dropped.
const MOST_MESSAGES: usize = 256;

/// How a thread is.
#[derive(Clone, Default)]
pub(crate) struct WorkerState {
    pub(crate) lateness: Lateness,
    pub(crate) wakeups: u64,
    /// How often it was made known.
    pub(crate) told: u64,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) ports: Vec<PortStatus>,
    pub(crate) workers: Vec<WorkerState>,
    /// Why the first thread ended that was not told to.
    pub(crate) failure: Option<Failure>,
}

/// How long the threads may take to say how they are; they may be stopped by whatever else runs on the machine.
const ANSWER: Duration = Duration::from_secs(1);

impl Shared {
    pub(crate) fn new(
        network: Arc<Mutex<Network>>,
        clock: Clock,
        bells: Vec<OwnedFd>,
        ports: Vec<PortStatus>,
    ) -> Shared {
        let state = State { ports, workers: vec![WorkerState::default(); bells.len()], failure: None };
        Shared {
            network,
            visitors: AtomicUsize::new(0),
            clock,
            workers: bells.into_iter().map(Worker::new).collect(),
            stopping: AtomicBool::new(false),
            pending: Mutex::new(false),
            heard: Condvar::new(),
            state: Mutex::new(state),
            told: Condvar::new(),
            messages: Mutex::default(),
        }
    }

    /// The network, as it is now, or was when a thread took in frames that wait for it still: these enter it at their own times. What
    /// is done to it is seen to when [`Shared::leave`] is called.
    pub fn enter(&self) -> MutexGuard<'_, Network> {
        self.visitors.fetch_add(1, Ordering::AcqRel);
        let mut network = self.network.lock();
        self.visitors.fetch_sub(1, Ordering::AcqRel);
        let awake = self.workers.iter().filter(|worker| worker.awake.load(Ordering::Acquire));
        let taken = awake.map(|worker| worker.taken.load(Ordering::Acquire)).min();
        let until = taken.unwrap_or_else(monotonic);
        // A way that is missing was found when the network went live.
        if network.run_through(self.clock.at(until)).unwrap_or(false) {
            self.announce();
        }
        network
    }

    /// Gives the network back, and wakes the threads that have something to do then.
    pub fn leave(&self, mut network: MutexGuard<'_, Network>) {
        let next = network.next_event();
        let due = next.map_or(u64::MAX, Time::as_ps);
        let group = network.next_group();
        let watched = group.is_none() && self.workers.iter().any(|worker| worker.will_look_by(due));
        let due_for = (!watched).then_some((group.unwrap_or(0), due));
        self.give_back(network, due_for, None);
    }

    /// Whether a thread is to see to what is due next: it is about one of its ports, or about none and no other thread will be up.
    pub(crate) fn sees_to(&self, me: usize, group: Option<usize>, due: u64) -> bool {
        let up =
            |(number, worker): (usize, &Worker)| number != me && due < u64::MAX && worker.will_look_by(due);
        group.map_or_else(|| !self.workers.iter().enumerate().any(up), |group| group == me)
    }

    /// Gives the network back, and wakes the other threads that have frames to send there, and the one that something is due for
    /// before it would look.
    pub(crate) fn give_back(
        &self,
        network: MutexGuard<'_, Network>,
        due_for: Option<(usize, u64)>,
        me: Option<usize>,
    ) {
        let mut called = 0u64;
        for (number, worker) in self.workers.iter().enumerate().filter(|(number, _)| Some(*number) != me) {
            let early = due_for.is_some_and(|(of, due)| of == number && !worker.will_look_by(due));
            if (early || network.has_outgoing(number)) && !worker.coming.swap(true, Ordering::AcqRel) {
                called |= 1 << number;
            }
        }
        // Between threads, handing over would have each of them sleep for each batch of the others.
        if self.visitors.load(Ordering::Acquire) > 0 {
            MutexGuard::unlock_fair(network);
        } else {
            drop(network);
        }
        for (number, worker) in self.workers.iter().enumerate() {
            if called >> number & 1 == 1 {
                worker.ring();
            }
        }
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Has all threads end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.workers.iter().for_each(Worker::ring);
    }

    pub(crate) fn exchange(&self, exchange: Exchange) {
        let worker = &self.workers[exchange.number % self.workers.len()];
        worker.exchanges.lock().push(exchange);
        worker.ring();
    }

    pub(crate) fn say(&self, message: String) {
        let mut messages = self.messages.lock();
        if messages.len() == MOST_MESSAGES {
            messages.pop_front();
        }
        messages.push_back(message);
    }

    /// What has happened since the last time that an operator should know: interfaces that have gone and come back.
    pub fn take_messages(&self) -> Vec<String> {
        self.messages.lock().drain(..).collect()
    }

    pub(crate) fn announce(&self) {
        *self.pending.lock() = true;
        self.heard.notify_all();
    }

    /// Waits until `end`, at most `slice`, and no longer when there is something for a controller; gives whether there is.
    ///
    /// # Errors
    /// The threads have ended.
    pub fn wait(&self, end: Time, slice: Duration) -> Result<bool, Failure> {
        let left = Duration::from_nanos(end.saturating_sub(self.now()).as_ps().div_ceil(1000));
        let mut pending = self.pending.lock();
        if !*pending {
            self.heard.wait_for(&mut pending, left.min(slice));
        }
        let heard = std::mem::take(&mut *pending);
        drop(pending);
        match &self.state.lock().failure {
            Some(failure) => Err(failure.clone()),
            None => Ok(heard),
        }
    }

    /// Ports in the order in which they were given, how late frames left, and how often the threads have woken up.
    pub fn status(&self) -> (Vec<PortStatus>, Lateness, u64) {
        let mut state = self.state.lock();
        let told: Vec<u64> = state.workers.iter().map(|worker| worker.told).collect();
        for worker in &self.workers {
            worker.asked.store(true, Ordering::Release);
            worker.ring();
        }
        if state.failure.is_none() {
            let waits =
                |state: &mut State| state.workers.iter().zip(&told).any(|(now, then)| now.told == *then);
            self.told.wait_while_for(&mut state, waits, ANSWER);
        }
        let mut lateness = Lateness::default();
        for worker in &state.workers {
            lateness.distribution.merge(&worker.lateness.distribution);
            lateness.most = lateness.most.max(worker.lateness.most);
        }
        (state.ports.clone(), lateness, state.workers.iter().map(|worker| worker.wakeups).sum())
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    #[test]
    fn the_network_waits_for_frames_that_the_thread_has_still_to_hand_over() {
        let bell = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let clock = Clock::starting_at(Time::from_secs(1));
        let shared = Shared::new(Arc::new(Mutex::new(Network::new(0))), clock, vec![bell], Vec::new());
        let taken = monotonic();
        shared.workers[0].taken.store(taken, Ordering::Release);
        shared.workers[0].awake.store(true, Ordering::Release);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(shared.enter().now(), clock.at(taken));
        shared.workers[0].awake.store(false, Ordering::Release);
        assert!(shared.enter().now() >= clock.at(taken + 2_000_000));
    }
}
