//! How parts run beside each other: window by window, each as long as no packet takes less time to another part.
//!
//! At a window's begin the parts agree on the first time `t` at which any of them has something to do; none can hear of another before
//! `t` and the lookahead. Each runs until then, hands over the packets whose first bit it has sent, and waits for the others. Then it
//! knows what they have made, and in which order ([`super::order`]).

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, RwLock};

use super::linger::{Known, without_number};
use super::order::{self, Log, Numbers};
use crate::event::{Entry, Event, number, time};
use crate::network::Network;
use crate::pool::Slot;

/// Looks at a barrier before the processor is given to others, about as long as a window takes: who gives it away to a process of less
/// priority gets it back after milliseconds. Where not every thread can have a processor, those that wait are to give it away soon.
const SPINS: u32 = 2_000;
const CROWDED_SPINS: u32 = 100;

static PROCESSORS: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, NonZeroUsize::get));

/// What a part hands to another.
#[derive(Debug)]
enum Crossing {
    /// A packet on the wire of a port; and the number of its arrival, if it came to an empty wire.
    Packet { port: u32, arrives: u64, number: u64, slot: Slot },
    /// An end of a flow is done, by this event; whether that is said for the first time.
    Done { plan: u32, at: Entry, first: bool },
}

/// A value that threads write often, in a line of the cache of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Own<T>(T);

/// All wait until all have come; false if one of them has panicked.
#[derive(Debug, Default)]
struct Barrier {
    parties: usize,
    spins: u32,
    came: Own<AtomicUsize>,
    turn: Own<AtomicUsize>,
    broken: AtomicBool,
}

impl Barrier {
    fn wait(&self) -> bool {
        let turn = self.turn.0.load(Ordering::Acquire);
        if self.came.0.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            self.came.0.store(0, Ordering::Relaxed);
            self.turn.0.store(turn.wrapping_add(1), Ordering::Release);
        } else {
            let mut spins = 0;
            while self.turn.0.load(Ordering::Acquire) == turn {
                if self.broken.load(Ordering::Relaxed) {
                    return false;
                }
                spins += 1;
                if spins < self.spins { std::hint::spin_loop() } else { std::thread::yield_now() }
            }
        }
        !self.broken.load(Ordering::Relaxed)
    }
}

/// Lets the others go when a part panics.
struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

/// What parts share while they run.
#[derive(Debug)]
struct Shared {
    lookahead: u64,
    /// Where they end; and after how many events, of all, they end before that.
    limit: Entry,
    last: u64,
    barrier: Barrier,
    windows: AtomicU64,
    /// By part, as far as it has come: high and low half of the first entry that it may still have to handle; and whether that waits to
    /// know more of others.
    come: Vec<Own<[AtomicU64; 2]>>,
    waits: Vec<Own<AtomicBool>>,
    /// By part, the first time at which it has something to do before the limit; and the events that it has handled.
    first: Vec<Own<AtomicU64>>,
    handled: Vec<Own<AtomicU64>>,
    /// From each part to each: at `from * parts + to`.
    crossings: Vec<Mutex<Vec<Crossing>>>,
    /// By part, what it has done in a window.
    logs: Vec<RwLock<Log>>,
}

impl Network {
    /// Runs all parts up to an entry, or until about so many events are handled; gives whether the entry was reached.
    pub(super) fn run_windows(&mut self, limit: Entry, last: u64) -> bool {
        let made = self.made_by_all();
        let mut rest = std::mem::take(&mut self.parts.rest);
        let parts = rest.len() + 1;
        self.events.have_made(made);
        rest.iter_mut().for_each(|part| part.events.have_made(made));
        let shared = Shared {
            lookahead: self.parts.layout.as_ref().map_or(0, |layout| layout.lookahead),
            limit,
            last,
            barrier: Barrier {
                parties: parts,
                spins: if parts <= *PROCESSORS { SPINS } else { CROWDED_SPINS },
                ..Barrier::default()
            },
            windows: AtomicU64::new(0),
            come: (0..parts).map(|_| Own::default()).collect(),
            waits: (0..parts).map(|_| Own::default()).collect(),
            first: (0..parts).map(|_| Own::default()).collect(),
            handled: (0..parts).map(|_| Own::default()).collect(),
            crossings: (0..parts * parts).map(|_| Mutex::default()).collect(),
            logs: (0..parts).map(|_| RwLock::default()).collect(),
        };
        let done = std::thread::scope(|scope| {
            let shared = &shared;
            for part in &mut rest {
                scope.spawn(move || part.run_part(shared));
            }
            self.run_part(shared)
        });
        self.parts.rest = rest;
        self.parts.windows += shared.windows.into_inner();
        done
    }

