//! The states of loss recovery, as `tcp_fastretrans_alert` and its helpers have them: fast retransmit with PRR (RFC 6937),
//! retransmission timeouts with F-RTO (RFC 5682), and undo of what turned out to be spurious (Eifel, D-SACK).

use units::Time;

use super::ack_flag as flags;
use super::rtt::clock;
use super::scoreboard::mark;
use super::sender::{MAX_REORDERING, Sender, Timer};
use crate::cc::{Event, INFINITE_SSTHRESH, LostPacket, State};

impl Sender {
    pub(super) fn set_state(&mut self, state: State, now: Time) {
        self.cc.set_state(&mut self.flow, state, now);
        self.flow.state = state;
    }

    fn in_reduction(&self) -> bool {
        matches!(self.flow.state, State::Cwr | State::Recovery)
    }

    /// `tcp_current_ssthresh`.
    pub(super) fn current_ssthresh(&self) -> u32 {
        if self.in_reduction() {
            self.flow.ssthresh
        } else {
            self.flow.ssthresh.max(self.flow.cwnd / 2 + self.flow.cwnd / 4)
        }
    }

    pub(super) fn init_cwnd_reduction(&mut self, now: Time) {
        self.flow.high_seq = self.flow.snd_nxt;
        self.tlp_high_seq = None;
        self.flow.cwnd_cnt = 0;
        self.flow.prior_cwnd = self.flow.cwnd;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.flow.ssthresh = self.cc.ssthresh(&mut self.flow, now);
        self.queue_cwr = true;
    }

    /// Proportional rate reduction (RFC 6937 section 3).
    pub(super) fn cwnd_reduction(&mut self, acked_sacked: u32, lost: u32, flag: u32) {
        if acked_sacked == 0 || self.flow.prior_cwnd == 0 {
            return;
        }
        self.prr_delivered += acked_sacked;
        let in_flight = self.flow.in_flight();
        let mut send = if self.flow.ssthresh < in_flight {
            let (ssthresh, prior) = (u64::from(self.flow.ssthresh), u64::from(self.flow.prior_cwnd));
            let dividend = ssthresh * u64::from(self.prr_delivered) + prior - 1;
            ((dividend / prior) as u32).saturating_sub(self.prr_out)
        } else {
            let mut send = self.prr_delivered.saturating_sub(self.prr_out).max(acked_sacked);
            if flag & flags::UNA_ADVANCED != 0 && lost == 0 {
                send += 1;
            }
            send.min(self.flow.ssthresh - in_flight)
        };
        // The first retransmission goes out at once.
        if self.prr_out == 0 {
            send = send.max(1);
        }
        self.flow.cwnd = in_flight + send;
    }

    pub(super) fn end_cwnd_reduction(&mut self, now: Time) {
        if self.cc.takes_over() {
            return;
        }
        if self.flow.ssthresh < INFINITE_SSTHRESH
            && (self.flow.state == State::Cwr || self.undo_marker.is_some())
        {
            self.flow.cwnd = self.flow.ssthresh;
            self.cwnd_stamp = now;
        }
        self.cc.cwnd_event(&mut self.flow, Event::CompleteCwr, now);
    }

    /// Congestion that was signalled (ECE).
    pub(super) fn enter_cwr(&mut self, now: Time) {
        self.flow.prior_ssthresh = 0;
        if self.flow.state < State::Cwr {
            self.undo_marker = None;
            self.init_cwnd_reduction(now);
            self.set_state(State::Cwr, now);
        }
    }

    fn init_undo(&mut self) {
        self.undo_marker = Some(self.flow.snd_una);
        // Copies that are out may be told of as received twice, a probe's too.
        let copies = self.flow.retrans_out + u32::from(self.tlp_high_seq.is_some() && self.tlp_retrans);
        self.undo_retrans = if copies > 0 { copies as i32 } else { -1 };
    }

    pub(super) fn enter_recovery(&mut self, now: Time, ece: bool) {
        self.statistics.fast_recoveries += 1;
        self.flow.prior_ssthresh = 0;
        self.init_undo();
        if !self.in_reduction() {
            if !ece {
                self.flow.prior_ssthresh = self.current_ssthresh();
            }
            self.init_cwnd_reduction(now);
        }
        self.set_state(State::Recovery, now);
    }

