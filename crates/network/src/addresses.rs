//! The plan of addresses and ports: which host or flow has which, and back.
//!
//! Addresses are given by the host's number n, counted from 0: IPv4 10.0.0.0 + n + 1, MAC 02:00:00:00:00:00 + n + 1. A packet's
//! Ethernet destination is that of its host. A flow's ports tell its endpoints: see [`ports`].

use wire::frame::Addresses;
use wire::packet::{Packet, Written};

use crate::network::{NO_HOST, Network};
use crate::pool::{PacketId, Slot};

const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 0, 0, 1]);

pub fn ipv4(host: u32) -> [u8; 4] {
    (FIRST_ADDRESS + host).to_be_bytes()
}

/// The host that an IPv4 address belongs to, if it is one of this plan.
fn host(address: [u8; 4]) -> Option<u32> {
    u32::from_be_bytes(address).checked_sub(FIRST_ADDRESS)
}

pub fn mac(host: u32) -> [u8; 6] {
    let n = (host + 1).to_be_bytes();
    [2, 0, n[0], n[1], n[2], n[3]]
}

/// Ports of one kind: those of sources, of TCP's receivers, of UDP's.
const SPAN: u32 = 16_000;
const SOURCES: u32 = 10_000;
pub(crate) const TCP_RECEIVERS: u32 = SOURCES + SPAN;
pub(crate) const UDP_RECEIVERS: u32 = TCP_RECEIVERS + SPAN;

/// Ports of a flow, the sending side's and the receiving side's, together tell its number among the TCP or the UDP flows. Flows
/// that are not thousands apart have different ones on both sides: a real receiver (iperf3) needs a port for itself.
pub(crate) fn ports(number: u32, receivers: u32) -> (u16, u16) {
    let (high, low) = (number / SPAN, number % SPAN);
    ((SOURCES + low) as u16, (receivers + (low + high) % SPAN) as u16)
}

/// The number of the flow with these ports.
fn number(source: u16, receiver: u16, receivers: u32) -> Option<u32> {
    let low = u32::from(source).checked_sub(SOURCES).filter(|low| *low < SPAN)?;
    let place = u32::from(receiver).checked_sub(receivers).filter(|place| *place < SPAN)?;
    Some((place + SPAN - low) % SPAN * SPAN + low)
}

/// Endpoint or source that a packet with these ports, from and to, is for.
pub(crate) fn endpoint((from, to): (u16, u16), tcp: bool) -> Option<u32> {
    match tcp {
        true if u32::from(to) >= TCP_RECEIVERS => Some(2 * number(from, to, TCP_RECEIVERS)? + 1),
        true => Some(2 * number(to, from, TCP_RECEIVERS)?),
        false => number(from, to, UDP_RECEIVERS),
    }
}

/// The host that a packet's IPv4 destination belongs to; [`NO_HOST`] for what is no IPv4 packet or of no host.
#[inline]
pub(crate) fn target(written: &Written) -> u32 {
    written.destination().and_then(host).unwrap_or(NO_HOST)
}

/// Addresses and ports of a packet that is fields, from host `from`.
fn of(slot: &Slot, from: u32) -> Addresses {
    let (port_from, port_to) = match &slot.packet {
        Packet::Tcp(_) => {
            let (sender, receiver) = ports(slot.endpoint / 2, TCP_RECEIVERS);
            // An endpoint with an odd number is a receiver: the packet is for it.
            if slot.endpoint % 2 == 1 { (sender, receiver) } else { (receiver, sender) }
        }
        _ => ports(slot.endpoint, UDP_RECEIVERS),
    };
    Addresses {
        mac_from: mac(from),
        mac_to: mac(slot.to),
        from: ipv4(from),
        to: ipv4(slot.to),
        port_from,
        port_to,
    }
}

impl Network {
    /// The host that a packet comes from that is fields.
    fn origin(&self, slot: &Slot) -> u32 {
        match slot.packet {
            Packet::Tcp(_) => self.endpoints[(slot.endpoint ^ 1) as usize].host,
            Packet::Udp(_) => self.sources[slot.endpoint as usize].host,
            // It has its addresses.
            Packet::Bytes(_) => NO_HOST,
        }
    }

    /// Takes a packet out of its slot as bytes.
    #[inline]
    pub(crate) fn take_written(&mut self, id: PacketId) -> Option<Box<Written>> {
        if let Packet::Bytes(written) = &mut self.packets.get_mut(id).packet {
            return written.take();
        }
        let mut written = self.spare();
        let from = self.origin(self.packets.get(id));
        let slot = self.packets.get_mut(id);
        let addresses = of(slot, from);
        written.set_packet(&addresses, &slot.packet);
        slot.packet = Packet::Bytes(None);
        Some(written)
    }

    /// All headers of a packet, for a capture.
    pub(crate) fn copy_written(&self, slot: &Slot) -> Written {
        let mut copy = match &slot.packet {
            Packet::Bytes(written) => written.as_deref().cloned().unwrap_or_default(),
            fields => {
                let mut copy = Written::default();
                copy.set_packet(&of(slot, self.origin(slot)), fields);
                copy
            }
        };
        copy.write_rest();
        copy
    }
}

#[cfg(test)]
mod tests {
    use wire::packet::Datagram;
    use wire::tcp::Segment;

    use super::*;

    #[test]
    fn packets_find_their_endpoints() {
        for tcp in [true, false] {
            for number in [0, 1, 2, 31_998, 32_000, 32_001, 131_070, 131_071, 400_001, 10_000, 10_001] {
                let packet = match tcp {
                    true => Packet::Tcp(Segment { payload: 100, ..Segment::default() }),
                    false => Packet::Udp(Datagram { payload: 112, ..Datagram::default() }),
                };
                let slot = Slot { endpoint: number, to: 300, next: 0, size: 0, packet: packet.clone() };
                let mut written = Written::default();
                written.set_packet(&of(&slot, 2), &packet);
                assert_eq!(target(&written), 300);
                assert_eq!(written.size(), 140);
                let (ports, _) = written.arrive().unwrap();
                assert_eq!(endpoint(ports, tcp), Some(number), "{number}");
            }
        }
    }
}
