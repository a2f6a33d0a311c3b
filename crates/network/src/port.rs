//! A port: a drop-tail queue, or a managed one (`aqm`), and the wire behind it.
//!
//! A first-in first-out queue in front of a wire of known rate needs no event for the end of a transmission: when a packet is
//! queued, its departure and arrival are known. The port keeps all packets of queue and wire in one ring in order, and one event,
//! for the first arrival.

use std::collections::VecDeque;

use units::{Bytes, Random, Rate, Time};

use crate::aqm::{Aqm, Flow, FlowKey, Managed, Offered, Waiting};
use crate::parts::{Numbers, draws};
use crate::pool::{PacketId, Slot};
use crate::record::Histogram;

/// A port's number, counted over the whole network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortId(pub(crate) u32);

/// In place of a capture's number: none.
pub(crate) const NO_CAPTURE: u32 = u32::MAX;

/// Bytes that a packet takes beside its own, about.
pub const BESIDE: u64 = 512;

/// How long a queue may get. The packet that is being sent does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueLimit {
    pub packets: Option<u64>,
    pub bytes: Option<Bytes>,
}

/// One direction of a link, and the queue in front of it.
#[derive(Debug, Clone)]
pub struct Link {
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Time,
    pub limit: QueueLimit,
    /// Memory of packets in the queue and on the wire together, which take [`BESIDE`] bytes each beside their own; what goes beyond is
    /// dropped. A link keeps what it was made with. For wires that are never impaired, and do not lead to another part.
    pub most: Option<Bytes>,
    /// Packets that find this many waiting are marked CE if they can be (DCTCP's K).
    pub mark_above: Option<u64>,
    /// Management of the queue. A link keeps what it was made with.
    pub aqm: Option<Aqm>,
    /// Other than 0: FQ-CoDel's hash has a salt, made of this, the network's seed and the port (RFC 8290 section 4.1).
    pub aqm_salt: u64,
    /// Bytes that the link adds to each packet.
    pub framing: u32,
    /// Share of packets that get lost on the wire.
    pub loss: f64,
    /// Losses in bursts, instead of `loss`.
    pub burst_loss: Option<GilbertElliott>,
    /// Up to this much more delay, uniformly; packets keep no order then.
    pub jitter: Time,
    /// Share of packets that come later, by `reorder_by`.
    pub reorder: f64,
    pub reorder_by: Time,
    /// Share of packets that come twice.
    pub duplicate: f64,
    /// Largest packet, from the IP header on.
    pub mtu: u32,
}

impl Link {
    pub fn new(rate: Rate, delay: Time) -> Link {
        Link {
            rate,
            delay,
            limit: QueueLimit { packets: Some(1000), bytes: None },
            most: None,
            mark_above: None,
            aqm: None,
            aqm_salt: 0,
            framing: 14,
            loss: 0.0,
            burst_loss: None,
            jitter: Time::ZERO,
            reorder: 0.0,
            reorder_by: Time::ZERO,
            duplicate: 0.0,
            mtu: 1500,
        }
    }
}

/// Losses by a chain of two states (Gilbert 1960, Elliott 1963): shares of packets at which it changes state, and that get lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GilbertElliott {
    pub to_bad: f64,
    pub to_good: f64,
    pub loss_good: f64,
    pub loss_bad: f64,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStatistics {
    /// Packets taken and their bytes, framing included.
    pub packets: u64,
    pub bytes: u64,
    /// Packets refused because the queue was full, too large for the link, or lost on the wire.
    pub dropped: u64,
    pub too_large: u64,
    pub lost: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// Time that the packets taken wait, in picoseconds, summed; and the longest.
    pub wait_ps: u128,
    pub wait_max_ps: u64,
    /// Time that the wire was sending, in picoseconds.
    pub busy_ps: u128,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    pub arrives: u64,
    /// When its first bit is sent.
    starts: u64,
    pub packet: PacketId,
    /// Bytes on the wire.
    bytes: u32,
}

