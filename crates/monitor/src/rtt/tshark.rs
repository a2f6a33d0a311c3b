//! `tcp.analysis.ack_rtt` of Wireshark 4.0: an acknowledgment that ends where a segment ends that is not acknowledged yet. Of segments
//! with the same end the first counts, so after a loss samples are long. A sample of exactly 0 is not shown.

use super::{WAITING, after};
use crate::packet::Tcp;
use crate::room::{Queue, Room};

#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u32,
    end: u32,
    time: u64,
}

#[derive(Debug, Default)]
pub struct Sent {
    /// In the order in which they were sent.
    waiting: Queue<Segment>,
    /// How many follow one that begins behind them: 0, the list is in order of sequence numbers.
    disordered: usize,
}

impl super::Sent for Sent {
    #[inline]
    fn sent(&mut self, time: u64, packet: &Tcp, room: &mut Room) {
        if packet.length() == 0 {
            return;
        }
        let disordered = self.waiting.back().is_some_and(|last| after(packet.seq, last.end) < 0);
        let segment = Segment { start: packet.seq, end: packet.end(), time };
        if self.waiting.push(segment, WAITING, room) && disordered {
            self.disordered += 1;
        }
    }

    #[inline]
    fn came(&mut self, time: u64, packet: &Tcp, room: &mut Room) -> Option<u64> {
        let mut sent = None;
        if self.disordered == 0 {
            while let Some(first) = self.waiting.front_mut() {
                let behind = after(packet.ack, first.end);
                if behind < 0 {
                    if after(packet.ack, first.start) > 0 {
                        first.start = packet.ack;
                    }
                    break;
                }
                if behind == 0 {
                    sent = sent.or(Some(first.time));
                }
                self.waiting.pop();
            }
        } else {
            self.waiting.retain_mut(|segment| {
                let behind = after(packet.ack, segment.end);
                if behind == 0 {
                    sent = sent.or(Some(segment.time));
                } else if behind < 0 && after(packet.ack, segment.start) > 0 {
                    segment.start = packet.ack;
                }
                behind < 0
            });
            if self.waiting.is_empty() {
                self.disordered = 0;
            }
        }
        self.waiting.shrink(room);
        sent.map(|sent| time.saturating_sub(sent)).filter(|sample| *sample > 0)
    }

    fn bytes(&self) -> usize {
        self.waiting.bytes()
    }
}
