//! What may be sent now: windows, segmentation-offload bursts, pacing, timers; as `tcp_write_xmit`.

use units::{Bytes, Rate, Time};

use super::connection::Rest;
use super::scoreboard::{Sent, mark};
use super::sender::{Piece, Sender, Timer};
use crate::cc::{EcnUse, Event, State};

impl Sender {
    /// Offset behind the last to be sent, a FIN counted.
    pub fn end(&self) -> u64 {
        self.write_end.saturating_add(u64::from(self.closing))
    }

    pub fn can_send_new(&self) -> bool {
        self.flow.snd_nxt < self.end() && self.wnd_end > self.flow.snd_nxt
    }

    pub fn set_timer(&mut self, timer: Timer, at: Time) {
        self.timer = Some((timer, at));
    }

    /// Time until the first packet has been out for a whole timeout (`tcp_rto_delta_us`).
    pub fn rto_left(&self, now: Time) -> Time {
        let Some(first) = self.board.first() else { return Time::ZERO };
        (first.sent + self.rtt.rto()).saturating_sub(now)
    }

    pub fn rearm_rto(&mut self, now: Time) {
        if self.flow.packets_out == 0 {
            self.timer = None;
            return;
        }
        if matches!(self.timer, Some((Timer::Reorder | Timer::Probe, _))) {
            self.rest_of_rto(now);
        } else {
            self.set_timer(Timer::Retransmit, now + self.rtt.rto());
        }
    }

    /// As a timer before the timeout has come, and nothing has been sent.
    pub fn rest_of_rto(&mut self, now: Time) {
        if self.flow.packets_out > 0 {
            self.set_timer(Timer::Retransmit, now + self.rto_left(now).max(Time::from_us(1)));
        }
    }

    /// When sending goes on without an ACK, if only pacing or the host's own queue holds it.
    pub fn send_wakeup(&self, now: Time) -> Option<Time> {
        let paced = self.flow.pacing_until > now && self.has_work();
        if paced { Some(self.flow.pacing_until) } else { self.device.waits_until }
    }

    fn has_work(&self) -> bool {
        let room = self.flow.in_flight() < self.flow.cwnd;
        room && (self.can_send_new() || (self.retransmit && self.flow.lost_out > 0))
    }

    /// What comes of asking for more to send, after [`Sender::next`] has had nothing, before anything changes or it wakes up.
    #[inline]
    pub fn rest(&self) -> Rest {
        let (flow, held) = (&self.flow, self.flow.in_flight() >= self.flow.cwnd);
        if self.device.waits_until.is_some() || (self.retransmit && flow.lost_out > 0 && !held) {
            Rest::Busy
        } else if flow.snd_nxt >= self.end() {
            Rest::Idle
        } else if held && flow.packets_out > 0 && !flow.paced {
            Rest::Limited
        } else {
            Rest::Busy
        }
    }

    /// Whether all is sent and [`Sender::next`] has nothing and changes nothing: so it is of the side that data comes to.
    #[inline]
    pub fn is_still(&self) -> bool {
        let flow = &self.flow;
        flow.snd_nxt >= self.end()
            && flow.app_limited == (flow.delivered + u64::from(flow.in_flight())).max(1)
            && flow.lost_out == 0
            && !(self.probing || self.limited_now)
            && self.burst == 0
            && self.sent_now == 0
            && self.device.is_still()
    }

    /// The next piece to send, or `None` if nothing may be sent now.
    pub fn next(&mut self, now: Time) -> Option<Piece> {
        if self.probing {
            self.probing = false;
            return self.probe(now);
        }
        if self.burst > 0 {
            return Some(self.send_new(now));
        }
        self.device.waits_until = None;
        self.device.begin_burst();
        if self.flow.packets_out == 0 && self.flow.snd_nxt < self.end() {
            self.restart(now);
        }
        let held = self.flow.paced && self.flow.pacing_until > now;
        if !held {
            if self.retransmit
                && let Some(piece) = self.retransmission(now)
            {
                return Some(piece);
            }
            let segments = self.new_burst(now);
            if segments > 0 && !self.device_full(now, 0) {
                self.burst = segments;
                self.burst_of_many = segments > 1;
                self.pace(now, segments);
                return Some(self.send_new(now));
            }
        }
        if self.frto_sends_nothing() {
            return self.next(now);
        }
        self.settle(now);
        None
    }

