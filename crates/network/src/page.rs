//! Pages: what is asked of whom, and what was answered so far. See `request_response` for what happens.

use units::{Bytes, Time};

use crate::flow::{FlowId, TcpFlow};

/// A page's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageId(pub(crate) u32);

/// What a page is.
#[derive(Debug, Clone)]
pub struct PageFlow {
    /// The connection, from the client to the server; its start is that of the first request. No size and no stop.
    pub flow: TcpFlow,
    pub request: Bytes,
    pub response: Bytes,
    /// Requests, one after the other.
    pub objects: u32,
    /// From an answer to the next question.
    pub think: Time,
    /// All over one connection; otherwise each over one of its own.
    pub persistent: bool,
}

/// A question, and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Over which connection.
    pub flow: FlowId,
    pub asked: Time,
    /// When the client had all of the answer.
    pub answered: Option<Time>,
}

/// A page and what came of it so far.
#[derive(Debug, Clone)]
pub(crate) struct RequestResponse {
    pub page: PageFlow,
    /// Its first flow and that flow's plan; the others follow.
    pub first: (FlowId, u32),
    pub exchanges: Vec<Exchange>,
    /// The action that asks the next question, where one connection is for all.
    pub ask: u32,
    /// The last question has come to the server.
    pub heard: bool,
}

impl RequestResponse {
    /// The plan of the connection that is in use.
    pub fn plan(&self, exchange: usize) -> u32 {
        self.first.1 + if self.page.persistent { 0 } else { exchange as u32 }
    }

    /// Questions on the connection that is in use.
    pub fn on_connection(&self) -> u64 {
        if self.page.persistent { self.exchanges.len() as u64 } else { 1 }
    }
}