    /// `tcp_enter_loss`.
    fn enter_loss(&mut self, now: Time) {
        let new_recovery = self.flow.state < State::Recovery;
        if !self.sack {
            self.flow.sacked_out = 0;
        }
        let head = self.board.ids().start;
        for id in self.board.ids() {
            let Some(p) = self.board.get(id) else { break };
            // What was sent a moment ago need not be lost with the head.
            if self.sack && id != head && !self.rack_remaining(now, p, Time::ZERO).is_zero() {
                continue;
            }
            self.mark_lost(id);
        }
        if self.flow.state <= State::Disorder
            || self.flow.high_seq <= self.flow.snd_una
            || (self.flow.state == State::Loss && self.retransmits == 0)
        {
            self.flow.prior_ssthresh = self.current_ssthresh();
            self.flow.prior_cwnd = self.flow.cwnd;
            self.flow.ssthresh = self.cc.ssthresh(&mut self.flow, now);
            self.cc.cwnd_event(&mut self.flow, Event::Loss, now);
            self.init_undo();
        }
        self.flow.cwnd = self.flow.in_flight() + 1;
        self.flow.cwnd_cnt = 0;
        self.cwnd_stamp = now;
        if self.flow.state <= State::Disorder && self.flow.sacked_out >= self.reordering_min {
            self.reordering = self.reordering.min(self.reordering_min);
        }
        self.set_state(State::Loss, now);
        self.flow.high_seq = self.flow.snd_nxt;
        self.tlp_high_seq = None;
        self.queue_cwr = true;
        self.frto = new_recovery || self.retransmits > 0;
    }

    /// The retransmission timer.
    pub(super) fn retransmission_timeout(&mut self, now: Time) {
        if self.flow.packets_out == 0 {
            return;
        }
        self.statistics.timeouts += 1;
        self.enter_loss(now);
        self.retransmits += 1;
        self.rtt.backoff += 1;
        self.retransmit = true;
        // The head goes out again whatever the pacing says.
        self.flow.pacing_until = now;
        self.set_timer(Timer::Retransmit, now + self.rtt.rto());
    }

    /// A packet counts as lost (`tcp_mark_skb_lost`).
    pub(super) fn mark_lost(&mut self, id: u64) {
        let Some(p) = self.board.get_mut(id) else { return };
        let copy_under_way = p.has(mark::RETRANS);
        if p.has(mark::SACKED) || (p.has(mark::LOST) && !copy_under_way) {
            return;
        }
        if copy_under_way {
            p.marks &= !mark::RETRANS;
            self.flow.retrans_out -= 1;
        }
        if !p.has(mark::LOST) {
            p.marks |= mark::LOST;
            self.flow.lost_out += 1;
        }
        let packet = LostPacket {
            tx_in_flight: p.tx_in_flight,
            prior_lost: u64::from(p.lost),
            is_app_limited: p.has(mark::APP_LIMITED),
        };
        self.flow.lost += 1;
        self.board.retransmit_from = self.board.retransmit_from.min(id);
        self.cc.packet_lost(&mut self.flow, &packet);
    }

    fn packet_delayed(&self) -> bool {
        // The ACK echoes a time before the first retransmission: the original arrived (RFC 3522).
        matches!((self.retrans_stamp, self.echoed), (Some(stamp), Some(echo)) if (echo.wrapping_sub(clock(stamp)) as i32) < 0)
    }

    fn may_undo(&self) -> bool {
        self.undo_marker.is_some() && (self.undo_retrans == 0 || self.packet_delayed())
    }

    fn undo_reduction(&mut self, unmark: bool, now: Time) {
        self.statistics.undos += 1;
        if unmark {
            for p in self.board.iter_mut() {
                p.marks &= !mark::LOST;
            }
            self.flow.lost_out = 0;
            self.board.rewind();
        }
        if self.flow.prior_ssthresh > 0 {
            self.flow.cwnd = self.cc.undo_cwnd(&mut self.flow);
            if self.flow.prior_ssthresh > self.flow.ssthresh {
                self.flow.ssthresh = self.flow.prior_ssthresh;
                self.queue_cwr = false;
            }
        }
        self.cwnd_stamp = now;
        self.undo_marker = None;
        self.rack.advanced = true;
    }

    /// True: it goes on until more is acknowledged.
    fn try_undo_recovery(&mut self, now: Time) -> bool {
        if self.may_undo() {
            self.undo_reduction(false, now);
        }
        if self.holds_state() {
            return true;
        }
        self.set_state(State::Open, now);
        false
    }

    /// Without SACK duplicate ACKs of what was sent again would start it anew, until something above `high_seq` is acknowledged
    /// (RFC 6582 section 3.2; `tcp_is_non_sack_preventing_reopen`).
    fn holds_state(&mut self) -> bool {
        let holds = self.would_reopen();
        if holds && !self.any_retrans() {
            self.retrans_stamp = None;
        }
        holds
    }

