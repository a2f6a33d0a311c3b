//! Samples of a flow, in few bytes: all of them up to a number, then how many there are of each value.

use std::collections::BTreeMap;

/// Samples that are kept one by one.
const KEPT: usize = 4096;
/// Values of one power of two, once they are counted: a value is exact to one part in this.
const STEPS: u32 = 9;

/// Round-trip times in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    count: u64,
    least: u64,
    most: u64,
    kept: Vec<u64>,
    /// By the first bits of the value; not empty: these are all samples.
    counted: BTreeMap<u32, u64>,
}

fn bucket(value: u64) -> u32 {
    let bits = 64 - value.leading_zeros();
    let shift = bits.saturating_sub(STEPS + 1);
    shift << (STEPS + 1) | (value >> shift) as u32
}

/// The middle of a bucket's values.
fn value(bucket: u32) -> u64 {
    let shift = bucket >> (STEPS + 1);
    let low = u64::from(bucket & ((1 << (STEPS + 1)) - 1)) << shift;
    low + (1u64 << shift >> 1)
}

impl Summary {
    pub fn add(&mut self, sample: u64) {
        self.least = if self.count == 0 { sample } else { self.least.min(sample) };
        self.most = self.most.max(sample);
        self.count += 1;
        if !self.counted.is_empty() {
            *self.counted.entry(bucket(sample)).or_default() += 1;
        } else if self.kept.len() < KEPT {
            self.kept.push(sample);
        } else {
            for kept in std::mem::take(&mut self.kept).into_iter().chain([sample]) {
                *self.counted.entry(bucket(kept)).or_default() += 1;
            }
        }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn least(&self) -> Option<u64> {
        (self.count > 0).then_some(self.least)
    }

    /// For each of these parts, the least sample that so large a part of all is at or below (nearest rank). Of more than 4096 samples
    /// it is exact to 0.1 %.
    pub fn quantiles<const N: usize>(&self, parts: [f64; N]) -> Option<[u64; N]> {
        if self.count == 0 {
            return None;
        }
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        Some(parts.map(|part| {
            let rank = ((part * self.count as f64).ceil() as u64).clamp(1, self.count);
            if self.counted.is_empty() {
                return sorted[rank as usize - 1];
            }
            let mut behind = 0;
            for (bucket, count) in &self.counted {
                behind += count;
                if behind >= rank {
                    return value(*bucket).clamp(self.least, self.most);
                }
            }
            self.most
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
            samples.iter().for_each(|sample| summary.add(*sample));
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
