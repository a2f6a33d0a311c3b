//! The order of events of one time, when parts run beside each other.
//!
//! On one thread an event's number says how many were made before it, and of one time those run first that were made first. A part cannot
//! know how many the others make meanwhile. So in a window it counts for itself: numbers behind the window's base are its own, and
//! right among each other. It keeps a log of the events that made others. When all have come to the window's end each part merges the
//! logs by time and number, as one thread would have handled these events, and thereby learns which numbers one thread would have
//! given: those of events that were made before the window are known, and whatever made an event in the window comes before it
//! in the same log. What is made for later than the window waits until then, and goes into the queue with the right number.
//!
//! A part that has to wait ([`super::linger`]) comes less far than the others. Logs are merged up to there then, and the rest with those
//! of the next window. What has no number for all yet keeps one of its part's own behind them, and stays in that part: a packet that it
//! is about comes to another part later than the next window ends.

use crate::event::{Entry, Event, ORDER_SHIFT, number, time};

/// Events of a part that have made others, in their order: entries with how many they have made in place of the event.
pub(crate) type Log = Vec<Entry>;

const COUNT: Entry = (1 << ORDER_SHIFT) - 1;

/// What a part makes in a window.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// How many had been made when the last event was handled.
    made: u64,
    /// What is for its end or later.
    pub later: Vec<Entry>,
    pub log: Log,
}

impl Window {
    pub fn begin(&mut self, made: u64) {
        self.made = made;
    }

    /// An event has been handled, after which `made` had been made.
    #[inline]
    pub fn handled(&mut self, entry: Entry, made: u64) {
        let more = made - self.made;
        if more > 0 {
            self.made = made;
            self.log.push(entry & !COUNT | Entry::from(more));
        }
    }
}

/// The numbers that one thread would have given: by part, of what it made in a window, in order. Where a part had to wait, they are known
/// up to there; the rest of the logs is merged with the next window's.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    base: u64,
    last: u64,
    by_part: Vec<Vec<u64>>,
    /// By part, how far its log is merged, and what is next in it.
    at: Vec<usize>,
    next: Vec<Entry>,
    /// The part that has come least far.
    least: usize,
}

impl Numbers {
    /// Merges the logs of a window, up to the first of the entries to which the parts have come; gives the last number.
    pub fn merge<L: std::ops::Deref<Target = Log>>(&mut self, base: u64, logs: &[L], come: &[Entry]) -> u64 {
        self.base = base;
        self.last = base;
        self.by_part.resize_with(logs.len(), Vec::new);
        self.by_part.iter_mut().for_each(Vec::clear);
        self.at.clear();
        self.at.resize(logs.len(), 0);
        self.next.clear();
        let next = |part: usize, at: usize| logs[part].get(at).copied().unwrap_or(come[part]);
        self.next.extend((0..logs.len()).map(|part| next(part, 0)));
        let mut last = base;
        loop {
            // The part that goes on, until another is before it.
            let (mut part, mut other) = (0, usize::MAX);
            for index in 1..self.next.len() {
                if self.is_before((index, self.next[index]), (part, self.next[part])) {
                    (part, other) = (index, part);
                } else if other == usize::MAX
                    || self.is_before((index, self.next[index]), (other, self.next[other]))
                {
                    other = index;
                }
            }
            let mut at = self.at[part];
            loop {
                let Some(made) = logs[part].get(at) else {
                    (self.at[part], self.last, self.least) = (at, last, part);
                    return last;
                };
                let numbers = &mut self.by_part[part];
                for _ in 0..(made & COUNT) as u32 {
                    last += 1;
                    numbers.push(last);
                }
                at += 1;
                let first = next(part, at);
                if other != usize::MAX && !self.is_before((part, first), (other, self.next[other])) {
                    self.next[part] = first;
                    break;
                }
            }
            self.at[part] = at;
        }
    }

    /// Whether one part's entry comes before another's. A number of a window is above all that were given before it; two of them are
    /// compared as what they are for all, which is known of what is next in each log.
    #[inline]
    fn is_before(&self, (part, entry): (usize, Entry), (other_part, other): (usize, Entry)) -> bool {
        let both_own = number(entry).min(number(other)) > self.base;
        if time(entry) == time(other) && both_own {
            return self.of(part, number(entry)) < self.of(other_part, number(other));
        }
        entry < other
    }

    /// The part that has come least far.
    pub fn least(&self) -> usize {
        self.least
    }

    /// Takes what is merged out of a part's log.
    pub fn take_merged(&self, part: usize, log: &mut Log) {
        log.drain(..self.at[part]);
        for entry in log {
            *entry = self.entry(part, *entry);
        }
    }

    /// How many a part had made is how many it has, after what all have made.
    pub fn made(&self, part: usize, made: u64) -> u64 {
        self.last + (made - self.base) - self.by_part[part].len() as u64
    }

    /// Whether it is known what a number is for all, once it has gone through [`Numbers::of`].
    #[inline]
    pub fn is_known(&self, number: u64) -> bool {
        number <= self.last
    }

    /// Whether a number is one that a part has given since the last merge.
    #[inline]
    pub fn is_own(&self, number: u64) -> bool {
        number > self.base
    }

    /// What a part's number is for all; above all if that is not known yet.
    #[inline]
    pub fn of(&self, part: usize, number: u64) -> u64 {
        let Some(index) = number.checked_sub(self.base + 1) else { return number };
        let known = &self.by_part[part];
        match known.get(index as usize) {
            Some(number) => *number,
            None => self.last + 1 + index - known.len() as u64,
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

    /// Events that make others in their own part after a time of so many bits: with few of them, many are of one time. Beside one queue
    /// for all.
    fn made(seed: u64, parts: usize, bits: u32) {
        let children = |id: u64| {
            let mut random = Random::new(seed ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let count = random.next_u64() >> 62;
            (0..count).map(|_| 1 + (random.next_u64() >> (64 - bits))).collect::<Vec<u64>>()
        };
        let name = |id: u64, child: usize| Random::new(id ^ (child as u64 + 1) << 60).next_u64();
        // By time and number; the part, and a name that both ways give alike.
        let mut all: BTreeSet<(u64, u64, usize, u64)> =
            (0..3 * parts).map(|n| (n as u64 / 5, n as u64 + 1, n % parts, n as u64)).collect();
        let mut last = all.len() as u64;
        let (base, end) = (last, 9 << (bits - 2));
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
                all.insert((at + ahead, last, part, name(id, child)));
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
                    let id = name(id, child);
                    queues[part].insert((at + ahead, made, id));
                    named[part].push((id, made));
                }
                window.handled(entry(at, number, Event::Timer(0)), made);
            }
        }
        let mut numbers = Numbers::default();
        let logs: Vec<&Log> = windows.iter().map(|window| &window.log).collect();
        let come = vec![Entry::from(end) << 64; parts];
        assert_eq!(numbers.merge(base, &logs, &come), last);
        for (part, named) in named.iter().enumerate() {
            for (id, number) in named {
                assert_eq!(numbers.of(part, *number), numbers_of_all[id], "{id} of part {part}");
            }
        }
        assert!((1..=base).all(|number| numbers.of(0, number) == number));
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_one_thread(seed in any::<u64>(), parts in 1usize..5, bits in 2u32..30) {
            made(seed, parts, bits);
        }
    }
}
