//! The rate that a link of limited rate really gave, from when its packets left.

use std::collections::BTreeMap;

use crate::leaving::Leaving;

/// Busy periods that are shorter say nothing of the rate: how late their last packet left, some ten microseconds, is a
/// part of them that counts. Two acknowledgements at 3 Mbit/s are one of 0.4 ms.
const SHORTEST_NS: u64 = 1_000_000;

/// So many later packets may leave before one that they overtook.
const MOST_OVERTAKING: usize = 4096;

/// What left during busy periods that are long enough to tell, and how long they took.
///
/// Delay, jitter and reordering act behind the queue: a packet's time here is that at which it left the queue, later by
/// as much as it left the link too late.
#[derive(Clone, Default)]
pub struct Busy {
    bytes: u64,
    ns: i64,
    periods: u64,
    /// The period under way, but for its first packet.
    period: Period,
    /// The packet that left the queue last; of the first after a pause, when it was to.
    last: Option<Passed>,
    /// Where packets overtake each other: those that left, in the order in which they left the queue.
    waiting: Option<BTreeMap<(u64, u64, u8), Passed>>,
}

/// A packet's octets, and when it left the queue: as the impairments wanted it, and as it did.
#[derive(Clone, Copy)]
struct Passed {
    bytes: u64,
    back_to_back: bool,
    wanted_ns: u64,
    at_ns: u64,
}

/// Octets, and how long they took: as the impairments wanted it, by which a period is chosen, and as it was.
#[derive(Clone, Copy, Default)]
struct Period {
    bytes: u64,
    wanted_ns: u64,
    ns: i64,
}

impl Busy {
    #[must_use]
    pub fn new(breaks_order: bool) -> Self {
        Busy { waiting: breaks_order.then(BTreeMap::new), ..Busy::default() }
    }

    pub fn leave(&mut self, leaving: &Leaving) {
        let Leaving { bytes, ordinal, copy, back_to_back, dequeued_ns, due_ns, left_ns, .. } = *leaving;
        // The first packet after a pause is late by the time it takes to wake up; the link was busy from when it was due.
        let late_ns = if back_to_back { left_ns.saturating_sub(due_ns) } else { 0 };
        let passed = Passed { bytes, back_to_back, wanted_ns: dequeued_ns, at_ns: dequeued_ns + late_ns };
        let Some(waiting) = &mut self.waiting else { return self.pass(passed) };
        waiting.insert((dequeued_ns, ordinal, copy), passed);
        if waiting.len() > MOST_OVERTAKING
            && let Some((_, first)) = waiting.pop_first()
        {
            self.pass(first);
        }
    }

    fn pass(&mut self, passed: Passed) {
        if let Some(last) = self.last.filter(|_| passed.back_to_back) {
            self.period.bytes += passed.bytes;
            self.period.wanted_ns += passed.wanted_ns.saturating_sub(last.wanted_ns);
            self.period.ns += passed.at_ns as i64 - last.at_ns as i64;
        } else {
            self.end_period();
        }
        self.last = Some(passed);
    }

    fn end_period(&mut self) {
        let Period { bytes, wanted_ns, ns } = std::mem::take(&mut self.period);
        if wanted_ns >= SHORTEST_NS {
            self.bytes += bytes;
            self.ns += ns;
            self.periods += 1;
        }
    }

    /// With what still waits for packets that it overtook, and the period under way.
    #[must_use]
    pub fn complete(&self) -> Self {
        let mut complete = self.clone();
        complete.waiting.take().into_iter().flatten().for_each(|(_, passed)| complete.pass(passed));
        complete.end_period();
        complete
    }

