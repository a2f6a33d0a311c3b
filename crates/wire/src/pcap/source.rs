//! The bytes of a capture file, and what is read from them.

use std::io::Read;
use std::path::PathBuf;

use super::error::{Result, fail, plain};

/// A captured packet. The bytes are in the reader's caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Nanoseconds since 1970, or since whatever the capture counts from.
    pub time: u64,
    /// Bytes on the wire; more than were captured if the capture was cut to a length.
    pub wire_len: u32,
    pub link_type: u32,
}

/// The bytes of a file, and whether they ended where they should.
pub(super) struct Source {
    pub file: Box<dyn Read + Send + Sync>,
    pub path: PathBuf,
    pub compressed: bool,
    pub cut: Option<String>,
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
    pub fn fill(&mut self, buffer: &mut [u8]) -> Result<Got> {
        let mut have = 0;
        while have < buffer.len() {
            match self.file.read(&mut buffer[have..]) {
                Ok(0) => return Ok(if have == 0 { Got::End } else { Got::Short }),
                Ok(n) => have += n,
                // A signal: whoever reads from a pipe that gives nothing must be able to leave.
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => return fail("interrupted"),
                Err(e) if self.compressed => {
                    self.damaged(format!("its compressed data ends early or is damaged ({})", plain(&e)));
                    return Ok(if have == 0 { Got::End } else { Got::Short });
                }
                Err(e) => return fail(format!("{}: cannot be read: {}", self.path.display(), plain(&e))),
            }
        }
        Ok(Got::All)
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
