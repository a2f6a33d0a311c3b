//! Hosts: what comes to them, their timers, and what they send.

use transport::cc;
use transport::segment::{Flags, Segment};
use transport::tcp::{Connection, Phase, Rest, Transmitted};
use transport::udp;
use units::Time;
use wire::packet::{Arrived, Datagram, Packet, Written};

use crate::addresses;
use crate::agents::options_for_agents;
use crate::event::Event;
use crate::flow::{AGENT, NO_PAGE, Plan};
use crate::forward::target;
use crate::network::Network;
use crate::pool::{HELD, PacketId, Slot};
use wire::options::Options;
use wire::{Ecn, WireError};

/// Bytes of an IPv4 header without options.
const IP_HEADER: u32 = 20;

impl Network {
    /// A packet that is bytes has come to a host.
    pub(crate) fn receive_written(&mut self, host: u32, id: PacketId) {
        let written = self.packets.get_mut(id).packet.take();
        self.packets.free(id);
        let Some(mut written) = written else { return };
        if self.outside.has(host) {
            self.outside.put(host, self.now, written);
            return;
        }
        if self.agents.has(host) {
            self.receive_bytes_through_agents(host, &mut written);
        } else {
            self.receive_bytes(host, &mut written);
        }
        self.recycle(written);
    }

    /// As [`Network::receive_written`], at a host without agents, which does not look at options that TCP does not know.
    #[inline]
    fn receive_bytes(&mut self, host: u32, written: &mut Written) {
        let arrived = if target(written) == host { written.arrive().ok() } else { None };
        let found = arrived.and_then(|(ports, arrived)| {
            let index = addresses::endpoint(ports, arrived.is_tcp())?;
            self.is_at(host, index, arrived.is_tcp()).then_some((index, arrived))
        });
        match found {
            Some((endpoint, Arrived::Tcp(segment))) => self.take_in(endpoint, segment),
            Some((source, Arrived::Udp { payload, ecn, sent })) => {
                self.take_datagram(source, payload, ecn, sent);
            }
            None => self.unclaimed += 1,
        }
    }

    /// As [`Network::receive_bytes`], at a host with agents.
    fn receive_bytes_through_agents(&mut self, host: u32, written: &mut Written) {
        let between = self.agents.take_between(host, written);
        let here = between.is_ok() && target(written) == host;
        let options = if here { options_for_agents(written) } else { Ok(Options::EMPTY) };
        let malformed =
            between.is_err() || matches!(options, Err(WireError::IpOption | WireError::TcpOption));
        self.agents.malformed += u64::from(malformed);
        let options = options.ok().map(|known| Options { between: between.unwrap_or(None), ..known });
        let arrived = if here { written.arrive().ok() } else { None };
        let found = arrived.and_then(|(ports, arrived)| {
            let index = addresses::endpoint(ports, arrived.is_tcp())?;
            self.is_at(host, index, arrived.is_tcp()).then_some((index, arrived, options?))
        });
        match found {
            Some((endpoint, Arrived::Tcp(segment), options)) => {
                self.receive_through_agents(endpoint, segment, options);
            }
            Some((source, Arrived::Udp { payload, ecn, sent }, options)) => {
                if let Some((payload, ecn)) = self.datagram_through_agents(host, payload, ecn, options) {
                    self.take_datagram(source, payload, ecn, sent);
                }
            }
            None => self.unclaimed += 1,
        }
    }

    /// Whether what is for this endpoint (TCP) or of this source (UDP) is for the host.
    fn is_at(&self, host: u32, index: u32, tcp: bool) -> bool {
        match tcp {
            true => self.endpoints.get(index as usize).is_some_and(|endpoint| endpoint.host == host),
            false => self.sources.get(index as usize).is_some_and(|source| source.peer_host == host),
        }
    }

    /// A datagram of a source has come as bytes; `sent`: what it was when it was sent, if that is known.
    fn take_datagram(&mut self, source: u32, payload: u32, ecn: Ecn, sent: Option<Datagram>) {
        let flow = &mut self.sources[source as usize].flow;
        match sent {
            Some(sent) => flow.receive(self.now, &Datagram { payload, ecn, ..sent }),
            None => flow.receive_unnumbered(payload, ecn),
        }
    }

