//! A thread that runs a network by the clock. With several of them each has a group of ports, and runs the network when it has packets.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use network::{NodeId, Outgoing};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{Itimerspec, Timespec, timerfd_create, timerfd_settime};
use rustix::time::{TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};
use units::Time;
use wire::packet::Written;

use crate::clock::monotonic;
use crate::interface::{Failure, plain};
use crate::opening::Opened;
use crate::port::{BATCH, Counts, Port};
use crate::priority::Priority;
use crate::processor;
use crate::profile::Settings;
use crate::shared::{Lateness, Shared, Worker};
use crate::threaded::Threaded;

pub struct Wired {
    /// Among all ports.
    pub number: usize,
    /// Dropped before the port: an interface that has no NAPI any more cannot be told.
    pub threaded: Option<Threaded>,
    /// None while its interface is gone: what is to go out by it is refused.
    pub port: Option<Box<dyn Port>>,
    pub host: NodeId,
    /// Frames that are to go out.
    pub going: Vec<Box<Written>>,
    /// How often in a row it has been said to be in error without having anything to give.
    pub errors: u32,
    /// What was counted there before its interface was opened again.
    pub before: Counts,
}

/// A port whose interface is gone is in error for ever; one whose interface has gone down, once.
const MAX_ERRORS: u32 = 8;

/// A frame that has come: when, by which port, which one there.
type Arrival = (u64, u32, u32);

pub struct Driver {
    shared: Arc<Shared>,
    /// Among the threads; also that of its group of ports.
    number: usize,
    ports: Vec<Wired>,
    /// By node, its index among the ports.
    of_node: Vec<usize>,
    epoll: OwnedFd,
    timer: OwnedFd,
    /// What the timer is set to, by the monotonic clock; 0: nothing. And when it was set.
    armed: u64,
    set_at: u64,
    /// When something is due, by the monotonic clock.
    due: u64,
    /// How long before that the timer is set to, in nanoseconds: by how long the sleep is, as a power of two of nanoseconds. A
    /// processor that has slept for long takes longer to wake up.
    early: [u64; 64],
    /// Which of them the timer is set by.
    sleep: usize,
    /// How long it takes from running the network until what comes of it has been sent, in nanoseconds. The network is run for so
    /// much later a time, so that a frame has left when it is due.
    lead: u64,
    /// This turn began with the timer.
    timed: bool,
    /// Up to when all frames have been taken in, in nanoseconds.
    taken: u64,
    arrivals: Vec<Arrival>,
    outgoing: Vec<Outgoing>,
    /// When what is being sent was due.
    due_times: Vec<Time>,
    /// Buffers of frames that are gone.
    spent: Vec<Box<Written>>,
    lateness: Lateness,
    wakeups: u64,
    settings: Settings,
    /// For how long after a packet it looks for the next one without sleeping, and until when, in nanoseconds.
    spin: u64,
    awake_until: u64,
    /// For how long it has done so.
    spun: u64,
}

/// In place of a port's index: the timer, and the bell.
const TIMER: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

/// How far the network's time is ahead at most, in nanoseconds, and how that changes with each wake-up by the timer.
const MOST_LEAD: u64 = 30_000;
const LEAD_STEP: u64 = 500;
/// How the time that the timer is set too early changes; what is waited for without sleeping is at most that time.
const EARLY_STEP: u64 = 1_000;
/// Of five wake-ups four are to be in time.
const IN_TIME: u64 = 4;

/// Moves a time towards what `below` of `below + 1` of the times taken are below.
fn step(time: &mut u64, taken: u64, by: u64, below: u64, most: u64) {
    *time = if taken > *time { (*time + below * by).min(most) } else { time.saturating_sub(by) };
}

/// How much too early the timer may be set for a sleep of so many nanoseconds, as a power of two: a small part of the time goes by
/// without sleeping.
fn most_early(sleep: usize) -> u64 {
    ((1 << sleep) / 16).clamp(60_000, 250_000)
}

