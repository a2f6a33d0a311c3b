//! The loop that runs a network.

use switch::Passed;
use transport::cc;
use transport::segment::{Flags, Segment};
use transport::tcp::{Connection, Phase};
use transport::wire;
use units::Time;

use crate::capture::NO_CAPTURE;
use crate::events::Event;
use crate::flow::{NO_PAGE, Plan};
use crate::network::{Action, BuildError, NO_HOST, Network, UDP_HEADERS};
use crate::packet::{Body, HELD, Packet, PacketId};
use crate::port::{Port, QueueLimit, Taken};
use crate::record::Recorder;
use crate::switch_node::{self, Frame};
use crate::udp::Datagram;

/// Bytes of an IPv4 header without options.
const IP_HEADER: u32 = 20;

impl Network {
    /// Runs until `end`, or until a watched switch ([`Network::watch`]) has something for its controller; gives the time
    /// reached. Events at that time are done, unless there was news.
    ///
    /// # Errors
    /// Only before anything has run: a flow without a way.
    pub fn run_until(&mut self, end: Time) -> Result<Time, BuildError> {
        self.run_some(end, u64::MAX)
    }

    /// As [`Network::run_until`], but handles about so many events, so that the caller can look at other things. If it ends before
    /// its time for that, events at the time reached may still be to come.
    ///
    /// # Errors
    /// As [`Network::run_until`].
    pub fn run_some(&mut self, end: Time, events: u64) -> Result<Time, BuildError> {
        if !self.routed {
            self.route()?;
        }
        let end = end.as_ps();
        let last = self.handled.saturating_add(events);
        while let Some((at, event)) = self.events.first() {
            if at > end {
                break;
            }
            debug_assert!(at >= self.now);
            self.handled += 1;
            self.step(at, event);
            if self.news {
                self.news = false;
                return Ok(self.now());
            }
            // Whoever hears that the end is reached acts on it: everything before that is to be done.
            if self.handled >= last && at < end {
                return Ok(self.now());
            }
        }
        self.now = self.now.max(end);
        Ok(self.now())
    }

    /// Runs until `end`, whatever watched switches have; gives whether any of them has had something for its controller.
    ///
    /// # Errors
    /// As [`Network::run_until`].
    pub fn run_through(&mut self, end: Time) -> Result<bool, BuildError> {
        if !self.routed {
            self.route()?;
        }
        let end = end.as_ps();
        while let Some((at, event)) = self.events.first().filter(|(at, _)| *at <= end) {
            self.handled += 1;
            self.step(at, event);
        }
        self.now = self.now.max(end);
        Ok(std::mem::take(&mut self.news))
    }

    /// Handles the first event.
    #[inline]
    fn step(&mut self, at: u64, event: Event) {
        self.now = at;
        if let Event::Arrive(port) = event {
            let p = &mut self.ports[port as usize];
            let (to, to_port, capture) = (p.to, p.to_port, p.captures_come);
            let Some((packet, next)) = p.arrive(at) else {
                self.events.drop_first();
                return;
            };
            match next {
                Some(next) => self.events.replace_first(next, event),
                None => self.events.drop_first(),
            }
            self.hops += 1;
            if capture != NO_CAPTURE {
                self.capture_come(capture, packet);
            }
            self.deliver(to, to_port, packet);
            return;
        }
        if let Event::Free(port) = event {
            // The event goes on if the port does.
            match self.pull(port) {
                Some(next) => self.events.replace_first(next, event),
                None => self.events.drop_first(),
            }
            return;
        }
        self.events.drop_first();
        match event {
            Event::Arrive(_) | Event::Free(_) => {}
            Event::Timer(endpoint) => self.on_timer(endpoint),
            Event::Action(action) => self.on_action(action),
            Event::Udp(source) => self.on_udp(source),
            Event::Sample(recorder) => self.on_sample(recorder),
            Event::Generate(switch) => self.generate(switch),
            Event::Stray(packet) => {
                let port = self.packets.get(packet).next;
                if port & HELD != 0 {
                    self.send(port & !HELD, packet);
                    return;
                }
                self.hops += 1;
                let p = &self.ports[port as usize];
                let (to, to_port) = (p.to, p.to_port);
                if p.captures_come != NO_CAPTURE {
                    self.capture_come(p.captures_come, packet);
                }
                self.deliver(to, to_port, packet);
            }
        }
    }

