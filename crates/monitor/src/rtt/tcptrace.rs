//! The samples of `tcptrace -r` (6.6.7): an acknowledgment that ends where a segment ends that was sent once, if nothing up to it was
//! sent later than it.

use super::{WAITING, after};
use crate::packet::{Tcp, flag};
use crate::room::{Queue, Room};

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
    /// When something before `left` was sent last.
    left_time: u64,
    /// In order of sequence numbers; none overlap. What one packet has sent again is one.
    waiting: Queue<Segment>,
}

impl Sent {
    /// Notes what of a range is new, and what was sent before.
    fn note(&mut self, start: u32, end: u32, time: u64, room: &mut Room) {
        let mut start = start;
        if after(self.left, start) > 0 {
            self.left_time = self.left_time.max(time);
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
                    segment.time = time;
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

    /// Makes one of the segments from `from` to before `to`, which were all sent again just now; gives where those behind them are. None
    /// of them gives a sample any more, and those behind them only after all of them. So who sends many at once again pays for it once.
    fn join(&mut self, from: usize, to: usize) -> usize {
        if to - from < 2 {
            return to;
        }
        let end = self.waiting[to - 1].end;
        if let Some(first) = self.waiting.get_mut(from) {
            first.end = end;
        }
        self.waiting.remove(from + 1..to);
        from + 1
    }
}

impl super::Sent for Sent {
    #[inline]
    fn sent(&mut self, time: u64, packet: &Tcp, room: &mut Room) {
        if packet.length() == 0 || packet.has(flag::RST) {
            return;
        }
        let fresh = packet.has(flag::SYN) && after(packet.seq, self.left) != -1;
        if !self.known || (fresh && self.waiting.front().is_none_or(|first| first.start != packet.seq)) {
            self.waiting.clear(room);
            let waiting = std::mem::take(&mut self.waiting);
            *self = Sent { known: true, left: packet.seq, waiting, ..Sent::default() };
        }
        self.note(packet.seq, packet.end(), time, room);
    }

    #[inline]
    fn came(&mut self, time: u64, packet: &Tcp, room: &mut Room) -> Option<u64> {
        if !packet.has(flag::ACK) || !self.known {
            return None;
        }
        let mut sample = None;
        while let Some(first) = self.waiting.front() {
            if after(packet.ack, first.start) <= 0 {
                break;
            }
            if packet.ack == first.end && !first.resent && self.left_time <= first.time {
                sample = Some(time.saturating_sub(first.time));
            }
            self.left = first.end;
            self.left_time = self.left_time.max(first.time);
            self.waiting.pop();
        }
        self.waiting.shrink(room);
        sample
    }

    fn bytes(&self) -> usize {
        self.waiting.bytes()
    }
}
