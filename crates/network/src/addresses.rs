//! The plan of addresses and ports: which host or flow has which, and back.
//!
//! Addresses are given by the host's number n, counted from 0: IPv4 10.0.0.0 + n + 1, MAC 02:00:00:00:00:00 + n + 1. A packet's
//! Ethernet destination is that of its host. A flow's ports tell its endpoints: see [`ports`].

use wire::frame::Addresses;

const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 0, 0, 1]);

pub fn ipv4(host: u32) -> [u8; 4] {
    (FIRST_ADDRESS + host).to_be_bytes()
}

/// The host that an IPv4 address belongs to, if it is one of this plan.
pub(crate) fn host(address: [u8; 4]) -> Option<u32> {
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

/// Source's and receiver's port of a flow by its number among the flows of its protocol.
pub fn flow_ports(number: u32, udp: bool) -> (u16, u16) {
    ports(number, if udp { UDP_RECEIVERS } else { TCP_RECEIVERS })
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

/// Addresses and ports of a packet for an endpoint (TCP) or of a source (UDP), between two hosts.
pub(crate) fn of(endpoint: u32, tcp: bool, from: u32, to: u32) -> Addresses {
    let (port_from, port_to) = if tcp {
        let (sender, receiver) = ports(endpoint / 2, TCP_RECEIVERS);
        // An endpoint with an odd number is a receiver: the packet is for it.
        if endpoint % 2 == 1 { (sender, receiver) } else { (receiver, sender) }
    } else {
        ports(endpoint, UDP_RECEIVERS)
    };
    let (mac_from, mac_to) = (mac(from), mac(to));
    Addresses { mac_from, mac_to, from: ipv4(from), to: ipv4(to), port_from, port_to }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_find_their_endpoints() {
        for tcp in [true, false] {
            for number in [0, 1, 2, 31_998, 32_000, 32_001, 131_070, 131_071, 400_001, 10_000, 10_001] {
                let Addresses { to, port_from, port_to, .. } = of(number, tcp, 2, 300);
                assert_eq!(host(to), Some(300));
                assert_eq!(endpoint((port_from, port_to), tcp), Some(number), "{number}");
            }
        }
    }
}
