//! Captures: what goes over a port, both ways, as a pcap file with times from the start in nanoseconds.
//!
//! A packet that is sent has the time at which its first bit is sent, as on a host after its queue; one that comes, the time at which its
//! last bit has come. What a wire loses was sent. Payload is zero bytes.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufWriter, Write};

use wire::packet::Written;

use crate::network::{BuildError, Network, refuse};
use crate::pool::PacketId;
use crate::port::PortId;

/// In place of a capture's number: none.
pub(crate) const NO_CAPTURE: u32 = u32::MAX;

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
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("snap", &self.snap).finish_non_exhaustive()
    }
}

impl Capture {
    fn write(&mut self, time: u64, packet: &Written) {
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
    fn settle(&mut self, now: u64) {
        while self.waiting.front().is_some_and(|first| first.at <= now)
            && let Some(first) = self.waiting.pop_front()
        {
            self.write(first.at, &first.packet);
        }
    }
}

impl Network {
    /// Captures what goes over a port from now on, both ways: of each packet its first `snap` bytes.
    ///
    /// # Errors
    /// A port that is captured already, and a sink that takes nothing.
    pub fn capture(&mut self, port: PortId, out: Sink, snap: u32) -> Result<(), BuildError> {
        let number = self.captures.len() as u32;
        let p = &self.ports[port.0 as usize];
        let (back, far) = (self.at(p.to, p.to_port), p.to);
        if p.captures_sent != NO_CAPTURE {
            let here = self.ports[back as usize].to;
            let [here, far] = [here, far].map(|n| &self.nodes[n as usize].name);
            return refuse(format!("the port of {here} to {far} is captured already"));
        }
        let mut out = BufWriter::with_capacity(1 << 16, out);
        if let Err(error) =
            out.write_all(&wire::pcap::file_header(wire::pcap::ETHERNET, snap)).and_then(|()| out.flush())
        {
            return refuse(format!("a capture cannot be written: {error}"));
        }
        self.ports[port.0 as usize].captures_sent = number;
        self.watcher(back).capture = Some(number);
        self.captures.push(Capture { out, snap, waiting: VecDeque::new(), error: None });
        Ok(())
    }

    /// The port of a node with a number, which it has.
    fn at(&self, node: u32, number: u32) -> u32 {
        let ports = &self.nodes[node as usize].ports;
        let found = ports.iter().find(|p| self.ports[**p as usize].number == number);
        *found.unwrap_or(&ports[0])
    }

    /// Writes out what was captured until now; gives what went wrong, for each capture in the order of making.
    pub fn flush_captures(&mut self) -> Vec<io::Result<()>> {
        let now = self.now;
        let flush = |capture: &mut Capture| {
            capture.settle(now);
            match capture.error.take() {
                Some(error) => Err(error),
                None => capture.out.flush(),
            }
        };
        self.captures.iter_mut().map(flush).collect()
    }

    /// A port has taken a packet and will send it at `at`.
    #[cold]
    pub(crate) fn capture_sent(&mut self, capture: u32, at: u64, id: PacketId) {
        let packet = self.copy_bytes(self.packets.get(id));
        let capture = &mut self.captures[capture as usize];
        capture.waiting.push_back(Waiting { at, packet });
        capture.settle(self.now);
    }

    /// A packet has come over a wire.
    pub(crate) fn capture_come(&mut self, capture: u32, id: PacketId) {
        let packet = self.copy_bytes(self.packets.get(id));
        let capture = &mut self.captures[capture as usize];
        capture.settle(self.now);
        capture.write(self.now, &packet);
    }

    /// A link has changed, and with it when its packets are sent.
    pub(crate) fn capture_changed(&mut self, port: u32) {
        let p = &self.ports[port as usize];
        if let Some(capture) = self.captures.get_mut(p.captures_sent as usize) {
            capture.settle(self.now);
            // The port may have more of them, from before the capture.
            for (waiting, at) in capture.waiting.iter_mut().rev().zip(p.starts().rev()) {
                waiting.at = at;
            }
        }
    }
}
