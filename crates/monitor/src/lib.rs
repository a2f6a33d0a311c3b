//! Watches traffic passively: flows of captures, with round-trip times, throughput and retransmissions.
//!
//! A packet's bytes become [`Seen`]; [`Table`] keeps a state for each connection and takes round-trip times by one of four rules
//! ([`Rule`]): each is what a known tool or paper does, to the sample. [`watch`] does that with capture files.
//!
//! Memory is bounded: a state for each of at most so many flows, of which each keeps at most 10 000 segments that wait for their
//! acknowledgment in either direction, and 4096 samples before they are counted by value. Segments and samples of all flows together have
//! a number of bytes ([`Options::rtt_bytes`]), beyond which further ones are counted alone.
//!
//! Where packets were captured on both sides of a router, [`Taps`] pairs the copies of each.

#![forbid(unsafe_code)]

mod capture;
mod input;
mod packet;
mod report;
mod room;
mod rtt;
mod spin;
mod summary;
mod table;
mod taps;

pub use capture::{Options, SecondTap, Watch, Watched, watch};
pub use packet::{Endpoint, Mark, Seen, Unseen, mark, read};
pub use rtt::Rule;
pub use summary::Summary;
pub use table::{Flow, Sample, Table};
pub use taps::{Delay, Passage, Side, Taps};
pub use wire::pcap::Packet;

/// Why captures cannot be watched: one message with the place and the cure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl From<wire::pcap::CaptureError> for Failure {
    fn from(error: wire::pcap::CaptureError) -> Failure {
        Failure(error.0)
    }
}
