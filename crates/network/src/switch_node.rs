//! A P4 switch in the network: packets become frames on their way in, and hosts read frames.
//!
//! Addresses are given by the host's number n, counted from 0: IPv4 10.0.0.0 + n + 1, MAC 02:00:00:00:00:00 + n + 1. A packet's
//! Ethernet destination is that of its host. A flow's ports tell its endpoints: see [`ports`].

use switch::Switch;
use transport::wire::{self, Addresses};

use crate::packet::{Body, Packet};

/// A frame: headers from Ethernet on, and how many bytes of payload follow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frame {
    pub bytes: Vec<u8>,
    pub more: u32,
}

impl Frame {
    /// Bytes from the IP header on.
    pub fn size(&self) -> u32 {
        (self.bytes.len() as u32 + self.more).saturating_sub(wire::ETHERNET as u32)
    }

    /// For splitting ties between ways: addresses and ports.
    pub fn hash(&self) -> u32 {
        let fields = self.bytes.get(26..38).unwrap_or(&[]);
        fields.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
    }

    /// Host that the IPv4 destination belongs to; `None` for what is no IPv4 packet or of no host.
    pub fn host(&self) -> Option<u32> {
        let destination: [u8; 4] = self.bytes.get(30..34)?.try_into().ok()?;
        if self.bytes.get(12..14)? != [8, 0] {
            return None;
        }
        u32::from_be_bytes(destination).checked_sub(FIRST_ADDRESS)
    }
}

const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 0, 0, 1]);

pub fn ipv4(host: u32) -> [u8; 4] {
    (FIRST_ADDRESS + host).to_be_bytes()
}

pub fn mac(host: u32) -> [u8; 6] {
    let n = (host + 1).to_be_bytes();
    [2, 0, n[0], n[1], n[2], n[3]]
}

/// Ports of one kind: those of sources, of TCP's receivers, of UDP's.
const SPAN: u32 = 16_000;
const SOURCES: u32 = 10_000;
const TCP_RECEIVERS: u32 = SOURCES + SPAN;
const UDP_RECEIVERS: u32 = TCP_RECEIVERS + SPAN;

/// Ports of a flow, the sending side's and the receiving side's, together tell its number among the TCP or the UDP flows. Flows
/// that are not thousands apart have different ones on both sides: a real receiver (iperf3) needs a port for itself.
fn ports(number: u32, receivers: u32) -> (u16, u16) {
    let (high, low) = (number / SPAN, number % SPAN);
    ((SOURCES + low) as u16, (receivers + (low + high) % SPAN) as u16)
}

/// The number of the flow with these ports.
fn number(source: u16, receiver: u16, receivers: u32) -> Option<u32> {
    let low = u32::from(source).checked_sub(SOURCES).filter(|low| *low < SPAN)?;
    let place = u32::from(receiver).checked_sub(receivers).filter(|place| *place < SPAN)?;
    Some((place + SPAN - low) % SPAN * SPAN + low)
}

/// What a packet that has not been bytes yet looks like on the wire. `buffer` is used for the bytes.
pub(crate) fn to_frame(packet: &Packet, from: u32, mut buffer: Vec<u8>) -> Frame {
    let (body, (port_from, port_to)) = match &packet.body {
        Body::Tcp(segment) => {
            let (sender, receiver) = ports(packet.endpoint / 2, TCP_RECEIVERS);
            // An endpoint with an odd number is a receiver: the packet is for it.
            let way = if packet.endpoint % 2 == 1 { (sender, receiver) } else { (receiver, sender) };
            (wire::Body::Tcp(*segment), way)
        }
        Body::Udp(datagram) => {
            let body = wire::Body::Udp { payload: datagram.payload, ecn: datagram.ecn };
            (body, ports(packet.endpoint, UDP_RECEIVERS))
        }
        Body::Frame(frame) => return frame.clone(),
    };
    let addresses = Addresses {
        mac_from: mac(from),
        mac_to: mac(packet.to),
        from: ipv4(from),
        to: ipv4(packet.to),
        port_from,
        port_to,
    };
    let more = wire::emit(&addresses, &body, 64, &mut buffer);
    Frame { bytes: buffer, more }
}

/// For which endpoint or source a frame is that has come to its host, and what it carries; `None`: for none.
pub(crate) fn read(frame: &Frame) -> Option<(u32, wire::Body)> {
    let (addresses, body) = wire::parse(&frame.bytes, frame.bytes.len() as u32 + frame.more).ok()?;
    let (from, to) = (addresses.port_from, addresses.port_to);
    let endpoint = match body {
        wire::Body::Tcp(_) if u32::from(to) >= TCP_RECEIVERS => 2 * number(from, to, TCP_RECEIVERS)? + 1,
        wire::Body::Tcp(_) => 2 * number(to, from, TCP_RECEIVERS)?,
        wire::Body::Udp { .. } => number(from, to, UDP_RECEIVERS)?,
    };
    Some((endpoint, body))
}

/// In place of a network's port: the switch has no port of that number.
pub(crate) const NO_PORT: u32 = u32::MAX;

/// A switch and, by its port numbers, the network's ports.
#[derive(Debug)]
pub(crate) struct SwitchNode {
    pub switch: Switch,
    pub ports: Vec<u32>,
    /// How many ports there are.
    pub links: usize,
    /// Whoever runs the network wants to know at once of digests and packets for the controller.
    pub watched: bool,
    /// Earliest event under way for the packet generator; `u64::MAX`: none.
    pub timer: u64,
}

#[cfg(test)]
mod tests {
    use transport::segment::Segment;

    use super::*;

    #[test]
    fn frames_find_their_endpoints() {
        for endpoint in [0, 1, 2, 31_998, 32_000, 32_001, 131_070, 131_071, 400_001, 10_000, 10_001] {
            let body = Body::Tcp(Segment { payload: 100, ..Segment::default() });
            let packet = Packet { endpoint, to: 300, next: 0, size: 0, body };
            let frame = to_frame(&packet, 2, Vec::new());
            assert_eq!(frame.host(), Some(300));
            assert_eq!(frame.size(), 140);
            assert_eq!(read(&frame).map(|(e, _)| e), Some(endpoint), "{endpoint}");
        }
    }
}
