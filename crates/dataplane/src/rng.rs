//! A small seeded generator (SplitMix64), so that one seed gives one result on every machine.

#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `lo..=hi`; `lo` if `hi < lo`.
    pub fn between(&mut self, lo: u64, hi: u64) -> u64 {
        if hi < lo {
            return lo;
        }
        let span = u128::from(hi - lo) + 1;
        // The high half of a product is uniform to within 2^-64 of the span.
        lo + ((u128::from(self.next_u64()) * span) >> 64) as u64
    }
}
