//! What an ACK acknowledges, as `tcp_ack`: cumulative, SACK (RFC 2018, RFC 2883), samples of round trip and delivery rate.

use units::Time;

use super::ack_flag as flags;
use super::rtt::clock;
use super::scoreboard::{Sent, mark};
use super::sender::{MAX_REORDERING, Sender, Timer};
use crate::cc::{Ack, RateSample, State};

/// An ACK with its numbers made offsets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Incoming<'a> {
    pub ack: u64,
    /// Offset behind the window.
    pub wnd_end: u64,
    pub sack: &'a [(u64, u64)],
    /// It acknowledges less than one before it did.
    pub old: bool,
    /// Its timestamp is later than all before.
    pub newer: bool,
    /// The peer's counter of CE marks, of 3 bits (accurate ECN), and ECE (RFC 3168).
    pub ace: Option<u32>,
    pub ece: bool,
    pub echoed: Option<u32>,
    pub has_data: bool,
}

/// The blocks of the ACK before, so that what they said is not walked again.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct SeenSack {
    len: usize,
    blocks: [(u64, u64); 4],
}

/// What is gathered while packets are ticked off.
#[derive(Default)]
struct Tally {
    flag: u32,
    delivered: u32,
    first_acked: Option<Time>,
    last_acked: Option<Time>,
    first_sacked: Option<Time>,
    last_sacked: Option<Time>,
    /// Highest offset that earlier ACKs had acknowledged selectively, and the lowest below it that arrived only now, late.
    highest_before: u64,
    reordered: Option<u64>,
    /// The packet, of those delivered, that was sent last, and its [`Sent::order`].
    newest: Option<Sent>,
    newest_sent: (Time, u64),
}

impl Tally {
    /// `tcp_rate_skb_delivered`.
    fn note(&mut self, p: &Sent) {
        if self.is_newer(p) {
            (self.newest_sent, self.newest) = (p.order(), Some(*p));
        }
    }

    /// Whether it was sent after all that were delivered so far. A packet's end is above 0.
    fn is_newer(&self, p: &Sent) -> bool {
        p.order() > self.newest_sent
    }

    fn late(&mut self, seq: u64) {
        self.reordered = Some(self.reordered.map_or(seq, |low| low.min(seq)));
    }
}

