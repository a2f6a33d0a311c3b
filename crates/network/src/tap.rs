//! Taps: a copy of each packet that has come over a wire goes into a P4 switch, as by an optical splitter and a mirror port, at
//! the time at which its last bit reaches the wire's end. The switch gets it by a port that needs no wire. What the wire loses is not seen.
//! Nobody else notices: the copy takes no time of the link, and a network without taps pays nothing.

use crate::build::LAST_PORT;
use crate::capture::NO_CAPTURE;
use crate::network::{BuildError, NO_HOST, Network, NodeId, refuse};
use crate::pool::PacketId;
use crate::port::PortId;

/// Who sees what comes out of a wire.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watcher {
    /// Number of a capture.
    pub capture: Option<u32>,
    /// Switches, and the number of the port by which each gets a copy.
    taps: Vec<(u32, u32)>,
}

impl Network {
    /// A copy of each packet that comes over the wire of `port` goes into a switch by its port `number`.
    ///
    /// # Errors
    /// A node that is no P4 switch, a number that v1model does not have, and one that a link or another tap of the switch has.
    pub fn tap(&mut self, port: PortId, switch: NodeId, number: u32) -> Result<(), BuildError> {
        let node = &self.nodes[switch.0 as usize];
        let (name, index) = (&node.name, node.switch);
        if index == NO_HOST {
            return refuse(format!("{name} is no P4 switch; a tap leads to one"));
        }
        if number > LAST_PORT {
            return refuse(format!("{name} cannot have a port {number}; the last is {}", LAST_PORT));
        }
        let taken = |p: &u32| self.ports[*p as usize].number == number;
        if node.ports.iter().any(taken) || self.watchers.iter().any(|w| w.taps.contains(&(index, number))) {
            return refuse(format!("{name} has a port {number} already; give the tap another number"));
        }
        let watcher = self.watcher(port.0);
        watcher.taps.push((index, number));
        Ok(())
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
            let (switch, number) = self.watchers[watcher as usize].taps[tap];
            let written = Box::new(self.copy_bytes(self.packets.get(id)));
            let copy = self.packets.reserve(NO_HOST, 0, written.size());
            self.packets.get_mut(copy).packet.put(written);
            self.deliver_to_switch(switch, number, copy);
        }
    }
}