/// What is first is what each packet needs: the ring, then what its link says.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Port {
    ring: VecDeque<Flight>,
    /// Of the ring, those in front that are known to have begun to be sent, and the bytes of the others. Whoever needs to know how
    /// many really have asks `settle` first: what is known is never less than what waits.
    begun: usize,
    waiting_bytes: u64,
    free_at: u64,
    /// Nothing that is sent from now on arrives before this: the wire's last arrival when its link was changed last.
    not_before: u64,
    bounds: Bounds,
    /// Node at the other end, and which of its ports this link is on there.
    pub to: u32,
    pub to_port: u32,
    /// What a router at the other end mixes into flows' hashes: see [`crate::routes::choice`].
    pub spread: u32,
    /// The capture of what it sends, and who watches what comes out of its wire at the other end.
    pub captures_sent: u32,
    pub captures_come: u32,
    /// Where this port is at its own node; and the switch that this is, if it is one.
    pub number: u32,
    pub of_switch: u32,
    /// Each packet arrives by an event of its own, and the ring is only the queue: the wire loses packets or their order, or has done
    /// so when what still waits came.
    pub impaired: bool,
    /// It is impaired or leads to another part: a packet's arrival is not just an event of the ring's first.
    pub special: bool,
    bad: bool,
    /// The queue, if it is managed: the ring is the wire alone then.
    pub managed: Option<Box<Managed>>,
    /// The wire leads to another part (`parts`) or comes from one.
    cut: Option<Box<Cut>>,
    /// Memory of the ring's packets, if there is a bound of it.
    held: u64,
    /// Waiting times by queue, if they are asked for.
    pub waits: Option<Vec<Histogram>>,
    pub statistics: QueueStatistics,
    pub link: Box<Link>,
}

/// Five lines of the cache. An even number of them would leave some of the cache's sets to what is rarely read.
const _: () = assert!(size_of::<Port>() == 320);

/// What a link says to each packet, in one line of the cache; `u64::MAX` is for no bound.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Picoseconds for a byte, if that is a whole number; else 0.
    ps_per_byte: u64,
    delay: u64,
    /// [`Link::limit`], [`Link::mark_above`] and [`Link::most`].
    packets: u64,
    bytes: u64,
    mark_above: u64,
    most: u64,
    mtu: u32,
    framing: u32,
}

impl Bounds {
    fn of(link: &Link) -> Bounds {
        let bytes = |most: Option<Bytes>| most.map_or(u64::MAX, Bytes::get);
        Bounds {
            ps_per_byte: BITS_PS
                .checked_div(link.rate.as_bps())
                .filter(|ps| ps * link.rate.as_bps() == BITS_PS)
                .unwrap_or(0),
            delay: link.delay.as_ps(),
            packets: link.limit.packets.unwrap_or(u64::MAX),
            bytes: bytes(link.limit.bytes),
            mark_above: link.mark_above.unwrap_or(u64::MAX),
            most: bytes(link.most),
            mtu: link.mtu,
            framing: link.framing,
        }
    }
}

/// What is to be known of a wire between two parts: at its begin of what has not been handed over, at its end of what has come.
#[derive(Debug, Default)]
struct Cut {
    /// When the last packet arrives that was handed over.
    last_arrives: u64,
    /// See [`Port::reserve`], of each packet in the ring.
    numbers: VecDeque<u64>,
    /// See [`Port::was_last`].
    last: u64,
}

/// What became of a packet that was handed to a port.
pub(crate) enum Taken {
    /// It is in the ring; `first`: an event for its arrival is needed.
    Queued {
        first: Option<u64>,
    },
    /// The wire is special: it arrives at that time on its own, if not lost, or in another part.
    Special {
        at: u64,
    },
    Dropped,
}

const BITS_PS: u64 = 8_000_000_000_000;

impl Port {
    pub fn new(link: Link, to: u32, to_port: u32, number: u32) -> Port {
        let managed = link.aqm.map(|aqm| Box::new(Managed::new(aqm, link.mtu + link.framing, link.aqm_salt)));
        let mut port = Port {
            bounds: Bounds::of(&link),
            managed,
            link: Box::new(link),
            to,
            to_port,
            spread: 0,
            number,
            of_switch: u32::MAX,
            ring: VecDeque::new(),
            begun: 0,
            waiting_bytes: 0,
            held: 0,
            free_at: 0,
            not_before: 0,
            impaired: false,
            special: false,
            bad: false,
            captures_sent: NO_CAPTURE,
            captures_come: NO_CAPTURE,
            cut: None,
            waits: None,
            statistics: QueueStatistics::default(),
        };
        port.link_changed();
        port
    }

