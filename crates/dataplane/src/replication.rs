//! Multicast groups and mirror sessions: which copies of a packet go where.

use std::collections::{BTreeMap, BTreeSet};

use crate::state::SLOT;

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
    /// The groups that it is in.
    groups: BTreeSet<u32>,
}

/// Bytes of a group without nodes.
const GROUP: u64 = SLOT + size_of::<Vec<u32>>() as u64;
/// Bytes of a node's place in a group.
pub(crate) const PLACE: u64 = SLOT + 2 * size_of::<u32>() as u64;

/// Bytes of a node in no group.
fn node_bytes(ports: usize) -> u64 {
    SLOT + (size_of::<Option<Node>>() + ports * size_of::<u32>()) as u64
}

/// Bytes of a new group with a node for each copy.
pub(crate) fn group_bytes(copies: usize) -> u64 {
    GROUP + copies as u64 * (node_bytes(1) + PLACE)
}

pub(crate) fn session_bytes(session: &Session) -> u64 {
    SLOT + (size_of::<Session>() + size_of_val(&*session.copies)) as u64
}

/// What takes a change back, if all that came after it has been taken back.
#[derive(Debug, Clone)]
enum Step {
    GroupMade(u32),
    GroupGone(u32, Vec<u32>),
    /// A node was made, under a handle that nobody had before or under one that was free.
    NodeMade {
        node: u32,
        fresh: bool,
    },
    NodeGone(u32, Node),
    Ports(u32, Vec<u32>),
    Joined {
        group: u32,
        node: u32,
    },
    /// A node left a group, in which it had this place.
    Left {
        group: u32,
        node: u32,
        place: usize,
    },
    Session(u32, Option<Session>),
}

#[derive(Debug, Clone, Default)]
pub struct Replication {
    nodes: Vec<Option<Node>>,
    /// Handles of nodes that are gone.
    free: Vec<u32>,
    /// Nodes of each group, in the order in which they were added.
    groups: BTreeMap<u32, Vec<u32>>,
    sessions: BTreeMap<u32, Session>,
    /// Bytes of all of it.
    added: u64,
    /// How to take back what is done, while that may be.
    steps: Option<Vec<Step>>,
    /// Bytes of the steps with what they keep.
    kept: u64,
    /// `added` before the steps.
    before: u64,
}

impl Replication {
    /// From now on changes can be taken back, until [`Replication::settle`].
    pub(crate) fn watch(&mut self) {
        self.steps.get_or_insert_default();
        self.before = self.added;
    }

    /// Keeps what was done since [`Replication::watch`], or takes it back: each change costs as much as it did itself.
    pub(crate) fn settle(&mut self, keep: bool) {
        let steps = self.steps.take().unwrap_or_default();
        if !keep {
            steps.into_iter().rev().for_each(|step| self.take_back(step));
            self.added = self.before;
        }
        (self.kept, self.before) = (0, 0);
    }

    fn did(&mut self, step: impl FnOnce() -> Step) {
        if let Some(steps) = &mut self.steps {
            steps.push(step());
            self.kept += size_of::<Step>() as u64;
        }
    }

    /// Counts bytes that are gone, but for a step that keeps them.
    fn gone(&mut self, bytes: u64) {
        self.added -= bytes;
        self.kept += if self.steps.is_some() { bytes } else { 0 };
    }

    /// Bytes of all of it, and of what is kept to take changes back.
    pub(crate) fn added_bytes(&self) -> u64 {
        self.added + self.kept
    }

    /// Bytes of a group and its nodes.
    pub(crate) fn bytes_of_group(&self, group: u32) -> u64 {
        let Some(nodes) = self.groups.get(&group) else { return 0 };
        let known = nodes.iter().filter_map(|node| self.nodes.get(*node as usize)?.as_ref());
        GROUP + known.map(|n| node_bytes(n.ports.len()) + n.groups.len() as u64 * PLACE).sum::<u64>()
    }

    /// Copies that a group makes, and nodes of it that make none.
    pub(crate) fn copies_in(&self, group: u32) -> usize {
        let nodes = self.groups.get(&group).into_iter().flatten();
        let known = nodes.filter_map(|node| self.nodes.get(*node as usize)?.as_ref());
        known.map(|node| node.ports.len().max(1)).sum()
    }

    /// Bytes of the change of a node's ports, or of a new node: before and after it.
    pub(crate) fn bytes_of_node(&self, node: Option<u32>, ports: usize) -> (u64, u64) {
        let known = node.and_then(|node| self.nodes.get(node as usize)?.as_ref());
        (known.map_or(0, |known| node_bytes(known.ports.len())), node_bytes(ports))
    }

    fn take_back(&mut self, step: Step) {
        match step {
            Step::GroupMade(group) => {
                self.groups.remove(&group);
            }
            Step::GroupGone(group, nodes) => {
                nodes.iter().for_each(|node| self.is_in(*node, group, true));
                self.groups.insert(group, nodes);
            }
            Step::NodeMade { node, fresh: true } => self.nodes.truncate(node as usize),
            Step::NodeMade { node, fresh: false } => {
                self.nodes[node as usize] = None;
                self.free.push(node);
            }
            Step::NodeGone(node, was) => {
                self.nodes[node as usize] = Some(was);
                self.free.pop();
            }
            Step::Ports(node, ports) => {
                if let Some(node) = &mut self.nodes[node as usize] {
                    node.ports = ports;
                }
            }
            Step::Joined { group, node } => {
                self.groups.entry(group).and_modify(|nodes| {
                    nodes.pop();
                });
                self.is_in(node, group, false);
            }
            Step::Left { group, node, place } => {
                self.groups.entry(group).and_modify(|nodes| nodes.insert(place, node));
                self.is_in(node, group, true);
            }
            Step::Session(id, Some(session)) => {
                self.sessions.insert(id, session);
            }
            Step::Session(id, None) => {
                self.sessions.remove(&id);
            }
        }
    }

