//! The queue of events: a four-ary heap over 16-byte entries, four to a line of the cache.
//!
//! Ports keep their packets in order themselves, so that the heap holds one entry per busy wire and timer, not one per
//! packet: it is small, and most of it stays in the processor's first cache. Entries of one time come out in the order in
//! which they went in.

use std::hint::select_unpredictable;

/// What is to happen; the number says to which port, flow, ...
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first packet on the port's wire arrives.
    Arrive(u32),
    /// A connection's timer.
    Timer(u32),
    /// Something that was planned: a flow starts, stops, ...
    Action(u32),
    /// A UDP source sends.
    Udp(u32),
    /// A recorder samples.
    Sample(u32),
    /// A switch's port has sent a packet, and may send the next.
    Free(u32),
    /// A packet that does not keep the wire's order arrives.
    Single(u32),
    /// A switch's packet generator is due.
    Generate(u32),
}

impl Event {
    fn pack(self) -> u64 {
        let (kind, id) = match self {
            Event::Arrive(id) => (0, id),
            Event::Timer(id) => (1, id),
            Event::Action(id) => (2, id),
            Event::Single(id) => (3, id),
            Event::Udp(id) => (4, id),
            Event::Sample(id) => (5, id),
            Event::Free(id) => (6, id),
            Event::Generate(id) => (7, id),
        };
        kind << 24 | u64::from(id)
    }

    fn unpack(word: u64) -> Event {
        let id = (word & 0xff_ffff) as u32;
        match word >> 24 & 7 {
            0 => Event::Arrive(id),
            1 => Event::Timer(id),
            2 => Event::Action(id),
            3 => Event::Single(id),
            4 => Event::Udp(id),
            5 => Event::Sample(id),
            6 => Event::Free(id),
            _ => Event::Generate(id),
        }
    }
}

/// Ids are below this.
pub(crate) const MAX_ID: u32 = 0xff_ffff;

/// Time (64 bits), then order of making (37) with kind and id (27) below.
type Entry = u128;

const ORDER_SHIFT: u32 = 27;

/// In place of an entry where there is none: later than all.
const NONE: Entry = Entry::MAX;

/// Four siblings, in one line of the cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Four([Entry; 4]);

impl Four {
    /// The least, and which it is. No branches: which is the least cannot be predicted.
    #[inline(always)]
    fn least(&self) -> (usize, Entry) {
        let less = |a: (usize, Entry), b: (usize, Entry)| select_unpredictable(b.1 < a.1, b, a);
        let [a, b, c, d] = self.0;
        less(less((0, a), (1, b)), less((2, c), (3, d)))
    }
}

/// The first entry is the last of the first four, and those behind it are the others, four by four: the children of `slot` are
/// the four number `slot - 2`.
const ROOT: usize = 3;

#[derive(Debug)]
pub(crate) struct Events {
    fours: Vec<Four>,
    /// Behind the last entry.
    end: usize,
    made: u64,
}

impl Default for Events {
    fn default() -> Events {
        Events { fours: vec![Four([NONE; 4])], end: ROOT, made: 0 }
    }
}

impl Events {
    fn entry(&mut self, at: u64, event: Event) -> Entry {
        let order = self.made << ORDER_SHIFT | event.pack();
        self.made += 1;
        Entry::from(at) << 64 | Entry::from(order)
    }

    fn slot(&mut self, slot: usize) -> &mut Entry {
        &mut self.fours[slot / 4].0[slot % 4]
    }

    pub fn push(&mut self, at: u64, event: Event) {
        let entry = self.entry(at, event);
        let mut hole = self.end;
        self.end += 1;
        if hole == 4 * self.fours.len() {
            self.fours.push(Four([NONE; 4]));
        }
        while hole > ROOT {
            let parent = hole / 4 + 2;
            let above = *self.slot(parent);
            if above <= entry {
                break;
            }
            *self.slot(hole) = above;
            hole = parent;
        }
        *self.slot(hole) = entry;
    }

    #[inline]
    pub fn first(&self) -> Option<(u64, Event)> {
        let first = self.fours[0].0[ROOT];
        (first != NONE).then(|| ((first >> 64) as u64, Event::unpack(first as u64)))
    }

    pub fn drop_first(&mut self) {
        if self.end > ROOT {
            self.end -= 1;
            let last = std::mem::replace(self.slot(self.end), NONE);
            if self.end > ROOT {
                self.sift_down(last);
            }
        }
    }

    /// Puts another event in the place of the first one, which is cheaper than taking one out and putting one in.
    pub fn replace_first(&mut self, at: u64, event: Event) {
        let entry = self.entry(at, event);
        self.sift_down(entry);
    }

    fn sift_down(&mut self, entry: Entry) {
        let mut hole = ROOT;
        while let Some(children) = self.fours.get(hole - 2) {
            let (which, least) = children.least();
            if entry <= least {
                break;
            }
            *self.slot(hole) = least;
            hole = 4 * (hole - 2) + which;
        }
        *self.slot(hole) = entry;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn by_time_then_by_order(times in prop::collection::vec(0u64..50, 1..300), replace in prop::collection::vec(any::<bool>(), 300)) {
            let mut events = Events::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (id, at) in times.iter().enumerate() {
                events.push(*at, Event::Timer(id as u32));
                model.push((*at, id as u32));
            }
            let mut id = times.len() as u32;
            for replace in replace {
                model.sort();
                let Some(first) = model.first().copied() else { break };
                prop_assert_eq!(events.first(), Some((first.0, Event::Timer(first.1))));
                model.remove(0);
                if replace {
                    let at = first.0 + u64::from(id % 7);
                    events.replace_first(at, Event::Timer(id));
                    model.push((at, id));
                    id += 1;
                } else {
                    events.drop_first();
                }
            }
        }
    }
}
