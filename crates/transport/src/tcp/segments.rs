//! What a connection sends: data, acknowledgments, probes, and their ECN field.

use units::Time;

use super::connection::{CE_COUNTER_START, Connection, EcnState, Phase, Reset};
use super::rtt::clock;
use super::scoreboard::mark;
use super::sender::Piece;
use crate::cc::EcnUse;
use crate::segment::{Ecn, Flags, Segment};

/// What there was to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transmitted {
    Nothing,
    /// A segment, and there may be more.
    Segment,
    /// A segment, and no more for now: to ask again gives and changes nothing.
    Last,
}

impl Connection {
    /// The next segment to send now; to be called until it gives `None`.
    pub fn transmit(&mut self, now: Time) -> Option<Segment> {
        let mut segment = Segment::default();
        (self.transmit_into(now, &mut segment) != Transmitted::Nothing).then_some(segment)
    }

    /// As [`Connection::transmit`], in the place of another segment, of which nothing stays.
    pub fn transmit_into(&mut self, now: Time, out: &mut Segment) -> Transmitted {
        if !matches!(self.phase, Phase::Established | Phase::Closed) {
            return if self.transmit_other(now, out) { Transmitted::Segment } else { Transmitted::Nothing };
        }
        if let Some((nxt, ce)) = self.receiver.owed.take() {
            // It does not stand for what came since: that is acknowledged on its own.
            let window = self.receiver.window.offered_at(nxt);
            self.fill(now, self.sender.flow.snd_nxt, nxt, window, out);
            out.flags = if ce { out.flags | Flags::ECE } else { Flags(out.flags.0 & !Flags::ECE.0) };
            self.sender.statistics.acks_sent += 1;
            return Transmitted::Segment;
        }
        let still = self.sender.is_still();
        if !still && let Some(piece) = self.sender.next(now) {
            self.data_segment(now, piece, out);
            return Transmitted::Segment;
        }
        if self.probe_due {
            self.probe_due = false;
            let before = self.sender.flow.snd_una - 1;
            self.pure_ack(now, before, out);
            return Transmitted::Segment;
        }
        if self.receiver.due {
            self.pure_ack(now, self.sender.flow.snd_nxt, out);
            return if still { Transmitted::Last } else { Transmitted::Segment };
        }
        Transmitted::Nothing
    }

    /// As [`Connection::transmit_into`] where there is no connection yet, or no more. False: nothing is to be sent now.
    #[cold]
    fn transmit_other(&mut self, now: Time, out: &mut Segment) -> bool {
        match self.phase {
            Phase::SynSent | Phase::SynReceived => self.transmit_syn(now).map(|syn| *out = syn).is_some(),
            Phase::Reset => self.transmit_reset(now, out),
            Phase::Established | Phase::Closed | Phase::Listen | Phase::TimedOut => false,
        }
    }

    fn transmit_reset(&mut self, now: Time, out: &mut Segment) -> bool {
        match self.reset_due.take() {
            None => return false,
            Some(Reset::Own) => {
                self.acknowledging(now, self.sender.flow.snd_nxt, out);
                out.flags |= Flags::RST;
            }
            Some(Reset::Answer(seq)) => *out = Segment { seq, flags: Flags::RST, ..Segment::default() },
        }
        true
    }

    /// The host has queued a segment with data: so many bytes, which leave at that time. Without it, nothing is known of the host's
    /// queue, and [`Config::limit_output`] limits nothing.
    pub fn handed_down(&mut self, now: Time, bytes: u32, leaves: Time) {
        if self.sender.limit_output.is_some() {
            self.sender.device.hand(now, u64::from(bytes), leaves);
        }
    }

    /// A pure ACK beside those that the connection sends by itself; nothing of the connection's state changes. `None` unless it is
    /// established.
    pub fn bare_ack(&self, now: Time) -> Option<Segment> {
        let established = self.phase() == Phase::Established;
        let window = self.receiver.window.offered_at(self.receiver.nxt);
        established.then(|| {
            let mut segment = Segment::default();
            self.fill(now, self.sender.flow.snd_nxt, self.receiver.nxt, window, &mut segment);
            segment
        })
    }

