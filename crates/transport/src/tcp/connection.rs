//! A connection: its state, what the application and the host ask of it, and its timers. Segments come in by `input` and go out by
//! `segments`; `handshake` opens it.

use units::{Rate, Time};

use super::ack::SeenSack;
use super::config::Config;
use super::handshake::SYN_LINEAR_TIMEOUTS;
use super::receiver::Receiver;
use super::sender::{Sender, Timer};
use super::statistics::Statistics;
use crate::cc::{CongestionControl, Control, Flow};
use crate::segment::Ecn;

/// Where the connection is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Waits for a SYN.
    Listen,
    SynSent,
    SynReceived,
    Established,
    /// Both sides have closed, and all is acknowledged.
    Closed,
    /// Ended by a RST.
    Reset,
    /// Given up after too many retransmissions.
    TimedOut,
}

/// What comes of a connection that has sent all that it may, until a segment comes, the application writes, or it wakes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Something might be sent at another time.
    Busy,
    /// It has nothing to send, and nothing changes however often it is asked.
    Idle,
    /// Its congestion window holds it back; each time that it is asked this is noted, and no more: see [`Connection::still_limited`].
    Limited,
}

/// A RST that is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reset {
    /// The application has ended the connection.
    Own,
    /// A segment with this acknowledgment number has come for a connection that is over.
    Answer(u32),
}

/// ECN as negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EcnState {
    Off,
    Classic,
    Accurate,
}

/// Initial value of the counter of CE packets (accurate ECN).
pub(super) const CE_COUNTER_START: u32 = 5;

#[derive(Debug)]
pub struct Connection {
    /// Looked at when it opens, and when it is given up.
    pub(super) config: Box<Config>,
    pub(super) phase: Phase,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) seen: SeenSack,
    /// Sequence numbers that are offset 0.
    pub(super) isn: u32,
    pub(super) irs: u32,
    pub(super) snd_shift: u8,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    /// What the peer's SYN says; 0 before it. And what agents' options take of each segment.
    pub(super) peer_mss: u16,
    pub(super) reserved: u16,
    pub(super) ecn: EcnState,
    /// ECN field that the peer's SYN came with, for accurate ECN's handshake.
    pub(super) syn_ecn: Ecn,
    /// A SYN or SYN-ACK is due; when it was sent, how often again, and when the next is.
    pub(super) syn_due: bool,
    pub(super) syn_sent: Time,
    pub(super) syn_retries: u32,
    pub(super) syn_timer: Option<Time>,
    pub(super) reset_due: Option<Reset>,
    pub(super) probe_due: bool,
}

impl Connection {
    /// One that opens: a SYN goes out with the next [`Connection::transmit`].
    pub fn connect(config: Config, cc: Control) -> Connection {
        let mut connection = Connection::new(config, cc, Phase::SynSent);
        connection.syn_due = true;
        connection
    }

    /// One that waits for a SYN.
    pub fn listen(config: Config, cc: Control) -> Connection {
        Connection::new(config, cc, Phase::Listen)
    }

