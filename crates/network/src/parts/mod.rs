//! One run on several threads, with the results of one.
//!
//! A network is divided into parts by nodes. Each part is a network of its own, with all of the description and what happens at its own
//! nodes; the network itself is the first part and has the others. A packet on a link between two parts takes at least the link's
//! delay, so that parts run beside each other for that long and hand packets over then: conservative synchronisation, as
//! Unison for ns-3 (Bai et al., EuroSys 2024) and DONS (Gao et al., SIGCOMM 2023) have it. Events of one time are handled in the order
//! in which one thread would have made them ([`order`]), and what a part does depends on nothing else: results are those of one thread.
//!
//! | file | what |
//! |---|---|
//! | `layout` | which node is in which part |
//! | `divide` | a network becomes several, and one again |
//! | `linger` | flows that end, with their ends in two parts |
//! | `windows` | how parts run beside each other |
//! | `order` | the order of events of one time |

mod divide;
mod layout;
mod linger;
mod order;
mod windows;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use units::Time;

use crate::error::{BuildError, refuse};
use crate::event::{self, Entry, Event, NONE};
use crate::events::MOST_MADE;
use crate::network::{Action, Network};
use crate::port::{Link, PortId};

use linger::Lingering;

pub(crate) use layout::{Layout, draws};
pub(crate) use order::{Log, Numbers, Window};

/// More are not allowed.
const MOST_THREADS: usize = 256;

/// A part that has fewer events than this in a window, in the mean, gains less than its waiting for the others costs.
const LEAST_EVENTS: u64 = 128;

/// Events after which that is looked at; and then again and again, as what happens at first need not be what happens later. Two looks
/// that follow one another have to find it: the first one has the start of the flows. Each look stops the threads.
const TRIAL: u64 = 1 << 16;
const BETWEEN_LOOKS: u64 = 1 << 19;

/// What a look at the parts' events has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Look {
    #[default]
    NotYet,
    Few,
    Enough,
}

/// What a network has to do with its parts.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// Threads that are asked for; 0 or 1: one.
    wanted: usize,
    /// Which of them this is.
    index: u32,
    /// The other parts, of the first one while they do not run.
    rest: Vec<Network>,
    layout: Option<Arc<Layout>>,
    /// Events that concern several parts, of the first one: the parts come to them together.
    common: BTreeSet<Entry>,
    /// The event that is handled, while parts run beside each other.
    at: Entry,
    lingering: Lingering,
    /// Windows that the parts have run beside each other since that was looked at, and events in them; see [`LEAST_EVENTS`].
    windows: u64,
    events: u64,
    /// What the last look has found.
    looked: Look,
    /// Whether a division was tried, and why there is none.
    tried: bool,
    why: Option<Cow<'static, str>>,
}

impl Network {
    /// Lets a run have so many threads, from the next one on. What comes of it is the same to the bit.
    ///
    /// # Errors
    /// No threads, or far too many.
    pub fn set_threads(&mut self, threads: usize) -> Result<(), BuildError> {
        if !(1..=MOST_THREADS).contains(&threads) {
            return refuse(format!("a run on {threads} threads; give 1 to {MOST_THREADS}"));
        }
        self.parts.wanted = threads;
        Ok(())
    }

    /// On how many threads it runs, and why on fewer than asked for.
    pub fn threads(&self) -> (usize, Option<&str>) {
        (self.parts.rest.len() + 1, self.parts.why.as_deref())
    }

    /// Before a run: divides the network, or makes it one again, as it has to be now.
    pub(crate) fn arrange(&mut self) {
        if self.parts.wanted < 2 || self.parts.why.is_some() && !self.is_divided() {
            return;
        }
        if let Some(why) = self.alone() {
            self.unite(why);
        } else if !std::mem::replace(&mut self.parts.tried, true) {
            match self.layout(self.parts.wanted) {
                Ok(layout) => {
                    if layout.parts < self.parts.wanted {
                        let why = format!("it has {} parts of about the same work", layout.parts);
                        self.parts.why = Some(why.into());
                    }
                    self.divide(layout);
                }
                Err(why) => self.parts.why = Some(why.into()),
            }
        }
    }

