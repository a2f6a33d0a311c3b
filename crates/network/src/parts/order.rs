//! The order of events of one time, when parts run beside each other.
//!
//! On one thread an event's number says how many were made before it, and of one time those run first that were made first. A part cannot
//! know how many the others make meanwhile. So in a window it counts for itself: numbers behind the window's base are its own, and
//! right among each other. It keeps a log of the events that made others. When all have come to the window's end each part merges the
//! logs by time and number, as one thread would have handled these events, and thereby learns which numbers one thread would have
//! given: those of events that were made before the window are known, and whatever made an event in the window comes before it
//! in the same log. What is made for later than the window waits until then, and goes into the queue with the right number.

use crate::event::{Entry, Event, NONE, ORDER_SHIFT, number, time};

/// An event that has made others: its time and number, and how many had been made after it in this window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    at: u64,
    number: u64,
    made: u64,
}

/// Events of a part that have made others, in their order.
pub(crate) type Log = Vec<Made>;

/// What a part makes in a window.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Numbers above are the part's own.
    base: u64,
    /// What is for its end or later.
    pub later: Vec<Entry>,
    pub log: Log,
}

impl Window {
    pub fn begin(&mut self, base: u64) {
        self.base = base;
        self.log.clear();
    }

    /// An event has been handled, after which `made` had been made.
    #[inline]
    pub fn handled(&mut self, entry: Entry, made: u64) {
        let made = made - self.base;
        if made > self.log.last().map_or(0, |last| last.made) {
            self.log.push(Made { at: time(entry), number: number(entry), made });
        }
    }
}

/// The numbers that one thread would have given: by part, of what it made in a window, in order.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    base: u64,
    by_part: Vec<Vec<u64>>,
    /// By part, how far its log is merged, and the place of what is next in it.
    at: Vec<usize>,
    next: Vec<u128>,
}

impl Numbers {
    /// Merges the logs of a window; gives the last number.
    pub fn merge<L: std::ops::Deref<Target = Log>>(&mut self, base: u64, logs: &[L]) -> u64 {
        self.base = base;
        self.by_part.resize_with(logs.len(), Vec::new);
        self.by_part.iter_mut().for_each(Vec::clear);
        self.at.clear();
        self.at.resize(logs.len(), 0);
        self.next.clear();
        for (part, log) in logs.iter().enumerate() {
            self.next.push(self.place(part, log.first()));
        }
        let mut last = base;
        loop {
            // The part that goes on, until another is before it.
            let (mut first, mut second, mut part) = (NONE, NONE, 0);
            for (index, next) in self.next.iter().enumerate() {
                if *next < first {
                    (second, first, part) = (first, *next, index);
                } else {
                    second = second.min(*next);
                }
            }
            if first == NONE {
                return last;
            }
            let log = &logs[part];
            let mut at = self.at[part];
            while first < second {
                let numbers = &mut self.by_part[part];
                let more = log[at].made - numbers.len() as u64;
                numbers.extend(last + 1..=last + more);
                last += more;
                at += 1;
                first = self.place(part, log.get(at));
            }
            self.at[part] = at;
            self.next[part] = first;
        }
    }

    /// Where what a part has handled is among what all have.
    #[inline]
    fn place(&self, part: usize, made: Option<&Made>) -> u128 {
        made.map_or(NONE, |made| u128::from(made.at) << 64 | u128::from(self.of(part, made.number)))
    }

    /// Whether a number is one that a part has given in the window.
    #[inline]
    pub fn is_own(&self, number: u64) -> bool {
        number > self.base
    }

    /// What a part's number is for all.
    #[inline]
    pub fn of(&self, part: usize, number: u64) -> u64 {
        match number.checked_sub(self.base + 1) {
            None => number,
            Some(index) => self.by_part[part][index as usize],
        }
    }

    /// An entry with the number that it has for all.
    #[inline]
    pub fn entry(&self, part: usize, entry: Entry) -> Entry {
        let number = Entry::from(self.of(part, number(entry))) << ORDER_SHIFT;
        entry >> 64 << 64 | number | entry & ((1 << ORDER_SHIFT) - 1)
    }
}

/// An entry of its own.
#[inline(always)]
pub(crate) fn entry(at: u64, number: u64, event: Event) -> Entry {
    Entry::from(at) << 64 | Entry::from(number << ORDER_SHIFT | event.pack())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use units::Random;

    use super::*;

    /// Events that make others in their own part after a short time, so that many are of one time; beside one queue for all.
    fn made(seed: u64, parts: usize) {
        let children = |id: u64| {
            let mut random = Random::new(seed ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let count = random.next_u64() >> 62;
            (0..count).map(|_| 1 + (random.next_u64() >> 62)).collect::<Vec<u64>>()
        };
        // By time and number; the part, and a name that both ways give alike.
        let mut all: BTreeSet<(u64, u64, usize, u64)> =
            (0..3 * parts).map(|n| (n as u64 / 5, n as u64 + 1, n % parts, n as u64)).collect();
        let mut last = all.len() as u64;
        let (base, end) = (last, 9);
        let mut queues: Vec<BTreeSet<(u64, u64, u64)>> = vec![BTreeSet::new(); parts];
        all.iter().for_each(|(at, number, part, id)| {
            queues[*part].insert((*at, *number, *id));
        });
        let mut numbers_of_all = std::collections::BTreeMap::new();
        while let Some((at, number, part, id)) = all.pop_first() {
            numbers_of_all.insert(id, number);
            if at >= end {
                continue;
            }
            for (child, ahead) in children(id).into_iter().enumerate() {
                last += 1;
                all.insert((at + ahead, last, part, (id + 1) * 64 + child as u64));
            }
        }
        let mut windows: Vec<Window> = (0..parts).map(|_| Window::default()).collect();
        let mut named = vec![Vec::new(); parts];
        for part in 0..parts {
            let window = &mut windows[part];
            window.begin(base);
            let mut made = base;
            while let Some((at, number, id)) = queues[part].pop_first() {
                if at >= end {
                    continue;
                }
                for (child, ahead) in children(id).into_iter().enumerate() {
                    made += 1;
                    let id = (id + 1) * 64 + child as u64;
                    queues[part].insert((at + ahead, made, id));
                    named[part].push((id, made));
                }
                window.handled(entry(at, number, Event::Timer(0)), made);
            }
        }
        let mut numbers = Numbers::default();
        let logs: Vec<&Log> = windows.iter().map(|window| &window.log).collect();
        assert_eq!(numbers.merge(base, &logs), last);
        for (part, named) in named.iter().enumerate() {
            for (id, number) in named {
                assert_eq!(numbers.of(part, *number), numbers_of_all[id], "{id} of part {part}");
            }
        }
        assert!((1..=base).all(|number| numbers.of(0, number) == number));
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_one_thread(seed in any::<u64>(), parts in 1usize..5) {
            made(seed, parts);
        }
    }
}
