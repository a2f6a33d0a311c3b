//! Frames of zstd, one after the other; those that are to be skipped, as pzstd writes them, are.
//!
//! Source: RFC 8878 sections 3.1.1.1 (the header of a frame) and 3.1.2 (skippable frames).

use std::io::{BufRead, BufReader, Chain, Cursor, Error, ErrorKind, Read, Result, copy, sink};

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use super::open::Leaving;

const MAGIC: u32 = 0xfd2f_b528;
const SKIPPABLE: u32 = 0x184d_2a50;
/// The largest window of a frame, which is kept in memory: that of zstd itself, unless it is told otherwise.
const MAX_WINDOW: u64 = 128 << 20;

type Packed = BufReader<Leaving>;
/// The header of a frame that has been looked at, and what is behind it.
type Whole = Chain<Cursor<Vec<u8>>, Packed>;

fn is_skippable(magic: u32) -> bool {
    magic & !15 == SKIPPABLE
}

/// Whether a file that begins so is zstd's.
pub(super) fn begins(head: &[u8]) -> bool {
    let magic = head.first_chunk().map(|four| u32::from_le_bytes(*four));
    magic.is_some_and(|magic| magic == MAGIC || is_skippable(magic))
}

fn invalid(why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidData, why.to_string())
}

fn ends_early() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "unexpected end of file")
}

/// The decoder's error, which says with many words that the file ends early.
fn plain(error: impl std::fmt::Display) -> Error {
    let text = error.to_string();
    if text.contains("UnexpectedEof") { ends_early() } else { invalid(text) }
}

pub(super) struct Frames {
    frame: Option<StreamingDecoder<Whole, FrameDecoder>>,
}

impl Frames {
    pub fn open(packed: Packed) -> Result<Frames> {
        Ok(Frames { frame: next(packed)? })
    }
}

/// The next frame with data; none at the end of the file.
fn next(mut packed: Packed) -> Result<Option<StreamingDecoder<Whole, FrameDecoder>>> {
    loop {
        if packed.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut header = Vec::with_capacity(18);
        let magic = number(&mut packed, &mut header, 4)? as u32;
        if is_skippable(magic) {
            let length = number(&mut packed, &mut header, 4)?;
            if copy(&mut (&mut packed).take(length), &mut sink())? < length {
                return Err(ends_early());
            }
            continue;
        }
        let window = window(&mut packed, &mut header)?;
        if magic == MAGIC && window > MAX_WINDOW {
            return Err(invalid(format!(
                "it needs a window of {} MiB, and {} are the most; unpack it before, as with zstd -dc --long=31",
                window >> 20,
                MAX_WINDOW >> 20
            )));
        }
        let whole = Cursor::new(header).chain(packed);
        return StreamingDecoder::new(whole).map(Some).map_err(plain);
    }
}

/// A little-endian number of so many bytes, which are added to the header.
fn number(packed: &mut Packed, header: &mut Vec<u8>, bytes: usize) -> Result<u64> {
    let mut eight = [0; 8];
    packed.read_exact(&mut eight[..bytes]).map_err(|e| match e.kind() {
        ErrorKind::UnexpectedEof => ends_early(),
        _ => e,
    })?;
    header.extend_from_slice(&eight[..bytes]);
    Ok(u64::from_le_bytes(eight))
}

