//! A TCP flow: two endpoints, what the application does, and when.

use transport::cc::CongestionControl;
use transport::tcp::{Config, Connection};
use units::{Bytes, Time};

use crate::network::NodeId;

/// A flow's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowId(pub(crate) u32);

/// A transfer from one host to another.
pub struct TcpFlow {
    pub from: NodeId,
    pub to: NodeId,
    pub start: Time,
    /// `None`: as much as goes through until the end, or `stop`.
    pub size: Option<Bytes>,
    /// The application stops writing.
    pub stop: Option<Time>,
    pub congestion_control: Box<dyn CongestionControl>,
    pub config: Config,
    pub receiver_config: Config,
}

/// Half of a flow.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub connection: Connection,
    /// Index of the other half.
    pub peer: u32,
    /// Host that it is on, and the host of the other half.
    pub host: u32,
    pub peer_host: u32,
    /// For splitting ties between ways.
    pub hash: u32,
    /// Earliest timer event under way; `u64::MAX`: none.
    pub timer: u64,
}

/// What is to happen to a flow.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action {
    Start(u32),
    Stop(u32),
}
