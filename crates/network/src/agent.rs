//! Agents of hosts: their chains, counts and limits, and what they are still to be notified of.

use std::collections::{BTreeMap, HashMap};

use transport::host::Chain;
use units::{Rate, Time};
use wire::WireError;
use wire::between::Between;
use wire::ethernet::kind::IPV4;
use wire::packet::Written;

/// An agent's number, in the order of making.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AgentId(pub(crate) u32);

impl AgentId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Something that an agent is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentNotice {
    pub at: Time,
    pub agent: AgentId,
    /// Number of the connection's end; see [`Network::agent_flow`].
    pub connection: u32,
    pub what: What,
}

/// What an agent is told of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Opened,
    Established,
    Closed,
    /// A shim's report: an option's kind and data.
    Report(u16, Vec<u8>),
}

/// What an agent's shims have done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentCounts {
    /// Packets dropped, and held back.
    pub dropped: u64,
    pub held: u64,
    /// Options that found no room in their packet.
    pub no_room: u64,
    /// Options that were not believed.
    pub refused: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Agent {
    pub host: u32,
    pub chain: Chain,
    /// Whoever runs the network wants to hear at once of connections and reports.
    pub listens: bool,
    pub counts: AgentCounts,
    /// How far each connection has come, as far as the agent knows: see `agents`.
    pub stages: HashMap<u32, u8>,
    pub limits: BTreeMap<u32, (Option<Rate>, Option<u32>)>,
    /// Earliest event under way for its timers, and the action that it is; `u64::MAX`: none.
    pub timer: u64,
    pub action: u32,
}

/// All agents, and what they are to be told.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    pub all: Vec<Agent>,
    /// By host its agents that are there, the first next to TCP.
    pub by_host: Vec<Vec<u32>>,
    pub pending: Vec<AgentNotice>,
    /// Packets whose options made no sense, or whose header between Ethernet and IP.
    pub malformed: u64,
}

impl Agents {
    #[inline]
    pub fn has(&self, host: u32) -> bool {
        self.by_host.get(host as usize).is_some_and(|agents| !agents.is_empty())
    }

    /// Takes the header between Ethernet and IP off a packet that has come to a host with agents, if they know its EtherType.
    pub fn take_between(&self, host: u32, written: &mut Written) -> Result<Option<Between>, WireError> {
        let Some(kind) = written.kind() else { return Ok(None) };
        if kind == IPV4 {
            return Ok(None);
        }
        let chains = self.by_host[host as usize].iter().map(|id| &self.all[*id as usize].chain);
        match chains.into_iter().find_map(|chain| chain.form(kind)) {
            Some(form) => written.take_between(form).map(Some),
            None => Ok(None),
        }
    }
}
