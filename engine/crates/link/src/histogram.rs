//! A histogram of times with a bounded relative error: buckets double in width, each doubling has the same number.

/// Buckets in each doubling; the relative error is at most half of its inverse (0.025 %).
const SUB_BUCKETS: u64 = 2048;
const SUB_BUCKET_BITS: u32 = SUB_BUCKETS.trailing_zeros();
/// Longer times (18 minutes) are counted in the last bucket; the maximum stays exact.
const MAX_BITS: u32 = 40;

/// Counts of non-negative times in ns. Recording costs one addition.
#[derive(Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let doublings = u64::from(MAX_BITS - SUB_BUCKET_BITS);
        Histogram { counts: vec![0; ((doublings + 1) * SUB_BUCKETS) as usize], total: 0, min: u64::MAX, max: 0 }
    }
}

fn bucket_of(value_ns: u64) -> usize {
    let value = value_ns.min((1 << MAX_BITS) - 1);
    let shift = (64 - value.leading_zeros()).saturating_sub(SUB_BUCKET_BITS + 1);
    (u64::from(shift) * SUB_BUCKETS + (value >> shift)) as usize
}

fn middle_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / SUB_BUCKETS).saturating_sub(1);
    let low = (bucket - shift * SUB_BUCKETS) << shift;
    low + ((1 << shift) >> 1)
}

impl Histogram {
    /// Counts `times` occurrences of one value.
    pub fn record(&mut self, value_ns: u64, times: u64) {
        self.counts[bucket_of(value_ns)] += times;
        self.total += times;
        self.min = self.min.min(value_ns);
        self.max = self.max.max(value_ns);
    }

    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The largest value, exact; None when nothing was recorded.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.total > 0).then_some(self.max)
    }

    /// The smallest value, exact; None when nothing was recorded.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.total > 0).then_some(self.min)
    }

    /// The value at quantile `q` (0 to 1) by the nearest-rank definition, in ns; None when nothing was recorded.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let rank = ((q * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        self.counts.iter().enumerate().find_map(|(bucket, &count)| {
            seen += count;
            (seen >= rank && count > 0).then(|| middle_of(bucket).clamp(self.min, self.max))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_exact_and_large_ones_within_the_stated_error() {
        for value in (0..60).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + (1 << bit) / 3]) {
            let mut histogram = Histogram::default();
            histogram.record(value, 1);
            histogram.record(value + value / 1000, 1);
            let found = histogram.quantile(0.5).unwrap();
            if value < 1 << MAX_BITS {
                assert!(found.abs_diff(value) as f64 <= value as f64 / SUB_BUCKETS as f64, "{value} read as {found}");
            }
            assert_eq!(histogram.max(), Some(value + value / 1000));
        }
    }

    #[test]
    fn quantiles_are_nearest_rank() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        (1..=100).for_each(|value| histogram.record(value, 1));
        assert_eq!(histogram.quantile(0.0), Some(1));
        assert_eq!(histogram.quantile(0.5), Some(50));
        assert_eq!(histogram.quantile(0.99), Some(99));
        assert_eq!(histogram.quantile(1.0), Some(100));
        histogram.record(1000, 900);
        assert_eq!(histogram.quantile(0.5), Some(1000));
        assert_eq!((histogram.min(), histogram.total()), (Some(1), 1000));
    }

    #[test]
    fn buckets_are_contiguous() {
        let mut last = 0;
        for value in 0..1 << 16 {
            let bucket = bucket_of(value);
            assert!(bucket == last || bucket == last + 1, "value {value} jumps from bucket {last} to {bucket}");
            last = bucket;
        }
    }
}
