//! Buffers that are kept for packets to come.
//!
//! A `Vec` is moved in pieces wider than its fields. One that is taken right after it was put back would be read before the stores of
//! its fields have reached the cache, and wait for them. So here a buffer's address and capacity are kept apart.

use std::mem::ManuallyDrop;

/// Buffers that are kept at most.
const MOST: usize = 4096;

/// Address of the memory of an empty buffer that nobody else has.
struct Address(*mut u8);

// SAFETY: the memory belongs to the pool alone.
unsafe impl Send for Address {}
// SAFETY: as above; a shared pool gives no access to it.
unsafe impl Sync for Address {}

/// Of each buffer the address and the capacity, in two lists of one length.
#[derive(Default)]
pub(crate) struct Pool {
    addresses: Vec<Address>,
    capacities: Vec<usize>,
}

impl Pool {
    /// An empty buffer.
    #[inline(always)]
    pub fn take(&mut self) -> Vec<u8> {
        match (self.addresses.pop(), self.capacities.pop()) {
            // SAFETY: `put` took both from a `Vec<u8>` that it did not drop, and they are here no more.
            (Some(Address(at)), Some(capacity)) => unsafe { Vec::from_raw_parts(at, 0, capacity) },
            _ => Vec::new(),
        }
    }

    /// Keeps a buffer for a packet to come. What is in it is of no use any more.
    #[inline(always)]
    pub fn put(&mut self, buffer: Vec<u8>) {
        if self.addresses.len() < MOST {
            let mut buffer = ManuallyDrop::new(buffer);
            self.addresses.push(Address(buffer.as_mut_ptr()));
            self.capacities.push(buffer.capacity());
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        while !self.addresses.is_empty() {
            drop(self.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_empty_and_none_is_given_twice() {
        let mut pool = Pool::default();
        assert_eq!(pool.take(), []);
        let mut known = Vec::new();
        for size in 1..40 {
            let buffer = vec![7; size];
            known.push((buffer.as_ptr(), buffer.capacity()));
            pool.put(buffer);
        }
        pool.put(Vec::new());
        assert_eq!(pool.take().capacity(), 0);
        let kept: Vec<Vec<u8>> = (0..20).map(|_| pool.take()).collect();
        for (buffer, known) in kept.iter().zip(known.iter().rev()) {
            assert_eq!((buffer.as_ptr(), buffer.capacity()), *known);
            assert!(buffer.is_empty());
        }
        for _ in 0..MOST + 10 {
            pool.put(vec![1]);
        }
        assert_eq!(pool.addresses.len(), MOST);
        std::thread::spawn(move || drop(pool)).join().unwrap();
    }
}
