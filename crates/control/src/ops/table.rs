//! Tables and their entries.

use super::family;
use crate::{EntryRef, Extras, Leads, Match, Name};

family! {
    /// On tables.
    TableOp in Table {
        /// Add an entry; the answer is its handle.
        Add "table_add" -> Handle {
            /// The table.
            table: Name,
            /// One match for each key.
            key: Vec<Match>,
            /// The smaller one wins; for tables with ternary, range or optional keys alone.
            priority: Option<u32>,
            /// An action with its values, or a member, a group or a set of actions.
            to: Leads,
            /// What else the entry has.
            extras: Extras,
        }
        /// Change an entry.
        Set "table_set" -> Done {
            /// The table.
            table: Name,
            /// Its handle, or its match and priority.
            entry: EntryRef,
            /// The new action with its values, or a member or group; `None` leaves it.
            to: Option<Leads>,
            /// What else the entry has.
            extras: Extras,
        }
        /// Remove an entry.
        Delete "table_delete" -> Done {
            /// The table.
            table: Name,
            /// Its handle, or its match and priority.
            entry: EntryRef,
        }
        /// Remove all entries but the program's const entries.
        Clear "table_clear" -> Done {
            /// The table.
            table: Name,
        }
        /// Set the default action, which a miss runs.
        SetDefault "table_default_set" -> Done {
            /// The table.
            table: Name,
            /// The default action with its values, or a member or group.
            to: Leads,
            /// The control plane's own note; `None` leaves it.
            note: Option<Vec<u8>>,
        }
        /// Reset the default action to the program's.
        ResetDefault "table_default_reset" -> Done {
            /// The table.
            table: Name,
        }
        /// Read the default action.
        ReadDefault "table_default_read" -> Default {
            /// The table.
            table: Name,
        }
        /// Read entries: one, or those of some handles in order, which may be none.
        Read "table_read" -> Rows {
            /// The table.
            table: Name,
            /// The handle from which on.
            start: u32,
            /// Only this one.
            only: Option<EntryRef>,
        }
        /// Take the entries of all tables whose idle timeout has expired, and restart their timeouts.
        TakeIdle "table_idle_take" -> Idle {
        }
        /// Read how many entries each table has, and the sums of its direct counter: of all entries, or of some at a time.
        Totals "table_totals" -> Totals {
            /// Only of this table.
            table: Option<Name>,
            /// The handle from which on some entries are summed; `None`: all are.
            start: Option<u32>,
        }
    }
}
