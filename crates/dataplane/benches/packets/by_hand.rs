//! The benchmark programs as one would write them in Rust, with the same checks, the same quality of lookup, and the same output:
//! a frame in a buffer of its own.

use dataplane::state::lpm::Lpm;

use crate::setup::Route;

pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub fn be48(bytes: &[u8], at: usize) -> u64 {
    u64::from(be16(bytes, at)) << 32 | u64::from(be32(bytes, at + 2))
}

/// Internet checksum of an IPv4 header without options, its checksum field left out.
fn checksum(header: &[u8; 20]) -> u16 {
    let mut sum: u32 = 0;
    for at in [0, 2, 4, 6, 8, 12, 14, 16, 18] {
        sum += u32::from(be16(header, at));
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !sum as u16
}

pub struct Router {
    routes: Lpm,
    hops: Vec<Route>,
}

impl Router {
    pub fn new(routes: &[Route]) -> Router {
        let mut table = Lpm::new(32);
        for (index, route) in routes.iter().enumerate() {
            table.insert(&[u64::from(route.prefix)], route.length, index as u32);
        }
        Router { routes: table, hops: routes.to_vec() }
    }

    /// Forwards a frame: gives the port and writes the frame, or drops it.
    pub fn forward(&mut self, frame: &[u8], out: &mut Vec<u8>) -> Option<u32> {
        if frame.len() < 14 || be16(frame, 12) != 0x0800 {
            return None;
        }
        let header: &[u8; 20] = frame.get(14..34)?.try_into().ok()?;
        if header[0] != 0x45 || header[8] <= 1 || checksum(header) != be16(header, 10) {
            return None;
        }
        let hop = &self.hops[self.routes.lookup(&[u64::from(be32(header, 16))])? as usize];
        out.extend_from_slice(frame);
        out[..6].copy_from_slice(&hop.dst.to_be_bytes()[2..]);
        out[6..12].copy_from_slice(&hop.src.to_be_bytes()[2..]);
        out[22] -= 1;
        let header: &[u8; 20] = out[14..34].try_into().ok()?;
        let sum = checksum(header);
        out[24..26].copy_from_slice(&sum.to_be_bytes());
        Some(hop.port)
    }
}

pub struct Registers {
    packets: Vec<u32>,
    bytes: Vec<u64>,
    last: Vec<u64>,
}

impl Registers {
    pub fn new() -> Registers {
        Registers { packets: vec![0; 1024], bytes: vec![0; 1024], last: vec![0; 1024] }
    }

    pub fn forward(&mut self, now: u64, frame: &[u8], out: &mut Vec<u8>) -> Option<u32> {
        if frame.len() < 14 || be16(frame, 12) != 0x0800 {
            return None;
        }
        let header: &[u8; 20] = frame.get(14..34)?.try_into().ok()?;
        let index = (be32(header, 12) & 1023) as usize;
        self.packets[index] = self.packets[index].wrapping_add(1);
        self.bytes[index] = self.bytes[index].wrapping_add(u64::from(be16(header, 2)));
        let before = std::mem::replace(&mut self.last[index], now);
        out.extend_from_slice(frame);
        out[18..20].copy_from_slice(&(now.wrapping_sub(before) as u16).to_be_bytes());
        Some(1)
    }
}
