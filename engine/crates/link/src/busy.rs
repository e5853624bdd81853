//! The rate that a link of limited rate really gave, from when its packets left.

use crate::leaving::Leaving;

/// What left during busy periods, and how long they took.
#[derive(Default)]
pub struct Busy {
    bytes: u64,
    ns: u64,
    periods: u64,
    /// Whether what left last was counted.
    counting: bool,
    /// When the latest packet left that was not sent ahead; of the first after a pause, when it was due.
    since_ns: Option<u64>,
    /// Sent ahead of packets that are not gone yet: ordinal, octets, and whether it followed its predecessor at once.
    ahead: Vec<(u64, u64, bool)>,
}

impl Busy {
    pub fn leave(&mut self, leaving: &Leaving) {
        let Leaving { bytes, ordinal, back_to_back, due_ns, left_ns, .. } = *leaving;
        if leaving.ahead {
            // Its time on the link shows as the gap that it leaves between its neighbours.
            return self.ahead.push((ordinal, bytes, back_to_back));
        }
        let (mut between, mut without_pause) = (0, back_to_back);
        self.ahead.retain(|&(before, its_bytes, followed)| {
            if before < ordinal {
                between += its_bytes;
                without_pause &= followed;
            }
            before >= ordinal
        });
        let since_ns = self.since_ns.filter(|_| without_pause);
        if let Some(since_ns) = since_ns {
            self.bytes += bytes + between;
            self.ns += left_ns - since_ns.min(left_ns);
            self.periods += u64::from(!self.counting);
        }
        self.counting = since_ns.is_some();
        // The first packet after a pause is late by the time it takes to wake up; the link was busy from when it was due.
        self.since_ns = Some(if back_to_back { left_ns } else { due_ns.min(left_ns) });
    }

    /// All busy periods together.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.ns
    }

    /// How many there were. Each seems longer by how late its last packet left.
    #[must_use]
    pub fn periods(&self) -> u64 {
        self.periods
    }

    /// Rate while the link of limited rate had a backlog, in bits per second.
    #[must_use]
    pub fn bits_per_s(&self) -> Option<f64> {
        (self.ns > 0).then(|| self.bytes as f64 * 8e9 / self.ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaving::leaving;

    fn busy(leaving: impl IntoIterator<Item = Leaving>) -> Busy {
        let mut busy = Busy::default();
        leaving.into_iter().for_each(|one| busy.leave(&one));
        busy
    }

    fn rate(leaving: impl IntoIterator<Item = Leaving>) -> Option<f64> {
        busy(leaving).bits_per_s()
    }

    #[test]
    fn the_rate_is_that_of_busy_periods_only() {
        // Two busy periods at 1000 octets a microsecond with a long pause between them.
        let left = [(1_000, false), (2_000, true), (3_000, true), (900_000, false), (901_000, true)];
        let each = |(ordinal, (left_ns, followed))| leaving(ordinal as u64, left_ns, followed);
        let told = busy(left.into_iter().enumerate().map(each));
        assert_eq!((told.bits_per_s(), told.ns(), told.periods()), (Some(8e9), 3_000, 2));
    }

    #[test]
    fn a_late_first_packet_makes_no_link_faster() {
        // Bursts of two packets at 1000 octets a microsecond; the first of each leaves 300 ns late.
        let burst = |burst: u64| {
            let due_ns = 1_000_000 * (burst + 1);
            let first = Leaving { due_ns, ..leaving(2 * burst, due_ns + 300, false) };
            [first, leaving(2 * burst + 1, due_ns + 1_000, true)]
        };
        assert_eq!(rate((0..10).flat_map(burst)), Some(8e9));
    }

    #[test]
    fn a_packet_sent_ahead_makes_no_busy_period_longer_or_shorter() {
        // Bursts of ten packets, of which one at another place each time is sent ahead of the whole burst.
        for overtaker in 0..10 {
            let burst = |burst: u64| {
                let begins_ns = 1_000_000 * (burst + 1);
                let one = move |n: u64| leaving(10 * burst + n, begins_ns + 1_000 * n, n > 0);
                let ahead = Leaving { ahead: true, left_ns: begins_ns - 200_000, ..one(overtaker) };
                std::iter::once(ahead).chain((0..10).filter(move |n| *n != overtaker).map(one))
            };
            assert_eq!(rate((0..10).flat_map(burst)), Some(8e9), "packet {overtaker} of each burst");
        }
    }

    #[test]
    fn one_sent_ahead_past_another_burst_counts_with_its_own() {
        let first = (0..5).map(|n| leaving(n, 1_000 * (n + 1), n > 0));
        let ahead = Leaving { ahead: true, ..leaving(7, 3_500, true) };
        let second = [5, 6, 8].map(|n| leaving(n, 1_000_000 + 1_000 * n, n > 5));
        let mut all: Vec<Leaving> = first.chain([ahead]).chain(second).collect();
        all.sort_by_key(|one| one.left_ns);
        assert_eq!(rate(all), Some(8e9));
    }
}
