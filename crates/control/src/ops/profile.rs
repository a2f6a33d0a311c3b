//! Action profiles and selectors.

use super::family;
use crate::{Call, Name, Put, Share};

family! {
    /// On action profiles.
    ProfileOp in Profile {
        /// Add a member; the answer is its number.
        AddMember "member_add" -> Handle {
            /// The action profile.
            profile: Name,
            /// Its number; `None`: the next that is free.
            member: Option<u32>,
            /// An action with its values.
            to: Call,
        }
        /// Change what a member does.
        SetMember "member_set" -> Done {
            /// The action profile.
            profile: Name,
            /// Its number.
            member: u32,
            /// An action with its values.
            to: Call,
        }
        /// Remove a member that nothing uses.
        DeleteMember "member_delete" -> Done {
            /// The action profile.
            profile: Name,
            /// Its number.
            member: u32,
        }
        /// Read members.
        ReadMembers "members_read" -> Members {
            /// The action profile.
            profile: Name,
            /// The number from which on; `None`: from the first.
            start: Option<u32>,
            /// How many, in the order of their numbers; `None`: all from there on.
            count: Option<u32>,
        }
        /// Add an empty group; the answer is its number.
        AddGroup "group_add" -> Handle {
            /// The action selector.
            profile: Name,
        }
        /// Make a group, or replace its members.
        SetGroup "group_set" -> Done {
            /// The action selector.
            profile: Name,
            /// Its number.
            group: u32,
            /// Its members.
            shares: Vec<Share>,
            /// The most members that it may have; 0: not stated.
            max_size: u32,
            /// Whether it is made or changed.
            put: Put,
        }
        /// Put a member in a group.
        JoinGroup "group_join" -> Done {
            /// The action selector.
            profile: Name,
            /// The group.
            group: u32,
            /// The member.
            member: u32,
        }
        /// Take a member out of a group.
        LeaveGroup "group_leave" -> Done {
            /// The action selector.
            profile: Name,
            /// The group.
            group: u32,
            /// The member.
            member: u32,
        }
        /// Remove a group that nothing uses.
        DeleteGroup "group_delete" -> Done {
            /// The action selector.
            profile: Name,
            /// Its number.
            group: u32,
        }
        /// Read groups.
        ReadGroups "groups_read" -> Groups {
            /// The action selector.
            profile: Name,
            /// The number from which on; `None`: from the first.
            start: Option<u32>,
            /// How many at most, in the order of their numbers, fewer if they are large; `None`: all from there on.
            count: Option<u32>,
        }
    }
}
