//! Building a network: nodes, links, routes.

use crate::aqm::Aqm;
use crate::error::{BuildError, refuse};
use crate::event::Event;
use crate::flows::TCP_HEADERS;
use crate::network::{Action, Kind, Network};
use crate::node::{LAST_PORT, NO_HOST, Node, NodeId, Ways};
use crate::port::{Link, Port, PortId};
use crate::routes::{spread_at, towards};
use transport::udp;
use units::{Bytes, SplitMix, Time};

impl Network {
    pub fn host(&mut self, name: &str) -> NodeId {
        let host = self.hosts.len() as u32;
        self.hosts.push(self.nodes.len() as u32);
        self.node(name, host)
    }

    /// A plain router: forwards by destination.
    pub fn router(&mut self, name: &str) -> NodeId {
        self.node(name, NO_HOST)
    }

    pub(crate) fn node(&mut self, name: &str, host: u32) -> NodeId {
        self.unite_for("nodes are added while it runs");
        self.routed = false;
        let node =
            Node { name: name.to_owned(), host, switch: NO_HOST, ports: Vec::new(), routes: Vec::new() };
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    pub(crate) fn name(&self, node: NodeId) -> &str {
        &self.nodes[node.0 as usize].name
    }

    pub(crate) fn is_host(&self, node: NodeId) -> bool {
        self.nodes[node.0 as usize].host != NO_HOST
    }

    /// Connects two nodes in both directions; gives the ports at `a` and at `b`.
    ///
    /// # Errors
    /// A link of a node to itself, a second link of a host, and a link that [`Network::change_link`] would refuse.
    pub fn link(
        &mut self,
        a: NodeId,
        b: NodeId,
        forward: Link,
        reverse: Link,
    ) -> Result<(PortId, PortId), BuildError> {
        self.link_at(a, b, forward, reverse, [None, None])
    }

    /// As [`Network::link`], with the numbers of the ports at `a` and at `b`, where they are switches.
    ///
    /// # Errors
    /// As [`Network::link`]; and a number that the node has given to another link or a tap, or that v1model does not have.
    pub fn link_at(
        &mut self,
        a: NodeId,
        b: NodeId,
        forward: Link,
        reverse: Link,
        numbers: [Option<u32>; 2],
    ) -> Result<(PortId, PortId), BuildError> {
        let names = format!("the link {} - {}", self.name(a), self.name(b));
        if a == b {
            return refuse(format!("{names} connects a node to itself"));
        }
        check_link(&names, &forward)?;
        check_link(&names, &reverse)?;
        for node in [a, b] {
            if self.is_host(node) && !self.nodes[node.0 as usize].ports.is_empty() {
                return refuse(format!(
                    "host {} has a link already; connect it to a router",
                    self.name(node)
                ));
            }
        }
        for (node, link) in [(a, &forward), (b, &reverse)] {
            check_queue(&names, &self.nodes[node.0 as usize], link)?;
        }
        let mut given = [0, 0];
        for (node, (number, given)) in [a, b].into_iter().zip(numbers.into_iter().zip(&mut given)) {
            *given = self.number(node, number)?;
        }
        let numbers = given;
        self.unite_for("links are added while it runs");
        self.routed = false;
        Ok((self.port(a, b, forward, numbers), self.port(b, a, reverse, [numbers[1], numbers[0]])))
    }

    /// The number of a node's next port: the one that is asked for, or the one behind the last.
    fn number(&self, node: NodeId, asked: Option<u32>) -> Result<u32, BuildError> {
        let links = self.nodes[node.0 as usize].ports.iter().map(|p| self.ports[*p as usize].number);
        let number = match asked {
            Some(number) => number,
            None => links.max().map_or(0, |last| last + 1),
        };
        if asked.is_some_and(|number| self.has_link(node, number)) {
            return refuse(format!(
                "{} has a port {number} already; give it another number",
                self.name(node)
            ));
        }
        if self.has_tap(node, number) {
            return refuse(format!(
                "port {number} of {} is taken by a tap; give the link or the tap another number",
                self.name(node)
            ));
        }
        if number > LAST_PORT {
            return refuse(format!(
                "{} cannot have a port {number}; the last is {LAST_PORT}",
                self.name(node)
            ));
        }
        Ok(number)
    }

    /// Whether a link of the node has the number.
    pub(crate) fn has_link(&self, node: NodeId, number: u32) -> bool {
        self.nodes[node.0 as usize].ports.iter().any(|p| self.ports[*p as usize].number == number)
    }

    /// Whether a tap of the switch has the number.
    pub(crate) fn has_tap(&self, node: NodeId, number: u32) -> bool {
        let switch = self.nodes[node.0 as usize].switch;
        self.watchers
            .iter()
            .any(|watcher| watcher.taps.iter().any(|tap| (tap.switch, tap.number) == (switch, number)))
    }

    fn port(&mut self, from: NodeId, to: NodeId, mut link: Link, [number, to_port]: [u32; 2]) -> PortId {
        let id = self.ports.len() as u32;
        if link.aqm_salt != 0 {
            let parts = [self.seed, link.aqm_salt, u64::from(id)];
            link.aqm_salt = parts.iter().fold(0, |mix, part| SplitMix::new(mix ^ part).next_u64());
        }
        self.nodes[from.0 as usize].ports.push(id);
        self.ports.push(Port::new(link, to.0, to_port, number));
        PortId(id)
    }

    /// Changes a port's link at a time.
    ///
    /// # Errors
    /// A rate of zero, shares beyond 0 to 1, a queue that holds nothing.
    pub fn change_link(&mut self, at: Time, port: PortId, link: Link) -> Result<(), BuildError> {
        let to = self.ports[port.0 as usize].to;
        let names = format!("the link to {}", self.nodes[to as usize].name);
        check_link(&names, &link)?;
        if let Some(from) = self.nodes.iter().find(|node| node.ports.contains(&port.0)) {
            check_queue(&names, from, &link)?;
        }
        if self.may_not_be_cut(port, &link) {
            self.unite("a link changes, and then has too short a delay or is impaired");
        }
        self.actions.push(Action::Change(port.0, Box::new(link)));
        self.schedule_common(at.as_ps().max(self.now), Event::Action(self.actions.len() as u32 - 1));
        Ok(())
    }

    /// Sends packets for `to` out of this port of a router, whatever the shortest way is. To be called when all links
    /// are there.
    ///
    /// # Errors
    /// A port of another node, a target that is not a host.
    pub fn set_route(&mut self, router: NodeId, to: NodeId, port: PortId) -> Result<(), BuildError> {
        if !self.routed {
            self.route()?;
        }
        self.unite_for("routes are set while it runs");
        let host = self.nodes[to.0 as usize].host;
        let node = &mut self.nodes[router.0 as usize];
        if host == NO_HOST || !node.ports.contains(&port.0) {
            return refuse(format!("a route of {} needs a host and a port of that router", node.name));
        }
        node.routes[host as usize] = Ways { first: port.0, count: 1 };
        Ok(())
    }

    /// Fills the tables of hosts and routers by shortest ways.
    pub(crate) fn route(&mut self) -> Result<(), BuildError> {
        self.make_switches()?;
        let links: Vec<Vec<(u32, u32)>> = self
            .nodes
            .iter()
            .map(|n| n.ports.iter().map(|p| (*p, self.ports[*p as usize].to)).collect())
            .collect();
        self.ways.clear();
        for node in &mut self.nodes {
            node.routes.clear();
        }
        for target in &self.hosts {
            let ways = towards(*target, &links, |n| self.nodes[n as usize].host == NO_HOST);
            for (node, ports) in self.nodes.iter_mut().zip(ways) {
                let first = if ports.len() == 1 { ports[0] } else { self.ways.len() as u32 };
                node.routes.push(Ways { first, count: ports.len() as u32 });
                if ports.len() > 1 {
                    self.ways.extend(ports);
                }
            }
        }
        for node in &self.nodes {
            for port in &node.ports {
                let port = &mut self.ports[*port as usize];
                port.spread = if node.host == NO_HOST { spread_at(port.to) } else { 0 };
            }
        }
        for (number, kind) in self.kinds.iter().enumerate() {
            let (from, to, longest) = match kind {
                Kind::Tcp(plan) => {
                    let endpoint = &self.endpoints[2 * *plan as usize];
                    let mss = self.plans[*plan as usize].flow.config.mss;
                    (endpoint.host, endpoint.peer_host, mss + TCP_HEADERS)
                }
                Kind::Udp(source) => {
                    let source = &self.sources[*source as usize];
                    (source.host, source.peer_host, source.planned.payload.saturating_add(udp::HEADERS))
                }
            };
            self.check_way(number as u32, from, to)?;
            self.check_fits(number as u32, from, longest)?;
        }
        self.routed = true;
        Ok(())
    }
}

/// Of a P4 switch's queues only the program says what is marked and dropped early.
fn check_queue(names: &str, from: &Node, link: &Link) -> Result<(), BuildError> {
    let asked = [("aqm", link.aqm.is_some()), ("mark_above", link.mark_above.is_some())];
    match asked.into_iter().find(|(_, asked)| *asked && from.switch != NO_HOST) {
        Some((what, _)) => refuse(format!(
            "{names}: the queues of the P4 switch {} are managed by its program; leave `{what}` out",
            from.name
        )),
        None => Ok(()),
    }
}

const DAY_S: u64 = 86_400;
/// Times have 64 bits of picoseconds, which are 213 days: what is added to the present has to leave room.
const LONGEST_DAYS: u64 = 30;
const LONGEST: Time = Time::from_secs(LONGEST_DAYS * DAY_S);

/// How long a link takes to send a full queue and the packet behind it; an unlimited queue counts as one packet.
fn longest_wait(link: &Link) -> Time {
    let packet = u64::from(link.mtu) + u64::from(link.framing);
    let by_packets = link.limit.packets.map(|most| most.saturating_mul(packet));
    let by_bytes = link.limit.bytes.map(Bytes::get);
    let held = by_packets.into_iter().chain(by_bytes).min().unwrap_or(0);
    link.rate.time_for(Bytes::new(held.saturating_add(packet)))
}

fn check_link(names: &str, link: &Link) -> Result<(), BuildError> {
    if link.rate.is_zero() {
        return refuse(format!("{names} has the rate 0; give it a rate above 0"));
    }
    let mut shares = vec![("loss", link.loss), ("duplicate", link.duplicate), ("reorder", link.reorder)];
    if let Some(chain) = link.burst_loss {
        shares.extend([("to_bad", chain.to_bad), ("to_good", chain.to_good)]);
        shares.extend([("loss_good", chain.loss_good), ("loss_bad", chain.loss_bad)]);
    }
    for (what, share) in shares {
        if !(0.0..=1.0).contains(&share) {
            return refuse(format!("{names} has {what} {share}; give a share from 0 to 1"));
        }
    }
    if link.limit.packets == Some(0) || link.limit.bytes.is_some_and(|b| b.is_zero()) {
        return refuse(format!("{names} has a queue that holds nothing; give it room for a packet"));
    }
    let empties = longest_wait(link);
    if empties > LONGEST {
        return refuse(format!(
            "{names} takes {:.0} days to send what its queue holds, and {LONGEST_DAYS} are the most; give it a higher rate or a smaller queue",
            empties.as_secs_f64() / DAY_S as f64
        ));
    }
    if [link.delay, link.jitter, link.reorder_by].into_iter().any(|time| time > LONGEST) {
        return refuse(format!("{names} has a delay of more than {LONGEST_DAYS} days; give a shorter one"));
    }
    if link.aqm_salt != 0 && link.aqm != Some(Aqm::FqCodel) {
        return refuse(format!(
            "{names} has a salt, which `fq_codel` alone has a use for; leave `aqm_salt` out"
        ));
    }
    if link.aqm.is_some() && link.mark_above.is_some() {
        return refuse(format!(
            "{names} has queue management and a threshold for marks; give it one of them"
        ));
    }
    if link.mtu < 576 {
        return refuse(format!("{names} has an MTU of {}; give it at least 576", link.mtu));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use units::Rate;

    use super::*;

    fn salts(seed: u64, asked: u64) -> Vec<u64> {
        let mut net = Network::new(seed);
        let link = Link {
            aqm: Some(Aqm::FqCodel),
            aqm_salt: asked,
            ..Link::new(Rate::from_mbps(10), Time::from_ms(1))
        };
        let (a, b) = (net.host("a"), net.router("b"));
        net.link(a, b, link.clone(), link).expect("two queues with a salt");
        net.ports.iter().map(|port| port.link.aqm_salt).collect()
    }

    #[test]
    fn each_queue_has_a_salt_of_its_own_where_one_is_asked_for() {
        assert_eq!(salts(1, 0), [0, 0]);
        assert_eq!(salts(1, 1), salts(1, 1));
        let mut all: Vec<u64> = [(1, 1), (1, 2), (2, 1)].map(|(seed, asked)| salts(seed, asked)).concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6);
    }

    #[test]
    fn a_salt_is_for_a_hash() {
        let link =
            Link { aqm: Some(Aqm::Codel), aqm_salt: 1, ..Link::new(Rate::from_mbps(10), Time::from_ms(1)) };
        let refused = check_link("the link a - b", &link).expect_err("CoDel has no hash");
        assert!(refused.to_string().contains("leave `aqm_salt` out"), "{refused}");
    }
}
