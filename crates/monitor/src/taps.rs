//! Packets at two taps, one on each side of a router: the time from the first to the second, and what the router lost.
//!
//! Copies of a packet agree in what a router leaves as it is: addresses, ports, lengths, IPv4 identification, of TCP the numbers, window
//! and timestamps, of UDP the begin of the payload. The one with the greater time to live is the first. Among packets that agree in all of
//! it, as some that are sent again do, the oldest at one tap is paired with the next at the other.
//!
//! Memory is bounded: [`WAITING`] packets wait for their copy, and delays have a [`Room`].

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

use crate::packet::{Endpoint, Mark, Seen, What, flag};
use crate::room::Room;
use crate::summary::Summary;

/// Packets that wait for their copy at the other tap, at most.
const WAITING: usize = 1 << 19;

/// A tap: the one whose packets count for all else, or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Before = 0,
    After = 1,
}

impl Side {
    const BOTH: [Side; 2] = [Side::Before, Side::After];

    fn other(self) -> Side {
        Side::BOTH[1 - self as usize]
    }

    pub fn name(self) -> &'static str {
        ["before", "after"][self as usize]
    }
}

/// How long a packet took from the first tap to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// Nanoseconds: when it came to the second tap.
    pub time: u64,
    pub from: Endpoint,
    pub to: Endpoint,
    /// Nanoseconds; below 0 where the clocks of the taps differ.
    pub took: i64,
}

/// What copies of a packet agree in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Print {
    passage: u32,
    id: u16,
    window: u16,
    flags: u8,
    what: [u64; 3],
}

impl Print {
    fn new(passage: u32, seen: &Seen, mark: &Mark) -> Print {
        match &seen.what {
            What::Tcp(tcp) => {
                let (stamp, echo) = tcp.options.timestamps().unwrap_or_default();
                let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
                Print {
                    passage,
                    id: mark.id,
                    window: tcp.window,
                    flags: tcp.flags & (flag::SYN | flag::FIN | flag::RST),
                    what: [pair(tcp.seq, tcp.ack), pair(stamp, echo), u64::from(tcp.payload)],
                }
            }
            What::Udp { payload, .. } => {
                let mut words = mark
                    .payload
                    .chunks(8)
                    .map(|part| part.iter().fold(0, |word: u64, byte| word << 8 | u64::from(*byte)));
                let mut word = || words.next().unwrap_or_default();
                let what = [word(), word(), word() << 32 | u64::from(*payload)];
                Print { passage, id: mark.id, window: 0, flags: 0, what }
            }
        }
    }
}

/// A packet that was seen at one tap.
#[derive(Debug)]
struct Waiting {
    print: Print,
    time: u64,
    /// The number of the next one with the same print.
    next: Option<u64>,
    ttl: u8,
    /// Its copy has come.
    paired: bool,
}

/// What is known of a packet when its copy comes.
struct Earlier {
    time: u64,
    ttl: u8,
}

/// Packets of one tap that wait, numbered as they came.
#[derive(Debug, Default)]
struct Line {
    /// The number of the first that is here.
    begin: u64,
    packets: VecDeque<Waiting>,
    /// Nanoseconds of the first and last packet of the tap.
    first: Option<u64>,
    last: u64,
}

impl Line {
    fn next_number(&self) -> u64 {
        self.begin + self.packets.len() as u64
    }

    fn at(&mut self, number: u64) -> &mut Waiting {
        &mut self.packets[(number - self.begin) as usize]
    }
}

/// Packets of a tap with the same print that wait, the oldest first.
#[derive(Debug)]
struct Chain {
    side: Side,
    oldest: u64,
    newest: u64,
}

/// What is known of one direction of a flow at both taps.
#[derive(Debug, Default)]
pub struct Passage {
    /// The tap that its packets come to first, once one was seen at both.
    pub first: Option<Side>,
    /// Nanoseconds; those below 0 count as 0.
    pub delays: Summary,
    /// The least delay, and how many are below 0.
    pub least: i64,
    pub negative: u64,
    /// Packets of each tap that did not come to the other.
    alone: [u64; 2],
    /// The number that the last packet of each tap that was seen at both has or would have, if it had waited.
    passed: [u64; 2],
    /// Packets that wait; a passage with one stays.
    waiting: u32,
    last: u64,
}

impl Passage {
    fn add(&mut self, took: i64, room: &mut Room) {
        self.least = if self.delays.count() == 0 { took } else { self.least.min(took) };
        self.negative += u64::from(took < 0);
        self.delays.add(u64::try_from(took).unwrap_or(0), room);
    }