    /// Whether the host's own queue has enough of this connection: what its rate sends in a millisecond, or two bursts
    /// (`tcp_small_queue_check`).
    fn device_full(&mut self, now: Time, shift: u32) -> bool {
        let Some(most) = self.limit_output else { return false };
        let (waiting, rate) = (self.device.waiting(now), self.flow.pacing_rate);
        let by_rate = rate.as_bps() / 8 / 1024;
        if rate.is_zero() || waiting <= by_rate.min(most.get()) << shift {
            return false;
        }
        let burst = self.tso_segments();
        let limit = by_rate.max(2 * u64::from(burst) * u64::from(self.flow.mss)).min(most.get()) << shift;
        // One burst may always be on its way.
        if waiting <= limit || self.flow.packets_out <= burst {
            return false;
        }
        self.device.waits_until = Some(self.device.first_leaves());
        true
    }

    /// How many segments the next burst has.
    fn new_burst(&mut self, now: Time) -> u32 {
        let (nxt, end) = (self.flow.snd_nxt, self.end());
        if nxt >= end {
            return 0;
        }
        let in_flight = self.flow.in_flight();
        if in_flight >= self.flow.cwnd {
            self.limited_now = true;
            return 0;
        }
        let mss = u64::from(self.flow.mss);
        let quota = (self.flow.cwnd - in_flight).min((self.flow.cwnd / 2).max(1));
        let data = end - nxt;
        let window = self.wnd_end.saturating_sub(nxt);
        if window < data.min(mss) {
            // A window that is closed is probed, so that its opening cannot be missed.
            if self.flow.packets_out == 0 && self.timer.is_none() {
                self.set_timer(Timer::Persist, now + self.rtt.rto());
            }
            return 0;
        }
        if data <= mss {
            return 1;
        }
        let most = self.tso_segments();
        if self.should_defer(now, window, in_flight, most) {
            // If it is the receiver's window that is too small, the sender's own need not grow.
            self.limited_now = u64::from(self.flow.cwnd - in_flight) * mss < window;
            return 0;
        }
        let by_data = data.div_ceil(mss);
        let by_window = if window >= data { by_data } else { window / mss };
        quota.min(most).min(by_data.min(by_window).min(u64::from(u32::MAX)) as u32).max(1)
    }

    /// Segments of a burst (`tcp_tso_autosize`): what the rate sends in a millisecond, more on short paths.
    fn tso_segments(&self) -> u32 {
        let Some(max) = self.tso_max else { return 1 };
        if let Some(packets) = self.cc.burst(&self.flow) {
            return packets;
        }
        let mut bytes = self.flow.pacing_rate.as_bps() / 8 / 1024;
        let shift = self.rtt.min().as_us() >> 9;
        if shift < 32 {
            bytes += max.get() >> shift;
        }
        let bytes = bytes.min(max.get().saturating_sub(320));
        ((bytes / u64::from(self.flow.mss)) as u32).max(self.cc.min_tso_segs(&self.flow))
    }

    /// Whether to wait for a larger burst (`tcp_tso_should_defer`).
    fn should_defer(&self, now: Time, window: u64, in_flight: u32, most: u32) -> bool {
        const MS: Time = Time::from_ms(1);
        if most <= 1 || self.flow.state >= State::Recovery || now.saturating_sub(self.flow.last_sent) > MS {
            return false;
        }
        let mss = u64::from(self.flow.mss);
        let cwnd = u64::from(self.flow.cwnd);
        let limit = window.min((cwnd - u64::from(in_flight)) * mss);
        let unsent = self.end() - self.flow.snd_nxt;
        if limit >= u64::from(most) * mss || limit >= unsent || limit >= self.snd_wnd.min(cwnd * mss) / 3 {
            return false;
        }
        let Some(first) = self.board.first() else { return false };
        let srtt = self.rtt.srtt();
        (first.sent + srtt).saturating_sub(now) <= (srtt / 2).min(MS)
    }

    /// Spaces bursts by the pacing rate.
    fn pace(&mut self, now: Time, segments: u32) {
        let rate = self.flow.pacing_rate;
        if !self.flow.paced || rate.is_zero() || self.data_segments < 10 {
            return;
        }
        let bytes = Bytes::new(u64::from(segments) * u64::from(self.flow.mss));
        let mut length = rate.time_for(bytes);
        // What timers were late is given back, at most half.
        let credit = now.saturating_sub(self.flow.pacing_until);
        length -= credit.min(length / 2);
        self.flow.pacing_until = self.flow.pacing_until.max(now) + length;
    }

    fn send_new(&mut self, now: Time) -> Piece {
        let seq = self.flow.snd_nxt;
        let data = self.write_end - seq.min(self.write_end);
        let mut len = data.min(u64::from(self.flow.mss)) as u32;
        let mut marks = 0;
        self.burst = self.burst.saturating_sub(1);
        if self.closing && seq + u64::from(len) == self.write_end {
            len += 1;
            marks = mark::FIN;
            self.burst = 0;
        }
        // Bursts are pushed, single segments are not: their ACKs may wait.
        if (self.burst == 0 && self.burst_of_many) || seq + u64::from(len) == self.end() {
            marks |= mark::PUSH;
        }
        self.sent_new(now, seq, len, marks);
        self.sent_now += 1;
        if matches!(self.flow.state, State::Cwr | State::Recovery) {
            self.prr_out += 1;
        }
        Piece { seq, len, marks, again: false }
    }

