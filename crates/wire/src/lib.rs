//! What is on the wire.
//!
//! | module | what |
//! |---|---|
//! | `pcap` | captures: pcap and pcapng files in, pcap files out |

pub mod pcap;