    /// Why the network has to be one.
    fn alone(&self) -> Option<&'static str> {
        let divided = self.is_divided();
        if !divided && (self.handled > 0 || self.packets.len() > 0) {
            return Some("it has run on one already");
        }
        if !self.agents.all.is_empty() {
            return Some("hosts have agents");
        }
        if !self.captures.is_empty() {
            return Some("packets are captured");
        }
        let heard = self
            .all_parts()
            .flat_map(|part| part.switches.iter().flatten())
            .any(|node| node.watched && node.switch.may_tell());
        heard.then_some("a controller hears at once of a switch's digests or packets")
    }

    /// Makes a divided network one again for something that its division did not know of.
    pub(crate) fn unite_for(&mut self, what: &'static str) {
        if self.is_divided() {
            self.unite(what);
        }
    }

    /// Whether a port's link, if it is like this, is one that the network's division cannot bear.
    pub(crate) fn may_not_be_cut(&self, port: PortId, link: &Link) -> bool {
        let Some(layout) = &self.parts.layout else { return false };
        let (at, to) = (layout.ports[port.0 as usize], layout.nodes[self.ports[port.0 as usize].to as usize]);
        draws(link) || at != to && link.delay.as_ps() < layout.lookahead
    }

    #[inline]
    pub(crate) fn is_divided(&self) -> bool {
        !self.parts.rest.is_empty()
    }

    pub(crate) fn all_parts(&self) -> impl Iterator<Item = &Network> {
        std::iter::once(self).chain(&self.parts.rest)
    }

    fn part(&self, index: u32) -> &Network {
        match index.checked_sub(1).and_then(|index| self.parts.rest.get(index as usize)) {
            Some(part) => part,
            None => self,
        }
    }

    fn part_mut(&mut self, index: u32) -> &mut Network {
        match index.checked_sub(1) {
            Some(index) if self.is_divided() => &mut self.parts.rest[index as usize],
            _ => self,
        }
    }

    fn part_of_node(&self, node: u32) -> u32 {
        self.parts.layout.as_ref().map_or(0, |layout| layout.nodes[node as usize])
    }

    fn part_of_port(&self, port: u32) -> u32 {
        self.parts.layout.as_ref().map_or(0, |layout| layout.ports[port as usize])
    }

    fn part_of_host(&self, host: u32) -> u32 {
        self.part_of_node(self.hosts[host as usize])
    }

    /// How many events all parts have made.
    fn made_by_all(&self) -> u64 {
        self.all_parts().map(|part| part.events.made()).max().unwrap_or_default()
    }

    /// A part that is to be changed: what it makes comes behind all that has been made.
    fn part_behind_all(&mut self, index: u32) -> &mut Network {
        let made = self.made_by_all();
        let part = self.part_mut(index);
        part.events.have_made(made);
        part
    }

    /// The part that has a node.
    pub(crate) fn at_node(&mut self, node: u32) -> &mut Network {
        self.part_behind_all(self.part_of_node(node))
    }

    /// The part that has a port.
    pub(crate) fn at_port(&self, port: PortId) -> &Network {
        self.part(self.part_of_port(port.0))
    }

    /// The part that has a port.
    pub(crate) fn at_port_mut(&mut self, port: PortId) -> &mut Network {
        self.part_behind_all(self.part_of_port(port.0))
    }

    /// The part that has a host.
    pub(crate) fn at_host(&self, host: u32) -> &Network {
        self.part(self.part_of_host(host))
    }

    /// The part that has an endpoint.
    pub(crate) fn at_endpoint(&self, index: usize) -> &Network {
        self.at_host(self.endpoints[index].host)
    }

    /// Whether an endpoint is another part's, while parts run.
    pub(crate) fn is_elsewhere(&self, index: u32) -> bool {
        self.parts.layout.is_some()
            && self.part_of_host(self.endpoints[index as usize].host) != self.parts.index
    }

    /// Schedules an event that concerns several parts, now for `at`.
    pub(crate) fn schedule_common(&mut self, at: u64, event: Event) {
        if self.is_divided() {
            let made = self.made_by_all();
            self.events.have_made(made);
            let number = self.events.reserve();
            self.parts.common.insert(order::entry(at, number, event));
        } else {
            self.events.push(at, event);
        }
    }

    /// As [`Network::run_some`], on several threads.
    pub(crate) fn run_divided(&mut self, end: u64, events: u64) -> Time {
        let last = self.work().0.saturating_add(events);
        if self.made_by_all() >= MOST_MADE {
            self.unite("it has had more events than parts can number");
            return self.run_alone(end, events);
        }
        loop {
            let look = if self.parts.looked == Look::Enough { BETWEEN_LOOKS } else { TRIAL };
            if self.parts.events >= look {
                let parts = self.parts.rest.len() as u64 + 1;
                let few = self.parts.events < LEAST_EVENTS * parts * self.parts.windows;
                if few && self.parts.looked == Look::Few {
                    self.unite("too little happens in the time that a packet takes between its parts");
                    let left = last.saturating_sub(self.work().0);
                    return self.run_alone(end, left);
                }
                (self.parts.windows, self.parts.events) = (0, 0);
                self.parts.looked = if few { Look::Few } else { Look::Enough };
                continue;
            }
            let common = self.parts.common.first().copied().filter(|entry| event::time(*entry) <= end);
            let limit = common.unwrap_or(end.checked_add(1).map_or(NONE, |behind| Entry::from(behind) << 64));
            let before = self.work().0;
            let done = self.run_windows(limit, last.min(before + look));
            let after = self.work().0;
            self.parts.events += after - before;
            if !done && after < last {
                continue;
            }
            if !done {
                let now = self.all_parts().map(|part| part.now).max().unwrap_or(self.now);
                self.all_are_at(now);
                return self.now();
            }
            let Some(entry) = common else { break };
            self.parts.common.remove(&entry);
            self.all_are_at(event::time(entry));
            self.handled += 1;
            self.common_event(Event::unpack(entry as u64));
        }
        self.all_are_at(end);
        self.now()
    }

    fn all_are_at(&mut self, now: u64) {
        self.now = self.now.max(now);
        self.parts.rest.iter_mut().for_each(|part| part.now = part.now.max(now));
    }

    fn common_event(&mut self, event: Event) {
        match event {
            Event::Sample(recorder) => self.on_sample(recorder),
            Event::Action(action) => {
                let Action::Change(port, link) = self.actions[action as usize].clone() else { return };
                let owner = self.part_of_port(port);
                for index in 0..=self.parts.rest.len() as u32 {
                    let part = self.part_behind_all(index);
                    if index == owner {
                        part.change(port, (*link).clone());
                    } else {
                        part.ports[port as usize].is_elsewhere((*link).clone());
                    }
                }
            }
            _ => {}
        }
    }
}
