//! TCP as Linux has it. One idea a file:
//!
//! | file | what |
//! |---|---|
//! | `connection` | the handshake, the states, what comes in and goes out |
//! | `config` | what can be set |
//! | `scoreboard` | packets that are out: sent, selectively acknowledged, lost, sent again |
//! | `ack` | what an ACK acknowledges: cumulative, SACK, D-SACK, samples of time and rate |
//! | `recovery` | the states of loss recovery: fast retransmit, PRR, timeouts, F-RTO, undo |
//! | `rack` | RACK and tail loss probes |
//! | `device` | what waits in the host's own queue |
//! | `output` | what may be sent now: windows, segmentation offload, pacing |
//! | `receiver` | reassembly, SACK blocks, delayed ACKs |
//! | `window` | the window that a receiver offers |
//! | `rtt` | round trip and retransmission timeout |

mod ack;
mod config;
mod connection;
mod device;
mod limits;
mod output;
mod rack;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod window;

pub use config::{Config, EcnMode, RTO_INIT, RTO_MAX};
pub use connection::{Connection, Phase, Statistics};
