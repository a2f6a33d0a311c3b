//! Ethernet II (IEEE 802.3 clause 3, without preamble and frame check sequence).

use crate::WireError;
use crate::bytes::{array, be16};

/// Bytes of the header.
pub const LEN: usize = 14;

pub type Mac = [u8; 6];

/// What the type field says.
pub mod kind {
    pub const IPV4: u16 = 0x0800;
    pub const ARP: u16 = 0x0806;
    pub const VLAN: u16 = 0x8100;
    pub const IPV6: u16 = 0x86dd;
    /// The outer one of two VLAN tags (IEEE 802.1ad).
    pub const SERVICE_VLAN: u16 = 0x88a8;
}

/// A frame's bytes, of which the header is known to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// # Errors
    /// Fewer bytes than a header has.
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, WireError> {
        if bytes.len() < LEN { Err(WireError::Short) } else { Ok(View(bytes)) }
    }
    pub fn to(&self) -> Mac {
        array(self.0, 0)
    }
    pub fn from(&self) -> Mac {
        array(self.0, 6)
    }
    /// See [`kind`].
    pub fn kind(&self) -> u16 {
        be16(self.0, 12)
    }
    pub fn payload(&self) -> &'a [u8] {
        &self.0[LEN..]
    }
}

/// The header as fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    pub to: Mac,
    pub from: Mac,
    pub kind: u16,
}

impl Header {
    pub fn parse(view: &View) -> Header {
        Header { to: view.to(), from: view.from(), kind: view.kind() }
    }

    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to);
        out.extend_from_slice(&self.from);
        out.extend_from_slice(&self.kind.to_be_bytes());
    }
}