    fn link_changed(&mut self) {
        self.bounds = Bounds::of(&self.link);
        self.impaired = draws(&self.link) || self.impaired && !self.ring.is_empty();
        self.special = self.impaired || self.cut.is_some();
    }

    fn serialisation(&self, bytes: u32) -> u64 {
        match self.bounds.ps_per_byte {
            0 => self.link.rate.time_for(Bytes::new(u64::from(bytes))).as_ps(),
            ps => ps * u64::from(bytes),
        }
    }

    /// Counts out of the queue what has begun to be sent.
    fn settle(&mut self, now: u64) {
        if self.impaired {
            self.settle_impaired(now);
            return;
        }
        while let Some(flight) = self.ring.get(self.begun)
            && flight.starts <= now
        {
            self.waiting_bytes -= u64::from(flight.bytes);
            self.begun += 1;
        }
    }

    fn settle_impaired(&mut self, now: u64) {
        while let Some(flight) = self.ring.front()
            && flight.starts <= now
        {
            self.waiting_bytes -= u64::from(flight.bytes);
            self.ring.pop_front();
        }
        if self.ring.is_empty() && !draws(&self.link) {
            self.impaired = false;
            self.special = self.cut.is_some();
        }
    }

    /// Packets and bytes waiting now.
    pub fn depth(&mut self, now: u64) -> (u64, u64) {
        if let Some(managed) = &self.managed {
            return (managed.len(), managed.bytes());
        }
        self.settle(now);
        ((self.ring.len() - self.begun) as u64, self.waiting_bytes)
    }

    /// Bytes whose sending has begun, once it is settled ([`Port::depth`]): what waits is counted when it is taken.
    pub fn sent_bytes(&self) -> u64 {
        self.statistics.bytes - self.waiting_bytes
    }

    /// When each packet that is here was sent or will be, in order.
    pub fn starts(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.ring.iter().map(|flight| flight.starts)
    }

    /// How long the wire is busy with what it has been given.
    pub fn backlog(&self, now: u64) -> u64 {
        self.free_at.saturating_sub(now)
    }

    /// When all that it has been given will have been sent.
    pub fn drained(&self, now: u64) -> u64 {
        match &self.managed {
            None => self.free_at,
            Some(_) => now + self.delay(now),
        }
    }

    /// How long a packet that came now would wait.
    pub fn delay(&self, now: u64) -> u64 {
        let waiting = self.managed.as_ref().map_or(0, |m| m.bytes());
        self.backlog(now) + self.link.rate.time_for(Bytes::new(waiting)).as_ps()
    }

    /// Takes a packet of a flow into a managed queue, or drops it. Packets that are dropped for it go to `dropped`.
    pub fn manage(
        &mut self,
        now: u64,
        (id, slot): (PacketId, &Slot),
        flow: Flow<impl FnOnce() -> FlowKey>,
        random: &mut Random,
        dropped: &mut Vec<PacketId>,
    ) -> Offered {
        let bytes = slot.size + self.link.framing;
        if slot.size > self.link.mtu && slot.size > self.link.mtu + slot.tags() {
            self.statistics.too_large += 1;
            return Offered::Dropped;
        }
        let Some(managed) = self.managed.as_mut() else { return Offered::Dropped };
        let room = (&self.link.limit, self.free_at > now);
        let offered = managed.enqueue(flow, Waiting { packet: id, bytes, came: now }, room, random, dropped);
        self.statistics.dropped += dropped.len() as u64 + u64::from(offered == Offered::Dropped);
        offered
    }

    /// The next packet of a managed queue, its queue, and how long it waited.
    pub fn next_managed(&mut self, now: u64, dropped: &mut Vec<PacketId>) -> Option<(PacketId, usize, u64)> {
        let next = self.managed.as_mut()?.dequeue(now, self.free_at, dropped);
        self.statistics.dropped += dropped.len() as u64;
        let (next, queue) = next?;
        let wait = now - next.came;
        self.statistics.wait_ps += u128::from(wait);
        self.statistics.wait_max_ps = self.statistics.wait_max_ps.max(wait);
        Some((next.packet, queue, wait))
    }

    /// When a managed queue is to be asked for a packet again.
    pub fn ask_again(&self, now: u64) -> Option<u64> {
        let next = self.managed.as_ref()?.next()?;
        // A shaper opens, or the wire is free.
        Some(if self.free_at > now { next.max(self.free_at) } else { next.max(now + 1) })
    }

