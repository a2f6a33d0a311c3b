//! A packet's way from node to node: through routers, P4 switches, ports and wires.

use switch::Passed;
use units::Time;
use wire::frame::Addresses;
use wire::packet::{Packet, Written};
use wire::{tcp, udp};

use crate::addresses;
use crate::aqm::{Flow, FlowKey, Offered};
use crate::event::Event;
use crate::flow::{Endpoint, Source};
use crate::network::Network;
use crate::node::NO_HOST;
use crate::parts::draws;
use crate::pool::{PacketId, Slot};
use crate::port::{NO_CAPTURE, Taken};
use crate::routes::choice;

/// The host that a packet's IPv4 destination belongs to; [`NO_HOST`] for what is not an IPv4 packet or of no host.
#[inline]
pub(crate) fn target(written: &Written) -> u32 {
    written.destination().and_then(addresses::host).unwrap_or(NO_HOST)
}

impl Network {
    /// A packet has come to a node; `spread` is that of the port that sent it.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, to: u32, to_port: u32, spread: u32, id: PacketId) {
        let node = &self.nodes[to as usize];
        if node.host == NO_HOST {
            if node.switch != NO_HOST {
                self.deliver_to_switch(node.switch, to_port, id);
                return;
            }
            let slot = self.packets.get(id);
            if node.routes.get(slot.to as usize).is_none_or(|w| w.count == 0) {
                self.unclaimed += 1;
                self.packets.free(id);
                return;
            }
            let ways = node.routes[slot.to as usize];
            let port = if ways.count == 1 {
                ways.first
            } else {
                self.ways[(ways.first + choice(self.hash(slot), spread, ways.count)) as usize]
            };
            if self.crowded() {
                self.connection_ahead(port, id);
            }
            self.send(port, id);
            return;
        }
        self.deliver_to_host(node.host, id);
    }

    /// A packet has come to a host.
    fn deliver_to_host(&mut self, host: u32, id: PacketId) {
        let slot = self.packets.get(id);
        if slot.to != host && !matches!(slot.packet, Packet::Bytes(_)) {
            self.unclaimed += 1;
            self.packets.free(id);
            return;
        }
        let endpoint = slot.endpoint;
        match &slot.packet {
            Packet::Tcp(_) => self.receive(id),
            Packet::Udp(_) if self.agents.has(host) => self.receive_datagram_through_agents(host, id),
            Packet::Udp(datagram) => {
                self.sources[endpoint as usize].flow.receive(self.now, datagram);
                self.packets.free(id);
            }
            Packet::Bytes(_) => self.receive_written(host, id),
        }
    }

    /// What a router with several ways chooses by, for its flow.
    fn hash(&self, slot: &Slot) -> u32 {
        match &slot.packet {
            Packet::Tcp(_) => self.endpoints[slot.endpoint as usize].hash,
            Packet::Udp(_) => self.sources[slot.endpoint as usize].hash,
            Packet::Bytes(written) => written.as_ref().map_or(0, |written| written.hash()),
        }
    }

    /// A packet has come to a switch.
    pub(crate) fn deliver_to_switch(&mut self, index: u32, port: u32, id: PacketId) {
        let Some(written) = self.take_bytes(id) else { return };
        let Some(node) = &mut self.switches[index as usize] else { return };
        let (ports, now) = (&self.ports, self.now);
        let free = |number: u32| ports[node.ports[number as usize] as usize].free_at() <= now;
        let passed = node.switch.forward(Time::from_ps(now), port, written, free);
        self.pending |= node.watched && node.switch.has_pending();
        if let Some(Passed { port, queue, packet }) = passed {
            let slot = self.packets.get_mut(id);
            (slot.size, slot.to) = (packet.size(), target(&packet));
            slot.packet.put(packet);
            let port = node.ports[port as usize];
            self.emit(port, id, queue, 0);
        } else {
            self.packets.free(id);
        }
        self.wake_ports(index);
    }

    /// Takes a packet out of its slot as bytes.
    #[inline]
    fn take_bytes(&mut self, id: PacketId) -> Option<Box<Written>> {
        if let Packet::Bytes(written) = &mut self.packets.get_mut(id).packet {
            return written.take();
        }
        let mut written = self.spare();
        let addresses = self.addresses(self.packets.get(id));
        let slot = self.packets.get_mut(id);
        written.set_packet(&addresses, &slot.packet);
        slot.packet = Packet::Bytes(None);
        Some(written)
    }

    /// A copy of a packet with all of its headers, for a capture.
    pub(crate) fn copy_bytes(&self, slot: &Slot) -> Written {
        let mut copy = Written::default();
        self.copy_to(slot, &mut copy);
        copy.write_rest();
        copy
    }

    /// Makes a copy of a packet, with as much of its headers written as the packet has.
    pub(crate) fn copy_to(&self, slot: &Slot, copy: &mut Written) {
        match &slot.packet {
            Packet::Bytes(Some(written)) => copy.copy_from(written),
            Packet::Bytes(None) => copy.set_bytes(&[], 0),
            fields => copy.set_packet(&self.addresses(slot), fields),
        }
    }

    /// Those of a packet that is fields.
    fn addresses(&self, slot: &Slot) -> Addresses {
        addresses_of(&self.endpoints, &self.sources, slot)
    }

    /// Starts the ports of a switch that have got something to send and are free.
    #[inline(always)]
    pub(crate) fn wake_ports(&mut self, index: u32) {
        if self.switches[index as usize].as_ref().is_some_and(|node| node.switch.has_ready()) {
            self.wake_ready_ports(index);
        }
    }

    #[inline(never)]
    fn wake_ready_ports(&mut self, index: u32) {
        while let Some(node) = &mut self.switches[index as usize]
            && let Some(number) = node.switch.take_ready()
        {
            let port = node.ports[number as usize];
            let free_at = self.ports[port as usize].free_at();
            let next = if free_at > self.now { Some(free_at) } else { self.pull(port) };
            if let Some(next) = next {
                self.events.push(next, Event::Free(port));
            }
        }
    }

    /// A port of a switch, or with a managed queue, may be free: sends the next packet, if there is one. Gives when to look at it
    /// again.
    pub(crate) fn pull(&mut self, port: u32) -> Option<u64> {
        let p = &self.ports[port as usize];
        if p.free_at() > self.now {
            return None;
        }
        if p.managed.is_some() {
            return self.pull_managed(port);
        }
        let (index, number) = (p.of_switch, p.number);
        let node = self.switches.get_mut(index as usize).and_then(Option::as_mut)?;
        let Some(out) = node.switch.transmit(Time::from_ps(self.now), number) else {
            // Something may wait for a shaper.
            let next = node.switch.next_transmit(number).map(|at| at.as_ps().max(self.now + 1));
            self.pending |= node.watched && node.switch.has_pending();
            self.wake_ports(index);
            return next;
        };
        let next = node.switch.next_transmit(number);
        self.pending |= node.watched && node.switch.has_pending();
        let id = self.packets.reserve(target(&out.packet), port, out.packet.size());
        self.packets.get_mut(id).packet.put(out.packet);
        self.emit(port, id, out.queue, out.waited.as_ps());
        let free_at = self.ports[port as usize].free_at();
        self.wake_ports(index);
        next.map(|next| free_at.max(next.as_ps()))
    }

    /// Sends a packet that has waited by a port whose wire is free.
    fn emit(&mut self, port: u32, id: PacketId, queue: usize, waited: u64) {
        let size = self.packets.get(id).size;
        let p = &mut self.ports[port as usize];
        if p.has_no_room(size) {
            self.lose(port, id, size);
            return;
        }
        p.note_wait(queue, waited);
        let (arrives, first) = p.put(self.now, id, size);
        let (special, capture) = (p.special, p.captures_sent);
        if capture != NO_CAPTURE {
            self.capture_sent(capture, self.now, id);
        }
        if special {
            self.send_special(port, id, arrives);
        } else if first {
            self.events.push(arrives, Event::Arrive(port));
        }
    }

    /// There is no room on the wire for a packet that is to be sent.
    #[cold]
    fn lose(&mut self, port: u32, id: PacketId, size: u32) {
        let p = &mut self.ports[port as usize];
        p.lose(self.now, size);
        if let Some(node) = self.switches.get_mut(p.of_switch as usize).and_then(Option::as_mut) {
            node.switch.has_no_memory();
        }
        self.packets.free(id);
    }

    /// A packet is on a wire that is impaired or leads to another part. There its arrival is an event, which may be the next on that
    /// wire: its place is kept.
    #[inline(never)]
    fn send_special(&mut self, port: u32, id: PacketId, arrives: u64) {
        let p = &mut self.ports[port as usize];
        if p.impaired {
            self.impair(port, id, arrives);
        } else {
            p.reserve(self.events.reserve());
        }
    }

    /// Hands a packet to a port.
    #[inline]
    pub(crate) fn send(&mut self, port: u32, id: PacketId) {
        let p = &mut self.ports[port as usize];
        if p.managed.is_some() {
            self.send_managed(port, id);
            return;
        }
        let taken = p.push(self.now, id, self.packets.get_mut(id));
        if p.captures_sent != NO_CAPTURE && !matches!(taken, Taken::Dropped) {
            let (capture, at) = (p.captures_sent, p.starts().next_back().unwrap_or(self.now));
            self.capture_sent(capture, at, id);
        }
        match taken {
            Taken::Queued { first: None } => {}
            Taken::Queued { first: Some(at) } => self.events.push(at, Event::Arrive(port)),
            Taken::Dropped => self.packets.free(id),
            Taken::Special { at } => self.send_special(port, id, at),
        }
    }

    /// Hands a packet to a port with a managed queue.
    fn send_managed(&mut self, port: u32, id: PacketId) {
        let slot = self.packets.get(id);
        let endpoint = matches!(slot.packet, Packet::Tcp(_)).then_some(slot.endpoint);
        let flow = Flow { endpoint, key: || flow_key(&self.endpoints, &self.sources, slot) };
        let mut dropped = Vec::new();
        let p = &mut self.ports[port as usize];
        let offered = p.manage(self.now, (id, slot), flow, &mut self.random, &mut dropped);
        dropped.into_iter().for_each(|id| self.packets.free(id));
        match offered {
            Offered::Dropped => self.packets.free(id),
            // There is an event under way while packets wait.
            Offered::Waits { ask: false } => {}
            Offered::Waits { ask: true } => self.ask_managed(port),
        }
    }

    /// A managed queue may have got something to send.
    pub(crate) fn ask_managed(&mut self, port: u32) {
        let free_at = self.ports[port as usize].free_at();
        let next = if free_at > self.now { Some(free_at) } else { self.pull_managed(port) };
        if let Some(next) = next {
            self.events.push(next, Event::Free(port));
        }
    }

    /// Sends the next packet of a managed queue. Gives when to look at it again.
    fn pull_managed(&mut self, port: u32) -> Option<u64> {
        let p = &mut self.ports[port as usize];
        let mut dropped = Vec::new();
        let next = p.next_managed(self.now, &mut dropped);
        dropped.into_iter().for_each(|id| self.packets.free(id));
        if let Some((id, queue, waited)) = next {
            if self.crowded()
                && let Some(behind) = self.ports[port as usize].managed.as_ref().and_then(|m| m.behind(queue))
            {
                self.packet_ahead(behind);
            }
            self.emit(port, id, queue, waited);
        }
        self.ports[port as usize].ask_again(self.now)
    }

    /// A packet on a wire that loses, doubles or delays, or has done so.
    pub(crate) fn impair(&mut self, port: u32, id: PacketId, at: u64) {
        let p = &mut self.ports[port as usize];
        self.packets.get_mut(id).next = port;
        if !draws(&p.link) {
            self.events.push(at, Event::Single(id));
            return;
        }
        let random = &mut self.random;
        let jitter = p.link.jitter.as_ps() as f64;
        if random.chance(p.link.duplicate) {
            let copy = self.packets.add(self.packets.get(id).clone());
            let later = (random.unit() * jitter) as u64;
            self.events.push(at + later, Event::Single(copy));
        }
        if p.loses(random) {
            p.statistics.lost += 1;
            self.packets.free(id);
            return;
        }
        let mut later = (random.unit() * jitter) as u64;
        if random.chance(p.link.reorder) {
            later += p.link.reorder_by.as_ps();
        }
        self.events.push(at + later, Event::Single(id));
    }
}

/// Addresses and ports of a packet that is fields.
fn addresses_of(endpoints: &[Endpoint], sources: &[Source], slot: &Slot) -> Addresses {
    let endpoint = slot.endpoint;
    match slot.packet {
        Packet::Udp(_) => addresses::of(endpoint, false, sources[endpoint as usize].host, slot.to),
        // From the other half of the flow.
        _ => addresses::of(endpoint, true, endpoints[endpoint as usize].peer_host, slot.to),
    }
}

/// The flow that a packet is of.
fn flow_key(endpoints: &[Endpoint], sources: &[Source], slot: &Slot) -> FlowKey {
    let (protocol, addresses) = match &slot.packet {
        Packet::Tcp(_) => (tcp::PROTOCOL, addresses_of(endpoints, sources, slot)),
        Packet::Udp(_) => (udp::PROTOCOL, addresses_of(endpoints, sources, slot)),
        Packet::Bytes(written) => written.as_ref().and_then(|w| w.five_tuple()).unwrap_or_default(),
    };
    let Addresses { from, to, port_from, port_to, .. } = addresses;
    FlowKey::new(from, to, protocol, port_from, port_to)
}
