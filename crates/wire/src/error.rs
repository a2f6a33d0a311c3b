//! Why bytes are no packet.

/// What is wrong with a packet's bytes. A parser names the first thing that it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    #[error("too short")]
    Short,
    #[error("the VLAN tag is cut short")]
    VlanTag,
    #[error("the header between Ethernet and IP is cut short or too long")]
    Between,
    #[error("not an ARP packet for IPv4 over Ethernet")]
    Arp,
    #[error("not IPv4")]
    NotIpv4,
    #[error("not IPv6")]
    NotIpv6,
    #[error("the IP header is longer than the packet")]
    IpOptionsBeyondEnd,
    #[error("an IP option has a wrong length")]
    IpOption,
    #[error("the IP checksum is wrong")]
    IpChecksum,
    #[error("a fragment")]
    Fragment,
    #[error("an IPv6 extension header is cut short")]
    ExtensionHeader,
    #[error("IP protocol {0}")]
    Protocol(u8),
    #[error("the TCP header is cut short")]
    TcpHeader,
    #[error("a TCP option has a wrong length")]
    TcpOption,
    #[error("the TCP checksum is wrong")]
    TcpChecksum,
    #[error("the UDP header is cut short")]
    UdpHeader,
    #[error("the UDP checksum is wrong")]
    UdpChecksum,
    #[error("the ICMP header is cut short")]
    IcmpHeader,
    #[error("the ICMP checksum is wrong")]
    IcmpChecksum,
    #[error("the IP length is larger than the packet")]
    LengthBeyondEnd,
}
