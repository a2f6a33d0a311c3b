//! A TCP segment as fields: what is on the wire but for addresses, ports and the payload's bytes.
//!
//! Source: RFC 9293 (header), RFC 7323 (window scale, timestamps), RFC 2018 (SACK), RFC 3168 and the accurate-ECN draft
//! (ACE in AE, CWR, ECE).

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

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

/// The ECN field of the IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Ecn {
    #[default]
    NotEct = 0,
    Ect1 = 1,
    Ect0 = 2,
    Ce = 3,
}

impl Ecn {
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
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
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }
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

    /// Sequence numbers that the segment takes.
    pub fn seq_len(&self) -> u32 {
        self.payload + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}