    fn pure_ack(&mut self, now: Time, seq: u64, segment: &mut Segment) {
        self.acknowledging(now, seq, segment);
        let (irs, room) = (self.irs, if self.timestamps { 3 } else { 4 });
        segment.sack = self.receiver.sack_blocks(room, |offset| irs.wrapping_add(offset as u32));
        if self.ecn != EcnState::Off && self.every_segment_ect() {
            segment.ecn = self.ect();
        }
        self.sender.statistics.acks_sent += 1;
    }

    fn data_segment(&mut self, now: Time, piece: Piece, segment: &mut Segment) {
        self.acknowledging(now, piece.seq, segment);
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
    fn acknowledging(&mut self, now: Time, seq: u64, out: &mut Segment) {
        let ack = self.receiver.nxt;
        let window = self.receiver.ack_sent();
        self.fill(now, seq, ack, window, out);
    }

    #[inline]
    fn fill(&self, now: Time, seq: u64, ack: u64, window: u16, out: &mut Segment) {
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
        *out = Segment {
            seq: self.isn.wrapping_add(seq as u32),
            ack: self.irs.wrapping_add(ack as u32),
            flags,
            window,
            timestamps: self.timestamps.then(|| (clock(now), self.receiver.ts_recent.unwrap_or(0))),
            ..Segment::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;
    use units::Random;

    use super::*;
    use crate::cc;
    use crate::tcp::Config;

    const DELAY: Time = Time::from_ms(10);

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        /// What a sender that is still is not asked for would be nothing, and would change nothing; nor has a connection more to send
        /// after a last segment.
        #[test]
        fn a_still_sender_has_nothing_to_send(
            seed in any::<u64>(),
            loss in prop_oneof![Just(0.0), Just(0.02), Just(0.2)],
            control in prop_oneof![Just("reno"), Just("cubic"), Just("dctcp"), Just("bbr")],
            sack in any::<bool>(),
            pacing in any::<bool>(),
        ) {
            let mut random = Random::new(seed);
            let config = Config { sack, pacing, seed, ..Config::default() };
            let control = || cc::new(control, &[]).expect("congestion control");
            let mut ends =
                [Connection::connect(config.clone(), control()), Connection::listen(config.clone(), control())];
            let mut wires: [VecDeque<(Time, Segment)>; 2] = Default::default();
            let (mut now, mut writes, mut still, mut last) = (Time::ZERO, Time::ZERO, 0, 0);
            while now < Time::from_secs(20) {
                if writes <= now {
                    ends[0].write(1 + random.next_u64() % 60_000);
                    writes = now + Time::from_us(random.next_u64() % 900_000);
                }
                for (side, end) in ends.iter_mut().enumerate() {
                    loop {
                        if end.phase == Phase::Established && end.sender.is_still() {
                            let before = format!("{:?}", end.sender);
                            prop_assert!(end.sender.next(now).is_none());
                            prop_assert_eq!(format!("{:?}", end.sender), before);
                            still += 1;
                        }
                        let mut segment = Segment::default();
                        let sent = end.transmit_into(now, &mut segment);
                        if sent != Transmitted::Nothing && !random.chance(loss) {
                            wires[side].push_back((now + DELAY, segment));
                        }
                        match sent {
                            Transmitted::Segment => {}
                            Transmitted::Nothing => break,
                            Transmitted::Last => {
                                prop_assert_eq!(end.transmit(now), None);
                                last += 1;
                                break;
                            }
                        }
                    }
                }
                let arrivals = wires.iter().filter_map(|wire| wire.front().map(|(at, _)| *at));
                let timers = ends.iter().map(|end| end.next_wakeup(now));
                now = arrivals.chain(timers).min().unwrap_or(Time::MAX).min(writes);
                for side in 0..2 {
                    while wires[side].front().is_some_and(|(at, _)| *at <= now) {
                        if let Some((_, segment)) = wires[side].pop_front() {
                            ends[1 - side].receive(now, &segment);
                        }
                    }
                    if ends[side].next_wakeup(now) <= now {
                        ends[side].advance(now);
                    }
                }
            }
            // A sender that loses much may wait for its timeouts to the end.
            prop_assert!(loss > 0.0 || (still > 10 && last > 10), "{} {}", still, last);
        }
    }
}
