//! A connection: the handshake (RFC 9293), what comes in and what goes out.

use units::{Rate, Time};

use super::ack::{Incoming, SeenSack};
use super::config::{Config, EcnMode, RTO_INIT, RTO_MAX};
use super::output::{Piece, Sender, Timer};
use super::receiver::Receiver;
use super::scoreboard::mark;
use crate::cc::{CongestionControl, EcnUse, Flow};
use crate::segment::{Ecn, Flags, Segment, SynOptions};

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

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments sent with data or a flag that takes a sequence number, and pure ACKs.
    pub segments_sent: u64,
    pub acks_sent: u64,
    pub segments_received: u64,
    pub retransmits: u64,
    pub timeouts: u64,
    pub fast_recoveries: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Reductions taken back because they were spurious.
    pub undos: u64,
    pub dsacks: u64,
    /// Packets that came with CE, and ACKs that reported CE.
    pub ce_received: u64,
    pub ece_received: u64,
}

/// ECN as negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EcnState {
    Off,
    Classic,
    Accurate,
}

/// Initial value of the counter of CE packets (accurate ECN).
const CE_COUNTER_START: u32 = 5;

/// `TCP_MIN_MSS`.
const LEAST_MSS: u32 = 88;

#[derive(Debug)]
pub struct Connection {
    config: Config,
    phase: Phase,
    sender: Sender,
    receiver: Receiver,
    seen: SeenSack,
    /// Sequence numbers that are offset 0.
    isn: u32,
    irs: u32,
    snd_shift: u8,
    sack: bool,
    timestamps: bool,
    /// What the peer's SYN says; 0 before it. And what agents' options take of each segment.
    peer_mss: u16,
    reserved: u16,
    ecn: EcnState,
    /// ECN field that the peer's SYN came with, for accurate ECN's handshake.
    syn_ecn: Ecn,
    /// The peer's counter of CE packets, as far as it is known.
    peer_ce: u32,
    /// A SYN or SYN-ACK is due; when it was sent, how often again, and when the next is.
    syn_due: bool,
    syn_sent: Time,
    syn_retries: u32,
    syn_timer: Option<Time>,
    reset_due: bool,
    probe_due: bool,
}

impl Connection {
    /// One that opens: a SYN goes out with the next [`Connection::transmit`].
    pub fn connect(config: Config, cc: Box<dyn CongestionControl>) -> Connection {
        let mut connection = Connection::new(config, cc, Phase::SynSent);
        connection.syn_due = true;
        connection
    }

    /// One that waits for a SYN.
    pub fn listen(config: Config, cc: Box<dyn CongestionControl>) -> Connection {
        Connection::new(config, cc, Phase::Listen)
    }

