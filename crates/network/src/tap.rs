//! Taps: a copy of each packet that has come over a wire goes into a P4 switch, as by an optical splitter and a mirror port, at
//! the time at which its last bit reaches the wire's end. The switch gets it by a port that needs no wire. What the wire loses is not seen.
//! Nobody else notices: the copy takes no time of the link, and a network without taps pays nothing.
//!
//! A monitor that sees each packet costs more than the hop itself. So a tap may show flows in turns: each in one of so many seconds, and
//! always what begins or ends a connection.

use wire::packet::{Arrived, Packet};
use wire::tcp::Flags;

use crate::addresses;
use crate::error::{BuildError, refuse};
use crate::network::Network;
use crate::node::{LAST_PORT, NO_HOST, NodeId};
use crate::pool::{PacketId, Slot};
use crate::port::PortId;

const SECOND: u64 = 1_000_000_000_000;

/// Where the copies of a wire's packets go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tap {
    pub switch: u32,
    /// Of the switch's port.
    pub number: u32,
    /// A flow is shown in one of so many seconds.
    pub every: u32,
}

/// Number of a packet's flow among those of its protocol, and whether it begins or ends a connection. `None`: it is of no flow.
fn flow(packet: &Slot, network: &Network) -> Option<(u32, bool)> {
    let of = |endpoint: u32, flags: Flags| (endpoint / 2, flags.any(Flags::SYN | Flags::FIN | Flags::RST));
    match &packet.packet {
        Packet::Tcp(segment) => Some(of(packet.endpoint, segment.flags)),
        Packet::Udp(_) => Some((packet.endpoint, false)),
        Packet::Bytes(_) => {
            let mut copy = network.copy_bytes(packet);
            let (ports, arrived) = copy.arrive().ok()?;
            match arrived {
                Arrived::Tcp(segment) => Some(of(addresses::endpoint(ports, true)?, segment.flags)),
                Arrived::Udp { .. } => Some((addresses::endpoint(ports, false)?, false)),
            }
        }
    }
}

impl Network {
    /// Whether a tap shows a packet now.
    #[inline]
    pub(crate) fn shows(&self, tap: Tap, id: PacketId) -> bool {
        if tap.every == 1 {
            return true;
        }
        let turn = self.now / SECOND;
        flow(self.packets.get(id), self).is_none_or(|(number, turns)| {
            turns || (turn + u64::from(number)).is_multiple_of(tap.every.into())
        })
    }

    /// A copy of each packet that comes over the wire of `port` goes into a switch by its port `number`. With `every` above 1 each
    /// flow is shown in one of so many seconds only, and what begins or ends a connection always.
    ///
    /// # Errors
    /// A node that is not a P4 switch, a number that v1model does not have, and one that a link or another tap of the switch has; one of
    /// 0 seconds.
    pub fn tap(&mut self, port: PortId, switch: NodeId, number: u32, every: u32) -> Result<(), BuildError> {
        self.unite_for("links are tapped while it runs");
        if every == 0 {
            return refuse("a tap shows a flow in one of 0 seconds; give 1 or more".to_owned());
        }
        let node = &self.nodes[switch.0 as usize];
        let (name, index) = (&node.name, node.switch);
        if index == NO_HOST {
            return refuse(format!("{name} is not a P4 switch; a tap needs one"));
        }
        if number > LAST_PORT {
            return refuse(format!("{name} cannot have a port {number}; the last is {}", LAST_PORT));
        }
        if self.has_link(switch, number) || self.has_tap(switch, number) {
            return refuse(format!("{name} has a port {number} already; give the tap another number"));
        }
        let watcher = self.watcher(port.0);
        watcher.taps.push(Tap { switch: index, number, every });
        Ok(())
    }
}
