//! The receiving side: reassembly, SACK blocks (RFC 2018, RFC 2883), delayed and quick ACKs. The application reads at once.

use smallvec::SmallVec;
use units::Time;

use super::config::Config;
use super::window::Window;
use crate::segment::{Ecn, SackBlocks};

/// Duplicate ACKs that are sent at once before SACKs are thinned out (`TCP_FASTRETRANS_THRESH`).
const IMMEDIATE_DUP_ACKS: u32 = 3;
/// `tcp_comp_sack_nr`, and `tcp_comp_sack_delay_ns`.
const COMPRESSED_ACKS: u32 = 44;
/// How long the application takes to read. The median between Linux hosts was 64 us.
const READ_DELAY: Time = Time::from_us(50);
const SACK_BLOCKS_EXPECTED: usize = 2;
const COMPRESSION_DELAY: Time = Time::from_ms(1);
/// `tcp_comp_sack_slack_ns`: a timer that may be late by so much is, unless the processor has another one to serve.
const COMPRESSION_SLACK: Time = Time::from_us(100);

/// Blocks that an ACK reports at most.
const SACK_BLOCKS: usize = 4;

/// From offset to offset. So many lie in the connection itself, which is looked at anyway.
type Intervals = SmallVec<[(u64, u64); SACK_BLOCKS]>;

#[derive(Debug)]
pub(super) struct Receiver {
    pub sack: bool,
    /// Next offset expected; the peer's SYN is 0.
    pub nxt: u64,
    /// What arrived beyond it, in order, and the order in which it came, the last first.
    out_of_order: Intervals,
    recent: Intervals,
    /// To be reported as received twice.
    dsack: Option<(u64, u64)>,
    pub fin_at: Option<u64>,

    pub window: Window,

    // ACKs.
    quick_max: u32,
    always_quick: bool,
    quick: u32,
    ato: Option<Time>,
    ato_min: Time,
    ato_max: Time,
    last_data: Time,
    /// The peer has pushed what waits for an ACK (`ICSK_ACK_PUSHED`).
    pushed: bool,
    /// We answer what comes: ACKs wait for the answer (`pingpong`).
    answers: bool,
    /// Unacknowledged data is waiting; an ACK is due now, or at a time.
    pending: bool,
    pub due: bool,
    pub deadline: Option<Time>,
    dup_acks: u32,
    compressed: u32,
    compressed_at: u64,
    /// The timestamp that is echoed: the latest that has come.
    pub ts_recent: Option<u32>,

    // ECN.
    /// The sender is to be told until it says CWR (RFC 3168).
    pub demand_cwr: bool,
    ecn_seen: bool,
    /// DCTCP's receiver (RFC 8257 section 3.2): the last packet came with CE; an ACK for what came before is owed.
    pub exact_ce: bool,
    /// Marks are counted, not echoed.
    pub accurate_ecn: bool,
    ce_state: bool,
    pub owed: Option<(u64, bool)>,
    /// Packets that came with CE, for accurate ECN.
    pub ce_packets: u32,
    pub bytes_ce: u64,
}

impl Receiver {
    pub fn new(config: &Config) -> Receiver {
        Receiver {
            sack: config.sack,
            nxt: 0,
            out_of_order: Intervals::new(),
            recent: Intervals::new(),
            dsack: None,
            fin_at: None,
            window: Window::new(config),
            quick_max: config.quick_acks,
            always_quick: config.always_quick,
            quick: 0,
            ato: None,
            ato_min: config.delayed_ack_min,
            ato_max: config.delayed_ack_max,
            last_data: Time::ZERO,
            pushed: false,
            answers: false,
            pending: false,
            due: false,
            deadline: None,
            dup_acks: 0,
            compressed: 0,
            compressed_at: 0,
            ts_recent: None,
            demand_cwr: false,
            ecn_seen: false,
            exact_ce: false,
            accurate_ecn: false,
            ce_state: false,
            owed: None,
            ce_packets: 0,
            bytes_ce: 0,
        }
    }

