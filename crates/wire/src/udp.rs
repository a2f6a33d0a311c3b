//! UDP (RFC 768).

use crate::WireError;
use crate::bytes::{be16, put16};
use crate::checksum::Sum;

/// Bytes of the header.
pub const LEN: usize = 8;

pub const PROTOCOL: u8 = 17;

/// Where the checksum stands.
pub const CHECKSUM: usize = 6;

/// A datagram's bytes, of which the header is known to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// `bytes` may end behind the header; `wire` is how many IP says that there are.
    ///
    /// # Errors
    /// A datagram that is cut short.
    #[inline]
    pub fn new(bytes: &'a [u8], wire: usize) -> Result<View<'a>, WireError> {
        if bytes.len() < LEN || wire < LEN { Err(WireError::UdpHeader) } else { Ok(View(bytes)) }
    }
    pub fn port_from(&self) -> u16 {
        be16(self.0, 0)
    }
    pub fn port_to(&self) -> u16 {
        be16(self.0, 2)
    }
    /// Bytes of header and payload, as the header has it.
    pub fn len(&self) -> usize {
        usize::from(be16(self.0, 4))
    }
    /// A datagram has a header.
    pub fn is_empty(&self) -> bool {
        false
    }
    pub fn checksum(&self) -> u16 {
        be16(self.0, CHECKSUM)
    }
    /// As much of the payload as there is.
    pub fn payload(&self) -> &'a [u8] {
        &self.0[LEN..self.len().clamp(LEN, self.0.len())]
    }
    /// Whether the checksum of a datagram that is all there is right, or there is none.
    ///
    /// # Errors
    /// It is wrong, or the length is.
    pub fn verify(&self, pseudo: Sum) -> Result<(), WireError> {
        let Some(whole) = self.0.get(..self.len()).filter(|whole| whole.len() >= LEN) else {
            return Err(WireError::UdpHeader);
        };
        match self.checksum() == 0 || pseudo.with(whole).check() == 0 {
            true => Ok(()),
            false => Err(WireError::UdpChecksum),
        }
    }
}

/// The header as fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    pub port_from: u16,
    pub port_to: u16,
    /// Bytes of payload.
    pub payload: u16,
}

impl Header {
    pub fn parse(view: &View) -> Header {
        let payload = view.len().saturating_sub(LEN) as u16;
        Header { port_from: view.port_from(), port_to: view.port_to(), payload }
    }

    /// Appends the header. `sum` is that of the pseudo header and of the payload; nothing is needed for zeros.
    pub fn emit(&self, sum: Sum, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.port_from.to_be_bytes());
        out.extend_from_slice(&self.port_to.to_be_bytes());
        out.extend_from_slice(&(LEN as u16).saturating_add(self.payload).to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        let check = sum.with(&out[start..]).check_udp();
        put16(out, start + CHECKSUM, check);
    }
}