    /// A packet has come to a node.
    #[inline]
    fn deliver(&mut self, to: u32, to_port: u32, id: PacketId) {
        let node = &self.nodes[to as usize];
        if node.host == NO_HOST {
            if node.switch != NO_HOST {
                self.deliver_to_switch(node.switch, to_port, id);
                return;
            }
            let packet = self.packets.get(id);
            if node.routes.get(packet.to as usize).is_none_or(|w| w.count == 0) {
                self.unclaimed += 1;
                self.packets.free(id);
                return;
            }
            let ways = node.routes[packet.to as usize];
            let port = if ways.count == 1 {
                ways.first
            } else {
                let hash = match &packet.body {
                    Body::Tcp(_) => self.endpoints[packet.endpoint as usize].hash,
                    Body::Udp(_) => self.sources[packet.endpoint as usize].hash,
                    Body::Frame(frame) => frame.hash(),
                };
                self.ways[(ways.first + hash % ways.count) as usize]
            };
            self.send(port, id);
            return;
        }
        let packet = self.packets.get(id);
        let endpoint = packet.endpoint;
        match &packet.body {
            Body::Tcp(segment) => {
                let segment = *segment;
                self.packets.free(id);
                self.receive(endpoint, &segment);
            }
            Body::Udp(datagram) => {
                self.sources[endpoint as usize].receive(self.now, datagram);
                self.packets.free(id);
            }
            Body::Frame(_) => {
                let host = node.host;
                self.receive_frame(host, id);
            }
        }
    }

    /// A frame has come to a host.
    fn receive_frame(&mut self, host: u32, id: PacketId) {
        let Some(frame) = self.packets.take_frame(id) else { return };
        if self.outside.has(host) {
            self.outside.put(host, self.now, frame);
            return;
        }
        let found = if frame.host() == Some(host) { switch_node::read(&frame) } else { None };
        self.recycle(frame.bytes);
        match found {
            Some((endpoint, wire::Body::Tcp(segment)))
                if self.endpoints.get(endpoint as usize).is_some_and(|e| e.host == host) =>
            {
                self.receive(endpoint, &segment);
            }
            Some((source, wire::Body::Udp { payload, ecn }))
                if self.sources.get(source as usize).is_some_and(|s| s.peer_host == host) =>
            {
                self.sources[source as usize].receive_unnumbered(payload, ecn);
            }
            _ => self.unclaimed += 1,
        }
    }

    /// A packet has come to a switch.
    fn deliver_to_switch(&mut self, index: u32, port: u32, id: PacketId) {
        if !matches!(self.packets.get(id).body, Body::Frame(_)) {
            let buffer = self.buffers.pop().unwrap_or_default();
            let frame = self.frame(self.packets.get(id), buffer);
            self.packets.get_mut(id).body = Body::Frame(frame);
        }
        let packet = self.packets.get_mut(id);
        let (Body::Frame(frame), Some(node)) = (&mut packet.body, &mut self.switches[index as usize]) else {
            return;
        };
        let (ports, now) = (&self.ports, self.now);
        let free = |number: u32| ports[node.ports[number as usize] as usize].free_at() <= now;
        let passed = node.switch.forward(Time::from_ps(now), port, &mut frame.bytes, frame.more, free);
        self.news |= node.watched && node.switch.has_news();
        if let Some(Passed { port, queue, more }) = passed {
            frame.more = more;
            (packet.size, packet.to) = (frame.size(), frame.host().unwrap_or(NO_HOST));
            let port = node.ports[port as usize];
            self.emit(port, id, queue, 0);
        } else {
            self.packets.free(id);
        }
        self.wake_ports(index);
    }

    /// Sees to what a switch has to do after something was done to it from outside.
    pub(crate) fn attend(&mut self, index: u32) {
        if let Some(node) = &mut self.switches[index as usize] {
            self.news |= node.watched && node.switch.has_news();
            let due = node.switch.next_wakeup().map_or(u64::MAX, Time::as_ps);
            if due < node.timer {
                node.timer = due.max(self.now);
                self.events.push(node.timer, Event::Generate(index));
            }
        }
        self.wake_ports(index);
    }