    fn new(config: Config, cc: Box<dyn CongestionControl>, phase: Phase) -> Connection {
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
            peer_ce: CE_COUNTER_START,
            syn_due: false,
            syn_sent: Time::ZERO,
            syn_retries: 0,
            syn_timer: None,
            reset_due: false,
            probe_due: false,
            phase,
            config,
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

    /// Bytes that the peer has acknowledged.
    pub fn bytes_acked(&self) -> u64 {
        self.sender.flow.snd_una.saturating_sub(1).min(self.sender.write_end - 1)
    }

    /// Bytes written and not yet acknowledged.
    pub fn bytes_queued(&self) -> u64 {
        self.sender.write_end - 1 - self.bytes_acked()
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

    /// Ends the connection at once: a RST goes out.
    pub fn abort(&mut self) {
        if matches!(self.phase, Phase::SynReceived | Phase::Established) {
            self.reset_due = true;
        }
        self.phase = Phase::Reset;
    }

    /// Options of the host's agents take so many bytes of each data segment, in the IP header and the TCP header together. They come
    /// off the MSS, as in Linux; the MSS that a SYN says stays.
    pub fn reserve(&mut self, bytes: u32) {
        self.reserved = u16::try_from(bytes).unwrap_or(u16::MAX);
        if self.peer_mss > 0 {
            self.sender.flow.mss = self.mss();
        }
    }

    /// Bytes of payload of a full segment, by what both sides have said.
    fn mss(&self) -> u32 {
        self.config.mss.min(u32::from(self.peer_mss)).saturating_sub(self.options()).max(LEAST_MSS)
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
    pub fn signal(&mut self, now: Time, kind: u8, data: &[u8]) {
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

    /// Runs the timers that are due.
    pub fn advance(&mut self, now: Time) {
        if self.syn_timer.is_some_and(|at| at <= now) {
            self.syn_retries += 1;
            self.syn_timer = None;
            if self.syn_retries > self.config.syn_retries {
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

    /// The next segment to send now; to be called until it gives `None`.
    pub fn transmit(&mut self, now: Time) -> Option<Segment> {
        match self.phase {
            Phase::Established => {}
            Phase::SynSent | Phase::SynReceived => return self.transmit_syn(now),
            _ if self.reset_due => {
                self.reset_due = false;
                let mut segment = self.segment(now, self.sender.flow.snd_nxt);
                segment.flags |= Flags::RST;
                return Some(segment);
            }
            Phase::Closed => {}
            _ => return None,
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

    fn transmit_syn(&mut self, now: Time) -> Option<Segment> {
        if !self.syn_due {
            return None;
        }
        self.syn_due = false;
        self.syn_sent = now;
        let shift = self.syn_retries.min(16);
        self.syn_timer = Some(now + Time::from_ps(RTO_INIT.as_ps() << shift).min(RTO_MAX));
        let flow = &mut self.sender.flow;
        flow.snd_nxt = 1;
        flow.high_seq = 1;
        let wants = match (self.config.ecn, self.sender.cc.ecn()) {
            (_, EcnUse::L4s) | (EcnMode::Accurate, _) => EcnState::Accurate,
            (EcnMode::On, _) | (_, EcnUse::Own) => EcnState::Classic,
            _ => EcnState::Off,
        };
        let answer = self.phase == Phase::SynReceived;
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
                    self.established(now);
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
            Phase::Reset | Phase::TimedOut => {}
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
            self.phase = Phase::Reset;
            self.sender.timer = None;
            self.syn_timer = None;
            self.receiver.deadline = None;
        }
    }

    fn take_options(&mut self, segment: &Segment) {
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

    /// Bytes that options take of each segment.
    fn options(&self) -> u32 {
        u32::from(self.reserved) + if self.timestamps { 12 } else { 0 }
    }

    fn on_first_syn(&mut self, now: Time, segment: &Segment) {
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

    fn on_syn_ack(&mut self, now: Time, segment: &Segment) {
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
        self.established(now);
        self.receiver.due = true;
    }

    fn established(&mut self, now: Time) {
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
        if self.syn_retries == 0 {
            let rtt = now - self.syn_sent;
            self.sender.rtt.sample(now, rtt, rtt, 1, 1);
            flow.srtt = self.sender.rtt.srtt();
            flow.min_rtt = self.sender.rtt.min();
        } else {
            // RFC 6298 section 5.7: a lost SYN makes a careful start.
            flow.cwnd = 1;
        }
        self.sender.cwnd_stamp = now;
        self.sender.cc.init(&mut self.sender.flow, now);
        self.sender.update_pacing_rate();
        self.sender.keep_limits();
    }

    fn on_segment(&mut self, now: Time, segment: &Segment) {
        let seq = unwrap(segment.seq.wrapping_sub(self.irs), self.receiver.nxt);
        let Some(seq) = seq else {
            self.receiver.due = true;
            return;
        };
        let fin = segment.flags.has(Flags::FIN);
        if let Some((val, _)) = segment.timestamps
            && seq <= self.receiver.nxt
        {
            self.receiver.ts_recent = Some(val);
        }
        if segment.flags.has(Flags::ACK) {
            self.on_ack(now, segment);
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
            self.receiver.data(now, seq, u64::from(segment.payload), push, fin);
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

    fn on_ack(&mut self, now: Time, segment: &Segment) {
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
        let (ece, ce) = match self.ecn {
            EcnState::Off => (false, 0),
            EcnState::Classic => (segment.flags.has(Flags::ECE), 0),
            EcnState::Accurate => {
                let news = (u32::from(segment.flags.ace()).wrapping_sub(self.peer_ce)) & 7;
                // An ACK from before the last one tells nothing new.
                let news = if ack < una { 0 } else { news };
                self.peer_ce = self.peer_ce.wrapping_add(news);
                (news > 0, news)
            }
        };
        if ece {
            self.sender.statistics.ece_received += 1;
        }
        let incoming = Incoming {
            ack: ack.max(una),
            wnd_end: ack + (u64::from(segment.window) << self.snd_shift),
            sack: &blocks[..count],
            ce,
            ece,
            echoed: segment.timestamps.map(|(_, ecr)| ecr),
            has_data: segment.payload > 0,
        };
        self.sender.on_ack(now, &incoming, &mut self.seen);
    }
}

/// The clock of the timestamps option: milliseconds, never zero.
pub(super) fn clock(now: Time) -> u32 {
    (now.as_ms() as u32).wrapping_add(1)
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