    /// A segment has come to its endpoint, which takes it where it is.
    #[inline]
    pub(crate) fn receive(&mut self, id: PacketId) {
        let slot = self.packets.get(id);
        let Packet::Tcp(segment) = &slot.packet else { return };
        let index = slot.endpoint;
        let endpoint = &mut self.endpoints[index as usize];
        if endpoint.hold & AGENT != 0 {
            let segment = *segment;
            self.packets.free(id);
            self.receive_through_agents(index, &segment, Options::EMPTY);
            return;
        }
        let flags = segment.flags;
        let here = endpoint.connection.as_mut();
        let taken = here.map(|connection| connection.receive(Time::from_ps(self.now), segment));
        self.packets.free(id);
        match taken {
            Some(()) => self.after_segment(index, flags),
            None => self.unclaimed += 1,
        }
    }

    fn take_in(&mut self, index: u32, segment: &Segment) {
        let Some(connection) = &mut self.endpoints[index as usize].connection else {
            self.unclaimed += 1;
            return;
        };
        connection.receive(Time::from_ps(self.now), segment);
        self.after_segment(index, segment.flags);
    }

    /// TCP has got a segment with these flags.
    #[inline]
    pub(crate) fn after_segment(&mut self, index: u32, flags: Flags) {
        let endpoint = &self.endpoints[index as usize];
        let Some(connection) = &endpoint.connection else { return };
        let page = endpoint.page;
        if index % 2 == 1 && connection.peer_closed() {
            self.on_peer_closed(index);
        }
        if page != NO_PAGE {
            self.on_page(page, index);
        }
        self.pump(index);
        if flags.any(Flags::FIN | Flags::RST) || self.closing(index) {
            self.retire(index / 2);
        }
    }

    pub(crate) fn closing(&self, index: u32) -> bool {
        let phase = self.endpoints[index as usize].connection.as_ref().map(|c| c.phase());
        !matches!(phase, Some(Phase::Established | Phase::SynSent | Phase::SynReceived | Phase::Listen))
    }

    /// All of a flow has come: its receiver closes too.
    fn on_peer_closed(&mut self, index: u32) {
        let now = Time::from_ps(self.now);
        let outcome = &mut self.plans[index as usize / 2].outcome;
        outcome.finished.get_or_insert(now);
        if let Some(connection) = &mut self.endpoints[index as usize].connection {
            connection.close();
        }
    }

    /// Connections whose both ends are done go away; what is known of them stays.
    pub(crate) fn retire(&mut self, plan: u32) {
        if self.is_done_alone(plan) {
            return;
        }
        let both = [2 * plan, 2 * plan + 1];
        if both.iter().all(|i| self.closing(*i)) {
            self.plans[plan as usize].outcome = self.tcp_outcome(plan);
            for index in both {
                if self.endpoints[index as usize].hold & AGENT != 0 {
                    self.part_from_agents(index);
                }
                self.endpoints[index as usize].connection = None;
            }
        }
    }

    /// Sends what an endpoint has to send, and sets its timer.
    pub(crate) fn pump(&mut self, index: u32) {
        let now = Time::from_ps(self.now);
        let endpoint = &mut self.endpoints[index as usize];
        let (to, node, hold) = (endpoint.peer_host, self.hosts[endpoint.host as usize], endpoint.hold);
        loop {
            let Some(connection) = &mut self.endpoints[index as usize].connection else { return };
            if hold & AGENT != 0 {
                let Some(segment) = connection.transmit(now) else { break };
                self.send_through_agents(index, segment);
                continue;
            }
            let mut transmitted = Transmitted::Nothing;
            let written = self.packets.add_segment(|out| {
                transmitted = connection.transmit_into(now, out);
                transmitted != Transmitted::Nothing
            });
            let Some((id, slot)) = written else { break };
            let Packet::Tcp(segment) = &slot.packet else { break };
            let size = IP_HEADER + segment.header_len() + segment.payload;
            let data = segment.payload > 0;
            let port = self.nodes[node as usize].ports[0];
            (slot.endpoint, slot.to, slot.next, slot.size) = (index ^ 1, to, port | HELD, size);
            if hold > 0 {
                // A longer way, not a queue.
                self.events.push(self.now + hold, Event::Single(id));
            } else {
                self.send(port, id);
                if data && let Some(connection) = &mut self.endpoints[index as usize].connection {
                    let leaves = Time::from_ps(self.ports[port as usize].drained(self.now));
                    connection.handed_down(now, size, leaves);
                }
            }
            if transmitted == Transmitted::Last {
                break;
            }
        }
        let endpoint = &mut self.endpoints[index as usize];
        let Some(connection) = &endpoint.connection else { return };
        let wake = connection.next_wakeup(now).as_ps();
        endpoint.rest = if hold & AGENT == 0 { connection.rest() } else { Rest::Busy };
        endpoint.rests_until = if endpoint.rest == Rest::Busy { 0 } else { wake };
        if wake < endpoint.timer {
            endpoint.timer = wake.max(self.now);
            self.events.push(endpoint.timer, Event::Timer(index));
        }
    }

