//! What can be set of a connection; the defaults are Linux's.

use units::{Bytes, Time};

/// Before the first sample of a round trip (RFC 6298 section 2.1).
pub const RTO_INIT: Time = Time::from_secs(1);
/// Of data, where the SYN was sent again and told no round trip (section 5.7).
pub(super) const RTO_FALLBACK: Time = Time::from_secs(3);
pub const RTO_MAX: Time = Time::from_secs(120);

/// `net.ipv4.tcp_ecn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EcnMode {
    /// Neither asked for nor accepted.
    Off,
    /// Accepted when the peer asks (Linux's default).
    #[default]
    Passive,
    /// RFC 3168.
    On,
    /// Accurate ECN.
    Accurate,
}

#[derive(Debug, Clone)]
pub struct Config {
    /// Largest payload of a segment, options not counted: the MTU less 40.
    pub mss: u32,
    pub sack: bool,
    pub timestamps: bool,
    pub window_scaling: bool,
    pub ecn: EcnMode,
    /// Packets of the first window (RFC 6928).
    pub initial_cwnd: u32,
    /// `tcp_rto_min_us`.
    pub rto_min: Time,
    /// Longest and shortest delay of an ACK.
    pub delayed_ack_max: Time,
    pub delayed_ack_min: Time,
    /// ACKs at the start of a connection that are not delayed (`TCP_MAX_QUICKACKS`).
    pub quick_acks: u32,
    /// No ACK is delayed (`RTAX_QUICKACK`, `ip route ... quickack 1`).
    pub always_quick: bool,
    /// Segments are handed down in bursts of up to this many bytes, sized as Linux does; `None`: one by one.
    pub segmentation_offload: Option<Bytes>,
    /// `net.ipv4.tcp_limit_output_bytes`, 4 MiB in Linux: what a connection has in its host's own queue at most; less, if its rate
    /// needs less. `None`: all that its window allows, as if the host's link were behind its own queue.
    pub limit_output: Option<Bytes>,
    /// `net.ipv4.tcp_rmem`: the receive buffer at the start and at most.
    pub receive_buffer: Bytes,
    pub receive_buffer_max: Bytes,
    /// `net.ipv4.tcp_slow_start_after_idle`.
    pub slow_start_after_idle: bool,
    /// `net.ipv4.tcp_reordering`.
    pub reordering: u32,
    /// Times that a SYN or data is sent again before the connection is given up; those of a SYN without the first four.
    pub syn_retries: u32,
    pub retries: u32,
    /// Space sending by the pacing rate, whether or not the congestion control needs it.
    pub pacing: bool,
    /// The kernel's clock, by which CUBIC goes: `CONFIG_HZ`, 250 or 1000 on most hosts. Timers are exact.
    pub ticks_per_second: u32,
    /// First sequence number.
    pub initial_seq: u32,
    /// Of the congestion control's random numbers, and of the ticks' phase.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mss: 1460,
            sack: true,
            timestamps: true,
            window_scaling: true,
            ecn: EcnMode::default(),
            initial_cwnd: 10,
            rto_min: Time::from_ms(200),
            delayed_ack_max: Time::from_ms(200),
            delayed_ack_min: Time::from_ms(40),
            quick_acks: 16,
            always_quick: false,
            segmentation_offload: Some(Bytes::new(65_536)),
            limit_output: None,
            receive_buffer: Bytes::new(131_072),
            receive_buffer_max: Bytes::new(33_554_432),
            slow_start_after_idle: true,
            reordering: 3,
            syn_retries: 6,
            retries: 15,
            pacing: false,
            ticks_per_second: 250,
            initial_seq: 0,
            seed: 0,
        }
    }
}
