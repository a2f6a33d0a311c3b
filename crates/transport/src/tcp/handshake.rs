//! How a connection opens: SYN, SYN-ACK (RFC 9293 section 3.5), what their options agree on, and ECN's negotiation (RFC 3168
//! section 6.1.1; accurate ECN).

use units::Time;

use super::config::{EcnMode, RTO_INIT, RTO_MAX};
use super::connection::{Connection, EcnState, Phase};
use super::rtt::clock;
use crate::cc::EcnUse;
use crate::segment::{Ecn, Flags, Segment, SynOptions};

/// Timeouts of a SYN that do not double, nor count as retries (`net.ipv4.tcp_syn_linear_timeouts`).
pub(super) const SYN_LINEAR_TIMEOUTS: u32 = 4;
/// `TCP_MIN_MSS`.
const LEAST_MSS: u32 = 88;

impl Connection {
    pub(super) fn transmit_syn(&mut self, now: Time) -> Option<Segment> {
        if !self.syn_due {
            return None;
        }
        self.syn_due = false;
        self.syn_sent = now;
        let answer = self.phase == Phase::SynReceived;
        let linear = if answer { 0 } else { SYN_LINEAR_TIMEOUTS };
        let shift = self.syn_retries.saturating_sub(linear).min(16);
        self.syn_timer = Some(now + Time::from_ps(RTO_INIT.as_ps() << shift).min(RTO_MAX));
        let flow = &mut self.sender.flow;
        flow.snd_nxt = 1;
        flow.high_seq = 1;
        let wants = match (self.config.ecn, self.sender.cc.ecn()) {
            // Something may drop SYNs that ask for ECN: a copy does not ask (RFC 3168 section 6.1.1.1; RFC 9768 section 3.1.4.1).
            (_, EcnUse::L4s) | (EcnMode::Accurate, _) if self.syn_retries <= 1 => EcnState::Accurate,
            (EcnMode::On, _) | (_, EcnUse::Own) if self.syn_retries == 0 => EcnState::Classic,
            _ => EcnState::Off,
        };
        let mut flags = Flags::SYN;
        if answer {
            flags |= Flags::ACK;
            flags |= match self.ecn {
                EcnState::Off => Flags::default(),
                EcnState::Classic => Flags::ECE,
                // Says which ECN field the SYN came with.
                EcnState::Accurate => match self.syn_ecn {
                    Ecn::NotEct => Flags::CWR,
                    Ecn::Ect1 => Flags::CWR | Flags::ECE,
                    Ecn::Ect0 => Flags::AE,
                    Ecn::Ce => Flags::AE | Flags::CWR,
                },
            };
        } else {
            flags |= match wants {
                EcnState::Off => Flags::default(),
                EcnState::Classic => Flags::ECE | Flags::CWR,
                EcnState::Accurate => Flags::AE | Flags::ECE | Flags::CWR,
            };
        }
        self.sender.statistics.segments_sent += 1;
        Some(Segment {
            seq: self.isn,
            ack: if answer { self.irs.wrapping_add(1) } else { 0 },
            flags,
            window: self.receiver.window.on_syn(),
            syn: Some(SynOptions {
                mss: self.config.mss as u16,
                window_scale: self.config.window_scaling.then_some(self.receiver.window.shift),
                sack_permitted: self.sack,
            }),
            timestamps: self.timestamps.then(|| (clock(now), self.receiver.ts_recent.unwrap_or(0))),
            ..Segment::default()
        })
    }

    pub(super) fn on_first_syn(&mut self, now: Time, segment: &Segment) {
        if !segment.flags.has(Flags::SYN) || segment.flags.has(Flags::ACK) {
            return;
        }
        self.irs = segment.seq;
        self.take_options(segment);
        let asked = segment.flags.0 & (Flags::AE | Flags::ECE | Flags::CWR).0;
        self.ecn = if self.config.ecn == EcnMode::Off {
            EcnState::Off
        } else if asked == (Flags::AE | Flags::ECE | Flags::CWR).0
            && (self.config.ecn == EcnMode::Accurate || self.sender.cc.ecn() == EcnUse::L4s)
        {
            EcnState::Accurate
        } else if asked & (Flags::ECE | Flags::CWR).0 == (Flags::ECE | Flags::CWR).0 {
            EcnState::Classic
        } else {
            EcnState::Off
        };
        self.syn_ecn = segment.ecn;
        self.receiver.start(now, self.options(), true);
        self.phase = Phase::SynReceived;
        self.syn_due = true;
    }

