//! What the tests of impairments share: packets, and exact bounds for shares.

use super::WirePacket;
use crate::random::Identity;

/// Full-size packets, one every `spacing_ns`.
pub fn packets(n: u64, spacing_ns: u64) -> impl Iterator<Item = WirePacket> {
    (0..n).map(move |ordinal| WirePacket {
        identity: Identity { ordinal, copy: 0 },
        bytes: 1514,
        at_ns: 1_000_000_000 + ordinal * spacing_ns,
        floor_ns: 1_000_000_000 + ordinal * spacing_ns,
        back_to_back: false,
        frame: 0,
        segment: 0,
        corrupted: false,
    })
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn ln_factorial(n: u64) -> f64 {
    // Stirling's series; exact enough from 10 on, below that by multiplication.
    if n < 10 {
        return (2..=n).map(|i| (i as f64).ln()).sum();
    }
    let x = n as f64;
    x * x.ln() - x + 0.5 * (std::f64::consts::TAU * x).ln() + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3))
}

/// P(X <= successes) of the binomial distribution, summed exactly.
fn binomial_below(successes: u64, trials: u64, probability: f64) -> f64 {
    let (ln_p, ln_q) = (probability.ln(), (1.0 - probability).ln());
    let term = |k: u64| {
        let ways = ln_factorial(trials) - ln_factorial(k) - ln_factorial(trials - k);
        (ways + k as f64 * ln_p + (trials - k) as f64 * ln_q).exp()
    };
    (0..=successes).map(term).sum()
}

/// The count lies within the central 99.9 % of its binomial distribution.
pub fn assert_share(successes: u64, trials: u64, probability: f64) {
    if probability <= 0.0 || probability >= 1.0 {
        assert_eq!(successes, if probability <= 0.0 { 0 } else { trials });
        return;
    }
    let below = binomial_below(successes, trials, probability);
    let above = 1.0 - if successes == 0 { 0.0 } else { binomial_below(successes - 1, trials, probability) };
    assert!(below > 0.0005 && above > 0.0005, "{successes} of {trials} is no plausible outcome of {probability}");
}

#[test]
fn binomial_tails_are_those_of_the_tables() {
    assert!((binomial_below(3, 10, 0.5) - 0.171_875).abs() < 1e-7);
    assert!((binomial_below(0, 20, 0.1) - 0.121_576_65).abs() < 1e-7);
    assert!(std::panic::catch_unwind(|| assert_share(10_400, 500_000, 0.02)).is_err());
}
