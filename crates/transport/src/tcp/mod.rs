//! TCP as Linux has it. One idea a file:
//!
//! | file | what |
//! |---|---|
//! | `connection` | the states, what is asked of a connection, timers |
//! | `handshake`, `input`, `segments` | how it opens, what comes in, what goes out |
//! | `sender` | the state of the sending side |
//! | `config` | what can be set |
//! | `scoreboard` | packets that are out: sent, selectively acknowledged, lost, sent again |
//! | `ring` | packets in order, the first of them in the connection's own memory |
//! | `ack`, `ack_flag` | what an ACK acknowledges: cumulative, SACK, D-SACK, samples of time and rate |
//! | `recovery` | the states of loss recovery: fast retransmit, PRR, timeouts, F-RTO, undo |
//! | `rack` | RACK and tail loss probes |
//! | `device` | what waits in the host's own queue |
//! | `output` | what may be sent now: windows, segmentation offload, pacing |
//! | `receiver` | reassembly, SACK blocks, delayed ACKs |
//! | `window` | the window that a receiver offers |
//! | `limits` | limits that the host's agents set |
//! | `statistics` | counts |
//! | `rtt` | round trip and retransmission timeout |

mod ack;
mod ack_flag;
mod config;
mod connection;
mod device;
mod handshake;
mod input;
mod limits;
mod output;
mod rack;
mod receiver;
mod recovery;
mod ring;
mod rtt;
mod scoreboard;
mod segments;
mod sender;
mod statistics;
mod window;

pub use config::{Config, EcnMode, RTO_INIT, RTO_MAX};
pub use connection::{Connection, Phase, Rest};
pub use segments::Transmitted;
pub use statistics::Statistics;
