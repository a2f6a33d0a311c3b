//! A network becomes several, each with what happens at its nodes, and one again.

use std::sync::Arc;

use super::Layout;
use super::linger::Lingering;
use crate::event::{self, Entry, Event};
use crate::flow::{Endpoint, Source};
use crate::network::{Action, Network};
use crate::port::Port;

impl Network {
    /// Divides a network in which nothing has happened yet.
    pub(super) fn divide(&mut self, layout: Layout) {
        let layout = Arc::new(layout);
        self.parts.layout = Some(layout.clone());
        let mut rest: Vec<Network> = (1..layout.parts).map(|index| self.another(index as u32)).collect();
        for port in 0..self.ports.len() {
            let owner = layout.ports[port];
            if let Some(part) = owner.checked_sub(1).and_then(|index| rest.get_mut(index as usize)) {
                std::mem::swap(&mut self.ports[port], &mut part.ports[port]);
            }
            if layout.nodes[self.ports[port].to as usize] != owner {
                match owner.checked_sub(1) {
                    None => self.ports[port].cut(),
                    Some(index) => rest[index as usize].ports[port].cut(),
                }
            }
        }
        for (index, planned) in self.programs.iter().enumerate() {
            if let Some(part) = layout.nodes[planned.node.0 as usize].checked_sub(1) {
                rest[part as usize].switches[index] = self.switches[index].take();
            }
        }
        self.parts.rest = rest;
        for entry in self.events.take_all() {
            self.put_where_it_belongs(entry);
        }
    }

    /// A part with nothing of its own yet.
    fn another(&self, index: u32) -> Network {
        let mut part = Network::new(self.seed);
        part.now = self.now;
        part.nodes.clone_from(&self.nodes);
        part.ports = self.ports.iter().map(Port::stand_in).collect();
        part.ways.clone_from(&self.ways);
        part.hosts.clone_from(&self.hosts);
        part.endpoints = self.endpoints.iter().map(Endpoint::unopened).collect();
        part.plans.clone_from(&self.plans);
        let source = |s: &Source| Source::new(s.planned.clone(), s.host, s.peer_host, s.hash);
        part.sources = self.sources.iter().map(source).collect();
        part.pages.clone_from(&self.pages);
        part.kinds.clone_from(&self.kinds);
        part.actions.clone_from(&self.actions);
        part.watchers.clone_from(&self.watchers);
        part.switches = self.switches.iter().map(|_| None).collect();
        // Only one of the parts draws from it.
        part.random = self.random.clone();
        part.routed = true;
        part.parts.layout.clone_from(&self.parts.layout);
        part.parts.index = index;
        part
    }

    /// An event of the whole network goes to the part that it is for.
    fn put_where_it_belongs(&mut self, entry: Entry) {
        let host_of = |plan: u32| self.endpoints[2 * plan as usize].host;
        let part = match Event::unpack(entry as u64) {
            Event::Action(action) => match self.actions[action as usize] {
                Action::Start(plan) => {
                    let (from, to) = (host_of(plan), self.endpoints[2 * plan as usize].peer_host);
                    let [from, to] = [from, to].map(|host| self.part_of_host(host));
                    if from != to {
                        // The half of it that is there.
                        self.part_mut(to).events.put_back(entry);
                    }
                    from
                }
                Action::Stop(plan) => self.part_of_host(host_of(plan)),
                Action::Ask(page) => self.part_of_host(host_of(self.pages[page as usize].first.1)),
                Action::Change(..) => {
                    self.parts.common.insert(entry);
                    return;
                }
                Action::Agent(_) => 0,
            },
            Event::Udp(source) => self.part_of_host(self.sources[source as usize].host),
            Event::Sample(_) => {
                self.parts.common.insert(entry);
                return;
            }
            Event::Generate(switch) => self.part_of_node(self.programs[switch as usize].node.0),
            Event::Free(port) => self.part_of_port(port),
            // Not before anything has happened.
            Event::Arrive(_) | Event::Timer(_) | Event::Single(_) => 0,
        };
        self.part_mut(part).events.put_back(entry);
    }

