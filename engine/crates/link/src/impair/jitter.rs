//! `jitter`: a random time on top of the delay before it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{ByKernel, Impair, Impairment, Outcome, WirePacket};
use crate::place::{ConfigError, Place};
use crate::random::Draws;

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
pub enum Fields {
    Normal {
        sigma_ns: u64,
        #[serde(default)]
        reorder: bool,
    },
    Uniform {
        range_ns: u64,
        #[serde(default)]
        reorder: bool,
    },
    Pareto {
        scale_ns: u64,
        shape: f64,
        #[serde(default)]
        reorder: bool,
    },
    Table {
        table_ns: Vec<i64>,
        #[serde(default)]
        reorder: bool,
    },
}

pub fn build(fields: Fields, place: Place<'_>) -> Result<Impairment, ConfigError> {
    let (distribution, reorder) = match fields {
        Fields::Normal { sigma_ns, reorder } => {
            (Distribution::Normal { sigma_ns: place.time_ns("sigma_ns", sigma_ns)? as f64 }, reorder)
        }
        Fields::Uniform { range_ns, reorder } => {
            (Distribution::Uniform { range_ns: place.time_ns("range_ns", range_ns)? as f64 }, reorder)
        }
        Fields::Pareto { scale_ns, shape, reorder } => {
            if !(shape > 0.0 && shape <= 1000.0) {
                let message = format!("{shape} is no Pareto shape; give a number above 0, at most 1000");
                return Err(place.wrong_in("shape", message));
            }
            (Distribution::Pareto { scale_ns: place.time_ns("scale_ns", scale_ns)? as f64, shape }, reorder)
        }
        Fields::Table { table_ns, reorder } => {
            if table_ns.is_empty() {
                return Err(place.wrong_in("table_ns", "is empty; give at least one time"));
            }
            for value in &table_ns {
                place.time_ns("table_ns", value.unsigned_abs())?;
            }
            (Distribution::Table { table_ns }, reorder)
        }
    };
    Ok(Impairment::Jitter(Jitter::new(distribution, reorder, place.draws)))
}

/// How the extra time is distributed.
#[derive(Clone, Debug)]
pub enum Distribution {
    /// Mean 0, standard deviation `sigma_ns`.
    Normal { sigma_ns: f64 },
    /// Between `-range_ns` and `range_ns`, as tc-netem(8) without a distribution.
    Uniform { range_ns: f64 },
    /// Pareto of the second kind (Lomax): `scale * (u^(-1/shape) - 1)`, from 0 up with a heavy tail.
    Pareto { scale_ns: f64, shape: f64 },
    /// One of these, each as likely as the others.
    Table { table_ns: Vec<i64> },
}

/// A packet is never sent before it arrived or left the last queue: a longer negative jitter is cut and counted.
#[derive(Debug)]
pub struct Jitter {
    distribution: Distribution,
    reorder: bool,
    draws: Draws,
    last_ns: u64,
    clamped: u64,
}

impl Jitter {
    /// With `reorder` packets may overtake each other; without, one that would waits for the one before it.
    #[must_use]
    pub fn new(distribution: Distribution, reorder: bool, draws: Draws) -> Self {
        Jitter { distribution, reorder, draws, last_ns: 0, clamped: 0 }
    }

    /// How much earlier than without it a packet may be due, in ns; exceeded by 3 in 100,000 normal draws.
    fn most_ahead_ns(&self) -> u64 {
        match &self.distribution {
            Distribution::Normal { sigma_ns } => (4.0 * sigma_ns) as u64,
            Distribution::Uniform { range_ns } => *range_ns as u64,
            Distribution::Pareto { .. } => 0,
            Distribution::Table { table_ns } => {
                table_ns.iter().map(|time| time.min(&0).unsigned_abs()).max().unwrap_or(0)
            }
        }
    }

    fn draw_ns(&self, packet: &WirePacket) -> f64 {
        let unit = || self.draws.unit(packet.identity, 0);
        match &self.distribution {
            Distribution::Normal { sigma_ns } => sigma_ns * self.draws.normal(packet.identity, 0),
            Distribution::Uniform { range_ns } => range_ns * (2.0 * unit() - 1.0),
            Distribution::Pareto { scale_ns, shape } => scale_ns * ((1.0 - unit()).powf(-1.0 / shape) - 1.0),
            Distribution::Table { table_ns } => table_ns[(unit() * table_ns.len() as f64) as usize] as f64,
        }
    }
}

