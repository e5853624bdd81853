//! Requests in flight on a connection, by stream.

use bytes::Bytes;
use trifecta_wire::h3::MessageReader;
use trifecta_wire::quic::StreamMap;

use crate::caller::Exchange;
use crate::content::Body;

/// A request in flight.
pub(super) struct Flight {
    pub exchange: Exchange,
    pub reader: MessageReader,
    /// `content-length` of the final response.
    pub content_length: Option<u64>,
    /// HEADERS frame and the header of the DATA frame, as far as they are still to be written.
    pub head: Bytes,
    pub body: Body,
    /// Octets of request content that are still to be written.
    pub body_left: u64,
}

/// Requests in flight. Nothing is allocated once as many were in flight as ever are.
pub(super) struct Flights {
    by_stream: StreamMap<Flight>,
}

impl Flights {
    pub fn new(expected: u32) -> Self {
        Self { by_stream: StreamMap::with_capacity_and_hasher(expected.min(4096) as usize, Default::default()) }
    }

    pub fn len(&self) -> u32 {
        self.by_stream.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.by_stream.is_empty()
    }

    pub fn insert(&mut self, id: u64, flight: Flight) {
        self.by_stream.insert(id, flight);
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut Flight> {
        self.by_stream.get_mut(&id)
    }

    pub fn remove(&mut self, id: u64) -> Option<Flight> {
        self.by_stream.remove(&id)
    }

    pub fn for_each(&mut self, mut visit: impl FnMut(&mut Flight)) {
        self.by_stream.values_mut().for_each(&mut visit);
    }

    /// Removes all, in the order of their streams.
    pub fn drain(&mut self, mut visit: impl FnMut(u64, Flight)) {
        let mut all: Vec<(u64, Flight)> = self.by_stream.drain().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        for (id, flight) in all {
            visit(id, flight);
        }
    }

    /// Removes all and keeps only what was asked, to ask it again on other streams.
    pub fn take_exchanges(&mut self) -> Vec<Exchange> {
        let mut all = Vec::new();
        self.drain(|_, flight| all.push(Exchange { bytes_out: 0, request_sent_ns: 0, ..flight.exchange }));
        all
    }

    /// Streams of the requests that `wanted` picks, in order.
    pub fn select(&self, wanted: impl Fn(u64, &Flight) -> bool) -> Vec<u64> {
        let mut ids: Vec<u64> =
            self.by_stream.iter().filter(|(id, flight)| wanted(**id, flight)).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }

    /// The earliest start of a request in flight.
    pub fn earliest_start_ns(&self) -> Option<u64> {
        self.by_stream.values().map(|flight| flight.exchange.started_ns).min()
    }
}
