//! TCP and UDP endpoints for the simulator, as Linux has them, sans I/O.
//!
//! A [`tcp::Connection`] owns no clock, socket or random source: segments go in with [`receive`](tcp::Connection::receive),
//! come out of [`transmit`](tcp::Connection::transmit), and timers run in [`advance`](tcp::Connection::advance), which is due
//! at [`next_wakeup`](tcp::Connection::next_wakeup). Payload is a length; its bytes are defined as zero.
//!
//! [`cc`] holds the congestion controls, one file each; each file names its source and its known deviations. [`host`] is what may stand
//! between a host's connections and its port.

#![forbid(unsafe_code)]

pub mod cc;
pub mod host;
pub mod tcp;
pub mod ticks;
pub mod udp;

// Segments are the plain form of `wire::tcp`; a host's packets are written and read by `wire::frame`.
pub use ::wire::frame as wire;
pub use ::wire::tcp as segment;
