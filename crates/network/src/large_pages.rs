//! Memory in large pages, where the kernel has them. A processor knows the places of some thousand pages at once: state of many MB that
//! is used all over has to be looked for page by page, and the more so in a virtual machine. Nothing but time depends on it.

use crate::network::Network;

/// Bytes of a large page.
const LARGE: usize = 2 << 20;

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

/// Has the whole large pages between two addresses put together of what is there.
#[cfg(target_os = "linux")]
fn join(from: usize, to: usize) {
    /// `MADV_COLLAPSE` of Linux 6.1; refused before.
    const COLLAPSE: libc::c_int = 25;
    let (from, to) = (from.next_multiple_of(LARGE), to / LARGE * LARGE);
    if from >= to {
        return;
    }
    for advice in [libc::MADV_HUGEPAGE, COLLAPSE] {
        // SAFETY: what is in the memory stays, and addresses where none is are refused.
        unsafe { libc::madvise(std::ptr::without_provenance_mut(from), to - from, advice) };
    }
}

#[cfg(not(target_os = "linux"))]
fn join(_from: usize, _to: usize) {}

/// Whether the system is to have no such pages; `MADV_COLLAPSE` does not ask.
fn never() -> bool {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .is_ok_and(|modes| modes.contains("[never]"))
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

    /// What is in memory that is joined stays; and so does what is around it.
    #[test]
    fn contents_stay() {
        let words: Vec<usize> = (0..LARGE).collect();
        let from = words.as_ptr() as usize;
        join(from, from + 8 * words.len());
        join(0, LARGE);
        assert!(words.iter().enumerate().all(|(at, word)| at == *word));
    }

    #[test]
    fn lines_of_maps() {
        let line = "55d0c8a3b000-55d0c8a5c000 rw-p 00000000 00:00 0                          [heap]";
        assert_eq!(range(line), Some((0x55d0_c8a3_b000, 0x55d0_c8a5_c000)));
        assert_eq!(range(""), None);
    }
}
