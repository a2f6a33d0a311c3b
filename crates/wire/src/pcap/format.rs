//! The pcap file format, as everything here writes it: little-endian, times in nanoseconds.
//!
//! Source: draft-ietf-opsawg-pcap. A file is a file header, then packets, each a packet header and its captured bytes.

/// Link type of Ethernet frames.
pub const ETHERNET: u32 = 1;
/// Snap length of files whose packets are not cut: more than any packet has.
pub const WHOLE: u32 = 262_144;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const VERSION: u32 = 4 << 16 | 2;

/// The beginning of a file.
pub fn file_header(link_type: u32, snap_len: u32) -> [u8; 24] {
    words([MAGIC_NANOSECONDS, VERSION, 0, 0, snap_len, link_type])
}

/// What precedes a packet of which `captured` bytes follow. `time` in nanoseconds; `wire_len` counts at least what was captured.
pub fn packet_header(time: u64, captured: u32, wire_len: u32) -> [u8; 16] {
    let (seconds, rest) = ((time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32);
    words([seconds, rest, captured, wire_len.max(captured)])
}

fn words<const N: usize, const BYTES: usize>(words: [u32; N]) -> [u8; BYTES] {
    let mut out = [0; BYTES];
    for (four, word) in out.chunks_exact_mut(4).zip(words) {
        four.copy_from_slice(&word.to_le_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let file = file_header(ETHERNET, 96);
        assert_eq!(file[..8], [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        assert_eq!(file[16..], [96, 0, 0, 0, 1, 0, 0, 0]);
        let packet = packet_header(3_000_000_007, 60, 20);
        assert_eq!(packet, [3, 0, 0, 0, 7, 0, 0, 0, 60, 0, 0, 0, 60, 0, 0, 0]);
    }
}
