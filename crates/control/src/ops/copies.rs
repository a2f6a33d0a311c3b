//! Which copies of a packet go where: multicast groups with their nodes, and mirror sessions.

use super::family;
use crate::{Mirror, Put};

family! {
    /// On multicast groups and mirror sessions.
    CopiesOp in Copies {
        /// Set all copies of a multicast group.
        SetGroup "multicast_set" -> Done {
            /// The group.
            group: u32,
            /// Port and replication id of each.
            copies: Vec<(u32, u32)>,
            /// Whether it is made or changed.
            put: Put,
        }
        /// Remove a multicast group.
        DeleteGroup "multicast_delete" -> Done {
            /// The group.
            group: u32,
            /// `known`: there must be one.
            put: Put,
            /// Whether its nodes go as well, but for those that other groups have.
            nodes: bool,
        }
        /// Make a node: copies that have one replication id; the answer is its handle.
        AddNode "node_add" -> Handle {
            /// Replication id.
            rid: u32,
            /// Ports.
            ports: Vec<u32>,
        }
        /// Set the ports of a node.
        SetNode "node_set" -> Done {
            /// Its handle.
            node: u32,
            /// Ports.
            ports: Vec<u32>,
        }
        /// Remove a node.
        DeleteNode "node_delete" -> Done {
            /// Its handle.
            node: u32,
        }
        /// Put a node in a multicast group.
        JoinNode "node_join" -> Done {
            /// The group.
            group: u32,
            /// The node.
            node: u32,
        }
        /// Take a node out of a multicast group.
        LeaveNode "node_leave" -> Done {
            /// The group.
            group: u32,
            /// The node.
            node: u32,
        }
        /// Read multicast groups.
        ReadGroups "multicast_read" -> Multicast {
            /// The number from which on; `None`: from the first.
            start: Option<u32>,
            /// How many at most, in the order of their numbers, fewer if they are large; `None`: all from there on.
            count: Option<u32>,
        }
        /// Set where the copies of a mirror session go.
        SetMirror "mirror_set" -> Done {
            /// The session.
            session: u32,
            /// Ports and groups.
            to: Mirror,
            /// Whether it is made or changed.
            put: Put,
        }
        /// Remove a mirror session.
        DeleteMirror "mirror_delete" -> Done {
            /// The session.
            session: u32,
            /// `known`: there must be one.
            put: Put,
        }
        /// Read mirror sessions.
        ReadMirrors "mirror_read" -> Mirrors {
            /// The number from which on; `None`: from the first.
            start: Option<u32>,
            /// How many at most, in the order of their numbers, fewer if they are large; `None`: all from there on.
            count: Option<u32>,
        }
    }
}