impl Sender {
    /// Processes an ACK. The offset is not above `snd_nxt`.
    pub fn on_ack(&mut self, now: Time, incoming: &Incoming<'_>, seen: &mut SeenSack) {
        let prior_una = self.flow.snd_una;
        let prior_delivered = self.flow.delivered;
        let prior_lost = self.flow.lost;
        let prior_in_flight = self.flow.in_flight();
        let prior_packets = self.flow.packets_out;
        let mut tally = Tally { highest_before: self.highest_sack, ..Tally::default() };
        self.echoed = incoming.echoed;
        if incoming.has_data {
            tally.flag |= flags::DATA;
        }
        if incoming.ack > prior_una {
            tally.flag |= flags::UNA_ADVANCED;
            self.retransmits = 0;
        }
        if self.open_window(incoming.ack, incoming.wnd_end) {
            tally.flag |= flags::WINDOW_UPDATE;
        }
        if !incoming.sack.is_empty() && self.sack {
            self.sacktag(now, incoming, seen, &mut tally);
        } else {
            seen.len = 0;
        }
        let packets_out = self.flow.packets_out;
        self.clean_rtx_queue(now, incoming.ack, &mut tally);
        let marked = self.news_of_marks(incoming, tally.flag);
        let ece = incoming.ece || marked > 0;
        if ece {
            tally.flag |= flags::ECE;
            self.statistics.ece_received += 1;
        }
        if !self.sack {
            tally.delivered = self.duplicates_acked(packets_out - self.flow.packets_out);
            // Without SACK nothing tells that it was the originals that made the progress.
            if tally.flag & flags::RETRANS_DATA_ACKED != 0 {
                tally.flag &= !flags::ORIG_SACK_ACKED;
            }
            if tally.flag & flags::NO_DUPLICATE == 0 && self.flow.packets_out > 0 {
                tally.flag |= flags::DUPLICATE;
            }
        }
        self.flow.snd_una = incoming.ack.max(prior_una);
        if let Some(low) = tally.reordered {
            self.check_reordering(low, self.highest_sack);
        }
        let delivered = tally.delivered;
        self.flow.delivered += u64::from(delivered);
        if delivered > 0 {
            self.flow.delivered_at = now;
        }
        let ce = if incoming.ece { delivered } else { marked };
        self.flow.delivered_ce += u64::from(ce);
        let rtt = self.sample_rtt(now, &tally);
        if rtt.is_some() && self.is_slow_news(&tally) {
            tally.flag |= flags::SET_TIMER;
        }
        if incoming.ack > prior_una {
            self.rack_update_reo_wnd(tally.newest.map_or(prior_delivered, |n| n.delivered));
        }
        let mut ack = Ack {
            now,
            una: self.flow.snd_una,
            acked: delivered,
            rtt,
            in_flight: prior_in_flight,
            ece,
            ce,
            advanced: tally.flag & flags::UNA_ADVANCED != 0,
        };
        self.cc.in_ack_event(&mut self.flow, &ack);
        if delivered > 0 {
            self.cc.pkts_acked(&mut self.flow, &ack);
        }
        if prior_packets > 0 {
            self.process_probe_ack(now, incoming.ack, tally.flag);
            // Everything that is not plain, RFC 5681's duplicate ACK included.
            let plain = tally.flag & (flags::DATA_SACKED | flags::ECE | flags::DSACK | flags::DUPLICATE) == 0
                && tally.flag & flags::NO_DUPLICATE != 0;
            if !plain || self.flow.state != State::Open {
                let mut flag = tally.flag;
                let before = self.flow.delivered;
                self.fastretrans_alert(now, prior_una, &mut flag);
                tally.flag = flag;
                // Without SACK it tells which duplicate ACKs stand for a packet.
                if self.flow.delivered > before {
                    tally.delivered += (self.flow.delivered - before) as u32;
                    ack.acked = tally.delivered;
                    self.flow.delivered_at = now;
                }
            }
        }
        self.end_app_limited();
        ack.in_flight = self.flow.in_flight();
        if prior_packets > 0 {
            let losses = (self.flow.lost - prior_lost) as u32;
            if self.cc.takes_over() {
                let sample = self.rate_sample(now, &tally, rtt, prior_in_flight, losses);
                self.cc.cong_control(&mut self.flow, &ack, &sample);
            } else {
                self.set_window(now, &ack, tally.delivered, losses, tally.flag);
            }
        }
        if let Some(newest) = &tally.newest {
            self.flow.first_sent = newest.sent;
        }
        self.keep_limits();
        self.set_timer_after_ack(now, tally.flag, prior_packets);
    }

    /// Packets that the peer reports as marked CE since it reported last (`tcp_accecn_process`): modulo 8, so one that was
    /// overtaken would look like many more. An ACK that brings nothing forward may be such a one.
    fn news_of_marks(&mut self, incoming: &Incoming<'_>, flag: u32) -> u32 {
        let Some(ace) = incoming.ace else { return 0 };
        let progress = incoming.newer || flag & (flags::UNA_ADVANCED | flags::DATA_SACKED) != 0;
        if incoming.old || !progress {
            return 0;
        }
        let news = ace.wrapping_sub(self.peer_ce) & 7;
        self.peer_ce = self.peer_ce.wrapping_add(news);
        news
    }

    /// As [`Sender::on_ack`] where nothing is out, and nothing new acknowledged or marked: most ACKs that come with data. They say how
    /// far the window reaches, and what timestamp they echo.
    #[inline]
    pub fn on_idle_ack(&mut self, now: Time, wnd_end: u64, echoed: Option<u32>, seen: &mut SeenSack) {
        self.echoed = echoed;
        seen.len = 0;
        let flag = if self.open_window(self.flow.snd_una, wnd_end) { flags::WINDOW_UPDATE } else { 0 };
        let ack = Ack { now, una: self.flow.snd_una, in_flight: self.flow.in_flight(), ..Ack::default() };
        self.cc.in_ack_event(&mut self.flow, &ack);
        self.end_app_limited();
        self.keep_limits();
        self.set_timer_after_ack(now, flag, 0);
    }

