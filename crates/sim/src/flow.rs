//! TCP flows: two endpoints, what the application does, and what came of it.

use transport::tcp::{Config, Connection, Statistics};
use units::{Bytes, Time};

use crate::network::NodeId;

/// A flow's number, TCP and UDP counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowId(pub(crate) u32);

impl FlowId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A transfer from one host to another, over a connection of its own.
#[derive(Debug, Clone)]
pub struct TcpFlow {
    pub from: NodeId,
    pub to: NodeId,
    pub start: Time,
    /// `None`: as much as goes through until the end, or `stop`.
    pub size: Option<Bytes>,
    /// The application stops writing.
    pub stop: Option<Time>,
    /// As [`transport::cc::by_name`] knows it.
    pub congestion_control: String,
    pub config: Config,
    pub receiver_config: Config,
}

impl TcpFlow {
    /// A flow that starts at once and goes on.
    pub fn new(from: NodeId, to: NodeId, congestion_control: &str) -> TcpFlow {
        TcpFlow {
            from,
            to,
            start: Time::ZERO,
            size: None,
            stop: None,
            congestion_control: congestion_control.to_owned(),
            config: Config::default(),
            receiver_config: Config::default(),
        }
    }
}

/// What came of a flow, so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    pub started: Option<Time>,
    /// When the receiving application had all of a flow with a size.
    pub finished: Option<Time>,
    /// Read by the receiving application.
    pub bytes_received: u64,
    /// Of the sending side; for UDP zero.
    pub statistics: Statistics,
}

/// Half of a flow. Connections live from the start of the flow to its end.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub connection: Option<Box<Connection>>,
    /// Host that it is on, and the host of the other half.
    pub host: u32,
    pub peer_host: u32,
    /// For splitting ties between ways.
    pub hash: u32,
    /// Earliest timer event under way; `u64::MAX`: none.
    pub timer: u64,
}

/// What is planned of a flow; its endpoints are those with twice its number, and one more.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Its flow's number.
    pub number: u32,
    pub flow: TcpFlow,
    pub outcome: Outcome,
}
