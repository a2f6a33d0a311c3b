//! What an ACK brought (`FLAG_*`).

pub(super) const DATA_ACKED: u32 = 1;
pub(super) const UNA_ADVANCED: u32 = 2;
pub(super) const DATA_SACKED: u32 = 4;
pub(super) const RETRANS_DATA_ACKED: u32 = 8;
/// A packet sent only once was (selectively) acknowledged, below `high_seq`.
pub(super) const ORIG_SACK_ACKED: u32 = 16;
pub(super) const DSACK: u32 = 32;
pub(super) const ECE: u32 = 64;
pub(super) const LOST_RETRANS: u32 = 128;
pub(super) const WINDOW_UPDATE: u32 = 256;
pub(super) const SYN_ACKED: u32 = 512;
/// Data, so no duplicate ACK.
pub(super) const DATA: u32 = 1024;
/// RFC 5681 section 2: what has one of these is no duplicate ACK.
pub(super) const NO_DUPLICATE: u32 = UNA_ADVANCED | DATA | WINDOW_UPDATE;
/// A duplicate ACK of a peer without SACK.
pub(super) const DUPLICATE: u32 = 2048;
/// D-SACK of a tail loss probe.
pub(super) const DSACK_TLP: u32 = 4096;
/// The timeout begins anew, as it does after an ACK of data.
pub(super) const SET_TIMER: u32 = 8192;
