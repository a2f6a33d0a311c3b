//! Where a capture's bytes come from: a file or standard input, as they are or compressed.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::MultiGzDecoder;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::error::{CaptureError, Result, fail, plain, unreadable};
use super::source::Source;
use super::zstd::{self, Frames};

/// Of what tells how a file is packed, and of packed data.
const BUFFER: usize = 1 << 16;
/// Compressed files of so many bytes or more are read ahead. To read one that is not costs less than to hand it over.
const AHEAD: u64 = 1 << 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A file or standard input. A signal that interrupts a read is an error of it: decoders try again after one of that kind, and whoever waits
/// for a pipe that gives nothing could not leave.
pub(super) struct Leaving {
    file: Box<dyn Read + Send + Sync>,
    interrupted: Arc<AtomicBool>,
}

impl Read for Leaving {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.file.read(buffer).map_err(|e| match e.kind() {
            ErrorKind::Interrupted => {
                self.interrupted.store(true, Ordering::Relaxed);
                Error::other("interrupted")
            }
            _ => e,
        })
    }
}

/// Opens a capture; `-` is standard input.
pub(super) fn open(path: &Path) -> Result<Source> {
    // Only what never waits for others: whoever does must be able to leave.
    let mut ahead = false;
    let file: Box<dyn Read + Send + Sync> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        if path.is_dir() {
            return fail(format!("{}: cannot be read: it is a directory", path.display()));
        }
        let file = opened(path)?;
        ahead = file.metadata().is_ok_and(|found| found.is_file() && found.len() >= AHEAD);
        Box::new(file)
    };
    unpacked(file, path, ahead)
}

/// Opens a file to read. A signal ends the wait for whoever writes to a named pipe, which the standard library would go on with.
fn opened(path: &Path) -> Result<File> {
    match rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => Ok(file.into()),
        Err(Errno::INTR) => fail("interrupted"),
        Err(e) => fail(unreadable(path, &e.into())),
    }
}

/// What a file has, unpacked; `ahead`: on a thread of its own, if it is packed.
fn unpacked(file: Box<dyn Read + Send + Sync>, path: &Path, ahead: bool) -> Result<Source> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let leaving = Leaving { file, interrupted: interrupted.clone() };
    let mut raw = BufReader::with_capacity(BUFFER, leaving);
    let wrong = |what: &str, e: &Error| match interrupted.load(Ordering::Relaxed) {
        true => CaptureError("interrupted".into()),
        false => CaptureError(format!("{}: {what}: {}", path.display(), plain(e))),
    };
    let head = raw.fill_buf().map_err(|e| wrong("cannot be read", &e))?;
    let (gzip, zstd) = (head.starts_with(&GZIP), zstd::begins(head));
    let file: Box<dyn Read + Send + Sync> = if gzip {
        Box::new(MultiGzDecoder::new(raw))
    } else if zstd {
        Box::new(Frames::open(raw).map_err(|e| wrong("its zstd data is damaged", &e))?)
    } else {
        Box::new(raw)
    };
    let compressed = gzip || zstd;
    Ok(Source::new(file, path.to_owned(), compressed, ahead && compressed, interrupted))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use super::super::source::Got;
    use super::*;

    /// A pipe that gives these bytes, and nothing more until a signal comes; signals come again and again.
    struct Waits(Cursor<Vec<u8>>);

    impl Read for Waits {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(ErrorKind::Interrupted.into()),
                count => Ok(count),
            }
        }
    }

    #[test]
    fn a_signal_ends_the_wait_for_a_pipe() {
        let text = [7; 100];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text).unwrap();
        let zstd = [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 100, 0x21, 3, 0][..], &text].concat();
        for whole in [text.to_vec(), gzip.finish().unwrap(), zstd] {
            for count in 0..whole.len() {
                let pipe = Waits(Cursor::new(whole[..count].to_vec()));
                let found = unpacked(Box::new(pipe), Path::new("-"), false);
                let error = found.and_then(|mut source| {
                    loop {
                        if let (_, Got::End | Got::Short) = source.take(1)? {
                            return Ok(());
                        }
                    }
                });
                assert_eq!(error.expect_err("it waits").to_string(), "interrupted", "{count}");
            }
        }
    }
}
