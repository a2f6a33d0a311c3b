//! Seeded random numbers: one seed gives one stream on every machine.

/// The simulator's: xoshiro256++ (Blackman and Vigna), seeded by SplitMix64.
#[derive(Debug, Clone)]
pub struct Random([u64; 4]);

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut state = SplitMix::new(seed);
        Random([(); 4].map(|()| state.next_u64()))
    }

    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// An exponential variate, rounded down.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        (-ln(1.0 - self.unit()) * mean as f64) as u64
    }
}

/// The data plane's, and what seeds others: SplitMix64.
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    pub fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
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

/// The natural logarithm of a number in (0, 1], from basic operations alone: the same bits on every machine.
fn ln(x: f64) -> f64 {
    const LN_2: f64 = std::f64::consts::LN_2;
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let mut power = t;
    let mut sum = 0.0;
    for k in 0..12 {
        sum += power / (2 * k + 1) as f64;
        power *= square;
    }
    exponent as f64 * LN_2 + 2.0 * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            let x = 1.0 - random.unit();
            assert!((ln(x) - x.ln()).abs() < 1e-14 * (1.0 + x.ln().abs()), "{x}");
        }
    }
}
