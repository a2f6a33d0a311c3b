//! Multicast groups with their nodes, and mirror sessions.

use control::{CopiesOp, MirrorState, Node, Put, Result};

use super::{Answer, Kind, refuse_as, some_of};
use crate::pipeline::{DROP_PORT, Pipeline};
use crate::replication::{PLACE, group_bytes, session_bytes};

const GROUP: &str = "multicast group";
const LAST: u32 = 0xffff;
const SESSION: &str = "mirror session";

impl Pipeline {
    pub(super) fn act_on_copies(&mut self, op: &CopiesOp) -> Result<Answer> {
        demand_ports(op)?;
        demand_numbers(op)?;
        self.check_copies_room(op)?;
        let replication = &mut self.replication;
        match op {
            CopiesOp::SetGroup { group, copies, put } => {
                demand(GROUP, *group, *put, replication.has_group(*group))?;
                replication.destroy_group_with_nodes(*group);
                replication.create_group(*group);
                for (port, rid) in copies {
                    let node = replication.create_node(*rid, vec![*port]);
                    replication.associate(*group, node);
                }
            }
            CopiesOp::DeleteGroup { group, put, nodes } => {
                demand_gone(GROUP, *group, *put, replication.has_group(*group))?;
                if *nodes {
                    replication.destroy_group_with_nodes(*group);
                } else {
                    replication.destroy_group(*group);
                }
            }
            CopiesOp::AddNode { rid, ports } => {
                return Ok(Answer::Handle(replication.create_node(*rid, ports.clone())));
            }
            CopiesOp::SetNode { node, ports } => {
                if !replication.update_node(*node, ports.clone()) {
                    return missing("node", *node);
                }
            }
            CopiesOp::DeleteNode { node } => {
                if !replication.destroy_node(*node) {
                    return missing("node", *node);
                }
            }
            CopiesOp::JoinNode { group, node } => {
                if !replication.associate(*group, *node) {
                    let why =
                        format!("there is no multicast group {group}, or no node {node}; create both first");
                    return refuse_as(Kind::NotFound, why);
                }
            }
            CopiesOp::LeaveNode { group, node } => {
                if !replication.dissociate(*group, *node) {
                    let why = format!("node {node} is not in multicast group {group}");
                    return refuse_as(Kind::NotFound, why);
                }
            }
            CopiesOp::ReadGroups { start, count } => {
                let groups = some_of(replication.groups(start.unwrap_or(0)), *count, |(group, _)| {
                    replication.copies_in(*group)
                });
                let groups = groups.map(|(group, nodes)| {
                    let node =
                        |(node, rid, ports): (u32, u32, &[u32])| Node { node, rid, ports: ports.to_vec() };
                    (group, nodes.map(node).collect())
                });
                return Ok(Answer::Multicast(groups.collect()));
            }
            CopiesOp::SetMirror { session, to, put } => {
                demand(SESSION, *session, *put, replication.session(*session).is_some())?;
                replication.set_session(*session, to.clone());
            }
            CopiesOp::DeleteMirror { session, put } => {
                demand_gone(SESSION, *session, *put, replication.session(*session).is_some())?;
                replication.remove_session(*session);
            }
            CopiesOp::ReadMirrors { start, count } => {
                let sessions = some_of(replication.sessions(start.unwrap_or(0)), *count, |(_, session)| {
                    session.copies.len() + session.group.map_or(0, |group| replication.copies_in(group))
                });
                let sessions = sessions.map(|(session, to)| {
                    let copies = replication.mirror(session).iter().map(|m| (m.port, m.rid)).collect();
                    MirrorState { session, to: to.clone(), copies }
                });
                return Ok(Answer::Mirrors(sessions.collect()));
            }
        }
        Ok(Answer::Done)
    }

    fn check_copies_room(&self, op: &CopiesOp) -> Result<()> {
        let replication = &self.replication;
        match op {
            CopiesOp::SetGroup { group, copies, .. } => {
                let (before, after) = (replication.bytes_of_group(*group), group_bytes(copies.len()));
                self.check_room(|| format!("{GROUP} {group}"), before, after)
            }
            CopiesOp::AddNode { ports, .. } => {
                let (before, after) = replication.bytes_of_node(None, ports.len());
                self.check_room(|| "a node".into(), before, after)
            }
            CopiesOp::SetNode { node, ports } => {
                let (before, after) = replication.bytes_of_node(Some(*node), ports.len());
                self.check_room(|| format!("node {node}"), before, after)
            }
            CopiesOp::JoinNode { group, node } => {
                self.check_room(|| format!("node {node} in {GROUP} {group}"), 0, PLACE)
            }
            CopiesOp::SetMirror { session, to, .. } => {
                let before = replication.session(*session).map_or(0, session_bytes);
                self.check_room(|| format!("{SESSION} {session}"), before, session_bytes(to))
            }
            _ => Ok(()),
        }
    }
}

/// A port's number has nine bits, and packets for the last one are dropped.
fn demand_ports(op: &CopiesOp) -> Result<()> {
    let impossible = |port: &&u32| **port >= DROP_PORT;
    let odd = match op {
        CopiesOp::SetGroup { copies, .. } => copies.iter().map(|(port, _)| port).find(impossible),
        CopiesOp::AddNode { ports, .. } | CopiesOp::SetNode { ports, .. } => ports.iter().find(impossible),
        CopiesOp::SetMirror { to, .. } => {
            to.port.iter().chain(to.copies.iter().map(|(_, port)| port)).find(impossible)
        }
        _ => None,
    };
    match odd {
        Some(port) => {
            refuse_as(Kind::Invalid, format!("port {port} is not possible: ports are 0 to {}", DROP_PORT - 1))
        }
        None => Ok(()),
    }
}

/// Replication ids and groups have 16 bits, and group 0 is none.
fn demand_numbers(op: &CopiesOp) -> Result<()> {
    let (group, rid) = match op {
        CopiesOp::SetGroup { group, copies, .. } => {
            (Some((*group, 1)), copies.iter().map(|(_, rid)| *rid).max())
        }
        CopiesOp::AddNode { rid, .. } => (None, Some(*rid)),
        CopiesOp::SetMirror { to, .. } => {
            (to.group.map(|group| (group, 0)), to.copies.iter().map(|(rid, _)| *rid).max())
        }
        _ => (None, None),
    };
    if let Some((group, least)) = group
        && !(least..=LAST).contains(&group)
    {
        let why = format!("{group} is not a {GROUP}; they are {least} to {LAST}");
        return refuse_as(Kind::Invalid, why);
    }
    match rid {
        Some(rid) if rid > LAST => {
            refuse_as(Kind::Invalid, format!("replication id {rid} is more than {LAST}"))
        }
        _ => Ok(()),
    }
}

fn demand(what: &str, number: u32, put: Put, there: bool) -> Result<()> {
    match (put, there) {
        (Put::New, true) => refuse_as(Kind::Exists, format!("there is a {what} {number} already")),
        (Put::Known, false) => missing(what, number).map(|_| ()),
        _ => Ok(()),
    }
}

/// To remove what is not there is refused, unless that does not matter.
fn demand_gone(what: &str, number: u32, put: Put, there: bool) -> Result<()> {
    if there || put == Put::Either { Ok(()) } else { missing(what, number).map(|_| ()) }
}

fn missing(what: &str, number: u32) -> Result<Answer> {
    refuse_as(Kind::NotFound, format!("there is no {what} {number}"))
}
