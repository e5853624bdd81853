//! `duplicate`: a copy follows the packet; both meet the impairments after this one, each with draws of its own. So
//! they do in tc-netem(8), which duplicates a packet "before queuing".

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
    Ok(Impairment::Duplicate(Duplicate::new(probability, place.draws)))
}

#[derive(Debug)]
pub struct Duplicate {
    probability: f64,
    draws: Draws,
}

impl Duplicate {
    #[must_use]
    pub fn new(probability: f64, draws: Draws) -> Self {
        Duplicate { probability, draws }
    }
}

impl Impair for Duplicate {
    fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        if self.draws.happens(self.probability, packet.identity, 0) { Outcome::Duplicated } else { Outcome::Pass }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_share, packets};
    use super::*;

    #[test]
    fn copies_the_share_asked_for() {
        let mut duplicate = Duplicate::new(0.01, Draws::new(1, 0, "duplicate", 0));
        let copies = packets(500_000, 1000)
            .filter_map(|mut p| (duplicate.apply(&mut p) == Outcome::Duplicated).then_some(()))
            .count();
        assert_share(copies as u64, 500_000, 0.01);
    }
}
