//! What others see of a network that is live: the network itself between packets, news, and how its thread is.
//!
//! The network stands behind a fair mutex. The thread holds it while it puts packets in and runs the network, a batch at a time, and
//! not while it reads, writes or sleeps; it hands it over between batches to whoever waits.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use network::{Histogram, Network, NodeId};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::{EventfdFlags, eventfd};
use units::Time;

use crate::clock::Clock;
use crate::driver::{Driver, Wired};
use crate::interface::{Failure, plain, within};
use crate::opening::open;
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
    pub(crate) stopping: AtomicBool,
    /// Somebody wants to know the state.
    pub(crate) asked: AtomicBool,
    /// Wakes the thread.
    pub(crate) bell: OwnedFd,
    /// There is something for a controller.
    news: Mutex<bool>,
    heard: Condvar,
    pub(crate) state: Mutex<State>,
    pub(crate) told: Condvar,
}

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
    /// The network, as it is now. What is done to it is seen to when [`Shared::leave`] is called.
    pub fn enter(&self) -> MutexGuard<'_, Network> {
        let mut network = self.network.lock();
        // A way that is missing was found when the network went live.
        if network.run_through(self.clock.now()).unwrap_or(false) {
            self.announce();
        }
        network
    }

    /// Gives the network back, and wakes the thread if there is something to do for it.
    pub fn leave(&self, network: MutexGuard<'_, Network>) {
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

    fn ring(&self) {
        // It cannot fail but for a full counter, which wakes the thread as well.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    pub(crate) fn announce(&self) {
        *self.news.lock() = true;
        self.heard.notify_all();
    }

    /// Waits until `end`, at most `slice`, and no longer when there is news for a controller; gives whether there is.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn wait(&self, end: Time, slice: Duration) -> Result<bool, Failure> {
        let left = Duration::from_nanos(end.saturating_sub(self.now()).as_ps().div_ceil(1000));
        let mut news = self.news.lock();
        if !*news {
            self.heard.wait_for(&mut news, left.min(slice));
        }
        let heard = std::mem::take(&mut *news);
        drop(news);
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

/// A network that is live; dropping it ends that.
pub struct Live {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Live {
    /// Opens the ports and starts the thread. The network goes on at the time that it has reached. `merge`: segments of one TCP
    /// flow that leave together are handed to the kernel as one packet.
    ///
    /// # Errors
    /// A namespace or an interface that is not there or is taken, missing rights, a flow without a way.
    pub fn start(network: Arc<Mutex<Network>>, wirings: Vec<Wiring>, merge: bool) -> Result<Live, Failure> {
        let mut wired = Vec::new();
        let mut ports = Vec::new();
        for wiring in wirings {
            let netns = wiring.netns.as_deref();
            let (port, status) = within(netns, || open(&wiring, merge))?;
            ports.push(status);
            wired.push(Wired { port, host: wiring.host, going: Vec::new(), errors: 0 });
        }
        let failed = |e: io::Error| Failure(format!("the thread of a live network: {}", plain(&e)));
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = eventfd(0, flags).map_err(|e| failed(e.into()))?;
        let start = {
            let mut network = network.lock();
            for port in &wired {
                network.set_outside(port.host).map_err(|e| Failure(e.to_string()))?;
            }
            let now = network.now();
            network.run_through(now).map_err(|e| Failure(e.to_string()))?;
            now
        };
        let shared = Arc::new(Shared {
            network,
            clock: Clock::starting_at(start),
            planned: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            bell,
            news: Mutex::new(false),
            heard: Condvar::new(),
            state: Mutex::new(State { ports, ..State::default() }),
            told: Condvar::new(),
        });
        let driver = Driver::new(shared.clone(), wired).map_err(failed)?;
        let thread = std::thread::Builder::new().name("tidegate-live".to_owned()).spawn(move || driver.run());
        Ok(Live { shared, thread: Some(thread.map_err(failed)?) })
    }

    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.ring();
        if let Some(thread) = self.thread.take() {
            // A panic is in the state.
            let _ = thread.join();
        }
    }
}
