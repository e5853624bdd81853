//! `reorder`: with a probability a packet is sent ahead of its time, as tc-netem(8) does, and overtakes those before it.
//!
//! tc-netem sends the chosen packets at once. Here they are at most `gap_ns` early, never before they arrived or left
//! the last queue; a gap of the whole delay before it is tc-netem's behaviour.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Impair, Impairment, Outcome, WirePacket};
use crate::place::{ConfigError, Place};
use crate::random::Draws;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    probability: f64,
    gap_ns: u64,
}

pub fn build(fields: Fields, place: Place<'_>) -> Result<Impairment, ConfigError> {
    let gap_ns = place.time_ns("gap_ns", fields.gap_ns)?;
    let probability = place.probability("probability", fields.probability)?;
    Ok(Impairment::Reorder(Reorder::new(probability, gap_ns, place.draws)))
}

#[derive(Debug)]
pub struct Reorder {
    probability: f64,
    gap_ns: u64,
    draws: Draws,
}

impl Reorder {
    #[must_use]
    pub fn new(probability: f64, gap_ns: u64, draws: Draws) -> Self {
        Reorder { probability, gap_ns, draws }
    }
}

impl Impair for Reorder {
    fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        if !self.draws.happens(self.probability, packet.identity, 0) {
            return Outcome::Pass;
        }
        let ahead_ns = packet.at_ns.saturating_sub(self.gap_ns).max(packet.floor_ns);
        packet.at_ns = ahead_ns;
        Outcome::Marked
    }

    fn breaks_order(&self) -> bool {
        true
    }

    fn overtakes(&self) -> bool {
        true
    }

    fn least_ns(&self, before_ns: u64) -> u64 {
        before_ns.saturating_sub(self.gap_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_share, packets};
    use super::*;

    #[test]
    fn sends_the_share_asked_for_ahead_by_the_gap() {
        let mut reorder = Reorder::new(0.02, 3_000_000, Draws::new(1, 0, "reorder", 0));
        let mut early = 0;
        for mut packet in packets(500_000, 1000) {
            packet.at_ns += 10_000_000;
            let asked = packet.at_ns;
            match reorder.apply(&mut packet) {
                Outcome::Marked => early += u64::from(packet.at_ns == asked - 3_000_000),
                _ => assert_eq!(packet.at_ns, asked),
            }
        }
        assert_share(early, 500_000, 0.02);
    }

    #[test]
    fn never_sends_a_packet_before_it_came() {
        let mut reorder = Reorder::new(1.0, u64::MAX, Draws::new(1, 0, "reorder", 0));
        for mut packet in packets(100, 1000) {
            let came = packet.at_ns;
            packet.at_ns += 500;
            reorder.apply(&mut packet);
            assert_eq!(packet.at_ns, came);
        }
    }
}