    pub(super) fn on_syn_ack(&mut self, now: Time, segment: &Segment) {
        let expected = Flags::SYN | Flags::ACK;
        if !segment.flags.has(expected) || segment.ack != self.isn.wrapping_add(1) {
            return;
        }
        self.irs = segment.seq;
        self.take_options(segment);
        let asked_accurate = self.config.ecn == EcnMode::Accurate || self.sender.cc.ecn() == EcnUse::L4s;
        let asked = asked_accurate || self.config.ecn == EcnMode::On || self.sender.cc.ecn() == EcnUse::Own;
        let bits = segment.flags.0 & (Flags::AE | Flags::ECE | Flags::CWR).0;
        self.ecn = if asked && bits == Flags::ECE.0 {
            EcnState::Classic
        } else if asked_accurate && bits != 0 {
            EcnState::Accurate
        } else {
            EcnState::Off
        };
        self.receiver.start(now, self.options(), false);
        self.established(now, segment);
        self.receiver.due = true;
    }

    pub(super) fn take_options(&mut self, segment: &Segment) {
        let Some(syn) = segment.syn else { return };
        self.sack &= syn.sack_permitted;
        self.sender.sack = self.sack;
        self.receiver.sack = self.sack;
        self.timestamps &= segment.timestamps.is_some();
        self.receiver.ts_recent = segment.timestamps.map(|(val, _)| val);
        match syn.window_scale {
            Some(shift) if self.config.window_scaling => self.snd_shift = shift.min(14),
            _ => {
                self.snd_shift = 0;
                self.receiver.window.shift = 0;
            }
        }
        self.peer_mss = syn.mss;
        self.sender.flow.mss = self.mss();
        self.sender.wnd_end = 1 + u64::from(segment.window);
        self.sender.snd_wnd = u64::from(segment.window);
    }

    /// By that segment of the peer's.
    pub(super) fn established(&mut self, now: Time, segment: &Segment) {
        self.sender.echoed = segment.timestamps.filter(|_| self.timestamps).map(|(_, echoed)| echoed);
        self.phase = Phase::Established;
        self.syn_timer = None;
        self.syn_due = false;
        let flow = &mut self.sender.flow;
        flow.snd_una = 1;
        flow.snd_nxt = 1;
        flow.high_seq = 1;
        flow.ecn = self.ecn != EcnState::Off;
        flow.accurate_ecn = self.ecn == EcnState::Accurate;
        flow.delivered_at = now;
        self.receiver.exact_ce =
            self.ecn == EcnState::Classic && matches!(self.sender.cc.ecn(), EcnUse::Own | EcnUse::Exact);
        self.receiver.accurate_ecn = self.ecn == EcnState::Accurate;
        if self.syn_retries > 1 {
            // A careful start; one that is lost is none, as the first timeout is short (`tcp_init_transfer`).
            flow.cwnd = 1;
        }
        // Which copy was answered only a timestamp tells (RFC 6298 section 3).
        let rtt = if self.syn_retries == 0 { Some(now - self.syn_sent) } else { self.sender.echoed_rtt(now) };
        let (flow, estimate) = (&mut self.sender.flow, &mut self.sender.rtt);
        if let Some(rtt) = rtt {
            estimate.sample(now, rtt, rtt, 1, 1);
            flow.srtt = estimate.srtt();
            flow.min_rtt = estimate.min();
        } else {
            estimate.fall_back();
        }
        self.sender.cwnd_stamp = now;
        self.sender.cc.init(&mut self.sender.flow, now);
        self.sender.update_pacing_rate();
        self.sender.keep_limits();
    }

    /// Bytes of payload of a full segment, by what both sides have said.
    pub(super) fn mss(&self) -> u32 {
        self.config.mss.min(u32::from(self.peer_mss)).saturating_sub(self.options()).max(LEAST_MSS)
    }

    /// Bytes that options take of each segment.
    pub(super) fn options(&self) -> u32 {
        u32::from(self.reserved) + if self.timestamps { 12 } else { 0 }
    }
}
