//! `duplicate`: a copy follows the packet; both meet the impairments after this one, each with draws of its own.

use super::{Outcome, WirePacket};
use crate::random::Draws;

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

    pub fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
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
