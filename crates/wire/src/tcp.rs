//! TCP: a view of a segment's bytes, and a segment as fields: what is on the wire but for addresses, ports and the payload's bytes.
//!
//! Source: RFC 9293 (header), RFC 7323 (window scale, timestamps), RFC 2018 (SACK), RFC 3168 and the accurate-ECN draft
//! (ACE in AE, CWR, ECE; its option is one of those that are passed on), RFC 6994 (experimental options, kinds 253 and 254).
//! Not supported: the urgent pointer, which is written as 0.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use crate::bytes::{Put, be16, be32, put16};
use crate::checksum::Sum;
use crate::options::{Iter, OptionList};
pub use crate::{Ecn, WireError};

/// Bytes of the header without options.
pub const LEN: usize = 20;

/// Most bytes that a header has.
pub const MAX_LEN: usize = 60;

pub const PROTOCOL: u8 = 6;

/// Where the checksum stands.
pub const CHECKSUM: usize = 16;

/// Kinds of options that a [`Segment`] has as fields.
mod kind {
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}

/// MSS of a peer that says none (RFC 9293 section 3.7.1).
const DEFAULT_MSS: u16 = 536;

/// A segment's bytes, of which the header is known to be there. The checksum is not checked: see [`View::verify`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a> {
    bytes: &'a [u8],
    wire: usize,
}

impl<'a> View<'a> {
    /// `bytes` may end behind the header; `wire` is how many IP says that there are.
    ///
    /// # Errors
    /// A header that is cut short.
    #[inline]
    pub fn new(bytes: &'a [u8], wire: usize) -> Result<View<'a>, WireError> {
        if bytes.len() < LEN {
            return Err(WireError::TcpHeader);
        }
        let view = View { bytes, wire };
        let header = view.header_len();
        if header < LEN || header > bytes.len() || header > wire {
            return Err(WireError::TcpHeader);
        }
        Ok(view)
    }
    pub fn port_from(&self) -> u16 {
        be16(self.bytes, 0)
    }
    pub fn port_to(&self) -> u16 {
        be16(self.bytes, 2)
    }
    pub fn seq(&self) -> u32 {
        be32(self.bytes, 4)
    }
    pub fn ack(&self) -> u32 {
        be32(self.bytes, 8)
    }
    pub fn header_len(&self) -> usize {
        usize::from(self.bytes[12] >> 4) * 4
    }
    pub fn flags(&self) -> Flags {
        Flags(be16(self.bytes, 12) & 0x1ff)
    }
    pub fn window(&self) -> u16 {
        be16(self.bytes, 14)
    }
    pub fn checksum(&self) -> u16 {
        be16(self.bytes, CHECKSUM)
    }
    pub fn urgent(&self) -> u16 {
        be16(self.bytes, 18)
    }
    /// Of the bytes behind the fixed part.
    pub fn options(&self) -> Iter<'a> {
        Iter::new(&self.bytes[LEN..self.header_len()])
    }
    /// As much of the payload as there is.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len()..self.wire.min(self.bytes.len())]
    }
    /// Bytes of the payload on the wire.
    pub fn payload_len(&self) -> usize {
        self.wire - self.header_len()
    }
    /// Whether the checksum is right. `sum` is that of the pseudo header, and of the payload if that is not zeros.
    ///
    /// # Errors
    /// It is not.
    #[inline]
    pub fn verify(&self, sum: Sum) -> Result<(), WireError> {
        match sum.with(&self.bytes[..self.header_len()]).check() {
            0 => Ok(()),
            _ => Err(WireError::TcpChecksum),
        }
    }
}

/// The flags of the header, AE included.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    pub const FIN: Flags = Flags(0x001);
    pub const SYN: Flags = Flags(0x002);
    pub const RST: Flags = Flags(0x004);
    pub const PSH: Flags = Flags(0x008);
    pub const ACK: Flags = Flags(0x010);
    pub const URG: Flags = Flags(0x020);
    pub const ECE: Flags = Flags(0x040);
    pub const CWR: Flags = Flags(0x080);
    pub const AE: Flags = Flags(0x100);

    pub const fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }
    pub const fn any(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }
    /// The three bits AE, CWR, ECE as the counter ACE.
    pub const fn ace(self) -> u8 {
        ((self.0 >> 6) & 7) as u8
    }
    pub const fn with_ace(self, ace: u8) -> Flags {
        Flags((self.0 & !0x1c0) | (((ace & 7) as u16) << 6))
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
        let set: Vec<_> =
            names.iter().enumerate().filter(|(i, _)| self.0 >> i & 1 == 1).map(|(_, n)| *n).collect();
        f.write_str(&set.join("|"))
    }
}

/// Up to four blocks of data received out of order, the most recent first (RFC 2018 section 4). The first may be a
/// duplicate report (RFC 2883).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    len: u8,
    blocks: [(u32, u32); 4],
}

impl SackBlocks {
    pub fn push(&mut self, left: u32, right: u32) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = (left, right);
            self.len += 1;
        }
    }
    #[inline]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Options that only a SYN carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynOptions {
    pub mss: u16,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
}

/// A segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    pub seq: u32,
    pub ack: u32,
    /// Bytes of payload; SYN and FIN not counted.
    pub payload: u32,
    pub flags: Flags,
    /// As in the header, not yet scaled.
    pub window: u16,
    pub ecn: Ecn,
    pub syn: Option<SynOptions>,
    /// TSval and TSecr, in milliseconds.
    pub timestamps: Option<(u32, u32)>,
    pub sack: SackBlocks,
}

