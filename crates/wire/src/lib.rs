//! What is on the wire: one module per protocol, each with a view of bytes that have been checked, which copies nothing, and the
//! header as plain fields with `parse` and `emit`.
//!
//! A simulated packet's payload is zeros that are only counted: bytes may end behind the headers, and a length says how many there
//! would be.
//!
//! | module | what |
//! |---|---|
//! | `ethernet`, `vlan`, `arp` | link layer |
//! | `between` | a header between Ethernet and IP, of hosts that agree on it |
//! | `ipv4`, `ipv6`, `icmp` | network layer |
//! | `tcp`, `udp` | transport layer |
//! | `options` | options of IPv4 and TCP headers, one after the other |
//! | `checksum`, `offload` | the Internet checksum; checksums that a sender left to its network card |
//! | `frame` | all headers of a host's TCP or UDP packet at once |
//! | `packet` | a packet on its way: its fields, or its bytes with room in front |
//! | `pcap` | captures: pcap and pcapng files in, pcap files out |

#![forbid(unsafe_code)]

pub mod arp;
pub mod between;
mod bytes;
pub mod checksum;
mod ecn;
mod error;
pub mod ethernet;
pub mod frame;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod offload;
pub mod options;
pub mod packet;
pub mod pcap;
pub mod tcp;
pub mod udp;
pub mod vlan;

pub use ecn::Ecn;
pub use error::WireError;
