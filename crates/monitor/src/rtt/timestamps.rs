//! TCP timestamps (RFC 7323), as pping pairs them: the first packet of a TSval, and the first of the other side that echoes it.
//! Where timestamps tick slower than packets come, so do samples; after a loss they are long.

use super::{WAITING, after};
use crate::packet::{Tcp, flag};
use crate::room::{Queue, Room};

#[derive(Debug, Default)]
pub struct Sent {
    /// The number of the last SYN.
    begun: Option<u32>,
    /// The last TSval; `None`: there was none.
    last: Option<u32>,
    /// TSvals and when they were sent first; in order.
    waiting: Queue<(u32, u64)>,
}

impl super::Sent for Sent {
    #[inline(always)]
    fn sent(&mut self, time: u64, packet: &Tcp, room: &mut Room) {
        let Some((value, _)) = packet.options.timestamps() else { return };
        if packet.payload == 0 && !packet.has(flag::SYN) {
            return;
        }
        if packet.has(flag::SYN) && self.begun != Some(packet.seq) {
            // Another connection on the same ports, whose values may be any.
            self.waiting.clear(room);
            (self.begun, self.last) = (Some(packet.seq), None);
        }
        // In the middle of a connection the first packet of a value may have been before.
        let first = self.last.is_none() && !packet.has(flag::SYN);
        if self.last.is_some_and(|last| after(value, last) <= 0) {
            return;
        }
        self.last = Some(value);
        if !first {
            self.waiting.push((value, time), WAITING, room);
        }
    }

    #[inline(always)]
    fn came(&mut self, time: u64, packet: &Tcp, room: &mut Room) -> Option<u64> {
        let (_, echo) = packet.options.timestamps().filter(|_| packet.has(flag::ACK))?;
        let mut sample = None;
        while let Some((value, sent)) = self.waiting.front() {
            let behind = after(echo, *value);
            if behind < 0 {
                break;
            }
            sample = (behind == 0).then(|| time.saturating_sub(*sent));
            self.waiting.pop();
        }
        self.waiting.shrink(room);
        sample
    }

    fn bytes(&self) -> usize {
        self.waiting.bytes()
    }
}