    /// Accounts for a packet that is sent for the first time; the SYN too.
    pub fn sent_new(&mut self, now: Time, seq: u64, len: u32, mut marks: u8) {
        let flow = &mut self.flow;
        if flow.packets_out == 0 {
            flow.first_sent = now;
            flow.delivered_at = now;
            self.cc.cwnd_event(flow, Event::TxStart, now);
        }
        if flow.app_limited > 0 {
            marks |= mark::APP_LIMITED;
        }
        self.board.push(Sent {
            seq,
            len,
            marks,
            tx_in_flight: flow.in_flight() + 1,
            sent: now,
            delivered: flow.delivered,
            delivered_ce: flow.delivered_ce as u32,
            lost: flow.lost as u32,
            delivered_at: flow.delivered_at,
            first_sent: flow.first_sent,
        });
        flow.snd_nxt = seq + u64::from(len);
        flow.packets_out += 1;
        flow.last_sent = now;
        self.data_segments += 1;
        if flow.packets_out == 1 || matches!(self.timer, Some((Timer::Probe | Timer::Persist, _))) {
            self.rearm_rto(now);
        }
    }

    /// The next lost packet (`tcp_xmit_retransmit_queue`).
    fn retransmission(&mut self, now: Time) -> Option<Piece> {
        if self.flow.lost_out == 0 || self.flow.in_flight() >= self.flow.cwnd {
            return None;
        }
        if self.flow.lost_out > self.flow.retrans_out && self.device_full(now, 1) {
            return None;
        }
        let ids = self.board.ids();
        let from = self.board.retransmit_from.max(ids.start);
        let waits = |p: &Sent| p.has(mark::LOST) && !p.has(mark::SACKED | mark::RETRANS);
        let found = (from..ids.end).find(|id| self.board.get(*id).is_some_and(waits));
        self.board.retransmit_from = found.unwrap_or(ids.end);
        let id = found?;
        if self.flow.paced {
            self.pace(now, 1);
        }
        let in_reduction = matches!(self.flow.state, State::Cwr | State::Recovery);
        self.prr_out += u32::from(in_reduction);
        let piece = self.resend(now, id);
        if id == ids.start && !matches!(self.timer, Some((Timer::Reorder, _))) {
            self.rearm_rto(now);
        }
        piece
    }

    /// Sends a packet again that is lost.
    fn resend(&mut self, now: Time, id: u64) -> Option<Piece> {
        let piece = self.copy(now, id)?;
        if let Some(p) = self.board.get_mut(id)
            && !p.has(mark::RETRANS)
        {
            p.marks |= mark::RETRANS;
            self.flow.retrans_out += 1;
        }
        self.board.note_resent(id, now);
        self.retrans_stamp.get_or_insert(now);
        if self.undo_retrans < 0 {
            self.undo_retrans = 0;
        }
        self.undo_retrans += 1;
        Some(piece)
    }

    /// A copy of a packet: that of a probe is not counted as in flight, where its original is.
    fn copy(&mut self, now: Time, id: u64) -> Option<Piece> {
        let flow = &mut self.flow;
        let in_flight = flow.in_flight();
        let p = self.board.get_mut(id)?;
        p.marks = (p.marks | mark::EVER_RETRANS) & !mark::APP_LIMITED;
        if flow.app_limited > 0 {
            p.marks |= mark::APP_LIMITED;
        }
        p.sent = now;
        p.delivered = flow.delivered;
        p.delivered_ce = flow.delivered_ce as u32;
        p.lost = flow.lost as u32;
        p.delivered_at = flow.delivered_at;
        p.first_sent = flow.first_sent;
        p.tx_in_flight = in_flight + 1;
        let piece = Piece {
            seq: p.seq,
            len: p.len,
            marks: p.marks & (mark::SYN | mark::FIN | mark::PUSH),
            again: true,
        };
        let copy_under_way = p.has(mark::RETRANS);
        flow.last_sent = now;
        self.statistics.retransmits += 1;
        if copy_under_way {
            self.board.note_resent(id, now);
        }
        Some(piece)
    }