    /// One part's side of [`Network::run_windows`].
    fn run_part<'a>(&mut self, shared: &'a Shared) -> bool {
        let _guard = Guard(&shared.barrier);
        let index = self.parts.index as usize;
        let parts = shared.first.len();
        let Some(layout) = self.parts.layout.clone() else { return true };
        let end_of = |port: u32| layout.nodes[self.ports[port as usize].to as usize] as usize;
        let (mut cut, mut stand_ins) = (Vec::new(), Vec::new());
        for (port, begin) in (0..).zip(&layout.ports) {
            match (*begin as usize == index, end_of(port) == index) {
                (true, false) => cut.push((port, end_of(port))),
                (false, true) => stand_ins.push(port),
                _ => {}
            }
        }
        let mut numbers = Numbers::default();
        let mut base = self.events.made();
        // What is for other parts; flows that are done here at a number that is not known yet.
        let mut out: Vec<Vec<Crossing>> = (0..parts).map(|_| Vec::new()).collect();
        let mut unsure: Vec<(u32, Entry)> = Vec::new();
        let (mut come, mut came) = (Vec::new(), Vec::new());
        let mut windows = 0;
        let (mut come_to, mut waiting) = (0, false);
        // What begins to be sent before it has left its queue by the end, whatever becomes of its link then.
        let edge = time(shared.limit).saturating_add(u64::from(shared.limit as u64 != 0));
        loop {
            let begins = cut.iter().filter_map(|(port, _)| self.ports[*port as usize].next_start());
            let arrive = out.iter().flatten().filter_map(Crossing::arrives);
            let first = begins.chain(arrive).filter(|at| *at < edge).min().unwrap_or(u64::MAX);
            let entry = self.events.first_of_all();
            let first = if entry < shared.limit { first.min(time(entry)) } else { first };
            shared.first[index].0.store(first, Ordering::Release);
            shared.come[index].0[0].store((come_to >> 64) as u64, Ordering::Release);
            shared.come[index].0[1].store(come_to as u64, Ordering::Release);
            shared.waits[index].0.store(waiting, Ordering::Release);
            shared.handled[index].0.store(self.handled, Ordering::Release);
            if let Ok(mut log) = shared.logs[index].write() {
                std::mem::swap(&mut *log, self.events.log());
            }
            if !shared.barrier.wait() {
                return true;
            }
            let all =
                |values: &'a [Own<AtomicU64>]| values.iter().map(|value| value.0.load(Ordering::Acquire));
            let first = all(&shared.first).min().unwrap_or(u64::MAX);
            let used_up = all(&shared.handled).sum::<u64>() >= shared.last;
            let waits = shared.waits.iter().any(|waits| waits.0.load(Ordering::Acquire));
            came.clear();
            came.extend(shared.come.iter().map(|come| {
                let [high, low] = [0, 1].map(|half| come.0[half].load(Ordering::Acquire));
                Entry::from(high) << 64 | Entry::from(low)
            }));
            let logs: Vec<_> = shared.logs.iter().filter_map(|log| log.read().ok()).collect();
            base = numbers.merge(base, &logs, &came);
            drop(logs);
            if windows > 0 {
                self.events.end_window(index, &numbers);
            }
            cut.iter().for_each(|(port, _)| self.ports[*port as usize].numbers_are(index, &numbers));
            stand_ins.iter().for_each(|port| self.ports[*port as usize].numbers_are(index, &numbers));
            self.tell_of_flows(&mut unsure, &numbers, &mut out);
            for (to, out) in out.iter_mut().enumerate() {
                hand_over(&shared.crossings[index * parts + to], out, index, &numbers);
            }
            if !shared.barrier.wait() {
                return true;
            }
            for from in 0..parts {
                swap(&shared.crossings[from * parts + index], &mut come);
                come.drain(..).for_each(|crossing| self.come_across(crossing, &numbers));
            }
            if let Ok(mut log) = shared.logs[index].write() {
                std::mem::swap(&mut *log, self.events.log());
            }
            numbers.take_merged(index, self.events.log());
            if first == u64::MAX || used_up && !waits {
                debug_assert!(out.iter().all(Vec::is_empty) && self.events.log().is_empty());
                if index == 0 {
                    shared.windows.store(windows, Ordering::Relaxed);
                }
                self.all_have_come();
                return first == u64::MAX;
            }
            windows += 1;
            let others = (0..parts).filter(|part| *part != index).map(|part| time(came[part]));
            let known = Known {
                others: others.min().unwrap_or(u64::MAX),
                up_to: (numbers.least() == index).then(|| numbers.entry(index, come_to)),
            };
            let until = first.saturating_add(shared.lookahead).min(edge);
            let end = shared.limit.min(Entry::from(until) << 64);
            self.events.begin_window(until.min(time(shared.limit)));
            come_to = self.run_up_to(end, &known);
            waiting = come_to < end;
            let until = if waiting { time(come_to) } else { until };
            for (port, to) in &cut {
                while let Some((flight, number)) = self.ports[*port as usize].send_off(until) {
                    let slot = self.packets.take(flight.packet);
                    out[*to].push(Crossing::Packet { port: *port, arrives: flight.arrives, number, slot });
                }
            }
        }
    }

    /// For the parts of their other ends, of flows that are done here. Their order may be known only later.
    fn tell_of_flows(
        &mut self,
        unsure: &mut Vec<(u32, Entry)>,
        numbers: &Numbers,
        out: &mut [Vec<Crossing>],
    ) {
        let index = self.parts.index as usize;
        let news = std::mem::take(&mut self.parts.lingering.news);
        let again = std::mem::take(unsure).into_iter().map(|(plan, at)| (plan, at, false));
        for (plan, at, first) in again.chain(news.into_iter().map(|(plan, at)| (plan, at, true))) {
            let at = numbers.entry(index, at);
            self.parts.lingering.was_done(plan, at);
            let known = numbers.is_known(number(at));
            if !known {
                unsure.push((plan, at));
            }
            if known || first {
                let at = if known { at } else { without_number(time(at)) };
                out[self.other_part(plan) as usize].push(Crossing::Done { plan, at, first });
            }
        }
    }

    /// Handles all events before an entry; fewer if one has to wait until more is known of the other parts. Gives how far it has come.
    fn run_up_to(&mut self, end: Entry, known: &Known) -> Entry {
        loop {
            let entry = self.events.first_entry();
            if entry >= end {
                return end;
            }
            if self.parts.lingering.any() && self.has_to_wait(entry, known) {
                return entry;
            }
            self.parts.at = entry;
            self.handled += 1;
            self.step(time(entry), Event::unpack(entry as u64));
            self.events.have_handled(entry);
        }
    }

    /// Takes what comes from another part.
    fn come_across(&mut self, crossing: Crossing, numbers: &Numbers) {
        match crossing {
            Crossing::Packet { port, arrives, number, slot } => {
                let id = self.packets.add(slot);
                if let Some(number) = self.ports[port as usize].come_across(arrives, id, number) {
                    let entry = order::entry(arrives, number, Event::Arrive(port));
                    self.events.put_from_outside(entry, numbers.is_known(number));
                }
            }
            Crossing::Done { plan, at, first } => self.is_done_there(plan, at, first),
        }
    }
}

impl Crossing {
    fn arrives(&self) -> Option<u64> {
        match self {
            Crossing::Packet { arrives, .. } => Some(*arrives),
            Crossing::Done { .. } => None,
        }
    }
}

/// Hands over what has a number that is known for all. The rest waits: it arrives so late that it will be known by then.
fn hand_over(shared: &Mutex<Vec<Crossing>>, out: &mut Vec<Crossing>, part: usize, numbers: &Numbers) {
    if out.is_empty() {
        return;
    }
    let Ok(mut there) = shared.lock() else { return };
    let mut waits = Vec::new();
    for mut crossing in out.drain(..) {
        if let Crossing::Packet { number, .. } = &mut crossing {
            *number = numbers.of(part, *number);
            if !numbers.is_known(*number) {
                waits.push(crossing);
                continue;
            }
        }
        there.push(crossing);
    }
    if !waits.is_empty() {
        *out = waits;
    }
}

/// Takes what another part has put into a box.
fn swap(shared: &Mutex<Vec<Crossing>>, own: &mut Vec<Crossing>) {
    if let Ok(mut there) = shared.lock() {
        std::mem::swap(&mut *there, own);
    }
}
