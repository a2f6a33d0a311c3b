//! Mirror sessions and multicast groups.

use control::{CopiesOp, Mirror, Node, Put};

use super::{Answer, Session, count, unexpected};
use crate::value::small;

impl Session<'_> {
    pub(super) fn replication_command(&mut self, command: &str, args: &[&str]) -> Option<Answer> {
        Some(match command {
            "mirroring_add" => self.mirroring_add(args),
            "mirroring_add_mc" => self.mirroring_add_mc(args),
            "mirroring_add_truncate" => self.mirroring_add_truncate(args),
            "mirroring_delete" => self.mirroring_delete(args),
            "mirroring_get" => self.mirroring_get(args),
            "mc_dump" => self.dump(args),
            "mc_mgrp_create" => self.group_create(args),
            "mc_mgrp_destroy" => self.group_destroy(args),
            "mc_node_create" => self.node_create(args),
            "mc_node_update" => self.node_update(args),
            "mc_node_associate" => self.node_associate(args, true),
            "mc_node_dissociate" => self.node_associate(args, false),
            "mc_node_destroy" => self.node_destroy(args),
            _ => return None,
        })
    }

    fn mirror(&mut self, session: &str, to: Mirror) -> Answer {
        self.done(CopiesOp::SetMirror { session: small("session", session)?, to, put: Put::Either })
    }

    fn mirroring_add(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "mirroring_add SESSION PORT")?;
        self.mirror(args[0], Mirror { port: Some(small("port", args[1])?), ..Mirror::default() })
    }

    fn mirroring_add_mc(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "mirroring_add_mc SESSION GROUP")?;
        self.mirror(args[0], Mirror { group: Some(small("group", args[1])?), ..Mirror::default() })
    }

    fn mirroring_add_truncate(&mut self, args: &[&str]) -> Answer {
        count(args, 3, 3, "mirroring_add_truncate SESSION PORT BYTES")?;
        let (port, truncate) = (Some(small("port", args[1])?), Some(small("length", args[2])?));
        self.mirror(args[0], Mirror { port, truncate, ..Mirror::default() })
    }

    fn mirroring_delete(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "mirroring_delete SESSION")?;
        self.done(CopiesOp::DeleteMirror { session: small("session", args[0])?, put: Put::Known })
    }

    fn mirroring_get(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "mirroring_get SESSION")?;
        let id = small("session", args[0])?;
        let sessions = match self.act(CopiesOp::ReadMirrors { start: Some(id), count: Some(1) })? {
            control::Answer::Mirrors(sessions) => sessions,
            other => return Err(unexpected(&other)),
        };
        let Some(found) = sessions.into_iter().find(|s| s.session == id) else {
            return Err(format!("there is no mirror session {id}"));
        };
        let mut text = format!("session {id}:");
        let to = found.to;
        for (name, value) in [("port", to.port), ("multicast group", to.group), ("length", to.truncate)] {
            if let Some(value) = value {
                text += &format!(" {name} {value}");
            }
        }
        Ok(text)
    }

    fn dump(&mut self, args: &[&str]) -> Answer {
        count(args, 0, 0, "mc_dump")?;
        let groups = match self.act(CopiesOp::ReadGroups { start: None, count: None })? {
            control::Answer::Multicast(groups) => groups,
            other => return Err(unexpected(&other)),
        };
        let node = |n: &Node| format!("node {} rid {} ports {:?}", n.node, n.rid, n.ports);
        let lines = groups.iter().map(|(group, nodes)| {
            format!("group {group}: {}", nodes.iter().map(node).collect::<Vec<_>>().join("; "))
        });
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    fn group_create(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "mc_mgrp_create GROUP")?;
        let group = small("group", args[0])?;
        self.done(CopiesOp::SetGroup { group, copies: Vec::new(), put: Put::New })
    }

    fn group_destroy(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "mc_mgrp_destroy GROUP")?;
        let group = small("group", args[0])?;
        self.done(CopiesOp::DeleteGroup { group, put: Put::Known, nodes: false })
    }

    fn node_create(&mut self, args: &[&str]) -> Answer {
        count(args, 1, usize::MAX, "mc_node_create RID PORT...")?;
        let rid = small("replication id", args[0])?;
        let handle = self.handle(CopiesOp::AddNode { rid, ports: ports(&args[1..])? })?;
        Ok(format!("node was created with handle {handle}"))
    }

    fn node_update(&mut self, args: &[&str]) -> Answer {
        count(args, 1, usize::MAX, "mc_node_update NODE PORT...")?;
        let node = small("node", args[0])?;
        self.done(CopiesOp::SetNode { node, ports: ports(&args[1..])? })
    }

    fn node_associate(&mut self, args: &[&str], add: bool) -> Answer {
        let expected = if add { "mc_node_associate GROUP NODE" } else { "mc_node_dissociate GROUP NODE" };
        count(args, 2, 2, expected)?;
        let (group, node) = (small("group", args[0])?, small("node", args[1])?);
        if add {
            self.done(CopiesOp::JoinNode { group, node })
        } else {
            self.done(CopiesOp::LeaveNode { group, node })
        }
    }

    fn node_destroy(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "mc_node_destroy NODE")?;
        self.done(CopiesOp::DeleteNode { node: small("node", args[0])? })
    }
}

/// Ports up to the end; `|` would start link aggregation groups.
fn ports(args: &[&str]) -> Result<Vec<u32>, String> {
    let (ports, lags) = match args.iter().position(|a| *a == "|") {
        Some(at) => (&args[..at], &args[at + 1..]),
        None => (args, &args[..0]),
    };
    if !lags.is_empty() {
        return Err("link aggregation groups are not supported; give the ports themselves".into());
    }
    ports.iter().map(|p| small("port", p)).collect()
}
