//! QUIC's spin bit (RFC 9000 section 17.4): the time between its changes in one direction is a round trip.
//!
//! A UDP flow is QUIC's once it has had a packet with a long header of a version that is known. Endpoints may leave the bit alone or
//! set it at random (RFC 9312 section 3.8.1): changes much sooner than the last are taken for reordering, and give no sample.

/// Version 1, version 2 (RFC 9369).
const VERSIONS: [u32; 2] = [1, 0x6b33_43cf];

#[derive(Debug, Default)]
pub struct Spin {
    quic: bool,
    both: [Edge; 2],
}

#[derive(Debug, Default)]
struct Edge {
    bit: Option<bool>,
    at: Option<u64>,
    last: Option<u64>,
}

impl Spin {
    /// A datagram of a direction, 0 or 1, by its first bytes; gives a round-trip time in nanoseconds. The clock cannot be trusted before
    /// `sure_from`.
    pub fn packet(&mut self, direction: usize, time: u64, sure_from: u64, first: &[u8]) -> Option<u64> {
        let head = *first.first()?;
        if head & 0x40 == 0 {
            return None;
        }
        if head & 0x80 != 0 {
            if let [_, a, b, c, d] = first {
                self.quic |= VERSIONS.contains(&u32::from_be_bytes([*a, *b, *c, *d]));
            }
            return None;
        }
        if !self.quic {
            return None;
        }
        let edge = &mut self.both[direction];
        let bit = head & 0x20 != 0;
        if edge.bit.replace(bit).is_none_or(|before| before == bit) {
            return None;
        }
        let apart = edge.at.filter(|at| *at >= sure_from).map(|at| time.saturating_sub(at));
        if let (Some(apart), Some(last)) = (apart, edge.last)
            && apart < last / 8
        {
            return None;
        }
        edge.at = Some(time);
        edge.last = apart.or(edge.last);
        apart
    }
}
