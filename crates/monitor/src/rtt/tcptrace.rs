//! The samples of `tcptrace -r` (6.6.7): an acknowledgment that ends where a segment ends that was sent once, if nothing up to it was
//! sent later than it.
//!
//! tcptrace keeps the four quarters of the sequence numbers apart, and looks at one quarter for an acknowledgment, that of its number. So a
//! segment that ends with a quarter gives no sample, one that lies in two is two, and of the quarter before counts only what was not
//! acknowledged yet. What is sent against a window of 0 it takes for probes, which it does not look at.
//!
//! Different here: bytes that were acknowledged without having been seen, and come later in the quarter before that of the acknowledgment,
//! do not spoil its sample.

use super::{WAITING, after};
use crate::packet::{Tcp, flag};
use crate::room::{Queue, Room};

/// More than there are in the largest packet that TCP makes of segments with an MSS of 536 bytes.
const MANY: usize = 128;

fn quarter(number: u32) -> u32 {
    number >> 30
}

/// Of one quarter.
#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u32,
    end: u32,
    /// When it was sent last.
    time: u64,
    resent: bool,
}

#[derive(Debug, Default)]
pub struct Sent {
    known: bool,
    /// All before this is acknowledged, or was not seen.
    left: u32,
    /// When something before `left`, in its quarter, was sent last.
    left_time: u64,
    /// The other side's last window was 0.
    closed: bool,
    /// In order of sequence numbers; none overlap. Many that one packet has sent again are one.
    waiting: Queue<Segment>,
}

impl Sent {
    /// Notes what of a range in one quarter is new, and what was sent before.
    fn note(&mut self, start: u32, end: u32, time: u64, room: &mut Room) {
        let mut start = start;
        // tcptrace keeps when a packet came at the first segment alone of those that the packet sends again.
        let mut first = true;
        if after(self.left, start) > 0 {
            first = false;
            if quarter(self.left) == quarter(start) {
                self.left_time = self.left_time.max(time);
            }
            start = self.left;
        }
        // Almost always behind all others.
        if self.waiting.back().is_none_or(|last| after(start, last.end) >= 0) {
            if after(end, start) > 0 {
                self.waiting.push(Segment { start, end, time, resent: false }, WAITING, room);
            }
            return;
        }
        let mut at = self.waiting.partition_point(|segment| after(start, segment.end) >= 0);
        // Where those begin that this packet sends again, one behind the other.
        let mut again = at;
        while after(end, start) > 0 {
            let here = self.waiting.get_mut(at);
            match here {
                Some(segment) if after(start, segment.start) >= 0 => {
                    segment.resent = true;
                    if first {
                        segment.time = time;
                    }
                    first = false;
                    start = segment.end;
                }
                _ => {
                    at = self.join(again, at);
                    again = at + 1;
                    let here = self.waiting.get(at);
                    let until = match here {
                        Some(segment) if after(end, segment.start) > 0 => segment.start,
                        _ => end,
                    };
                    let segment = Segment { start, end: until, time, resent: false };
                    if !self.waiting.insert(at, segment, WAITING, room) {
                        return;
                    }
                    start = until;
                }
            }
            at += 1;
        }
        self.join(again, at);
    }

    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The first segment is acknowledged.
    fn pass(&mut self, first: Segment) {
        let before = if quarter(self.left) == quarter(first.start) { self.left_time } else { 0 };
        let whole = quarter(first.end) == quarter(first.start);
        self.left_time = if whole { before.max(first.time) } else { 0 };
        self.left = first.end;
        self.waiting.pop();
    }

    /// Makes one of the segments from `from` to before `to`, which were all sent again just now, where they are many; gives where those
    /// behind them are. None of them gives a sample any more, and those behind them only after all of them. So who sends many at once
    /// again pays for it once.
    fn join(&mut self, from: usize, to: usize) -> usize {
        if to - from < MANY {
            return to;
        }
        let end = self.waiting[to - 1].end;
        let time = self.waiting.range(from..to).map(|segment| segment.time).max();
        if let Some(first) = self.waiting.get_mut(from) {
            first.end = end;
            first.time = time.unwrap_or(first.time);
        }
        self.waiting.remove(from + 1..to);
        from + 1
    }
}

impl super::Sent for Sent {
    #[inline(always)]
    fn sent(&mut self, time: u64, packet: &Tcp, room: &mut Room) {
        if packet.length() == 0 || packet.has(flag::RST) || self.closed {
            return;
        }
        let fresh = packet.has(flag::SYN) && after(packet.seq, self.left) != -1;
        if !self.known || (fresh && self.waiting.front().is_none_or(|first| first.start != packet.seq)) {
            self.waiting.clear(room);
            let waiting = std::mem::take(&mut self.waiting);
            *self = Sent { known: true, left: packet.seq, waiting, ..Sent::default() };
        }
        let (mut start, end) = (packet.seq, packet.end());
        while quarter(start) != quarter(end.wrapping_sub(1)) {
            let next = (quarter(start) + 1) << 30;
            self.note(start, next, time, room);
            start = next;
        }
        self.note(start, end, time, room);
    }

    #[inline(always)]
    fn came(&mut self, time: u64, packet: &Tcp, room: &mut Room) -> Option<u64> {
        if !packet.has(flag::RST) {
            self.closed = packet.window == 0 || !packet.has(flag::ACK | flag::SYN);
        }
        if !packet.has(flag::ACK) || !self.known {
            return None;
        }
        let mut sample = None;
        let mut newest = if quarter(self.left) == quarter(packet.ack) { self.left_time } else { 0 };
        while let Some(&first) = self.waiting.front() {
            if after(packet.ack, first.start) <= 0 {
                break;
            }
            let here = quarter(first.start) == quarter(packet.ack);
            if packet.ack == first.end && here && !first.resent && newest <= first.time {
                sample = Some(time.saturating_sub(first.time));
            }
            newest = newest.max(first.time);
            self.pass(first);
        }
        self.waiting.shrink(room);
        sample
    }

    fn bytes(&self) -> usize {
        self.waiting.bytes()
    }
}
