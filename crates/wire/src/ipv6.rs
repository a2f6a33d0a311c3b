//! IPv6 with extension headers (RFC 8200; the authentication header of RFC 4302). Not supported: putting fragments together.

use crate::bytes::{array, be16, be32};
use crate::{Ecn, WireError};

/// Bytes of the header without extension headers.
pub const LEN: usize = 40;

/// Next-header numbers of the extension headers that are stepped over.
pub mod kind {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const AUTHENTICATION: u8 = 51;
    pub const DESTINATION: u8 = 60;
}

/// A packet's bytes. Its header is known to be there, with all extension headers, and the whole packet is as long as it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a> {
    bytes: &'a [u8],
    /// Where the upper protocol begins, and which it is.
    above: usize,
    protocol: u8,
}

impl<'a> View<'a> {
    /// `bytes` may end behind the headers; `wire` is how many there are on the wire.
    ///
    /// # Errors
    /// What is no IPv6 packet, or not all of one.
    pub fn new(bytes: &'a [u8], wire: usize) -> Result<View<'a>, WireError> {
        if bytes.len() < LEN {
            return Err(WireError::Short);
        }
        if bytes[0] >> 4 != 6 {
            return Err(WireError::NotIpv6);
        }
        let total = LEN + usize::from(be16(bytes, 4));
        if total > wire {
            return Err(WireError::LengthBeyondEnd);
        }
        let bytes = &bytes[..total.min(bytes.len())];
        let mut extensions = Extensions { bytes, at: LEN, kind: bytes[6] };
        for extension in &mut extensions {
            extension?;
        }
        Ok(View { bytes, above: extensions.at, protocol: extensions.kind })
    }
    pub fn dscp(&self) -> u8 {
        (be16(self.bytes, 0) >> 6 & 0x3f) as u8
    }
    pub fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.bytes[1] >> 4)
    }
    pub fn flow_label(&self) -> u32 {
        be32(self.bytes, 0) & 0xf_ffff
    }
    pub fn hop_limit(&self) -> u8 {
        self.bytes[7]
    }
    pub fn from(&self) -> [u8; 16] {
        array(self.bytes, 8)
    }
    pub fn to(&self) -> [u8; 16] {
        array(self.bytes, 24)
    }
    /// Extension headers in order: number, and bytes behind the next-header field.
    pub fn extensions(&self) -> impl Iterator<Item = (u8, &'a [u8])> {
        Extensions { bytes: self.bytes, at: LEN, kind: self.bytes[6] }.filter_map(Result::ok)
    }
    /// What stands behind the extension headers; of a fragment but the first, the number that its first fragment has there.
    pub fn protocol(&self) -> u8 {
        self.protocol
    }
    /// A part of a packet, not a whole one.
    pub fn is_fragment(&self) -> bool {
        self.extensions().any(|(kind, body)| kind == kind::FRAGMENT && be16(body, 1) & 0xfff9 != 0)
    }
    /// As much as there is of what is above the extension headers.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.above..]
    }
    /// Bytes of it on the wire.
    pub fn payload_len(&self) -> usize {
        LEN + usize::from(be16(self.bytes, 4)) - self.above
    }
}

/// Steps over extension headers; then `kind` and `at` are those of what follows.
struct Extensions<'a> {
    bytes: &'a [u8],
    at: usize,
    kind: u8,
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Result<(u8, &'a [u8]), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let units = |bytes: &[u8]| bytes.get(1).map_or(0, |units| usize::from(*units));
        let rest = &self.bytes[self.at..];
        let length = match self.kind {
            kind::HOP_BY_HOP | kind::ROUTING | kind::DESTINATION => 8 + 8 * units(rest),
            kind::FRAGMENT => 8,
            kind::AUTHENTICATION => 8 + 4 * units(rest),
            _ => return None,
        };
        let Some(header) = rest.get(..length) else {
            // Nothing more is said of what cannot be read.
            self.kind = u8::MAX;
            return Some(Err(WireError::ExtensionHeader));
        };
        let kind = std::mem::replace(&mut self.kind, header[0]);
        self.at += length;
        Some(Ok((kind, &header[1..])))
    }
}

/// An extension header: its number, and its bytes behind the next-header field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    kind: u8,
    body: Vec<u8>,
}

impl Extension {
    /// # Errors
    /// A number that is none of [`kind`]; a body whose length is not the one that its first byte and kind say.
    pub fn new(kind: u8, body: Vec<u8>) -> Result<Extension, WireError> {
        let units = body.first().map_or(0, |units| usize::from(*units));
        let length = match kind {
            kind::HOP_BY_HOP | kind::ROUTING | kind::DESTINATION => 8 + 8 * units,
            kind::FRAGMENT => 8,
            kind::AUTHENTICATION => 8 + 4 * units,
            _ => return Err(WireError::ExtensionHeader),
        };
        if body.len() + 1 == length { Ok(Extension { kind, body }) } else { Err(WireError::ExtensionHeader) }
    }
    pub fn kind(&self) -> u8 {
        self.kind
    }
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

/// The header as fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    pub from: [u8; 16],
    pub to: [u8; 16],
    /// What stands behind the extension headers.
    pub protocol: u8,
    pub hop_limit: u8,
    /// 0 to 63.
    pub dscp: u8,
    pub ecn: Ecn,
    /// 20 bits.
    pub flow_label: u32,
    pub extensions: Vec<Extension>,
    /// Bytes that follow the extension headers.
    pub payload: u16,
}

impl Header {
    pub fn parse(view: &View) -> Header {
        let extension = |(kind, body): (u8, &[u8])| Extension { kind, body: body.to_vec() };
        Header {
            from: view.from(),
            to: view.to(),
            protocol: view.protocol(),
            hop_limit: view.hop_limit(),
            dscp: view.dscp(),
            ecn: view.ecn(),
            flow_label: view.flow_label(),
            extensions: view.extensions().map(extension).collect(),
            payload: view.payload_len() as u16,
        }
    }

    /// Appends the header and the extension headers.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let class = u32::from(self.dscp) << 2 | u32::from(self.ecn as u8);
        let first = 6 << 28 | class << 20 | self.flow_label & 0xf_ffff;
        let length = self.extensions.iter().map(|e| e.body.len() + 1).sum::<usize>() as u16;
        out.extend_from_slice(&first.to_be_bytes());
        out.extend_from_slice(&length.saturating_add(self.payload).to_be_bytes());
        let mut next = self.extensions.iter().map(|e| e.kind).chain([self.protocol]);
        out.extend(next.next());
        out.push(self.hop_limit);
        out.extend_from_slice(&self.from);
        out.extend_from_slice(&self.to);
        for extension in &self.extensions {
            out.extend(next.next());
            out.extend_from_slice(&extension.body);
        }
    }
}
