//! Two-rate three-colour meters (RFC 2698), colour-blind.
//!
//! Tokens are kept in units of 10^-15 of a byte or packet, so that a rate in thousandths per second times a time in
//! picoseconds adds up exactly. Buckets start full. The peak bucket is tested first.

/// A marking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Color {
    Green = 0,
    Yellow = 1,
    Red = 2,
}

pub use control::MeterRates;

const SCALE: u128 = 1_000_000_000_000_000;

/// One cell; without rates everything is green.
#[derive(Debug, Clone, Default)]
pub struct MeterCell {
    rates: MeterRates,
    /// Whether there are rates.
    metered: bool,
    committed: u128,
    peak: u128,
    /// Picoseconds.
    updated: u64,
}

impl MeterCell {
    pub fn rates(&self) -> Option<MeterRates> {
        self.metered.then_some(self.rates)
    }

    /// Sets the rates (or none) and fills the buckets.
    pub fn configure(&mut self, rates: Option<MeterRates>, now: u64) {
        (self.metered, self.rates) = (rates.is_some(), rates.unwrap_or_default());
        self.updated = now;
        if let Some(r) = rates {
            self.committed = u128::from(r.committed_burst) * SCALE;
            self.peak = u128::from(r.peak_burst) * SCALE;
        }
    }

    /// Meters `amount` bytes or packets at time `now` (picoseconds).
    pub fn execute(&mut self, now: u64, amount: u64) -> Color {
        if !self.metered {
            return Color::Green;
        }
        let r = self.rates;
        let elapsed = u128::from(now.saturating_sub(self.updated));
        self.updated = self.updated.max(now);
        let fill = |tokens: u128, rate: u64, burst: u64| {
            tokens.saturating_add(u128::from(rate) * elapsed).min(u128::from(burst) * SCALE)
        };
        self.committed = fill(self.committed, r.committed_rate, r.committed_burst);
        self.peak = fill(self.peak, r.peak_rate, r.peak_burst);
        let need = u128::from(amount) * SCALE;
        if self.peak < need {
            return Color::Red;
        }
        self.peak -= need;
        if self.committed < need {
            return Color::Yellow;
        }
        self.committed -= need;
        Color::Green
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_2698_marking() {
        let mut cell = MeterCell::default();
        assert_eq!(cell.execute(0, 1000), Color::Green);
        cell.configure(
            Some(MeterRates {
                committed_rate: 1_000_000,
                committed_burst: 100,
                peak_rate: 2_000_000,
                peak_burst: 200,
            }),
            0,
        );
        // Buckets start full: 100 green, then yellow out of the peak bucket, then red.
        assert_eq!(cell.execute(0, 100), Color::Green);
        assert_eq!(cell.execute(0, 100), Color::Yellow);
        assert_eq!(cell.execute(0, 1), Color::Red);
        // After 50 ms there are 50 committed and 100 peak tokens.
        let later = 50_000_000_000;
        assert_eq!(cell.execute(later, 50), Color::Green);
        assert_eq!(cell.execute(later, 50), Color::Yellow);
        assert_eq!(cell.execute(later, 1), Color::Red);
        // Time that goes back adds nothing.
        assert_eq!(cell.execute(0, 1), Color::Red);
    }

    #[test]
    fn no_drift_over_many_small_steps() {
        let mut cell = MeterCell::default();
        cell.configure(
            Some(MeterRates { committed_rate: 3000, committed_burst: 1, peak_rate: 3000, peak_burst: 1 }),
            0,
        );
        assert_eq!(cell.execute(0, 1), Color::Green);
        // A third of a second is not a whole number of picoseconds.
        for step in 1..=333_333 {
            assert_eq!(cell.execute(step * 1_000_000, 1), Color::Red);
        }
        assert_eq!(cell.execute(333_333_333_334, 1), Color::Green);
    }

    #[test]
    fn slower_than_one_a_second() {
        let mut cell = MeterCell::default();
        let rates = MeterRates { committed_rate: 500, committed_burst: 1, peak_rate: 500, peak_burst: 1 };
        cell.configure(Some(rates), 0);
        assert_eq!(cell.execute(0, 1), Color::Green);
        assert_eq!(cell.execute(1_999_999_999_999, 1), Color::Red);
        assert_eq!(cell.execute(2_000_000_000_000, 1), Color::Green);
    }

    #[test]
    fn no_overflow_at_the_largest_rates() {
        let mut cell = MeterCell::default();
        let most = u64::MAX;
        let rates =
            MeterRates { committed_rate: most, committed_burst: most, peak_rate: most, peak_burst: most };
        cell.configure(Some(rates), 0);
        assert_eq!(cell.execute(most, most), Color::Green);
    }
}
