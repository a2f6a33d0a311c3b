//! Shortest paths by number of hops, with all ties.

use std::collections::VecDeque;

use transport::host::PacketKind;
use transport::segment::{Segment, SynOptions};
use units::{Bytes, Time};

use crate::flow::AGENT;
use crate::network::Network;
use crate::port::Port;

/// `links[node]` lists (port, node at its other end). Gives, for each node, the ports that lead to `target` by a shortest
/// way, in order of their numbers; empty where there is none.
pub(crate) fn towards(
    target: u32,
    links: &[Vec<(u32, u32)>],
    transit: impl Fn(u32) -> bool,
) -> Vec<Vec<u32>> {
    let mut distance = vec![u32::MAX; links.len()];
    let mut todo = VecDeque::from([target]);
    distance[target as usize] = 0;
    while let Some(node) = todo.pop_front() {
        // A host passes nothing on.
        if node != target && !transit(node) {
            continue;
        }
        for &(_, other) in &links[node as usize] {
            if distance[other as usize] == u32::MAX {
                distance[other as usize] = distance[node as usize] + 1;
                todo.push_back(other);
            }
        }
    }
    let next = |node: u32| {
        let here = distance[node as usize];
        links[node as usize]
            .iter()
            .filter(|(_, other)| {
                here != u32::MAX && distance[*other as usize] < here && (*other == target || transit(*other))
            })
            .map(|(port, _)| *port)
            .collect()
    };
    (0..links.len() as u32).map(next).collect()
}

/// Of `count` equal ways, the one of a flow with this hash. `spread` is 0 at the first router of a way and differs at those
/// behind it: with one choice for all, what has come to a router by one of n ways would go on by one of n.
#[inline]
pub(crate) fn choice(hash: u32, spread: u32, count: u32) -> u32 {
    if spread == 0 {
        return hash % count;
    }
    // The finalizer of MurmurHash3: each bit of the result depends on all.
    let mut mixed = hash ^ spread;
    mixed = (mixed ^ mixed >> 16).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ mixed >> 13).wrapping_mul(0xc2b2_ae35);
    (mixed ^ mixed >> 16) % count
}

/// For [`choice`] at a node to which routers send; not 0.
pub(crate) fn spread_at(node: u32) -> u32 {
    (node + 1).wrapping_mul(0x9e37_79b9)
}

/// Longer ways are taken for circles.
const MAX_HOPS: usize = 64;
const IP_HEADER: u32 = 20;

impl Network {
    /// Ports on the way from one host to another of a flow with this hash, by the shortest ways and those set by hand.
    pub(crate) fn way(&self, from: u32, to: u32, hash: u32) -> Option<Vec<u32>> {
        let (mut node, target) = (self.hosts[from as usize], self.hosts[to as usize]);
        let (mut way, mut spread) = (Vec::new(), 0);
        while node != target {
            let ways = self.nodes[node as usize].routes.get(to as usize).filter(|w| w.count > 0)?;
            let port = match ways.count {
                1 => ways.first,
                count => self.ways[(ways.first + choice(hash, spread, count)) as usize],
            };
            if way.len() == MAX_HOPS {
                return None;
            }
            way.push(port);
            Port { to: node, spread, .. } = self.ports[port as usize];
        }
        Some(way)
    }

    /// How long a plan's flow would take with the network to itself; see [`crate::Outcome::ideal`]. `None` without a size.
    pub(crate) fn ideal(&self, plan: u32) -> Option<Time> {
        let flow = &self.plans[plan as usize].flow;
        let size = flow.size?.get();
        let end = &self.endpoints[2 * plan as usize];
        let there = self.way(end.host, end.peer_host, end.hash)?;
        let back = self.way(end.peer_host, end.host, end.hash)?;
        let on_link = |port: u32, bytes: u32| {
            let link = &self.ports[port as usize].link;
            link.rate.time_for(Bytes::new(u64::from(bytes + link.framing))).as_ps()
        };
        let one_way = |way: &[u32], bytes: u32| -> u64 {
            way.iter().map(|p| on_link(*p, bytes) + self.ports[*p as usize].link.delay.as_ps()).sum()
        };
        let (a, b) = (&flow.config, &flow.receiver_config);
        let timestamps = (a.timestamps && b.timestamps).then_some((0, 0));
        let data = Segment { timestamps, ..Segment::default() };
        let options = SynOptions { mss: 0, window_scale: Some(0), sack_permitted: a.sack && b.sack };
        let syn = IP_HEADER + Segment { syn: Some(options), ..data }.header_len();
        let headers = IP_HEADER + data.header_len() + self.agent_room(2 * plan, PacketKind::Data);
        let mss = u64::from((a.mss.min(b.mss) + IP_HEADER + 20 - headers).max(88));
        let (segments, last) = (size.div_ceil(mss), ((size - 1) % mss) as u32 + 1 + headers);
        let full = mss as u32 + headers;
        // On every link the segments follow each other: when the last one and the one before it, which is full, leave it.
        let (mut before, mut slowest, mut done) = (0u64, 0, 0);
        for port in &there {
            let takes = on_link(*port, full);
            slowest = slowest.max(takes);
            if segments > 1 {
                before += takes;
                done = done.max(before.saturating_add((segments - 2).saturating_mul(slowest)));
            }
            done = done.saturating_add(on_link(*port, last));
        }
        let delays: u64 = there.iter().map(|p| self.ports[*p as usize].link.delay.as_ps()).sum();
        let transfer = done.saturating_add(delays);
        let syn_options = self.agent_room(2 * plan, PacketKind::Syn);
        let answer_options = self.agent_room(2 * plan + 1, PacketKind::SynAck);
        let handshake = one_way(&there, syn + syn_options) + one_way(&back, syn + answer_options);
        Some(Time::from_ps(handshake.saturating_add(transfer).saturating_add(2 * (end.hold & !AGENT))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diamond_has_two_ways() {
        // 0 - {1, 2} - 3, ports numbered as they come
        let links =
            vec![vec![(0, 1), (1, 2)], vec![(2, 0), (3, 3)], vec![(4, 0), (5, 3)], vec![(6, 1), (7, 2)]];
        let routes = towards(3, &links, |_| true);
        assert_eq!(routes, [vec![0, 1], vec![3], vec![5], vec![]]);
        // A host in the way is no way.
        assert_eq!(towards(3, &links, |n| n != 1)[0], [1]);
    }
}
