//! RACK-TLP (RFC 8985) as in Linux: a packet is lost if one sent sufficiently later was delivered.

use units::Time;

use super::ack_flag;
use super::scoreboard::{Sent, mark};
use super::sender::{Rack, Sender, Timer};
use crate::cc::State;

/// Shortest timer (`TCP_TIMEOUT_MIN`).
pub(super) const TIMEOUT_MIN: Time = Time::from_ms(2);
/// Recoveries for which a window that was widened after D-SACK stays so.
const REO_WND_PERSIST: u32 = 16;

impl Rack {
    /// A packet was delivered (RFC 8985 section 6.2, step 2).
    #[inline]
    pub(super) fn advance(&mut self, now: Time, packet: &Sent, min_rtt: Time) {
        let rtt = now - packet.sent;
        // A copy sent again cannot be answered faster than the path is long: its original was delivered.
        if rtt < min_rtt && packet.has(mark::EVER_RETRANS) {
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        if packet.order() > (self.sent, self.end) {
            (self.sent, self.end) = packet.order();
        }
    }
}

impl Sender {
    /// Step 4: how much reordering is tolerated.
    fn reo_wnd(&self) -> Time {
        if self.reord_seen == 0
            && (self.flow.state >= State::Recovery || self.flow.sacked_out >= self.reordering)
        {
            return Time::ZERO;
        }
        let steps = u64::from(self.rack.reo_wnd_steps.max(1));
        (self.rtt.min() / 4 * steps).min(self.rtt.srtt())
    }

    pub(super) fn rack_update_reo_wnd(&mut self, prior_delivered: u64) {
        if self.rack.reo_wnd_steps == 0 {
            self.rack.reo_wnd_steps = 1;
        }
        // Once per round trip.
        if self.rack.dsack_seen && prior_delivered < self.rack.last_delivered {
            self.rack.dsack_seen = false;
        }
        if self.rack.dsack_seen {
            self.rack.reo_wnd_steps = (self.rack.reo_wnd_steps + 1).min(255);
            self.rack.dsack_seen = false;
            self.rack.last_delivered = self.flow.delivered;
            self.rack.reo_wnd_persist = REO_WND_PERSIST;
        } else if self.rack.reo_wnd_persist == 0 {
            self.rack.reo_wnd_steps = 1;
        }
    }

    pub(super) fn rack_recovery_done(&mut self) {
        self.rack.reo_wnd_persist = self.rack.reo_wnd_persist.saturating_sub(1);
    }

    pub(super) fn rack_keep_reo_wnd(&mut self) {
        self.rack.reo_wnd_persist = (self.rack.reo_wnd_persist + 1).min(REO_WND_PERSIST);
    }

    fn sent_before_delivered(&self, p: &Sent) -> bool {
        p.order() < (self.rack.sent, self.rack.end)
    }

    /// How long until the packet counts as lost; zero: it does.
    pub(super) fn rack_remaining(&self, now: Time, p: &Sent, reo_wnd: Time) -> Time {
        (p.sent + self.rack.rtt + reo_wnd).saturating_sub(now)
    }

    /// Step 5: marks what is lost; gives the time after which to look again.
    fn rack_detect(&mut self, now: Time) -> Option<Time> {
        let reo_wnd = self.reo_wnd();
        let mut wait = None;
        let mut lost = std::mem::take(&mut self.lost_now);
        let mut from = None;
        let ids = self.board.ids();
        for id in self.board.rack_from.max(ids.start)..ids.end {
            let Some(p) = self.board.get(id) else { break };
            if p.has(mark::SACKED | mark::LOST | mark::RETRANS) {
                continue;
            }
            if !self.sent_before_delivered(p) {
                from.get_or_insert(id);
                break;
            }
            let remaining = self.rack_remaining(now, p, reo_wnd);
            if remaining.is_zero() {
                lost.push(id);
            } else {
                from.get_or_insert(id);
                wait = wait.max(Some(remaining));
            }
        }
        self.board.rack_from = from.unwrap_or(ids.end);
        let mut again = std::mem::take(&mut self.lost_again);
        again.extend(self.board.resent());
        for id in again.drain(..) {
            let Some(p) = self.board.get(id) else { continue };
            if !self.sent_before_delivered(p) {
                break;
            }
            let remaining = self.rack_remaining(now, p, reo_wnd);
            if remaining.is_zero() {
                lost.push(id);
            } else {
                wait = wait.max(Some(remaining));
            }
        }
        self.lost_again = again;
        for id in lost.drain(..) {
            self.mark_lost(id);
        }
        self.lost_now = lost;
        wait
    }

