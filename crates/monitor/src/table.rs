//! The flows that are watched.

use std::collections::HashMap;

use crate::packet::{Endpoint, Seen, Tcp, What, flag};
use crate::room::Room;
use crate::rtt::{Rule, Tracker, after, is_sent_again};
use crate::spin::Spin;
use crate::summary::Summary;

/// A round-trip time: from when a flow's packet passed until its acknowledgment did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds: when the acknowledgment came.
    pub time: u64,
    /// The flow whose packet it is of.
    pub from: Endpoint,
    pub to: Endpoint,
    /// The acknowledgment number; of a spin bit: 0.
    pub ack: u32,
    /// Nanoseconds.
    pub rtt: u64,
}

/// What was seen of the packets from one endpoint to another. What each packet needs is in one cache line, and round-trip times in the
/// next.
#[derive(Debug, Clone, Default)]
#[repr(C, align(64))]
pub struct Flow {
    pub packets: u64,
    /// From the IP header on.
    pub bytes: u64,
    /// Of TCP's or UDP's payload, sent again or not.
    pub payload: u64,
    /// Nanoseconds.
    pub first: u64,
    pub last: u64,
    /// Packets of TCP with payload, SYN or FIN that begin before the end of what was sent already: sent again, or late. Keep-alives do not
    /// count.
    pub retransmissions: u64,
    /// Behind what was sent.
    end: Option<u32>,
    pub syn: u64,
    pub rtt: Summary,
    pub fin: u64,
    pub rst: u64,
}

impl Flow {
    #[inline(always)]
    fn count(&mut self, time: u64, ip_len: u32, payload: u32) {
        if self.packets == 0 {
            self.first = time;
        }
        self.packets += 1;
        self.last = self.last.max(time);
        self.bytes += u64::from(ip_len);
        self.payload += u64::from(payload);
    }

    #[inline(always)]
    fn tcp(&mut self, packet: &Tcp) {
        if packet.has(flag::SYN | flag::FIN | flag::RST) {
            self.syn += u64::from(packet.has(flag::SYN));
            self.fin += u64::from(packet.has(flag::FIN));
            self.rst += u64::from(packet.has(flag::RST));
        }
        if packet.length() == 0 {
            return;
        }
        let Some(end) = self.end.filter(|end| !packet.has(flag::SYN) || is_sent_again(packet.seq, *end))
        else {
            self.end = Some(packet.end());
            return;
        };
        let keep_alive = packet.payload <= 1 && packet.seq == end.wrapping_sub(1);
        if after(packet.end(), end) > 0 {
            self.end = Some(packet.end());
        }
        if after(packet.seq, end) < 0 && (!keep_alive || packet.length() > packet.payload) {
            self.retransmissions += 1;
        }
    }
}

#[derive(Debug)]
enum State {
    Tcp(Tracker),
    Udp(Spin),
}

impl State {
    fn bytes(&self) -> usize {
        match self {
            State::Tcp(tracker) => tracker.bytes(),
            State::Udp(_) => 0,
        }
    }
}

/// A packet finds it by the place that has been noted, and sees in the first cache line whether it is the one.
#[derive(Debug)]
#[repr(C, align(64))]
struct Connection {
    key: Key,
    state: State,
    flows: [Flow; 2],
}

impl Connection {
    /// Bytes of a [`Room`] that it has.
    fn bytes(&self) -> u64 {
        let summaries = self.flows.iter().map(|flow| flow.rtt.bytes()).sum::<usize>();
        (self.state.bytes() + summaries) as u64
    }
}

/// Both ends, the lesser one first, of which packets are of direction 0. Few numbers, not arrays of endpoints: each packet's is hashed and
/// compared, and these stay in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    low: u128,
    high: u128,
    /// Of both, and the protocol.
    ports: u64,
}

impl Key {
    #[inline(always)]
    fn new(low: Endpoint, high: Endpoint, tcp: bool) -> Key {
        let ports = u64::from(low.port) << 32 | u64::from(high.port) << 16 | u64::from(tcp);
        Key { low: low.bits(), high: high.bits(), ports }
    }

    fn ends(&self) -> [Endpoint; 2] {
        let end = |bits, ports| Endpoint::from_bits(bits, ports as u16);
        [end(self.low, self.ports >> 32), end(self.high, self.ports >> 16)]
    }

    fn is_tcp(&self) -> bool {
        self.ports & 1 == 1
    }

