//! The receiving side: reassembly, SACK blocks (RFC 2018, RFC 2883), delayed and quick ACKs, the window that is offered.
//!
//! The application reads at once. Of the receive buffer half is window, as with Linux's default overhead.

use units::Time;

use super::config::Config;
use crate::segment::{Ecn, SackBlocks};

/// Duplicate ACKs that are sent at once before SACKs are thinned out (`TCP_FASTRETRANS_THRESH`).
const IMMEDIATE_DUP_ACKS: u32 = 3;
/// `tcp_comp_sack_nr`, and `tcp_comp_sack_delay_ns`.
const COMPRESSED_ACKS: u32 = 44;
const SACK_BLOCKS_EXPECTED: usize = 2;
const COMPRESSION_DELAY: Time = Time::from_ms(1);

#[derive(Debug)]
pub(super) struct Receiver {
    sack: bool,
    mss: u32,
    /// Next offset expected; the peer's SYN is 0.
    pub nxt: u64,
    /// What arrived beyond it, in order, and the order in which it came, the last first.
    out_of_order: Vec<(u64, u64)>,
    recent: Vec<(u64, u64)>,
    /// To be reported as received twice.
    dsack: Option<(u64, u64)>,
    pub fin_at: Option<u64>,

    // Windows.
    /// `nxt` when the last ACK was sent, and the window that it offered.
    wup: u64,
    wnd: u64,
    pub window_shift: u8,
    buffer: u64,
    buffer_max: u64,
    ssthresh: u64,
    space_seq: u64,
    space_at: Time,
    space: u64,
    rtt: Option<Time>,
    rtt_seq: u64,
    rtt_at: Time,

    // ACKs.
    quick_max: u32,
    quick: u32,
    ato: Option<Time>,
    ato_min: Time,
    ato_max: Time,
    last_data: Time,
    /// Unacknowledged data is waiting; an ACK is due now, or at a time.
    pending: bool,
    pub due: bool,
    pub deadline: Option<Time>,
    rcv_mss: u32,
    dup_acks: u32,
    compressed: u32,
    compressed_at: u64,
    pub ts_recent: Option<u32>,

    // ECN.
    /// The sender is to be told until it says CWR (RFC 3168).
    pub demand_cwr: bool,
    ecn_seen: bool,
    /// DCTCP's receiver (RFC 8257 section 3.2): the last packet came with CE; an ACK for what came before is owed.
    pub exact_ce: bool,
    ce_state: bool,
    pub owed: Option<(u64, bool)>,
    /// Packets that came with CE, for accurate ECN.
    pub ce_packets: u32,
    pub bytes_ce: u64,
}

impl Receiver {
    pub fn new(config: &Config, mss: u32) -> Receiver {
        let buffer = config.receive_buffer.get();
        let max = config.receive_buffer_max.get().max(buffer);
        let mut shift = 0u8;
        while config.window_scaling && shift < 14 && (max / 2) >> shift > 65_535 {
            shift += 1;
        }
        let window = (buffer / 2).min(65_535);
        Receiver {
            sack: config.sack,
            mss,
            nxt: 0,
            out_of_order: Vec::new(),
            recent: Vec::new(),
            dsack: None,
            fin_at: None,
            wup: 0,
            wnd: window,
            window_shift: shift,
            buffer,
            buffer_max: max,
            ssthresh: window,
            space_seq: 0,
            space_at: Time::ZERO,
            space: u64::from(config.initial_cwnd * mss),
            rtt: None,
            rtt_seq: 0,
            rtt_at: Time::ZERO,
            quick_max: config.quick_acks,
            quick: 0,
            ato: None,
            ato_min: config.delayed_ack_min,
            ato_max: config.delayed_ack_max,
            last_data: Time::ZERO,
            pending: false,
            due: false,
            deadline: None,
            rcv_mss: mss.min(536),
            dup_acks: 0,
            compressed: 0,
            compressed_at: 0,
            ts_recent: None,
            demand_cwr: false,
            ecn_seen: false,
            exact_ce: false,
            ce_state: false,
            owed: None,
            ce_packets: 0,
            bytes_ce: 0,
        }
    }

    /// The peer's SYN has come.
    pub fn start(&mut self, now: Time) {
        self.nxt = 1;
        self.wup = 1;
        self.space_seq = 1;
        self.space_at = now;
        self.rtt_seq = 1 + self.wnd;
        self.rtt_at = now;
        self.compressed_at = 1;
    }

    /// The peer echoes a timestamp of ours on a full segment (`tcp_rcv_rtt_measure_ts`): the clock's steps are milliseconds.
    pub fn echo(&mut self, now_ms: u32, echoed: u32, len: u32) {
        let delta = now_ms.wrapping_sub(echoed);
        if len >= self.rcv_mss && delta > 0 && delta < 1 << 20 {
            let sample = Time::from_ms(u64::from(delta));
            self.rtt = Some(self.rtt.map_or(sample, |old| old - old / 8 + sample / 8));
        }
    }

    pub fn has_holes(&self) -> bool {
        !self.out_of_order.is_empty()
    }