impl Impair for Jitter {
    fn apply(&mut self, packet: &mut WirePacket) -> Outcome {
        /// No draw moves a packet further than this (11 days), so that times stay far from overflow.
        const LIMIT_NS: f64 = 1e15;
        let jitter_ns = self.draw_ns(packet).clamp(-LIMIT_NS, LIMIT_NS) as i64;
        let at_ns = packet.at_ns.saturating_add_signed(jitter_ns);
        if at_ns < packet.floor_ns {
            self.clamped += 1;
        }
        packet.at_ns = at_ns.max(packet.floor_ns);
        if !self.reorder {
            packet.at_ns = packet.at_ns.max(self.last_ns);
            self.last_ns = packet.at_ns;
        }
        Outcome::Pass
    }

    fn breaks_order(&self) -> bool {
        self.reorder
    }

    fn needs_order(&self) -> bool {
        !self.reorder
    }

    fn delays(&self) -> bool {
        true
    }

    fn can_be_overtaken(&self) -> bool {
        true
    }

    fn least_ns(&self, before_ns: u64) -> u64 {
        before_ns.saturating_sub(self.most_ahead_ns())
    }

    fn clamped(&self) -> u64 {
        self.clamped
    }

    fn by_kernel(&self) -> Result<ByKernel, &'static str> {
        if !self.reorder {
            return Err("of netem reorders packets; set reorder: true");
        }
        match self.distribution {
            Distribution::Normal { sigma_ns } => {
                Ok(ByKernel::Jitter { jitter_ns: sigma_ns as u64, distribution: " distribution normal" })
            }
            Distribution::Uniform { range_ns } => Ok(ByKernel::Jitter { jitter_ns: range_ns as u64, distribution: "" }),
            _ => Err("of netem has no such distribution; use normal or uniform"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{mean, packets};
    use super::*;

    fn delays(distribution: Distribution, n: u64) -> Vec<f64> {
        let mut jitter = Jitter::new(distribution, true, Draws::new(3, 0, "jitter", 0));
        packets(n, 1_000_000)
            .map(|mut packet| {
                packet.at_ns += 1_000_000_000;
                let asked = packet.at_ns;
                assert_eq!(jitter.apply(&mut packet), Outcome::Pass);
                packet.at_ns as f64 - asked as f64
            })
            .collect()
    }

    #[test]
    fn normal_has_the_mean_and_deviation_asked_for() {
        let delays = delays(Distribution::Normal { sigma_ns: 2e6 }, 100_000);
        let centre = mean(&delays);
        let sigma = (delays.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / delays.len() as f64).sqrt();
        assert!(centre.abs() < 3.29 * 2e6 / 100_000f64.sqrt(), "mean {centre}");
        assert!((sigma / 2e6 - 1.0).abs() < 3.29 / 200_000f64.sqrt(), "sigma {sigma}");
    }

    #[test]
    fn uniform_fills_its_range_evenly() {
        let delays = delays(Distribution::Uniform { range_ns: 1e6 }, 100_000);
        assert!(delays.iter().all(|x| (-1e6..=1e6).contains(x)));
        let inner = delays.iter().filter(|x| x.abs() < 0.5e6).count() as f64;
        assert!((inner / 1e5 - 0.5).abs() < 3.29 * (0.25f64 / 1e5).sqrt(), "{inner} of 100000 in the inner half");
    }

    #[test]
    fn pareto_has_the_tail_asked_for() {
        let delays = delays(Distribution::Pareto { scale_ns: 1e6, shape: 3.0 }, 100_000);
        // P(X > scale) = 2^-shape
        let beyond = delays.iter().filter(|x| **x > 1e6).count() as f64 / 1e5;
        assert!((beyond - 0.125).abs() < 3.29 * (0.125f64 * 0.875 / 1e5).sqrt(), "{beyond}");
        assert!(delays.iter().all(|x| *x >= 0.0));
    }

    #[test]
    fn table_uses_every_entry() {
        let delays = delays(Distribution::Table { table_ns: vec![-5, 0, 7] }, 30_000);
        for entry in [-5.0, 0.0, 7.0] {
            let share = delays.iter().filter(|x| **x == entry).count() as f64 / 3e4;
            assert!((share - 1.0 / 3.0).abs() < 3.29 * (2.0 / 9.0 / 3e4f64).sqrt(), "{entry}: {share}");
        }
    }

    #[test]
    fn without_reorder_no_packet_overtakes_and_none_leaves_before_it_came() {
        let mut jitter = Jitter::new(Distribution::Normal { sigma_ns: 5e6 }, false, Draws::new(3, 0, "jitter", 0));
        let mut last = 0;
        for mut packet in packets(10_000, 100_000) {
            let came = packet.at_ns;
            jitter.apply(&mut packet);
            assert!(packet.at_ns >= last && packet.at_ns >= came);
            last = packet.at_ns;
        }
        assert!(jitter.clamped() > 1_000, "half of the draws are negative without a delay before");
    }
}
