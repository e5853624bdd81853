//! What is still to happen, in the order of time; at the same time, in the order in which it was asked for.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

#[derive(Debug)]
struct Entry<T> {
    due_ns: u64,
    sequence: u64,
    event: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    /// The earliest is the greatest: `BinaryHeap` gives out the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due_ns, other.sequence).cmp(&(self.due_ns, self.sequence))
    }
}

/// The one heap of events.
#[derive(Debug)]
pub struct Schedule<T> {
    heap: BinaryHeap<Entry<T>>,
    sequence: u64,
}

impl<T> Default for Schedule<T> {
    fn default() -> Self {
        Schedule { heap: BinaryHeap::with_capacity(1 << 14), sequence: 0 }
    }
}

impl<T> Schedule<T> {
    pub fn push(&mut self, due_ns: u64, event: T) {
        self.sequence += 1;
        self.heap.push(Entry { due_ns, sequence: self.sequence, event });
    }

    /// When the next event is due.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|entry| entry.due_ns)
    }

    /// The next event with its time, if it is due by `now_ns`.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<(u64, T)> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|entry| (entry.due_ns, entry.event))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_then_of_asking() {
        let mut schedule = Schedule::default();
        for (due_ns, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (1, 'd'), (3, 'e'), (9, 'f')] {
            schedule.push(due_ns, event);
        }
        assert_eq!(schedule.next_ns(), Some(1));
        let mut seen = String::new();
        while let Some((_, event)) = schedule.pop_due(8) {
            seen.push(event);
        }
        assert_eq!(seen, "dbeac");
        assert_eq!((schedule.len(), schedule.next_ns()), (1, Some(9)));
    }
}
