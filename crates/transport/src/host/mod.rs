//! What stands between a host's connections and its port: a chain of shims, each of which sees, and may edit, drop or hold, every
//! packet that the host sends or receives, hears of connections, and may limit them or tell their congestion controls something.
//!
//! A shim owns no clock, socket or random source; all of its state is its own. The first shim of a [`Chain`] is next to TCP: packets
//! that are sent go through the chain from front to back, those that come from back to front. Options are added with
//! [`Packet::add`]; room for those on data packets comes off the connection's MSS, as in Linux, and the MSS that a SYN
//! says stays (see [`Shim::room`]). An ACK with SACK blocks may have no room: TCP's own options come first.
//!
//! | file | what |
//! |---|---|
//! | `packet` | a packet as shims see it, and which packets there are |
//! | `chain` | shims in order, and what they ask for |
//! | `insert`, `echo`, `tell`, `check` | the stock shims: put an option on packets, echo one, report or signal one, check one |

mod chain;
mod check;
mod echo;
mod insert;
mod packet;
mod tell;

use std::fmt::Debug;

pub use chain::{Chain, Effect, Effects, Handle};
pub use check::{Check, halfsiphash};
pub use echo::{Echo, Keep};
pub use insert::{Insert, Stamp};
pub use packet::{Form, Kinds, OptionKind, Packet, PacketKind, Place};
pub use tell::{Report, Signal};
use units::Time;

/// A connection of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowKey {
    /// Its number, which no other connection of the network has.
    pub connection: u32,
    /// This side opened it.
    pub active: bool,
    /// This side's and the other side's.
    pub addresses: [[u8; 4]; 2],
    pub ports: [u16; 2],
}

/// What happens to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It is about to send a SYN, or has got one.
    Opened,
    /// The handshake is done.
    Established,
    /// It is closed, reset or given up.
    Closed,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Drop,
    /// Waits until then. The other shims see it at once, and it waits for the longest time that any of them asks for. A UDP datagram
    /// that has come does not wait.
    Hold(Time),
}

/// Bytes of options, not padded, and of a header between Ethernet and IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    pub ip: u32,
    pub tcp: u32,
    pub between: u32,
}

impl Room {
    /// Bytes that they take of a packet: each header is padded to a multiple of four.
    pub fn padded(self) -> u32 {
        self.ip.next_multiple_of(4) + self.tcp.next_multiple_of(4) + self.between
    }

    /// What both take, not padded.
    pub fn and(self, other: Room) -> Room {
        Room { ip: self.ip + other.ip, tcp: self.tcp + other.tcp, between: self.between + other.between }
    }
}

/// One part of an agent.
pub trait Shim: Debug + Send + Sync {
    /// The option that it adds or reads first of all. A host knows the headers between Ethernet and IP that its shims name here.
    fn option(&self) -> Option<OptionKind> {
        None
    }

    /// Bytes of options that it may put on a packet of this kind. What it asks for on [`PacketKind::Data`] comes off the
    /// connection's MSS.
    fn room(&self, _flow: &FlowKey, _on: PacketKind) -> Room {
        Room::default()
    }

    fn event(&mut self, _now: Time, _connection: &mut Handle, _what: Event) {}

    /// The host sends a packet. `connection`: `None` for UDP.
    fn sent(&mut self, _now: Time, _connection: Option<&mut Handle>, _packet: &mut Packet) -> Verdict {
        Verdict::Pass
    }

    /// A packet has come, and TCP has not seen it. `connection`: `None` for UDP.
    fn received(&mut self, _now: Time, _connection: Option<&mut Handle>, _packet: &mut Packet) -> Verdict {
        Verdict::Pass
    }

    /// When [`Shim::advance`] is due; `None`: never.
    fn wakeup(&self) -> Option<Time> {
        None
    }

    /// Its time has come.
    fn advance(&mut self, _now: Time, _effects: &mut Effects) {}
}
