//! Memory that will soon be read.

/// Asks for the first `lines` lines of the cache from an address on. Nothing but time depends on it.
#[inline]
pub fn prefetch<T: ?Sized>(at: &T, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..lines {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = std::ptr::from_ref(at).cast::<i8>().wrapping_add(64 * line);
        // SAFETY: a prefetch reads nothing that the program sees, and is without effect where there is no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, lines);
}
