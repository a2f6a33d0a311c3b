//! Memory in large pages, where the kernel has them. A processor knows the places of some thousand pages at once: state of many MB that
//! is used all over has to be looked for page by page, and the more so in a virtual machine. Nothing but time depends on it.

/// Bytes of a large page.
pub const LARGE: usize = 2 << 20;

/// Has the whole large pages between two addresses put together of what is there.
pub fn join(from: usize, to: usize) {
    /// `MADV_COLLAPSE` of Linux 6.1; refused before.
    const COLLAPSE: i32 = 25;
    expect(from, to);
    if !never() {
        advise(from.next_multiple_of(LARGE), to / LARGE * LARGE, COLLAPSE);
    }
}

/// Has the whole large pages between two addresses provided as such when they are first used.
pub fn expect(from: usize, to: usize) {
    /// `MADV_HUGEPAGE`.
    const HUGE: i32 = 14;
    advise(from.next_multiple_of(LARGE), to / LARGE * LARGE, HUGE);
}

#[cfg(all(target_os = "linux", not(miri)))]
fn advise(from: usize, to: usize, advice: i32) {
    if from < to {
        // SAFETY: what is in the memory stays, and addresses where none is are refused.
        unsafe { libc::madvise(std::ptr::without_provenance_mut(from), to - from, advice) };
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
fn advise(_from: usize, _to: usize, _advice: i32) {}

/// Whether the system is to have no such pages; `MADV_COLLAPSE` does not ask.
pub fn never() -> bool {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .is_ok_and(|modes| modes.contains("[never]"))
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
}
