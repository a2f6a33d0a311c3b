//! ICMP of IPv4 (RFC 792) and of IPv6 (RFC 4443): type, code, and four bytes whose meaning the type gives. The two differ in their
//! numbers, and ICMPv6's checksum covers a pseudo header too.

use crate::WireError;
use crate::bytes::{array, be16, put16};
use crate::checksum::Sum;

/// Bytes of the header.
pub const LEN: usize = 8;

pub const PROTOCOL: u8 = 1;
pub const PROTOCOL_V6: u8 = 58;

/// Types of ICMP.
pub mod kind {
    pub const ECHO_REPLY: u8 = 0;
    pub const UNREACHABLE: u8 = 3;
    pub const ECHO_REQUEST: u8 = 8;
    pub const TIME_EXCEEDED: u8 = 11;
}

/// Types of ICMPv6.
pub mod kind_v6 {
    pub const UNREACHABLE: u8 = 1;
    pub const PACKET_TOO_BIG: u8 = 2;
    pub const TIME_EXCEEDED: u8 = 3;
    pub const ECHO_REQUEST: u8 = 128;
    pub const ECHO_REPLY: u8 = 129;
}

/// A message's bytes, whose checksum is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// A whole message. `pseudo`: nothing for ICMP; the sum of the pseudo header for ICMPv6.
    ///
    /// # Errors
    /// A message that is cut short, or with a wrong checksum.
    pub fn new(bytes: &'a [u8], pseudo: Sum) -> Result<View<'a>, WireError> {
        if bytes.len() < LEN {
            return Err(WireError::IcmpHeader);
        }
        if pseudo.with(bytes).check() != 0 {
            return Err(WireError::IcmpChecksum);
        }
        Ok(View(bytes))
    }
    pub fn kind(&self) -> u8 {
        self.0[0]
    }
    pub fn code(&self) -> u8 {
        self.0[1]
    }
    pub fn checksum(&self) -> u16 {
        be16(self.0, 2)
    }
    /// Identifier and sequence number of an echo; the next hop's MTU in an ICMP "fragmentation needed" (its low half) and an
    /// ICMPv6 "packet too big".
    pub fn rest(&self) -> [u8; 4] {
        array(self.0, 4)
    }
    pub fn payload(&self) -> &'a [u8] {
        &self.0[LEN..]
    }
}

/// The header as fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    pub kind: u8,
    pub code: u8,
    /// See [`View::rest`].
    pub rest: [u8; 4],
}

impl Header {
    pub fn parse(view: &View) -> Header {
        Header { kind: view.kind(), code: view.code(), rest: view.rest() }
    }

    /// Appends a message with a right checksum; `pseudo` as in [`View::new`].
    pub fn emit(&self, payload: &[u8], pseudo: Sum, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[self.kind, self.code, 0, 0]);
        out.extend_from_slice(&self.rest);
        out.extend_from_slice(payload);
        let check = pseudo.with(&out[start..]).check();
        put16(out, start + 2, check);
    }
}
