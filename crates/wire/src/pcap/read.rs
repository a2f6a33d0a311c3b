//! Reads packets from a capture file, one after the other.

use std::path::Path;

use super::MAX_PACKET;
use super::error::{CaptureError, Result, fail};
use super::ng::Ng;
use super::open::open;
use super::source::{Got, Packet, Source, word};

const NO_CAPTURE: &str = "is not a capture";

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
            got => {
                let short = if matches!(got, Got::End) { "is empty" } else { NO_CAPTURE };
                let why = source.cut.as_deref().unwrap_or(short);
                return fail(format!("{}: {why}; expected a pcap or pcapng file", path.display()));
            }
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
    #[inline]
    pub fn next_here(&mut self) -> Result<Option<(Packet, &[u8])>> {
        if self.source.cut.is_some() {
            return Ok(None);
        }
        let source = &mut self.source;
        let found = match &mut self.format {
            Format::Pcap { swapped: true, nanoseconds, link_type } => {
                record::<true>(source, *nanoseconds, *link_type)?
            }
            Format::Pcap { swapped: false, nanoseconds, link_type } => {
                record::<false>(source, *nanoseconds, *link_type)?
            }
            Format::Ng(ng) => ng.next(source, &mut self.bytes)?.map(|packet| (packet, &self.bytes[..])),
        };
        self.packets += u64::from(found.is_some());
        Ok(found)
    }

    /// A look at packets that come next, without taking them; in pcapng there is none.
    #[inline]
    pub fn upcoming(&self) -> Upcoming<'_> {
        match self.format {
            Format::Pcap { swapped, .. } => Upcoming { there: self.source.there(), swapped },
            Format::Ng(_) => Upcoming { there: &[], swapped: false },
        }
    }
}

/// The bytes of packets that come next, one after the other, of those that have been read from the file.
pub struct Upcoming<'a> {
    there: &'a [u8],
    swapped: bool,
}

impl<'a> Iterator for Upcoming<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let head = self.there.first_chunk::<HEAD>()?;
        let captured = word(&head[8..], self.swapped) as usize;
        let bytes = self.there.get(HEAD..HEAD.saturating_add(captured))?;
        self.there = &self.there[HEAD + captured..];
        Some(bytes)
    }
}

