//! What others see of a network that is live: the network itself between packets, whether there is something for a controller,
//! and how the thread is.
//!
//! The network stands behind a fair mutex. The thread holds it while it puts packets in and runs the network, a batch at a time, and
//! not while it reads, writes or sleeps; it hands it over between batches to whoever waits.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

/// What the thread and others share.
pub struct Shared {
    pub(crate) network: Arc<Mutex<Network>>,
    pub(crate) clock: Clock,
    /// When the thread will look at the network again by itself, in picoseconds.
    pub(crate) planned: AtomicU64,
    /// The thread takes in frames, or has some and waits for the network.
    pub(crate) awake: AtomicBool,
    /// Up to when it has taken in all frames, in nanoseconds of the monotonic clock.
    pub(crate) taken: AtomicU64,
    pub(crate) stopping: AtomicBool,
    /// Somebody wants to know the state.
    pub(crate) asked: AtomicBool,
    /// Wakes the thread.
    pub(crate) bell: OwnedFd,
    /// There is something for a controller.
    pending: Mutex<bool>,
    heard: Condvar,
    pub(crate) state: Mutex<State>,
    pub(crate) told: Condvar,
    /// Ports that the thread is to exchange.
    exchanges: Mutex<Vec<Exchange>>,
    /// What an operator should know, until somebody takes it.
    messages: Mutex<VecDeque<String>>,
}

/// Messages that wait for somebody; older ones are dropped.
const MOST_MESSAGES: usize = 256;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) ports: Vec<PortStatus>,
    pub(crate) lateness: Lateness,
    pub(crate) wakeups: u64,
    /// How often it was made known.
    pub(crate) told: u64,
    /// Why the thread ended, if it was not told to.
    pub(crate) failure: Option<Failure>,
}

/// How long the thread may take to say how it is; it may be stopped by whatever else runs on the machine.
const ANSWER: Duration = Duration::from_secs(1);

impl Shared {
    pub(crate) fn new(
        network: Arc<Mutex<Network>>,
        clock: Clock,
        bell: OwnedFd,
        ports: Vec<PortStatus>,
    ) -> Shared {
        Shared {
            network,
            clock,
            planned: AtomicU64::new(0),
            awake: AtomicBool::new(false),
            taken: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            bell,
            pending: Mutex::new(false),
            heard: Condvar::new(),
            state: Mutex::new(State { ports, ..State::default() }),
            told: Condvar::new(),
            exchanges: Mutex::default(),
            messages: Mutex::default(),
        }
    }

    /// The network, as it is now, or was when the thread took in frames that wait for it still: these enter it at their own times. What
    /// is done to it is seen to when [`Shared::leave`] is called.
    pub fn enter(&self) -> MutexGuard<'_, Network> {
        let mut network = self.network.lock();
        let awake = self.awake.load(Ordering::Acquire);
        let until = if awake { self.taken.load(Ordering::Acquire) } else { monotonic() };
        // A way that is missing was found when the network went live.
        if network.run_through(self.clock.at(until)).unwrap_or(false) {
            self.announce();
        }
        network
    }

    /// Gives the network back, and wakes the thread if there is something to do for it.
    pub fn leave(&self, mut network: MutexGuard<'_, Network>) {
        let due = network.next_event().map_or(u64::MAX, Time::as_ps);
        let wake = network.has_outgoing() || due < self.planned.load(Ordering::Acquire);
        MutexGuard::unlock_fair(network);
        if wake {
            self.ring();
        }
    }

    pub fn now(&self) -> Time {
        self.clock.now()
    }

    pub(crate) fn ring(&self) {
        // It cannot fail but for a full counter, which wakes the thread as well.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    pub(crate) fn exchange(&self, exchange: Exchange) {
        self.exchanges.lock().push(exchange);
        self.ring();
    }

    pub(crate) fn take_exchanges(&self) -> Vec<Exchange> {
        std::mem::take(&mut *self.exchanges.lock())
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
    /// The thread has ended.
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

    /// Ports in the order in which they were given, how late frames left, and how often the thread has woken up.
    pub fn status(&self) -> (Vec<PortStatus>, Lateness, u64) {
        let mut state = self.state.lock();
        let told = state.told;
        self.asked.store(true, Ordering::Release);
        self.ring();
        if state.failure.is_none() {
            self.told.wait_while_for(&mut state, |state| state.told == told, ANSWER);
        }
        (state.ports.clone(), state.lateness.clone(), state.wakeups)
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
        let shared = Shared::new(Arc::new(Mutex::new(Network::new(0))), clock, bell, Vec::new());
        let taken = monotonic();
        shared.taken.store(taken, Ordering::Release);
        shared.awake.store(true, Ordering::Release);
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(shared.enter().now(), clock.at(taken));
        shared.awake.store(false, Ordering::Release);
        assert!(shared.enter().now() >= clock.at(taken + 2_000_000));
    }
}
