//! A histogram of schedule lag with logarithmic buckets: 1/128 relative error, constant memory, a few ns to record.

const SUB_BITS: u32 = 7;
const SUB: usize = 1 << SUB_BITS;
/// Values up to 2^42 ns (73 minutes) keep their resolution; larger ones go to the last bucket.
const TOP_BITS: u32 = 42;
const BUCKETS: usize = SUB * (TOP_BITS - SUB_BITS + 2) as usize;

/// Counts of values in ns.
#[derive(Clone, Debug)]
pub struct LagHistogram {
    counts: Vec<u64>,
    total: u64,
    max_ns: u64,
}

impl Default for LagHistogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, max_ns: 0 }
    }
}

fn bucket(value: u64) -> usize {
    if value < SUB as u64 {
        return value as usize;
    }
    let exponent = 63 - value.leading_zeros();
    let sub = (value >> (exponent - SUB_BITS)) as usize - SUB;
    ((exponent - SUB_BITS + 1) as usize * SUB + sub).min(BUCKETS - 1)
}

/// The largest value that falls into a bucket.
fn upper_bound(index: usize) -> u64 {
    if index < SUB {
        return index as u64;
    }
    let shift = (index / SUB - 1) as u32;
    (((SUB + index % SUB) as u64 + 1) << shift) - 1
}

impl LagHistogram {
    /// Adds a value.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.counts[bucket(value_ns)] += 1;
        self.total += 1;
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// How many values there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The largest value, in ns.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The value below or at which a share `quantile` (0..1) of the values lies (nearest rank, rounded up to its bucket), in
    /// ns; 0 without values.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = ((self.total as f64 * quantile).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_bound(index).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_all_values_without_gap_or_overlap() {
        for index in 0..BUCKETS - 1 {
            let last = upper_bound(index);
            assert_eq!((bucket(last), bucket(last + 1)), (index, index + 1));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_within_one_percent() {
        let mut histogram = LagHistogram::default();
        assert_eq!(histogram.quantile_ns(0.5), 0);
        for value in 1..=100_000u64 {
            histogram.record(value * 10);
        }
        for (quantile, exact) in [(0.5, 500_000.0), (0.9, 900_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            let value = histogram.quantile_ns(quantile) as f64;
            assert!((value / exact - 1.0).abs() < 0.01, "{quantile}: {value}");
        }
        assert_eq!(histogram.max_ns(), 1_000_000);
        let mut twice = histogram.clone();
        twice.merge(&histogram);
        assert_eq!((twice.total(), twice.quantile_ns(0.5)), (200_000, histogram.quantile_ns(0.5)));
    }
}
