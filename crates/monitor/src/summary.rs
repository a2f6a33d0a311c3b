//! Samples of a flow, in few bytes: all of them up to a number, then how many there are of each value.
//! Where there is no room for that, further ones count, and may be the least or the most.

use crate::room::{Room, next_size};

/// Samples that are kept one by one.
const KEPT: usize = 4096;
/// A power of two's values are counted in 2^STEPS buckets: a value is exact to one part in this.
const STEPS: u32 = 9;
const BUCKETS: usize = 1 << STEPS;
/// Groups of buckets: one for each power of two from 2^STEPS on, and one for what is below.
const GROUPS: usize = (64 - STEPS) as usize + 1;

/// Counts by value. Round-trip times of a flow lie within few powers of two, and the others have no memory.
type Counts = [Option<Box<[u64; BUCKETS]>>; GROUPS];

/// Round-trip times or delays in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    count: u64,
    /// Those of which no more is known than that they were there.
    without_detail: u64,
    least: u64,
    most: u64,
    kept: Vec<u64>,
    /// By the first bits of the value; if there: of all samples.
    counted: Option<Box<Counts>>,
}

/// Group and place of a value.
fn bucket(value: u64) -> (usize, usize) {
    let shift = (64 - value.leading_zeros()).saturating_sub(STEPS + 1);
    let group = (value >> (shift + STEPS)) as usize + shift as usize;
    (group, (value >> shift) as usize % BUCKETS)
}

/// The middle of a bucket's values.
fn value(group: usize, place: usize) -> u64 {
    let Some(shift) = group.checked_sub(1) else { return place as u64 };
    (((BUCKETS + place) as u64) << shift) + (1u64 << shift >> 1)
}

/// Counts a sample if its group is there, or its bytes can be taken.
fn count(counts: &mut Counts, sample: u64, take: impl FnOnce(usize) -> bool) -> bool {
    let (group, place) = bucket(sample);
    let places = &mut counts[group];
    if places.is_none() && take(size_of::<[u64; BUCKETS]>()) {
        *places = Some(Box::new([0; BUCKETS]));
    }
    if let Some(places) = places {
        places[place] += 1;
    }
    places.is_some()
}

impl Summary {
    #[inline]
    pub fn add(&mut self, sample: u64, room: &mut Room) {
        self.least = if self.count == 0 { sample } else { self.least.min(sample) };
        self.most = self.most.max(sample);
        self.count += 1;
        let detailed = if let Some(counts) = &mut self.counted {
            count(counts, sample, |bytes| room.take_for_detail(bytes))
        } else if self.kept.len() == KEPT {
            return self.begin_to_count(sample, room);
        } else {
            let fits = self.kept.len() < self.kept.capacity() || self.grow(room);
            if fits {
                self.kept.push(sample);
            }
            fits
        };
        if !detailed {
            self.leave_out(1, room);
        }
    }

    #[cold]
    fn leave_out(&mut self, samples: u64, room: &mut Room) {
        self.without_detail += samples;
        room.without_detail += samples;
    }

    #[cold]
    fn grow(&mut self, room: &mut Room) -> bool {
        let len = self.kept.len();
        let more = next_size(len, KEPT) - len;
        let fits = room.take_for_detail(more * size_of::<u64>());
        if fits {
            self.kept.reserve_exact(more);
        }
        fits
    }

    /// The counts of some groups take no more than the samples had.
    #[cold]
    fn begin_to_count(&mut self, sample: u64, room: &mut Room) {
        let kept = std::mem::take(&mut self.kept);
        room.give(kept.capacity() * size_of::<u64>() - size_of::<Counts>());
        let mut counts: Box<Counts> = Box::new([const { None }; GROUPS]);
        let mut left_out = 0;
        for sample in kept.into_iter().chain([sample]) {
            left_out += u64::from(!count(&mut counts, sample, |bytes| room.take(bytes)));
        }
        self.counted = Some(counts);
        if left_out > 0 {
            self.leave_out(left_out, room);
        }
    }

    /// Bytes of a [`Room`] that it has.
    pub fn bytes(&self) -> usize {
        let groups = self.counted.as_ref().map_or(0, |counts| counts.iter().flatten().count());
        let counts = self.counted.as_ref().map_or(0, |_| size_of::<Counts>());
        self.kept.capacity() * size_of::<u64>() + counts + groups * size_of::<[u64; BUCKETS]>()
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn least(&self) -> Option<u64> {
        (self.count > 0).then_some(self.least)
    }

    pub fn most(&self) -> Option<u64> {
        (self.count > 0).then_some(self.most)
    }

    /// For each of these parts, which ascend, the least sample that so large a part of all is at or below (nearest rank). Of more than 4096
    /// samples it is exact to 0.1 %. Samples without detail are not among them.
    pub fn quantiles<const N: usize>(&self, parts: [f64; N]) -> Option<[u64; N]> {
        let count = self.count - self.without_detail;
        if count == 0 {
            return None;
        }
        let ranks = parts.map(|part| ((part * count as f64).ceil() as u64).clamp(1, count));
        let Some(counts) = &self.counted else {
            let mut kept = self.kept.clone();
            // What is before the last rank is less than what was found there, and need not be looked at again.
            let mut from = 0;
            return Some(ranks.map(|rank| {
                let at = rank as usize - 1;
                let (_, found, _) = kept[from..].select_nth_unstable(at - from);
                let found = *found;
                from = at;
                found
            }));
        };
        let present = counts.iter().enumerate().filter_map(|(group, places)| Some((group, places.as_ref()?)));
        let mut each = present.flat_map(|(group, places)| {
            places.iter().enumerate().map(move |(place, count)| (group, place, *count))
        });
        let (mut behind, mut found) = (0, 0);
        Some(ranks.map(|rank| {
            while behind < rank
                && let Some((group, place, count)) = each.next()
            {
                behind += count;
                found = value(group, place);
            }
            found.clamp(self.least, self.most)
        }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quantiles_are_near_whatever_the_number(mut samples in prop::collection::vec(0u64..1 << 40, 1..9000)) {
            let mut summary = Summary::default();
            let mut room = Room::new(1 << 20);
            samples.iter().for_each(|sample| summary.add(*sample, &mut room));
            samples.sort_unstable();
            let found = summary.quantiles([0.0, 0.5, 0.95, 1.0]).unwrap();
            let n = samples.len();
            let exact = [0, n.div_ceil(2) - 1, (0.95 * n as f64).ceil() as usize - 1, n - 1].map(|at| samples[at]);
            for (found, exact) in found.into_iter().zip(exact) {
                prop_assert!(found.abs_diff(exact) <= exact / 1000 + 1, "{found} {exact}");
            }
            prop_assert_eq!(summary.least(), Some(samples[0]));
        }
    }
}