    /// Whether a packet has no room behind so many.
    #[inline]
    fn full(&self, waiting: u64, bytes: u32) -> bool {
        waiting >= self.bounds.packets || self.waiting_bytes + u64::from(bytes) > self.bounds.bytes
    }

    /// Whether a packet might be refused or marked if nothing had begun to be sent but what is known to have.
    #[inline]
    fn may_matter(&self, bytes: u32) -> bool {
        let waiting = (self.ring.len() - self.begun) as u64;
        self.full(waiting, bytes) || waiting >= self.bounds.mark_above
    }

    /// Whether queue and wire have no room for a packet of so many bytes.
    #[inline]
    pub fn crowded(&self, bytes: u32) -> bool {
        self.bounds.most < u64::MAX && self.held + u64::from(bytes) + BESIDE > self.bounds.most
    }

    /// Whether a packet of this size, from the IP header on, has no room on queue and wire.
    #[inline]
    pub fn has_no_room(&self, size: u32) -> bool {
        self.crowded(size + self.bounds.framing)
    }

    /// Takes or drops a packet.
    #[inline]
    pub fn push(&mut self, now: u64, id: PacketId, slot: &mut Slot) -> Taken {
        let bytes = slot.size + self.bounds.framing;
        // Which packets have begun to be sent matters only if the queue may be as long as a limit.
        let (mut full, mut mark) = (self.crowded(bytes), false);
        if self.impaired || self.may_matter(bytes) {
            self.settle(now);
            let waiting = (self.ring.len() - self.begun) as u64;
            // The queue may be full only if the wire is busy.
            full |= self.free_at > now && self.full(waiting, bytes);
            mark = waiting >= self.bounds.mark_above;
        }
        if full {
            self.statistics.dropped += 1;
            return Taken::Dropped;
        }
        if slot.size > self.bounds.mtu && slot.size > self.bounds.mtu + slot.tags() {
            self.statistics.too_large += 1;
            return Taken::Dropped;
        }
        if mark {
            self.statistics.marked += u64::from(slot.packet.mark_ce());
        }
        let starts = self.free_at.max(now);
        let takes = self.serialisation(bytes);
        self.free_at = starts + takes;
        let statistics = &mut self.statistics;
        statistics.packets += 1;
        statistics.bytes += u64::from(bytes);
        statistics.wait_ps += u128::from(starts - now);
        statistics.wait_max_ps = statistics.wait_max_ps.max(starts - now);
        statistics.busy_ps += u128::from(takes);
        self.note_wait(0, starts - now);
        let arrives = self.arrival();
        let first = self.begin().then_some(arrives);
        self.waiting_bytes += u64::from(bytes);
        self.hold(bytes);
        self.ring.push_back(Flight { arrives, starts, packet: id, bytes });
        if self.special { Taken::Special { at: arrives } } else { Taken::Queued { first } }
    }

    /// Whether the ring is empty, so that an event for the next arrival is needed; it begins at its front again then, whose memory
    /// is in the cache.
    #[inline]
    fn begin(&mut self) -> bool {
        let empty = self.ring.is_empty();
        if empty {
            self.ring.clear();
        }
        empty
    }

    /// Keeps a waiting time, if that is asked for.
    #[inline]
    pub fn note_wait(&mut self, queue: usize, wait: u64) {
        if let Some(waits) = &mut self.waits {
            if queue >= waits.len() {
                waits.resize_with(queue + 1, Histogram::default);
            }
            waits[queue].add(wait);
        }
    }

    /// Takes the first packet off the wire, if it arrives by now. It does not if the event is of one that arrives by an event of its own
    /// since the wire became impaired.
    #[inline]
    pub fn arrive(&mut self, now: u64) -> Option<PacketId> {
        let flight = *self.ring.front().filter(|first| first.arrives <= now && !self.impaired)?;
        self.ring.pop_front();
        self.left(&flight);
        Some(flight.packet)
    }

    /// When the first packet on the wire arrives.
    #[inline]
    pub fn next_arrival(&self) -> Option<u64> {
        self.ring.front().map(|first| first.arrives)
    }