    /// After an ACK.
    pub(super) fn rack_mark_lost(&mut self, now: Time, flag: &mut u32) {
        let before = self.flow.lost;
        let retrans = self.flow.retrans_out;
        if self.rack.advanced {
            self.rack.advanced = false;
            if let Some(wait) = self.rack_detect(now) {
                self.set_timer(Timer::Reorder, now + wait + TIMEOUT_MIN);
            }
        }
        if self.flow.lost > before && self.flow.retrans_out < retrans {
            *flag |= ack_flag::LOST_RETRANS;
        }
    }

    /// The reordering timer (`tcp_rack_reo_timeout`).
    pub(super) fn reorder_timeout(&mut self, now: Time) {
        let in_flight = self.flow.in_flight();
        let wait = self.rack_detect(now);
        if self.flow.in_flight() != in_flight {
            if self.flow.state != State::Recovery {
                self.enter_recovery(now, false);
                if !self.cc.takes_over() {
                    self.cwnd_reduction(1, 0, 0);
                }
            }
            self.retransmit = true;
        }
        match wait {
            Some(wait) => self.set_timer(Timer::Reorder, now + wait + TIMEOUT_MIN),
            None => self.rest_of_rto(now),
        }
    }

    /// Schedules a tail loss probe instead of the retransmission timeout (RFC 8985 section 7.2); false: not now.
    pub(super) fn schedule_probe(&mut self, now: Time, advancing_rto: bool) -> bool {
        if self.flow.packets_out == 0
            || !self.sack
            || !matches!(self.flow.state, State::Open | State::Cwr)
            || self.rtt.srtt().is_zero() && self.flow.snd_una == 0
        {
            return false;
        }
        let mut timeout = if self.rtt.srtt().is_zero() {
            super::config::RTO_INIT
        } else {
            let slack = if self.flow.packets_out == 1 { self.rto_min } else { TIMEOUT_MIN };
            self.rtt.srtt() * 2 + slack
        };
        let rto = if advancing_rto { self.rtt.rto() } else { self.rto_left(now) };
        if !rto.is_zero() {
            timeout = timeout.min(rto);
        }
        self.set_timer(Timer::Probe, now + timeout);
        true
    }

    /// The probe timer: one new packet, or the last one again (RFC 8985 section 7.3).
    pub(super) fn send_probe(&mut self, now: Time) {
        if self.tlp_high_seq.is_some() {
            self.rest_of_rto(now);
            return;
        }
        self.tlp_retrans = false;
        self.probing = true;
    }

    /// An ACK after a probe (`tcp_process_tlp_ack`).
    pub(super) fn process_probe_ack(&mut self, now: Time, ack: u64, flag: u32) {
        let Some(high) = self.tlp_high_seq else { return };
        if ack < high {
            return;
        }
        if !self.tlp_retrans || flag & ack_flag::DSACK_TLP != 0 {
            // New data, or both copies arrived: nothing was lost.
            self.tlp_high_seq = None;
        } else if ack > high {
            // The probe repaired a loss: respond to it once.
            self.init_cwnd_reduction(now);
            self.set_state(State::Cwr, now);
            self.end_cwnd_reduction(now);
            self.try_keep_open(now);
        } else if flag & (ack_flag::DATA_SACKED | ack_flag::NO_DUPLICATE) == 0 {
            self.tlp_high_seq = None;
        }
    }
}