    /// A switch's packet generator is due, unless it was changed meanwhile.
    fn generate(&mut self, index: u32) {
        if let Some(node) = &mut self.switches[index as usize]
            && node.timer == self.now
        {
            node.timer = u64::MAX;
            node.switch.advance(Time::from_ps(self.now));
            self.attend(index);
        }
    }

    /// Starts the ports of a switch that have got something to send and are free.
    fn wake_ports(&mut self, index: u32) {
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
    fn pull(&mut self, port: u32) -> Option<u64> {
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
            self.news |= node.watched && node.switch.has_news();
            self.wake_ports(index);
            return next;
        };
        let next = node.switch.next_transmit(number);
        self.news |= node.watched && node.switch.has_news();
        let frame = Frame { bytes: out.bytes, more: out.more };
        let to = frame.host().unwrap_or(NO_HOST);
        let id = self.packets.add_frame(to, port, frame);
        self.emit(port, id, out.queue, out.waited.as_ps());
        let free_at = self.ports[port as usize].free_at();
        self.wake_ports(index);
        next.map(|next| free_at.max(next.as_ps()))
    }

    /// Sends a packet that has waited by a port whose wire is free.
    fn emit(&mut self, port: u32, id: PacketId, queue: usize, waited: u64) {
        let size = self.packets.get(id).size;
        let p = &mut self.ports[port as usize];
        p.note_wait(queue, waited);
        let (arrives, first) = p.put(self.now, id, size);
        if p.captures_sent != NO_CAPTURE {
            let capture = p.captures_sent;
            self.capture_sent(capture, self.now, id);
        }
        if self.ports[port as usize].strays {
            self.stray(port, id, arrives);
        } else if first {
            self.events.push(arrives, Event::Arrive(port));
        }
    }

    /// A segment has come to its endpoint.
    fn receive(&mut self, index: u32, segment: &Segment) {
        let endpoint = &mut self.endpoints[index as usize];
        let Some(connection) = &mut endpoint.connection else {
            self.unclaimed += 1;
            return;
        };
        connection.receive(Time::from_ps(self.now), segment);
        let page = endpoint.page;
        if index % 2 == 1 && connection.peer_closed() {
            self.on_peer_closed(index);
        }
        if page != NO_PAGE {
            self.on_page(page, index);
        }
        self.pump(index);
        if segment.flags.any(Flags::FIN | Flags::RST) || self.closing(index) {
            self.retire(index / 2);
        }
    }

