//! Multicast groups and mirror sessions: which copies of a packet go where.

use std::collections::BTreeMap;

/// What is set of a mirror session.
pub use control::Mirror as Session;

/// A copy that a session makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mirror {
    pub rid: u32,
    pub port: u32,
    pub priority: u32,
    pub truncate: Option<u32>,
}

#[derive(Debug, Clone, Default)]
struct Node {
    rid: u32,
    ports: Vec<u32>,
}

#[derive(Debug, Clone, Default)]
pub struct Replication {
    nodes: Vec<Option<Node>>,
    /// Handles of nodes that are gone.
    free: Vec<u32>,
    /// Nodes of each group, in the order in which they were added.
    groups: BTreeMap<u32, Vec<u32>>,
    sessions: BTreeMap<u32, Session>,
}

impl Replication {
    /// Makes an empty group; false if there is one.
    pub fn create_group(&mut self, group: u32) -> bool {
        if self.groups.contains_key(&group) {
            return false;
        }
        self.groups.insert(group, Vec::new());
        true
    }

    pub fn has_group(&self, group: u32) -> bool {
        self.groups.contains_key(&group)
    }

    pub fn destroy_group(&mut self, group: u32) -> bool {
        self.groups.remove(&group).is_some()
    }

    /// Makes a node; gives its handle. Ports are a set, served in their order.
    pub fn create_node(&mut self, rid: u32, mut ports: Vec<u32>) -> u32 {
        ports.sort_unstable();
        ports.dedup();
        let node = Some(Node { rid, ports });
        match self.free.pop() {
            Some(handle) => {
                self.nodes[handle as usize] = node;
                handle
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }

    pub fn update_node(&mut self, node: u32, mut ports: Vec<u32>) -> bool {
        ports.sort_unstable();
        ports.dedup();
        match self.nodes.get_mut(node as usize) {
            Some(Some(slot)) => {
                slot.ports = ports;
                true
            }
            _ => false,
        }
    }

    pub fn destroy_node(&mut self, node: u32) -> bool {
        self.groups.values_mut().for_each(|nodes| nodes.retain(|n| *n != node));
        let gone = self.nodes.get_mut(node as usize).is_some_and(|n| n.take().is_some());
        if gone {
            self.free.push(node);
        }
        gone
    }

    /// Puts a node in a group; false if either does not exist.
    pub fn associate(&mut self, group: u32, node: u32) -> bool {
        let exists = matches!(self.nodes.get(node as usize), Some(Some(_)));
        match self.groups.get_mut(&group) {
            Some(nodes) if exists => {
                if !nodes.contains(&node) {
                    nodes.push(node);
                }
                true
            }
            _ => false,
        }
    }

    pub fn dissociate(&mut self, group: u32, node: u32) -> bool {
        match self.groups.get_mut(&group) {
            Some(nodes) => {
                let before = nodes.len();
                nodes.retain(|n| *n != node);
                nodes.len() < before
            }
            None => false,
        }
    }

    /// Replication id and port of each copy.
    pub fn copies(&self, group: u32) -> Vec<(u32, u32)> {
        let nodes = self.groups.get(&group).map(Vec::as_slice).unwrap_or_default();
        nodes
            .iter()
            .filter_map(|n| self.nodes.get(*n as usize)?.as_ref())
            .flat_map(|n| n.ports.iter().map(|p| (n.rid, *p)))
            .collect()
    }

    /// Every group with its nodes: handle, replication id, ports.
    pub fn groups(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = (u32, u32, &[u32])>)> {
        self.groups.iter().map(|(group, nodes)| {
            let known = nodes.iter().filter_map(|handle| {
                let node = self.nodes.get(*handle as usize)?.as_ref()?;
                Some((*handle, node.rid, node.ports.as_slice()))
            });
            (*group, known)
        })
    }

    pub fn set_session(&mut self, id: u32, session: Session) {
        self.sessions.insert(id, session);
    }

    pub fn remove_session(&mut self, id: u32) -> bool {
        self.sessions.remove(&id).is_some()
    }

    pub fn session(&self, id: u32) -> Option<&Session> {
        self.sessions.get(&id)
    }

    /// Every session.
    pub fn sessions(&self) -> impl Iterator<Item = (u32, &Session)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }

    /// The copies that a session makes: its group's first, as in the reference switch.
    pub fn mirror(&self, id: u32) -> Vec<Mirror> {
        let Some(session) = self.sessions.get(&id) else { return Vec::new() };
        let Session { priority, truncate, .. } = *session;
        let group = session.group.map(|group| self.copies(group)).unwrap_or_default();
        let port = session.port.map(|port| (0, port));
        let all = group.into_iter().chain(session.copies.iter().copied()).chain(port);
        all.map(|(rid, port)| Mirror { rid, port, priority, truncate }).collect()
    }
}