    pub(crate) fn on_timer(&mut self, index: u32) {
        let endpoint = &mut self.endpoints[index as usize];
        // An event that an earlier one has overtaken.
        if endpoint.timer != self.now {
            return;
        }
        endpoint.timer = u64::MAX;
        let Some(connection) = &mut endpoint.connection else { return };
        if endpoint.rests_until > self.now {
            if endpoint.rest == Rest::Limited {
                connection.still_limited(Time::from_ps(self.now));
            }
            self.timer_later(index);
            return;
        }
        connection.advance(Time::from_ps(self.now));
        self.pump(index);
        if self.closing(index) {
            if self.endpoints[index as usize].hold & AGENT != 0 {
                self.notify_agents(index);
            }
            self.retire(index / 2);
        }
    }

    /// A timer event has come for a connection that rests: all that comes of it is the next one.
    #[inline]
    fn timer_later(&mut self, index: u32) {
        let endpoint = &mut self.endpoints[index as usize];
        if endpoint.rests_until < u64::MAX {
            endpoint.timer = endpoint.rests_until;
            self.events.push(endpoint.timer, Event::Timer(index));
        }
    }

    pub(crate) fn start(&mut self, plan: u32) {
        let now = Time::from_ps(self.now);
        let [sends, receives] = [2 * plan, 2 * plan + 1].map(|index| !self.is_elsewhere(index));
        if !sends {
            // It counts where the sender is.
            self.handled -= 1;
        }
        let ideal = self.ideal(plan);
        let Plan { flow, outcome, .. } = &mut self.plans[plan as usize];
        outcome.started = Some(now);
        outcome.ideal = ideal;
        // It was tried when the flow was added.
        let control = || cc::new(&flow.congestion_control, &flow.control_options);
        let (Ok(control), Ok(mirror)) = (control(), control()) else {
            return;
        };
        let mut config = flow.config.clone();
        config.seed ^= self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ u64::from(plan);
        let mut sender = Connection::connect(config, control);
        let page = self.endpoints[2 * plan as usize].page;
        if page == NO_PAGE {
            sender.write(flow.size.map_or(u64::MAX, |size| size.get()));
        }
        if flow.size.is_some() {
            sender.close();
        }
        let receiver = Connection::listen(flow.receiver_config.clone(), mirror);
        if receives {
            self.endpoints[2 * plan as usize + 1].connection = Some(Box::new(receiver));
        }
        if !sends {
            return;
        }
        self.endpoints[2 * plan as usize].connection = Some(Box::new(sender));
        self.meet_agents(2 * plan);
        self.meet_agents(2 * plan + 1);
        if page == NO_PAGE {
            self.pump(2 * plan);
        } else {
            self.ask(page);
        }
    }

    pub(crate) fn on_udp(&mut self, index: u32) {
        let source = &mut self.sources[index as usize];
        let stop = source.planned.stop.map_or(u64::MAX, |stop| stop.as_ps());
        if self.now >= stop {
            return;
        }
        let datagram = source.flow.send(self.now);
        let next = source.flow.next(self.now, &mut self.random);
        let slot = Slot {
            endpoint: index,
            to: source.peer_host,
            next: 0,
            size: udp::HEADERS + datagram.payload,
            packet: Packet::Udp(datagram),
        };
        let host = source.host;
        if self.agents.has(host) {
            self.send_datagram_aside(host, slot);
        } else {
            let node = self.hosts[host as usize];
            let port = self.nodes[node as usize].ports[0];
            let id = self.packets.add(slot);
            self.send(port, id);
        }
        self.events.push(next.max(self.now + 1), Event::Udp(index));
    }
}
