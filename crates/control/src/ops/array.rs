//! Registers, counters and meters: arrays of cells.

use super::family;
use crate::{At, MeterRates, Name, Value, Words};

family! {
    /// On arrays of cells.
    ArrayOp in Array {
        /// Read cells of a register.
        ReadRegister "register_read" -> Words {
            /// The register.
            register: Name,
            /// The first cell.
            start: u32,
            /// How many; `None`: all from there on.
            count: Option<u32>,
        }
        /// Write cells of a register, from one on.
        WriteRegister "register_write" -> Done {
            /// The register.
            register: Name,
            /// The first cell.
            start: u32,
            /// Words of 64 bits, each little-endian, the least significant word of a cell first.
            words: Words,
        }
        /// Set one cell of a register, several, or all, to one value.
        SetRegister "register_set" -> Done {
            /// The register.
            register: Name,
            /// The cell; a pair: the first of several and how many; `None`: all.
            at: At,
            /// The value.
            value: Value,
        }
        /// Read cells of a counter; of a direct counter, that of the entry of a handle.
        ReadCounter "counter_read" -> Counts {
            /// The counter.
            counter: Name,
            /// The first cell.
            start: u32,
            /// How many; `None`: all from there on.
            count: Option<u32>,
        }
        /// Set one cell of a counter, several, or all; of a direct counter, that of the entry of a handle.
        SetCounter "counter_set" -> Done {
            /// The counter.
            counter: Name,
            /// The cell; a pair: the first of several and how many; `None`: all.
            at: At,
            /// Packets.
            packets: u64,
            /// Bytes.
            bytes: u64,
        }
        /// Read cells of a meter; of a direct meter, that of the entry of a handle.
        ReadMeter "meter_read" -> Rates {
            /// The meter.
            meter: Name,
            /// The first cell.
            start: u32,
            /// How many; `None`: all from there on.
            count: Option<u32>,
        }
        /// Set the rates of one cell of a meter, of several, or of all; of a direct meter, that of the entry of a handle.
        SetMeter "meter_set" -> Done {
            /// The meter.
            meter: Name,
            /// The cell; a pair: the first of several and how many; `None`: all.
            at: At,
            /// Thousandths of a byte or packet a second, and bursts; `()`: all packets are green.
            rates: Option<MeterRates>,
        }
    }
}