fn not_a_capture(path: &Path) -> CaptureError {
    CaptureError(format!("{}: {NO_CAPTURE}; expected a pcap or pcapng file", path.display()))
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

/// Bytes of a record's header.
const HEAD: usize = 16;

#[inline(always)]
fn record<const SWAPPED: bool>(
    source: &mut Source,
    nanoseconds: bool,
    link_type: u32,
) -> Result<Option<(Packet, &[u8])>> {
    let fields = |there: &[u8]| {
        let head = there.first_chunk::<HEAD>()?;
        let field = |at: usize| word(&head[at..], SWAPPED);
        let (seconds, part, captured, wire_len) = (field(0), field(4), field(8), field(12));
        let whole = captured <= MAX_PACKET && there.len() >= HEAD + captured as usize;
        whole.then_some((seconds, part, captured, wire_len))
    };
    let found = match fields(source.there()) {
        None if next_record(source, SWAPPED)? => fields(source.there()),
        found => found,
    };
    let Some((seconds, part, captured, wire_len)) = found else { return Ok(None) };
    let fraction = u64::from(part) * if nanoseconds { 1 } else { 1000 };
    let time = u64::from(seconds) * 1_000_000_000 + fraction;
    let packet = Packet { time, behind: 0, wire_len: wire_len.max(captured), link_type };
    let bytes = source.pass(HEAD + captured as usize);
    Ok(Some((packet, &bytes[HEAD..])))
}

/// Sees to it that a record is there to be taken, or notes why nothing more comes of this file.
#[cold]
fn next_record(source: &mut Source, swapped: bool) -> Result<bool> {
    let Some(head) = source.look(HEAD, "the header of a packet")? else { return Ok(false) };
    let captured = word(&head[8..], swapped);
    if captured > MAX_PACKET {
        source.damaged(format!("a packet claims {captured} bytes, which cannot be"));
        return Ok(false);
    }
    Ok(source.look(HEAD + captured as usize, "a packet")?.is_some())
}

#[cfg(test)]
mod tests {
    use std::fs::write;
    use std::io::Write;

    use super::super::format::{ETHERNET, WHOLE, file_header, packet_header};
    use super::*;

    /// Packets of many lengths, some longer than the blocks in which a file is read ahead.
    fn packets() -> Vec<Vec<u8>> {
        let length = |number: usize| match number {
            300 | 301 => 65_536,
            700 => 262_144,
            800 => 3_000_000,
            1500 => 300_000,
            _ => 40 + number * 7919 % 1500,
        };
        // Bytes that do not become few when they are packed.
        let mut state = 1u64;
        let mut byte = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..3000).map(|number| (0..length(number)).map(|_| byte()).collect()).collect()
    }

    fn file(packets: &[Vec<u8>]) -> Vec<u8> {
        let mut file = file_header(ETHERNET, WHOLE).to_vec();
        for (number, packet) in packets.iter().enumerate() {
            let length = packet.len() as u32;
            file.extend(packet_header(number as u64, length, length));
            file.extend(packet);
        }
        file
    }

    fn packed(whole: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(whole).unwrap();
        packed.finish().unwrap()
    }

    #[test]
    fn a_large_file_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (packets, path) = (packets(), folder.path().join("a.pcap"));
        let whole = file(&packets);
        for bytes in [&whole, &packed(&whole)] {
            assert!(bytes.len() > 1 << 20);
            write(&path, bytes).unwrap();
            let mut reader = Reader::open(&path).unwrap();
            for (number, expected) in packets.iter().enumerate() {
                let (packet, found) = reader.next_here().unwrap().unwrap();
                assert_eq!(packet.time, number as u64);
                assert!(found == expected, "packet {number}");
            }
            assert!(reader.next_here().unwrap().is_none());
            assert_eq!(reader.cut(), None);
        }
    }

    #[test]
    fn what_is_seen_ahead_comes_then() {
        let folder = tempfile::tempdir().unwrap();
        let (packets, path) = (packets(), folder.path().join("a.pcap"));
        let whole = file(&packets);
        let mut swapped = whole.clone();
        // As a machine of the other byte order writes it: each word of the headers.
        let mut turn = |from: usize, words: usize| {
            (0..words).for_each(|word| swapped[from + 4 * word..from + 4 * word + 4].reverse());
        };
        turn(0, 1);
        turn(8, 4);
        packets.iter().fold(24, |at, packet| {
            turn(at, 4);
            at + HEAD + packet.len()
        });
        swapped[4..8].copy_from_slice(&[0, 2, 0, 4]);
        let cut = &whole[..whole.len() - 1];
        for bytes in [&whole[..], &swapped, &packed(&whole), cut] {
            write(&path, bytes).unwrap();
            let mut reader = Reader::open(&path).unwrap();
            let (mut seen, mut count) = (0, 0);
            loop {
                for (bytes, expected) in reader.upcoming().zip(&packets[count..]).take(8) {
                    assert!(bytes == expected);
                    seen += 1;
                }
                let Some((_, found)) = reader.next_here().unwrap() else { break };
                assert!(found == packets[count], "packet {count}");
                count += 1;
            }
            assert_eq!(count, packets.len() - usize::from(bytes.len() == cut.len()));
            // All eight but at the ends of pieces.
            assert!(seen > 7 * count, "{seen}");
        }
        // A length that cannot be leads nowhere.
        let mut long = file(&packets[..2]);
        long[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_ne_bytes());
        write(&path, long).unwrap();
        assert_eq!(Reader::open(&path).unwrap().upcoming().count(), 0);
    }

    #[test]
    fn a_large_file_that_is_cut_gives_what_comes_before() {
        let folder = tempfile::tempdir().unwrap();
        let (packets, path) = (packets(), folder.path().join("a.pcap"));
        let whole = file(&packets);
        let packed = packed(&whole);
        for (bytes, why) in [
            (&whole[..whole.len() - 1], "within a packet"),
            (&whole[..whole.len() - 2_000_000], "within"),
            (&packed[..packed.len() / 2], "its compressed data ends early or is damaged"),
        ] {
            write(&path, bytes).unwrap();
            let mut reader = Reader::open(&path).unwrap();
            let mut count = 0;
            while let Some((_, found)) = reader.next_here().unwrap() {
                assert!(found == packets[count]);
                count += 1;
            }
            assert!(count < packets.len() && reader.cut().is_some_and(|cut| cut.contains(why)), "{count}");
        }
        // Whoever leaves early leaves the thread nothing to do.
        write(&path, &packed).unwrap();
        drop(Reader::open(&path).unwrap());
    }

    #[test]
    fn compressed_data_that_is_damaged_at_its_start_is_not_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcap");
        for start in [[0x1f, 0x8b, 8, 0], [0x28, 0xb5, 0x2f, 0xfd]] {
            write(&path, [&start[..], &[0; 30]].concat()).unwrap();
            let error = Reader::open(&path).err().unwrap().to_string();
            assert!(error.contains("damaged") && !error.contains("empty"), "{error}");
        }
    }

    #[test]
    fn a_packet_has_so_many_bytes_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcap");
        let read = |length: u32| {
            let mut whole = file(&[vec![7; 60]]);
            whole.extend(packet_header(1, length, length));
            whole.resize(whole.len() + length as usize, 0);
            write(&path, whole).unwrap();
            let mut reader = Reader::open(&path).unwrap();
            let mut lengths = Vec::new();
            while let Some((_, bytes)) = reader.next_here().unwrap() {
                lengths.push(bytes.len());
            }
            (lengths, reader.cut().map(str::to_owned))
        };
        assert_eq!(read(1 << 24), (vec![60, 1 << 24], None));
        let (lengths, cut) = read((1 << 24) + 1);
        assert_eq!(lengths, [60]);
        assert!(cut.as_ref().is_some_and(|cut| cut.contains("claims 16777217 bytes")), "{cut:?}");
    }

    /// A block of a pcapng file.
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes(), &length, body, &length].concat()
    }

    fn section() -> Vec<u8> {
        block(0x0a0d_0d0a, &[&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[255; 8]].concat())
    }

    fn interface() -> Vec<u8> {
        block(1, &[1, 0, 0, 0, 0, 0, 0, 0])
    }

    /// Four bytes, at a time in microseconds.
    fn packet(interface: u8, time: u8) -> Vec<u8> {
        let four = [4, 0, 0, 0];
        block(6, &[[interface, interface, 0, 0], [0; 4], [time, 0, 0, 0], four, four, [1; 4]].concat())
    }

    /// The times of a file's packets, and why it ended early.
    fn times(parts: &[&[u8]]) -> (Vec<u64>, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcapng");
        write(&path, parts.concat()).unwrap();
        let mut reader = Reader::open(&path).unwrap();
        let mut times = Vec::new();
        while let Some((packet, _)) = reader.next_here().unwrap() {
            times.push(packet.time);
        }
        (times, reader.cut().map(str::to_owned))
    }

    #[test]
    fn a_section_has_so_many_interfaces_and_no_more() {
        let read = |count: usize| times(&[&section(), &interface().repeat(count), &packet(255, 0)]);
        assert_eq!(read(1 << 16), (vec![0], None));
        assert_eq!(
            read((1 << 16) + 1),
            (vec![], Some("a section describes more than 65536 interfaces".to_owned()))
        );
    }

    #[test]
    fn a_packet_without_a_time_comes_with_the_one_before() {
        let simple = block(3, &[4, 0, 0, 0, 2, 2, 2, 2]);
        let found = times(&[&section(), &interface(), &simple, &packet(0, 7), &simple]);
        assert_eq!(found, (vec![0, 7_000, 7_000], None));
    }

    #[test]
    fn nothing_behind_the_damaged_header_of_a_section_is_a_packet() {
        let head = section();
        for (bad, why) in [
            ([&head[..8], &[0; 4]].concat(), "a section's byte order cannot be told"),
            ([&head[..4], &[9, 0, 0, 0], &head[8..12]].concat(), "claims 9 bytes"),
        ] {
            let (found, cut) = times(&[&section(), &interface(), &packet(0, 7), &bad, &packet(0, 8)]);
            assert_eq!(found, [7_000]);
            assert!(cut.as_ref().is_some_and(|cut| cut.contains(why)), "{cut:?}");
        }
    }
}
