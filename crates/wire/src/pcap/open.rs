//! Where a capture's bytes come from: a file or standard input, as they are or compressed.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::error::{CaptureError, Result, fail, plain, unreadable};
use super::source::Source;

/// Of what tells how a file is packed, and of packed data.
const BUFFER: usize = 1 << 16;
/// Compressed files of so many bytes or more are read ahead. To read one that is not costs less than to hand it over.
const AHEAD: u64 = 1 << 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Frames of zstd (RFC 8878), one after the other.
struct Frames {
    frame: Option<StreamingDecoder<Buffered, ruzstd::decoding::FrameDecoder>>,
}

type Buffered = BufReader<Box<dyn Read + Send + Sync>>;

fn invalid(error: &dyn std::fmt::Display) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, error.to_string())
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let Some(frame) = &mut self.frame else { return Ok(0) };
            let count = frame.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let mut rest = self.frame.take().map(StreamingDecoder::into_inner).expect("it is there");
            if rest.fill_buf()?.is_empty() {
                return Ok(0);
            }
            self.frame = Some(StreamingDecoder::new(rest).map_err(|e| invalid(&e))?);
        }
    }
}

/// Opens a capture; `-` is standard input.
pub(super) fn open(path: &Path) -> Result<Source> {
    // Only what never waits for others: whoever does must be able to leave.
    let mut ahead = false;
    let raw: Box<dyn Read + Send + Sync> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        if path.is_dir() {
            return fail(format!("{}: cannot be read: it is a directory", path.display()));
        }
        let file = File::open(path).map_err(|e| CaptureError(unreadable(path, &e)))?;
        ahead = file.metadata().is_ok_and(|found| found.is_file() && found.len() >= AHEAD);
        Box::new(file)
    };
    let mut raw = BufReader::with_capacity(BUFFER, raw);
    let head = match raw.fill_buf() {
        Ok(head) => head,
        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => return fail("interrupted"),
        Err(e) => return fail(format!("{}: cannot be read: {}", path.display(), plain(&e))),
    };
    let gzip = head.starts_with(&GZIP);
    let compressed = gzip || head.starts_with(&ZSTD);
    let file: Box<dyn Read + Send + Sync> = if gzip {
        Box::new(MultiGzDecoder::new(raw))
    } else if compressed {
        let frame = StreamingDecoder::new(raw)
            .map_err(|e| CaptureError(format!("{}: its zstd data is damaged: {e}", path.display())))?;
        Box::new(Frames { frame: Some(frame) })
    } else {
        Box::new(raw)
    };
    Ok(Source::new(file, path.to_owned(), compressed, ahead && compressed))
}
