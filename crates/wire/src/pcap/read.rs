//! Reads packets from a capture file, one after the other.

use std::path::Path;

use super::MAX_PACKET;
use super::error::{CaptureError, Result, fail};
use super::ng::Ng;
use super::open::open;
use super::source::{Got, Packet, Source, word};

enum Format {
    Pcap { swapped: bool, nanoseconds: bool, link_type: u32 },
    Ng(Ng),
}

pub struct Reader {
    source: Source,
    format: Format,
    /// Of a packet that does not lie in a piece.
    bytes: Vec<u8>,
    /// Packets read.
    pub packets: u64,
}

impl Reader {
    pub fn open(path: &Path) -> Result<Reader> {
        let mut source = open(path)?;
        let mut magic = [0; 4];
        match source.fill(&mut magic)? {
            Got::All => {}
            Got::End => return fail(format!("{}: is empty; expected a pcap or pcapng file", path.display())),
            Got::Short => return Err(not_a_capture(path)),
        }
        let format = match u32::from_be_bytes(magic) {
            0xa1b2_c3d4 => header(&mut source, false, false)?,
            0xd4c3_b2a1 => header(&mut source, true, false)?,
            0xa1b2_3c4d => header(&mut source, false, true)?,
            0x4d3c_b2a1 => header(&mut source, true, true)?,
            0x0a0d_0d0a => Some(Format::Ng(Ng::start(&mut source)?)),
            _ => return Err(not_a_capture(path)),
        };
        let Some(format) = format else {
            // The header itself is cut: there is no packet, and `cut` says so.
            let format = Format::Pcap { swapped: false, nanoseconds: false, link_type: 1 };
            return Ok(Reader { source, format, bytes: Vec::new(), packets: 0 });
        };
        Ok(Reader { source, format, bytes: Vec::new(), packets: 0 })
    }

    pub fn path(&self) -> &Path {
        &self.source.path
    }

    /// Why the file gave less than it should, once it has ended.
    pub fn cut(&self) -> Option<&str> {
        self.source.cut.as_deref()
    }

    /// The next packet, its bytes in `bytes`; `None` at the end.
    pub fn next(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Packet>> {
        let Some((packet, found)) = self.next_here()? else { return Ok(None) };
        bytes.clear();
        bytes.extend_from_slice(found);
        Ok(Some(packet))
    }

    /// As [`Reader::next`]; the bytes are where they were read to.
    pub fn next_here(&mut self) -> Result<Option<(Packet, &[u8])>> {
        if self.source.cut.is_some() {
            return Ok(None);
        }
        let source = &mut self.source;
        let found = match &mut self.format {
            Format::Pcap { swapped, nanoseconds, link_type } => {
                record(source, *swapped, *nanoseconds, *link_type)?
            }
            Format::Ng(ng) => ng.next(source, &mut self.bytes)?.map(|packet| (packet, &self.bytes[..])),
        };
        self.packets += u64::from(found.is_some());
        Ok(found)
    }
}

fn not_a_capture(path: &Path) -> CaptureError {
    CaptureError(format!("{}: is not a capture; expected a pcap or pcapng file", path.display()))
}

/// The rest of a pcap file's header.
fn header(source: &mut Source, swapped: bool, nanoseconds: bool) -> Result<Option<Format>> {
    let mut rest = [0; 20];
    if !source.need(&mut rest, "its header")? {
        return Ok(None);
    }
    // The upper bits of the link type tell of frame check sequences.
    let link_type = word(&rest[16..], swapped) & 0x03ff_ffff;
    Ok(Some(Format::Pcap { swapped, nanoseconds, link_type }))
}

fn record(
    source: &mut Source,
    swapped: bool,
    nanoseconds: bool,
    link_type: u32,
) -> Result<Option<(Packet, &[u8])>> {
    let (head, got) = source.take(16)?;
    match got {
        Got::All => {}
        Got::End => return Ok(None),
        Got::Short => {
            source.damaged("the file ends within the header of a packet".into());
            return Ok(None);
        }
    }
    let [seconds, part, captured, wire_len] = [0, 4, 8, 12].map(|at| word(&head[at..], swapped));
    if captured > MAX_PACKET {
        source.damaged(format!("a packet claims {captured} bytes, which cannot be"));
        return Ok(None);
    }
    let fraction = u64::from(part) * if nanoseconds { 1 } else { 1000 };
    let time = u64::from(seconds) * 1_000_000_000 + fraction;
    let packet = Packet { time, wire_len: wire_len.max(captured), link_type };
    Ok(source.need_here(captured as usize, "a packet")?.map(|bytes| (packet, bytes)))
}
