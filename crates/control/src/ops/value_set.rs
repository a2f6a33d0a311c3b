//! Parser value sets.

use super::family;
use crate::{Match, Name};

family! {
    /// On value sets.
    ValueSetOp in ValueSet {
        /// Add a member to a value set.
        Add "value_set_add" -> Done {
            /// The value set.
            value_set: Name,
            /// One match for each field.
            member: Vec<Match>,
        }
        /// Remove a member of a value set.
        Remove "value_set_remove" -> Done {
            /// The value set.
            value_set: Name,
            /// One match for each field.
            member: Vec<Match>,
        }
        /// Replace the members of a value set.
        Set "value_set_fill" -> Done {
            /// The value set.
            value_set: Name,
            /// Of each member one match for each field.
            members: Vec<Vec<Match>>,
        }
        /// Read all members of a value set.
        Read "value_set_read" -> Matches {
            /// The value set.
            value_set: Name,
        }
    }
}
