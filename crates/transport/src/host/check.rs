//! A keyed check in an option, so that nobody without the key says anything by it.

use units::Time;
use wire::frame::Body;
use wire::tcp::Flags;

use super::{FlowKey, Handle, OptionKind, Packet, Shim, Verdict};

/// Bytes of data of an option with a check; the last three are the check.
pub const CHECKED_LEN: usize = 10;
/// In the first byte: the check is made with the second key.
const SECOND_KEY: u8 = 0x40;

/// Puts a check into an option of packets that leave, and takes options with a wrong one off packets that come. A packet that comes
/// with a wrong one and without any of TCP's flags is dropped: TCP has no use for it.
///
/// The check is the lower 24 bits of HalfSipHash-2-4 over six 32-bit words: the address of the end that opened the connection, its port
/// and the other's, the other's address, a SYN's sequence number or a SYN-ACK's acknowledgment number (0 on other packets), and the
/// data before the check in two words, the second padded with 0.
#[derive(Debug, Clone)]
pub struct Check {
    pub option: OptionKind,
    pub keys: [u64; 2],
    /// The key that checks are made with.
    pub signing: usize,
}

impl Check {
    fn of(&self, flow: &FlowKey, packet: &Packet, data: &[u8; CHECKED_LEN]) -> u32 {
        let [own, other] = if flow.active { [0, 1] } else { [1, 0] };
        let address = |end: usize| u32::from_be_bytes(flow.addresses[end]);
        let bound = match &packet.body {
            Body::Tcp(segment) if segment.flags.has(Flags::SYN) && segment.flags.has(Flags::ACK) => {
                segment.ack
            }
            Body::Tcp(segment) if segment.flags.has(Flags::SYN) => segment.seq,
            _ => 0,
        };
        let word = |at: usize| u32::from_be_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
        let words = [
            address(own),
            u32::from(flow.ports[own]) << 16 | u32::from(flow.ports[other]),
            address(other),
            bound,
            word(0),
            word(4) & 0xffff_ff00,
        ];
        halfsiphash(self.keys[usize::from(data[0] & SECOND_KEY != 0)], &words) & 0xff_ffff
    }
}

impl Shim for Check {
    fn option(&self) -> Option<OptionKind> {
        Some(self.option)
    }

    fn sent(&mut self, _: Time, connection: Option<&mut Handle>, packet: &mut Packet) -> Verdict {
        let Some(connection) = connection else { return Verdict::Pass };
        let Some(mut data) =
            packet.find(self.option).and_then(|data| <[u8; CHECKED_LEN]>::try_from(data).ok())
        else {
            return Verdict::Pass;
        };
        data[0] = data[0] & !SECOND_KEY | if self.signing == 1 { SECOND_KEY } else { 0 };
        let check = self.of(connection.flow(), packet, &data);
        data[7..].copy_from_slice(&check.to_be_bytes()[1..]);
        packet.remove(self.option);
        if packet.add(self.option, &data).is_err() {
            connection.no_room(self.option.kind);
        }
        Verdict::Pass
    }

    fn received(&mut self, _: Time, connection: Option<&mut Handle>, packet: &mut Packet) -> Verdict {
        let Some(connection) = connection else { return Verdict::Pass };
        // One that is wrong spoils all.
        let right = packet.all(self.option).all(|data| {
            <[u8; CHECKED_LEN]>::try_from(data).is_ok_and(|data| {
                let check = self.of(connection.flow(), packet, &data);
                check.to_be_bytes()[1..] == data[7..]
            })
        });
        if right {
            return Verdict::Pass;
        }
        connection.refuse(self.option.kind);
        packet.remove(self.option);
        match &packet.body {
            Body::Tcp(segment) if segment.flags == Flags::default() => Verdict::Drop,
            _ => Verdict::Pass,
        }
    }
}

/// HalfSipHash-2-4 with 32 bits of result, of J.-P. Aumasson's and D. J. Bernstein's reference code. Words are numbers; the first of the
/// key's is its high half.
pub fn halfsiphash(key: u64, words: &[u32]) -> u32 {
    let (high, low) = ((key >> 32) as u32, key as u32);
    let mut v = [high, low, high ^ 0x6c79_6765, low ^ 0x7465_6462];
    let last = (words.len() as u32 * 4) << 24;
    for word in words.iter().copied().chain([last]) {
        v[3] ^= word;
        round(&mut v);
        round(&mut v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut v);
    }
    v[1] ^ v[3]
}

fn round(v: &mut [u32; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(5) ^ v[0];
    v[0] = v[0].rotate_left(16);
    v[2] = v[2].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(8) ^ v[2];
    v[0] = v[0].wrapping_add(v[3]);
    v[3] = v[3].rotate_left(7) ^ v[0];
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(13) ^ v[2];
    v[2] = v[2].rotate_left(16);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_reference_code() {
        // Its test vectors: key 00 01 .. 07, messages without bytes.
        assert_eq!(halfsiphash(0x0302_0100_0706_0504, &[]), 0x5b9f_35a9);
    }
}
