//! Packets in order of their sequence. The first few lie in the connection itself, which is looked at anyway: most of thousands of connections
//! have no more out. The others are behind them on the heap.

use std::collections::VecDeque;

use super::scoreboard::Sent;

/// Packets that lie in the connection.
const HERE: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Ring {
    /// Of a round of places, those from `first` on that have packets.
    here: [Sent; HERE],
    first: usize,
    len: usize,
    /// Packets behind them, if there is no room there.
    more: VecDeque<Sent>,
}

impl Ring {
    pub fn len(&self) -> usize {
        self.len + self.more.len()
    }

    pub fn push(&mut self, packet: Sent) {
        if self.len < HERE {
            self.here[(self.first + self.len) % HERE] = packet;
            self.len += 1;
        } else {
            self.more.push_back(packet);
        }
    }

    pub fn drop_first(&mut self) {
        if self.len == 0 {
            return;
        }
        let place = self.first;
        self.first = (place + 1) % HERE;
        // All places have packets if there are more.
        match self.more.pop_front() {
            Some(next) => self.here[place] = next,
            None => self.len -= 1,
        }
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<&Sent> {
        if index < self.len {
            Some(&self.here[(self.first + index) % HERE])
        } else {
            self.more.get(index - self.len)
        }
    }

    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut Sent> {
        if index < self.len {
            Some(&mut self.here[(self.first + index) % HERE])
        } else {
            self.more.get_mut(index - self.len)
        }
    }

    /// How many of the first are such; none behind them is.
    pub fn partition_point(&self, is_such: impl Fn(&Sent) -> bool) -> usize {
        let here = (0..self.len).take_while(|index| self.get(*index).is_some_and(&is_such)).count();
        if here < self.len { here } else { here + self.more.partition_point(is_such) }
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sent> {
        let (behind, from_first) = self.here.split_at_mut(self.first);
        from_first.iter_mut().chain(behind).take(self.len).chain(&mut self.more)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As one queue, whatever goes in and out.
        #[test]
        fn a_queue(steps in prop::collection::vec(any::<bool>(), 0..200)) {
            let (mut ring, mut model) = (Ring::default(), VecDeque::new());
            for (seq, push) in steps.into_iter().enumerate() {
                let seq = seq as u64;
                if push || seq.is_multiple_of(3) {
                    ring.push(Sent { seq, ..Sent::default() });
                    model.push_back(seq);
                } else if !model.is_empty() {
                    ring.drop_first();
                    model.pop_front();
                }
                prop_assert_eq!(ring.len(), model.len());
                let all: Vec<u64> = ring.iter_mut().map(|p| p.seq).collect();
                prop_assert!(all.iter().eq(&model));
                for (index, seq) in model.iter().enumerate() {
                    prop_assert_eq!(ring.get(index).map(|p| p.seq), Some(*seq));
                    prop_assert_eq!(ring.get_mut(index).map(|p| p.seq), Some(*seq));
                    prop_assert_eq!(ring.partition_point(|p| p.seq < *seq), index);
                }
                prop_assert!(ring.get(model.len()).is_none());
                prop_assert_eq!(ring.partition_point(|_| true), model.len());
            }
        }
    }
}