    /// Makes the network one again, for good.
    pub(crate) fn unite(&mut self, why: &'static str) {
        self.parts.why = Some(why.into());
        let Some(layout) = self.parts.layout.take() else { return };
        self.parts.lingering = Lingering::default();
        let made = self.all_parts().map(|part| part.events.made()).max();
        self.events.have_made(made.unwrap_or_default());
        let mut rest = std::mem::take(&mut self.parts.rest);
        let mut entries = Vec::from_iter(std::mem::take(&mut self.parts.common));
        let own = self.events.take_all().into_iter();
        entries.extend(own.filter(|entry| !self.is_half(*entry, 0, &layout)));
        for port in 0..self.ports.len() {
            let (from, to) = (layout.ports[port], layout.nodes[self.ports[port].to as usize]);
            let mut owned = self.take_port(&mut rest, from, port);
            if from != to {
                owned.take_back(&mut self.take_port(&mut rest, to, port));
            }
            self.ports[port] = owned;
        }
        for (index, part) in (1..).zip(&mut rest) {
            for entry in part.events.take_all() {
                let event = Event::unpack(entry as u64);
                let event = match event {
                    Event::Single(packet) => Event::Single(self.packets.add(part.packets.take(packet))),
                    // Planned since the division, by what happened in this part.
                    Event::Action(action) if action as usize >= layout.actions => {
                        self.actions.push(part.actions[action as usize].clone());
                        Event::Action(self.actions.len() as u32 - 1)
                    }
                    _ if self.is_half(entry, index, &layout) => continue,
                    event => event,
                };
                entries.push(event::in_place_of(entry, event));
            }
            self.take_state(part, index, &layout);
        }
        for (number, source) in self.sources.iter_mut().enumerate() {
            let [from, to] = [source.host, source.peer_host]
                .map(|host| layout.nodes[self.hosts[host as usize] as usize].checked_sub(1));
            // What it has received is at the other end.
            let mut received = source.flow.clone();
            if let Some(part) = to {
                received = rest[part as usize].sources[number].flow.clone();
            }
            if let Some(part) = from {
                source.flow = rest[part as usize].sources[number].flow.clone();
            }
            source.flow.take_received(&received);
        }
        for number in 0..self.plans.len() {
            let [from, to] = [2 * number, 2 * number + 1].map(|index| {
                let host = self.endpoints[index].host;
                match layout.nodes[self.hosts[host as usize] as usize].checked_sub(1) {
                    Some(part) => rest[part as usize].plans[number].outcome,
                    None => self.plans[number].outcome,
                }
            });
            let outcome = &mut self.plans[number].outcome;
            *outcome = from;
            outcome.take_received(&to);
        }
        entries.into_iter().for_each(|entry| self.events.put_back(entry));
    }

    /// Whether an entry is of a start that a part has for the receiving end alone.
    fn is_half(&self, entry: Entry, part: u32, layout: &Layout) -> bool {
        let Event::Action(action) = Event::unpack(entry as u64) else { return false };
        match self.actions.get(action as usize) {
            Some(Action::Start(plan)) if (action as usize) < layout.actions => {
                let host = self.endpoints[2 * *plan as usize].host;
                layout.nodes[self.hosts[host as usize] as usize] != part
            }
            _ => false,
        }
    }

    /// Takes a port, or what stands for it, out of a part, with its packets.
    fn take_port(&mut self, rest: &mut [Network], part: u32, port: usize) -> Port {
        let Some(index) = part.checked_sub(1) else {
            let stand_in = self.ports[port].stand_in();
            return std::mem::replace(&mut self.ports[port], stand_in);
        };
        let part = &mut rest[index as usize];
        let stand_in = part.ports[port].stand_in();
        let mut taken = std::mem::replace(&mut part.ports[port], stand_in);
        for id in taken.packets_mut() {
            *id = self.packets.add(part.packets.take(*id));
        }
        taken
    }

    /// What a part has at its nodes, but for ports, events and sources.
    fn take_state(&mut self, part: &mut Network, index: u32, layout: &Layout) {
        let hosts = &self.hosts;
        let is_there = |host: u32| layout.nodes[hosts[host as usize] as usize] == index;
        for (own, theirs) in self.endpoints.iter_mut().zip(&mut part.endpoints) {
            if is_there(own.host) {
                std::mem::swap(own, theirs);
            }
        }
        for (own, theirs) in self.pages.iter_mut().zip(&mut part.pages) {
            if is_there(self.endpoints[2 * own.first.1 as usize].host) {
                std::mem::swap(own, theirs);
            }
        }
        for (own, theirs) in self.switches.iter_mut().zip(&mut part.switches) {
            if theirs.is_some() {
                std::mem::swap(own, theirs);
            }
        }
        if layout.draws == index {
            self.random = part.random.clone();
        }
        self.written.append(&mut part.written);
        self.handled += part.handled;
        self.hops += part.hops;
        self.unclaimed += part.unclaimed;
    }
}
