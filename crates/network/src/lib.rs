//! A network in virtual time: hosts with TCP as Linux has it, links, routers, and what happens when.
//!
//! A [`Network`] is built, then run. One seed gives one result, bit for bit: time is in picoseconds, events of one time run in
//! the order in which they were made, and no clock, thread or hash order has a part in it.
//!
//! | file | what |
//! |---|---|
//! | `network` | building a network, and asking it |
//! | `run` | the loop that runs it |
//! | `events` | the queue of events |
//! | `packet` | packets and their pool |
//! | `port` | an output queue with the wire behind it |
//! | `aqm` | queue management of plain ports |
//! | `flow`, `page`, `udp` | what hosts send |
//! | `workload` | flows at random: sizes by a distribution, starts by a Poisson process |
//! | `outside` | hosts that are not simulated: frames come in and go out |
//! | `switch_node` | P4 switches: packets become bytes and are read again |
//! | `capture` | pcap files of what goes over a port |
//! | `record` | samples and distributions |
//! | `routes` | shortest paths, with ties split by flow |
//! | `random` | the seeded source of random numbers |

mod aqm;
mod capture;
mod events;
mod flow;
mod network;
mod outside;
mod packet;
mod page;
mod port;
mod random;
mod record;
mod routes;
mod run;
mod switch_node;
mod udp;
mod workload;

pub use aqm::Aqm;
pub use capture::Sink;
pub use flow::{FlowId, Outcome, TcpFlow};
pub use network::{BuildError, Network, NodeId};
pub use outside::Outgoing;
pub use page::{Exchange, PageFlow, PageId};
pub use port::{GilbertElliott, Link, PortId, QueueLimit, QueueStatistics};
pub use record::{FlowSamples, Histogram, QueueSamples};
pub use switch_node::{ipv4, mac};
pub use udp::{Pattern, UdpFlow, UdpStatistics};
pub use workload::{Arrival, SizeDistribution, poisson};
