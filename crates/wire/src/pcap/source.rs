//! The bytes of a capture file, and what is read from them.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ahead::{Ahead, ROOM};
use super::error::{Result, fail, plain};

/// A captured packet. The bytes are in the reader's caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Nanoseconds since 1970, or since whatever the capture counts from.
    pub time: u64,
    /// Nanoseconds by which its stamp is before `time`; see [`Merge`](super::Merge).
    pub behind: u64,
    /// Bytes on the wire; more than were captured if the capture was cut to a length.
    pub wire_len: u32,
    pub link_type: u32,
}

/// Bytes that are read at once.
const BUFFER: usize = 1 << 18;

/// Where bytes come from: here, or from a thread that reads ahead.
enum Feed {
    Here(Box<dyn Read + Send + Sync>),
    Ahead(Ahead),
}

/// The bytes of a file, and whether they ended where they should.
pub(super) struct Source {
    file: Feed,
    pub path: PathBuf,
    compressed: bool,
    /// A signal has interrupted a read.
    interrupted: Arc<AtomicBool>,
    pub cut: Option<String>,
    /// What has been read and not been taken is from `at` to `end`.
    buffer: Vec<u8>,
    at: usize,
    end: usize,
}

/// What a read came to.
pub(super) enum Got {
    All,
    /// Nothing at all.
    End,
    /// A part.
    Short,
}

impl Source {
    /// `ahead`: a thread reads it, if there can be one.
    pub fn new(
        file: Box<dyn Read + Send + Sync>,
        path: PathBuf,
        compressed: bool,
        ahead: bool,
        interrupted: Arc<AtomicBool>,
    ) -> Source {
        let file =
            if ahead { Ahead::start(file).map_or_else(Feed::Here, Feed::Ahead) } else { Feed::Here(file) };
        let buffer = match file {
            Feed::Here(_) => vec![0; BUFFER],
            Feed::Ahead(_) => Vec::new(),
        };
        Source { file, path, compressed, interrupted, cut: None, buffer, at: 0, end: 0 }
    }

    /// More bytes behind those that are not taken; how many.
    fn more(&mut self, count: usize) -> std::io::Result<usize> {
        let left = self.end - self.at;
        match &mut self.file {
            Feed::Ahead(ahead) if left <= ROOM => {
                let (mut block, found) = ahead.next()?;
                if found == 0 {
                    return Ok(0);
                }
                block[ROOM - left..ROOM].copy_from_slice(&self.buffer[self.at..self.end]);
                let used = std::mem::replace(&mut self.buffer, block);
                ahead.give_back(used);
                (self.at, self.end) = (ROOM - left, ROOM + found);
                Ok(found)
            }
            feed => {
                if self.at > 0 {
                    self.buffer.copy_within(self.at..self.end, 0);
                    (self.at, self.end) = (0, left);
                }
                if self.buffer.len() < count {
                    self.buffer.resize(count, 0);
                }
                match feed {
                    Feed::Here(file) => {
                        let found = file.read(&mut self.buffer[self.end..])?;
                        self.end += found;
                        Ok(found)
                    }
                    // Of a packet that is longer than the room before a block.
                    Feed::Ahead(ahead) => {
                        let (block, found) = ahead.next()?;
                        self.buffer.truncate(self.end);
                        self.buffer.extend_from_slice(block.get(ROOM..ROOM + found).unwrap_or_default());
                        self.end += found;
                        ahead.give_back(block);
                        Ok(found)
                    }
                }
            }
        }
    }

    /// Reads until there are so many bytes that are not taken, or the file ends.
    fn read(&mut self, count: usize) -> Result<()> {
        while self.end - self.at < count {
            match self.more(count) {
                Ok(0) => break,
                Ok(_) => {}
                // A signal: whoever reads from a pipe that gives nothing must be able to leave.
                Err(_) if self.interrupted.load(Ordering::Relaxed) => return fail("interrupted"),
                Err(e) if self.compressed => {
                    self.damaged(format!("its compressed data ends early or is damaged ({})", plain(&e)));
                    break;
                }
                Err(e) => return fail(format!("{}: cannot be read: {}", self.path.display(), plain(&e))),
            }
        }
        Ok(())
    }

    /// Takes so many bytes, or as many as there are: then the second says so.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<(&[u8], Got)> {
        if self.end - self.at < count {
            self.read(count)?;
        }
        let have = (self.end - self.at).min(count);
        let begin = self.at;
        self.at += have;
        let got = if have == count {
            Got::All
        } else if have == 0 {
            Got::End
        } else {
            Got::Short
        };
        Ok((&self.buffer[begin..begin + have], got))
    }

    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<Got> {
        let (bytes, got) = self.take(buffer.len())?;
        buffer[..bytes.len()].copy_from_slice(bytes);
        Ok(got)
    }

    /// Fills the buffer, or notes why nothing more comes of this file.
    pub fn need(&mut self, buffer: &mut [u8], what: &str) -> Result<bool> {
        match self.fill(buffer)? {
            Got::All => Ok(true),
            Got::End | Got::Short => {
                self.damaged(format!("the file ends within {what}"));
                Ok(false)
            }
        }
    }

    /// What has been read and not been taken.
    #[inline]
    pub fn there(&self) -> &[u8] {
        &self.buffer[self.at..self.end]
    }

    /// So many bytes, without taking them. None at the end of the file; within them, it notes that.
    pub fn look(&mut self, count: usize, what: &str) -> Result<Option<&[u8]>> {
        self.read(count)?;
        let have = self.end - self.at;
        if have < count {
            if have > 0 {
                self.damaged(format!("the file ends within {what}"));
            }
            return Ok(None);
        }
        Ok(Some(&self.buffer[self.at..self.at + count]))
    }

    /// Takes so many bytes of what is there.
    #[inline]
    pub fn pass(&mut self, count: usize) -> &[u8] {
        let begin = self.at;
        self.at += count;
        &self.buffer[begin..self.at]
    }

    pub fn damaged(&mut self, why: String) {
        self.cut.get_or_insert(why);
    }

    /// Reads and forgets.
    pub fn skip(&mut self, mut bytes: u64, what: &str) -> Result<bool> {
        let mut sink = [0; 4096];
        while bytes > 0 {
            let part = bytes.min(sink.len() as u64);
            if !self.need(&mut sink[..part as usize], what)? {
                return Ok(false);
            }
            bytes -= part;
        }
        Ok(true)
    }
}

/// A 32-bit number; big-endian unless `swapped`.
pub(super) fn word(bytes: &[u8], swapped: bool) -> u32 {
    let four = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if swapped { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) }
}
