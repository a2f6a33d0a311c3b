//! Events, and how they are packed into the entries of their queue.

/// What is to happen; the number says to which port, flow, ... In the order of [`Event::pack`]'s kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first packet on the port's wire arrives.
    Arrive(u32),
    /// A connection's timer.
    Timer(u32),
    /// Something that was planned: a flow starts, stops, ...
    Action(u32),
    /// A packet that does not keep the wire's order arrives.
    Single(u32),
    /// A UDP source sends.
    Udp(u32),
    /// A recorder samples.
    Sample(u32),
    /// A switch's port has sent a packet, and may send the next.
    Free(u32),
    /// A switch's packet generator is due.
    Generate(u32),
}

impl Event {
    pub(crate) fn pack(self) -> u64 {
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
        debug_assert!(id <= MAX_ID);
        kind << 24 | u64::from(id)
    }

    pub(crate) fn unpack(word: u64) -> Event {
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
pub(crate) type Entry = u128;

/// In place of an entry where there is none: later than all.
pub(crate) const NONE: Entry = Entry::MAX;

/// Bits of kind and id in an entry, below the order.
pub(crate) const ORDER_SHIFT: u32 = 27;

/// When an entry is due.
#[inline(always)]
pub(crate) fn time(entry: Entry) -> u64 {
    (entry >> 64) as u64
}

/// How many entries had been made when it was, with itself.
#[inline(always)]
pub(crate) fn number(entry: Entry) -> u64 {
    entry as u64 >> ORDER_SHIFT
}

/// The event of an entry in place of another, in its order.
pub(crate) fn in_place_of(entry: Entry, event: Event) -> Entry {
    entry >> ORDER_SHIFT << ORDER_SHIFT | Entry::from(event.pack())
}
