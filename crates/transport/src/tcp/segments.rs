//! What a connection sends: data, acknowledgments, probes, and their ECN field.

use units::Time;

use super::connection::{CE_COUNTER_START, Connection, EcnState, Phase, Reset};
use super::rtt::clock;
use super::scoreboard::mark;
use super::sender::Piece;
use crate::cc::EcnUse;
use crate::segment::{Ecn, Flags, Segment};

impl Connection {
    /// The next segment to send now; to be called until it gives `None`.
    pub fn transmit(&mut self, now: Time) -> Option<Segment> {
        match self.phase {
            Phase::Established => {}
            Phase::SynSent | Phase::SynReceived => return self.transmit_syn(now),
            Phase::Closed => {}
            Phase::Reset => {
                return Some(match self.reset_due.take()? {
                    Reset::Own => {
                        let segment = self.segment(now, self.sender.flow.snd_nxt);
                        Segment { flags: segment.flags | Flags::RST, ..segment }
                    }
                    Reset::Answer(seq) => Segment { seq, flags: Flags::RST, ..Segment::default() },
                });
            }
            Phase::Listen | Phase::TimedOut => return None,
        }
        if let Some((nxt, ce)) = self.receiver.owed.take() {
            // It does not stand for what came since: that is acknowledged on its own.
            let window = self.receiver.window.offered_at(nxt);
            let mut segment = self.segment_with(now, self.sender.flow.snd_nxt, nxt, window);
            segment.flags =
                if ce { segment.flags | Flags::ECE } else { Flags(segment.flags.0 & !Flags::ECE.0) };
            self.sender.statistics.acks_sent += 1;
            return Some(segment);
        }
        if let Some(piece) = self.sender.next(now) {
            return Some(self.data_segment(now, piece));
        }
        if self.probe_due {
            self.probe_due = false;
            let before = self.sender.flow.snd_una - 1;
            return Some(self.pure_ack(now, before));
        }
        if self.receiver.due {
            return Some(self.pure_ack(now, self.sender.flow.snd_nxt));
        }
        None
    }

    /// The host has queued a segment with data: so many bytes, which leave at that time. Without it, nothing is known of the host's
    /// queue, and [`Config::limit_output`] limits nothing.
    pub fn handed_down(&mut self, now: Time, bytes: u32, leaves: Time) {
        if self.config.limit_output.is_some() {
            self.sender.device.hand(now, u64::from(bytes), leaves);
        }
    }

    /// A pure ACK beside those that the connection sends by itself; nothing of the connection's state changes. `None` unless it is
    /// established.
    pub fn bare_ack(&self, now: Time) -> Option<Segment> {
        let established = self.phase() == Phase::Established;
        let window = self.receiver.window.offered_at(self.receiver.nxt);
        established.then(|| self.segment_with(now, self.sender.flow.snd_nxt, self.receiver.nxt, window))
    }

    fn pure_ack(&mut self, now: Time, seq: u64) -> Segment {
        let mut segment = self.segment(now, seq);
        let (irs, room) = (self.irs, if self.timestamps { 3 } else { 4 });
        segment.sack = self.receiver.sack_blocks(room, |offset| irs.wrapping_add(offset as u32));
        if self.every_segment_ect() {
            segment.ecn = self.ect();
        }
        self.sender.statistics.acks_sent += 1;
        segment
    }

    fn data_segment(&mut self, now: Time, piece: Piece) -> Segment {
        let mut segment = self.segment(now, piece.seq);
        let fin = piece.marks & mark::FIN != 0;
        segment.payload = piece.len - u32::from(fin);
        if fin {
            segment.flags |= Flags::FIN;
        }
        self.receiver.data_sent(now);
        if piece.marks & mark::PUSH != 0 {
            segment.flags |= Flags::PSH;
        }
        if self.ecn != EcnState::Off && (!piece.again || self.every_segment_ect()) {
            segment.ecn = self.ect();
        }
        if self.ecn == EcnState::Classic && !piece.again && self.sender.queue_cwr {
            self.sender.queue_cwr = false;
            segment.flags |= Flags::CWR;
        }
        self.sender.statistics.segments_sent += 1;
        segment
    }

    /// Retransmissions and pure ACKs too, not only new data.
    fn every_segment_ect(&self) -> bool {
        matches!(self.sender.ecn_use(), EcnUse::Own | EcnUse::L4s)
    }

    fn ect(&self) -> Ecn {
        match self.ecn {
            EcnState::Off => Ecn::NotEct,
            EcnState::Accurate if self.sender.ecn_use() == EcnUse::L4s => Ecn::Ect1,
            _ => Ecn::Ect0,
        }
    }

    /// A segment that acknowledges all that has come.
    fn segment(&mut self, now: Time, seq: u64) -> Segment {
        let ack = self.receiver.nxt;
        let window = self.receiver.ack_sent();
        self.segment_with(now, seq, ack, window)
    }

    fn segment_with(&self, now: Time, seq: u64, ack: u64, window: u16) -> Segment {
        let mut flags = Flags::ACK;
        match self.ecn {
            EcnState::Off => {}
            EcnState::Classic => {
                if self.receiver.demand_cwr {
                    flags |= Flags::ECE;
                }
            }
            EcnState::Accurate => {
                flags = flags.with_ace((CE_COUNTER_START.wrapping_add(self.receiver.ce_packets) & 7) as u8);
            }
        }
        Segment {
            seq: self.isn.wrapping_add(seq as u32),
            ack: self.irs.wrapping_add(ack as u32),
            flags,
            window,
            timestamps: self.timestamps.then(|| (clock(now), self.receiver.ts_recent.unwrap_or(0))),
            ..Segment::default()
        }
    }
}
