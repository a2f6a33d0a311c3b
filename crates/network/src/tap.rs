//! Taps: a copy of each packet that has come over a wire goes into a P4 switch, as by an optical splitter and a mirror port, at
//! the time at which its last bit reaches the wire's end. The switch gets it by a port that needs no wire. What the wire loses is not seen.
//! Nobody else notices: the copy takes no time of the link, and a network without taps pays nothing.

use crate::error::{BuildError, refuse};
use crate::network::Network;
use crate::node::{LAST_PORT, NO_HOST, NodeId};
use crate::port::PortId;

impl Network {
    /// A copy of each packet that comes over the wire of `port` goes into a switch by its port `number`.
    ///
    /// # Errors
    /// A node that is not a P4 switch, a number that v1model does not have, and one that a link or another tap of the switch has.
    pub fn tap(&mut self, port: PortId, switch: NodeId, number: u32) -> Result<(), BuildError> {
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
        watcher.taps.push((index, number));
        Ok(())
    }
}
