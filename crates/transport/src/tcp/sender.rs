//! The sending side of a connection: its state. What it does stands in `output`, `ack`, `recovery` and `rack`.

use units::{Bytes, Rate, Time};

use super::config::Config;
use super::connection::CE_COUNTER_START;
use super::device::Device;
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::statistics::Statistics;
use crate::cc::{Control, Flow};
use crate::ticks::Ticks;

/// `tcp_max_reordering`.
pub(super) const MAX_REORDERING: u32 = 300;

/// The one timer of the sending side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    Retransmit,
    /// Tail loss probe.
    Probe,
    /// RACK's reordering timer.
    Reorder,
    /// Zero-window probe.
    Persist,
}

/// What goes into the next segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub seq: u64,
    /// Sequence numbers, SYN and FIN counted.
    pub len: u32,
    pub marks: u8,
    pub again: bool,
}

#[derive(Debug)]
pub(super) struct Sender {
    pub flow: Flow,
    pub cc: Control,
    pub board: Scoreboard,
    pub rtt: Rtt,
    pub rack: Rack,
    pub statistics: Statistics,

    pub rto_min: Time,
    pub sack: bool,
    pub tso_max: Option<Bytes>,
    pub initial_cwnd: u32,
    pub slow_start_after_idle: bool,
    pub reordering_min: u32,

    /// Offset behind the last byte that the application wrote; the SYN is offset 0.
    pub write_end: u64,
    /// The application has closed: a FIN follows the data.
    pub closing: bool,
    /// Offset behind the last that the peer's window allows, and the window.
    pub wnd_end: u64,
    pub snd_wnd: u64,

    /// The peer's counter of CE packets (accurate ECN), as far as it is known.
    pub peer_ce: u32,

    /// Packets that D-SACK has told of.
    pub duplicates: u64,
    pub undo_marker: Option<u64>,
    pub undo_retrans: i32,
    /// When the first retransmission of this recovery was sent.
    pub retrans_stamp: Option<Time>,
    /// The timestamp that the last ACK echoed, in milliseconds.
    pub echoed: Option<u32>,
    pub prr_delivered: u32,
    pub prr_out: u32,
    pub reordering: u32,
    pub reord_seen: u32,
    pub highest_sack: u64,
    pub frto: bool,
    pub retransmits: u32,
    pub tlp_high_seq: Option<u64>,
    pub tlp_retrans: bool,
    /// A probe is to be sent.
    pub probing: bool,
    /// Lost packets are to be sent again.
    pub retransmit: bool,
    /// The next new segment carries CWR.
    pub queue_cwr: bool,
    pub lost_now: Vec<u64>,
    pub lost_again: Vec<u64>,

    pub timer: Option<(Timer, Time)>,
    pub device: Device,
    /// Limit of a host's agents to the pacing rate; zero: there is none.
    pub max_pacing_rate: Rate,
    pub limit_output: Option<Bytes>,
    pub data_segments: u64,
    /// Segments of the current burst still to go.
    pub burst: u32,
    /// It had more than one.
    pub burst_of_many: bool,
    /// Since the last time that nothing more could be sent: new packets sent, and whether the window stopped it.
    pub sent_now: u32,
    pub limited_now: bool,
    pub cwnd_usage_seq: u64,
    pub cwnd_used: u32,
    pub cwnd_stamp: Time,
}

/// What RACK keeps.
#[derive(Debug, Default)]
pub(super) struct Rack {
    /// Sending time and end of the packet, of those delivered, that was sent last.
    pub sent: Time,
    pub end: u64,
    pub rtt: Time,
    pub advanced: bool,
    pub reo_wnd_steps: u32,
    pub reo_wnd_persist: u32,
    pub dsack_seen: bool,
    pub last_delivered: u64,
}

impl Sender {
    pub fn new(config: &Config, mss: u32, cc: Control) -> Sender {
        let paced = config.pacing || cc.needs_pacing();
        let mut flow = Flow::new(config.initial_cwnd, mss);
        flow.paced = paced;
        flow.random = config.seed;
        flow.ticks = Ticks::new(config.ticks_per_second, config.seed);
        Sender {
            flow,
            cc,
            board: Scoreboard::default(),
            rtt: Rtt::new(config.rto_min),
            rack: Rack::default(),
            statistics: Statistics::default(),
            rto_min: config.rto_min,
            sack: config.sack,
            tso_max: config.segmentation_offload,
            initial_cwnd: config.initial_cwnd,
            slow_start_after_idle: config.slow_start_after_idle,
            reordering_min: config.reordering,
            write_end: 1,
            closing: false,
            wnd_end: 1,
            snd_wnd: 0,
            peer_ce: CE_COUNTER_START,
            duplicates: 0,
            undo_marker: None,
            undo_retrans: 0,
            retrans_stamp: None,
            echoed: None,
            prr_delivered: 0,
            prr_out: 0,
            reordering: config.reordering,
            reord_seen: 0,
            highest_sack: 0,
            frto: false,
            retransmits: 0,
            tlp_high_seq: None,
            tlp_retrans: false,
            probing: false,
            retransmit: false,
            queue_cwr: false,
            lost_now: Vec::new(),
            lost_again: Vec::new(),
            timer: None,
            device: Device::default(),
            max_pacing_rate: Rate::ZERO,
            limit_output: config.limit_output,
            data_segments: 0,
            burst: 0,
            burst_of_many: false,
            sent_now: 0,
            limited_now: false,
            cwnd_usage_seq: 0,
            cwnd_used: 0,
            cwnd_stamp: Time::ZERO,
        }
    }
}
