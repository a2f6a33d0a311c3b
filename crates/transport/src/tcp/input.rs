//! What a connection makes of the segments that come.

use units::Time;

use super::ack::Incoming;
use super::connection::{Connection, EcnState, Phase, Reset};
use super::rtt::clock;
use crate::segment::{Ecn, Flags, Segment};

impl Connection {
    /// A segment has come.
    pub fn receive(&mut self, now: Time, segment: &Segment) {
        self.sender.statistics.segments_received += 1;
        if segment.flags.has(Flags::RST) {
            self.on_reset(segment);
            return;
        }
        match self.phase {
            Phase::Listen => self.on_first_syn(now, segment),
            Phase::SynSent => self.on_syn_ack(now, segment),
            Phase::SynReceived => {
                if segment.flags.has(Flags::SYN) {
                    self.syn_due = true;
                } else if segment.flags.has(Flags::ACK) && segment.ack == self.isn.wrapping_add(1) {
                    self.established(now, segment);
                    self.on_segment(now, segment);
                }
            }
            Phase::Established => {
                if segment.flags.has(Flags::SYN) {
                    // Its handshake was not finished: our ACK was lost.
                    self.receiver.due = true;
                    return;
                }
                self.on_segment(now, segment);
            }
            Phase::Closed => {
                // The last ACK was lost.
                if segment.flags.has(Flags::FIN) {
                    self.receiver.due = true;
                }
            }
            Phase::Reset => {
                // Our RST was lost, or has not come there yet. A RST with this number is the other end's next segment.
                if segment.flags.has(Flags::ACK) {
                    self.reset_due = Some(Reset::Answer(segment.ack));
                }
            }
            Phase::TimedOut => {}
        }
    }

    fn on_reset(&mut self, segment: &Segment) {
        let valid = match self.phase {
            Phase::Listen | Phase::Closed | Phase::Reset | Phase::TimedOut => false,
            Phase::SynSent => segment.flags.has(Flags::ACK) && segment.ack == self.isn.wrapping_add(1),
            // Exactly the next one (RFC 5961 section 3.2).
            _ => segment.seq == self.irs.wrapping_add(self.receiver.nxt as u32),
        };
        if valid {
            self.over(Phase::Reset);
        }
    }

    fn on_segment(&mut self, now: Time, segment: &Segment) {
        let seq = unwrap(segment.seq.wrapping_sub(self.irs), self.receiver.nxt);
        let Some(seq) = seq else {
            self.receiver.due = true;
            return;
        };
        let fin = segment.flags.has(Flags::FIN);
        let mut newer = false;
        if let Some((val, _)) = segment.timestamps
            && seq <= self.receiver.nxt
        {
            // An older one is that of a segment that was overtaken (RFC 7323 section 4.3).
            newer = self.receiver.ts_recent.is_none_or(|recent| (val.wrapping_sub(recent) as i32) > 0);
            if newer {
                self.receiver.ts_recent = Some(val);
            }
        }
        if segment.flags.has(Flags::ACK) {
            self.on_ack(now, segment, newer);
        }
        if segment.payload > 0 || fin {
            if self.ecn != EcnState::Off {
                if segment.ecn == Ecn::Ce {
                    self.sender.statistics.ce_received += 1;
                }
                // Classic ECN only: the same bits are a counter in accurate ECN.
                if self.ecn == EcnState::Classic && segment.flags.has(Flags::CWR) {
                    if !self.receiver.exact_ce {
                        self.receiver.demand_cwr = false;
                    }
                    // The sender's window may be down to one packet (`tcp_ecn_accept_cwr`).
                    self.receiver.due |= segment.payload > 0;
                }
                self.receiver.ecn(segment.ecn, segment.payload);
            }
            if let Some((_, echoed)) = segment.timestamps {
                self.receiver.window.echo(clock(now), echoed, segment.payload);
            }
            let push = segment.flags.has(Flags::PSH);
            let srtt = self.sender.rtt.srtt();
            self.receiver.data(now, seq, u64::from(segment.payload), push, fin, srtt);
        } else if seq < self.receiver.nxt {
            // A probe of our window.
            self.receiver.due = true;
        }
        let sent_all = self.sender.closing && self.sender.flow.snd_una == self.sender.end();
        if sent_all && self.peer_closed() && self.phase == Phase::Established {
            self.phase = Phase::Closed;
            self.sender.timer = None;
        }
    }

    /// `newer`: the segment's timestamp is later than all before.
    fn on_ack(&mut self, now: Time, segment: &Segment, newer: bool) {
        let una = self.sender.flow.snd_una;
        let Some(ack) = unwrap(segment.ack.wrapping_sub(self.isn), una) else { return };
        if ack > self.sender.flow.snd_nxt {
            self.receiver.due = true;
            return;
        }
        let mut blocks = [(0, 0); 4];
        let mut count = 0;
        if self.sack {
            for (left, right) in segment.sack.as_slice() {
                let left = unwrap(left.wrapping_sub(self.isn), una);
                let right = unwrap(right.wrapping_sub(self.isn), una);
                if let (Some(left), Some(right)) = (left, right)
                    && left < right
                {
                    blocks[count] = (left, right);
                    count += 1;
                }
            }
        }
        let old = ack < una;
        if old && count == 0 {
            // It was overtaken, and tells nothing new (`tcp_ack`).
            return;
        }
        let wnd_end = ack + (u64::from(segment.window) << self.snd_shift);
        let echoed = segment.timestamps.map(|(_, ecr)| ecr);
        let ace = (self.ecn == EcnState::Accurate).then(|| u32::from(segment.flags.ace()));
        let ece = self.ecn == EcnState::Classic && segment.flags.has(Flags::ECE);
        let marked = ece || ace.is_some_and(|ace| ace != self.sender.peer_ce & 7);
        if self.sender.flow.packets_out == 0 && ack == una && count == 0 && !marked {
            return self.sender.on_idle_ack(now, wnd_end, echoed, &mut self.seen);
        }
        let incoming = Incoming {
            ack: ack.max(una),
            wnd_end,
            sack: &blocks[..count],
            old,
            newer,
            ace,
            ece,
            echoed,
            has_data: segment.payload > 0,
        };
        self.sender.on_ack(now, &incoming, &mut self.seen);
    }
}

/// The offset next to `near` whose low 32 bits are `low`; `None` below zero.
fn unwrap(low: u32, near: u64) -> Option<u64> {
    near.checked_add_signed(i64::from(low.wrapping_sub(near as u32) as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_from_sequence_numbers() {
        assert_eq!(unwrap(5, 0), Some(5));
        assert_eq!(unwrap(u32::MAX, 0), None);
        assert_eq!(unwrap(3, 0xffff_fffe), Some(0x1_0000_0003));
        assert_eq!(unwrap(0xffff_fffe, 0x1_0000_0003), Some(0xffff_fffe));
    }
}
