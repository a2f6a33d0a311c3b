//! Which part each node is in, so that parts have about the same work and links with a long delay between them; or why there is only one.
//!
//! What acts on something else without a delay is of one part with it. Then the links with the longest delays that still allow an even
//! division are chosen as those that may be cut, and nodes are put together along the links that carry most.

use crate::aqm::Aqm;
use crate::flow::NO_PAGE;
use crate::network::{Action, Kind, Network};
use crate::node::{NO_HOST, Node};
use crate::port::Link;
use transport::udp::Pattern;

/// Which part has which node.
#[derive(Debug)]
pub(crate) struct Layout {
    pub parts: usize,
    /// By node.
    pub nodes: Vec<u32>,
    /// By port, the part of the node that it is at.
    pub ports: Vec<u32>,
    /// Picoseconds that each packet takes at least from one part to another.
    pub lookahead: u64,
    /// The part that draws random numbers, if any does.
    pub draws: u32,
    /// Actions that were planned at the division.
    pub actions: usize,
}

/// A part may have so much more work than its share, before links of a shorter delay are cut for the sake of balance.
const UNEVEN: f64 = 1.15;

/// With more of all the work in one part, several are not worth their waiting for each other.
const MOST: f64 = 0.75;

/// A P4 switch's work for a packet, in that of a plain router's. This and the next two by the times that two parts of a Clos took, of which
/// one had more hosts.
const P4_WORK: f64 = 3.0;

/// A host's; and one's at a P4 switch, where packets are written and parsed.
const HOST_WORK: f64 = 5.0;
const HOST_AT_P4_WORK: f64 = 9.0;

/// Sets that are joined one by one.
#[derive(Clone)]
struct Groups(Vec<u32>);

impl Groups {
    fn of(&mut self, node: u32) -> u32 {
        let mut at = node;
        while self.0[at as usize] != at {
            let above = self.0[self.0[at as usize] as usize];
            self.0[at as usize] = above;
            at = above;
        }
        at
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}

/// Work at each node, and what goes over each port, in packets of flows that run all the time.
struct Work {
    nodes: Vec<f64>,
    ports: Vec<f64>,
}

/// Whether a wire draws random numbers.
pub(crate) fn draws(link: &Link) -> bool {
    link.loss > 0.0
        || link.burst_loss.is_some()
        || link.duplicate > 0.0
        || link.reorder > 0.0
        || !link.jitter.is_zero()
}

impl Network {
    /// A layout of at most so many parts, or why there is none.
    pub(super) fn layout(&self, wanted: usize) -> Result<Layout, String> {
        let becomes_impaired = |action: &Action| match action {
            Action::Change(port, link) => draws(link) != draws(&self.ports[*port as usize].link),
            _ => false,
        };
        if self.actions.iter().any(becomes_impaired) {
            return Err("a link is impaired for a part of the time".to_owned());
        }
        let at = self.ports_at();
        let delays = self.least_delays();
        let (groups, draw, why) = self.bound_together(&at, &delays);
        let work = self.expected_work(&at);
        let mut choices: Vec<u64> =
            (0..delays.len()).step_by(2).map(|p| delays[p].min(delays[p + 1])).collect();
        choices.sort_unstable();
        choices.dedup();
        let mut best: Option<(f64, Vec<u32>)> = None;
        // Hosts stay with their router unless nothing is even then.
        'all: for with_router in [true, false] {
            for least in choices.iter().rev().filter(|least| **least > 0) {
                let mut groups = groups.clone();
                for port in 0..at.len() {
                    let (from, to) = (at[port], self.ports[port].to);
                    let short = delays[port].min(delays[port ^ 1]) < *least;
                    if short || with_router && self.nodes[from as usize].host != NO_HOST {
                        groups.join(from, to);
                    }
                }
                let (most, nodes) = self.share_out(wanted, &mut groups, &at, &work);
                if best.as_ref().is_none_or(|(before, _)| most < before * 0.999) {
                    best = Some((most, nodes));
                }
                if most <= UNEVEN / wanted as f64 {
                    break 'all;
                }
            }
        }
        let Some((_, nodes)) = best.filter(|(most, _)| *most <= MOST) else {
            return Err(match why.is_empty() {
                true => {
                    "most of the work is at one place, or between places that no delay separates".to_owned()
                }
                false => format!("most of the work is at one place: {}", why.join("; ")),
            });
        };
        let ports: Vec<u32> = at.iter().map(|node| nodes[*node as usize]).collect();
        let cut = (0..ports.len()).filter(|p| ports[*p] != nodes[self.ports[*p].to as usize]);
        let lookahead = cut.map(|p| delays[p]).min().unwrap_or(0);
        let parts = nodes.iter().max().map_or(1, |most| *most as usize + 1);
        if lookahead == 0 || parts < 2 {
            return Err("no link with a delay is between its parts".to_owned());
        }
        let draws = draw.map_or(0, |node| nodes[node as usize]);
        Ok(Layout { parts, nodes, ports, lookahead, draws, actions: self.actions.len() })
    }

