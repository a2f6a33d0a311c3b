//! `tcp.analysis.ack_rtt` of Wireshark 4.0: an acknowledgment that ends where a segment ends that is not acknowledged yet. Of segments
//! with the same end the first counts, so after a loss samples are long. A SYN with another number than the connection has begun with
//! begins another. A sample of exactly 0 is not shown.

use super::{WAITING, after};
use crate::packet::{Tcp, flag};
use crate::room::{Queue, Room};

#[derive(Debug, Default)]
pub struct Sent {
    /// The number of the first packet, or that before it if it was no SYN.
    begun: Option<u32>,
    /// Behind each segment, and when it was sent: in order of sequence numbers, then of time. So each is looked at once when it comes and
    /// once when it is acknowledged, in whatever order they come.
    waiting: Queue<(u32, u64)>,
}

impl super::Sent for Sent {
    fn opens(&self, packet: &Tcp) -> bool {
        !packet.has(flag::ACK) && self.begun.is_some_and(|begun| begun != packet.seq)
    }

    fn forget(&mut self, room: &mut Room) {
        self.begun = None;
        self.waiting.clear(room);
    }

    #[inline(always)]
    fn sent(&mut self, time: u64, packet: &Tcp, room: &mut Room) {
        if self.begun.is_none() {
            self.begun = Some(packet.seq.wrapping_sub(u32::from(!packet.has(flag::SYN))));
        }
        if packet.length() == 0 {
            return;
        }
        let end = packet.end();
        // Almost always behind all others.
        if self.waiting.back().is_none_or(|(last, _)| after(end, *last) >= 0) {
            self.waiting.push((end, time), WAITING, room);
        } else {
            let at = self.waiting.partition_point(|(other, _)| after(end, *other) >= 0);
            self.waiting.insert(at, (end, time), WAITING, room);
        }
    }

    #[inline(always)]
    fn came(&mut self, time: u64, packet: &Tcp, room: &mut Room) -> Option<u64> {
        let mut sent = None;
        while let Some((end, at)) = self.waiting.front() {
            let behind = after(packet.ack, *end);
            if behind < 0 {
                break;
            }
            if behind == 0 {
                sent = sent.or(Some(*at));
            }
            self.waiting.pop();
        }
        self.waiting.shrink(room);
        sent.map(|sent| time.saturating_sub(sent)).filter(|sample| *sample > 0)
    }

    fn bytes(&self) -> usize {
        self.waiting.bytes()
    }
}
