//! Counts of a connection.

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments sent with data or a flag that takes a sequence number, and pure ACKs.
    pub segments_sent: u64,
    pub acks_sent: u64,
    pub segments_received: u64,
    pub retransmits: u64,
    pub timeouts: u64,
    pub fast_recoveries: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Reductions taken back because they were spurious.
    pub undos: u64,
    pub dsacks: u64,
    /// Packets that came with CE, and ACKs that reported CE.
    pub ce_received: u64,
    pub ece_received: u64,
}
