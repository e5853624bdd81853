//! `loss_schedule`: exactly these packets are lost, counted from 0 in the order they arrived. Duplicates are spared.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Impair, Impairment, Outcome, WirePacket};
use crate::place::{ConfigError, Place};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    drop: Vec<u64>,
}

pub fn build(fields: Fields, _place: Place<'_>) -> Result<Impairment, ConfigError> {
    Ok(Impairment::LossSchedule(LossSchedule::new(fields.drop)))
}

#[derive(Debug)]
pub struct LossSchedule {
    drop: Vec<u64>,
}

impl LossSchedule {
    #[must_use]
    pub fn new(mut drop: Vec<u64>) -> Self {
        drop.sort_unstable();
        drop.dedup();
        LossSchedule { drop }
    }

    /// How many of the first `packets` are to be lost.
    #[must_use]
    pub fn asked(&self, packets: u64) -> u64 {
        self.drop.partition_point(|ordinal| *ordinal < packets) as u64
    }
}

impl Impair for LossSchedule {
    fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        let listed = packet.identity.copy == 0 && self.drop.binary_search(&packet.identity.ordinal).is_ok();
        if listed { Outcome::Lost } else { Outcome::Pass }
    }

    fn loss_asked(&self, met: u64) -> f64 {
        if met == 0 { 0.0 } else { self.asked(met) as f64 / met as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::packets;
    use super::*;

    #[test]
    fn loses_exactly_what_is_listed() {
        let mut schedule = LossSchedule::new(vec![7, 0, 3, 3, 1000]);
        let lost: Vec<u64> = packets(100, 1000)
            .filter_map(|mut p| (schedule.apply(&mut p) == Outcome::Lost).then_some(p.identity.ordinal))
            .collect();
        assert_eq!(lost, [0, 3, 7]);
        assert_eq!(schedule.asked(100), 3);
        assert_eq!(schedule.asked(3), 1);
    }
}
