//! Packets' way through the agents of a host: out of its connections, and to them.

use transport::host::{Packet, Verdict};
use transport::segment::{Ecn, Flags, Segment};
use transport::tcp::Phase;
use units::Time;
use wire::WireError;
use wire::frame::{self, Addresses, Body};
use wire::options::Options;
use wire::packet::{self, Written};

use super::OPENED;
use crate::addresses::{UDP_RECEIVERS, ipv4, mac, ports};
use crate::event;
use crate::flow::AGENT;
use crate::network::Network;
use crate::node::NO_HOST;
use crate::pool::{CAME, HELD, PacketId, Slot};

impl Network {
    /// Gives a packet to all agents of a host, which may edit it. `index`: the connection's end, for TCP.
    fn through_agents(&mut self, host: u32, index: Option<u32>, sent: bool, packet: &mut Packet) -> Verdict {
        let flow = index.map(|index| self.agent_flow(index).0);
        let now = Time::from_ps(self.now);
        let count = self.agents.by_host[host as usize].len();
        let mut until = None;
        for step in 0..count {
            let at = if sent { step } else { count - 1 - step };
            let id = self.agents.by_host[host as usize][at];
            let agent = &mut self.agents.all[id as usize];
            let verdict = match sent {
                true => agent.chain.sent(now, flow.as_ref(), packet),
                false => agent.chain.received(now, flow.as_ref(), packet),
            };
            match verdict {
                Verdict::Pass => {}
                Verdict::Drop => agent.counts.dropped += 1,
                Verdict::Hold(at) => {
                    agent.counts.held += 1;
                    until = until.max(Some(at));
                }
            }
            self.apply_effects(id);
            if verdict == Verdict::Drop {
                return Verdict::Drop;
            }
        }
        until.map_or(Verdict::Pass, Verdict::Hold)
    }

    /// A connection of a host with agents sends a segment.
    #[cold]
    pub(crate) fn send_through_agents(&mut self, index: u32, segment: Segment) {
        let host = self.endpoints[index as usize].host;
        let mut packet = Packet::new(Body::Tcp(segment), Options::EMPTY);
        match self.through_agents(host, Some(index), true, &mut packet) {
            Verdict::Pass => self.send_from(index, &packet, None),
            Verdict::Hold(until) => self.send_from(index, &packet, Some(until)),
            Verdict::Drop => {}
        }
    }

    /// A packet of a connection's end leaves, now or when it was held back for so long.
    pub(super) fn send_from(&mut self, index: u32, packet: &Packet, until: Option<Time>) {
        let (flow, _) = self.agent_flow(index);
        let end = &self.endpoints[index as usize];
        let (host, to, hold) = (end.host, end.peer_host, end.hold & !AGENT);
        let port = self.nodes[self.hosts[host as usize] as usize].ports[0];
        let (size, Body::Tcp(segment)) = (packet.size(), packet.body) else { return };
        let between = packet.options().between.is_some();
        let packet = match packet.options().is_empty() {
            true => packet::Packet::Tcp(segment),
            false => packet::Packet::Bytes(Some(self.written_with_options([host, to], flow.ports, packet))),
        };
        // A router does not know what stands between Ethernet and IP.
        let to = if between { NO_HOST } else { to };
        let id = self.packets.add(Slot { endpoint: index ^ 1, to, next: port | HELD, size, packet });
        let leaves = self.now.max(until.map_or(0, Time::as_ps)) + hold;
        if leaves > self.now {
            // A longer way, not a queue.
            self.events.push(leaves, event::Event::Single(id));
            return;
        }
        self.send(port, id);
        if segment.payload > 0
            && let Some(connection) = &mut self.endpoints[index as usize].connection
        {
            let leaves = Time::from_ps(self.ports[port as usize].drained(self.now));
            connection.handed_down(Time::from_ps(self.now), size, leaves);
        }
    }

    fn written_with_options(&mut self, hosts: [u32; 2], ports: [u16; 2], packet: &Packet) -> Box<Written> {
        let addresses = Addresses {
            mac_from: mac(hosts[0]),
            mac_to: mac(hosts[1]),
            from: ipv4(hosts[0]),
            to: ipv4(hosts[1]),
            port_from: ports[0],
            port_to: ports[1],
        };
        let mut bytes = Vec::new();
        let zeros = frame::emit_with(&addresses, &packet.body, 64, packet.options(), &mut bytes);
        let mut written = self.spare();
        written.set_bytes(&bytes, zeros);
        written
    }

