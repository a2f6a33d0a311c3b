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
//! | `parts` | one run on several threads |
//! | `forward` | a packet's way from node to node |
//! | `hosts` | what comes to hosts, and what they send |
//! | `sample` | samples on a period |
//! | `node`, `error` | its nodes, and what is refused |
//! | `agent`, `agents` | what stands between a host's connections and its port |
//! | `events`, `wheel`, `far`, `heap` | the queue of events |
//! | `ahead` | memory that is soon needed |
//! | `large_pages` | memory in large pages |
//! | `pool` | packets under way |
//! | `port` | an output queue with the wire behind it |
//! | `aqm` | queue management of plain ports |
//! | `flow`, `page`, `request_response`, `udp` | what hosts send |
//! | `workload` | flows at random: sizes by a distribution, starts by a Poisson process |
//! | `outgoing`, `outside` | hosts that are not simulated: frames come in and go out |
//! | `addresses` | which host and flow has which addresses and ports, so that packets become bytes and are read again |
//! | `capture` | pcap files of what goes over a port |
//! | `watch` | who sees what goes over a port |
//! | `view` | what there is to show while it runs |
//! | `tap` | copies of what goes over a link, for a switch |
//! | `routers` | queues by class at the ports of plain routers |
//! | `record` | samples and distributions |
//! | `routes` | shortest paths, with ties split by flow |

#![forbid(unsafe_code)]

mod addresses;
mod agent;
mod agents;
mod ahead;
mod aqm;
mod ask;
mod build;
mod capture;
mod error;
mod event;
mod events;
mod far;
mod flow;
mod flows;
mod forward;
mod heap;
mod hosts;
mod large_pages;
mod network;
mod node;
mod outgoing;
mod outside;
mod page;
mod parts;
mod pool;
mod port;
mod record;
mod request_response;
mod routers;
mod routes;
mod run;
mod sample;
mod switches;
mod tap;
mod view;
mod watch;
mod wheel;
mod workload;

pub use addresses::{flow_ports, ipv4, mac};
pub use agent::{AgentCounts, AgentId, AgentNotice, What};
pub use aqm::{Aqm, FlowKey};
pub use capture::Sink;
pub use error::BuildError;
pub use flow::{FlowId, Outcome, TcpFlow, UdpFlow};
pub use network::Network;
pub use node::NodeId;
pub use outgoing::Outgoing;
pub use page::{Exchange, PageFlow, PageId};
pub use port::{BESIDE, GilbertElliott, Link, PortId, QueueLimit, QueueStatistics};
pub use record::{FlowSamples, Histogram, QueueSamples};
pub use transport::udp::Pattern;
pub use view::{FLOW_COLUMNS, PORT_COLUMNS, View};
pub use workload::{Arrival, SizeDistribution, poisson};
