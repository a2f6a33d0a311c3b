//! A network in real time: the simulator's network, driven by the clock, with real hosts around it.
//!
//! A host that is outside ([`sim::Network::set_outside`]) is reached by a port: a real interface. What comes in by it enters the
//! network at the time at which it came; what the network delivers to the host leaves by it. One thread does all of it, and
//! sleeps until there is a packet or something is due.
//!
//! | file | what |
//! |---|---|
//! | `driver` | the thread, and what others see of it |
//! | `port` | what a port is |
//! | `packet` | ports by AF_PACKET |
//! | `xdp`, `xdp_socket`, `bpf` | ports by AF_XDP: the port, its sockets, the program in front of them |
//! | `interface` | an interface in a namespace: found, claimed, asked |
//! | `checksum` | checksums that the sender left to its hardware |
//! | `segment` | packets that the sender left to its hardware to cut up |
//! | `clock` | the network's time |

mod bpf;
mod checksum;
mod clock;
mod driver;
mod interface;
mod packet;
mod port;
mod segment;
mod xdp;
mod xdp_socket;

pub use driver::{Lateness, Live, PortStatus, Shared, Wiring};
pub use interface::Failure;
pub use port::{Counts, Kind};
