//! Congestion control: what one is, and what it sees.
//!
//! The shape is Linux's `struct tcp_congestion_ops`: a connection calls a control at fixed points of its ACK processing, and the
//! control sets the window, the threshold and the pacing rate in [`Flow`]. Windows count packets, as in Linux.

mod bbr;
mod bbr3;
mod bbr_long_term;
mod bbr_model;
mod control;
mod cubic;
mod dctcp;
mod dctcp_stamp;
mod hpcc;
mod htcp;
mod options;
mod powertcp;
mod prague;
mod reno;
mod stamp;
mod stamp_field;
mod swift;
mod telemetry;
#[cfg(test)]
mod testing;
mod timely;
mod vegas;
mod wire_window;

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use control::Control;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use dctcp_stamp::DctcpStamp;
pub use hpcc::Hpcc;
pub use htcp::Htcp;
pub use options::{Given, Options};
pub use powertcp::PowerTcp;
pub use prague::Prague;
pub use reno::Reno;
pub use stamp::Stamp;
pub use stamp_field::StampField;
pub use swift::Swift;
pub use timely::Timely;
use units::{Rate, Time};
pub use vegas::Vegas;

use crate::ticks::Ticks;

/// No threshold known yet.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// Where loss recovery is (`enum tcp_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Open,
    /// Duplicate ACKs or SACK, nothing lost yet.
    Disorder,
    /// Reducing the window for congestion that was signalled, not lost.
    Cwr,
    /// Fast retransmit.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// `enum tcp_ca_event`. What a receiver does with CE is in the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// First packet after all were acknowledged.
    TxStart,
    /// The window is restarted after an idle time.
    CwndRestart,
    /// A reduction has ended.
    CompleteCwr,
    /// Retransmission timeout.
    Loss,
}

/// What a congestion control sees of its connection, and the three things it sets.
#[derive(Debug, Clone)]
pub struct Flow {
    // Set by the control.
    /// Packets that may be in flight.
    pub cwnd: u32,
    /// Linear increase since the last whole packet.
    pub cwnd_cnt: u32,
    pub ssthresh: u32,
    /// Zero: not known yet, no limit.
    pub pacing_rate: Rate,
    /// Whether sending is spaced by the pacing rate.
    pub paced: bool,
    /// The kernel's coarse clock.
    pub ticks: Ticks,
    /// State of [`Flow::random_below`].
    pub random: u64,

    // Kept by the connection.
    pub cwnd_clamp: u32,
    /// An agent of the host limits the window or the pacing rate.
    pub limited: bool,
    /// Bytes of payload per full packet.
    pub mss: u32,
    pub state: State,
    /// Smoothed round trip; zero before the first sample.
    pub srtt: Time,
    /// Smallest round trip in the last 300 s; [`Time::MAX`] before the first sample.
    pub min_rtt: Time,
    pub last_rtt: Time,
    /// Packets sent and not yet acknowledged cumulatively; of them: selectively acknowledged, lost, sent again.
    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    /// Packets delivered, those of them that came with CE, and packets marked lost, since the start.
    pub delivered: u64,
    pub delivered_ce: u64,
    pub lost: u64,
    /// When the last one was delivered, and sending time of the one it was.
    pub delivered_at: Time,
    pub first_sent: Time,
    /// `delivered` up to which the application had nothing more to send; zero if it has.
    pub app_limited: u64,
    /// The window held sending back in the last round, and the most that was out in it.
    pub is_cwnd_limited: bool,
    pub max_packets_out: u32,
    /// At the last reduction.
    pub prior_cwnd: u32,
    pub prior_ssthresh: u32,
    /// Stream offsets: first not acknowledged, next to send.
    pub snd_una: u64,
    pub snd_nxt: u64,
    /// Highest offset sent when the current state was entered.
    pub high_seq: u64,
    /// ECN was negotiated, and accurate ECN.
    pub ecn: bool,
    pub accurate_ecn: bool,
    pub last_sent: Time,
    /// With pacing: not before this time will the next packet leave (`tcp_wstamp_ns`).
    pub pacing_until: Time,
}

/// [`Flow::cwnd_clamp`] of a connection without a limit.
pub(crate) const NO_CLAMP: u32 = u32::MAX / 4;