    /// By port, the node that it is at.
    fn ports_at(&self) -> Vec<u32> {
        let mut at = vec![0; self.ports.len()];
        for (number, node) in (0..).zip(&self.nodes) {
            node.ports.iter().for_each(|port| at[*port as usize] = number);
        }
        at
    }

    /// By port, the shortest delay that it has or is planned to have.
    fn least_delays(&self) -> Vec<u64> {
        let mut delays: Vec<u64> = self.ports.iter().map(|port| port.link.delay.as_ps()).collect();
        for action in &self.actions {
            if let Action::Change(port, link) = action {
                let delay = &mut delays[*port as usize];
                *delay = link.delay.as_ps().min(*delay);
            }
        }
        delays
    }

    /// Nodes of which one may act on another at once, one of those that draw random numbers, and what binds many together.
    fn bound_together(&self, at: &[u32], delays: &[u64]) -> (Groups, Option<u32>, Vec<&'static str>) {
        let mut groups = Groups((0..self.nodes.len() as u32).collect());
        let mut why = Vec::new();
        let mut draw = Vec::new();
        let planned = self.actions.iter().filter_map(|action| match action {
            Action::Change(port, link) => Some((*port as usize, &**link)),
            _ => None,
        });
        for (port, link) in self.ports.iter().map(|port| &*port.link).enumerate().chain(planned) {
            if draws(link) {
                groups.join(at[port], self.ports[port].to);
                draw.push(at[port]);
            }
            if link.aqm == Some(Aqm::Pie) {
                draw.push(at[port]);
            }
        }
        let patterns = self.sources.iter().filter(|source| match source.planned.pattern {
            Pattern::Constant => false,
            Pattern::Poisson => true,
            Pattern::OnOff { exponential, .. } => exponential,
        });
        draw.extend(patterns.map(|source| self.hosts[source.host as usize]));
        draw.windows(2).for_each(|two| groups.join(two[0], two[1]));
        if draw.len() > 1 {
            why.push("what is drawn at random comes from one sequence of numbers");
        }
        let mut pages = false;
        for end in self.endpoints.iter().step_by(2) {
            if end.page != NO_PAGE {
                pages = true;
                groups.join(self.hosts[end.host as usize], self.hosts[end.peer_host as usize]);
            }
        }
        if pages {
            why.push("client and server of a page are in one part");
        }
        for port in &self.ports {
            let Some(watcher) = self.watchers.get(port.captures_come as usize) else { continue };
            for tap in &watcher.taps {
                groups.join(port.to, self.programs[tap.switch as usize].node.0);
            }
        }
        for (port, delay) in delays.iter().enumerate() {
            if *delay == 0 {
                groups.join(at[port], self.ports[port].to);
                why.push("links have no delay");
            }
        }
        why.dedup();
        (groups, draw.first().copied(), why)
    }

