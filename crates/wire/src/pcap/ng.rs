//! pcapng: blocks, of which sections, interfaces and the three kinds of packets matter here.

use super::MAX_PACKET;
use super::error::Result;
use super::source::{Got, Packet, Source, word};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// No block that matters is longer; others are skipped whatever their length.
const MAX_BLOCK: u32 = MAX_PACKET + 65_536;
/// Interfaces of a section, at most: old packets' blocks have 16 bits for the number of theirs.
const MOST_INTERFACES: usize = 1 << 16;

#[derive(Clone, Copy)]
struct Interface {
    link_type: u32,
    snap_len: u32,
    /// Timestamp units per second.
    resolution: u128,
    /// Seconds.
    offset: i64,
}

pub struct Ng {
    swapped: bool,
    interfaces: Vec<Interface>,
    block: Vec<u8>,
    /// Time of the packet before.
    latest: u64,
}

impl Ng {
    /// After the first four bytes of the file, which are a section's type.
    pub fn start(source: &mut Source) -> Result<Ng> {
        let mut ng = Ng { swapped: false, interfaces: Vec::new(), block: Vec::new(), latest: 0 };
        let mut length = [0; 4];
        if source.need(&mut length, "its first section's header")? {
            ng.section(source, length)?;
        }
        Ok(ng)
    }

    /// A section header from its byte order on.
    fn section(&mut self, source: &mut Source, length: [u8; 4]) -> Result<()> {
        let mut magic = [0; 4];
        if !source.need(&mut magic, "a section's header")? {
            return Ok(());
        }
        self.swapped = match u32::from_be_bytes(magic) {
            BYTE_ORDER => false,
            m if m == BYTE_ORDER.swap_bytes() => true,
            _ => {
                source.damaged("a section's byte order cannot be told".into());
                return Ok(());
            }
        };
        self.interfaces.clear();
        let length = word(&length, self.swapped);
        if length < 28 || !length.is_multiple_of(4) {
            source.damaged(format!("a section's header claims {length} bytes, which cannot be"));
            return Ok(());
        }
        source.skip(u64::from(length) - 12, "a section's header")?;
        Ok(())
    }

    pub fn next(&mut self, source: &mut Source, bytes: &mut Vec<u8>) -> Result<Option<Packet>> {
        loop {
            let mut head = [0; 8];
            match source.fill(&mut head)? {
                Got::All => {}
                Got::End => return Ok(None),
                Got::Short => {
                    source.damaged("the file ends within the header of a block".into());
                    return Ok(None);
                }
            }
            let kind = word(&head, self.swapped);
            if kind == SECTION {
                self.section(source, [head[4], head[5], head[6], head[7]])?;
                if source.cut.is_some() {
                    return Ok(None);
                }
                continue;
            }
            let length = word(&head[4..], self.swapped);
            if length < 12 || !length.is_multiple_of(4) {
                source.damaged(format!("a block claims {length} bytes, which cannot be"));
                return Ok(None);
            }
            let body = length - 12;
            if !matches!(kind, INTERFACE | OLD_PACKET | SIMPLE_PACKET | ENHANCED_PACKET) {
                if !source.skip(u64::from(body) + 4, "a block")? {
                    return Ok(None);
                }
                continue;
            }
            if body > MAX_BLOCK {
                source.damaged(format!("a block claims {length} bytes, which cannot be"));
                return Ok(None);
            }
            self.block.resize(body as usize, 0);
            let mut trailer = [0; 4];
            if !source.need(&mut self.block, "a packet")? || !source.need(&mut trailer, "a packet")? {
                return Ok(None);
            }
            if kind == INTERFACE {
                if self.interfaces.len() >= MOST_INTERFACES {
                    source.damaged(format!("a section describes more than {MOST_INTERFACES} interfaces"));
                    return Ok(None);
                }
                if !self.interface() {
                    source.damaged("the description of an interface is too short".into());
                    return Ok(None);
                }
                continue;
            }
            return match self.packet(kind, bytes) {
                Ok(packet) => {
                    self.latest = packet.time;
                    Ok(Some(packet))
                }
                Err(why) => {
                    source.damaged(why.into());
                    Ok(None)
                }
            };
        }
    }

