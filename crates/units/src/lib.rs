//! Time, rates and sizes: types of their own, parsed from and printed as people write them; and seeded random numbers.
//!
//! | type | holds | is written |
//! |---|---|---|
//! | [`Time`] | picoseconds, a point of time since the start or a span | `20 ms`, `1.5 us`, `3 s` |
//! | [`Rate`] | bits per second | `10 Gbit/s`, `500 kbit/s` |
//! | [`Bytes`] | bytes | `1500 B`, `128 KiB`, `100 MB` |
//!
//! Parsing is exact (`0.1 us` is 100 000 ps) and refuses what is not a whole number of the smallest unit, negative, or too
//! large. Printing uses the largest unit that loses nothing, so that what is printed parses to the same value.

#![forbid(unsafe_code)]

mod bytes;
mod random;
mod rate;
mod text;
mod time;

pub use bytes::Bytes;
pub use random::{Random, SplitMix};
pub use rate::Rate;
pub use text::ParseError;
pub use time::Time;
