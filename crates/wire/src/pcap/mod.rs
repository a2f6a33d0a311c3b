//! Captures: pcap and pcapng files in, pcap files out.
//!
//! pcap with microseconds or nanoseconds in either byte order; pcapng (draft-ietf-opsawg-pcapng) with any number of
//! sections and interfaces and their timestamp resolutions and offsets; either also in gzip (RFC 1952) or zstd (RFC 8878). Files are
//! read as a stream, and `-` is standard input. A file that ends in
//! the middle of a record gives what came before; [`Reader::cut`] tells.

mod ahead;
mod error;
mod format;
mod merge;
mod ng;
mod open;
mod read;
mod source;
mod write;
mod zstd;

pub use error::{CaptureError, plain, unreadable};
pub use format::{ETHERNET, WHOLE, file_header, packet_header};
pub use merge::Merge;
pub use read::Reader;
pub use source::Packet;
pub use write::{Outputs, Written};

/// Longest packet that a capture may hold; a longer one is a sign of damage.
pub const MAX_PACKET: u32 = 1 << 24;
