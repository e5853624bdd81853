//! `gilbert_elliott`: loss in bursts, from a channel with a good and a bad state (Gilbert 1960, Elliott 1963).
//!
//! A packet is lost with the probability of the state it meets; then the state may change. The first state is drawn
//! from the stationary distribution, so that the expected loss is the same from the first packet on.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ByKernel, Impair, Impairment, Outcome, WirePacket};
use crate::place::{ConfigError, Place};
use crate::random::{Draws, Identity};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    good_to_bad: f64,
    bad_to_good: f64,
    #[serde(default)]
    loss_good: f64,
    #[serde(default = "certain")]
    loss_bad: f64,
}

fn certain() -> f64 {
    1.0
}

pub fn build(fields: Fields, place: Place<'_>) -> Result<Impairment, ConfigError> {
    let channel = Channel {
        good_to_bad: place.probability("good_to_bad", fields.good_to_bad)?,
        bad_to_good: place.probability("bad_to_good", fields.bad_to_good)?,
        loss_good: place.probability("loss_good", fields.loss_good)?,
        loss_bad: place.probability("loss_bad", fields.loss_bad)?,
    };
    Ok(Impairment::GilbertElliott(GilbertElliott::new(channel, place.draws)))
}

/// Probabilities, each for one packet.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    pub good_to_bad: f64,
    pub bad_to_good: f64,
    pub loss_good: f64,
    pub loss_bad: f64,
}

impl Channel {
    /// Long-run share of packets that meet the bad state.
    #[must_use]
    pub fn bad_share(&self) -> f64 {
        let changes = self.good_to_bad + self.bad_to_good;
        if changes == 0.0 { 0.0 } else { self.good_to_bad / changes }
    }

    /// Long-run share of packets that are lost.
    #[must_use]
    pub fn loss(&self) -> f64 {
        let bad = self.bad_share();
        bad * self.loss_bad + (1.0 - bad) * self.loss_good
    }
}

#[derive(Debug)]
pub struct GilbertElliott {
    channel: Channel,
    draws: Draws,
    bad: bool,
}

impl GilbertElliott {
    #[must_use]
    pub fn new(channel: Channel, draws: Draws) -> Self {
        let before_all = Identity { ordinal: u64::MAX, copy: 0 };
        let bad = draws.happens(channel.bad_share(), before_all, 0);
        GilbertElliott { channel, draws, bad }
    }
}

impl Impair for GilbertElliott {
    fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        let channel = self.channel;
        let (loss, change) =
            if self.bad { (channel.loss_bad, channel.bad_to_good) } else { (channel.loss_good, channel.good_to_bad) };
        let lost = self.draws.happens(loss, packet.identity, 0);
        if self.draws.happens(change, packet.identity, 1) {
            self.bad = !self.bad;
        }
        if lost { Outcome::Lost } else { Outcome::Pass }
    }

    fn needs_order(&self) -> bool {
        true
    }

    fn loss_asked(&self, _met: u64) -> f64 {
        self.channel.loss()
    }

    fn by_kernel(&self) -> Result<ByKernel, &'static str> {
        let Channel { good_to_bad, bad_to_good, loss_good, loss_bad } = self.channel;
        // tc-netem(8), `loss gemodel p r 1-h 1-k`: "1-h is the loss probability in the bad state and 1-k is the loss
        // probability in the good state".
        let [p, r, in_bad, in_good] = [good_to_bad, bad_to_good, loss_bad, loss_good].map(|share| 100.0 * share);
        Ok(ByKernel::Loss(format!("loss gemodel {p}% {r}% {in_bad}% {in_good}%")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_share, packets};
    use super::*;

    const CHANNEL: Channel = Channel { good_to_bad: 0.01, bad_to_good: 0.25, loss_good: 0.001, loss_bad: 0.7 };

    #[test]
    fn loses_the_long_run_share_in_bursts_of_the_length_asked_for() {
        let channel = Channel { loss_good: 0.0, loss_bad: 1.0, ..CHANNEL };
        let mut loss = GilbertElliott::new(channel, Draws::new(5, 0, "gilbert_elliott", 0));
        let fates: Vec<bool> = packets(500_000, 1000).map(|mut p| loss.apply(&mut p) == Outcome::Lost).collect();
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as u64;
        let lost = fates.iter().filter(|lost| **lost).count() as u64;
        // With certain loss in the bad state only, changes of state are visible, and each is a Bernoulli trial.
        assert_share(bursts, 500_000 - lost, 0.01);
        assert_share(fates.windows(2).filter(|pair| pair[0] && !pair[1]).count() as u64, lost, 0.25);
    }

    /// How much the variance of the number of losses exceeds the binomial one, in the long run: from the
    /// autocovariance of a two-state chain, which decays by `1 - good_to_bad - bad_to_good` a packet.
    fn variance_inflation(channel: &Channel) -> f64 {
        let (bad, loss) = (channel.bad_share(), channel.loss());
        let changes = channel.good_to_bad + channel.bad_to_good;
        let between_states = bad * (1.0 - bad) * (channel.loss_bad - channel.loss_good).powi(2);
        1.0 + 2.0 * between_states * (1.0 - changes) / changes / (loss * (1.0 - loss))
    }

    #[test]
    fn variance_of_the_loss_is_the_stated_one() {
        let runs = 400;
        let length = 5_000;
        let mut squares = 0.0;
        let mut total = 0;
        for seed in 0..runs {
            let mut loss = GilbertElliott::new(CHANNEL, Draws::new(seed, 0, "gilbert_elliott", 0));
            let lost =
                packets(length, 1000).filter_map(|mut p| (loss.apply(&mut p) == Outcome::Lost).then_some(())).count();
            total += lost;
            squares += (lost as f64 - length as f64 * CHANNEL.loss()).powi(2);
        }
        let binomial = length as f64 * CHANNEL.loss() * (1.0 - CHANNEL.loss());
        let variance = squares / runs as f64;
        let ratio = variance / (binomial * variance_inflation(&CHANNEL));
        assert!((ratio - 1.0).abs() < 3.29 * (2.0 / runs as f64).sqrt(), "variance is {ratio} times the stated one");
        let mean = total as f64 / (runs * length) as f64;
        let error = (binomial * variance_inflation(&CHANNEL) * runs as f64).sqrt() / (runs * length) as f64;
        assert!((mean - CHANNEL.loss()).abs() < 3.29 * error, "mean loss {mean}, asked {}", CHANNEL.loss());
    }

    #[test]
    fn netem_is_told_of_the_chances_to_lose_in_the_bad_and_in_the_good_state() {
        let channel = Channel { good_to_bad: 0.01, bad_to_good: 0.25, loss_good: 0.0, loss_bad: 0.5 };
        let told = GilbertElliott::new(channel, Draws::new(1, 0, "gilbert_elliott", 0)).by_kernel();
        assert_eq!(told, Ok(ByKernel::Loss("loss gemodel 1% 25% 50% 0%".to_owned())));
    }
}