    /// Where a connection's place is noted.
    #[inline(always)]
    fn hint(&self) -> usize {
        let mixed = (self.ports ^ self.low as u64 ^ (self.high as u64).rotate_left(32)).wrapping_mul(MIX);
        (mixed >> (64 - AT_HAND.ilog2())) as usize
    }
}

/// Connections that are found by a comparison; a power of two. Others are found in the index.
const AT_HAND: usize = 4096;
/// An odd number whose bits look random, of the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// The flows that are watched, at most so many, with so many bytes for segments that wait and for samples.
#[derive(Debug)]
pub struct Table {
    rule: Rule,
    most: usize,
    index: HashMap<Key, u32, foldhash::fast::RandomState>,
    connections: Vec<Connection>,
    /// Places of connections that had packets lately, by [`Key::hint`]; of others, where there is none.
    at_hand: Box<[u32]>,
    /// Packets of connections for which there was no room.
    pub untracked: u64,
    pub(crate) room: Room,
    /// What was sent before this time, in nanoseconds, was so before the clock was set back, or while it was behind.
    sure_from: u64,
}

impl Table {
    pub fn new(rule: Rule, most: usize, bytes: u64) -> Table {
        let (index, at_hand) = (HashMap::default(), vec![0; AT_HAND].into());
        Table {
            rule,
            most,
            index,
            connections: Vec::new(),
            at_hand,
            untracked: 0,
            room: Room::new(bytes),
            sure_from: 0,
        }
    }

    /// The clock was set back: what was sent up to a time, in nanoseconds, gives no exact samples any more.
    pub(crate) fn doubt(&mut self, until: u64) {
        self.sure_from = until.saturating_add(1);
    }

    /// Whether it is nearly full of connections, or had too few bytes since this was asked last.
    pub fn is_crowded(&mut self) -> bool {
        self.room.was_short() || self.connections.len() * 10 >= self.most * 9
    }

    /// Forgets the connections without a packet since a time (nanoseconds); gives how many.
    pub fn forget(&mut self, since: u64) -> usize {
        let before = self.connections.len();
        self.connections.retain(|one| one.flows.iter().any(|flow| flow.packets > 0 && flow.last >= since));
        if self.connections.len() < before {
            self.index.clear();
            self.index.extend(self.connections.iter().zip(0..).map(|(one, at)| (one.key, at)));
            self.room.recount(self.connections.iter().map(Connection::bytes).sum());
        }
        before - self.connections.len()
    }

    #[inline(always)]
    fn find(&mut self, key: Key) -> Option<u32> {
        let at = self.at_hand[key.hint()];
        match self.connections.get(at as usize) {
            Some(one) if one.key == key => Some(at),
            _ => self.look_up(key.low, key.high, key.ports),
        }
    }

    /// Of a key's parts: they stay in registers then, also where this is not called.
    #[inline(never)]
    fn look_up(&mut self, low: u128, high: u128, ports: u64) -> Option<u32> {
        let key = Key { low, high, ports };
        let at = match self.index.get(&key) {
            Some(at) => *at,
            None if self.connections.len() >= self.most => return None,
            None => self.add(key),
        };
        self.at_hand[key.hint()] = at;
        Some(at)
    }

    #[cold]
    fn add(&mut self, key: Key) -> u32 {
        let at = self.connections.len() as u32;
        let state = match key.is_tcp() {
            true => State::Tcp(Tracker::new(self.rule)),
            false => State::Udp(Spin::default()),
        };
        self.connections.push(Connection { key, state, flows: Default::default() });
        self.index.insert(key, at);
        at
    }

    /// A packet; gives the round-trip time that it ends.
    #[inline(always)]
    pub fn packet(&mut self, packet: &Seen) -> Option<Sample> {
        let turned = packet.from > packet.to;
        let direction = usize::from(turned);
        let tcp = matches!(packet.what, What::Tcp(_));
        let (from, to) = (packet.from, packet.to);
        let key = if turned { Key::new(to, from, tcp) } else { Key::new(from, to, tcp) };
        let Some(at) = self.find(key) else {
            self.untracked += 1;
            return None;
        };
        let Connection { state, flows, .. } = &mut self.connections[at as usize];
        let flow = &mut flows[direction];
        match (&packet.what, state) {
            (What::Tcp(tcp), State::Tcp(tracker)) => {
                flow.count(packet.time, packet.ip_len, tcp.payload);
                flow.tcp(tcp);
                let rtt = tracker.packet(direction, packet.time, tcp, &mut self.room)?;
                if self.rule == Rule::Exact && packet.time - rtt < self.sure_from {
                    return None;
                }
                flows[1 - direction].rtt.add(rtt, &mut self.room);
                Some(Sample { time: packet.time, from: packet.to, to: packet.from, ack: tcp.ack, rtt })
            }
            (What::Udp { payload, first, captured }, State::Udp(spin)) => {
                flow.count(packet.time, packet.ip_len, *payload);
                let rtt =
                    spin.packet(direction, packet.time, self.sure_from, &first[..usize::from(*captured)])?;
                flow.rtt.add(rtt, &mut self.room);
                Some(Sample { time: packet.time, from: packet.from, to: packet.to, ack: 0, rtt })
            }
            _ => None,
        }
    }

