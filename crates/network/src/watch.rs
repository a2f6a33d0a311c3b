//! Who sees what goes over a port: captures, and the taps of its wire (`tap`).

use std::io::{self, BufWriter, Write};

use crate::capture::{Capture, Sink, Watcher};
use crate::error::{BuildError, refuse};
use crate::network::Network;
use crate::node::NO_HOST;
use crate::pool::PacketId;
use crate::port::{NO_CAPTURE, PortId};
use crate::tap::Tap;

impl Network {
    /// Captures what goes over a port from now on, both ways: of each packet its first `snap` bytes.
    ///
    /// # Errors
    /// A port that is captured already, and a sink that takes nothing.
    pub fn capture(&mut self, port: PortId, out: Sink, snap: u32) -> Result<(), BuildError> {
        self.unite("packets are captured");
        // One that is ended gives its place: a switch runs for months, and has its ports looked at again and again.
        let number = self.captures.iter().position(Capture::has_ended).unwrap_or(self.captures.len());
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
        self.ports[port.0 as usize].captures_sent = number as u32;
        self.watcher(back).capture = Some(number as u32);
        let capture = Capture::new(out, snap);
        match self.captures.get_mut(number) {
            Some(place) => *place = capture,
            None => self.captures.push(capture),
        }
        Ok(())
    }

    /// Ends the capture of a port: what goes over it from now on costs nothing. What was sent is written out, and the sink is dropped.
    ///
    /// # Errors
    /// A port that is not captured, and a sink that takes nothing.
    pub fn end_capture(&mut self, port: PortId) -> Result<(), BuildError> {
        let p = &self.ports[port.0 as usize];
        let (back, number) = (self.at(p.to, p.to_port), p.captures_sent);
        if number == NO_CAPTURE {
            return refuse("the port is not captured".to_owned());
        }
        self.ports[port.0 as usize].captures_sent = NO_CAPTURE;
        self.watcher(back).capture = None;
        let now = self.now;
        self.captures[number as usize]
            .end(now)
            .or_else(|error| refuse(format!("a capture cannot be written: {error}")))
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
        self.captures.iter_mut().map(|capture| capture.flush(now)).collect()
    }

    /// A port has taken a packet and will send it at `at`.
    #[cold]
    pub(crate) fn capture_sent(&mut self, capture: u32, at: u64, id: PacketId) {
        let packet = self.copy_bytes(self.packets.get(id));
        let capture = &mut self.captures[capture as usize];
        capture.wait(at, packet);
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
            capture.reschedule(p.starts().rev());
        }
    }

    /// Who watches what comes out of a port's wire.
    pub(crate) fn watcher(&mut self, port: u32) -> &mut Watcher {
        let number = &mut self.ports[port as usize].captures_come;
        if *number == NO_CAPTURE {
            *number = self.watchers.len() as u32;
            self.watchers.push(Watcher::default());
        }
        &mut self.watchers[*number as usize]
    }

    /// A packet has come over a wire that is watched.
    #[cold]
    pub(crate) fn watch_come(&mut self, watcher: u32, id: PacketId) {
        if let Some(capture) = self.watchers[watcher as usize].capture {
            self.capture_come(capture, id);
        }
        for tap in 0..self.watchers[watcher as usize].taps.len() {
            let tap = self.watchers[watcher as usize].taps[tap];
            if !self.shows(tap, id) {
                continue;
            }
            let Tap { switch, number, .. } = tap;
            let Some(node) = &mut self.switches[switch as usize] else { continue };
            let mut written = node.switch.spare();
            self.copy_to(self.packets.get(id), &mut written);
            let copy = self.packets.reserve(NO_HOST, 0, written.size());
            self.packets.get_mut(copy).packet.put(written);
            self.deliver_to_switch(switch, number, copy);
        }
    }
}