    fn would_reopen(&self) -> bool {
        !self.sack && self.flow.snd_una == self.flow.high_seq
    }

    fn try_undo_partial(&mut self, prior_una: u64, now: Time) -> bool {
        if self.undo_marker.is_none() || !self.packet_delayed() {
            return false;
        }
        // The hole was filled by a packet that came late: so far they are reordered at least.
        let highest = match (self.flow.sacked_out, self.sack) {
            (0, _) => self.flow.snd_una,
            (_, true) => self.highest_sack,
            (_, false) => self.flow.snd_nxt,
        };
        self.check_reordering(prior_una, highest);
        // Copies are still out: wait for what they tell.
        if self.flow.retrans_out > 0 {
            return true;
        }
        if !self.any_retrans() {
            self.retrans_stamp = None;
        }
        self.undo_reduction(true, now);
        self.try_keep_open(now);
        true
    }

    fn try_undo_dsack(&mut self, now: Time) -> bool {
        if self.undo_marker.is_some() && self.undo_retrans == 0 {
            self.rack_keep_reo_wnd();
            self.undo_reduction(false, now);
            return true;
        }
        false
    }

    fn try_undo_loss(&mut self, frto: bool, now: Time) -> bool {
        if !frto && !self.may_undo() {
            return false;
        }
        self.undo_reduction(true, now);
        self.retransmits = 0;
        if self.holds_state() {
            return true;
        }
        if frto || self.sack {
            self.set_state(State::Open, now);
        }
        true
    }

    /// F-RTO was to try new data (RFC 5682 section 3.1, step 2 b), of which nothing may leave: losses are repaired as ever
    /// (`tcp_xmit_recovery`).
    pub(super) fn frto_sends_nothing(&mut self) -> bool {
        let waits = self.flow.state == State::Loss && self.frto && !self.retransmit;
        if !waits || self.flow.snd_nxt > self.flow.high_seq {
            return false;
        }
        self.frto = false;
        self.retransmit = true;
        true
    }

    fn any_retrans(&self) -> bool {
        self.flow.retrans_out > 0 || self.board.first().is_some_and(|p| p.has(mark::EVER_RETRANS))
    }

    pub(super) fn try_keep_open(&mut self, now: Time) {
        let state = if self.flow.sacked_out + self.flow.lost_out > 0 || self.any_retrans() {
            State::Disorder
        } else {
            State::Open
        };
        if self.flow.state != state {
            self.set_state(state, now);
            self.flow.high_seq = self.flow.snd_nxt;
        }
    }

    fn try_to_open(&mut self, flag: u32, now: Time) {
        if !self.any_retrans() {
            self.retrans_stamp = None;
        }
        if flag & flags::ECE != 0 {
            self.enter_cwr(now);
        }
        if self.flow.state != State::Cwr {
            self.try_keep_open(now);
        }
    }

    /// Without SACK a duplicate ACK stands for a packet that was delivered (`tcp_add_reno_sack`).
    fn add_duplicate(&mut self, flag: u32) {
        if flag & flags::DUPLICATE != 0 {
            let before = self.flow.sacked_out;
            self.flow.sacked_out += 1;
            self.limit_duplicates(0);
            let delivered = u64::from(self.flow.sacked_out.saturating_sub(before));
            self.flow.delivered += delivered;
            if flag & flags::ECE != 0 && !self.flow.accurate_ecn {
                self.flow.delivered_ce += delivered;
            }
        }
    }

    /// More duplicate ACKs than packets that can have left: the network reorders (`tcp_check_reno_reordering`).
    fn limit_duplicates(&mut self, acked: u32) {
        let most = self.flow.packets_out - self.flow.lost_out.max(1).min(self.flow.packets_out);
        if self.flow.sacked_out > most {
            self.flow.sacked_out = most;
            self.reordering = (self.flow.packets_out + acked).min(MAX_REORDERING);
            self.reord_seen += 1;
        }
    }

    /// A cumulative ACK covers a hole, and what duplicates had stood for (`tcp_remove_reno_sacks`). Gives what is new.
    pub(super) fn duplicates_acked(&mut self, acked: u32) -> u32 {
        if acked == 0 {
            return 0;
        }
        let new = acked.saturating_sub(self.flow.sacked_out).max(1);
        self.flow.sacked_out = self.flow.sacked_out.saturating_sub(acked - 1);
        self.limit_duplicates(acked);
        new
    }

