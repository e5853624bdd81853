//! `loss`: each packet is lost with the same probability, whatever happened to the others: `loss random` of tc-netem(8)
//! without its correlation.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ByKernel, Impair, Impairment, Outcome, WirePacket};
use crate::place::{ConfigError, Place};
use crate::random::Draws;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    probability: f64,
}

pub fn build(fields: Fields, place: Place<'_>) -> Result<Impairment, ConfigError> {
    let probability = place.probability("probability", fields.probability)?;
    Ok(Impairment::Loss(Loss::new(probability, place.draws)))
}

#[derive(Debug)]
pub struct Loss {
    probability: f64,
    draws: Draws,
}

impl Loss {
    #[must_use]
    pub fn new(probability: f64, draws: Draws) -> Self {
        Loss { probability, draws }
    }
}

impl Impair for Loss {
    fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        if self.draws.happens(self.probability, packet.identity, 0) { Outcome::Lost } else { Outcome::Pass }
    }

    fn loss_asked(&self, _met: u64) -> f64 {
        self.probability
    }

    fn by_kernel(&self) -> Result<ByKernel, &'static str> {
        Ok(ByKernel::Loss(format!("loss {}%", 100.0 * self.probability)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_share, packets};
    use super::*;

    #[test]
    fn loses_the_share_asked_for() {
        for (seed, probability) in [(1, 0.0), (2, 0.0001), (3, 0.02), (4, 0.5), (5, 1.0)] {
            let mut loss = Loss::new(probability, Draws::new(seed, 0, "loss", 0));
            let lost =
                packets(500_000, 1000).filter_map(|mut p| (loss.apply(&mut p) == Outcome::Lost).then_some(())).count();
            assert_share(lost as u64, 500_000, probability);
        }
    }

    #[test]
    fn losses_are_independent_of_each_other() {
        let mut loss = Loss::new(0.1, Draws::new(9, 0, "loss", 0));
        let fates: Vec<bool> = packets(500_000, 1000).map(|mut p| loss.apply(&mut p) == Outcome::Lost).collect();
        let after_loss = fates.windows(2).filter(|pair| pair[0]).count() as u64;
        let both = fates.windows(2).filter(|pair| pair[0] && pair[1]).count() as u64;
        assert_share(both, after_loss, 0.1);
    }
}