    /// A tail loss probe: new data if there is some, else the last packet again.
    fn probe(&mut self, now: Time) -> Option<Piece> {
        if self.flow.packets_out == 0 {
            return None;
        }
        self.statistics.probes += 1;
        let mss = u64::from(self.flow.mss);
        let new = self.flow.snd_nxt < self.end()
            && self.wnd_end.saturating_sub(self.flow.snd_nxt) >= mss.min(self.end() - self.flow.snd_nxt);
        let piece = if new {
            self.burst = 1;
            self.burst_of_many = false;
            Some(self.send_new(now))
        } else {
            self.tlp_retrans = true;
            let id = self.board.last_id()?;
            self.copy(now, id)
        };
        self.sent_now = 0;
        self.tlp_high_seq = Some(self.flow.snd_nxt);
        // The timeout begins anew with the probe, not with the first packet.
        self.timer = None;
        self.rearm_rto(now);
        piece
    }

    /// Nothing more can be sent now: how well was the window used (`tcp_cwnd_validate`)?
    fn settle(&mut self, now: Time) {
        let flow = &mut self.flow;
        if self.sent_now > 0 || self.limited_now {
            let limited = self.limited_now || flow.in_flight() >= flow.cwnd;
            if flow.snd_una >= self.cwnd_usage_seq
                || limited
                || (!flow.is_cwnd_limited && flow.packets_out > flow.max_packets_out)
            {
                flow.is_cwnd_limited = limited;
                flow.max_packets_out = flow.packets_out;
                self.cwnd_usage_seq = flow.snd_nxt;
            }
            if flow.cwnd_limited() {
                self.cwnd_used = 0;
                self.cwnd_stamp = now;
            } else {
                self.cwnd_used = self.cwnd_used.max(flow.packets_out);
                let idle = now.saturating_sub(self.cwnd_stamp) >= self.rtt.rto();
                if self.slow_start_after_idle && idle && !self.cc.takes_over() {
                    self.application_limited(now);
                }
            }
        }
        if self.sent_now > 0 {
            self.sent_now = 0;
            self.schedule_probe(now, false);
        }
        self.limited_now = false;
        self.check_app_limited();
    }

    /// Nothing left to send, and the window not full: the next samples of the rate say little (`tcp_rate_check_app_limited`).
    pub fn check_app_limited(&mut self) {
        let flow = &mut self.flow;
        if self.write_end.saturating_sub(flow.snd_nxt) < u64::from(flow.mss)
            && flow.in_flight() < flow.cwnd
            && flow.lost_out <= flow.retrans_out
        {
            flow.app_limited = (flow.delivered + u64::from(flow.in_flight())).max(1);
        }
    }

    /// The window shrinks towards what was used (RFC 7661's idea, as `tcp_cwnd_application_limited`).
    fn application_limited(&mut self, now: Time) {
        if self.flow.state == State::Open {
            let used = self.cwnd_used.max(self.initial_cwnd);
            if used < self.flow.cwnd {
                self.flow.ssthresh = self.current_ssthresh();
                self.flow.cwnd = (self.flow.cwnd + used) / 2;
            }
            self.cwnd_used = 0;
        }
        self.cwnd_stamp = now;
    }

    /// After an idle time the window is halved for each timeout that has passed (RFC 9293 section 3.8.2, `tcp_cwnd_restart`).
    fn restart(&mut self, now: Time) {
        let rto = self.rtt.rto();
        let mut idle = now.saturating_sub(self.flow.last_sent);
        if !self.slow_start_after_idle || self.cc.takes_over() || idle <= rto || self.flow.snd_nxt <= 1 {
            return;
        }
        self.cc.cwnd_event(&mut self.flow, Event::CwndRestart, now);
        self.flow.ssthresh = self.current_ssthresh();
        let least = self.initial_cwnd.min(self.flow.cwnd);
        while idle > rto && self.flow.cwnd > least {
            idle -= rto;
            self.flow.cwnd /= 2;
        }
        self.flow.cwnd = self.flow.cwnd.max(least);
        self.cwnd_stamp = now;
        self.cwnd_used = 0;
    }

    /// `tcp_update_pacing_rate`: twice the window per round trip in slow start, else 1.2 times.
    pub fn update_pacing_rate(&mut self) {
        let srtt = self.flow.srtt;
        if srtt.is_zero() || self.cc.takes_over() {
            return;
        }
        let ratio = if self.flow.cwnd < self.flow.ssthresh / 2 { 200 } else { 120 };
        let packets = u64::from(self.flow.cwnd.max(self.flow.packets_out));
        let bits = packets * u64::from(self.flow.mss) * 8 * ratio / 100;
        let bps = u128::from(bits) * 1_000_000_000_000 / u128::from(srtt.as_ps());
        self.flow.pacing_rate = Rate::from_bps(bps as u64);
    }

    /// Which code point data is sent with.
    pub fn ecn_use(&self) -> EcnUse {
        self.cc.ecn()
    }
}