    /// What counts as lost after an ACK (`tcp_identify_packet_loss`): by RACK or, without SACK, by NewReno (RFC 6582).
    fn identify_loss(&mut self, now: Time, flag: &mut u32) {
        if self.sack {
            self.rack_mark_lost(now, flag);
            return;
        }
        let duplicates = self.flow.state < State::Recovery && self.flow.sacked_out >= self.reordering;
        let partial = self.flow.state == State::Recovery && *flag & flags::UNA_ADVANCED != 0;
        if (duplicates || partial) && self.board.first().is_some_and(|p| !p.has(mark::LOST)) {
            self.mark_lost(self.board.ids().start);
        }
    }

    /// An ACK that is not plain: SACK, ECE, or any while not in Open.
    pub(super) fn fastretrans_alert(&mut self, now: Time, prior_una: u64, flag: &mut u32) {
        let ece = *flag & flags::ECE != 0;
        if ece {
            self.flow.prior_ssthresh = 0;
        }
        if self.flow.state == State::Open {
            self.retrans_stamp = None;
        } else if self.flow.snd_una >= self.flow.high_seq {
            match self.flow.state {
                State::Cwr if self.flow.snd_una != self.flow.high_seq => {
                    self.end_cwnd_reduction(now);
                    self.set_state(State::Open, now);
                }
                State::Recovery => {
                    if !self.sack {
                        self.flow.sacked_out = 0;
                    }
                    if self.try_undo_recovery_at_end(now) {
                        return;
                    }
                }
                _ => {}
            }
        }
        match self.flow.state {
            State::Recovery => {
                if *flag & flags::UNA_ADVANCED == 0 {
                    self.add_duplicate(*flag);
                } else if self.try_undo_partial(prior_una, now) {
                    return;
                }
                if self.try_undo_dsack(now) {
                    self.try_to_open(*flag, now);
                }
                self.identify_loss(now, flag);
                if self.flow.state != State::Recovery {
                    if self.flow.lost_out == 0 {
                        return;
                    }
                    self.enter_recovery(now, ece);
                }
            }
            State::Loss => {
                if self.process_loss(now, *flag) {
                    return;
                }
                self.identify_loss(now, flag);
                if self.flow.state == State::Open || *flag & flags::LOST_RETRANS != 0 {
                    self.open_or_recover(now, flag);
                }
                return;
            }
            _ => {
                self.open_or_recover(now, flag);
                return;
            }
        }
        self.retransmit = true;
    }

    fn open_or_recover(&mut self, now: Time, flag: &mut u32) {
        if !self.sack && *flag & flags::UNA_ADVANCED != 0 {
            self.flow.sacked_out = 0;
        }
        self.add_duplicate(*flag);
        if self.flow.state <= State::Disorder {
            self.try_undo_dsack(now);
        }
        self.identify_loss(now, flag);
        if self.flow.lost_out == 0 {
            self.try_to_open(*flag, now);
            return;
        }
        self.enter_recovery(now, *flag & flags::ECE != 0);
        self.retransmit = true;
    }

    /// True: recovery goes on until more is acknowledged.
    fn try_undo_recovery_at_end(&mut self, now: Time) -> bool {
        debug_assert_eq!(self.flow.state, State::Recovery);
        let undone = self.may_undo();
        if !undone && !self.would_reopen() {
            self.end_cwnd_reduction(now);
        }
        let goes_on = self.try_undo_recovery(now);
        self.rack_recovery_done();
        goes_on
    }

    /// In Loss (`tcp_process_loss`); true: new data is to be tried before retransmissions.
    fn process_loss(&mut self, now: Time, flag: u32) -> bool {
        let recovered = self.flow.snd_una >= self.flow.high_seq;
        if flag & flags::UNA_ADVANCED != 0 && self.try_undo_loss(false, now) {
            return false;
        }
        if self.frto {
            // Data sent before the timeout arrives: the timeout was spurious (RFC 5682 section 3.1, step 3 b).
            if flag & flags::ORIG_SACK_ACKED != 0 && self.try_undo_loss(true, now) {
                return false;
            }
            if self.flow.snd_nxt > self.flow.high_seq {
                if flag & flags::DATA_SACKED != 0 || flag & (flags::UNA_ADVANCED | flags::DATA) == 0 {
                    self.frto = false;
                }
            } else if flag & flags::UNA_ADVANCED != 0 && !recovered {
                self.flow.high_seq = self.flow.snd_nxt;
                if self.can_send_new() {
                    self.retransmit = false;
                    return true;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(now);
            return false;
        }
        if !self.sack {
            if self.flow.snd_nxt > self.flow.high_seq && flag & flags::DUPLICATE != 0 {
                self.add_duplicate(flag);
            } else if flag & flags::UNA_ADVANCED != 0 {
                self.flow.sacked_out = 0;
            }
        }
        self.retransmit = true;
        false
    }
}
