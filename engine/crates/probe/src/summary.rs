//! What the probe says: the lines `ready` and `summary` of both its roles.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

/// The `ready` line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Ready {
    Reflect {
        address: IpAddr,
        port: u16,
        /// CLOCK_REALTIME less CLOCK_MONOTONIC.
        realtime_offset_ns: i64,
        /// How far the truth can be from that.
        realtime_bound_ns: u64,
    },
    Measure {
        address: IpAddr,
        port: u16,
    },
}

/// The `summary` line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Summary {
    Reflect(ReflectSummary),
    Measure(Box<MeasureSummary>),
}

/// What a reflector did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ReflectSummary {
    pub sessions: u64,
    pub received: u64,
    pub replied: u64,
    pub ignored: u64,
    pub send_errors: u64,
}

/// What a measurement found. Times in ns, shares of 0 to 1.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct MeasureSummary {
    pub sent: u64,
    pub received: u64,
    pub send_errors: u64,
    pub ended: Ended,
    /// `None`, as all that the reflector counts: its count did not come back.
    pub loss_forward: Option<f64>,
    pub loss_backward: Option<f64>,
    pub loss: Option<f64>,
    pub rtt_ns: Quantiles,
    pub one_way_forward_ns: Quantiles,
    pub one_way_backward_ns: Quantiles,
    /// On the way back.
    pub reordered: u64,
    pub duplicates: u64,
    pub reordered_forward: Option<u64>,
    pub duplicates_forward: Option<u64>,
    pub train_received: Option<u32>,
    /// Forward, from the dispersion of a train; `None` without one.
    pub rate_bits_per_s: Option<f64>,
    /// With DF set; `None`: not asked, or not even the smallest went through.
    pub largest_payload_bytes: Option<usize>,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, at the near end.
    pub realtime_offset_ns: i64,
    /// How far the truth can be from that.
    pub realtime_bound_ns: u64,
}

/// Why a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    Done,
    Signal,
}

/// Nearest-rank quantiles, `None` when there is nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Quantiles {
    pub min: Option<u64>,
    pub p50: Option<u64>,
    pub p90: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

impl Quantiles {
    /// Of these values.
    #[must_use]
    pub fn of(values: impl Iterator<Item = u64>) -> Self {
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        let at = |q: f64| {
            let rank = (q * values.len() as f64).ceil() as usize;
            values.get(rank.saturating_sub(1)).copied()
        };
        Self { min: values.first().copied(), p50: at(0.5), p90: at(0.9), p99: at(0.99), max: values.last().copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_rank() {
        let some = Quantiles::of((1..=200).rev());
        assert_eq!([some.min, some.p50, some.p90, some.p99, some.max], [1, 100, 180, 198, 200].map(Some));
        assert_eq!(Quantiles::of(std::iter::empty()).p50, None);
    }
}
