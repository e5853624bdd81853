//! `delay`: every packet takes the same time.

use super::{Outcome, WirePacket};

#[derive(Debug)]
pub struct Delay {
    delay_ns: u64,
}

impl Delay {
    #[must_use]
    pub fn new(delay_ns: u64) -> Self {
        Delay { delay_ns }
    }

    #[must_use]
    pub fn delay_ns(&self) -> u64 {
        self.delay_ns
    }

    pub fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        packet.at_ns += self.delay_ns;
        Outcome::Pass
    }
}
