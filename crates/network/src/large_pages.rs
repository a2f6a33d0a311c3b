//! The memory of a run with thousands of connections in large pages, where the kernel has them.

use dataplane::large_pages::{LARGE, join, never};

use crate::network::Network;

/// Events before the first look, and between two at most.
const FIRST: u64 = 1 << 18;
const MOST: u64 = 1 << 24;

/// Which memory has been put together in large pages.
#[derive(Debug)]
pub(crate) struct LargePages {
    /// It is looked at again when so many events have been handled.
    pub look_at: u64,
    /// Up to where the heap has been.
    heap: usize,
    /// Where the packets were.
    packets: (usize, usize),
}

impl Default for LargePages {
    fn default() -> LargePages {
        LargePages { look_at: FIRST, heap: 0, packets: (0, 0) }
    }
}

impl Network {
    /// Looks at the memory of a run with thousands of connections: that of connections and all that they have is the heap.
    #[cold]
    pub(crate) fn join_pages(&mut self) {
        let pages = &mut self.large_pages;
        pages.look_at = (2 * self.handled).clamp(FIRST, self.handled + MOST);
        if !self.crowded() || never() {
            return;
        }
        let (packets, pages) = (self.packets.memory(), &mut self.large_pages);
        if packets != pages.packets {
            pages.packets = packets;
            join(packets.0, packets.1);
        }
        if let Some((from, to)) = heap() {
            join(from.max(pages.heap), to);
            pages.heap = to / LARGE * LARGE;
        }
    }
}

/// Where the heap is: that of the first thread, which grows in one piece.
fn heap() -> Option<(usize, usize)> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut pieces = maps.lines().filter(|line| line.ends_with("[heap]")).filter_map(range);
    let (from, first) = pieces.next()?;
    Some((from, pieces.next_back().map_or(first, |(_, to)| to)))
}

/// The addresses of a line of `/proc/self/maps`.
fn range(line: &str) -> Option<(usize, usize)> {
    let (from, to) = line.split_whitespace().next()?.split_once('-')?;
    Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line = "55d0c8a3b000-55d0c8a5c000 rw-p 00000000 00:00 0                          [heap]";
        assert_eq!(range(line), Some((0x55d0_c8a3_b000, 0x55d0_c8a5_c000)));
        assert_eq!(range(""), None);
    }
}