    /// Whether no connection of TCP was seen in both directions.
    pub fn one_way(&self) -> bool {
        let tcp = |connection: &&Connection| connection.key.is_tcp();
        let both = |connection: &Connection| connection.flows.iter().all(|flow| flow.packets > 0);
        self.connections.iter().any(|connection| tcp(&connection))
            && !self.connections.iter().filter(tcp).any(both)
    }

    /// The flows that were seen, those of a connection one after the other: whether it is TCP, both ends, and what was seen.
    pub fn flows(&self) -> impl Iterator<Item = (bool, [Endpoint; 2], &Flow)> {
        self.connections.iter().flat_map(|connection| {
            let tcp = connection.key.is_tcp();
            let [low, high] = connection.key.ends();
            [[low, high], [high, low]]
                .into_iter()
                .zip(&connection.flows)
                .filter(|(_, flow)| flow.packets > 0)
                .map(move |(ends, flow)| (tcp, ends, flow))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packet::read;

    /// TCP with timestamps over IPv4, of few connections; sequence numbers lie near each other.
    fn tcp() -> impl Strategy<Value = Vec<u8>> {
        (0u8..6, 0u32..40, 0u32..40, 0u8..32, 0u16..3, any::<bool>()).prop_map(
            |(port, seq, ack, flags, payload, turned)| {
                let mut packet = vec![0x45, 0];
                packet.extend((52 + payload).to_be_bytes());
                packet.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 1]);
                let ports = if turned { [port, 99] } else { [99, port] };
                ports.iter().for_each(|port| packet.extend([0, *port]));
                packet.extend(seq.to_be_bytes());
                packet.extend(ack.to_be_bytes());
                packet.extend([0x80, flags & 0x14 | 0x10 | flags & 3, 1, 0, 0, 0, 0, 0, 1, 1, 8, 10]);
                packet.extend(seq.to_be_bytes());
                packet.extend(ack.to_be_bytes());
                packet
            },
        )
    }

    #[test]
    fn what_begins_before_the_end_is_sent_again() {
        let mut flow = Flow::default();
        let mut counted = |seq, payload, flags| {
            flow.tcp(&Tcp { seq, payload, flags, ..Tcp::default() });
            flow.retransmissions
        };
        assert_eq!(counted(1_000, 100, flag::SYN), 0);
        // Without what it had with it, as after TCP Fast Open has failed.
        assert_eq!(counted(1_000, 0, flag::SYN), 1);
        assert_eq!(counted(1_001, 100, flag::ACK), 2);
        assert_eq!(counted(1_101, 100, flag::ACK), 2);
        // With new bytes behind those that were sent.
        assert_eq!(counted(1_151, 100, flag::ACK), 3);
        assert_eq!(counted(1_251, 100, flag::ACK), 3);
        // A keep-alive, and another connection.
        assert_eq!(counted(1_350, 1, flag::ACK), 3);
        assert_eq!(counted(1 << 30, 0, flag::SYN), 3);
    }

    proptest! {
        #[test]
        fn what_is_taken_is_what_is_there(
            packets in prop::collection::vec((tcp(), 0u64..1000), 0..300),
            most in 0u64..3000,
        ) {
            for rule in [Rule::Exact, Rule::Tshark, Rule::Tcptrace, Rule::Timestamps] {
                let mut table = Table::new(rule, 10, most);
                let mut now = 0;
                for (at, (bytes, step)) in packets.iter().enumerate() {
                    now += step;
                    table.packet(&read(101, bytes, 1500, now).expect("a whole packet"));
                    if at % 100 == 99 {
                        table.forget(now - step);
                    }
                    let there = table.connections.iter().map(Connection::bytes).sum::<u64>();
                    prop_assert_eq!(table.room.taken(), there);
                    prop_assert!(there <= most);
                }
            }
        }
    }
}
