//! TCP flows: two endpoints, what the application does, and what came of it.

use std::sync::Arc;

use transport::segment::Ecn;
use transport::tcp::{Config, Connection, Rest, Statistics};
use transport::udp::{self, Load, Pattern};
use units::{Bytes, Rate, Time};

use crate::node::NodeId;

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
    /// Then the connection is reset, as by an application that is killed; else it ends with a FIN.
    pub resets: bool,
    /// Its name and parameters, as [`transport::cc::new`] knows them.
    pub congestion_control: String,
    pub control_options: Arc<[(String, String)]>,
    pub config: Config,
    pub receiver_config: Config,
    /// What the sender sends waits this long in its host: a longer way, for this flow alone.
    pub extra_delay: Time,
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
            resets: false,
            congestion_control: congestion_control.to_owned(),
            control_options: Arc::default(),
            config: Config::default(),
            receiver_config: Config::default(),
            extra_delay: Time::ZERO,
        }
    }
}

/// Datagrams from one host to another.
#[derive(Debug, Clone)]
pub struct UdpFlow {
    pub from: NodeId,
    pub to: NodeId,
    pub start: Time,
    pub stop: Option<Time>,
    /// Of IP packets.
    pub rate: Rate,
    /// Bytes of a datagram.
    pub payload: u32,
    pub pattern: Pattern,
    pub ecn: Ecn,
}

/// A UDP flow that runs.
#[derive(Debug)]
pub(crate) struct Source {
    pub planned: UdpFlow,
    pub host: u32,
    pub peer_host: u32,
    pub hash: u32,
    pub flow: udp::Flow,
}

impl Source {
    pub fn new(planned: UdpFlow, host: u32, peer_host: u32, hash: u32) -> Source {
        let UdpFlow { rate, payload, pattern, ecn, .. } = planned;
        let flow = udp::Flow::new(Load { rate, payload, pattern, ecn });
        Source { planned, host, peer_host, hash, flow }
    }
}

/// What came of a flow, so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    pub started: Option<Time>,
    /// When the receiving application had all of a flow with a size.
    pub finished: Option<Time>,
    /// How long a flow with a size would take with the network to itself and windows that never limit: the handshake, then all
    /// its segments back to back over its way, with the links as they are at its start.
    pub ideal: Option<Time>,
    /// Read by the receiving application; for a page, by the client.
    pub bytes_received: u64,
    /// Of the side that sends the data; for UDP zero.
    pub statistics: Statistics,
}

impl Outcome {
    /// Takes what is known where a flow is received in place of its own.
    pub(crate) fn take_received(&mut self, there: &Outcome) {
        (self.finished, self.bytes_received) = (there.finished, there.bytes_received);
    }
}

/// Half of a flow: a line of the cache. Connections live from the start of the flow to its end.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Endpoint {
    pub connection: Option<Box<Connection>>,
    /// Host that it is on, and the host of the other half.
    pub host: u32,
    pub peer_host: u32,
    /// For splitting ties between ways.
    pub hash: u32,
    /// Page that it is of, or [`NO_PAGE`].
    pub page: u32,
    /// Earliest timer event under way; `u64::MAX`: none.
    pub timer: u64,
    /// All that comes of a timer event before this is another one then: the connection's timer was set later since. 0: each is handled.
    pub rests_until: u64,
    /// Why it rests.
    pub rest: Rest,
    /// What it sends waits this long before it comes to the host's port; with [`AGENT`]: the host has an agent.
    pub hold: u64,
}

impl Endpoint {
    pub fn new((host, peer_host): (u32, u32), hash: u32, page: u32, hold: u64) -> Endpoint {
        let rest = Rest::Busy;
        Endpoint {
            connection: None,
            host,
            peer_host,
            hash,
            page,
            timer: u64::MAX,
            rests_until: 0,
            rest,
            hold,
        }
    }

    /// As it is before it has a connection.
    pub fn unopened(&self) -> Endpoint {
        Endpoint { connection: None, timer: u64::MAX, rests_until: 0, rest: Rest::Busy, ..*self }
    }

    /// Whether the connection has something to do when a timer event of that time comes.
    #[inline]
    pub fn has_work(&self, at: u64) -> bool {
        self.timer == at && self.rests_until <= at
    }
}

/// See [`Endpoint::hold`].
pub(crate) const AGENT: u64 = 1 << 63;

/// In place of a page's number: a plain transfer.
pub(crate) const NO_PAGE: u32 = u32::MAX;

/// What is planned of a flow; its endpoints are those with twice its number, and one more.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Its flow's number.
    pub number: u32,
    pub flow: TcpFlow,
    pub outcome: Outcome,
}
