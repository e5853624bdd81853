//! Counting packets by their sequence numbers: how many came, came twice, or came late.

use crate::config::MAX_PACKETS;

/// What was seen of one sequence, in order of arrival.
#[derive(Debug, Default)]
pub struct Sequence {
    seen: Vec<u64>,
    distinct: u64,
    duplicates: u64,
    reordered: u64,
    next: u64,
}

impl Sequence {
    /// Counts a packet; true when it is seen for the first time. Numbers beyond the longest measurement are ignored.
    pub fn see(&mut self, sequence: u64) -> bool {
        if sequence >= u64::from(MAX_PACKETS) {
            return false;
        }
        let (word, bit) = ((sequence / 64) as usize, 1u64 << (sequence % 64));
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            self.duplicates += 1;
            return false;
        }
        self.seen[word] |= bit;
        self.distinct += 1;
        // RFC 4737 section 3.3: reordered when its number is below one that is already there.
        if sequence < self.next {
            self.reordered += 1;
        }
        self.next = self.next.max(sequence + 1);
        true
    }

    /// Packets, without duplicates.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    #[must_use]
    pub fn reordered(&self) -> u64 {
        self.reordered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_once_and_late_ones_noticed() {
        let mut sequence = Sequence::default();
        for number in [0, 1, 5, 2, 5, 3, 200, 6, u64::MAX] {
            sequence.see(number);
        }
        assert_eq!((sequence.distinct(), sequence.duplicates(), sequence.reordered()), (7, 1, 3));
    }
}