impl Flow {
    /// Before anything is sent, with the first window and the size of packets.
    pub fn new(cwnd: u32, mss: u32) -> Flow {
        Flow {
            cwnd,
            cwnd_cnt: 0,
            ssthresh: INFINITE_SSTHRESH,
            pacing_rate: Rate::ZERO,
            paced: false,
            ticks: Ticks::new(250, 0),
            random: 0,
            cwnd_clamp: NO_CLAMP,
            limited: false,
            mss,
            state: State::Open,
            srtt: Time::ZERO,
            min_rtt: Time::MAX,
            last_rtt: Time::ZERO,
            packets_out: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            app_limited: 0,
            is_cwnd_limited: false,
            max_packets_out: 0,
            prior_cwnd: 0,
            prior_ssthresh: 0,
            snd_una: 0,
            snd_nxt: 0,
            high_seq: 0,
            ecn: false,
            accurate_ecn: false,
            last_sent: Time::ZERO,
            pacing_until: Time::ZERO,
        }
    }

    /// A random number below `end` (SplitMix64); the sequence is the flow's own.
    pub fn random_below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(end)) >> 64) as u64
    }

    pub fn in_flight(&self) -> u32 {
        (self.packets_out + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether it is the window that holds sending back (`tcp_is_cwnd_limited`).
    pub fn cwnd_limited(&self) -> bool {
        self.is_cwnd_limited || (self.in_slow_start() && self.cwnd < 2 * self.max_packets_out)
    }

    /// Slow start (RFC 5681 section 3.1) as `tcp_slow_start`; gives what is left of `acked` above the threshold.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = (self.cwnd + acked).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd.min(self.cwnd_clamp);
        left
    }

    /// What window-based controls begin with: nothing if it is not the window that holds sending back, then slow start.
    /// Gives the packets that count for congestion avoidance, if any.
    pub fn beyond_slow_start(&mut self, acked: u32) -> Option<u32> {
        if !self.cwnd_limited() {
            return None;
        }
        let left = if self.in_slow_start() { self.slow_start(acked) } else { acked };
        (left > 0).then_some(left)
    }

    /// One packet more for each `window` acknowledged (`tcp_cong_avoid_ai`).
    pub fn additive_increase(&mut self, window: u32, acked: u32) {
        let window = window.max(1);
        if self.cwnd_cnt >= window {
            self.cwnd_cnt = 0;
            self.cwnd += 1;
        }
        self.cwnd_cnt += acked;
        if self.cwnd_cnt >= window {
            let delta = self.cwnd_cnt / window;
            self.cwnd_cnt -= delta * window;
            self.cwnd += delta;
        }
        self.cwnd = self.cwnd.min(self.cwnd_clamp);
    }
}

/// Delivery rate over the last flight (`struct rate_sample`), made for each ACK.
#[derive(Debug, Clone, Copy, Default)]
pub struct RateSample {
    /// `Flow::delivered` and its time when the packet that was acknowledged last had been sent.
    pub prior_delivered: u64,
    pub prior_delivered_ce: u64,
    pub prior_at: Option<Time>,
    /// Packets delivered over `interval`; not valid without an interval.
    pub delivered: u64,
    pub delivered_ce: u64,
    pub interval: Option<Time>,
    /// Round trip of the packet that was acknowledged last.
    pub rtt: Option<Time>,
    /// Packets newly marked lost, newly acknowledged or selectively so.
    pub losses: u32,
    pub acked_sacked: u32,
    pub prior_in_flight: u32,
    pub is_app_limited: bool,
    pub is_retrans: bool,
    pub is_ack_delayed: bool,
    /// Packets in flight when it was sent, and lost so far then (for BBRv3).
    pub tx_in_flight: u32,
    pub prior_lost: u64,
}

/// What an ACK acknowledged (`struct ack_sample` and the flags of `in_ack_event`).
#[derive(Debug, Clone, Copy, Default)]
pub struct Ack {
    pub now: Time,
    /// Cumulatively acknowledged offset.
    pub una: u64,
    /// Packets newly acknowledged or selectively acknowledged.
    pub acked: u32,
    pub rtt: Option<Time>,
    pub in_flight: u32,
    /// The ACK carried ECE (classic ECN), and packets that it reported as CE (accurate ECN).
    pub ece: bool,
    pub ce: u32,
    /// The cumulative ACK moved.
    pub advanced: bool,
}

/// A packet that was just marked lost: what was in flight and had been lost when it was sent.
#[derive(Debug, Clone, Copy)]
pub struct LostPacket {
    pub tx_in_flight: u32,
    pub prior_lost: u64,
    pub is_app_limited: bool,
}

