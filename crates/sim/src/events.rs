//! The queue of events: a four-ary heap over 16-byte entries.
//!
//! Ports keep their packets in order themselves, so that the heap holds one entry per busy wire and timer, not one per
//! packet: it is small, and most of it stays in the processor's first cache. Entries of one time come out in the order in
//! which they went in.

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
    Stray(u32),
    /// A switch's packet generator is due.
    Generate(u32),
}

impl Event {
    fn pack(self) -> u64 {
        let (kind, id) = match self {
            Event::Arrive(id) => (0, id),
            Event::Timer(id) => (1, id),
            Event::Action(id) => (2, id),
            Event::Stray(id) => (3, id),
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
            3 => Event::Stray(id),
            4 => Event::Udp(id),
            5 => Event::Sample(id),
            6 => Event::Free(id),
            _ => Event::Generate(id),
        }
    }
}

/// Ids are below this.
pub(crate) const MAX_ID: u32 = 0xff_ffff;

/// Time, then order of making (37 bits) with kind and id (27 bits) below.
type Entry = (u64, u64);

const ORDER_SHIFT: u32 = 27;

#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: Vec<Entry>,
    made: u64,
}

impl Events {
    pub fn push(&mut self, at: u64, event: Event) {
        let entry = (at, self.made << ORDER_SHIFT | event.pack());
        self.made += 1;
        let mut hole = self.heap.len();
        self.heap.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / 4;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    pub fn first(&self) -> Option<(u64, Event)> {
        self.heap.first().map(|(at, word)| (*at, Event::unpack(*word)))
    }

    pub fn drop_first(&mut self) {
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sift_down(last);
        }
    }

    /// Puts another event in the place of the first one, which is cheaper than taking one out and putting one in.
    pub fn replace_first(&mut self, at: u64, event: Event) {
        let entry = (at, self.made << ORDER_SHIFT | event.pack());
        self.made += 1;
        self.sift_down(entry);
    }

    fn sift_down(&mut self, entry: Entry) {
        let heap = &mut self.heap[..];
        let len = heap.len();
        let mut hole = 0;
        loop {
            let child = 4 * hole + 1;
            if child >= len {
                break;
            }
            let mut least = child;
            let mut value = heap[child];
            for (index, candidate) in heap.iter().enumerate().take((child + 4).min(len)).skip(child + 1) {
                if *candidate < value {
                    least = index;
                    value = *candidate;
                }
            }
            if entry <= value {
                break;
            }
            heap[hole] = value;
            hole = least;
        }
        heap[hole] = entry;
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
