//! VLAN tags (IEEE 802.1Q, 802.1ad): four bytes each, behind the addresses of an Ethernet header.

use crate::WireError;
use crate::bytes::be16;
use crate::ethernet::{self, kind};

/// Bytes of a tag, with the type of what follows it.
pub const LEN: usize = 4;

/// The bytes behind a type field that says VLAN, of which the tag is known to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// # Errors
    /// Fewer bytes than a tag has.
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, WireError> {
        if bytes.len() < LEN { Err(WireError::VlanTag) } else { Ok(View(bytes)) }
    }
    pub fn priority(&self) -> u8 {
        self.0[0] >> 5
    }
    pub fn drop_eligible(&self) -> bool {
        self.0[0] & 0x10 != 0
    }
    pub fn id(&self) -> u16 {
        be16(self.0, 0) & 0xfff
    }
    /// Type of what follows.
    pub fn kind(&self) -> u16 {
        be16(self.0, 2)
    }
    pub fn payload(&self) -> &'a [u8] {
        &self.0[LEN..]
    }
}

/// A tag as fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tag {
    /// 0 to 7.
    pub priority: u8,
    pub drop_eligible: bool,
    /// 0 to 4095.
    pub id: u16,
    /// Type of what follows.
    pub kind: u16,
}

impl Tag {
    pub fn parse(view: &View) -> Tag {
        Tag {
            priority: view.priority(),
            drop_eligible: view.drop_eligible(),
            id: view.id(),
            kind: view.kind(),
        }
    }

    pub fn emit(&self, out: &mut Vec<u8>) {
        let control = u16::from(self.priority) << 13 | u16::from(self.drop_eligible) << 12 | self.id & 0xfff;
        out.extend_from_slice(&control.to_be_bytes());
        out.extend_from_slice(&self.kind.to_be_bytes());
    }
}

/// Whether this type is that of a tag.
pub fn is_tag(kind: u16) -> bool {
    matches!(kind, kind::VLAN | kind::SERVICE_VLAN)
}

/// Where what follows a frame's tags begins, and its type. `None`: the frame ends before.
pub fn inner(frame: &[u8]) -> Option<(usize, u16)> {
    let mut at = ethernet::LEN;
    loop {
        let kind = be16(frame.get(at - 2..at)?, 0);
        if !is_tag(kind) {
            return Some((at, kind));
        }
        at += LEN;
    }
}

/// Where the IP header of a frame begins: behind Ethernet and its VLAN tags. `None`: there is none.
pub fn ip(frame: &[u8]) -> Option<usize> {
    let (at, kind) = inner(frame)?;
    matches!(kind, kind::IPV4 | kind::IPV6).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_stepped_over() {
        let mut frame = vec![0; 12];
        frame.extend_from_slice(&[0x88, 0xa8, 0, 1, 0x81, 0, 0xb0, 2, 8, 0]);
        assert_eq!(inner(&frame), Some((22, kind::IPV4)));
        assert_eq!(inner(&frame[..21]), None);
        assert_eq!(ip(&frame), Some(22));
        let tag = Tag::parse(&View::new(&frame[18..]).expect("four bytes"));
        assert_eq!(tag, Tag { priority: 5, drop_eligible: true, id: 2, kind: kind::IPV4 });
        assert_eq!(View::new(&frame[19..]), Err(WireError::VlanTag));
    }
}