    /// A packet of so many bytes comes into the ring.
    #[inline]
    fn hold(&mut self, bytes: u32) {
        if self.bounds.most < u64::MAX {
            self.held += u64::from(bytes) + BESIDE;
        }
    }

    /// The first of the ring is out of it.
    #[inline]
    fn left(&mut self, flight: &Flight) {
        if self.bounds.most < u64::MAX {
            self.held = self.held.saturating_sub(u64::from(flight.bytes) + BESIDE);
        }
        if self.begun > 0 {
            self.begun -= 1;
        } else {
            self.waiting_bytes -= u64::from(flight.bytes);
        }
    }

    /// The wire has become impaired: the ring is the queue alone from now on. Gives what is on the wire, and what waits.
    pub fn take_apart(&mut self) -> (Vec<Flight>, Vec<Flight>) {
        let sent = self.ring.drain(..self.begun).collect();
        self.begun = 0;
        (sent, self.ring.iter().copied().collect())
    }

    /// The packet that arrives next, and the one behind it.
    #[inline]
    pub fn next_two(&self) -> [Option<PacketId>; 2] {
        [0, 1].map(|at| self.ring.get(at).map(|flight| flight.packet))
    }

    /// Whether the wire loses the next packet.
    pub fn loses(&mut self, random: &mut Random) -> bool {
        let Some(chain) = self.link.burst_loss else { return random.chance(self.link.loss) };
        let (leave, loss) =
            if self.bad { (chain.to_good, chain.loss_bad) } else { (chain.to_bad, chain.loss_good) };
        let lost = random.chance(loss);
        self.bad ^= random.chance(leave);
        lost
    }

    /// The link changes. What is on the wire arrives as it would have; what waits is sent with the new rate and delay, but if the wire is
    /// impaired already: then what becomes of a packet is drawn when it comes to the queue.
    pub fn change(&mut self, now: u64, link: Link) {
        self.settle(now);
        *self.link = Link { aqm: self.link.aqm, most: self.link.most, ..link };
        self.link_changed();
        let waiting = self.ring.len() - self.begun;
        let before = self.begun.checked_sub(1).and_then(|i| self.ring.get(i));
        let handed_over = self.cut.as_ref().map_or(0, |cut| cut.last_arrives);
        let mut last = before.map_or(handed_over, |f| f.arrives);
        self.not_before = last;
        let mut free_at = match self.ring.get(self.begun) {
            Some(first) => first.starts,
            None => return,
        };
        for index in self.ring.len() - waiting..self.ring.len() {
            let bytes = self.ring[index].bytes;
            let takes = self.serialisation(bytes);
            let flight = &mut self.ring[index];
            flight.starts = free_at;
            free_at += takes;
            // A wire keeps the order.
            last = last.max(free_at + self.bounds.delay);
            flight.arrives = last;
        }
        self.not_before = last;
        self.free_at = free_at;
    }

    /// The link changes, whose port of this number is in another part: what is to be known of it here.
    pub fn is_elsewhere(&mut self, link: Link) {
        *self.link = Link { aqm: self.link.aqm, ..link };
        self.bounds = Bounds::of(&self.link);
    }

    /// When the first packet of the ring arrives, if it has not begun to be sent: behind one that was on its way when the wire was
    /// impaired, and is not in the ring.
    pub fn first_waits(&self) -> Option<u64> {
        self.ring.front().filter(|_| self.begun == 0 && !self.special).map(|first| first.arrives)
    }

    /// When what has been sent by `free_at` arrives. A wire keeps the order, also where its delay has become shorter.
    #[inline]
    fn arrival(&self) -> u64 {
        let arrives = self.free_at + self.bounds.delay;
        if self.impaired { arrives } else { arrives.max(self.not_before) }
    }

    /// When the wire is free to send.
    pub fn free_at(&self) -> u64 {
        self.free_at
    }

    /// Drops a packet of which there is no room on the wire, which it takes as if it were sent.
    pub fn lose(&mut self, now: u64, size: u32) {
        self.free_at = now + self.serialisation(size + self.link.framing);
        self.statistics.dropped += 1;
    }

