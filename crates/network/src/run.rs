//! The loop that runs a network.

use units::Time;

use crate::error::BuildError;
use crate::event::Event;
use crate::flow::AGENT;
use crate::network::{Action, Network};
use crate::pool::{CAME, HELD, PacketId};
use crate::port::{Link, NO_CAPTURE};

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
        self.arrange();
        let end = end.as_ps();
        if self.is_divided() {
            return Ok(self.run_divided(end, events));
        }
        Ok(self.run_alone(end, events))
    }

    /// As [`Network::run_some`], on one thread.
    pub(crate) fn run_alone(&mut self, end: u64, events: u64) -> Time {
        self.events.keep_numbers_low();
        let last = self.handled.saturating_add(events);
        while let Some((at, event)) = self.events.first() {
            if at > end {
                break;
            }
            debug_assert!(at >= self.now);
            self.handled += 1;
            self.step(at, event);
            if self.handled >= self.large_pages.look_at {
                self.join_pages();
            }
            if self.pending {
                self.pending = false;
                return self.now();
            }
            // Whoever hears that the end is reached acts on it: everything before that is to be done.
            if self.handled >= last && at < end {
                return self.now();
            }
        }
        self.now = self.now.max(end);
        self.now()
    }

    /// Runs until `end`, whatever watched switches have; gives whether any of them has had something for its controller.
    ///
    /// # Errors
    /// As [`Network::run_until`].
    pub fn run_through(&mut self, end: Time) -> Result<bool, BuildError> {
        if !self.routed {
            self.route()?;
        }
        self.unite("it runs by the clock");
        self.events.keep_numbers_low();
        let end = end.as_ps();
        while let Some((at, event)) = self.events.first().filter(|(at, _)| *at <= end) {
            self.handled += 1;
            self.step(at, event);
        }
        self.now = self.now.max(end);
        Ok(std::mem::take(&mut self.pending))
    }

    /// Handles the first event.
    #[inline(always)]
    pub(crate) fn step(&mut self, at: u64, event: Event) {
        self.now = at;
        match event {
            Event::Arrive(port) => self.on_arrival(port),
            // The event goes on if the port does.
            Event::Free(port) => match self.pull(port) {
                Some(next) => self.events.replace_first(next, event),
                None => self.events.drop_first(),
            },
            other => self.on_other(other),
        }
    }

    /// The first packet on a port's wire arrives.
    #[inline(always)]
    fn on_arrival(&mut self, port: u32) {
        let p = &mut self.ports[port as usize];
        let (to, to_port, spread, capture) = (p.to, p.to_port, p.spread, p.captures_come);
        let Some(packet) = p.arrive(self.now) else {
            self.events.drop_first();
            return;
        };
        match p.next_arrival() {
            Some(next) => self.events.replace_first(next, Event::Arrive(port)),
            None if p.is_cut() => self.drop_last_arrival(port),
            None => self.events.drop_first(),
        }
        if self.crowded() {
            self.packets_ahead(self.ports[port as usize].next_two());
            self.event_ahead();
        }
        self.hops += 1;
        if capture != NO_CAPTURE {
            self.watch_come(capture, packet);
        }
        self.deliver(to, to_port, spread, packet);
    }

    /// Handles another event than those that packets on ordinary ways make. Not a part of [`Network::step`], so that the memory on the
    /// stack that a new connection takes is not its own.
    #[inline(never)]
    fn on_other(&mut self, event: Event) {
        self.events.drop_first();
        if self.crowded() {
            self.event_ahead();
        }
        match event {
            Event::Arrive(_) | Event::Free(_) => {}
            Event::Timer(endpoint) => self.on_timer(endpoint),
            Event::Action(action) => self.on_action(action),
            Event::Udp(source) => self.on_udp(source),
            Event::Sample(recorder) => self.on_sample(recorder),
            Event::Generate(switch) => self.generate(switch),
            Event::Single(packet) => self.on_single(packet),
        }
    }

    /// A packet arrives by an event of its own.
    fn on_single(&mut self, packet: PacketId) {
        let port = self.packets.get(packet).next;
        if port & CAME != 0 {
            self.release(packet);
            return;
        }
        if port & HELD != 0 {
            self.send(port & !HELD, packet);
            return;
        }
        self.hops += 1;
        let p = &self.ports[port as usize];
        let (to, to_port, spread) = (p.to, p.to_port, p.spread);
        if p.captures_come != NO_CAPTURE {
            self.watch_come(p.captures_come, packet);
        }
        self.deliver(to, to_port, spread, packet);
    }

    /// There is nothing any more on a wire from another part, as far as is known here.
    #[cold]
    fn drop_last_arrival(&mut self, port: u32) {
        self.events.drop_first();
        let number = self.events.reserve();
        self.ports[port as usize].was_last(number);
    }

    #[inline(never)]
    fn on_action(&mut self, action: u32) {
        match &self.actions[action as usize] {
            Action::Start(plan) => self.start(*plan),
            Action::Ask(page) => self.ask(*page),
            Action::Agent(agent) => self.advance_agent(*agent),
            Action::Stop(plan) => {
                let (plan, index) = (*plan, 2 * *plan);
                let resets = self.plans[plan as usize].flow.resets;
                let end = &mut self.endpoints[index as usize];
                let Some(connection) = &mut end.connection else { return };
                if resets {
                    let has_agent = end.hold & AGENT != 0;
                    connection.abort();
                    self.pump(index);
                    if has_agent {
                        self.notify_agents(index);
                    }
                    self.retire(plan);
                } else {
                    connection.stop_writing();
                    self.pump(index);
                }
            }
            Action::Change(port, link) => self.change(*port, (**link).clone()),
        }
    }

    /// A wire has become impaired: what is on it arrives as it would have, and what waits goes over the impaired wire, each by an event
    /// of its own.
    fn become_impaired(&mut self, port: u32) {
        let (sent, waiting) = self.ports[port as usize].take_apart();
        for flight in sent {
            self.packets.get_mut(flight.packet).next = port;
            self.events.push(flight.arrives, Event::Single(flight.packet));
        }
        for flight in waiting {
            self.impair(port, flight.packet, flight.arrives);
        }
    }

    /// A port's link changes.
    pub(crate) fn change(&mut self, port: u32, link: Link) {
        let p = &mut self.ports[port as usize];
        let (before, after) = (p.link.limit, link.limit);
        let was_impaired = p.impaired;
        p.change(self.now, link);
        if p.impaired && !was_impaired {
            self.become_impaired(port);
        } else if let Some(at) = p.first_waits() {
            // It arrives at another time now, and the event of the time before is ignored.
            self.events.push(at, Event::Arrive(port));
        }
        self.capture_changed(port);
        if before != after {
            self.limit_queues(port as usize, after);
        }
    }
}
