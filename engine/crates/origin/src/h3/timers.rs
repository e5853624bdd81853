//! When connections are to be woken, earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A heap in which an entry counts only if it is the one that its connection remembers. A timer that moves later leaves
/// its entry, which then fires early, finds nothing due and is entered again: for a busy connection that is once a
/// timeout instead of once a packet.
#[derive(Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Timers {
    /// Wakes connection `index` at `time_ns`.
    pub fn insert(&mut self, time_ns: u64, index: usize) {
        self.heap.push(Reverse((time_ns, index)));
    }

    /// The next time something may be due.
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((time_ns, _))| *time_ns)
    }

    /// Takes a connection whose time has come; `current` says which entry of a connection counts.
    pub fn pop_due(&mut self, now_ns: u64, current: impl Fn(usize) -> u64) -> Option<usize> {
        while let Some(Reverse((time_ns, index))) = self.heap.peek().copied() {
            if time_ns > now_ns {
                return None;
            }
            self.heap.pop();
            if current(index) == time_ns {
                return Some(index);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_counts_and_only_when_due() {
        let mut timers = Timers::default();
        let remembered = [30, 10, 0];
        for (time_ns, index) in [(30, 0), (5, 0), (10, 1), (7, 2)] {
            timers.insert(time_ns, index);
        }
        assert_eq!(timers.next_ns(), Some(5));
        assert_eq!(timers.pop_due(9, |index| remembered[index]), None);
        assert_eq!(timers.next_ns(), Some(10));
        assert_eq!(timers.pop_due(30, |index| remembered[index]), Some(1));
        assert_eq!(timers.pop_due(30, |index| remembered[index]), Some(0));
        assert_eq!(timers.pop_due(u64::MAX, |index| remembered[index]), None);
    }
}