/// Which ECN a control asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnUse {
    /// As the connection is configured.
    Classic,
    /// As the connection is configured, but marks are echoed exactly (BBR).
    Exact,
    /// Needs ECN, and its own response to marks (DCTCP).
    Own,
    /// Needs accurate ECN, and sends ECT(1) (L4S).
    L4s,
}

/// A congestion control. One instance serves one connection.
pub trait CongestionControl: Send + Sync + std::fmt::Debug {
    /// As one asks for it: `cubic`.
    fn name(&self) -> &'static str;

    /// The connection is established.
    fn init(&mut self, _flow: &mut Flow, _now: Time) {}

    /// The threshold after congestion; called once per reduction.
    fn ssthresh(&mut self, flow: &mut Flow, now: Time) -> u32;

    /// The window's growth, outside of reductions.
    fn cong_avoid(&mut self, flow: &mut Flow, ack: &Ack);

    /// Sees every ACK before the window is set.
    fn pkts_acked(&mut self, _flow: &mut Flow, _ack: &Ack) {}

    /// Sees every ACK at the beginning of its processing (`in_ack_event`).
    fn in_ack_event(&mut self, _flow: &mut Flow, _ack: &Ack) {}

    /// An agent of the host ([`crate::host`]) has read an option of a packet that TCP is about to get: its kind and data.
    fn signal(&mut self, _flow: &mut Flow, _now: Time, _kind: u16, _data: &[u8]) {}

    /// Takes over altogether: called for every ACK in place of `cong_avoid`, the reduction (PRR) and the default pacing
    /// rate. False: it does not.
    fn cong_control(&mut self, _flow: &mut Flow, _ack: &Ack, _sample: &RateSample) -> bool {
        false
    }

    /// Whether [`CongestionControl::cong_control`] takes over.
    fn takes_over(&self) -> bool {
        false
    }

    /// Sees every packet that is marked lost (`skb_marked_lost`).
    fn packet_lost(&mut self, _flow: &mut Flow, _packet: &LostPacket) {}

    fn set_state(&mut self, _flow: &mut Flow, _state: State, _now: Time) {}

    fn cwnd_event(&mut self, _flow: &mut Flow, _event: Event, _now: Time) {}

    /// The window after a reduction that turned out to be spurious.
    fn undo_cwnd(&mut self, flow: &mut Flow) -> u32 {
        flow.cwnd.max(flow.prior_cwnd)
    }

    fn ecn(&self) -> EcnUse {
        EcnUse::Classic
    }

    /// Whether it needs sending to be spaced.
    fn needs_pacing(&self) -> bool {
        false
    }

    /// Packets of a burst, if not as many as Linux's autosizing makes of the pacing rate.
    fn burst(&self, _flow: &Flow) -> Option<u32> {
        None
    }

    /// Smallest number of packets of a burst, if not the default two (`min_tso_segs`).
    fn min_tso_segs(&self, _flow: &Flow) -> u32 {
        2
    }
}

/// Names that [`new`] knows.
pub const NAMES: &[&str] = &[
    "reno", "cubic", "dctcp", "htcp", "vegas", "bbr", "bbr3", "prague", "timely", "swift", "hpcc",
    "powertcp", "stamp",
];

/// A new control of that name, with its parameters.
///
/// # Errors
/// A name that is not in [`NAMES`], a parameter that the control does not have, a value that does not fit; with those that do.
pub fn new(name: &str, given: &Given) -> Result<Control, String> {
    let mut options = Options::new(given);
    let control = match name {
        "reno" => Control::Reno(Reno::default()),
        "cubic" => Control::Cubic(Cubic::default()),
        "dctcp" if options.one_of("alpha", &[("ce", false), ("stamp", true)]) => {
            Control::other(DctcpStamp::new(&mut options))
        }
        "dctcp" => Control::other(Dctcp::default()),
        "htcp" => Control::other(Htcp::default()),
        "vegas" => Control::other(Vegas::default()),
        "bbr" => Control::other(Bbr::default()),
        "bbr3" => Control::other(Bbr3::default()),
        "prague" => Control::other(Prague::default()),
        "timely" => Control::other(Timely::new(&mut options)),
        "swift" => Control::other(Swift::new(&mut options)),
        "hpcc" => Control::other(Hpcc::new(&mut options)),
        "powertcp" => Control::other(PowerTcp::new(&mut options)),
        "stamp" => Control::other(Stamp::new(&mut options)),
        _ => {
            return Err(format!("there is no congestion control `{name}`; known: {}", NAMES.join(", ")));
        }
    };
    options.finish(name)?;
    Ok(control)
}