    /// Whether the peer's window has opened.
    #[inline]
    fn open_window(&mut self, ack: u64, wnd_end: u64) -> bool {
        let opens = wnd_end > self.wnd_end;
        if opens {
            self.wnd_end = wnd_end;
            self.snd_wnd = wnd_end - ack;
        }
        opens
    }

    /// All that was sent while the application had no more has been delivered.
    fn end_app_limited(&mut self) {
        let flow = &mut self.flow;
        if flow.app_limited > 0 && flow.delivered > flow.app_limited {
            flow.app_limited = 0;
        }
    }

    /// `tcp_cong_control`, where the control does not take over.
    fn set_window(&mut self, now: Time, ack: &Ack, acked_sacked: u32, losses: u32, flag: u32) {
        if matches!(self.flow.state, State::Cwr | State::Recovery) {
            self.cwnd_reduction(acked_sacked, losses, flag);
        } else {
            let progress = if self.reordering > self.reordering_min {
                flags::DATA_ACKED | flags::DATA_SACKED
            } else {
                flags::DATA_ACKED
            };
            if flag & progress != 0 {
                self.cc.cong_avoid(&mut self.flow, ack);
                self.cwnd_stamp = now;
            }
        }
        self.update_pacing_rate();
    }

    fn set_timer_after_ack(&mut self, now: Time, flag: u32, prior_packets: u32) {
        if self.flow.packets_out == 0 {
            // A closed window with data waiting is probed when sending finds it closed.
            if prior_packets > 0 || flag & flags::WINDOW_UPDATE != 0 {
                self.timer = None;
                self.rtt.backoff = 0;
            }
            return;
        }
        if flag & (flags::DATA_ACKED | flags::UNA_ADVANCED | flags::SET_TIMER) != 0
            && !matches!(self.timer, Some((Timer::Reorder, _)))
            && !self.schedule_probe(now, true)
        {
            self.timer = None;
            self.rearm_rto(now);
        }
    }

    /// Selective acknowledgements (`tcp_sacktag_write_queue`).
    fn sacktag(&mut self, now: Time, incoming: &Incoming<'_>, seen: &mut SeenSack, tally: &mut Tally) {
        let blocks = incoming.sack;
        let una = self.flow.snd_una;
        let duplicates = if self.is_dsack(incoming) { self.note_dsack(blocks[0], tally) } else { 0 };
        let duplicate = duplicates > 0;
        if duplicate {
            let (_, right) = blocks[0];
            if right <= una && self.undo_marker.is_some_and(|m| right > m) && self.undo_retrans > 0 {
                self.undo_retrans = (self.undo_retrans - duplicates as i32).max(0);
            }
        }
        let mut next = SeenSack::default();
        for (index, &(left, right)) in blocks.iter().enumerate() {
            let dup = duplicate && index == 0;
            let (mut left, mut right) = (left.max(una), right.min(self.flow.snd_nxt));
            if left >= right {
                continue;
            }
            if !dup {
                if next.len < next.blocks.len() {
                    next.blocks[next.len] = (left, right);
                    next.len += 1;
                }
                for &(l, r) in &seen.blocks[..seen.len] {
                    if l <= left && right <= r {
                        right = left;
                    } else if l <= left && left < r {
                        left = r;
                    } else if l < right && right <= r {
                        right = l;
                    }
                }
            }
            let mut id = self.board.find(left, self.flow.mss);
            while let Some(p) = self.board.get(id) {
                if p.end() > right || p.seq < left {
                    if p.seq >= right {
                        break;
                    }
                } else {
                    self.sack_one(now, id, dup, tally);
                }
                id += 1;
            }
        }
        *seen = next;
    }

    /// RFC 2883: the first block reports what had arrived before.
    fn is_dsack(&self, incoming: &Incoming<'_>) -> bool {
        let first = incoming.sack[0];
        first.0 < incoming.ack.max(self.flow.snd_una)
            || incoming.sack.get(1).is_some_and(|b| b.0 <= first.0 && first.1 <= b.1)
    }