    /// The peer's SYN has come; `options`: bytes that they take of each segment; `passive`: it is not an answer to ours.
    pub fn start(&mut self, now: Time, options: u32, passive: bool) {
        self.nxt = 1;
        self.compressed_at = 1;
        if passive {
            self.window.start_passive(now, options);
        } else {
            self.window.start(now, options);
        }
    }

    pub fn has_holes(&self) -> bool {
        !self.out_of_order.is_empty()
    }

    /// Data `seq..seq + len` has come (`tcp_data_queue`); `push`: the peer says that no more comes at once; `srtt`: of what this side
    /// sends, zero if unknown.
    pub fn data(&mut self, now: Time, seq: u64, len: u64, push: bool, fin: bool, srtt: Time) {
        let end = seq + len + u64::from(fin);
        if fin {
            self.fin_at = Some(end - 1);
        }
        if end <= self.nxt || seq >= self.nxt + self.window.now(self.nxt, self.queued()) {
            // Old, or beyond the window.
            if end <= self.nxt && end > seq {
                self.dsack = Some((seq, end));
            }
            self.enter_quick(self.quick_max);
            self.due = true;
            return;
        }
        self.pending = true;
        self.pushed |= push || (len as u32) < self.window.segment;
        if seq <= self.nxt {
            self.note_arrival(now, len as u32);
            if seq < self.nxt {
                self.dsack = Some((seq, self.nxt));
                self.enter_quick(self.quick_max);
            }
            let holes = self.has_holes();
            self.nxt = end;
            if holes {
                self.drain_in_order();
                // A gap may be filled (RFC 5681 section 4.2).
                self.due |= !self.has_holes();
            }
            self.window.adjust(now, self.nxt, self.beyond());
            // All is read, and nothing more to be expected (`tcp_cleanup_rbuf`).
            self.due |= fin;
            if self.pushed && !self.answers && !self.has_holes() {
                let at = now + READ_DELAY;
                self.deadline = Some(self.deadline.map_or(at, |d| d.min(at)));
            }
        } else {
            self.insert(seq, end);
            self.window.measure(len as u32);
            // Without SACK the window stays, so that the sender sees duplicate ACKs.
            if self.sack {
                self.open_window(len as u32);
            }
            self.window.make_room(self.beyond());
        }
        self.check_ack(now, !self.out_of_order.is_empty(), srtt);
    }

    fn insert(&mut self, seq: u64, end: u64) {
        if let Some(&(l, r)) = self.out_of_order.iter().find(|(l, r)| *l < end && seq < *r) {
            // In part or in whole here already.
            self.dsack = Some((seq.max(l), end.min(r)));
        }
        let at = self.out_of_order.partition_point(|(_, r)| *r < seq);
        let mut merged = (seq, end);
        let mut until = at;
        while let Some(&(l, r)) = self.out_of_order.get(until) {
            if l > merged.1 {
                break;
            }
            merged = (merged.0.min(l), merged.1.max(r));
            until += 1;
        }
        if at == until {
            self.out_of_order.insert(at, merged);
        } else {
            self.out_of_order[at] = merged;
            self.out_of_order.drain(at + 1..until);
        }
        // A third block that changes would not fit into the next ACK: thinning out ends here (`TCP_SACK_BLOCKS_EXPECTED`).
        let position = self.recent.iter().position(|(l, r)| *r >= merged.0 && *l <= merged.1);
        if self.compressed > 0 && position.unwrap_or(self.recent.len()) >= SACK_BLOCKS_EXPECTED {
            self.due = true;
        }
        self.recent.retain(|(l, r)| *r < merged.0 || *l > merged.1);
        self.recent.truncate(SACK_BLOCKS - 1);
        self.recent.insert(0, merged);
    }

    fn drain_in_order(&mut self) {
        let done = self.out_of_order.iter().take_while(|(l, _)| *l <= self.nxt).count();
        if done > 0 {
            for (_, right) in self.out_of_order.drain(..done) {
                self.nxt = self.nxt.max(right);
            }
            if self.out_of_order.is_empty() {
                self.out_of_order.shrink_to_fit();
            }
            let nxt = self.nxt;
            self.recent.retain(|(_, r)| *r > nxt);
        }
    }

