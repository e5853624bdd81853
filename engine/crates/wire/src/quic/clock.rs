//! Between the engine's nanoseconds and the `Instant` that quinn-proto takes.

use std::time::{Duration, Instant};

use crate::clock::now_ns;

/// Converts both ways without reading a clock, so that one reading serves timestamps and protocol alike.
///
/// `Instant` is CLOCK_MONOTONIC on Linux, as [`now_ns`] is; only its origin is hidden, and that is found once, to within
/// the time between two readings.
#[derive(Clone, Copy, Debug)]
pub struct InstantClock {
    origin: Instant,
    origin_ns: u64,
}

impl InstantClock {
    /// Reads both clocks once.
    pub fn new() -> Self {
        Self { origin: Instant::now(), origin_ns: now_ns() }
    }

    /// The instant of a time on CLOCK_MONOTONIC. Times before the clock was made are taken as its origin.
    pub fn instant(&self, time_ns: u64) -> Instant {
        self.origin + Duration::from_nanos(time_ns.saturating_sub(self.origin_ns))
    }

    /// The time on CLOCK_MONOTONIC of an instant.
    pub fn time_ns(&self, instant: Instant) -> u64 {
        let since = instant.saturating_duration_since(self.origin);
        self.origin_ns.saturating_add(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Default for InstantClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_are_inverse() {
        let clock = InstantClock::new();
        for offset in [0, 1, 999, 1_000_000_007, 3_600_000_000_000] {
            let time_ns = clock.origin_ns + offset;
            assert_eq!(clock.time_ns(clock.instant(time_ns)), time_ns);
        }
        assert_eq!(clock.time_ns(clock.instant(0)), clock.origin_ns);
    }
}