    /// How many packets came twice (`tcp_dsack_seen`); none that were sent once: the network doubled these.
    fn note_dsack(&mut self, (left, right): (u64, u64), tally: &mut Tally) -> u32 {
        self.statistics.dsacks += 1;
        let packets = right.saturating_sub(left).div_ceil(u64::from(self.flow.mss)).max(1) as u32;
        self.duplicates += u64::from(packets);
        if self.duplicates > self.statistics.retransmits {
            return 0;
        }
        let of_probe = packets == 1 && self.tlp_high_seq == Some(right);
        tally.flag |= flags::DSACK | if of_probe { flags::DSACK_TLP } else { 0 };
        // Reordering makes RACK send again in vain. Without it, and of a probe, a timer does.
        self.rack.dsack_seen |= self.reord_seen > 0 && !of_probe;
        tally.delivered += packets;
        packets
    }

    fn sack_one(&mut self, now: Time, id: u64, duplicate: bool, tally: &mut Tally) {
        let high_seq = self.flow.high_seq;
        let Some(p) = self.board.get_mut(id) else { return };
        if duplicate && p.has(mark::EVER_RETRANS) {
            if self.undo_marker.is_some_and(|m| p.end() > m) && self.undo_retrans > 0 {
                self.undo_retrans -= 1;
            }
            if p.has(mark::SACKED) {
                tally.late(p.seq);
            }
            if p.has(mark::RETRANS) {
                p.marks &= !mark::RETRANS;
                self.flow.retrans_out -= 1;
            }
        }
        if p.has(mark::SACKED) {
            return;
        }
        if p.has(mark::RETRANS) {
            if p.has(mark::LOST) {
                p.marks &= !(mark::LOST | mark::RETRANS);
                self.flow.lost_out -= 1;
                self.flow.retrans_out -= 1;
            }
        } else {
            if !p.has(mark::EVER_RETRANS) {
                if p.seq < tally.highest_before {
                    tally.late(p.seq);
                }
                if p.end() <= high_seq {
                    tally.flag |= flags::ORIG_SACK_ACKED;
                }
                tally.first_sacked.get_or_insert(p.sent);
                tally.last_sacked = Some(p.sent);
            }
            if p.has(mark::LOST) {
                p.marks &= !mark::LOST;
                self.flow.lost_out -= 1;
            }
        }
        p.marks |= mark::SACKED;
        tally.flag |= flags::DATA_SACKED;
        tally.delivered += 1;
        self.flow.sacked_out += 1;
        self.highest_sack = self.highest_sack.max(p.seq);
        let p = *p;
        tally.note(&p);
        self.rack.advance(now, &p, self.rtt.min());
    }

    /// Takes what is acknowledged cumulatively off the scoreboard (`tcp_clean_rtx_queue`).
    fn clean_rtx_queue(&mut self, now: Time, ack: u64, tally: &mut Tally) {
        let (min_rtt, first) = (self.rtt.min(), self.board.ids().start);
        let (mut next, mut newest) = (first, None);
        while let Some(p) = self.board.get(next)
            && p.end() <= ack
        {
            if p.has(mark::EVER_RETRANS) {
                if p.has(mark::RETRANS) {
                    self.flow.retrans_out -= 1;
                }
                tally.flag |= flags::RETRANS_DATA_ACKED;
            } else if !p.has(mark::SACKED) {
                tally.last_acked = Some(p.sent);
                tally.first_acked.get_or_insert(p.sent);
                if p.seq < tally.highest_before {
                    tally.late(p.seq);
                }
                if p.end() <= self.flow.high_seq {
                    tally.flag |= flags::ORIG_SACK_ACKED;
                }
            }
            if p.has(mark::SACKED) {
                self.flow.sacked_out -= 1;
            } else {
                tally.delivered += 1;
                if self.sack {
                    self.rack.advance(now, p, min_rtt);
                }
            }
            if p.has(mark::LOST) {
                self.flow.lost_out -= 1;
            }
            tally.flag |= if p.has(mark::SYN) { flags::SYN_ACKED } else { flags::DATA_ACKED };
            if tally.is_newer(p) {
                (tally.newest_sent, newest) = (p.order(), Some(next));
            }
            next += 1;
        }
        if let Some(newest) = newest {
            tally.newest = self.board.get(newest).copied();
        }
        let gone = next - first;
        self.flow.packets_out -= gone as u32;
        self.board.drop_first(gone);
        if self.board.first().is_some_and(|p| p.seq < ack) {
            self.board.trim_first(ack);
        }
    }