    fn new(config: Config, cc: Control, phase: Phase) -> Connection {
        Connection {
            sender: Sender::new(&config, config.mss, cc),
            receiver: Receiver::new(&config),
            seen: SeenSack::default(),
            isn: config.initial_seq,
            irs: 0,
            snd_shift: 0,
            sack: config.sack,
            timestamps: config.timestamps,
            peer_mss: 0,
            reserved: 0,
            ecn: EcnState::Off,
            syn_ecn: Ecn::NotEct,
            syn_due: false,
            syn_sent: Time::ZERO,
            syn_retries: 0,
            syn_timer: None,
            reset_due: None,
            probe_due: false,
            phase,
            config: Box::new(config),
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// What its congestion control sees.
    pub fn flow(&self) -> &Flow {
        &self.sender.flow
    }

    pub fn congestion_control(&self) -> &dyn CongestionControl {
        &*self.sender.cc
    }

    pub fn statistics(&self) -> &Statistics {
        &self.sender.statistics
    }

    /// Retransmission timeout as it stands.
    pub fn rto(&self) -> Time {
        self.sender.rtt.rto()
    }

    /// Bytes that the application may read, in order, since the start.
    pub fn bytes_received(&self) -> u64 {
        let fin = u64::from(self.receiver.fin_at.is_some_and(|at| at < self.receiver.nxt));
        self.receiver.nxt.saturating_sub(1 + fin)
    }

    /// Bytes that were sent, once each, since the start; the SYN and the FIN count as one.
    pub fn bytes_sent(&self) -> u64 {
        self.sender.flow.snd_nxt
    }

    pub fn has_sent_fin(&self) -> bool {
        self.sender.closing && self.sender.flow.snd_nxt == self.sender.end()
    }

    /// Bytes that the peer has acknowledged.
    pub fn bytes_acked(&self) -> u64 {
        self.sender.flow.snd_una.saturating_sub(1).min(self.sender.write_end - 1)
    }

    /// The peer has closed, and all it sent was received.
    pub fn peer_closed(&self) -> bool {
        self.receiver.fin_at.is_some_and(|at| at < self.receiver.nxt)
    }

    /// The application writes `bytes` more; after [`Connection::close`] nothing happens.
    pub fn write(&mut self, bytes: u64) {
        if !self.sender.closing {
            self.sender.check_app_limited();
            self.sender.write_end = self.sender.write_end.saturating_add(bytes).min(u64::MAX / 4);
        }
    }

    /// The application writes no more; a FIN follows the data.
    pub fn close(&mut self) {
        self.sender.closing = true;
    }

    /// Drops what is written but not sent, and closes.
    pub fn stop_writing(&mut self) {
        self.sender.write_end = self.sender.flow.snd_nxt.max(1);
        self.close();
    }

    /// Ends the connection at once: a RST goes out, and another for each segment that comes after it (RFC 9293 section 3.10.7.1). What
    /// is over already stays as it is.
    pub fn abort(&mut self) {
        match self.phase {
            Phase::SynReceived | Phase::Established => self.reset_due = Some(Reset::Own),
            Phase::Listen | Phase::SynSent => {}
            Phase::Closed | Phase::Reset | Phase::TimedOut => return,
        }
        self.over(Phase::Reset);
    }

    /// Nothing is sent again.
    pub(super) fn over(&mut self, phase: Phase) {
        self.phase = phase;
        self.sender.timer = None;
        self.syn_timer = None;
        self.receiver.deadline = None;
    }

    /// Options of the host's agents take so many bytes of each data segment, in the IP header and the TCP header together. They come
    /// off the MSS, as in Linux; the MSS that a SYN says stays.
    pub fn reserve(&mut self, bytes: u32) {
        self.reserved = u16::try_from(bytes).unwrap_or(u16::MAX);
        if self.peer_mss > 0 {
            self.sender.flow.mss = self.mss();
        }
    }

    /// Sends at this rate of payload at most (`SO_MAX_PACING_RATE`); `None`: lifts that. Holds from the next burst on.
    pub fn limit_pacing(&mut self, rate: Option<Rate>) {
        self.sender.limit_pacing(rate);
    }

    /// Has so many packets in flight at most (`TCP_BPF_SNDCWND_CLAMP`); `None`: lifts that.
    pub fn limit_cwnd(&mut self, packets: Option<u32>) {
        self.sender.limit_cwnd(packets);
    }

    /// Tells the congestion control of an option: see [`CongestionControl::signal`].
    pub fn signal(&mut self, now: Time, kind: u16, data: &[u8]) {
        self.sender.cc.signal(&mut self.sender.flow, now, kind, data);
        self.sender.keep_limits();
    }

    /// When [`Connection::advance`] (or, for paced sending, [`Connection::transmit`]) is due; [`Time::MAX`]: never.
    pub fn next_wakeup(&self, now: Time) -> Time {
        let mut at = Time::MAX;
        if let Some((_, timer)) = self.sender.timer {
            at = timer;
        }
        if let Some(deadline) = self.receiver.deadline {
            at = at.min(deadline);
        }
        if let Some(syn) = self.syn_timer {
            at = at.min(syn);
        }
        if self.phase == Phase::Established
            && let Some(goes_on) = self.sender.send_wakeup(now)
        {
            at = at.min(goes_on);
        }
        at
    }

    /// What comes of [`Connection::advance`] and [`Connection::transmit`] before [`Connection::next_wakeup`], now that nothing may be
    /// sent.
    #[inline]
    pub fn rest(&self) -> Rest {
        if self.phase == Phase::Established { self.sender.rest() } else { Rest::Busy }
    }

    /// In place of asking one that is [`Rest::Limited`] before it wakes up.
    #[inline]
    pub fn still_limited(&mut self, now: Time) {
        self.sender.cwnd_stamp = now;
    }

    /// Runs the timers that are due.
    pub fn advance(&mut self, now: Time) {
        if self.syn_timer.is_some_and(|at| at <= now) {
            self.syn_retries += 1;
            self.syn_timer = None;
            let linear = if self.phase == Phase::SynSent { SYN_LINEAR_TIMEOUTS } else { 0 };
            if self.syn_retries > self.config.syn_retries + linear {
                self.phase = Phase::TimedOut;
            } else {
                self.syn_due = true;
            }
        }
        if self.receiver.deadline.is_some_and(|at| at <= now) {
            self.receiver.timeout();
        }
        let Some((timer, at)) = self.sender.timer else { return };
        if at > now {
            return;
        }
        self.sender.timer = None;
        match timer {
            Timer::Retransmit => {
                if self.sender.retransmits >= self.config.retries {
                    self.phase = Phase::TimedOut;
                    return;
                }
                self.sender.retransmission_timeout(now);
            }
            Timer::Probe => self.sender.send_probe(now),
            Timer::Reorder => self.sender.reorder_timeout(now),
            Timer::Persist => {
                self.probe_due = true;
                self.sender.rtt.backoff += 1;
                self.sender.set_timer(Timer::Persist, now + self.sender.rtt.rto());
            }
        }
    }
}