    fn is_in(&mut self, node: u32, group: u32, is: bool) {
        if let Some(Some(node)) = self.nodes.get_mut(node as usize) {
            if is {
                node.groups.insert(group)
            } else {
                node.groups.remove(&group)
            };
        }
    }

    /// Makes an empty group; false if there is one.
    pub fn create_group(&mut self, group: u32) -> bool {
        if self.groups.contains_key(&group) {
            return false;
        }
        self.groups.insert(group, Vec::new());
        self.added += GROUP;
        self.did(|| Step::GroupMade(group));
        true
    }

    pub fn has_group(&self, group: u32) -> bool {
        self.groups.contains_key(&group)
    }

    /// Removes a group; its nodes stay.
    pub fn destroy_group(&mut self, group: u32) -> bool {
        let Some(nodes) = self.groups.remove(&group) else { return false };
        nodes.iter().for_each(|node| self.is_in(*node, group, false));
        self.gone(GROUP + nodes.len() as u64 * PLACE);
        self.did(|| Step::GroupGone(group, nodes));
        true
    }

    /// Removes a group, if there is one, and its nodes that no other group has.
    pub fn destroy_group_with_nodes(&mut self, group: u32) {
        let nodes = self.groups.get(&group).cloned().unwrap_or_default();
        self.destroy_group(group);
        for node in nodes {
            let shared = self
                .nodes
                .get(node as usize)
                .is_some_and(|n| n.as_ref().is_some_and(|n| !n.groups.is_empty()));
            if !shared {
                self.destroy_node(node);
            }
        }
    }

    /// Removes all groups and nodes.
    pub fn clear(&mut self) {
        for group in self.groups.keys().copied().collect::<Vec<_>>() {
            self.destroy_group(group);
        }
        for node in 0..self.nodes.len() as u32 {
            self.destroy_node(node);
        }
    }

    /// Makes a node; gives its handle. Ports are a set, served in their order.
    pub fn create_node(&mut self, rid: u32, mut ports: Vec<u32>) -> u32 {
        ports.sort_unstable();
        ports.dedup();
        self.added += node_bytes(ports.len());
        let new = Some(Node { rid, ports, groups: BTreeSet::new() });
        let free = self.free.pop();
        let node = match free {
            Some(node) => {
                self.nodes[node as usize] = new;
                node
            }
            None => {
                self.nodes.push(new);
                self.nodes.len() as u32 - 1
            }
        };
        self.did(|| Step::NodeMade { node, fresh: free.is_none() });
        node
    }

    pub fn update_node(&mut self, node: u32, mut ports: Vec<u32>) -> bool {
        ports.sort_unstable();
        ports.dedup();
        let Some(Some(slot)) = self.nodes.get_mut(node as usize) else { return false };
        let after = node_bytes(ports.len());
        let before = std::mem::replace(&mut slot.ports, ports);
        self.added += after;
        self.gone(node_bytes(before.len()));
        self.did(|| Step::Ports(node, before));
        true
    }

    pub fn destroy_node(&mut self, node: u32) -> bool {
        let Some(Some(known)) = self.nodes.get(node as usize) else { return false };
        for group in known.groups.clone() {
            self.dissociate(group, node);
        }
        let Some(gone) = self.nodes[node as usize].take() else { return false };
        self.free.push(node);
        self.gone(node_bytes(gone.ports.len()));
        self.did(|| Step::NodeGone(node, gone));
        true
    }

    /// Puts a node in a group; false if either does not exist.
    pub fn associate(&mut self, group: u32, node: u32) -> bool {
        let (Some(nodes), Some(Some(known))) =
            (self.groups.get_mut(&group), self.nodes.get_mut(node as usize))
        else {
            return false;
        };
        if known.groups.insert(group) {
            nodes.push(node);
            self.added += PLACE;
            self.did(|| Step::Joined { group, node });
        }
        true
    }

    pub fn dissociate(&mut self, group: u32, node: u32) -> bool {
        let Some(nodes) = self.groups.get_mut(&group) else { return false };
        let Some(place) = nodes.iter().position(|known| *known == node) else { return false };
        nodes.remove(place);
        self.is_in(node, group, false);
        self.gone(PLACE);
        self.did(|| Step::Left { group, node, place });
        true
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

    /// Groups from a number on, with their nodes: handle, replication id, ports.
    pub fn groups(
        &self,
        first: u32,
    ) -> impl Iterator<Item = (u32, impl Iterator<Item = (u32, u32, &[u32])>)> {
        self.groups.range(first..).map(|(group, nodes)| {
            let known = nodes.iter().filter_map(|handle| {
                let node = self.nodes.get(*handle as usize)?.as_ref()?;
                Some((*handle, node.rid, node.ports.as_slice()))
            });
            (*group, known)
        })
    }

    pub fn set_session(&mut self, id: u32, session: Session) {
        self.added += session_bytes(&session);
        let before = self.sessions.insert(id, session);
        self.gone(before.as_ref().map_or(0, session_bytes));
        self.did(|| Step::Session(id, before));
    }

    pub fn remove_session(&mut self, id: u32) -> bool {
        let before = self.sessions.remove(&id);
        let was = before.is_some();
        self.gone(before.as_ref().map_or(0, session_bytes));
        self.did(|| Step::Session(id, before));
        was
    }

    pub fn session(&self, id: u32) -> Option<&Session> {
        self.sessions.get(&id)
    }

    /// Sessions from a number on.
    pub fn sessions(&self, first: u32) -> impl Iterator<Item = (u32, &Session)> {
        self.sessions.range(first..).map(|(id, session)| (*id, session))
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
