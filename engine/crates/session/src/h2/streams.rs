//! The streams of a connection that carry a request now: found by their identifier without hashing or allocating.

use crate::caller::Exchange;
use crate::content::Body;

/// A request on its stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) exchange: Exchange,
    pub(super) content_length: Option<u64>,
    pub(super) deadline_ns: u64,
    pub(super) body: Body,
    pub(super) body_octets: u64,
    /// Octets of the request body that are still to be written.
    pub(super) body_left: u64,
    /// What the peer lets us send on the stream; below 0 after it has shrunk its window (RFC 9113 6.9.2).
    pub(super) send_window: i64,
    /// Octets received that were not yet given back by WINDOW_UPDATE.
    pub(super) unacknowledged: u32,
}

const NONE: u32 = u32::MAX;

/// A slab of streams with a ring that leads from an identifier to its place.
///
/// Identifiers grow by 2, so those in flight nearly always fall into different places of the ring; one that lingers while its
/// place is needed moves to a list that is searched in turn.
#[derive(Debug)]
pub(super) struct Streams {
    slots: Vec<Stream>,
    free: Vec<u32>,
    ring: Vec<u32>,
    lingering: Vec<u32>,
}

impl Streams {
    /// Room for `capacity` streams.
    pub(super) fn new(capacity: u32) -> Self {
        let ring = (capacity as usize * 2).next_power_of_two().max(8);
        Self {
            slots: vec![Stream::default(); capacity as usize],
            free: (0..capacity).rev().collect(),
            ring: vec![NONE; ring],
            lingering: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many streams can be added.
    pub(super) fn room(&self) -> u32 {
        self.free.len() as u32
    }

    fn place(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.ring.len() - 1)
    }

    /// Adds a stream.
    ///
    /// # Panics
    /// Without room.
    pub(super) fn insert(&mut self, stream: Stream) {
        let slot = self.free.pop().expect("the caller asks for room first");
        let place = self.place(stream.id);
        if self.ring[place] != NONE {
            self.lingering.push(self.ring[place]);
        }
        self.ring[place] = slot;
        self.slots[slot as usize] = stream;
    }

    #[inline]
    fn slot(&self, id: u32) -> Option<u32> {
        let slot = self.ring[self.place(id)];
        if slot != NONE && self.slots[slot as usize].id == id {
            return Some(slot);
        }
        self.lingering.iter().copied().find(|slot| self.slots[*slot as usize].id == id)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        let slot = self.slot(id)?;
        Some(&mut self.slots[slot as usize])
    }

    #[inline]
    pub(super) fn remove(&mut self, id: u32) -> Option<Stream> {
        let slot = self.slot(id)?;
        let place = self.place(id);
        if self.ring[place] == slot {
            self.ring[place] = NONE;
        } else {
            self.lingering.retain(|other| *other != slot);
        }
        let place = &mut self.slots[slot as usize];
        let stream = Stream { body: std::mem::take(&mut place.body), ..*place };
        // An identifier that no stream of ours has, so that a stale place is never taken for it.
        place.id = 0;
        self.free.push(slot);
        Some(stream)
    }

    /// All streams in flight, in no order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.slots.iter_mut().filter(|stream| stream.id != 0)
    }

    /// Identifiers of the streams for which `wanted` holds.
    pub(super) fn ids(&self, wanted: impl Fn(&Stream) -> bool) -> Vec<u32> {
        self.slots.iter().filter(|stream| stream.id != 0 && wanted(stream)).map(|stream| stream.id).collect()
    }

    /// The earliest time limit in flight, `u64::MAX` without a stream.
    pub(super) fn earliest_deadline_ns(&self) -> u64 {
        self.slots.iter().filter(|stream| stream.id != 0).map(|stream| stream.deadline_ns).min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(id: u32) -> Stream {
        Stream { id, deadline_ns: u64::from(id) * 10, ..Stream::default() }
    }

    #[test]
    fn streams_are_found_whatever_the_order() {
        let mut streams = Streams::new(3);
        let mut live: Vec<u32> = Vec::new();
        let mut state = 12345u32;
        // Stream 1 lingers over many rounds of the ring.
        for id in (1..4001).step_by(2) {
            if live.len() == 3 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let gone = live.remove(1 + (state >> 16) as usize % 2);
                assert_eq!(streams.remove(gone).unwrap().id, gone);
                assert!(streams.get_mut(gone).is_none() && streams.remove(gone).is_none());
            }
            streams.insert(stream(id));
            live.push(id);
            assert_eq!(streams.len(), live.len());
            for id in &live {
                assert_eq!(streams.get_mut(*id).unwrap().id, *id);
            }
        }
        assert_eq!(streams.earliest_deadline_ns(), 10);
        assert_eq!(streams.room(), 0);
        streams.remove(1);
        assert!(streams.room() == 1 && streams.earliest_deadline_ns() > 10);
        let mut ids = streams.ids(|_| true);
        ids.sort_unstable();
        live.sort_unstable();
        assert_eq!(ids, live[1..]);
        assert!(streams.get_mut(0).is_none(), "an empty slot is not stream 0");
    }
}