impl Driver {
    pub fn new(
        shared: Arc<Shared>,
        number: usize,
        ports: Vec<Wired>,
        settings: Settings,
    ) -> io::Result<Driver> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let add = |fd, number| epoll::add(&epoll, fd, EventData::new_u64(number), EventFlags::IN);
        for (index, wired) in ports.iter().enumerate() {
            if let Some(port) = &wired.port {
                add(port.fd(), index as u64)?;
            }
        }
        add(timer.as_fd(), TIMER)?;
        add(shared.workers[number].bell.as_fd(), BELL)?;
        let mut of_node = Vec::new();
        for (index, port) in ports.iter().enumerate() {
            let node = port.host.index();
            of_node.resize(of_node.len().max(node + 1), 0);
            of_node[node] = index;
        }
        Ok(Driver {
            shared,
            number,
            ports,
            of_node,
            epoll,
            timer,
            armed: 0,
            set_at: 0,
            due: u64::MAX,
            early: [0; 64],
            sleep: 0,
            lead: 0,
            timed: false,
            taken: 0,
            arrivals: Vec::new(),
            outgoing: Vec::new(),
            due_times: Vec::new(),
            spent: Vec::new(),
            lateness: Lateness::default(),
            wakeups: 0,
            settings,
            spin: settings.profile.spin_ns(),
            awake_until: 0,
            spun: 0,
        })
    }

    fn worker(&self) -> &Worker {
        &self.shared.workers[self.number]
    }

    pub fn run(mut self) {
        let shared = self.shared.clone();
        let turns = std::panic::AssertUnwindSafe(|| -> io::Result<()> {
            self.settings.processor.map_or(Ok(()), |first| processor::stay_on(first + self.number))?;
            let mut priority = Priority::new(self.settings.profile);
            // Something may be due before anything comes.
            self.taken = monotonic();
            self.turn();
            while !shared.stopping.load(Ordering::Acquire) {
                if shared.clock.is_over() {
                    return Err(io::Error::other(
                        "it has run for 213 days, which is as far as its time goes; start it anew",
                    ));
                }
                self.wait()?;
                self.turn();
                self.exchange()?;
                priority.look(self.spun);
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
        self.worker().awake.store(false, Ordering::Release);
        self.publish();
        if let Some(failure) = failure {
            shared.state.lock().failure.get_or_insert(failure);
            // Without one of them the others are no switch.
            shared.stop();
        }
        shared.announce();
    }

    /// Takes ports out whose interface is gone, and in that have been opened again; to be called when no frame of theirs is in use.
    fn exchange(&mut self) -> io::Result<()> {
        for exchange in self.worker().take_exchanges() {
            let local = exchange.number / self.shared.workers.len();
            let wired = &mut self.ports[local];
            if let Some(mut port) = wired.port.take() {
                // It may be out already.
                let _ = epoll::delete(&self.epoll, port.fd());
                wired.before = wired.before.plus(port.counts());
                // What has its name now is another interface, or will be.
                if let Some(threaded) = wired.threaded.take() {
                    threaded.leave();
                }
            }
            let Some(Opened { port, status, threaded }) = exchange.opened else { continue };
            let number = EventData::new_u64(local as u64);
            epoll::add(&self.epoll, port.fd(), number, EventFlags::IN)?;
            wired.errors = 0;
            (wired.port, wired.threaded) = (Some(port), threaded);
            self.shared.state.lock().ports[exchange.number] = status;
        }
        Ok(())
    }

    /// Sleeps until something is to be done, and takes in what has come.
    fn wait(&mut self) -> io::Result<()> {
        let none = epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [none; BATCH];
        let mut now = if self.spin == 0 { u64::MAX } else { monotonic() };
        self.worker().awake.store(false, Ordering::Release);
        let count = loop {
            let spins = now < self.awake_until;
            match epoll::wait(&self.epoll, &mut events, spins.then_some(&Timespec::default())) {
                Ok(0) if spins => {
                    let before = std::mem::replace(&mut now, monotonic());
                    self.spun += now - before;
                }
                Ok(count) => break count,
                Err(Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        };
        self.wakeups += 1;
        self.timed = false;
        self.taken = monotonic();
        let shared = self.shared.clone();
        let worker = &shared.workers[self.number];
        worker.coming.store(true, Ordering::Release);
        worker.taken.store(self.taken, Ordering::Release);
        worker.awake.store(true, Ordering::Release);
        self.arrivals.clear();
        let mut rung = false;
        for event in &events[..count] {
            let (flags, number) = (event.flags, event.data.u64());
            let fd = match number {
                TIMER => self.timer.as_fd(),
                BELL => worker.bell.as_fd(),
                _ => {
                    let wired = &mut self.ports[number as usize];
                    let Some(port) = &mut wired.port else { continue };
                    let came = port.receive();
                    for index in 0..came {
                        self.arrivals.push((port.frame(index).0, number as u32, index as u32));
                    }
                    if came >= BATCH {
                        // There may be more that has come before.
                        self.taken = self.taken.min(port.frame(came - 1).0);
                        worker.taken.store(self.taken, Ordering::Release);
                    }
                    let error = flags.intersects(EventFlags::ERR | EventFlags::HUP);
                    wired.errors = if error && came == 0 { wired.errors + 1 } else { 0 };
                    if wired.errors > MAX_ERRORS {
                        epoll::delete(&self.epoll, port.fd())?;
                    }
                    continue;
                }
            };
            // What it gives does not matter, but that it is then not readable.
            let _ = rustix::io::read(fd, &mut [0u8; 8]);
            match number {
                TIMER => self.woken(),
                // Another thread may have a packet for this one.
                _ => rung = true,
            }
        }
        if !self.arrivals.is_empty() || rung && shared.workers.len() > 1 {
            self.awake_until = monotonic() + self.spin;
        }
        if count > 1 {
            // In the order in which they came; those of one port are in order.
            self.arrivals.sort_by_key(|arrival| arrival.0);
        }
        Ok(())
    }

    /// The timer has gone off. A thread wakes up some time after that, so it is set that much too early, by what most of the
    /// wake-ups take; where the thread is up in time, it waits for the rest without sleeping.
    fn woken(&mut self) {
        let now = monotonic();
        let most = most_early(self.sleep);
        let late = now.saturating_sub(self.armed.max(self.set_at));
        step(&mut self.early[self.sleep], late, EARLY_STEP, IN_TIME, most);
        self.armed = 0;
        self.timed = true;
        let until = self.due.saturating_sub(self.lead);
        if self.arrivals.is_empty() && until.saturating_sub(now) <= most {
            while monotonic() < until {
                std::hint::spin_loop();
            }
        }
    }

    /// Lets the network have what has come and run until now, and sends what comes of it.
    fn turn(&mut self) {
        let shared = self.shared.clone();
        let mut network = shared.network.lock();
        self.spent.drain(..).for_each(|packet| network.recycle(packet));
        // A way that is missing was found when the network went live.
        let mut pending = false;
        for (at, port, index) in self.arrivals.drain(..) {
            let wired = &self.ports[port as usize];
            pending |= network.run_through(shared.clock.at(at)).unwrap_or(false);
            if let Some(port) = &wired.port {
                network.inject(wired.host, port.frame(index as usize).1);
            }
        }
        let began = monotonic();
        // Frames may have come while somebody else had the network: they are to enter it at their times.
        let until = if self.timed { began } else { self.taken };
        pending |= network.run_through(shared.clock.at(until + self.lead)).unwrap_or(false);
        network.take_outgoing(self.number, &mut self.outgoing);
        let worker = &shared.workers[self.number];
        worker.coming.store(false, Ordering::Release);
        let next = network.next_event();
        let due = next.map_or(u64::MAX, Time::as_ps);
        let group = if shared.workers.len() > 1 { network.next_group() } else { None };
        let mine = shared.sees_to(self.number, group, due);
        // What the timer is set to otherwise stays; it will find nothing to do at worst.
        if mine || self.armed == 0 {
            worker.planned.store(if mine { due } else { u64::MAX }, Ordering::Release);
        }
        shared.give_back(network, group.map(|group| (group, due)), Some(self.number));
        if pending {
            shared.announce();
        }
        if self.send() && self.timed {
            step(&mut self.lead, monotonic() - began, LEAD_STEP, 1, MOST_LEAD);
        }
        if worker.asked.swap(false, Ordering::AcqRel) {
            self.publish();
        }
        if mine {
            // What has come due meanwhile wakes the thread at once.
            self.due = next.map_or(u64::MAX, |next| shared.clock.when(next));
            self.arm(next.is_some());
        }
    }

    /// Gives whether there was anything to send.
    fn send(&mut self) -> bool {
        if self.outgoing.is_empty() {
            return false;
        }
        for frame in self.outgoing.drain(..) {
            self.due_times.push(frame.at);
            self.ports[self.of_node[frame.host.index()]].going.push(frame.packet);
        }
        for wired in &mut self.ports {
            if !wired.going.is_empty() {
                match &mut wired.port {
                    Some(port) => port.send(&wired.going),
                    None => wired.before.refused += wired.going.len() as u64,
                }
                self.spent.append(&mut wired.going);
            }
        }
        let now = self.shared.clock.now();
        for due in self.due_times.drain(..) {
            let late = now.saturating_sub(due);
            self.lateness.distribution.add(late.as_ps());
            self.lateness.most = self.lateness.most.max(late);
        }
        true
    }

    /// Sets the timer for what is due, if anything is.
    fn arm(&mut self, anything: bool) {
        let now = monotonic();
        self.sleep = self.due.saturating_sub(now).checked_ilog2().unwrap_or(0) as usize;
        let at = if anything { self.due.saturating_sub(self.lead + self.early[self.sleep]) } else { 0 };
        if at == self.armed {
            return;
        }
        (self.armed, self.set_at) = (at, now);
        let value = Timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as i64 };
        let spec = Itimerspec { it_interval: Timespec::default(), it_value: value };
        // A time that is no time is not set, and there is none.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec);
    }

    fn publish(&mut self) {
        let mut state = self.shared.state.lock();
        for wired in &mut self.ports {
            let status = &mut state.ports[wired.number];
            (status.counts, status.up) = (wired.before, false);
            if let Some(port) = &mut wired.port {
                status.counts = wired.before.plus(port.counts());
                status.mtu = port.interface().mtu();
                status.up = port.interface().is_up();
            }
        }
        let worker = &mut state.workers[self.number];
        worker.lateness = self.lateness.clone();
        worker.wakeups = self.wakeups;
        worker.told += 1;
        self.shared.told.notify_all();
    }
}