    /// Sends a packet that a switch has taken out of its own queue, or this port out of a managed one; the wire must be free. Gives when it arrives, and whether an
    /// event for the first arrival is needed.
    #[inline]
    pub fn put(&mut self, now: u64, id: PacketId, size: u32) -> (u64, bool) {
        let bytes = size + self.bounds.framing;
        let takes = self.serialisation(bytes);
        self.free_at = now + takes;
        self.statistics.packets += 1;
        self.statistics.bytes += u64::from(bytes);
        self.statistics.busy_ps += u128::from(takes);
        let arrives = self.arrival();
        let first = self.begin();
        if !self.impaired {
            self.hold(bytes);
            self.ring.push_back(Flight { arrives, starts: now, packet: id, bytes });
            self.begun += 1;
        }
        (arrives, first)
    }
}

/// A wire between two parts (`parts`): its port is at one of them, and a port that stands for it at the other has what is on the wire.
impl Port {
    /// A port that stands for this one where it is not.
    pub fn stand_in(&self) -> Port {
        let port = Port::new(
            Link { aqm: None, most: None, ..(*self.link).clone() },
            self.to,
            self.to_port,
            self.number,
        );
        let cut = Some(Box::default());
        let (spread, of_switch, captures_come) = (self.spread, self.of_switch, self.captures_come);
        Port { spread, of_switch, captures_come, cut, ..port }
    }

    /// From now on, what is sent goes to another part. Nothing is on its way.
    pub fn cut(&mut self) {
        self.cut = Some(Box::default());
        self.special = true;
    }

    pub fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// When the next packet begins to be sent that has not been handed over.
    pub fn next_start(&self) -> Option<u64> {
        self.ring.front().map(|flight| flight.starts)
    }

    /// The number of the last packet's arrival, if there is nothing before it on the wire when it comes to it.
    pub fn reserve(&mut self, number: u64) {
        if let Some(cut) = &mut self.cut {
            cut.numbers.push_back(number);
        }
    }

    /// Takes out the next packet if it begins to be sent before a time, by which all is done here: nothing can change it any more.
    /// Gives the number of its arrival, too, as [`Port::reserve`] has it.
    pub fn send_off(&mut self, until: u64) -> Option<(Flight, u64)> {
        let flight = *self.ring.front().filter(|flight| flight.starts < until)?;
        self.ring.pop_front();
        self.left(&flight);
        let cut = self.cut.as_mut()?;
        cut.last_arrives = flight.arrives;
        Some((flight, cut.numbers.pop_front()?))
    }

    /// The last packet that was on the wire has arrived: the number of the next one's arrival, if that is on its way by now.
    pub fn was_last(&mut self, number: u64) {
        if let Some(cut) = &mut self.cut {
            cut.last = number;
        }
    }

    /// A packet has come onto the wire from another part. Gives the number of its arrival, if an event for that is needed: the later one of
    /// those that it would have got when it came to the wire and when the one before it arrived.
    pub fn come_across(&mut self, arrives: u64, packet: PacketId, number: u64) -> Option<u64> {
        let first = self.ring.is_empty();
        self.ring.push_back(Flight { arrives, starts: arrives, packet, bytes: 0 });
        self.begun += 1;
        let last = self.cut.as_ref().map_or(0, |cut| cut.last);
        first.then_some(number.max(last))
    }

    /// A window is over: numbers that this part has given in it are what they are for all.
    pub fn numbers_are(&mut self, part: usize, numbers: &Numbers) {
        let Some(cut) = &mut self.cut else { return };
        cut.last = numbers.of(part, cut.last);
        for number in cut.numbers.iter_mut().rev().take_while(|number| numbers.is_own(**number)) {
            *number = numbers.of(part, *number);
        }
    }

    /// Takes back what is on the wire from the port that stood for this one, and joins it with what waits here.
    pub fn take_back(&mut self, stood_in: &mut Port) {
        self.cut = None;
        self.special = self.impaired;
        self.begun += stood_in.ring.len();
        stood_in.ring.append(&mut self.ring);
        self.ring = std::mem::take(&mut stood_in.ring);
    }

    /// The packets that it has, queued or on its wire. Those of an impaired wire are their events'.
    pub fn packets_mut(&mut self) -> Vec<&mut PacketId> {
        let ring = self.ring.iter_mut().filter(|_| !self.impaired);
        let mut all: Vec<_> = ring.map(|flight| &mut flight.packet).collect();
        if let Some(managed) = &mut self.managed {
            all.extend(managed.waiting_mut().into_iter().map(|waiting| &mut waiting.packet));
        }
        all
    }
}