    /// What flows make of work, by their shortest ways.
    fn expected_work(&self, at: &[u32]) -> Work {
        let mut work = Work { nodes: vec![0.0; self.nodes.len()], ports: vec![0.0; self.ports.len()] };
        for kind in &self.kinds {
            let (from, to, hash, packets, answers) = match kind {
                Kind::Tcp(plan) => {
                    let end = &self.endpoints[2 * *plan as usize];
                    let size = self.plans[*plan as usize].flow.size;
                    let packets = size.map_or(1.0, |size| (size.get() as f64 / 1e7).min(1.0));
                    (end.host, end.peer_host, end.hash, packets, packets / 2.0)
                }
                Kind::Udp(source) => {
                    let source = &self.sources[*source as usize];
                    let port = self.nodes[self.hosts[source.host as usize] as usize].ports.first();
                    let link = port.map_or(0, |port| self.ports[*port as usize].link.rate.as_bps());
                    let share = source.planned.rate.as_bps() as f64 / link.max(1) as f64;
                    (source.host, source.peer_host, source.hash, share.min(1.0), 0.0)
                }
            };
            for (from, to, packets) in [(from, to, packets), (to, from, answers)] {
                for port in self.way(from, to, hash).unwrap_or_default() {
                    work.ports[port as usize] += packets;
                    for node in [at[port as usize], self.ports[port as usize].to] {
                        let node = node as usize;
                        let share = match &self.nodes[node] {
                            n if n.host != NO_HOST && self.is_at_p4(n) => HOST_AT_P4_WORK,
                            n if n.host != NO_HOST => HOST_WORK,
                            // Once for the port by which it comes, once for that by which it leaves.
                            n if n.switch != NO_HOST => P4_WORK / 2.0,
                            _ => 0.5,
                        };
                        work.nodes[node] += packets * share;
                    }
                }
            }
        }
        work
    }

    fn is_at_p4(&self, host: &Node) -> bool {
        let next = host.ports.first().map(|port| self.ports[*port as usize].to as usize);
        next.is_some_and(|next| self.nodes[next].switch != NO_HOST)
    }

    /// Groups in so many parts; gives the largest part's share of the work, and each node's part.
    fn share_out(&self, wanted: usize, groups: &mut Groups, at: &[u32], work: &Work) -> (f64, Vec<u32>) {
        let of: Vec<u32> = (0..self.nodes.len() as u32).map(|node| groups.of(node)).collect();
        let mut load = vec![0.0; self.nodes.len()];
        of.iter().zip(&work.nodes).for_each(|(group, work)| load[*group as usize] += work);
        let all: f64 = load.iter().sum();
        let mut between = vec![Vec::new(); self.nodes.len()];
        for (port, from) in at.iter().enumerate() {
            let (a, b) = (of[*from as usize], of[self.ports[port].to as usize]);
            if a != b {
                between[a as usize].push((b, work.ports[port]));
                between[b as usize].push((a, work.ports[port]));
            }
        }
        let mut open: Vec<u32> =
            (0..self.nodes.len() as u32).filter(|node| of[*node as usize] == *node).collect();
        open.sort_by(|a, b| load[*b as usize].total_cmp(&load[*a as usize]));
        let mut part = vec![u32::MAX; self.nodes.len()];
        let mut loads = vec![0.0; wanted];
        for (number, total) in loads.iter_mut().enumerate() {
            // Each part has what goes with it best, until it has its share of what is left.
            let left: f64 = open.iter().map(|group| load[*group as usize]).sum();
            let share = left / (wanted - number) as f64;
            let mut pull = vec![0.0f64; self.nodes.len()];
            while !open.is_empty() {
                let so_far = *total;
                let fits = |group: &u32| so_far + load[*group as usize] <= share * 1.02;
                let last = number + 1 == wanted;
                let found = (0..open.len()).filter(|i| last || so_far == 0.0 || fits(&open[*i]));
                let next = found.max_by(|a, b| {
                    // The first of those that are equal has most work.
                    pull[open[*a] as usize].total_cmp(&pull[open[*b] as usize]).then(b.cmp(a))
                });
                let Some(next) = next else { break };
                let group = open.remove(next);
                part[group as usize] = number as u32;
                *total += load[group as usize];
                between[group as usize].iter().for_each(|(other, packets)| pull[*other as usize] += packets);
            }
        }
        let most = loads.iter().fold(0.0f64, |most, load| most.max(*load));
        let nodes = of.iter().map(|group| part[*group as usize]).collect();
        (if all > 0.0 { most / all } else { 1.0 }, nodes)
    }
}