/// Bytes of the window, by a header from its descriptor on.
fn window(packed: &mut Packed, header: &mut Vec<u8>) -> Result<u64> {
    let descriptor = number(packed, header, 1)?;
    let is_single_segment = descriptor & 0x20 != 0;
    let mut window = 0;
    if !is_single_segment {
        let byte = number(packed, header, 1)?;
        let base = 1 << (10 + (byte >> 3));
        window = base + base / 8 * (byte & 7);
    }
    number(packed, header, [0, 1, 2, 4][(descriptor & 3) as usize])?;
    let bytes = match descriptor >> 6 {
        0 => usize::from(is_single_segment),
        power => 1 << power,
    };
    let size = number(packed, header, bytes)? + if bytes == 2 { 256 } else { 0 };
    Ok(if is_single_segment { size } else { window })
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            let Some(frame) = &mut self.frame else { return Ok(0) };
            let count = frame.read(buffer).map_err(plain)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(frame) = self.frame.take() else { return Ok(0) };
            let (_, rest) = frame.into_inner().into_inner();
            self.frame = next(rest)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::write;

    use super::super::format::{ETHERNET, WHOLE, file_header, packet_header};
    use super::super::read::Reader;

    /// A frame of one block that is not compressed, with a window of at least 2^`window` bytes.
    fn frame(data: &[u8], window: u8) -> Vec<u8> {
        let block = ((data.len() as u32) << 3 | 1).to_le_bytes();
        [&super::MAGIC.to_le_bytes()[..], &[0, (window - 10) << 3], &block[..3], data].concat()
    }

    fn skippable(kind: u8, data: &[u8]) -> Vec<u8> {
        let length = (data.len() as u32).to_le_bytes();
        [&[0x50 | kind, 0x2a, 0x4d, 0x18], &length[..], data].concat()
    }

    /// The number of packets of a file, or why it cannot be read; and why it ended early.
    fn read(parts: &[&[u8]]) -> (Result<u64, String>, Option<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zst");
        write(&path, parts.concat()).unwrap();
        let mut reader = match Reader::open(&path) {
            Ok(reader) => reader,
            Err(error) => return (Err(error.to_string()), None),
        };
        while reader.next_here().unwrap().is_some() {}
        (Ok(reader.packets), reader.cut().map(str::to_owned))
    }

    fn header() -> Vec<u8> {
        frame(&file_header(ETHERNET, WHOLE), 10)
    }

    fn packet(window: u8) -> Vec<u8> {
        frame(&[&packet_header(0, 60, 60)[..], &[7; 60]].concat(), window)
    }

    #[test]
    fn frames_to_skip_are_skipped() {
        let (head, one) = (header(), packet(10));
        for data in [&[][..], &[1], &[0; 100_000]] {
            for kind in [0, 15] {
                let skip = skippable(kind, data);
                let found = read(&[&skip, &head, &skip, &skip, &one, &one, &skip]);
                assert_eq!(found, (Ok(2), None));
            }
        }
        let (found, cut) = read(&[&head, &one, &skippable(0, &[1; 9])[..10]]);
        assert_eq!(found, Ok(1));
        assert!(cut.is_some_and(|cut| cut.contains("ends early or is damaged")));
        // Nothing else that begins alike is.
        assert!(read(&[&[0x60, 0x2a, 0x4d, 0x18], &[0; 30]]).0.unwrap_err().contains("is not a capture"));
    }

    #[test]
    fn a_window_has_so_much_memory_and_no_more() {
        assert_eq!(read(&[&header(), &packet(27)]), (Ok(1), None));
        let (found, cut) = read(&[&header(), &packet(28)]);
        assert_eq!(found, Ok(0));
        assert!(cut.is_some_and(|cut| cut.contains("it needs a window of 256 MiB, and 128 are the most")));
        // A frame in one segment has it whole in memory.
        let size = (1u64 << 40).to_le_bytes();
        let single = [&super::MAGIC.to_le_bytes()[..], &[0xe0], &size, &[1, 0, 0]].concat();
        let error = read(&[&single]).0.unwrap_err();
        assert!(error.contains("a window of 1048576 MiB, and 128 are the most"), "{error}");
    }

    #[test]
    fn a_file_that_ends_early_is_said_in_few_words() {
        let whole = [header(), packet(10)].concat();
        for count in 1..whole.len() {
            let (found, cut) = read(&[&whole[..count]]);
            let said = [found.err(), cut].into_iter().flatten().collect::<String>();
            assert!(!said.contains('{'), "{count}: {said}");
            assert!(count == header().len() || !said.is_empty(), "{count}");
        }
    }
}
