//! `delay`: every packet takes the same time.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ByKernel, Impair, Impairment, Outcome, WirePacket};
use crate::place::{ConfigError, Place};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    delay_ns: u64,
}

pub fn build(fields: Fields, place: Place<'_>) -> Result<Impairment, ConfigError> {
    Ok(Impairment::Delay(Delay::new(place.time_ns("delay_ns", fields.delay_ns)?)))
}

#[derive(Debug)]
pub struct Delay {
    delay_ns: u64,
}

impl Delay {
    #[must_use]
    pub fn new(delay_ns: u64) -> Self {
        Delay { delay_ns }
    }
}

impl Impair for Delay {
    fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        packet.at_ns += self.delay_ns;
        Outcome::Pass
    }

    fn delays(&self) -> bool {
        true
    }

    fn can_be_overtaken(&self) -> bool {
        true
    }

    fn least_ns(&self, before_ns: u64) -> u64 {
        before_ns + self.delay_ns
    }

    fn delay_asked_ns(&self) -> u64 {
        self.delay_ns
    }

    fn by_kernel(&self) -> Result<ByKernel, &'static str> {
        Ok(ByKernel::Delay { delay_ns: self.delay_ns })
    }
}
