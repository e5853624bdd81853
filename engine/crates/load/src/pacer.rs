//! When requests start: at once in a closed loop, at drawn times in an open one.
//!
//! A pacer knows nothing of clocks and responses: it names the offset of the next slot, and is told to go on.

use crate::config::{Arrivals, Loop};

const NS_PER_S: f64 = 1e9;

/// The slots of one worker. With several workers, worker w of n gets every n-th slot of a constant rate, or an independent
/// Poisson process of 1/n of the rate; the sum is the process that was asked for.
#[derive(Clone, Debug)]
pub struct Pacer {
    kind: Kind,
    next_ns: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Closed,
    Constant { gap_ns: f64, worker: u64, workers: u64, taken: u64 },
    Poisson { mean_gap_ns: f64, at_ns: f64, random: SplitMix64 },
}

impl Pacer {
    /// The pacer of `worker` (from 0) of `workers`.
    #[must_use]
    pub fn new(load: Loop, seed: u64, worker: u32, workers: u32) -> Self {
        let (worker, workers) = (u64::from(worker), u64::from(workers.max(1)));
        let kind = match load {
            Loop::Closed { .. } => Kind::Closed,
            Loop::Open { rate_per_s, arrivals: Arrivals::Constant } => {
                Kind::Constant { gap_ns: NS_PER_S / rate_per_s, worker, workers, taken: 0 }
            }
            Loop::Open { rate_per_s, arrivals: Arrivals::Poisson } => Kind::Poisson {
                mean_gap_ns: NS_PER_S / rate_per_s * workers as f64,
                at_ns: 0.0,
                random: SplitMix64::of_worker(seed, worker),
            },
        };
        let mut pacer = Self { kind, next_ns: 0 };
        pacer.draw();
        pacer
    }

    /// Offset of the next slot from the start of the run, in ns; `None` in a closed loop, where every time is right.
    #[inline]
    #[must_use]
    pub fn next_slot_ns(&self) -> Option<u64> {
        if matches!(self.kind, Kind::Closed) { None } else { Some(self.next_ns) }
    }

    /// The slot was taken or missed: go on to the one after it.
    #[inline]
    pub fn advance(&mut self) {
        match &mut self.kind {
            Kind::Closed => {}
            Kind::Constant { taken, .. } => {
                *taken += 1;
                self.draw();
            }
            Kind::Poisson { .. } => self.draw(),
        }
    }

    fn draw(&mut self) {
        self.next_ns = match &mut self.kind {
            Kind::Closed => 0,
            // From the ordinal and not by adding gaps, so that rounding does not add up.
            Kind::Constant { gap_ns, worker, workers, taken } => {
                ((*taken * *workers + *worker) as f64 * *gap_ns).round() as u64
            }
            Kind::Poisson { mean_gap_ns, at_ns, random } => {
                *at_ns += -random.open_unit().ln() * *mean_gap_ns;
                at_ns.round() as u64
            }
        };
    }
}

/// The SplitMix64 generator (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A stream of its own for each worker: states that differ by a multiple of the increment would give the same numbers,
    /// only shifted.
    fn of_worker(seed: u64, worker: u64) -> Self {
        Self::new(Self::new(seed).next() ^ Self::new(!worker).next())
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in (0, 1), so that its logarithm is finite.
    fn open_unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(rate_per_s: f64, arrivals: Arrivals) -> Loop {
        Loop::Open { rate_per_s, arrivals }
    }

    fn slots(mut pacer: Pacer, count: usize) -> Vec<u64> {
        (0..count)
            .map(|_| {
                let slot = pacer.next_slot_ns().unwrap();
                pacer.advance();
                slot
            })
            .collect()
    }

    #[test]
    fn a_closed_loop_has_no_slots() {
        let mut pacer = Pacer::new(Loop::Closed { least_gap_ns: 0 }, 1, 0, 1);
        assert_eq!(pacer.next_slot_ns(), None);
        pacer.advance();
        assert_eq!(pacer.next_slot_ns(), None);
    }

    #[test]
    fn constant_rates_by_table() {
        // rate, worker, workers, the first slots in ns
        let table: &[(f64, u32, u32, [u64; 4])] = &[
            (1.0, 0, 1, [0, 1_000_000_000, 2_000_000_000, 3_000_000_000]),
            (3.0, 0, 1, [0, 333_333_333, 666_666_667, 1_000_000_000]),
            (30_000.0, 0, 1, [0, 33_333, 66_667, 100_000]),
            (0.5, 0, 1, [0, 2_000_000_000, 4_000_000_000, 6_000_000_000]),
            (1000.0, 0, 2, [0, 2_000_000, 4_000_000, 6_000_000]),
            (1000.0, 1, 2, [1_000_000, 3_000_000, 5_000_000, 7_000_000]),
            (1000.0, 2, 3, [2_000_000, 5_000_000, 8_000_000, 11_000_000]),
        ];
        for (rate, worker, workers, expected) in table {
            let pacer = Pacer::new(open(*rate, Arrivals::Constant), 1, *worker, *workers);
            assert_eq!(slots(pacer, 4), expected, "{rate}/s, worker {worker} of {workers}");
        }
    }

    #[test]
    fn constant_rates_do_not_drift() {
        let pacer = Pacer::new(open(30_000.0, Arrivals::Constant), 1, 0, 1);
        assert_eq!(slots(pacer, 3_000_001)[3_000_000], 100_000_000_000);
    }

    #[test]
    fn poisson_has_the_asked_mean_and_exponential_gaps() {
        for workers in [1, 3] {
            let mut all: Vec<u64> = (0..workers)
                .flat_map(|worker| slots(Pacer::new(open(1000.0, Arrivals::Poisson), 42, worker, workers), 60_000))
                .collect();
            all.sort_unstable();
            all.truncate(50_000);
            let gaps: Vec<f64> = all.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            // The standard error of the mean is 1e6 / sqrt(5e4) = 4.5e3.
            assert!((mean - 1e6).abs() < 2.5e4, "mean gap {mean}");
            let long = gaps.iter().filter(|gap| **gap > 1e6).count() as f64 / gaps.len() as f64;
            assert!((long - (-1f64).exp()).abs() < 0.01, "share above the mean {long}");
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "coefficient of variation");
        }
    }

    #[test]
    fn poisson_repeats_with_the_seed_and_differs_without() {
        let first = |seed, worker| slots(Pacer::new(open(10.0, Arrivals::Poisson), seed, worker, 2), 10);
        assert_eq!(first(7, 0), first(7, 0));
        assert_ne!(first(7, 0), first(8, 0));
        assert_ne!(first(7, 0), first(7, 1));
        assert!(first(7, 0).windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
