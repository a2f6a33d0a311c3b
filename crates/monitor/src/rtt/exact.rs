//! Samples that are true whatever the network does. After the range tracker of Dart (Sengupta et al., SIGCOMM 2022).
//!
//! What is sent in order, from `left` to `right`, may be sampled. A packet that lies before `right` was sent twice or came late: from
//! then on only later packets are. Where a packet leaves a hole, samples begin anew behind the hole. A duplicate acknowledgment tells of
//! a hole at the receiver, whose filling would be taken for a long round trip: what was sent up to then gives no sample. An
//! acknowledgment beyond `right` is of what was never seen.

use super::{WAITING, after, is_sent_again};
use crate::packet::{Tcp, flag};
use crate::room::{Queue, Room};

#[derive(Debug, Default)]
pub struct Sent {
    /// Whether a packet has been seen.
    known: bool,
    left: u32,
    right: u32,
    /// Behind each packet, and when it was sent; in order.
    waiting: Queue<(u32, u64)>,
    /// The other side's last acknowledgment number and window.
    last: Option<(u32, u16)>,
}

impl super::Sent for Sent {
    #[inline(always)]
    fn sent(&mut self, time: u64, packet: &Tcp, room: &mut Room) {
        if packet.length() == 0 || packet.has(flag::RST) {
            return;
        }
        let ahead = after(packet.seq, self.right);
        if !self.known || ahead > 0 || (packet.has(flag::SYN) && !is_sent_again(packet.seq, self.right)) {
            // The first, behind a hole, or another connection.
            self.waiting.clear(room);
            self.known = true;
            self.left = packet.seq;
            self.right = packet.end();
        } else if ahead < 0 {
            self.waiting.clear(room);
            if after(packet.end(), self.right) > 0 {
                self.right = packet.end();
            }
            self.left = self.right;
            return;
        } else {
            self.right = packet.end();
        }
        self.waiting.push((packet.end(), time), WAITING, room);
    }

    #[inline(always)]
    fn came(&mut self, time: u64, packet: &Tcp, room: &mut Room) -> Option<u64> {
        if !packet.has(flag::ACK) || packet.has(flag::RST) || !self.known {
            return None;
        }
        let last = self.last.replace((packet.ack, packet.window));
        let ahead = after(packet.ack, self.left);
        if ahead < 0 || after(packet.ack, self.right) > 0 {
            return None;
        }
        if ahead == 0 {
            // RFC 5681 section 2: a duplicate acknowledgment. One with SACK blocks is one, too. The first one with its number is none,
            // though samples may begin there.
            let again = last == Some((packet.ack, packet.window));
            let duplicate = packet.length() == 0 && (again || packet.options.has_sack());
            if duplicate && self.left != self.right {
                self.waiting.clear(room);
                self.left = self.right;
            }
            return None;
        }
        self.left = packet.ack;
        let mut sample = None;
        while let Some((end, sent)) = self.waiting.front() {
            let behind = after(packet.ack, *end);
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
