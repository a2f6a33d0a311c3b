//! The queue of events: a wheel of narrow slots, far slots behind it, and a heap.
//!
//! Ports keep their packets in order themselves, so that there is one entry per busy wire and timer, not one per packet. What happens
//! soon waits in the wheel, in the slot of its time. Slots are about as long as the mean time between events, so that few have more
//! than one entry. What is later than the wheel reaches waits unordered in far slots of time, and goes into the wheel when a far slot's
//! time comes; for that an entry of the heap stands for each far slot in use. What is later still, and what finds its slot full, waits
//! in the heap.
//! Entries of one time come out in the order in which they went in, wherever they wait.

use crate::event::{Entry, Event, NONE, ORDER_SHIFT, number, time};
use crate::far::{Far, Put};
use crate::heap::Heap;
use crate::parts::{Log, Numbers, Window};
use crate::wheel::Wheel;

/// Entries that are made from one look at the length of slots to the next.
const LOOK: u64 = 1 << 14;

/// Half of the numbers that entries can have: more events than that are numbered anew.
pub(crate) const MOST_MADE: u64 = 1 << (u64::BITS - ORDER_SHIFT - 1);

/// Slots are not longer than 2^this picoseconds: a second.
const MOST_SHIFT: u32 = 40;

#[derive(Debug)]
pub(crate) struct Events {
    wheel: Wheel,
    far: Far,
    /// What goes into neither, and for each far slot with entries one that comes before them.
    heap: Heap,
    made: u64,
    /// When so many are made, the next look is due; the time of the last one.
    look_at: u64,
    looked: u64,
    /// What is made for then or later waits in `window`; the end of time unless parts run beside each other.
    end: u64,
    window: Window,
}

impl Default for Events {
    fn default() -> Events {
        Events {
            wheel: Wheel::default(),
            far: Far::default(),
            heap: Heap::default(),
            made: 0,
            look_at: 0,
            looked: 0,
            end: u64::MAX,
            window: Window::default(),
        }
    }
}

impl Events {
    #[inline(always)]
    fn entry(&mut self, at: u64, event: Event) -> Entry {
        // From 1 on: entries that stand for far slots come before all of their time.
        self.made += 1;
        let order = self.made << ORDER_SHIFT | event.pack();
        Entry::from(at) << 64 | Entry::from(order)
    }

    #[inline]
    pub fn push(&mut self, at: u64, event: Event) {
        let entry = self.entry(at, event);
        if at < self.end {
            self.put(entry);
        } else {
            self.put_later(entry);
        }
    }

    /// Puts in what is for the end of a window or later.
    #[inline(never)]
    fn put_later(&mut self, entry: Entry) {
        if self.end == u64::MAX {
            self.put(entry);
        } else {
            self.window.later.push(entry);
        }
    }

    #[inline(always)]
    fn put(&mut self, entry: Entry) {
        if !self.wheel.put(entry) {
            self.put_far(entry);
        }
    }

    #[inline(never)]
    fn put_far(&mut self, entry: Entry) {
        match self.far.put(entry, self.wheel.passed(), self.wheel.shift()) {
            Put::Waits => {}
            Put::First { at, index } => self.heap.push(Entry::from(at) << 64 | Entry::from(index)),
            Put::No => self.heap.push(entry),
        }
    }

    /// Whether the first event is in the wheel, not in the heap.
    #[inline(always)]
    fn first_in_wheel(&mut self) -> bool {
        loop {
            if self.wheel.first() < self.heap.first() {
                return true;
            }
            if !stands_for_far(self.heap.first()) {
                return false;
            }
            self.take_far();
        }
    }

    /// The first far slot's time has come.
    #[inline(never)]
    fn take_far(&mut self) {
        let index = self.heap.first() as u32;
        self.heap.drop_first();
        let entries = self.far.take(index);
        for entry in &entries {
            if !self.wheel.put(*entry) {
                self.heap.push(*entry);
            }
        }
        self.far.give_back(index, entries);
    }

    /// The first entry, or [`NONE`].
    #[inline]
    pub fn first_entry(&mut self) -> Entry {
        if self.first_in_wheel() { self.wheel.first() } else { self.heap.first() }
    }

    #[inline]
    pub fn first(&mut self) -> Option<(u64, Event)> {
        let first = self.first_entry();
        (first != NONE).then(|| (time(first), Event::unpack(first as u64)))
    }

    /// Takes all entries out, in order.
    pub fn take_all(&mut self) -> Vec<Entry> {
        let mut all = Vec::new();
        while self.first_entry() != NONE {
            all.push(self.first_entry());
            self.drop_first();
        }
        *self = Events { made: self.made, ..Events::default() };
        all
    }