    /// A segment has come to an end whose host has an agent.
    #[cold]
    pub(crate) fn receive_through_agents(&mut self, index: u32, segment: &Segment, options: Options) {
        let end = &self.endpoints[index as usize];
        let host = end.host;
        let listens = end.connection.as_ref().is_some_and(|c| c.phase() == Phase::Listen);
        if listens && segment.flags.has(Flags::SYN) {
            // Agents know of a connection before they see its packets.
            self.notify_agents_of(index, OPENED);
        }
        let mut packet = Packet::new(Body::Tcp(*segment), options);
        let verdict = self.through_agents(host, Some(index), false, &mut packet);
        let Body::Tcp(segment) = packet.body else { return };
        match verdict {
            Verdict::Drop => {}
            Verdict::Pass => self.pass_in(index, &segment),
            Verdict::Hold(until) => {
                let size = packet.size();
                let packet = packet::Packet::Tcp(segment);
                let id =
                    self.packets.add(Slot { endpoint: index, to: host, next: HELD | CAME, size, packet });
                self.events.push(until.as_ps().max(self.now), event::Event::Single(id));
            }
        }
    }

    /// A packet that an agent has kept goes on to TCP.
    pub(crate) fn release(&mut self, id: PacketId) {
        let slot = self.packets.get(id);
        let endpoint = slot.endpoint;
        if let packet::Packet::Tcp(segment) = slot.packet {
            self.packets.free(id);
            self.pass_in(endpoint, &segment);
        }
    }

    /// TCP gets a segment that its host's agents have passed.
    fn pass_in(&mut self, index: u32, segment: &Segment) {
        let Some(connection) = &mut self.endpoints[index as usize].connection else {
            self.unclaimed += 1;
            return;
        };
        connection.receive(Time::from_ps(self.now), segment);
        self.notify_agents(index);
        self.after_segment(index, segment.flags);
    }

    /// A host with an agent sends a datagram.
    #[cold]
    pub(crate) fn send_datagram_aside(&mut self, host: u32, mut slot: Slot) {
        let packet::Packet::Udp(datagram) = &slot.packet else { return };
        let body = Body::Udp { payload: datagram.payload, ecn: datagram.ecn };
        let mut seen = Packet::new(body, Options::EMPTY);
        let verdict = self.through_agents(host, None, true, &mut seen);
        let port = self.nodes[self.hosts[host as usize] as usize].ports[0];
        if !seen.options().is_empty() {
            let (from, to) = ports(slot.endpoint, UDP_RECEIVERS);
            slot.packet =
                packet::Packet::Bytes(Some(self.written_with_options([host, slot.to], [from, to], &seen)));
            slot.size = seen.size();
            if seen.options().between.is_some() {
                slot.to = NO_HOST;
            }
        } else if let (packet::Packet::Udp(datagram), Body::Udp { ecn, .. }) = (&mut slot.packet, seen.body) {
            datagram.ecn = ecn;
        }
        slot.next = port | HELD;
        match verdict {
            Verdict::Drop => {}
            Verdict::Pass => {
                let id = self.packets.add(slot);
                self.send(port, id);
            }
            Verdict::Hold(until) => {
                let id = self.packets.add(slot);
                self.events.push(until.as_ps().max(self.now), event::Event::Single(id));
            }
        }
    }

    /// A datagram has come to a host with an agent.
    #[cold]
    pub(crate) fn receive_datagram_through_agents(&mut self, host: u32, id: PacketId) {
        let slot = self.packets.get(id);
        let (source, now) = (slot.endpoint as usize, self.now);
        if let packet::Packet::Udp(mut datagram) = slot.packet {
            self.packets.free(id);
            let passed = self.datagram_through_agents(host, datagram.payload, datagram.ecn, Options::EMPTY);
            if let Some((_, ecn)) = passed {
                datagram.ecn = ecn;
                self.sources[source].flow.receive(now, &datagram);
            }
        }
    }

    /// A datagram that has come, as a host's agents pass it, if it has any; `None`: they drop it.
    pub(crate) fn datagram_through_agents(
        &mut self,
        host: u32,
        payload: u32,
        ecn: Ecn,
        options: Options,
    ) -> Option<(u32, Ecn)> {
        if !self.agents.has(host) {
            return Some((payload, ecn));
        }
        let mut packet = Packet::new(Body::Udp { payload, ecn }, options);
        let verdict = self.through_agents(host, None, false, &mut packet);
        match packet.body {
            Body::Udp { payload, ecn } if verdict != Verdict::Drop => Some((payload, ecn)),
            _ => None,
        }
    }
}

/// The options of a packet that has come to a host with an agent.
///
/// # Errors
/// One of them makes no sense, or the packet, and the host drops it.
#[cold]
pub(crate) fn options_for_agents(written: &mut Written) -> Result<Options, WireError> {
    let wire_len = written.wire_len() as u32;
    frame::options(written.whole(), wire_len)
}
