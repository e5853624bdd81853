//! `corrupt`: one random bit of the IP payload is flipped, as a faulty router or a bad cable with a lucky FCS would;
//! tc-netem(8), `corrupt`, does it anywhere in the packet.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Impair, Impairment, Outcome, WirePacket};
use crate::place::{ConfigError, Place};
use crate::random::Draws;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    probability: f64,
}

pub fn build(fields: Fields, place: Place<'_>) -> Result<Impairment, ConfigError> {
    let probability = place.probability("probability", fields.probability)?;
    Ok(Impairment::Corrupt(Corrupt::new(probability, place.draws)))
}

#[derive(Debug)]
pub struct Corrupt {
    probability: f64,
    draws: Draws,
}

impl Corrupt {
    #[must_use]
    pub fn new(probability: f64, draws: Draws) -> Self {
        Corrupt { probability, draws }
    }
}

impl Impair for Corrupt {
    fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        if self.draws.happens(self.probability, packet.identity, 0) {
            Outcome::Corrupted(self.draws.bits(packet.identity, 1))
        } else {
            Outcome::Pass
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_share, packets};
    use super::*;

    #[test]
    fn damages_the_share_asked_for_at_even_places() {
        let mut corrupt = Corrupt::new(0.05, Draws::new(1, 0, "corrupt", 0));
        let bits: Vec<u64> = packets(500_000, 1000)
            .filter_map(|mut p| if let Outcome::Corrupted(bit) = corrupt.apply(&mut p) { Some(bit) } else { None })
            .collect();
        assert_share(bits.len() as u64, 500_000, 0.05);
        assert_share(bits.iter().filter(|bit| *bit % 8 == 3).count() as u64, bits.len() as u64, 0.125);
    }
}
