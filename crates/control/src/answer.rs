//! What a switch answers.

use units::Time;

use crate::{Call, Generator, Leads, Match, MeterRates, Mirror, PortConfig, Share, Value, Words};

/// An entry of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub handle: u32,
    pub matches: Vec<Match>,
    pub priority: u32,
    pub to: Leads,
    /// Of the direct counter.
    pub packets: u64,
    pub bytes: u64,
    pub rates: Option<MeterRates>,
    /// Picoseconds; 0: none.
    pub idle_timeout: u64,
    /// Picoseconds since the last hit.
    pub idle_for: u64,
    pub is_const: bool,
    pub note: Vec<u8>,
    /// Entries that were added later have a larger one.
    pub order: u64,
}

/// How full a table is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableTotals {
    pub table: String,
    /// As the program declares it.
    pub size: u64,
    pub entries: u64,
    /// Packets and bytes of the entries that were asked for, if the table has a direct counter.
    pub counts: Option<(u64, u64)>,
    /// The handle from which to go on; `None`: there are no more.
    pub next: Option<u32>,
}

/// A group of an action selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub group: u32,
    pub shares: Vec<Share>,
    /// What the control plane wants it to hold at most; 0: nothing is said.
    pub max_size: u32,
}

/// Copies of a multicast group that have one replication id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub node: u32,
    pub rid: u32,
    pub ports: Vec<u32>,
}

/// A mirror session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorState {
    pub session: u32,
    pub to: Mirror,
    /// Port and replication id of each copy that it makes, those of its group with them.
    pub copies: Vec<(u32, u32)>,
}

/// A message that the program sent with `digest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    pub name: String,
    pub fields: Vec<(String, Value)>,
}

/// A packet for the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketIn {
    pub at: Time,
    /// With the controller header, if the program puts one on.
    pub bytes: Vec<u8>,
    /// Bytes of payload behind `bytes`, all zero, that are only counted.
    pub more: u32,
}

/// What waits in a queue, and its counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueState {
    pub waiting_packets: u64,
    pub waiting_bytes: u64,
    /// How long the first packet has waited.
    pub head_wait: Time,
    /// Packets and bytes taken.
    pub packets: u64,
    pub bytes: u64,
    /// Packets refused because the queue was full.
    pub dropped: u64,
    /// Packets that egress dropped after they had left the queue.
    pub dropped_in_egress: u64,
    /// Time in the queue, in picoseconds: summed over the packets that left it, and the longest.
    pub wait_sum: u128,
    pub wait_max: u64,
}

/// Where every packet is. What came in (the first four) is what went out (the next two), was dropped, or is held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    pub received: u64,
    pub generated: u64,
    pub packet_outs: u64,
    /// Clones and multicast copies, less the originals that copies replace.
    pub made: u64,
    pub transmitted: u64,
    pub packet_ins: u64,
    /// By reason.
    pub dropped: Vec<(&'static str, u64)>,
    pub held: u64,
}

/// What came of an operation; which one it is, each operation's definition says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Done,
    /// Of an entry, a member, a group or a node.
    Handle(u32),
    Count(u64),
    /// Entries, and the handle from which to go on; `None`: there are no more.
    Rows {
        rows: Vec<Row>,
        next: Option<u32>,
    },
    /// Entries of several tables, with the name of each one's table.
    Idle(Vec<(String, Row)>),
    Default {
        to: Leads,
        note: Vec<u8>,
    },
    Totals(Vec<TableTotals>),
    Matches(Vec<Vec<Match>>),
    /// By number.
    Members(Vec<(u32, Call)>),
    Groups(Vec<Group>),
    Words {
        words: Words,
        words_per_cell: u32,
    },
    /// Packets and bytes.
    Counts(Vec<(u64, u64)>),
    Rates(Vec<Option<MeterRates>>),
    /// Nodes of each multicast group.
    Multicast(Vec<(u32, Vec<Node>)>),
    /// By number.
    Mirrors(Vec<MirrorState>),
    Digests(Vec<Digest>),
    /// By reason.
    Drops(Vec<(&'static str, u64)>),
    Packet(Option<PacketIn>),
    Statistics(Statistics),
    Port(PortConfig),
    Queue(QueueState),
    Generator(Option<Generator>),
}
