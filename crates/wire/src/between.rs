//! A header between Ethernet and IP that the hosts of a closed network agree on, in one of two forms. Both begin with their own
//! EtherType in the place of the payload's:
//!
//! | form | bytes behind the EtherType |
//! |---|---|
//! | [`Form::Shim`] | the payload's EtherType, the length of the data in a byte, data |
//! | [`Form::Tag`] | two bytes of data, the payload's EtherType: as a VLAN tag |

use crate::bytes::be16;
use crate::options::NoRoom;
use crate::{WireError, ethernet, vlan};

/// Most bytes of data in a shim.
pub const SHIM_DATA: usize = 64;
/// Bytes of data in a tag.
pub const TAG_DATA: usize = 2;
/// Where the type field of an Ethernet header stands.
const TYPE: usize = ethernet::LEN - 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Shim,
    Tag,
}

/// Whether a type field can say that such a header follows.
///
/// # Errors
/// Lengths (IEEE 802.3), and types that mean something else to a host.
pub fn demand_type(kind: u16) -> Result<(), String> {
    use ethernet::kind::{ARP, IPV4, IPV6};
    if kind >= 0x600 && !vlan::is_tag(kind) && ![IPV4, ARP, IPV6].contains(&kind) {
        return Ok(());
    }
    Err(format!(
        "0x{kind:04x} is no EtherType for a header of its own; choose another, as the experimental 0x88b5"
    ))
}

/// The header as fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Between {
    pub form: Form,
    /// Its EtherType.
    pub kind: u16,
    len: u8,
    data: [u8; SHIM_DATA],
}

impl std::fmt::Debug for Between {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} 0x{:04x} {:02x?}", self.form, self.kind, self.data())
    }
}

impl Between {
    /// # Errors
    /// Data that the form has no room for; a tag has exactly two bytes.
    pub fn new(form: Form, kind: u16, data: &[u8]) -> Result<Between, NoRoom> {
        let (least, left) = match form {
            Form::Shim => (0, SHIM_DATA),
            Form::Tag => (TAG_DATA, TAG_DATA),
        };
        if !(least..=left).contains(&data.len()) {
            return Err(NoRoom { needed: data.len(), left });
        }
        let mut header = Between { form, kind, len: data.len() as u8, data: [0; SHIM_DATA] };
        header.data[..data.len()].copy_from_slice(data);
        Ok(header)
    }

    pub fn data(&self) -> &[u8] {
        &self.data[..usize::from(self.len)]
    }

    /// Bytes that a header with so much data adds to a packet.
    pub fn len_of(form: Form, data: usize) -> usize {
        match form {
            Form::Shim => 3 + data,
            Form::Tag => 2 + TAG_DATA,
        }
    }

    /// Bytes that it adds to a packet.
    pub fn wire_len(&self) -> usize {
        Between::len_of(self.form, usize::from(self.len))
    }

    /// Writes it behind the MAC addresses, with the type of the payload.
    pub fn emit(&self, payload: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.kind.to_be_bytes());
        match self.form {
            Form::Shim => {
                out.extend_from_slice(&payload.to_be_bytes());
                out.push(self.len);
                out.extend_from_slice(self.data());
            }
            Form::Tag => {
                out.extend_from_slice(self.data());
                out.extend_from_slice(&payload.to_be_bytes());
            }
        }
    }

    /// Reads the header of a frame whose type field says that one of this form follows. Gives also the type of the payload.
    ///
    /// # Errors
    /// The frame ends within it, or a shim is longer than hosts take.
    pub fn parse(frame: &[u8], form: Form) -> Result<(Between, u16), WireError> {
        let behind = frame.get(ethernet::LEN..).ok_or(WireError::Short)?;
        let short = || WireError::Between;
        let part = |from: usize, to: usize| behind.get(from..to).ok_or_else(short);
        let (data, payload) = match form {
            Form::Shim => {
                let length = usize::from(part(2, 3)?[0]);
                (part(3, 3 + length)?, be16(behind, 0))
            }
            Form::Tag => (part(0, TAG_DATA)?, be16(part(TAG_DATA, TAG_DATA + 2)?, 0)),
        };
        let header = Between::new(form, be16(frame, TYPE), data).map_err(|_| short())?;
        Ok((header, payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSES: [u8; 12] = [2; 12];

    fn frame(header: &Between) -> Vec<u8> {
        let mut frame = ADDRESSES.to_vec();
        header.emit(ethernet::kind::IPV4, &mut frame);
        frame
    }

    #[test]
    fn both_forms_are_written_and_read() {
        for (form, data, bytes) in [
            (Form::Shim, &[7, 1][..], &[0x88, 0xb5, 8, 0, 2, 7, 1][..]),
            (Form::Shim, &[], &[0x88, 0xb5, 8, 0, 0]),
            (Form::Tag, &[0x4f, 0x80], &[0x88, 0xb5, 0x4f, 0x80, 8, 0]),
        ] {
            let header = Between::new(form, 0x88b5, data).expect("room");
            let frame = frame(&header);
            assert_eq!(frame[12..], *bytes);
            // The payload's type stands where that of the frame was.
            assert_eq!(header.wire_len(), bytes.len() - 2);
            assert_eq!(Between::parse(&frame, form), Ok((header, ethernet::kind::IPV4)));
            for end in 0..frame.len() {
                assert!(Between::parse(&frame[..end], form).is_err(), "{end}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(Between::new(Form::Shim, 1, &[0; 65]), Err(NoRoom { needed: 65, left: 64 }));
        assert_eq!(Between::new(Form::Tag, 1, &[0; 1]), Err(NoRoom { needed: 1, left: 2 }));
        let mut long = frame(&Between::new(Form::Shim, 0x88b5, &[]).expect("room"));
        long[16] = 65;
        long.resize(200, 0);
        assert_eq!(Between::parse(&long, Form::Shim), Err(WireError::Between));
        for kind in [0, 0x5ff, 0x800, 0x806, 0x8100, 0x86dd, 0x88a8] {
            assert!(demand_type(kind).is_err(), "{kind:x}");
        }
        assert!(demand_type(0x88b5).is_ok() && demand_type(0x9900).is_ok());
    }
}
