//! ARP for IPv4 over Ethernet (RFC 826). Not supported: other hardware and protocols.

use crate::WireError;
use crate::bytes::{array, be16};
use crate::ethernet::{Mac, kind};

/// Bytes of a packet.
pub const LEN: usize = 28;

pub const REQUEST: u16 = 1;
pub const REPLY: u16 = 2;

/// Bytes that are known to be an ARP packet for IPv4 over Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// # Errors
    /// Bytes that are not.
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, WireError> {
        match bytes.get(..LEN) {
            // Ethernet, IPv4, and the lengths of their addresses.
            Some([0, 1, high, low, 6, 4, ..]) if u16::from_be_bytes([*high, *low]) == kind::IPV4 => {
                Ok(View(bytes))
            }
            _ => Err(WireError::Arp),
        }
    }
    /// [`REQUEST`], [`REPLY`] or another.
    pub fn operation(&self) -> u16 {
        be16(self.0, 6)
    }
    pub fn sender(&self) -> (Mac, [u8; 4]) {
        (array(self.0, 8), array(self.0, 14))
    }
    pub fn target(&self) -> (Mac, [u8; 4]) {
        (array(self.0, 18), array(self.0, 24))
    }
}

/// A packet as fields: what is asked or answered, by whom, and whom it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Packet {
    pub operation: u16,
    pub sender: (Mac, [u8; 4]),
    pub target: (Mac, [u8; 4]),
}

impl Packet {
    pub fn parse(view: &View) -> Packet {
        Packet { operation: view.operation(), sender: view.sender(), target: view.target() }
    }

    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, 1]);
        out.extend_from_slice(&kind::IPV4.to_be_bytes());
        out.extend_from_slice(&[6, 4]);
        out.extend_from_slice(&self.operation.to_be_bytes());
        for (mac, ip) in [self.sender, self.target] {
            out.extend_from_slice(&mac);
            out.extend_from_slice(&ip);
        }
    }
}