    /// `tcp_event_data_recv`.
    fn note_arrival(&mut self, now: Time, len: u32) {
        self.window.measure(len);
        self.window.measure_rtt(now, self.nxt);
        match self.ato {
            None => {
                self.more_quick(self.quick_max);
                self.ato = Some(self.ato_min);
            }
            Some(ato) => {
                let gap = now - self.last_data;
                self.ato = Some(if gap <= self.ato_min / 2 {
                    ato / 2 + self.ato_min / 2
                } else if gap < ato {
                    ato / 2 + gap
                } else {
                    if gap > Time::from_ms(200) {
                        self.more_quick(self.quick_max);
                    }
                    ato
                });
            }
        }
        self.last_data = now;
        if len >= 128 {
            self.open_window(len);
        }
    }

    fn open_window(&mut self, len: u32) {
        let queued = self.queued();
        if self.window.grow(len, queued) {
            // The sender shall know at once.
            self.quick |= 1;
        }
    }

    /// ACKs are not to wait: what comes is none of a conversation (`tcp_enter_quickack_mode`).
    pub fn enter_quick(&mut self, max: u32) {
        self.more_quick(max);
        self.answers = false;
        self.ato = Some(self.ato_min);
    }

    fn more_quick(&mut self, max: u32) {
        let acks = (self.window.offered / (2 * u64::from(self.window.segment.max(1)))) as u32;
        self.quick = self.quick.max(acks.clamp(2, max.max(2)));
    }

    /// Data of ours leaves: an answer, if it follows closely what came (`tcp_event_data_sent`).
    pub fn data_sent(&mut self, now: Time) {
        self.answers |= self.ato.is_some_and(|ato| now - self.last_data < ato);
    }

    /// `__tcp_ack_snd_check`.
    fn check_ack(&mut self, now: Time, out_of_order: bool, srtt: Time) {
        let unacked = self.nxt - self.window.acked;
        let quick = self.always_quick || (self.quick > 0 && !self.answers);
        if unacked > u64::from(self.window.segment) || quick || self.due {
            self.due = true;
            return;
        }
        if !out_of_order {
            self.delay_ack(now);
            return;
        }
        if !self.sack {
            self.due = true;
            return;
        }
        if self.compressed_at != self.nxt {
            self.compressed_at = self.nxt;
            self.dup_acks = 0;
        }
        if self.dup_acks < IMMEDIATE_DUP_ACKS {
            self.dup_acks += 1;
            self.due = true;
            return;
        }
        self.compressed += 1;
        if self.compressed >= COMPRESSED_ACKS {
            self.due = true;
            return;
        }
        let rtt = self.window.rtt.unwrap_or(Time::ZERO);
        let rtt = if srtt.is_zero() { rtt } else { rtt.min(srtt) };
        let delay = (rtt / 20).min(COMPRESSION_DELAY) + COMPRESSION_SLACK;
        let at = now + delay;
        self.deadline = Some(self.deadline.map_or(at, |d| d.min(at)));
    }

    fn delay_ack(&mut self, now: Time) {
        let ato = self.ato.unwrap_or(self.ato_min).min(self.ato_max).max(self.ato_min);
        let at = now + ato;
        self.deadline = Some(self.deadline.map_or(at, |d| d.min(at)));
    }

    /// The deadline has come.
    pub fn timeout(&mut self) {
        self.deadline = None;
        if self.pending {
            self.due = true;
        }
    }

    /// A segment with an ACK leaves (`tcp_event_ack_sent`); gives the window to write into it.
    pub fn ack_sent(&mut self) -> u16 {
        self.pending = false;
        self.pushed = false;
        self.due = false;
        self.deadline = None;
        self.quick = self.quick.saturating_sub(1);
        self.compressed = 0;
        self.window.offer(self.nxt, self.queued())
    }

