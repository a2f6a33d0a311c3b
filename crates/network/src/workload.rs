//! Flows at random: sizes by an empirical distribution, starts by a Poisson process.
//!
//! A distribution is text of two columns, size in bytes and share of flows that are not larger, the last share 1; between two
//! points sizes are spread evenly, and what lies below the first share has the first size. `#` begins a comment.

use std::str::FromStr;

use units::{Bytes, Random, Time};

/// A distribution of flow sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeDistribution {
    /// Size and cumulative share, both never falling.
    points: Vec<(f64, f64)>,
}

impl FromStr for SizeDistribution {
    type Err = String;

    fn from_str(text: &str) -> Result<SizeDistribution, String> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else { continue };
            let (Some(second), None) = (words.next(), words.next()) else {
                return Err(format!(
                    "line {number}: `{}` is not two columns: size in bytes, share of flows that are not larger",
                    line.trim()
                ));
            };
            let value = |word: &str, what: &str| {
                let value = word.parse::<f64>().ok().filter(|v| v.is_finite() && *v >= 0.0);
                value.ok_or_else(|| format!("line {number}: `{word}` is not {what}"))
            };
            let (size, share) = (value(first, "a size in bytes")?, value(second, "a share from 0 to 1")?);
            if share > 1.0 {
                return Err(format!(
                    "line {number}: the share {share} is above 1; shares are not percentages"
                ));
            }
            if size > 1e15 {
                return Err(format!("line {number}: a flow of {first} bytes is too large"));
            }
            if let Some((before, below)) = points.last()
                && (size < *before || share < *below)
            {
                return Err(format!("line {number}: sizes and shares must not fall; put the lines in order"));
            }
            points.push((size, share));
        }
        match points.last() {
            None => Err("there is no line with a size and a share".to_owned()),
            Some((_, share)) if *share < 1.0 => Err(format!("the last share is {share}; it must be 1")),
            Some((size, _)) if *size < 1.0 => Err("all sizes are 0; give sizes in bytes".to_owned()),
            Some(_) => Ok(SizeDistribution { points }),
        }
    }
}

impl SizeDistribution {
    /// In bytes.
    pub fn mean(&self) -> f64 {
        let (size, share) = self.points[0];
        let steps = self.points.windows(2).map(|w| (w[1].1 - w[0].1) * (w[0].0 + w[1].0) / 2.0);
        steps.fold(size * share, |sum, step| sum + step)
    }

    /// The size that a share of the flows does not exceed; at least a byte.
    pub fn quantile(&self, share: f64) -> Bytes {
        let above = self.points.partition_point(|(_, below)| *below < share);
        let size = match (above.checked_sub(1).and_then(|i| self.points.get(i)), self.points.get(above)) {
            (Some((s0, p0)), Some((s1, p1))) => s0 + (s1 - s0) * ((share - p0) / (p1 - p0)),
            (None, Some((size, _))) | (Some((size, _)), None) => *size,
            (None, None) => 0.0,
        };
        Bytes::new((size as u64).max(1))
    }
}

/// A flow that comes: when, of what size, and between which of the pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub start: Time,
    pub size: Bytes,
    pub pair: u32,
}

/// Flows from `start` until before `stop`, with exponential gaps of the mean `gap`, between one of `pairs` each.
pub fn poisson(
    sizes: &SizeDistribution,
    gap: Time,
    start: Time,
    stop: Time,
    pairs: u32,
    seed: u64,
) -> impl Iterator<Item = Arrival> {
    let mut random = Random::new(seed);
    let mut at = start.as_ps();
    let gap = gap.as_ps().max(1);
    std::iter::from_fn(move || {
        at = at.saturating_add(random.exponential(gap));
        (at < stop.as_ps()).then(|| Arrival {
            start: Time::from_ps(at),
            size: sizes.quantile(random.unit()),
            pair: ((u128::from(random.next_u64()) * u128::from(pairs)) >> 64) as u32,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str) -> SizeDistribution {
        let path = format!("{}/../../python/tidegate/workloads/{name}.cdf", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap().parse().unwrap()
    }

    #[test]
    fn means_of_the_published_distributions() {
        assert!((known("web-search").mean() / 1.6e6 - 1.0).abs() < 0.05, "{}", known("web-search").mean());
        assert!((known("data-mining").mean() / 7.4e6 - 1.0).abs() < 0.02, "{}", known("data-mining").mean());
    }

    #[test]
    fn quantiles_lie_on_straight_lines_between_the_points() {
        let sizes: SizeDistribution =
            "# size share\n100 0.5\n\n200 0.75 # three quarters\n1000 1".parse().unwrap();
        for (share, size) in
            [(0.0, 100), (0.5, 100), (0.625, 150), (0.75, 200), (0.875, 600), (0.999, 996), (1.0, 1000)]
        {
            assert_eq!(sizes.quantile(share), Bytes::new(size), "{share}");
        }
        assert_eq!(sizes.mean(), 50.0 + 0.25 * 150.0 + 0.25 * 600.0);
    }

    #[test]
    fn flows_come_at_their_rate_and_sizes_have_their_mean() {
        for (name, tolerance) in [("web-search", 0.02), ("data-mining", 0.05)] {
            let sizes = known(name);
            let (gap, start, stop) = (Time::from_us(10), Time::from_secs(1), Time::from_secs(5));
            let mut pairs = [0u32; 7];
            let (mut count, mut bytes, mut last) = (0u64, 0.0, start);
            for flow in poisson(&sizes, gap, start, stop, 7, 11) {
                assert!(flow.start >= last && flow.start < stop);
                (count, bytes, last) = (count + 1, bytes + flow.size.get() as f64, flow.start);
                pairs[flow.pair as usize] += 1;
            }
            assert!((count as f64 / 400_000.0 - 1.0).abs() < 0.01, "{count}");
            let mean = bytes / count as f64;
            assert!((mean / sizes.mean() - 1.0).abs() < tolerance, "{name}: {mean}");
            assert!(
                pairs.iter().all(|n| (f64::from(*n) * 7.0 / count as f64 - 1.0).abs() < 0.02),
                "{pairs:?}"
            );
        }
    }

    #[test]
    fn wrong_distributions_are_refused() {
        for (text, why) in [
            ("", "there is no line"),
            ("100 0.5\n200", "line 2: `200` is not two columns"),
            ("100 0 7", "line 1: `100 0 7` is not two columns"),
            ("big 1", "line 1: `big` is not a size"),
            ("100 nan", "line 1: `nan` is not a share"),
            ("-5 1", "line 1: `-5` is not a size"),
            ("100 0\n200 100", "line 2: the share 100 is above 1; shares are not percentages"),
            ("100 0\n200 0.5\n150 1", "line 3: sizes and shares must not fall"),
            ("100 0.5\n200 0.4", "line 2: sizes and shares must not fall"),
            ("100 0.5\n200 0.9", "the last share is 0.9; it must be 1"),
            ("0 1", "all sizes are 0"),
            ("1e300 1", "line 1: a flow of 1e300 bytes is too large"),
        ] {
            let error = text.parse::<SizeDistribution>().unwrap_err();
            assert!(error.starts_with(why), "{text:?}: {error}");
        }
    }
}
