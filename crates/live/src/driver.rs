//! The thread that runs a network by the clock, and what others see of it.
//!
//! The network stands behind a fair mutex. The thread holds it while it puts packets in and runs the network, a batch at a time, and
//! not while it reads, writes or sleeps; it hands it over between batches to whoever waits.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use sim::{Histogram, Network, NodeId, Outgoing};
use units::Time;

use crate::bpf::Attach;
use crate::clock::Clock;
use crate::interface::{Failure, Interface, descriptor, done, plain, within};
use crate::packet::PacketPort;
use crate::port::{BATCH, Counts, Kind, Port};
use crate::xdp::XdpPort;

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
    network: Arc<Mutex<Network>>,
    clock: Clock,
    /// When the thread will look at the network again by itself, in picoseconds.
    planned: AtomicU64,
    stopping: AtomicBool,
    /// Somebody wants to know the state.
    asked: AtomicBool,
    /// Wakes the thread.
    bell: OwnedFd,
    /// There is something for a controller.
    news: Mutex<bool>,
    heard: Condvar,
    state: Mutex<State>,
    told: Condvar,
}

#[derive(Default)]
struct State {
    ports: Vec<PortStatus>,
    lateness: Lateness,
    wakeups: u64,
    /// How often it was made known.
    told: u64,
    /// Why the thread ended, if it was not told to.
    failure: Option<Failure>,
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
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight bytes are read. It cannot fail but for a full counter, which wakes the thread as well.
        unsafe { libc::write(self.bell.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    fn announce(&self) {
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
    /// Opens the ports and starts the thread. The network goes on at the time that it has reached.
    ///
    /// # Errors
    /// A namespace or an interface that is not there or is taken, missing rights, a flow without a way.
    pub fn start(network: Arc<Mutex<Network>>, wirings: Vec<Wiring>) -> Result<Live, Failure> {
        let mut wired = Vec::new();
        let mut ports = Vec::new();
        for wiring in wirings {
            let netns = wiring.netns.as_deref();
            let (port, status) = within(netns, || open(&wiring))?;
            ports.push(status);
            wired.push(Wired { port, host: wiring.host, going: Vec::new() });
        }
        let failed = |e: io::Error| Failure(format!("the thread of a live network: {}", plain(&e)));
        // SAFETY: no memory is involved.
        let bell = descriptor(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
            .map_err(failed)?;
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

fn open(wiring: &Wiring) -> Result<(Box<dyn Port>, PortStatus), Failure> {
    let interface = Interface::open(&wiring.interface, wiring.netns.as_deref())?;
    let mtu = interface.mtu();
    let mut notice = None;
    let xdp = |interface, how| XdpPort::open(interface, how).map(|port| -> Box<dyn Port> { Box::new(port) });
    let (port, kind): (Box<dyn Port>, Kind) = match wiring.kind {
        Kind::Packet => (Box::new(PacketPort::open(interface)?), Kind::Packet),
        Kind::Xdp => (xdp(interface, Attach::Native).map_err(|(why, _)| why)?, Kind::Xdp),
        Kind::XdpGeneric => (xdp(interface, Attach::Generic).map_err(|(why, _)| why)?, Kind::XdpGeneric),
        Kind::Auto => match xdp(interface, Attach::Native) {
            Ok(port) => (port, Kind::Xdp),
            Err((why, interface)) => {
                notice = Some(format!("{why}; AF_PACKET is used"));
                (Box::new(PacketPort::open(interface)?), Kind::Packet)
            }
        },
    };
    let interface = wiring.interface.clone();
    Ok((port, PortStatus { interface, kind, mtu, notice, counts: Counts::default() }))
}

struct Wired {
    port: Box<dyn Port>,
    host: NodeId,
    /// Frames that are to go out.
    going: Vec<Vec<u8>>,
}

/// A frame that has come: when, by which port, which one there.
type Arrival = (u64, u32, u32);

struct Driver {
    shared: Arc<Shared>,
    ports: Vec<Wired>,
    /// By node, its index among the ports.
    of_node: Vec<usize>,
    epoll: OwnedFd,
    timer: OwnedFd,
    /// What the timer is set to, by the monotonic clock; 0: nothing.
    armed: u64,
    arrivals: Vec<Arrival>,
    outgoing: Vec<Outgoing>,
    /// Buffers of frames that are gone.
    spent: Vec<Vec<u8>>,
    lateness: Lateness,
    wakeups: u64,
}

/// In place of a port's index: the timer, and the bell.
const TIMER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

impl Driver {
    fn new(shared: Arc<Shared>, ports: Vec<Wired>) -> io::Result<Driver> {
        // SAFETY: no memory is involved.
        let epoll = descriptor(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: no memory is involved.
        let timer = descriptor(unsafe {
            libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK)
        })?;
        let watched = ports.iter().enumerate().map(|(index, p)| (p.port.fd(), index as u64));
        let own = [(timer.as_raw_fd(), TIMER), (shared.bell.as_raw_fd(), BELL)];
        for (fd, number) in watched.chain(own) {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number };
            // SAFETY: the event is only read.
            done(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) })?;
        }
        let mut of_node = Vec::new();
        for (index, port) in ports.iter().enumerate() {
            let node = port.host.index();
            of_node.resize(of_node.len().max(node + 1), 0);
            of_node[node] = index;
        }
        Ok(Driver {
            shared,
            ports,
            of_node,
            epoll,
            timer,
            armed: 0,
            arrivals: Vec::new(),
            outgoing: Vec::new(),
            spent: Vec::new(),
            lateness: Lateness::default(),
            wakeups: 0,
        })
    }

    fn run(mut self) {
        let shared = self.shared.clone();
        let turns = std::panic::AssertUnwindSafe(|| -> io::Result<()> {
            while !shared.stopping.load(Ordering::Acquire) {
                self.wait()?;
                self.turn();
            }
            Ok(())
        });
        let failure = match std::panic::catch_unwind(turns) {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(Failure(format!("the thread of a live network: {}", plain(&error)))),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
                Some(Failure(format!("the thread of a live network ended by a bug: {text}")))
            }
        };
        self.tell();
        shared.state.lock().failure = failure;
        shared.announce();
    }

    /// Sleeps until something is to be done, and takes in what has come.
    fn wait(&mut self) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        let (epoll, room) = (self.epoll.as_raw_fd(), events.len() as libc::c_int);
        // SAFETY: there is room for as many events as is said.
        let count = unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), room, -1) };
        if let Err(error) = done(count) {
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        self.wakeups += 1;
        self.arrivals.clear();
        for event in &events[..count as usize] {
            let number = event.u64;
            let fd = match number {
                TIMER => self.timer.as_raw_fd(),
                BELL => self.shared.bell.as_raw_fd(),
                _ => {
                    let port = &mut self.ports[number as usize].port;
                    for index in 0..port.receive() {
                        self.arrivals.push((port.frame(index).0, number as u32, index as u32));
                    }
                    continue;
                }
            };
            let mut count = [0u8; 8];
            // SAFETY: there are eight bytes to write to. What it gives does not matter, but that it is then not readable.
            unsafe { libc::read(fd, count.as_mut_ptr().cast(), count.len()) };
            if number == TIMER {
                self.armed = 0;
            }
        }
        if count > 1 {
            // In the order in which they came; those of one port are in order.
            self.arrivals.sort_by_key(|arrival| arrival.0);
        }
        Ok(())
    }

    /// Lets the network have what has come and run until now, and sends what comes of it.
    fn turn(&mut self) {
        let shared = self.shared.clone();
        let mut network = shared.network.lock();
        self.spent.drain(..).for_each(|bytes| network.recycle(bytes));
        // A way that is missing was found when the network went live.
        let mut news = false;
        for (at, port, index) in self.arrivals.drain(..) {
            let wired = &self.ports[port as usize];
            news |= network.run_through(shared.clock.at(at)).unwrap_or(false);
            network.inject(wired.host, wired.port.frame(index as usize).1);
        }
        news |= network.run_through(shared.clock.now()).unwrap_or(false);
        network.take_outgoing(&mut self.outgoing);
        let next = network.next_event();
        shared.planned.store(next.map_or(u64::MAX, Time::as_ps), Ordering::Release);
        MutexGuard::unlock_fair(network);
        if news {
            shared.announce();
        }
        self.send();
        if shared.asked.swap(false, Ordering::AcqRel) {
            self.tell();
        }
        // What has come due meanwhile wakes the thread at once.
        self.arm(next.map_or(0, |next| shared.clock.when(next)));
    }

    fn send(&mut self) {
        if self.outgoing.is_empty() {
            return;
        }
        let now = self.shared.clock.now();
        for frame in self.outgoing.drain(..) {
            let late = now.saturating_sub(frame.at);
            self.lateness.distribution.add(late.as_ps());
            self.lateness.most = self.lateness.most.max(late);
            self.ports[self.of_node[frame.host.index()]].going.push(frame.bytes);
        }
        for wired in &mut self.ports {
            if !wired.going.is_empty() {
                wired.port.send(&wired.going);
                self.spent.append(&mut wired.going);
            }
        }
    }

    fn arm(&mut self, at: u64) {
        if at == self.armed {
            return;
        }
        self.armed = at;
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::timespec {
            tv_sec: (at / 1_000_000_000) as libc::time_t,
            tv_nsec: (at % 1_000_000_000) as libc::c_long,
        };
        let spec = libc::itimerspec { it_interval: zero, it_value: value };
        let fd = self.timer.as_raw_fd();
        // SAFETY: the times are only read.
        unsafe { libc::timerfd_settime(fd, libc::TFD_TIMER_ABSTIME, &spec, std::ptr::null_mut()) };
    }

    fn tell(&mut self) {
        let mut state = self.shared.state.lock();
        for (status, wired) in state.ports.iter_mut().zip(&mut self.ports) {
            status.counts = wired.port.counts();
            status.mtu = wired.port.interface().mtu();
        }
        state.lateness = self.lateness.clone();
        state.wakeups = self.wakeups;
        state.told += 1;
        self.shared.told.notify_all();
    }
}
