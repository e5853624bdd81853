//! `trace`: a link that sends at the times of a recorded trace, in the text format of mahimahi's mm-link(1).
//!
//! Each time, in ms from the start, is an opportunity to send one full-size frame's worth of octets. Several small
//! packets share one, a packet may need several, and what is not used while the queue is empty is gone. After the last
//! time the trace starts again.

use schemars::JsonSchema;
use serde::Deserialize;

use super::queue::{Backlog, Limit};
use super::{Impair, Impairment, Outcome, WirePacket};
use crate::place::{ConfigError, MAX_TIME_NS, Place};

/// A full-size Ethernet frame at MTU 1500, without FCS.
const OPPORTUNITY_BYTES: u32 = 1514;
const MS: u64 = 1_000_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    opportunities_ms: Vec<u64>,
    #[serde(default)]
    queue_bytes: Option<u64>,
    #[serde(default)]
    queue_packets: Option<u64>,
}

pub fn build(fields: Fields, place: Place<'_>) -> Result<Impairment, ConfigError> {
    let times = fields.opportunities_ms;
    let problem = match times.last() {
        None => Some("is empty; give at least one time in ms"),
        Some(0) => Some("ends at 0 ms and could not repeat; let it end later"),
        Some(last) if *last > MAX_TIME_NS / MS => Some("is longer than an hour; check the unit"),
        Some(_) if !times.is_sorted() => Some("goes back in time; sort it"),
        Some(_) => None,
    };
    if let Some(problem) = problem {
        return Err(place.wrong_in("opportunities_ms", problem));
    }
    let limit = Limit::from_fields(fields.queue_bytes, fields.queue_packets, &place)?;
    Ok(Impairment::Trace(Trace::new(times, limit, place.start_ns)))
}

#[derive(Debug)]
pub struct Trace {
    opportunities_ms: Vec<u64>,
    start_ns: u64,
    /// Number of the next opportunity since the start.
    next: u64,
    /// When the last opportunity taken was, and the octets of it not used yet.
    current_ns: u64,
    left_bytes: u32,
    backlog: Backlog,
}

impl Trace {
    /// The times do not decrease and the last is above 0; the trace starts at `start_ns`.
    #[must_use]
    pub fn new(opportunities_ms: Vec<u64>, limit: Limit, start_ns: u64) -> Self {
        Trace { opportunities_ms, start_ns, next: 0, current_ns: start_ns, left_bytes: 0, backlog: Backlog::new(limit) }
    }

    fn period_ns(&self) -> u64 {
        self.opportunities_ms.last().map_or(1, |last| last * MS)
    }

    /// Mean rate in bits per second when every opportunity is used.
    #[must_use]
    pub fn mean_bits_per_s(&self) -> u64 {
        let bits = self.opportunities_ms.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8;
        (bits * 1_000_000_000 / u128::from(self.period_ns())) as u64
    }

    fn time_of(&self, opportunity: u64) -> u64 {
        let per_period = self.opportunities_ms.len() as u64;
        let (period, index) = (opportunity / per_period, opportunity % per_period);
        self.start_ns + period * self.period_ns() + self.opportunities_ms[index as usize] * MS
    }

    /// The first opportunity at `at_ns` or later.
    fn first_from(&self, at_ns: u64) -> u64 {
        let since_ns = at_ns.saturating_sub(self.start_ns);
        let period = (since_ns / self.period_ns()).saturating_sub(1);
        let mut opportunity = period * self.opportunities_ms.len() as u64;
        let mut step = self.opportunities_ms.len() as u64 * 2;
        // Binary search: times do not decrease.
        while step > 0 {
            if self.time_of(opportunity + step - 1) < at_ns { opportunity += step } else { step /= 2 }
        }
        opportunity
    }
}

impl Impair for Trace {
    fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        if !self.backlog.admits(packet.at_ns, packet.bytes) {
            return Outcome::QueueDropped;
        }
        packet.back_to_back = !self.backlog.is_empty();
        if self.backlog.is_empty() {
            self.left_bytes = 0;
            self.next = self.next.max(self.first_from(packet.at_ns));
        }
        let mut missing = packet.bytes;
        while missing > self.left_bytes {
            missing -= self.left_bytes;
            self.left_bytes = OPPORTUNITY_BYTES;
            self.current_ns = self.time_of(self.next);
            self.next += 1;
        }
        self.left_bytes -= missing;
        packet.at_ns = self.current_ns;
        packet.floor_ns = self.current_ns;
        self.backlog.push(packet.at_ns, packet.bytes);
        Outcome::Pass
    }

    fn needs_order(&self) -> bool {
        true
    }

    fn delays(&self) -> bool {
        true
    }

    fn rate_asked_bits_per_s(&self) -> Option<u64> {
        Some(self.mean_bits_per_s())
    }

    fn queue_peak_bytes(&self) -> Option<u64> {
        Some(self.backlog.peak_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::packets;
    use super::*;

    const START: u64 = 1_000_000_000;

    fn departures(trace: &mut Trace, arrivals: impl Iterator<Item = WirePacket>) -> Vec<u64> {
        let mut times = vec![];
        for mut packet in arrivals {
            if trace.apply(&mut packet) == Outcome::Pass {
                times.push((packet.at_ns - START) / MS);
            }
        }
        times
    }

    #[test]
    fn full_packets_leave_at_the_opportunities_of_a_repeating_trace() {
        let mut trace = Trace::new(vec![1, 1, 5, 10], Limit::default(), START);
        assert_eq!(departures(&mut trace, packets(10, 0)), [1, 1, 5, 10, 11, 11, 15, 20, 21, 21]);
        assert_eq!(trace.mean_bits_per_s(), 4 * 1514 * 8 * 100);
    }

    #[test]
    fn opportunities_pass_unused_while_the_queue_is_empty() {
        let mut trace = Trace::new(vec![1, 2, 3], Limit::default(), START);
        let late = packets(2, 0).map(|mut p| {
            p.at_ns += 1_000_000_500;
            p
        });
        // 1000.0005 ms: the next opportunities are at 1000 + ...: periods of 3 ms, so 1001 and 1002.
        assert_eq!(departures(&mut trace, late), [1001, 1002]);
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_need_several() {
        let mut trace = Trace::new(vec![10], Limit::default(), START);
        let sized = |sizes: &'static [u32]| {
            packets(sizes.len() as u64, 0).zip(sizes).map(|(p, bytes)| WirePacket { bytes: *bytes, ..p })
        };
        assert_eq!(departures(&mut trace, sized(&[700, 700, 700, 3028, 1])), [10, 10, 20, 40, 40]);
    }

    #[test]
    fn what_does_not_fit_is_dropped() {
        let mut trace = Trace::new(vec![10], Limit { bytes: Some(3028), packets: None }, START);
        assert_eq!(departures(&mut trace, packets(5, 0)), [10, 20]);
        assert_eq!(trace.queue_peak_bytes(), Some(3028));
    }
}