    /// Keeps numbers far below the highest that an entry can have. Not while parts and ports have numbers of their own.
    #[inline]
    pub fn keep_numbers_low(&mut self) {
        if self.made >= MOST_MADE {
            self.number_anew();
        }
    }

    /// Gives what waits the first numbers, in its order.
    #[cold]
    fn number_anew(&mut self) {
        let waiting = self.take_all();
        self.made = 0;
        for entry in waiting {
            let entry = self.entry(time(entry), Event::unpack(entry as u64));
            self.put(entry);
        }
    }

    /// Puts in an entry that was taken out, here or in another part.
    pub fn put_back(&mut self, entry: Entry) {
        self.put(entry);
    }

    /// Puts in an entry for the end of the last window or later; it waits if its number is not known for all.
    pub fn put_from_outside(&mut self, entry: Entry, known: bool) {
        if known {
            self.put(entry);
        } else {
            self.window.later.push(entry);
        }
    }

    /// How many have been made.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// So many have been made, here and elsewhere.
    pub fn have_made(&mut self, made: u64) {
        self.made = made;
    }

    /// The number of an event that may be made later, in the place that it has if it is made now.
    pub fn reserve(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// A window begins, beside those of other parts: what is made in it for its end or later waits.
    pub fn begin_window(&mut self, end: u64) {
        self.end = end;
        self.window.begin(self.made);
        let mut waits = std::mem::take(&mut self.window.later);
        waits.retain(|entry| {
            let later = time(*entry) >= end;
            if !later {
                self.put(*entry);
            }
            later
        });
        self.window.later = waits;
    }

    /// An event of a window has been handled.
    #[inline]
    pub fn have_handled(&mut self, entry: Entry) {
        self.window.handled(entry, self.made);
    }

    /// The log of a window.
    pub fn log(&mut self) -> &mut Log {
        &mut self.window.log
    }

    /// The first entry, here or among what waits.
    pub fn first_of_all(&mut self) -> Entry {
        let first = self.first_entry();
        self.window.later.iter().fold(first, |first, entry| first.min(*entry))
    }

    /// A window is over: what was made in it gets the numbers that this part's have for all. What has none yet waits.
    pub fn end_window(&mut self, part: usize, numbers: &Numbers) {
        self.made = numbers.made(part, self.made);
        let mut made = std::mem::take(&mut self.window.later);
        // Some are left if this part has had to wait, and in a window that ends with time all are there.
        while time(self.first_entry()) < self.end {
            made.push(self.first_entry());
            self.drop_first();
        }
        self.end = u64::MAX;
        made.retain_mut(|entry| {
            *entry = numbers.entry(part, *entry);
            let known = numbers.is_known(number(*entry));
            if known {
                self.put(*entry);
            }
            !known
        });
        self.window.later = made;
        if self.made >= self.look_at {
            self.look();
        }
    }

    /// What comes next and when, and what behind that, as far as the wheel knows: a guess.
    #[inline]
    pub fn guess(&self) -> [Option<(u64, Event)>; 2] {
        [self.wheel.first(), self.wheel.second()].map(|entry| {
            // By its time alone: the entry was just written in halves, and a load of both would wait for them.
            (time(entry) != u64::MAX).then(|| (time(entry), Event::unpack(entry as u64)))
        })
    }

    #[inline(always)]
    pub fn drop_first(&mut self) {
        if self.first_in_wheel() {
            self.wheel.drop_first();
        } else {
            self.drop_from_heap();
        }
    }

    #[inline(never)]
    fn drop_from_heap(&mut self) {
        let first = self.heap.first();
        if first != NONE {
            self.wheel.pass(time(first));
            self.heap.drop_first();
        }
    }

    /// Puts another event in the place of the first one, which is cheaper than taking one out and putting one in.
    #[inline(always)]
    pub fn replace_first(&mut self, at: u64, event: Event) {
        let entry = self.entry(at, event);
        if at >= self.end {
            self.replace_by_later(entry);
            return;
        }
        if self.first_in_wheel() {
            if !self.wheel.replace_first(entry) {
                self.put_far(entry);
            }
        } else {
            self.drop_from_heap();
            self.put(entry);
        }
        if self.made >= self.look_at {
            self.look();
        }
    }

    #[inline(never)]
    fn replace_by_later(&mut self, entry: Entry) {
        self.drop_first();
        self.put_later(entry);
    }

    /// Makes slots as long as the mean time between events, if they are far from that.
    #[cold]
    fn look(&mut self) {
        let Some((now, _)) = self.first() else { return };
        self.look_at = self.made + LOOK;
        let spacing = now.saturating_sub(self.looked) / LOOK;
        self.looked = now;
        let shift = spacing.max(1).ilog2().min(MOST_SHIFT);
        if shift.abs_diff(self.wheel.shift()) > 1 {
            let mut entries = self.far.take_all();
            entries.extend(self.wheel.set_shift(shift, now));
            entries.into_iter().for_each(|entry| self.put(entry));
        }
    }
}

/// Whether an entry of the heap stands for a far slot.
#[inline(always)]
fn stands_for_far(entry: Entry) -> bool {
    (entry as u64) < 1 << ORDER_SHIFT
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use proptest::prelude::*;
    use units::Random;

    use super::*;

    /// Beside a heap of times and orders.
    #[derive(Default)]
    struct Both {
        events: Events,
        model: BinaryHeap<Reverse<(u64, u32)>>,
        made: u32,
    }

    impl Both {
        fn push(&mut self, at: u64) {
            self.events.push(at, Event::Timer(self.made));
            self.model.push(Reverse((at, self.made)));
            self.made += 1;
        }

        /// Takes the first out, and puts another in if there is one; gives its time.
        fn step(&mut self, next: impl FnOnce(u64) -> Option<u64>) -> Option<u64> {
            let expected = self.model.pop().map(|Reverse((at, id))| (at, Event::Timer(id)));
            assert_eq!(self.events.first(), expected);
            let (at, _) = expected?;
            if let Some(next) = next(at) {
                self.events.replace_first(next, Event::Timer(self.made));
                self.model.push(Reverse((next, self.made)));
                self.made += 1;
            } else {
                self.events.drop_first();
            }
            Some(at)
        }
    }

    proptest! {
        #[test]
        fn by_time_then_by_order(
            starts in prop::collection::vec(0u64..50, 1..100),
            // Bits of the time to the next event: from the slot under way to far beyond the wheel.
            steps in prop::collection::vec((any::<bool>(), any::<bool>(), 0u32..40, any::<u64>()), 600),
        ) {
            let mut both = Both::default();
            starts.iter().for_each(|at| both.push(*at));
            for (replace, push, bits, random) in steps {
                let later = random & ((1 << bits) - 1);
                let Some(now) = both.step(|at| replace.then_some(at + later)) else { break };
                if push {
                    both.push(now + later / 3);
                }
                if random % 11 == 0 {
                    both.events.number_anew();
                }
                if random % 5 == 0 {
                    // What is next is looked at, and then something comes before it.
                    both.events.first();
                    both.push(now + later / 100);
                }
            }
        }
    }

    /// Slots become longer and shorter as events are further apart or closer.
    #[test]
    fn whatever_the_time_between_events_is() {
        let mut both = Both::default();
        let mut random = Random::new(5);
        (0..500).for_each(|at| both.push(at));
        let mut shifts = Vec::new();
        for spread in [1 << 12, 1 << 30, 1 << 46, 1 << 20, 1 << 36, 1, 1 << 20] {
            for _ in 0..50_000 {
                let later = random.next_u64() % spread;
                both.step(|at| Some(at + later));
            }
            shifts.push(both.events.wheel.shift());
        }
        while both.step(|_| None).is_some() {}
        assert!(shifts[..3].is_sorted() && shifts[2] > shifts[0] + 20 && shifts[3] < shifts[2], "{shifts:?}");
    }

    /// Many packets on ways of many wheels' length, among events that are close: they wait in far slots, not in the heap.
    #[test]
    fn long_ways() {
        let mut both = Both::default();
        let mut random = Random::new(3);
        (0..5_000).for_each(|_| both.push(random.next_u64() % (1 << 38)));
        for _ in 0..200_000 {
            both.step(|at| Some(at + random.next_u64() % (1 << 38)));
        }
        let (far, heap) = (both.events.far.len(), both.events.heap.len());
        assert!(far > 4 * heap, "{far} {heap}");
        while both.step(|_| None).is_some() {}
        assert_eq!(both.events.far.len(), 0);
    }

    /// More events than numbers that an entry can have: a switch between real interfaces makes them within days.
    #[test]
    fn numbers_begin_anew() {
        let mut both = Both::default();
        both.events.have_made(MOST_MADE - 100);
        (0..50).for_each(|at| both.push(at / 10));
        for _ in 0..500 {
            both.step(|at| Some(at + 7));
            both.events.keep_numbers_low();
        }
        assert!(both.events.made() < 1000);
        while both.step(|_| None).is_some() {}
    }

    #[test]
    fn up_to_the_end_of_time() {
        let mut both = Both::default();
        [u64::MAX - 1, 3, u64::MAX - 1, u64::MAX - (1 << 50), 1 << 62]
            .into_iter()
            .for_each(|at| both.push(at));
        while both.step(|_| None).is_some() {}
    }
}