    /// Packets that were seen at the first tap and not at the second. Not known of a flow that was not seen at both.
    pub fn lost(&self) -> Option<u64> {
        self.first.map(|side| self.alone[side as usize])
    }

    /// Packets that were seen at the second tap and not at the first.
    pub fn unannounced(&self) -> u64 {
        self.first.map_or(0, |side| self.alone[side.other() as usize])
    }
}

type Name = (Endpoint, Endpoint, bool);

/// Both taps.
#[derive(Debug)]
pub struct Taps {
    /// Nanoseconds after which a packet that has not come to the other tap is lost.
    patience: u64,
    most_flows: usize,
    names: HashMap<Name, u32, foldhash::fast::RandomState>,
    passages: Vec<Passage>,
    /// Places of passages that were forgotten.
    free: Vec<u32>,
    lines: [Line; 2],
    chains: HashMap<Print, Chain, foldhash::fast::RandomState>,
    /// Packets of each tap.
    pub packets: [u64; 2],
    /// Packets that were paired.
    pub pairs: u64,
    /// Packets of which it cannot be told whether they came to the other tap: it began or ended before that.
    pub unsettled: u64,
    /// Packets that did not wait long enough, as there was no memory for them.
    pub hurried: u64,
    pub(crate) room: Room,
}

impl Taps {
    /// `patience`: nanoseconds after which a packet is lost. Delays have so many bytes.
    pub fn new(patience: u64, most_flows: usize, bytes: u64) -> Taps {
        Taps {
            patience,
            most_flows,
            names: HashMap::default(),
            passages: Vec::new(),
            free: Vec::new(),
            lines: Default::default(),
            chains: HashMap::default(),
            packets: [0; 2],
            pairs: 0,
            unsettled: 0,
            hurried: 0,
            room: Room::new(bytes),
        }
    }

    /// A packet at a tap; times of both ascend, and its own stamp may be a little before that. Gives the delay if its copy was at the other.
    pub fn packet(&mut self, side: Side, stamp: u64, seen: &Seen, mark: &Mark) -> Option<Delay> {
        let line = &mut self.lines[side as usize];
        line.first.get_or_insert(seen.time);
        line.last = seen.time;
        self.packets[side as usize] += 1;
        self.settle_until(side.other(), seen.time);
        let place = self.passage(seen)?;
        let print = Print::new(place, seen, mark);
        let found = self.claim(side, &print);
        let passage = &mut self.passages[place as usize];
        passage.last = seen.time;
        let Some((number, earlier)) = found else {
            self.wait(side, print, stamp, mark.ttl);
            return None;
        };
        self.pairs += 1;
        passage.passed[side as usize] = self.lines[side as usize].next_number();
        let before = &mut passage.passed[side.other() as usize];
        *before = number.max(*before);
        let first = match passage.first {
            Some(first) => first,
            None => self.first_tap(side, seen, mark.ttl, earlier.ttl),
        };
        let passage = &mut self.passages[place as usize];
        passage.first = Some(first);
        let took = stamp.wrapping_sub(earlier.time).cast_signed();
        let took = if first == side { took.wrapping_neg() } else { took };
        passage.add(took, &mut self.room);
        let time = if first == side { earlier.time } else { stamp };
        Some(Delay { time, from: seen.from, to: seen.to, took })
    }

    /// Which tap a flow's packets come to first, by one that was seen at `side` after it was seen at the other.
    fn first_tap(&self, side: Side, seen: &Seen, ttl: u8, earlier_ttl: u8) -> Side {
        let is_tcp = matches!(seen.what, What::Tcp(_));
        let back = || self.from_to(seen.to, seen.from, is_tcp).and_then(|back| back.first);
        match ttl.cmp(&earlier_ttl) {
            Ordering::Greater => side,
            Ordering::Less => side.other(),
            Ordering::Equal => back().map_or(side.other(), Side::other),
        }
    }

    fn passage(&mut self, seen: &Seen) -> Option<u32> {
        let name = (seen.from, seen.to, matches!(seen.what, What::Tcp(_)));
        if let Some(place) = self.names.get(&name) {
            return Some(*place);
        }
        if self.names.len() >= self.most_flows.saturating_mul(2) {
            return None;
        }
        let place = self.free.pop().unwrap_or(self.passages.len() as u32);
        if place as usize == self.passages.len() {
            self.passages.push(Passage::default());
        }
        self.names.insert(name, place);
        Some(place)
    }

