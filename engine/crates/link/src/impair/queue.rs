//! The queue before a link of limited rate, whose departures are known at arrival: a packet counts until its last octet
//! has left.

use std::collections::VecDeque;

use crate::place::{ConfigError, Place};

/// How much fits: nothing is taken in that would go beyond a given limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    pub bytes: Option<u64>,
    pub packets: Option<u64>,
}

impl Limit {
    /// From the fields `queue_bytes` and `queue_packets`.
    pub fn from_fields(bytes: Option<u64>, packets: Option<u64>, place: &Place<'_>) -> Result<Self, ConfigError> {
        for (name, value) in [("queue_bytes", bytes), ("queue_packets", packets)] {
            if value == Some(0) {
                let message = "is 0, so nothing would pass; give more, or leave it out for no limit";
                return Err(place.wrong_in(name, message));
            }
        }
        Ok(Limit { bytes, packets })
    }

    /// Whether a packet still fits behind a backlog.
    #[must_use]
    pub fn admits(&self, backlog_bytes: u64, backlog_packets: usize, bytes: u32) -> bool {
        self.bytes.is_none_or(|limit| backlog_bytes + u64::from(bytes) <= limit)
            && self.packets.is_none_or(|limit| (backlog_packets as u64) < limit)
    }
}

/// Packets that have not left yet.
#[derive(Debug, Default)]
pub struct Backlog {
    limit: Limit,
    departures: VecDeque<(u64, u32)>,
    bytes: u64,
    peak_bytes: u64,
}

impl Backlog {
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Backlog { limit, ..Backlog::default() }
    }

    #[must_use]
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// Forgets what has left by now and says whether another packet fits.
    pub fn admits(&mut self, now_ns: u64, bytes: u32) -> bool {
        while let Some((_, gone)) = self.departures.pop_front_if(|(leaves_ns, _)| *leaves_ns <= now_ns) {
            self.bytes -= u64::from(gone);
        }
        self.limit.admits(self.bytes, self.departures.len(), bytes)
    }

    pub fn push(&mut self, leaves_ns: u64, bytes: u32) {
        self.departures.push_back((leaves_ns, bytes));
        self.bytes += u64::from(bytes);
        self.peak_bytes = self.peak_bytes.max(self.bytes);
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.departures.is_empty()
    }

    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }
}
