//! A network in real time: the simulator's network, driven by the clock, with real hosts around it.
//!
//! A host that is outside ([`network::Network::set_outside`]) is reached by a port: a real interface. What comes in by it enters the
//! network at the time at which it came; what the network delivers to the host leaves by it. One thread does all of it, or
//! several with a group of ports each; they sleep until there is a packet or something is due.
//!
//! | file | what |
//! |---|---|
//! | `bare` | a forwarder without a network, for benchmarks |
//! | `driver`, `priority`, `processor` | a thread, how urgent it is, and where it runs |
//! | `profile` | short delays, or many packets |
//! | `running` | how a network goes live, and ends |
//! | `shared` | what others see of it and of the network |
//! | `port`, `opening` | what a port is, and how one is opened |
//! | `packet`, `packet_sender` | ports by AF_PACKET; frames to an interface by it |
//! | `xdp`, `xdp_socket`, `bpf` | ports by AF_XDP: the port, its sockets, the program in front of them |
//! | `threaded` | interfaces that the kernel receives from on threads of their own |
//! | `tap` | ports by a TAP device |
//! | `interface`, `claim` | an interface in a namespace: found, claimed, asked |
//! | `reopening` | interfaces that go away and come back |
//! | `segment` | packets that the sender left to its hardware to cut up |
//! | `merge` | packets that are handed to the kernel as one |
//! | `sniff` | copies of what an interface receives and sends |
//! | `clock` | the network's time |

mod bare;
#[expect(unsafe_code, reason = "calls of the kernel")]
mod bpf;
#[expect(unsafe_code, reason = "calls of the kernel")]
mod claim;
mod clock;
mod driver;
#[expect(unsafe_code, reason = "calls of the kernel")]
mod interface;
mod merge;
mod opening;
#[expect(unsafe_code, reason = "calls of the kernel, and what they fill in")]
mod packet;
#[expect(unsafe_code, reason = "calls of the kernel")]
mod packet_sender;
mod port;
#[expect(unsafe_code, reason = "calls of the kernel")]
mod priority;
mod processor;
mod profile;
mod reopening;
mod running;
mod segment;
mod shared;
#[expect(unsafe_code, reason = "calls of the kernel, and what they fill in")]
mod sniff;
#[expect(unsafe_code, reason = "calls of the kernel")]
mod tap;
#[cfg(test)]
mod tests;
#[expect(unsafe_code, reason = "calls of the kernel")]
mod threaded;
mod xdp;
#[expect(unsafe_code, reason = "memory that the kernel shares")]
mod xdp_socket;

pub use bare::forward;
pub use interface::Failure;
pub use port::{Counts, Kind};
pub use profile::{Profile, Settings};
pub use running::{Live, MOST_THREADS};
pub use shared::{Lateness, PortStatus, Shared, Wiring};
pub use sniff::{Heard, InOrder, Sniffer};
