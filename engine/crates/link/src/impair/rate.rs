//! `rate`: a link that sends so many bits a second, with a drop-tail queue before it.
//!
//! Every departure follows from a virtual clock at arrival: a packet starts when the one before it has left.

use schemars::JsonSchema;
use serde::Deserialize;

use super::codel::Codel;
use super::queue::{Backlog, Limit};
use super::serializer::Serializer;
use super::{ByKernel, Impair, Impairment, Outcome, WirePacket};
use crate::place::{ConfigError, Place};

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Discipline {
    #[default]
    Droptail,
    Codel,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    bits_per_s: u64,
    #[serde(default)]
    queue_bytes: Option<u64>,
    #[serde(default)]
    queue_packets: Option<u64>,
    #[serde(default)]
    discipline: Discipline,
    /// RFC 8289 section 4.3.
    #[serde(default)]
    target_ns: Option<u64>,
    #[serde(default)]
    interval_ns: Option<u64>,
}

pub fn build(fields: Fields, place: Place<'_>) -> Result<Impairment, ConfigError> {
    if !(1_000..=1_000_000_000_000).contains(&fields.bits_per_s) {
        let message = format!("{} is out of range; give 1000 to 1000000000000", fields.bits_per_s);
        return Err(place.wrong_in("bits_per_s", message));
    }
    let limit = Limit::from_fields(fields.queue_bytes, fields.queue_packets, &place)?;
    if fields.discipline == Discipline::Droptail {
        if fields.target_ns.is_some() || fields.interval_ns.is_some() {
            let message =
                "a droptail queue has no target_ns and interval_ns; set discipline to codel or leave them out";
            return Err(place.wrong(message));
        }
        return Ok(Impairment::Rate(Rate::new(fields.bits_per_s, limit)));
    }
    let target_ns = place.time_ns("target_ns", fields.target_ns.unwrap_or(5_000_000))?;
    let interval_ns = place.time_ns("interval_ns", fields.interval_ns.unwrap_or(100_000_000))?;
    if target_ns == 0 || target_ns >= interval_ns {
        return Err(place.wrong_in("target_ns", "must lie between 0 and interval_ns; make it smaller"));
    }
    Ok(Impairment::Codel(Codel::new(fields.bits_per_s, limit, target_ns, interval_ns)))
}

#[derive(Debug)]
pub struct Rate {
    link: Serializer,
    backlog: Backlog,
}

impl Rate {
    #[must_use]
    pub fn new(bits_per_s: u64, limit: Limit) -> Self {
        Rate { link: Serializer::new(bits_per_s), backlog: Backlog::new(limit) }
    }
}

impl Impair for Rate {
    fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        if !self.backlog.admits(packet.at_ns, packet.bytes) {
            return Outcome::QueueDropped;
        }
        self.link.send(packet);
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
        Some(self.link.bits_per_s())
    }

    fn queue_peak_bytes(&self) -> Option<u64> {
        Some(self.backlog.peak_bytes())
    }

    fn by_kernel(&self) -> Result<ByKernel, &'static str> {
        Ok(ByKernel::Rate { bits_per_s: self.link.bits_per_s(), limit: self.backlog.limit(), codel: None })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::packets;
    use super::*;

    #[test]
    fn a_busy_link_sends_exactly_its_rate() {
        // A rate at which no packet takes a whole number of nanoseconds.
        let mut rate = Rate::new(9_999_999_967, Limit::default());
        let n = 500_000;
        let last = packets(n, 0)
            .map(|mut p| {
                rate.apply(&mut p);
                p.at_ns
            })
            .last()
            .unwrap();
        let exact = (n * 1514 * 8_000_000_000) as u128 / 9_999_999_967;
        assert_eq!(u128::from(last - 1_000_000_000), exact);
    }

    #[test]
    fn an_idle_link_adds_only_the_time_to_send() {
        let mut rate = Rate::new(12_112_000, Limit::default());
        for mut packet in packets(100, 2_000_000) {
            let came = packet.at_ns;
            assert_eq!(rate.apply(&mut packet), Outcome::Pass);
            assert_eq!((packet.at_ns - came, packet.back_to_back), (1_000_000, false));
        }
    }

    #[test]
    fn the_queue_holds_what_it_is_asked_to_hold() {
        let by_bytes = Limit { bytes: Some(3 * 1514 + 100), packets: None };
        let by_packets = Limit { bytes: None, packets: Some(3) };
        for limit in [by_bytes, by_packets] {
            let mut rate = Rate::new(12_112_000, limit); // 1 ms a packet
            let outcomes: Vec<Outcome> = packets(5, 0).map(|mut p| rate.apply(&mut p)).collect();
            assert_eq!(outcomes[..3], [Outcome::Pass; 3]);
            assert_eq!(outcomes[3..], [Outcome::QueueDropped; 2]);
            assert_eq!(rate.queue_peak_bytes(), Some(3 * 1514));
            // The first has left after 1 ms, not before.
            let mut early = packets(1, 0).next().unwrap();
            early.at_ns += 999_999;
            assert_eq!(rate.apply(&mut early), Outcome::QueueDropped);
            let mut in_time = packets(1, 0).next().unwrap();
            in_time.at_ns += 1_000_000;
            assert_eq!(rate.apply(&mut in_time), Outcome::Pass);
            assert!(in_time.back_to_back);
            assert_eq!(in_time.at_ns, 1_000_000_000 + 4_000_000);
        }
    }
}
