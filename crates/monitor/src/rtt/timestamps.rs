//! TCP timestamps (RFC 7323), as pping pairs them: the first packet of a TSval, and the first of the other side that echoes it.
//! Where timestamps tick slower than packets come, so do samples; after a loss they are long.

use std::collections::VecDeque;

use super::{WAITING, after};
use crate::packet::{Tcp, flag};

#[derive(Debug, Default)]
pub struct Sent {
    /// The last TSval; `None`: there was none.
    last: Option<u32>,
    /// TSvals and when they were sent first; in order.
    waiting: VecDeque<(u32, u64)>,
}

impl super::Sent for Sent {
    #[inline]
    fn sent(&mut self, time: u64, packet: &Tcp) {
        let Some((value, _)) = packet.timestamps else { return };
        if packet.payload == 0 && !packet.has(flag::SYN) {
            return;
        }
        // In the middle of a connection the first packet of a value may have been before.
        let first = self.last.is_none() && !packet.has(flag::SYN);
        if self.last.is_some_and(|last| after(value, last) <= 0) {
            return;
        }
        self.last = Some(value);
        if !first && self.waiting.len() < WAITING {
            self.waiting.push_back((value, time));
        }
    }

    #[inline]
    fn came(&mut self, time: u64, packet: &Tcp) -> Option<u64> {
        let (_, echo) = packet.timestamps?;
        if !packet.has(flag::ACK) {
            return None;
        }
        let mut sample = None;
        while let Some((value, sent)) = self.waiting.front() {
            let behind = after(echo, *value);
            if behind < 0 {
                break;
            }
            sample = (behind == 0).then(|| time.saturating_sub(*sent));
            self.waiting.pop_front();
        }
        sample
    }
}