    fn closing(&self, index: u32) -> bool {
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
    fn retire(&mut self, plan: u32) {
        let both = [2 * plan, 2 * plan + 1];
        if both.iter().all(|i| self.closing(*i)) {
            self.plans[plan as usize].outcome = self.tcp_outcome(plan);
            for index in both {
                self.endpoints[index as usize].connection = None;
            }
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
            Taken::Stray { at } => self.stray(port, id, at),
        }
    }

    /// Hands a packet to a port with a managed queue.
    fn send_managed(&mut self, port: u32, id: PacketId) {
        let p = &mut self.ports[port as usize];
        match p.manage(self.now, id, self.packets.get(id), &mut self.random) {
            None => self.packets.free(id),
            // There is an event under way while packets wait.
            Some(false) => {}
            Some(true) if p.free_at() > self.now => {
                let at = p.free_at();
                self.events.push(at, Event::Free(port));
            }
            Some(true) => {
                if let Some(next) = self.pull_managed(port) {
                    self.events.push(next, Event::Free(port));
                }
            }
        }
    }

    /// Sends the next packet of a managed queue. Gives when to look at it again.
    fn pull_managed(&mut self, port: u32) -> Option<u64> {
        let p = &mut self.ports[port as usize];
        let mut dropped = Vec::new();
        let next = p.next_managed(self.now, &mut dropped);
        dropped.into_iter().for_each(|id| self.packets.free(id));
        let (id, waited) = next?;
        self.emit(port, id, 0, waited);
        let p = &mut self.ports[port as usize];
        (p.depth(self.now).0 > 0).then_some(p.free_at())
    }

    /// A packet on a wire that loses, doubles or delays.
    fn stray(&mut self, port: u32, id: PacketId, at: u64) {
        let p = &mut self.ports[port as usize];
        self.packets.get_mut(id).next = port;
        let random = &mut self.random;
        let jitter = p.link.jitter.as_ps() as f64;
        if random.chance(p.link.duplicate) {
            let copy = self.packets.add(self.packets.get(id).clone());
            let later = (random.unit() * jitter) as u64;
            self.events.push(at + later, Event::Stray(copy));
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
        self.events.push(at + later, Event::Stray(id));
    }

    /// Sends what an endpoint has to send, and sets its timer.
    pub(crate) fn pump(&mut self, index: u32) {
        let now = Time::from_ps(self.now);
        let endpoint = &mut self.endpoints[index as usize];
        let (to, node, hold) = (endpoint.peer_host, self.hosts[endpoint.host as usize], endpoint.hold);
        loop {
            let Some(connection) = &mut self.endpoints[index as usize].connection else { return };
            let Some(segment) = connection.transmit(now) else { break };
            let size = IP_HEADER + segment.header_len() + segment.payload;
            let data = segment.payload > 0;
            let body = Body::Tcp(segment);
            let port = self.nodes[node as usize].ports[0];
            let id = self.packets.add(Packet { endpoint: index ^ 1, to, next: port | HELD, size, body });
            if hold > 0 {
                // A longer way, not a queue.
                self.events.push(self.now + hold, Event::Stray(id));
                continue;
            }
            self.send(port, id);
            if data && let Some(connection) = &mut self.endpoints[index as usize].connection {
                let leaves = Time::from_ps(self.ports[port as usize].drained(self.now));
                connection.handed_down(now, size, leaves);
            }
        }
        let endpoint = &mut self.endpoints[index as usize];
        let Some(connection) = &endpoint.connection else { return };
        let wake = connection.next_wakeup(now).as_ps();
        if wake < endpoint.timer {
            endpoint.timer = wake.max(self.now);
            self.events.push(endpoint.timer, Event::Timer(index));
        }
    }

    fn on_timer(&mut self, index: u32) {
        let endpoint = &mut self.endpoints[index as usize];
        // An event that an earlier one has overtaken.
        if endpoint.timer != self.now {
            return;
        }
        endpoint.timer = u64::MAX;
        let Some(connection) = &mut endpoint.connection else { return };
        connection.advance(Time::from_ps(self.now));
        self.pump(index);
        if self.closing(index) {
            self.retire(index / 2);
        }
    }

    fn on_action(&mut self, action: u32) {
        match &self.actions[action as usize] {
            Action::Start(plan) => self.start(*plan),
            Action::Ask(page) => self.ask(*page),
            Action::Stop(plan) => {
                let index = 2 * *plan;
                if let Some(connection) = &mut self.endpoints[index as usize].connection {
                    connection.stop_writing();
                    self.pump(index);
                }
            }
            Action::Change(port, link) => {
                let (port, link) = (*port as usize, (**link).clone());
                let before = self.ports[port].link.limit;
                let after = link.limit;
                self.ports[port].change(self.now, link);
                self.capture_changed(port as u32);
                if before != after {
                    self.limit_queues(port, after);
                }
            }
        }
    }

    /// The queues of a switch's port have the limit of its link.
    fn limit_queues(&mut self, port: usize, limit: QueueLimit) {
        let (index, number) = (self.ports[port].of_switch, self.ports[port].number);
        let Some(node) = self.switches.get_mut(index as usize).and_then(Option::as_mut) else { return };
        // The port is there, and the limit was checked when the change was planned.
        if let Ok(mut config) = node.switch.port_config(number) {
            for queue in &mut config.queues {
                queue.limit = switch::QueueLimit { packets: limit.packets, bytes: limit.bytes };
            }
            let _ = node.switch.configure_port(number, &config);
        }
    }

    fn start(&mut self, plan: u32) {
        let now = Time::from_ps(self.now);
        let ideal = self.ideal(plan);
        let Plan { flow, outcome, .. } = &mut self.plans[plan as usize];
        outcome.started = Some(now);
        outcome.ideal = ideal;
        // The name was checked when the flow was added.
        let (Some(control), Some(mirror)) =
            (cc::by_name(&flow.congestion_control), cc::by_name(&flow.congestion_control))
        else {
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
        self.endpoints[2 * plan as usize].connection = Some(Box::new(sender));
        self.endpoints[2 * plan as usize + 1].connection = Some(Box::new(receiver));
        if page == NO_PAGE {
            self.pump(2 * plan);
        } else {
            self.ask(page);
        }
    }

    fn on_udp(&mut self, index: u32) {
        let source = &mut self.sources[index as usize];
        let stop = source.flow.stop.map_or(u64::MAX, |stop| stop.as_ps());
        if self.now >= stop {
            return;
        }
        let datagram = Datagram {
            payload: source.flow.payload,
            number: source.statistics.sent,
            sent: self.now,
            ecn: source.flow.ecn,
        };
        source.statistics.sent += 1;
        let next = source.next(self.now, &mut self.random);
        let packet = Packet {
            endpoint: index,
            to: source.peer_host,
            next: 0,
            size: UDP_HEADERS + source.flow.payload,
            body: Body::Udp(datagram),
        };
        let node = self.hosts[source.host as usize];
        let port = self.nodes[node as usize].ports[0];
        let id = self.packets.add(packet);
        self.send(port, id);
        self.events.push(next.max(self.now + 1), Event::Udp(index));
    }

    fn on_sample(&mut self, index: u32) {
        let mut recorder = std::mem::replace(
            &mut self.recorders[index as usize],
            Recorder { period: 0, flows: None, ports: Vec::new(), queues: Default::default() },
        );
        if let Some(samples) = &mut recorder.flows {
            for plan in 0..self.plans.len() as u32 {
                let Some(sender) = &self.endpoints[self.sender(plan)].connection else { continue };
                let flow = sender.flow();
                samples.time.push(self.now);
                samples.flow.push(self.plans[plan as usize].number);
                samples.bytes_received.push(self.tcp_outcome(plan).bytes_received);
                samples.cwnd.push(flow.cwnd);
                samples.ssthresh.push(flow.ssthresh);
                samples.in_flight.push(flow.in_flight());
                samples.srtt.push(flow.srtt.as_ps());
                samples.rto.push(sender.rto().as_ps());
                samples.pacing_rate.push(flow.pacing_rate.as_bps());
                samples.retransmits.push(sender.statistics().retransmits);
                samples.timeouts.push(sender.statistics().timeouts);
                samples.delivered_ce.push(flow.delivered_ce);
            }
        }
        let samples = &mut recorder.queues;
        for port in &recorder.ports {
            let p = &mut self.ports[*port as usize];
            let mut row = |p: &Port, queue: usize, (packets, bytes): (u64, u64), delay: u64, dropped: u64| {
                samples.time.push(self.now);
                samples.port.push(*port);
                samples.queue.push(queue as u32);
                samples.packets.push(packets);
                samples.bytes.push(bytes);
                samples.delay.push(delay);
                samples.sent_bytes.push(p.statistics.bytes);
                samples.dropped.push(dropped);
                samples.marked.push(p.statistics.marked);
                // What is still to be sent has been counted already.
                samples.busy.push((p.statistics.busy_ps as u64).saturating_sub(p.backlog(self.now)));
            };
            let Some(Some(node)) = self.switches.get(p.of_switch as usize) else {
                let (depth, delay) = (p.depth(self.now), p.delay(self.now));
                row(p, 0, depth, delay, p.statistics.dropped);
                continue;
            };
            let mut queue = 0;
            while let Some((depth, counts)) = node.switch.queue(p.number, queue) {
                let wait = node.switch.head_wait(Time::from_ps(self.now), p.number, queue);
                row(p, queue, depth, wait.map_or(0, Time::as_ps), counts.dropped);
                queue += 1;
            }
        }
        self.events.push(self.now + recorder.period, Event::Sample(index));
        self.recorders[index as usize] = recorder;
    }
}
