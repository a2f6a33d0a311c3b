//! Packets become frames on their way into a P4 switch, and hosts read frames.

use transport::wire::{self, Addresses};

use crate::addresses::{TCP_RECEIVERS, UDP_RECEIVERS, host, ipv4, mac, number, ports};
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
        (self.bytes.len() as u32 + self.more).saturating_sub(::wire::ethernet::LEN as u32)
    }

    /// For splitting ties between ways: addresses and ports.
    pub fn hash(&self) -> u32 {
        let fields = self.bytes.get(26..38).unwrap_or(&[]);
        if self.bytes.get(14).is_some_and(|first| matches!(first, 0x46..=0x4f)) {
            return self.hash_behind_options();
        }
        hash(fields.iter())
    }

    /// Ports stand behind IP options, which may be others in each packet of a flow.
    #[cold]
    fn hash_behind_options(&self) -> u32 {
        let ports = ::wire::ethernet::LEN + usize::from(self.bytes[14] & 15) * 4;
        let part = |from: usize, to: usize| self.bytes.get(from..to).unwrap_or(&[]);
        hash(part(26, 34).iter().chain(part(ports, ports + 4)))
    }

    /// Host that the IPv4 destination belongs to; `None` for what is no IPv4 packet or of no host.
    pub fn host(&self) -> Option<u32> {
        let destination: [u8; 4] = self.bytes.get(30..34)?.try_into().ok()?;
        if self.bytes.get(12..14)? != [8, 0] {
            return None;
        }
        host(destination)
    }
}

fn hash<'a>(fields: impl Iterator<Item = &'a u8>) -> u32 {
    fields.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
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

    #[test]
    fn options_do_not_change_the_way() {
        let frame = |data: &[u8]| {
            let mut options = ::wire::options::Options::EMPTY;
            if !data.is_empty() {
                options.ip.push(30, data).unwrap();
            }
            let addresses =
                Addresses { from: ipv4(3), to: ipv4(4), port_from: 7, port_to: 9, ..Addresses::default() };
            let mut bytes = Vec::new();
            let body = wire::Body::Tcp(Segment::default());
            let more = wire::emit_with(&addresses, &body, 64, &options, &mut bytes);
            Frame { bytes, more }
        };
        let ways = [frame(&[]), frame(&[1, 2]), frame(&[9; 20])].map(|frame| frame.hash());
        assert_eq!(ways, [ways[0]; 3]);
    }
}