    /// All these periods together.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.ns.max(0) as u64
    }

    /// How many there were. Each seems longer by how late its last packet left.
    #[must_use]
    pub fn periods(&self) -> u64 {
        self.periods
    }

    /// Rate while the link of limited rate had a backlog for long enough, in bits per second.
    #[must_use]
    pub fn bits_per_s(&self) -> Option<f64> {
        (self.ns > 0).then(|| self.bytes as f64 * 8e9 / self.ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaving::leaving;

    const MS: u64 = 1_000_000;

    fn busy(breaks_order: bool, leaving: impl IntoIterator<Item = Leaving>) -> Busy {
        let mut busy = Busy::new(breaks_order);
        leaving.into_iter().for_each(|one| busy.leave(&one));
        busy.complete()
    }

    #[test]
    fn the_rate_is_that_of_busy_periods_only() {
        // Two busy periods at 1000 octets a millisecond with a long pause between them.
        let left = [(1, false), (2, true), (3, true), (900, false), (901, true)];
        let each = |(ordinal, (left_ms, followed))| leaving(ordinal as u64, left_ms * MS, followed);
        let told = busy(false, left.into_iter().enumerate().map(each));
        assert_eq!((told.bits_per_s(), told.ns(), told.periods()), (Some(8e6), 3 * MS, 2));
    }

    #[test]
    fn a_short_period_whose_end_is_late_does_not_count() {
        // Two packets that are 0.5 ms apart, the second of which leaves 0.9 ms late, a hundred times; and ten in a row.
        let pair = |n: u64| {
            let due_ns = 10 * MS * (n + 1);
            let second = Leaving { due_ns, dequeued_ns: due_ns, ..leaving(2 * n + 1, due_ns + 9 * MS / 10, true) };
            [leaving(2 * n, due_ns - MS / 2, false), second]
        };
        let told = busy(false, (0..100).flat_map(pair));
        assert_eq!((told.bits_per_s(), told.ns(), told.periods()), (None, 0, 0));
        let row = (0..11).map(|n| leaving(300 + n, 5_000 * MS + n * MS, n > 0));
        let told = busy(false, (0..100).flat_map(pair).chain(row));
        assert_eq!((told.bits_per_s(), told.ns(), told.periods()), (Some(8e6), 10 * MS, 1));
    }

    #[test]
    fn a_late_first_packet_makes_no_link_faster() {
        // Bursts of two packets at 1000 octets a millisecond; the first of each leaves 0.3 ms late.
        let burst = |burst: u64| {
            let due_ns = 1_000 * MS * (burst + 1);
            let first = Leaving { due_ns, dequeued_ns: due_ns, ..leaving(2 * burst, due_ns + 3 * MS / 10, false) };
            [first, leaving(2 * burst + 1, due_ns + MS, true)]
        };
        assert_eq!(busy(false, (0..10).flat_map(burst)).bits_per_s(), Some(8e6));
    }

    #[test]
    fn a_packet_sent_ahead_makes_no_busy_period_longer_or_shorter() {
        // Bursts of ten packets, of which one at another place each time is sent ahead of the whole burst.
        for overtaker in 0..10 {
            let burst = |burst: u64| {
                let begins_ns = 1_000 * MS * (burst + 1);
                let one = move |n: u64| leaving(10 * burst + n, begins_ns + n * MS, n > 0);
                let early_ns = begins_ns - 200 * MS;
                let ahead = Leaving { due_ns: early_ns, left_ns: early_ns, ..one(overtaker) };
                std::iter::once(ahead).chain((0..10).filter(move |n| *n != overtaker).map(one))
            };
            let told = busy(true, (0..10).flat_map(burst)).bits_per_s();
            assert_eq!(told, Some(8e6), "packet {overtaker} of each burst");
        }
    }

    #[test]
    fn jitter_behind_the_queue_makes_no_busy_period_longer_or_shorter() {
        // Bursts of three packets, each of which another delay follows: in order, and overtaking each other.
        for breaks_order in [false, true] {
            let one = |n: u64| {
                let dequeued_ns = 1_000 * MS * (n / 3 + 1) + MS * (n % 3);
                let delay_ns = if breaks_order { 700 * MS * (n % 5) } else { 100 * MS * n };
                let due_ns = dequeued_ns + delay_ns;
                Leaving { dequeued_ns, due_ns, ..leaving(n, due_ns, !n.is_multiple_of(3)) }
            };
            let mut all: Vec<Leaving> = (0..30).map(one).collect();
            all.sort_by_key(|one| one.left_ns);
            let told = busy(breaks_order, all);
            assert_eq!((told.bits_per_s(), told.ns(), told.periods()), (Some(8e6), 20 * MS, 10));
        }
    }

    #[test]
    fn one_sent_ahead_past_another_burst_counts_with_its_own() {
        let first = (0..5).map(|n| leaving(n, MS * (n + 1), n > 0));
        let ahead = Leaving { dequeued_ns: 1_007 * MS, ..leaving(7, 3 * MS + MS / 2, true) };
        let second = [5, 6, 8].map(|n| leaving(n, 1_000 * MS + MS * n, n > 5));
        let mut all: Vec<Leaving> = first.chain([ahead]).chain(second).collect();
        all.sort_by_key(|one| one.left_ns);
        assert_eq!(busy(true, all).bits_per_s(), Some(8e6));
    }
}
