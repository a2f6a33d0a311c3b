//! TCP flows that end, with their ends in two parts. Both connections go away at once when both are done ([`Network::retire`]); until then
//! the one that is done first answers what still comes. So at a host with such an end a part waits until it knows what the others have done
//! by then: it is told when their ends are done.

use std::collections::BTreeMap;

use crate::event::{Entry, Event, time};
use crate::network::{Action, Network};
use crate::node::NO_HOST;
use crate::pool::HELD;

/// When a flow's ends were done: the event that did it; the end that is here, and the other.
#[derive(Debug, Default, Clone, Copy)]
struct Done {
    here: Option<Entry>,
    there: Option<Entry>,
}

impl Done {
    /// After which event the connections are gone, as far as is known.
    fn gone_after(self) -> Option<Entry> {
        Some(self.here?.max(self.there?))
    }
}

/// Of a part: flows of which one end is done, and something to be told of it.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    plans: BTreeMap<u32, Done>,
    /// By host, how many of its ends are done while their connections are still there.
    hosts: Vec<u32>,
    ends: u32,
    /// For the parts of the other ends: plan and event.
    pub news: Vec<(u32, Entry)>,
}

/// What is known of the other parts.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// All that happens there before that time, but perhaps not the order of what happens in one moment.
    pub others: u64,
    /// All before this entry, if this part is the one that has come least far.
    pub up_to: Option<Entry>,
}

/// In place of an entry of which only the time is known to other parts: after all of that time.
pub(super) fn without_number(at: u64) -> Entry {
    Entry::from(at) << 64 | Entry::from(u64::MAX)
}

impl Lingering {
    pub fn any(&self) -> bool {
        self.ends > 0
    }

    /// The end that is here was done by this event, as all parts have it.
    pub fn was_done(&mut self, plan: u32, at: Entry) {
        if let Some(done) = self.plans.get_mut(&plan) {
            done.here = Some(at);
        }
    }
}

impl Network {
    /// The end of a flow that is here, if only one of them is.
    fn lone_end(&self, plan: u32) -> Option<u32> {
        let [a, b] = [2 * plan, 2 * plan + 1];
        match (self.is_elsewhere(a), self.is_elsewhere(b)) {
            (false, true) => Some(a),
            (true, false) => Some(b),
            _ => None,
        }
    }

    /// One of a flow's ends may be done. Gives whether the other is in another part, so that it is seen to here.
    pub(crate) fn is_done_alone(&mut self, plan: u32) -> bool {
        if self.parts.layout.is_none() {
            return false;
        }
        let Some(index) = self.lone_end(plan) else { return false };
        if self.endpoints[index as usize].connection.is_none() || !self.closing(index) {
            return true;
        }
        let now = self.parts.at;
        let lingering = &mut self.parts.lingering;
        let done = lingering.plans.entry(plan).or_default();
        if done.here.is_none() {
            done.here = Some(now);
            let gone = done.there.is_some_and(|there| there <= now);
            lingering.news.push((plan, now));
            self.linger(index, 1);
            if gone {
                self.part_from(plan);
            }
        }
        true
    }

    /// The part of the other end.
    pub(super) fn other_part(&self, plan: u32) -> u32 {
        let parts =
            [2 * plan, 2 * plan + 1].map(|index| self.part_of_host(self.endpoints[index as usize].host));
        if parts[0] == self.parts.index { parts[1] } else { parts[0] }
    }

    /// The other end of a flow is done, in another part. What was said before without its number has that now, unless it is `first`.
    pub(super) fn is_done_there(&mut self, plan: u32, at: Entry, first: bool) {
        let plans = &mut self.parts.lingering.plans;
        let done = if first { Some(plans.entry(plan).or_default()) } else { plans.get_mut(&plan) };
        if let Some(done) = done {
            done.there = Some(at);
        }
    }

    fn linger(&mut self, index: u32, more: i32) {
        let host = self.endpoints[index as usize].host as usize;
        let lingering = &mut self.parts.lingering;
        if lingering.hosts.len() <= host {
            lingering.hosts.resize(host + 1, 0);
        }
        lingering.hosts[host] = lingering.hosts[host].wrapping_add_signed(more);
        lingering.ends = lingering.ends.wrapping_add_signed(more);
    }

    /// Both ends are done: the connection that is here goes away; what is known of it stays.
    fn part_from(&mut self, plan: u32) {
        self.parts.lingering.plans.remove(&plan);
        if let Some(index) = self.lone_end(plan) {
            self.plans[plan as usize].outcome = self.tcp_outcome(plan);
            self.endpoints[index as usize].connection = None;
            self.linger(index, -1);
        }
    }

    /// The host at which an event may meet an end that lingers.
    fn lingers_at(&self, event: Event) -> Option<u32> {
        let host = match event {
            Event::Arrive(port) => self.nodes[self.ports[port as usize].to as usize].host,
            Event::Single(packet) => {
                let port = self.packets.get(packet).next;
                if port & HELD != 0 {
                    return None;
                }
                self.nodes[self.ports[port as usize].to as usize].host
            }
            Event::Timer(index) => self.endpoints[index as usize].host,
            Event::Action(action) => match self.actions[action as usize] {
                Action::Stop(plan) => self.endpoints[2 * plan as usize].host,
                _ => NO_HOST,
            },
            _ => NO_HOST,
        };
        self.parts.lingering.hosts.get(host as usize).is_some_and(|ends| *ends > 0).then_some(host)
    }

    /// Whether an event has to wait until more is known of the other parts. If it has not, what is gone by then goes.
    pub(super) fn has_to_wait(&mut self, entry: Entry, known: &Known) -> bool {
        let Some(host) = self.lingers_at(Event::unpack(entry as u64)) else { return false };
        let here = |plan: u32| {
            let index = self.lone_end(plan)?;
            (self.endpoints[index as usize].host == host).then_some(plan)
        };
        let plans = &self.parts.lingering.plans;
        if known.up_to.is_none_or(|up_to| entry > up_to) {
            let unsure = |done: &Done| done.there == Some(without_number(time(entry)));
            if time(entry) >= known.others
                || plans.iter().any(|(plan, done)| unsure(done) && here(*plan).is_some())
            {
                return true;
            }
        }
        let gone = |(plan, done): (&u32, &Done)| {
            let is_gone = done.gone_after().is_some_and(|after| after < entry);
            if is_gone { here(*plan) } else { None }
        };
        let gone: Vec<u32> = plans.iter().filter_map(gone).collect();
        gone.into_iter().for_each(|plan| self.part_from(plan));
        false
    }

    /// All parts have come to the same event: what is gone by then goes.
    pub(super) fn all_have_come(&mut self) {
        let plans = self.parts.lingering.plans.iter();
        let gone: Vec<u32> =
            plans.filter(|(_, done)| done.gone_after().is_some()).map(|(plan, _)| *plan).collect();
        gone.into_iter().for_each(|plan| self.part_from(plan));
    }
}
