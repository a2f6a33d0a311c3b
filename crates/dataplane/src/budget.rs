//! What is left of the work that a packet may cause: its own, or shared with its copies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Of one packet, in units of [`crate::cost`]. A packet that is copied shares it with the copies from then on.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    left: u64,
    shared: Option<Arc<Shared>>,
}

/// One thread at a time uses it: atomics only let it move between threads with the packets.
#[derive(Debug)]
struct Shared {
    left: AtomicU64,
    copies: AtomicU32,
}

impl Budget {
    pub fn new(left: u64) -> Budget {
        Budget { left, shared: None }
    }

    #[inline]
    pub fn left(&self) -> u64 {
        self.shared.as_ref().map_or(self.left, |shared| shared.left.load(Relaxed))
    }

    #[inline]
    pub fn set(&mut self, left: u64) {
        match &self.shared {
            None => self.left = left,
            Some(shared) => shared.left.store(left, Relaxed),
        }
    }

    /// Takes so much; false if that is more than there is, and nothing is left then.
    pub fn charge(&mut self, cost: u64) -> bool {
        let left = self.left().checked_sub(cost);
        self.set(left.unwrap_or(0));
        left.is_some()
    }

    /// That of a copy.
    pub fn share(&mut self) -> Budget {
        let left = self.left;
        let new = || Arc::new(Shared { left: AtomicU64::new(left), copies: AtomicU32::new(0) });
        Budget { left: 0, shared: Some(self.shared.get_or_insert_with(new).clone()) }
    }

    /// Copies that were made of the packet.
    pub fn copies(&self) -> u32 {
        self.shared.as_ref().map_or(0, |shared| shared.copies.load(Relaxed))
    }

    /// One more copy: its budget.
    pub fn copy(&mut self) -> Budget {
        let copy = self.share();
        if let Some(shared) = &copy.shared {
            shared.copies.fetch_add(1, Relaxed);
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_what_is_left() {
        let mut one = Budget::new(100);
        assert!(one.charge(10));
        let mut other = one.copy();
        assert!(other.charge(50));
        assert_eq!((one.left(), other.left()), (40, 40));
        let mut third = other.copy();
        assert_eq!((one.copies(), third.copies()), (2, 2));
        assert!(!third.charge(41));
        assert_eq!((one.left(), other.left()), (0, 0));
    }
}
