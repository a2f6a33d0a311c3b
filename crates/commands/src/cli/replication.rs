//! Mirror sessions and multicast groups.

use dataplane::replication::Session as Mirror;

use super::{Answer, Session, count};
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

    fn mirroring_add(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "mirroring_add SESSION PORT")?;
        let session = Mirror { port: Some(small("port", args[1])?), ..Mirror::default() };
        self.pipeline.replication.set_session(small("session", args[0])?, session);
        Ok(String::new())
    }

    fn mirroring_add_mc(&mut self, args: &[&str]) -> Answer {
        count(args, 2, 2, "mirroring_add_mc SESSION GROUP")?;
        let session = Mirror { group: Some(small("group", args[1])?), ..Mirror::default() };
        self.pipeline.replication.set_session(small("session", args[0])?, session);
        Ok(String::new())
    }

    fn mirroring_add_truncate(&mut self, args: &[&str]) -> Answer {
        count(args, 3, 3, "mirroring_add_truncate SESSION PORT BYTES")?;
        let session = Mirror {
            port: Some(small("port", args[1])?),
            truncate: Some(small("length", args[2])?),
            ..Mirror::default()
        };
        self.pipeline.replication.set_session(small("session", args[0])?, session);
        Ok(String::new())
    }

    fn mirroring_delete(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "mirroring_delete SESSION")?;
        let id = small("session", args[0])?;
        if !self.pipeline.replication.remove_session(id) {
            return Err(format!("there is no mirror session {id}"));
        }
        Ok(String::new())
    }

    fn mirroring_get(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "mirroring_get SESSION")?;
        let id = small("session", args[0])?;
        let Some(session) = self.pipeline.replication.session(id) else {
            return Err(format!("there is no mirror session {id}"));
        };
        let mut text = format!("session {id}:");
        for (name, value) in
            [("port", session.port), ("multicast group", session.group), ("length", session.truncate)]
        {
            if let Some(value) = value {
                text += &format!(" {name} {value}");
            }
        }
        Ok(text)
    }

    fn dump(&mut self, args: &[&str]) -> Answer {
        count(args, 0, 0, "mc_dump")?;
        let lines = self.pipeline.replication.groups().map(|(group, nodes)| {
            let nodes: Vec<String> = nodes
                .map(|(handle, rid, ports)| format!("node {handle} rid {rid} ports {ports:?}"))
                .collect();
            format!("group {group}: {}", nodes.join("; "))
        });
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    fn group_create(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "mc_mgrp_create GROUP")?;
        let group = small("group", args[0])?;
        if group == 0 || group > 0xffff {
            return Err(format!("{group} is not a multicast group; they are 1 to 65535"));
        }
        if !self.pipeline.replication.create_group(group) {
            return Err(format!("there is a multicast group {group} already"));
        }
        Ok(String::new())
    }

    fn group_destroy(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "mc_mgrp_destroy GROUP")?;
        let group = small("group", args[0])?;
        if !self.pipeline.replication.destroy_group(group) {
            return Err(format!("there is no multicast group {group}"));
        }
        Ok(String::new())
    }

    fn node_create(&mut self, args: &[&str]) -> Answer {
        count(args, 1, usize::MAX, "mc_node_create RID PORT...")?;
        let rid = small("replication id", args[0])?;
        if rid > 0xffff {
            return Err(format!("replication id {rid} is more than 65535"));
        }
        let ports = ports(&args[1..])?;
        let handle = self.pipeline.replication.create_node(rid, ports);
        Ok(format!("node was created with handle {handle}"))
    }

    fn node_update(&mut self, args: &[&str]) -> Answer {
        count(args, 1, usize::MAX, "mc_node_update NODE PORT...")?;
        let node = small("node", args[0])?;
        let ports = ports(&args[1..])?;
        if !self.pipeline.replication.update_node(node, ports) {
            return Err(format!("there is no node {node}"));
        }
        Ok(String::new())
    }

    fn node_associate(&mut self, args: &[&str], add: bool) -> Answer {
        let expected = if add { "mc_node_associate GROUP NODE" } else { "mc_node_dissociate GROUP NODE" };
        count(args, 2, 2, expected)?;
        let (group, node) = (small("group", args[0])?, small("node", args[1])?);
        let replication = &mut self.pipeline.replication;
        let done = if add { replication.associate(group, node) } else { replication.dissociate(group, node) };
        if !done {
            return Err(if add {
                format!("there is no multicast group {group}, or no node {node}; create both first")
            } else {
                format!("node {node} is not in multicast group {group}")
            });
        }
        Ok(String::new())
    }

    fn node_destroy(&mut self, args: &[&str]) -> Answer {
        count(args, 1, 1, "mc_node_destroy NODE")?;
        let node = small("node", args[0])?;
        if !self.pipeline.replication.destroy_node(node) {
            return Err(format!("there is no node {node}"));
        }
        Ok(String::new())
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