    /// Bytes that wait for a hole to be filled.
    #[inline]
    fn queued(&self) -> u64 {
        if !self.has_holes() {
            return 0;
        }
        self.out_of_order.iter().map(|(l, r)| r - l).sum()
    }

    /// How far beyond the next offset what has come reaches.
    fn beyond(&self) -> u64 {
        self.out_of_order.last().map_or(0, |(_, r)| r - self.nxt)
    }

    /// The SACK blocks of the next ACK, as offsets.
    pub fn sack_blocks(&mut self, room: usize, wire: impl Fn(u64) -> u32) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if !self.sack {
            self.dsack = None;
            return blocks;
        }
        let dsack = self.dsack.take();
        for (left, right) in dsack.into_iter().chain(self.recent.iter().copied()).take(room) {
            blocks.push(wire(left), wire(right));
        }
        blocks
    }

    /// The ECN field of a data segment (`tcp_ecn_check_ce`, `dctcp_ece_ack_update`).
    pub fn ecn(&mut self, ecn: Ecn, bytes: u32) {
        match ecn {
            Ecn::NotEct => {
                if self.ecn_seen {
                    self.enter_quick(2);
                }
            }
            Ecn::Ce => {
                self.ecn_seen = true;
                self.ce_packets = self.ce_packets.wrapping_add(1);
                self.bytes_ce += u64::from(bytes);
                if self.exact_ce {
                    self.turn_ce(true);
                } else if self.accurate_ecn {
                    self.tell_change(true);
                } else if !self.demand_cwr {
                    self.enter_quick(2);
                    self.demand_cwr = true;
                }
            }
            Ecn::Ect0 | Ecn::Ect1 => {
                self.ecn_seen = true;
                if self.exact_ce {
                    self.turn_ce(false);
                } else if self.accurate_ecn {
                    self.tell_change(false);
                }
            }
        }
    }

    /// Change-triggered ACKs (RFC 9768 section 3.2.2.5.1); Linux has them for the end of marks as well.
    fn tell_change(&mut self, ce: bool) {
        self.due |= self.ce_state != ce;
        self.ce_state = ce;
    }

    fn turn_ce(&mut self, ce: bool) {
        if self.ce_state != ce {
            // What came before is acknowledged on its own, with its own mark.
            if self.pending {
                self.owed = Some((self.nxt, self.ce_state));
            }
            self.ce_state = ce;
            self.due = true;
        }
        self.demand_cwr = ce;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long the ACK of a packet beyond a hole is held back, given the round-trip times of both directions (ms).
    fn held_back(rtt: Option<u64>, srtt: u64) -> Time {
        let mut receiver = Receiver::new(&Config::default());
        let (now, srtt) = (Time::from_ms(100), Time::from_ms(srtt));
        receiver.sack = true;
        receiver.start(now, 0, true);
        receiver.window.rtt = rtt.map(Time::from_ms);
        receiver.quick = 0;
        for n in 0..=u64::from(IMMEDIATE_DUP_ACKS) {
            assert!(receiver.deadline.is_none(), "{n}");
            receiver.data(now, 3_000 + 1_000 * n, 1_000, false, false, srtt);
            if n < u64::from(IMMEDIATE_DUP_ACKS) {
                assert!(receiver.due, "{n}");
                receiver.ack_sent();
            }
        }
        assert!(!receiver.due);
        receiver.deadline.expect("deadline") - now
    }

    /// Linux 6.18, `__tcp_ack_snd_check`: a twentieth of the less of both, at most 1 ms, and 0.1 ms of slack.
    #[test]
    fn sacks_are_held_back_by_the_shorter_round_trip() {
        assert_eq!(held_back(Some(80), 60), Time::from_us(1_100));
        assert_eq!(held_back(Some(12), 60), Time::from_us(700));
        assert_eq!(held_back(Some(80), 4), Time::from_us(300));
        assert_eq!(held_back(Some(12), 0), Time::from_us(700));
        assert_eq!(held_back(None, 4), Time::from_us(100));
    }
}
