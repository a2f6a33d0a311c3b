//! The packets that are out, in order of their sequence, and what is known of each.
//!
//! Packets have ids that count up and are never used again, so that a hint into the queue stays right when packets leave it in front.

use std::collections::VecDeque;

use units::Time;

use super::ring::Ring;

/// Marks of a packet (`TCPCB_*`).
pub(super) mod mark {
    /// Selectively acknowledged.
    pub const SACKED: u8 = 1;
    /// Sent again, and that copy may still be under way.
    pub const RETRANS: u8 = 2;
    pub const LOST: u8 = 4;
    /// Sent more than once at some time.
    pub const EVER_RETRANS: u8 = 8;
    pub const APP_LIMITED: u8 = 16;
    pub const SYN: u8 = 32;
    pub const FIN: u8 = 64;
    /// Last of a burst, or of what was written.
    pub const PUSH: u8 = 128;
}

/// A packet that is out: a line of the cache.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Sent {
    pub seq: u64,
    /// Sequence numbers it takes, SYN and FIN counted.
    pub len: u32,
    pub marks: u8,
    /// Packets in flight when it was sent.
    pub tx_in_flight: u32,
    pub sent: Time,
    // The connection's counters when it was sent (draft-cheng-iccrg-delivery-rate-estimation section 3.2).
    pub delivered: u64,
    pub delivered_ce: u32,
    pub lost: u32,
    pub delivered_at: Time,
    pub first_sent: Time,
}

impl Sent {
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
    /// In which order packets were sent.
    pub fn order(&self) -> (Time, u64) {
        (self.sent, self.end())
    }
    pub fn has(&self, marks: u8) -> bool {
        self.marks & marks != 0
    }
}

#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    packets: Ring,
    /// Id of the first packet.
    base: u64,
    /// Copies sent again, in that order: id and time. An entry is stale if the packet is gone or was sent again since.
    resent: VecDeque<(u64, Time)>,
    /// Below this id every packet is lost, selectively acknowledged or was sent again: RACK need not look.
    pub rack_from: u64,
    /// Below this id no packet waits for being sent again.
    pub retransmit_from: u64,
}

impl Scoreboard {
    pub fn push(&mut self, packet: Sent) {
        self.packets.push(packet);
    }

    pub fn first(&self) -> Option<&Sent> {
        self.packets.get(0)
    }

    pub fn last_id(&self) -> Option<u64> {
        self.packets.len().checked_sub(1).map(|n| self.base + n as u64)
    }

    /// Takes the first packets off.
    pub fn drop_first(&mut self, count: u64) {
        for _ in 0..count {
            self.packets.drop_first();
        }
        self.base += count;
    }

    /// Acknowledges the front of the first packet alone.
    pub fn trim_first(&mut self, to: u64) {
        if let Some(first) = self.packets.get_mut(0) {
            first.len -= (to - first.seq) as u32;
            first.seq = to;
        }
    }

    pub fn get(&self, id: u64) -> Option<&Sent> {
        self.packets.get(id.checked_sub(self.base)? as usize)
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut Sent> {
        self.packets.get_mut(id.checked_sub(self.base)? as usize)
    }

    /// Id of the packet that holds `seq` or, behind the last one, the id after it. `mss` is a guess at the packets' size.
    pub fn find(&self, seq: u64, mss: u32) -> u64 {
        let Some(first) = self.packets.get(0) else { return self.base };
        if seq < first.seq {
            return self.base;
        }
        let guess = ((seq - first.seq) / u64::from(mss.max(1))) as usize;
        let holds = |p: &Sent| p.seq <= seq && seq < p.end();
        if self.packets.get(guess).is_some_and(holds) {
            return self.base + guess as u64;
        }
        self.base + self.packets.partition_point(|p| p.end() <= seq) as u64
    }

    pub fn note_resent(&mut self, id: u64, now: Time) {
        self.resent.push_back((id, now));
    }

    /// Copies sent again that may still be under way, in order of sending.
    pub fn resent(&mut self) -> impl Iterator<Item = u64> + '_ {
        while let Some((id, at)) = self.resent.front() {
            if self.under_way(*id, *at) {
                break;
            }
            self.resent.pop_front();
        }
        self.resent.iter().filter(|(id, at)| self.under_way(*id, *at)).map(|(id, _)| *id)
    }

    fn under_way(&self, id: u64, at: Time) -> bool {
        self.get(id).is_some_and(|p| p.has(mark::RETRANS) && !p.has(mark::SACKED) && p.sent == at)
    }

    pub fn ids(&self) -> std::ops::Range<u64> {
        self.base..self.base + self.packets.len() as u64
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sent> {
        self.packets.iter_mut()
    }

    /// All packets are to be looked at again.
    pub fn rewind(&mut self) {
        self.rack_from = self.base;
        self.retransmit_from = self.base;
    }
}