impl Segment {
    /// Bytes of the TCP header with its options, padded as Linux does.
    #[inline]
    pub fn header_len(&self) -> u32 {
        let mut options = 0;
        if let Some(syn) = self.syn {
            options += 4;
            if syn.window_scale.is_some() {
                options += 4;
            }
            if syn.sack_permitted && self.timestamps.is_none() {
                options += 4;
            }
        }
        if self.timestamps.is_some() {
            options += 12;
        }
        if !self.sack.is_empty() {
            options += 4 + 8 * self.sack.as_slice().len() as u32;
        }
        20 + options
    }

    /// Reads a segment that came in a packet with this ECN field. Options that it has no field for, as experimental ones, go to
    /// `other`, kind and data.
    ///
    /// # Errors
    /// An option with a wrong length.
    #[inline]
    pub fn parse(view: &View, ecn: Ecn, mut other: impl FnMut(u8, &[u8])) -> Result<Segment, WireError> {
        let mut segment = Segment {
            seq: view.seq(),
            ack: view.ack(),
            flags: view.flags(),
            window: view.window(),
            payload: view.payload_len() as u32,
            ecn,
            ..Segment::default()
        };
        let mut syn = SynOptions { mss: DEFAULT_MSS, window_scale: None, sack_permitted: false };
        for option in view.options() {
            let (kind, data) = option.map_err(|_| WireError::TcpOption)?;
            match (kind, data.len()) {
                (kind::MSS, 2) => syn.mss = be16(data, 0),
                (kind::WINDOW_SCALE, 1) => syn.window_scale = Some(data[0]),
                (kind::SACK_PERMITTED, 0) => syn.sack_permitted = true,
                (kind::TIMESTAMPS, 8) => segment.timestamps = Some((be32(data, 0), be32(data, 4))),
                (kind::SACK, n) if n % 8 == 0 && n <= 32 => {
                    let mut blocks = SackBlocks::default();
                    for block in data.chunks_exact(8) {
                        blocks.push(be32(block, 0), be32(block, 4));
                    }
                    segment.sack = blocks;
                }
                (kind::MSS..=kind::SACK | kind::TIMESTAMPS, _) => return Err(WireError::TcpOption),
                _ => other(kind, data),
            }
        }
        if segment.flags.has(Flags::SYN) {
            segment.syn = Some(syn);
        }
        Ok(segment)
    }

    /// Appends the header with `others` behind the segment's own options, as Linux has them, and a right checksum. `sum` is that of
    /// the pseudo header, and of the payload if that is not zeros.
    pub fn emit(&self, ports: (u16, u16), others: &OptionList, sum: Sum, out: &mut impl Put) {
        let start = out.len();
        let header = self.header_len() + others.padded_len() as u32;
        debug_assert!(header <= MAX_LEN as u32, "whoever adds an option sees to the room for it");
        let mut fixed = [0; LEN];
        self.write_fixed(ports, header, &mut fixed);
        out.put(&fixed);
        self.emit_options(out);
        others.emit(1, out);
        let check = sum.with(&out[start..]).check();
        put16(out, start + CHECKSUM, check);
    }

    /// Writes the header's fixed part; `header` is the length of the whole of it. The checksum is 0.
    #[inline]
    pub(crate) fn write_fixed(&self, ports: (u16, u16), header: u32, out: &mut [u8; LEN]) {
        put16(out, 0, ports.0);
        put16(out, 2, ports.1);
        out[4..8].copy_from_slice(&self.seq.to_be_bytes());
        out[8..12].copy_from_slice(&self.ack.to_be_bytes());
        put16(out, 12, (header as u16 / 4) << 12 | self.flags.0);
        put16(out, 14, self.window);
    }

    /// Appends the segment's own options in Linux's order, padded as there.
    #[inline]
    pub(crate) fn emit_options(&self, out: &mut impl Put) {
        if let Some(syn) = self.syn {
            out.put(&[kind::MSS, 4]);
            out.put(&syn.mss.to_be_bytes());
            if syn.sack_permitted && self.timestamps.is_none() {
                out.put(&[1, 1, kind::SACK_PERMITTED, 2]);
            }
        }
        if let Some((val, ecr)) = self.timestamps {
            // SACK-permitted takes the place of the padding.
            let lead =
                if self.syn.is_some_and(|s| s.sack_permitted) { [kind::SACK_PERMITTED, 2] } else { [1, 1] };
            let (val, ecr) = (val.to_be_bytes(), ecr.to_be_bytes());
            out.put(&[
                lead[0],
                lead[1],
                kind::TIMESTAMPS,
                10,
                val[0],
                val[1],
                val[2],
                val[3],
                ecr[0],
                ecr[1],
                ecr[2],
                ecr[3],
            ]);
        }
        if let Some(shift) = self.syn.and_then(|s| s.window_scale) {
            out.put(&[1, kind::WINDOW_SCALE, 3, shift]);
        }
        let blocks = self.sack.as_slice();
        if !blocks.is_empty() {
            out.put(&[1, 1, kind::SACK, 2 + 8 * blocks.len() as u8]);
            for (left, right) in blocks {
                out.put(&left.to_be_bytes());
                out.put(&right.to_be_bytes());
            }
        }
    }
}