    /// Data `seq..seq + len` has come (`tcp_data_queue`).
    pub fn data(&mut self, now: Time, seq: u64, len: u64, fin: bool) {
        let end = seq + len + u64::from(fin);
        if fin {
            self.fin_at = Some(end - 1);
        }
        if end <= self.nxt || seq >= self.nxt + self.window_now() {
            // Old, or beyond the window.
            if end <= self.nxt && end > seq {
                self.dsack = Some((seq, end));
            }
            self.enter_quick(self.quick_max);
            self.due = true;
            return;
        }
        self.note_arrival(now, len as u32);
        if seq <= self.nxt {
            if seq < self.nxt {
                self.dsack = Some((seq, self.nxt));
                self.enter_quick(self.quick_max);
            }
            let holes = self.has_holes();
            self.nxt = end;
            self.drain_in_order();
            if holes && !self.has_holes() {
                // A gap is filled (RFC 5681 section 4.2).
                self.due = true;
            }
            self.adjust_space(now);
            if fin {
                self.due = true;
            }
        } else {
            self.insert(seq, end);
        }
        self.check_ack(now, !self.out_of_order.is_empty());
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
        self.out_of_order.splice(at..until, [merged]);
        // A third block that changes would not fit into the next ACK: thinning out ends here (`TCP_SACK_BLOCKS_EXPECTED`).
        let position = self.recent.iter().position(|(l, r)| *r >= merged.0 && *l <= merged.1);
        if self.compressed > 0 && position.unwrap_or(self.recent.len()) >= SACK_BLOCKS_EXPECTED {
            self.due = true;
        }
        self.recent.retain(|(l, r)| *r < merged.0 || *l > merged.1);
        self.recent.insert(0, merged);
        self.recent.truncate(4);
    }

    fn drain_in_order(&mut self) {
        let done = self.out_of_order.iter().take_while(|(l, _)| *l <= self.nxt).count();
        if done > 0 {
            for (_, right) in self.out_of_order.drain(..done) {
                self.nxt = self.nxt.max(right);
            }
            let nxt = self.nxt;
            self.recent.retain(|(_, r)| *r > nxt);
        }
    }

    /// `tcp_event_data_recv`.
    fn note_arrival(&mut self, now: Time, len: u32) {
        self.pending = true;
        if len >= self.rcv_mss {
            self.rcv_mss = len.min(self.mss);
        }
        if self.nxt >= self.rtt_seq {
            // A window's worth has come since: a round trip at most (`tcp_rcv_rtt_measure`).
            let rtt = now - self.rtt_at;
            self.rtt = Some(self.rtt.map_or(rtt, |old| old.min(rtt)));
            self.rtt_seq = self.nxt + self.wnd;
            self.rtt_at = now;
        }
        match self.ato {
            None => {
                self.enter_quick(self.quick_max);
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
                        self.enter_quick(self.quick_max);
                    }
                    ato
                });
            }
        }
        self.last_data = now;
        // The window opens with what comes (`tcp_grow_window`).
        if len >= 128 {
            let room = (self.buffer / 2).saturating_sub(self.ssthresh);
            self.ssthresh += room.min(2 * u64::from(self.mss.max(len)));
        }
    }

    pub fn enter_quick(&mut self, max: u32) {
        let acks = (self.wnd / (2 * u64::from(self.rcv_mss.max(1)))) as u32;
        self.quick = self.quick.max(acks.clamp(2, max.max(2)));
        self.ato = Some(self.ato_min);
    }

    /// `__tcp_ack_snd_check`.
    fn check_ack(&mut self, now: Time, out_of_order: bool) {
        let unacked = self.nxt - self.wup;
        if unacked > u64::from(self.rcv_mss) || self.quick > 0 || self.due {
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
        let delay = (self.rtt.unwrap_or(COMPRESSION_DELAY * 20) / 20).min(COMPRESSION_DELAY);
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

    /// A segment with an ACK leaves (`tcp_event_ack_sent`, `tcp_select_window`); gives the window to write into it.
    pub fn ack_sent(&mut self) -> u16 {
        self.pending = false;
        self.due = false;
        self.deadline = None;
        self.quick = self.quick.saturating_sub(1);
        self.compressed = 0;
        let window = self.window_now();
        self.wup = self.nxt;
        self.wnd = window;
        (window >> self.window_shift).min(65_535) as u16
    }

    /// The window that was offered last, as one writes it next to an ACK of `nxt`.
    pub fn offered(&self, nxt: u64) -> u16 {
        let window = (self.wup + self.wnd).saturating_sub(nxt);
        (window >> self.window_shift).min(65_535) as u16
    }

    /// The window on a SYN is not scaled.
    pub fn syn_window(&self) -> u16 {
        self.wnd.min(65_535) as u16
    }

    /// Never smaller than what was offered before.
    fn window_now(&self) -> u64 {
        let queued: u64 = self.out_of_order.iter().map(|(l, r)| r - l).sum();
        let free = (self.buffer / 2).saturating_sub(queued).min(self.ssthresh);
        let offered = (self.wup + self.wnd).saturating_sub(self.nxt);
        let unit = 1u64 << self.window_shift;
        let most = 65_535u64 << self.window_shift;
        (free.max(offered).div_ceil(unit) * unit).min(most)
    }

    /// `tcp_rcv_space_adjust`: the buffer follows twice what is read per round trip.
    fn adjust_space(&mut self, now: Time) {
        let Some(rtt) = self.rtt else { return };
        if now - self.space_at < rtt {
            return;
        }
        let copied = self.nxt - self.space_seq;
        if copied > self.space {
            let mut window = 2 * copied + 16 * u64::from(self.mss);
            let grow = u128::from(window) * u128::from(copied - self.space) / u128::from(self.space.max(1));
            window = window.saturating_add((2 * grow).min(u128::from(self.buffer_max)) as u64);
            self.buffer = self.buffer.max((2 * window).min(self.buffer_max));
            self.space = copied;
        }
        self.space_seq = self.nxt;
        self.space_at = now;
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
                } else if !self.demand_cwr {
                    self.enter_quick(2);
                    self.demand_cwr = true;
                }
            }
            Ecn::Ect0 | Ecn::Ect1 => {
                self.ecn_seen = true;
                if self.exact_ce {
                    self.turn_ce(false);
                }
            }
        }
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