    /// Packets that arrived late widen the tolerance (`tcp_check_sack_reordering`).
    pub(super) fn check_reordering(&mut self, low: u64, highest: u64) {
        if low >= highest {
            return;
        }
        let distance = (highest - low).div_ceil(u64::from(self.flow.mss)) as u32;
        if distance > self.reordering {
            self.reordering = distance.min(MAX_REORDERING);
        }
        self.reord_seen += 1;
    }

    /// `tcp_ack_update_rtt`; gives the round trip of the packet that was acknowledged last.
    fn sample_rtt(&mut self, now: Time, tally: &Tally) -> Option<Time> {
        let mut sequence = None;
        let mut newest = None;
        if tally.flag & flags::RETRANS_DATA_ACKED == 0 {
            sequence = tally.first_acked.map(|sent| now - sent);
            newest = tally.last_acked.map(|sent| now - sent);
        }
        if let Some(sent) = tally.first_sacked {
            sequence = sequence.or(Some(now - sent));
            newest = tally.last_sacked.map(|sent| now - sent);
        }
        // What was sent again gives no sample but by the timestamp that is echoed (RFC 6298 section 3), coarse as that is. Linux
        // always takes it; here it is taken only to end a back-off.
        if sequence.is_none() && self.rtt.backoff > 0 && tally.flag & flags::DATA_ACKED != 0 {
            sequence = self.echoed_rtt(now);
            newest = sequence;
        }
        let rtt = sequence?;
        self.rtt.sample(now, rtt, newest.unwrap_or(rtt), self.flow.snd_una, self.flow.snd_nxt);
        self.rtt.backoff = 0;
        self.flow.srtt = self.rtt.srtt();
        self.flow.min_rtt = self.rtt.min();
        self.flow.last_rtt = newest.unwrap_or(rtt);
        newest
    }

    /// Whether SACK tells of what was sent before the first packet was sent last: the timeout is not to be ahead of news of that
    /// (`tcp_clean_rtx_queue`).
    fn is_slow_news(&self, tally: &Tally) -> bool {
        let head = self.board.first().map_or(Time::ZERO, |first| first.sent);
        tally.first_sacked.is_some_and(|sent| sent < head)
    }

    /// The round trip by the timestamp that the ACK echoes, in the clock's milliseconds (`tcp_rtt_tsopt_us`).
    pub(super) fn echoed_rtt(&self, now: Time) -> Option<Time> {
        let echoed = self.echoed.filter(|echoed| *echoed != 0)?;
        let passed = clock(now).wrapping_sub(echoed);
        (passed < i32::MAX as u32 / 1000).then(|| Time::from_ms(u64::from(passed.max(1))))
    }

    /// `tcp_rate_gen`.
    fn rate_sample(
        &self,
        now: Time,
        tally: &Tally,
        rtt: Option<Time>,
        in_flight: u32,
        losses: u32,
    ) -> RateSample {
        let flow = &self.flow;
        let mut sample = RateSample {
            rtt,
            losses,
            acked_sacked: tally.delivered,
            prior_in_flight: in_flight,
            ..RateSample::default()
        };
        let Some(newest) = &tally.newest else { return sample };
        sample.prior_delivered = newest.delivered;
        sample.prior_delivered_ce = u64::from(newest.delivered_ce);
        sample.prior_at = Some(newest.delivered_at);
        sample.is_app_limited = newest.has(mark::APP_LIMITED);
        sample.is_retrans = newest.has(mark::EVER_RETRANS);
        sample.tx_in_flight = newest.tx_in_flight;
        sample.prior_lost = u64::from(newest.lost);
        sample.delivered = flow.delivered - newest.delivered;
        sample.delivered_ce = flow.delivered_ce.saturating_sub(u64::from(newest.delivered_ce));
        sample.is_ack_delayed = tally.delivered == 1 && in_flight == 1;
        let send = newest.sent.saturating_sub(newest.first_sent);
        let ack = now.saturating_sub(newest.delivered_at);
        let interval = send.max(ack);
        // Shorter than the path: the ACKs were compressed beyond sense.
        if interval >= flow.min_rtt {
            sample.interval = Some(interval);
        }
        sample
    }
}
