//! A network in virtual time: hosts with TCP as Linux has it, links, routers, and what happens when.
//!
//! A [`Network`] is built, then run. One seed gives one result, bit for bit: time is in picoseconds, events of one time run in
//! the order in which they were made, and no clock, thread or hash order has a part in it.
//!
//! | file | what |
//! |---|---|
//! | `network` | its state |
//! | `build`, `flows`, `switches` | what it is made of, and what is refused |
//! | `ask` | what came of it |
//! | `run` | the loop that runs it |
//! | `forward` | a packet's way from node to node |
//! | `hosts` | what comes to hosts, and what they send |
//! | `sample` | samples on a period |
//! | `agents` | what stands between a host's connections and its port |
//! | `events` | the queue of events |
//! | `pool` | packets under way |
//! | `port` | an output queue with the wire behind it |
//! | `aqm` | queue management of plain ports |
//! | `flow`, `request_response`, `udp` | what hosts send |
//! | `workload` | flows at random: sizes by a distribution, starts by a Poisson process |
//! | `outside` | hosts that are not simulated: frames come in and go out |
//! | `addresses` | which host and flow has which addresses and ports, so that packets become bytes and are read again |
//! | `capture` | pcap files of what goes over a port |
//! | `tap` | copies of what goes over a link, for a switch |
//! | `record` | samples and distributions |
//! | `routes` | shortest paths, with ties split by flow |

mod addresses;
mod agents;
mod aqm;
mod ask;
mod build;
mod capture;
mod events;
mod flow;
mod flows;
mod forward;
mod hosts;
mod network;
mod outside;
mod pool;
mod port;
mod record;
mod request_response;
mod routes;
mod run;
mod sample;
mod switches;
mod tap;
mod udp;
mod workload;

pub use addresses::{ipv4, mac};
pub use agents::{AgentCounts, AgentId, AgentNews, What};
pub use aqm::Aqm;
pub use capture::Sink;
pub use flow::{FlowId, Outcome, TcpFlow};
pub use network::{BuildError, Network, NodeId};
pub use outside::Outgoing;
pub use port::{GilbertElliott, Link, PortId, QueueLimit, QueueStatistics};
pub use record::{FlowSamples, Histogram, QueueSamples};
pub use request_response::{Exchange, PageFlow, PageId};
pub use udp::{Pattern, UdpFlow, UdpStatistics};
pub use workload::{Arrival, SizeDistribution, poisson};
