//! The address plan of networks: by a host's number its addresses, by a flow's number its ports.

use std::net::Ipv4Addr;

use pyo3::prelude::*;

/// IPv4 address of the host of that number, counted from 0.
#[pyfunction]
pub fn host_ipv4(host: u32) -> String {
    Ipv4Addr::from(network::ipv4(host)).to_string()
}

/// Ethernet address of the host of that number, counted from 0.
#[pyfunction]
pub fn host_mac(host: u32) -> String {
    network::mac(host).map(|byte| format!("{byte:02x}")).join(":")
}

/// Source's and receiver's port of a flow. TCP and UDP flows are counted apart, each from 0.
#[pyfunction]
pub fn flow_ports(number: u32, udp: bool) -> (u16, u16) {
    network::flow_ports(number, udp)
}
