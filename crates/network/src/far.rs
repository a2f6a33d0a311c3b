//! What happens later than the wheel reaches: slots of time, half as long as the wheel, whose entries keep no order until
//! their time comes. Then they go into the wheel, which orders them. Packets on long ways and timers wait here: in a heap
//! each would cost many looks at memory that is in no cache.

use crate::event::{Entry, time};
use crate::wheel::SLOTS;

/// A far slot is as long as `2^FAR_SHIFT` of the wheel's, half of the wheel: at its time all of it fits in, even if the wheel has
/// last passed a time as long before.
const FAR_SHIFT: u32 = SLOTS.ilog2() - 1;

const FAR_SLOTS: u64 = 1024;

#[derive(Debug)]
pub(crate) struct Far {
    /// By number of the slot, modulo [`FAR_SLOTS`].
    slots: Vec<Vec<Entry>>,
    entries: usize,
}

impl Default for Far {
    fn default() -> Far {
        Far { slots: vec![Vec::new(); FAR_SLOTS as usize], entries: 0 }
    }
}

/// What became of an entry that was to wait here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Put {
    /// It is beyond the last slot, or in the slot that is under way.
    No,
    /// It waits.
    Waits,
    /// It waits, the first of the slot with this index, whose entries are to be taken at this time.
    First { at: u64, index: u32 },
}

impl Far {
    /// Takes an entry. `now`: nothing earlier comes any more; a slot of the wheel is `2^shift` picoseconds.
    #[inline]
    pub fn put(&mut self, entry: Entry, now: u64, shift: u32) -> Put {
        let shift = shift + FAR_SHIFT;
        let number = time(entry) >> shift;
        // The slot under way has been taken already.
        if number.wrapping_sub((now >> shift) + 1) >= FAR_SLOTS - 1 {
            return Put::No;
        }
        let index = number % FAR_SLOTS;
        let slot = &mut self.slots[index as usize];
        slot.push(entry);
        self.entries += 1;
        if slot.len() == 1 { Put::First { at: number << shift, index: index as u32 } } else { Put::Waits }
    }

    /// The entries of a slot; their memory comes back by [`Far::give_back`].
    pub fn take(&mut self, index: u32) -> Vec<Entry> {
        let entries = std::mem::take(&mut self.slots[index as usize]);
        self.entries -= entries.len();
        entries
    }

    pub fn give_back(&mut self, index: u32, mut memory: Vec<Entry>) {
        memory.clear();
        self.slots[index as usize] = memory;
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// All entries.
    pub fn take_all(&mut self) -> Vec<Entry> {
        if self.entries == 0 {
            return Vec::new();
        }
        self.entries = 0;
        self.slots.iter_mut().flat_map(|slot| slot.drain(..)).collect()
    }
}
