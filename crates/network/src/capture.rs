//! Captures: what goes over a port, both ways, as a pcap file with times from the start in nanoseconds.
//!
//! A packet that is sent has the time at which its first bit is sent, as on a host after its queue; one that comes, the time at which its
//! last bit has come. What a wire loses was sent. Payload is zero bytes.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufWriter, Write};

use wire::packet::Written;

use crate::tap::Tap;

/// Where a capture goes.
pub type Sink = Box<dyn Write + Send + Sync>;

/// A packet that waits to be sent, and when it will be.
struct Waiting {
    at: u64,
    packet: Written,
}

pub(crate) struct Capture {
    out: BufWriter<Sink>,
    snap: u32,
    /// Packets in front of the port, in order.
    waiting: VecDeque<Waiting>,
    error: Option<io::Error>,
    ended: bool,
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("snap", &self.snap).finish_non_exhaustive()
    }
}

impl Capture {
    pub fn new(out: BufWriter<Sink>, snap: u32) -> Capture {
        Capture { out, snap, waiting: VecDeque::new(), error: None, ended: false }
    }

    /// A packet will be sent at `at`.
    pub fn wait(&mut self, at: u64, packet: Written) {
        self.waiting.push_back(Waiting { at, packet });
    }

    /// Packets that wait are sent at these times instead, from the last on. The port may have more of them, from before the capture.
    pub fn reschedule(&mut self, starts: impl Iterator<Item = u64>) {
        for (waiting, at) in self.waiting.iter_mut().rev().zip(starts) {
            waiting.at = at;
        }
    }

    /// Writes out what was sent until now.
    pub fn flush(&mut self, now: u64) -> io::Result<()> {
        self.settle(now);
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    /// Writes out what was sent until now, and lets go of where it went.
    pub fn end(&mut self, now: u64) -> io::Result<()> {
        let done = self.flush(now);
        *self = Capture { ended: true, ..Capture::new(BufWriter::with_capacity(0, Box::new(io::sink())), 0) };
        done
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    pub fn write(&mut self, time: u64, packet: &Written) {
        if self.error.is_some() {
            return;
        }
        const ZEROS: [u8; 2048] = [0; 2048];
        let (bytes, wire_len) = (packet.bytes(), packet.wire_len() as u32);
        let captured = wire_len.min(self.snap) as usize;
        let head = &bytes[..bytes.len().min(captured)];
        let mut zeros = captured - head.len();
        let mut write = || {
            self.out.write_all(&wire::pcap::packet_header(time / 1000, captured as u32, wire_len))?;
            self.out.write_all(head)?;
            while zeros > 0 {
                let part = zeros.min(ZEROS.len());
                self.out.write_all(&ZEROS[..part])?;
                zeros -= part;
            }
            Ok(())
        };
        self.error = write().err();
    }

    /// Writes what has been sent by now.
    pub fn settle(&mut self, now: u64) {
        while self.waiting.front().is_some_and(|first| first.at <= now)
            && let Some(first) = self.waiting.pop_front()
        {
            self.write(first.at, &first.packet);
        }
    }
}

/// Who sees what comes out of a wire.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watcher {
    /// Number of a capture.
    pub capture: Option<u32>,
    pub taps: Vec<Tap>,
}
