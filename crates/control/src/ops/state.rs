//! What belongs to no object of a program.

use super::family;
use crate::CrcParameters;

family! {
    /// On a program's state.
    StateOp in State {
        /// Take the digests that the program has sent since they were last taken.
        TakeDigests "digests_take" -> Digests {
        }
        /// Count the digests that were dropped because too many waited.
        DigestsLost "digests_lost" -> Count {
        }
        /// Count the packets dropped so far, by reason.
        Drops "drops_read" -> Drops {
        }
        /// Set the polynomial of `crc16_custom` or `crc32_custom`.
        SetCrc "crc_set" -> Done {
            /// Width, polynomial, initial value, final XOR, what is reflected.
            to: CrcParameters,
        }
        /// Set all tables, registers, counters and so on to the program's initial state, without multicast groups.
        Reset "state_reset" -> Done {
        }
    }
}