    fn wait(&mut self, side: Side, print: Print, time: u64, ttl: u8) {
        let [before, after] = [0, 1].map(|side: usize| self.lines[side].packets.len());
        if before + after >= WAITING {
            let crowded = if before > after { Side::Before } else { Side::After };
            let first = self.lines[crowded as usize].packets.front();
            // What has waited that long waits for a tap that may have ended.
            let hurried = first.is_some_and(|first| first.time.saturating_add(self.patience) > time);
            self.hurried += u64::from(self.drop_first(crowded, |_| false) && hurried);
        }
        let line = &mut self.lines[side as usize];
        let number = line.next_number();
        line.packets.push_back(Waiting { print, time, next: None, ttl, paired: false });
        self.passages[print.passage as usize].waiting += 1;
        let chain = self.chains.entry(print).or_insert(Chain { side, oldest: number, newest: number });
        if chain.newest != number {
            line.at(chain.newest).next = Some(number);
            chain.newest = number;
        }
    }

    /// Takes the oldest packet with a print that waits at the other tap: its number, and what it was.
    fn claim(&mut self, side: Side, print: &Print) -> Option<(u64, Earlier)> {
        let chain = self.chains.get_mut(print).filter(|chain| chain.side != side)?;
        let number = chain.oldest;
        let waiting = self.lines[side.other() as usize].at(number);
        waiting.paired = true;
        let found = Earlier { time: waiting.time, ttl: waiting.ttl };
        match waiting.next {
            Some(next) => chain.oldest = next,
            None => drop(self.chains.remove(print)),
        }
        self.passages[print.passage as usize].waiting -= 1;
        Some((number, found))
    }

    /// What waits at a tap has come to the other by this time there, or is lost.
    fn settle_until(&mut self, side: Side, now: u64) {
        let begun = self.lines[side.other() as usize].first.unwrap_or(now);
        while let Some(first) = self.lines[side as usize].packets.front()
            && (first.paired || first.time.saturating_add(self.patience) <= now)
        {
            let known = first.time >= begun;
            self.drop_first(side, |_| known);
        }
    }

    /// The captures have ended. What a later packet of its flow has overtaken is lost; of the rest nothing is known.
    pub fn settle(&mut self) {
        for side in Side::BOTH {
            let begun = self.lines[side.other() as usize].first.unwrap_or(u64::MAX);
            while let Some(first) = self.lines[side as usize].packets.front() {
                let (number, time) = (self.lines[side as usize].begin, first.time);
                self.drop_first(side, |passage| time >= begun && number < passage.passed[side as usize]);
            }
        }
    }

    /// Drops the first packet of a line, which is lost if that is `known`; gives whether it had no copy yet.
    fn drop_first(&mut self, side: Side, known: impl FnOnce(&Passage) -> bool) -> bool {
        let line = &mut self.lines[side as usize];
        let Some(first) = line.packets.pop_front() else { return false };
        line.begin += 1;
        if first.paired {
            return false;
        }
        match (first.next, self.chains.get_mut(&first.print)) {
            (Some(next), Some(chain)) => chain.oldest = next,
            _ => drop(self.chains.remove(&first.print)),
        }
        let passage = &mut self.passages[first.print.passage as usize];
        passage.waiting -= 1;
        if known(passage) {
            passage.alone[side as usize] += 1;
        } else {
            self.unsettled += 1;
        }
        true
    }

    /// Whether there is room for few more flows, or there was too little for delays since this was asked last.
    pub fn is_crowded(&mut self) -> bool {
        self.room.was_short() || self.names.len() * 10 >= self.most_flows.saturating_mul(18)
    }

    /// Forgets flows without a packet since a time (nanoseconds), of which none waits.
    pub fn forget(&mut self, since: u64) {
        let Taps { names, passages, free, room, .. } = self;
        names.retain(|_, place| {
            let passage = &mut passages[*place as usize];
            let stays = passage.waiting > 0 || passage.last >= since;
            if !stays {
                room.give(passage.delays.bytes());
                *passage = Passage::default();
                free.push(*place);
            }
            stays
        });
    }

    /// What is known of the packets from one end to another.
    pub fn from_to(&self, from: Endpoint, to: Endpoint, tcp: bool) -> Option<&Passage> {
        self.names.get(&(from, to, tcp)).map(|place| &self.passages[*place as usize])
    }

    pub fn passages(&self) -> impl Iterator<Item = &Passage> {
        self.passages.iter()
    }

    /// Nanoseconds by which the clock of tap `after` is ahead, if least delays in both directions are alike, or else the least one is 0.
    pub fn ahead(&self) -> i64 {
        let least = |side| {
            let seen = self.passages.iter().filter(|one| one.first == Some(side));
            seen.map(|one| one.least).min()
        };
        match (least(Side::Before), least(Side::After)) {
            (Some(forth), Some(back)) => (forth - back) / 2,
            (forth, back) => forth.or(back.map(|back| -back)).unwrap_or(0),
        }
    }
}