    /// Two bytes of the block.
    fn half(&self, at: usize) -> u32 {
        let two = [self.block[at], self.block[at + 1]];
        u32::from(if self.swapped { u16::from_le_bytes(two) } else { u16::from_be_bytes(two) })
    }

    fn interface(&mut self) -> bool {
        if self.block.len() < 8 {
            return false;
        }
        let mut found = Interface {
            link_type: self.half(0),
            snap_len: word(&self.block[4..], self.swapped),
            resolution: 1_000_000,
            offset: 0,
        };
        let mut at = 8;
        while at + 4 <= self.block.len() {
            let (code, length) = (self.half(at), self.half(at + 2) as usize);
            let Some(value) = self.block.get(at + 4..at + 4 + length) else { break };
            match (code, value) {
                (0, _) => break,
                (9, [exponent]) => {
                    let power = u32::from(exponent & 0x7f);
                    let base: u128 = if exponent & 0x80 != 0 { 2 } else { 10 };
                    found.resolution = base.checked_pow(power).unwrap_or(u128::MAX);
                }
                (14, [a, b, c, d, e, f, g, h]) => {
                    let eight = [*a, *b, *c, *d, *e, *f, *g, *h];
                    found.offset =
                        if self.swapped { i64::from_le_bytes(eight) } else { i64::from_be_bytes(eight) };
                }
                _ => {}
            }
            at += 4 + length.div_ceil(4) * 4;
        }
        self.interfaces.push(found);
        true
    }

    fn packet(&self, kind: u32, bytes: &mut Vec<u8>) -> std::result::Result<Packet, &'static str> {
        let field = |i: usize| word(&self.block[4 * i..], self.swapped);
        let least = if kind == SIMPLE_PACKET { 4 } else { 20 };
        if self.block.len() < least {
            return Err("a packet's block is too short");
        }
        let id = match kind {
            ENHANCED_PACKET => field(0) as usize,
            OLD_PACKET => self.half(0) as usize,
            _ => 0,
        };
        let interface =
            self.interfaces.get(id).ok_or("a packet names an interface that was not described")?;
        let (captured, wire_len, time) = if kind == SIMPLE_PACKET {
            let wire_len = field(0);
            let limit = if interface.snap_len == 0 { u32::MAX } else { interface.snap_len };
            // Without a time of its own it comes right after the one before.
            (wire_len.min(limit).min(self.block.len() as u32 - 4), wire_len, self.latest)
        } else {
            let stamp = u64::from(field(1)) << 32 | u64::from(field(2));
            let time =
                nanoseconds(stamp, interface).ok_or("a packet's time is before 1970, or centuries ahead")?;
            (field(3), field(4), time)
        };
        if captured > MAX_PACKET {
            return Err("a packet claims more bytes than can be");
        }
        let data =
            self.block.get(least..least + captured as usize).ok_or("a packet is longer than its block")?;
        bytes.clear();
        bytes.extend_from_slice(data);
        Ok(Packet { time, behind: 0, wire_len: wire_len.max(captured), link_type: interface.link_type })
    }
}

/// Since 1970; `None` for what 64 bits cannot say.
fn nanoseconds(stamp: u64, interface: &Interface) -> Option<u64> {
    let (whole, part) = (u128::from(stamp) / interface.resolution, u128::from(stamp) % interface.resolution);
    // `part` is below 2^64 and 10^9 below 2^30: no overflow.
    let time = whole * 1_000_000_000 + part * 1_000_000_000 / interface.resolution;
    let time = i128::try_from(time)
        .unwrap_or(i128::MAX)
        .saturating_add(i128::from(interface.offset) * 1_000_000_000);
    u64::try_from(time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_cannot_be() {
        let interface = |offset| Interface { link_type: 1, snap_len: 0, resolution: 1_000_000, offset };
        assert_eq!(nanoseconds(5, &interface(0)), Some(5_000));
        assert_eq!(nanoseconds(5, &interface(2)), Some(2_000_005_000));
        assert_eq!(nanoseconds(2_000_005, &interface(-2)), Some(5_000));
        assert_eq!(nanoseconds(5, &interface(-2)), None);
        assert_eq!(nanoseconds(u64::MAX, &interface(0)), None);
    }
}
