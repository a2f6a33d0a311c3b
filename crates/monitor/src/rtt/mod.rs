//! Round-trip times by pairing what one side sends with what the other acknowledges.

mod exact;
mod tcptrace;
#[cfg(test)]
mod tests;
mod timestamps;
mod tshark;

use crate::packet::{Tcp, flag};
use crate::room::Room;

/// Segments of one direction that wait for their acknowledgment, at most.
pub const WAITING: usize = 10_000;

/// Which samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// No false ones: what may have been sent twice, or come out of order, gives none (after Dart, SIGCOMM 2022).
    Exact,
    /// As `tcp.analysis.ack_rtt` of Wireshark 4.0.
    Tshark,
    /// As `tcptrace -r`: those that it counts in "RTT samples".
    Tcptrace,
    /// TCP timestamps, as pping does.
    Timestamps,
}

impl Rule {
    pub const NAMES: [&str; 4] = ["exact", "tshark", "tcptrace", "timestamps"];

    pub fn named(name: &str) -> Option<Rule> {
        let all = [Rule::Exact, Rule::Tshark, Rule::Tcptrace, Rule::Timestamps];
        Rule::NAMES.iter().position(|known| *known == name).map(|at| all[at])
    }

    pub fn name(self) -> &'static str {
        Rule::NAMES[self as usize]
    }
}

/// What is kept of one direction's segments.
trait Sent: Default {
    /// Whether a packet of this direction with SYN begins another connection, of which the other direction cannot know.
    fn opens(&self, _packet: &Tcp) -> bool {
        false
    }
    /// What was sent was of another connection.
    fn forget(&mut self, _room: &mut Room) {}
    /// A packet of this direction.
    fn sent(&mut self, time: u64, packet: &Tcp, room: &mut Room);
    /// A packet of the other direction; gives a round-trip time in nanoseconds.
    fn came(&mut self, time: u64, packet: &Tcp, room: &mut Room) -> Option<u64>;
    /// Bytes of a [`Room`] that it has.
    fn bytes(&self) -> usize;
}

/// Both directions of a connection.
#[derive(Debug)]
pub enum Tracker {
    Exact([exact::Sent; 2]),
    Tshark([tshark::Sent; 2]),
    Tcptrace([tcptrace::Sent; 2]),
    Timestamps([timestamps::Sent; 2]),
}

#[inline(always)]
fn step<S: Sent>(
    both: &mut [S; 2],
    direction: usize,
    time: u64,
    packet: &Tcp,
    room: &mut Room,
) -> Option<u64> {
    if packet.has(flag::SYN) && both[direction].opens(packet) {
        both.iter_mut().for_each(|one| one.forget(room));
    }
    let sample = both[1 - direction].came(time, packet, room);
    both[direction].sent(time, packet, room);
    sample
}

fn bytes<S: Sent>(both: &[S; 2]) -> usize {
    both.iter().map(S::bytes).sum()
}

impl Tracker {
    pub fn new(rule: Rule) -> Tracker {
        match rule {
            Rule::Exact => Tracker::Exact(Default::default()),
            Rule::Tshark => Tracker::Tshark(Default::default()),
            Rule::Tcptrace => Tracker::Tcptrace(Default::default()),
            Rule::Timestamps => Tracker::Timestamps(Default::default()),
        }
    }

    /// A packet of a direction, 0 or 1; gives the round-trip time of what the other direction has sent.
    #[inline(always)]
    pub fn packet(&mut self, direction: usize, time: u64, packet: &Tcp, room: &mut Room) -> Option<u64> {
        match self {
            Tracker::Exact(both) => step(both, direction, time, packet, room),
            Tracker::Tshark(both) => step(both, direction, time, packet, room),
            Tracker::Tcptrace(both) => step(both, direction, time, packet, room),
            Tracker::Timestamps(both) => step(both, direction, time, packet, room),
        }
    }

    /// Bytes of a [`Room`] that it has.
    pub fn bytes(&self) -> usize {
        match self {
            Tracker::Exact(both) => bytes(both),
            Tracker::Tshark(both) => bytes(both),
            Tracker::Tcptrace(both) => bytes(both),
            Tracker::Timestamps(both) => bytes(both),
        }
    }
}

/// Whether a SYN is one that was sent before, of what was sent up to `right`: also with other data than then, as after TCP Fast Open has
/// failed (RFC 7413 section 4.2). The number of another connection is as near once in 65 000 times.
#[inline]
pub fn is_sent_again(syn: u32, right: u32) -> bool {
    (1..=1 << 16).contains(&right.wrapping_sub(syn))
}

/// How far `a` is behind `b`, in sequence numbers (RFC 9293 section 3.4).
#[inline]
pub fn after(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}
