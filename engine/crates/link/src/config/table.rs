//! The table of impairments: the fields of each kind, their limits, and what is built from them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{ConfigError, Spec};
use crate::impair::Impairment;
use crate::impair::codel::Codel;
use crate::impair::corrupt::Corrupt;
use crate::impair::delay::Delay;
use crate::impair::duplicate::Duplicate;
use crate::impair::gilbert_elliott::{Channel, GilbertElliott};
use crate::impair::jitter::{Distribution, Jitter};
use crate::impair::loss::Loss;
use crate::impair::loss_schedule::LossSchedule;
use crate::impair::queue::Limit;
use crate::impair::rate::Rate;
use crate::impair::reorder::Reorder;
use crate::impair::trace::Trace;
use crate::random::Draws;

/// No delay is longer (an hour): a longer one is a mistake in the unit.
const MAX_TIME_NS: u64 = 3_600_000_000_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DelayFields {
    delay_ns: u64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum JitterFields {
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

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProbabilityFields {
    probability: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GilbertElliottFields {
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

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LossScheduleFields {
    drop: Vec<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReorderFields {
    probability: f64,
    gap_ns: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Discipline {
    #[default]
    Droptail,
    Codel,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RateFields {
    bits_per_s: u64,
    #[serde(default)]
    queue_bytes: Option<u64>,
    #[serde(default)]
    queue_packets: Option<u64>,
    #[serde(default)]
    discipline: Discipline,
    /// RFC 8289 section 4.3.
    #[serde(default)]
    target_ns: Option<u64>,
    #[serde(default)]
    interval_ns: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TraceFields {
    opportunities_ms: Vec<u64>,
    #[serde(default)]
    queue_bytes: Option<u64>,
    #[serde(default)]
    queue_packets: Option<u64>,
}

/// An impairment as a document has it; for the schema, since messages about its fields name their place in the list.
#[derive(JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(dead_code, reason = "only its schema is wanted")]
pub(super) enum Form {
    Delay(DelayFields),
    Jitter(JitterFields),
    Loss(ProbabilityFields),
    GilbertElliott(GilbertElliottFields),
    LossSchedule(LossScheduleFields),
    Corrupt(ProbabilityFields),
    Duplicate(ProbabilityFields),
    Reorder(ReorderFields),
    Rate(RateFields),
    Trace(TraceFields),
}

/// For messages.
pub(super) const KINDS: &str =
    "delay, jitter, loss, gilbert_elliott, loss_schedule, corrupt, duplicate, reorder, rate, trace";

fn fields<T: DeserializeOwned>(field: &str, spec: &Spec) -> Result<T, ConfigError> {
    serde_json::from_value(spec.document.clone()).map_err(|error| {
        ConfigError::new(field, format!("{}: {error}; see docs/architecture.md, section 1.3", spec.kind))
    })
}

/// The table of impairments.
pub(super) fn build(field: &str, spec: &Spec, draws: Draws, start_ns: u64) -> Result<Impairment, ConfigError> {
    let probability_of = || {
        let fields: ProbabilityFields = fields(field, spec)?;
        probability(field, "probability", fields.probability)
    };
    Ok(match spec.kind.as_str() {
        "delay" => {
            Impairment::Delay(Delay::new(time(field, "delay_ns", fields::<DelayFields>(field, spec)?.delay_ns)?))
        }
        "jitter" => Impairment::Jitter(jitter(field, fields(field, spec)?, draws)?),
        "loss" => Impairment::Loss(Loss::new(probability_of()?, draws)),
        "gilbert_elliott" => {
            let fields: GilbertElliottFields = fields(field, spec)?;
            let channel = Channel {
                good_to_bad: probability(field, "good_to_bad", fields.good_to_bad)?,
                bad_to_good: probability(field, "bad_to_good", fields.bad_to_good)?,
                loss_good: probability(field, "loss_good", fields.loss_good)?,
                loss_bad: probability(field, "loss_bad", fields.loss_bad)?,
            };
            Impairment::GilbertElliott(GilbertElliott::new(channel, draws))
        }
        "loss_schedule" => Impairment::LossSchedule(LossSchedule::new(fields::<LossScheduleFields>(field, spec)?.drop)),
        "corrupt" => Impairment::Corrupt(Corrupt::new(probability_of()?, draws)),
        "duplicate" => Impairment::Duplicate(Duplicate::new(probability_of()?, draws)),
        "reorder" => {
            let fields: ReorderFields = fields(field, spec)?;
            let gap_ns = time(field, "gap_ns", fields.gap_ns)?;
            Impairment::Reorder(Reorder::new(probability(field, "probability", fields.probability)?, gap_ns, draws))
        }
        "rate" => rate(field, &fields(field, spec)?)?,
        "trace" => trace(field, fields(field, spec)?, start_ns)?,
        other => {
            return Err(ConfigError::new(format!("{field}.kind"), format!("unknown '{other}'; use one of {KINDS}")));
        }
    })
}

fn probability(field: &str, name: &str, value: f64) -> Result<f64, ConfigError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(ConfigError::new(format!("{field}.{name}"), format!("{value} is no probability; give 0 to 1")))
}

fn time(field: &str, name: &str, value_ns: u64) -> Result<u64, ConfigError> {
    if value_ns <= MAX_TIME_NS {
        return Ok(value_ns);
    }
    Err(ConfigError::new(format!("{field}.{name}"), format!("{value_ns} ns is more than an hour; check the unit")))
}

fn jitter(field: &str, fields: JitterFields, draws: Draws) -> Result<Jitter, ConfigError> {
    let (distribution, reorder) = match fields {
        JitterFields::Normal { sigma_ns, reorder } => {
            (Distribution::Normal { sigma_ns: time(field, "sigma_ns", sigma_ns)? as f64 }, reorder)
        }
        JitterFields::Uniform { range_ns, reorder } => {
            (Distribution::Uniform { range_ns: time(field, "range_ns", range_ns)? as f64 }, reorder)
        }
        JitterFields::Pareto { scale_ns, shape, reorder } => {
            if !(shape > 0.0 && shape <= 1000.0) {
                let message = format!("{shape} is no Pareto shape; give a number above 0, at most 1000");
                return Err(ConfigError::new(format!("{field}.shape"), message));
            }
            (Distribution::Pareto { scale_ns: time(field, "scale_ns", scale_ns)? as f64, shape }, reorder)
        }
        JitterFields::Table { table_ns, reorder } => {
            if table_ns.is_empty() {
                return Err(ConfigError::new(format!("{field}.table_ns"), "is empty; give at least one time"));
            }
            for value in &table_ns {
                time(field, "table_ns", value.unsigned_abs())?;
            }
            (Distribution::Table { table_ns }, reorder)
        }
    };
    Ok(Jitter::new(distribution, reorder, draws))
}

fn limit(field: &str, bytes: Option<u64>, packets: Option<u64>) -> Result<Limit, ConfigError> {
    for (name, value) in [("queue_bytes", bytes), ("queue_packets", packets)] {
        if value == Some(0) {
            let message = "is 0, so nothing would pass; give more, or leave it out for no limit";
            return Err(ConfigError::new(format!("{field}.{name}"), message));
        }
    }
    Ok(Limit { bytes, packets })
}

fn rate(field: &str, fields: &RateFields) -> Result<Impairment, ConfigError> {
    if !(1_000..=1_000_000_000_000).contains(&fields.bits_per_s) {
        let message = format!("{} is out of range; give 1000 to 1000000000000", fields.bits_per_s);
        return Err(ConfigError::new(format!("{field}.bits_per_s"), message));
    }
    let limit = limit(field, fields.queue_bytes, fields.queue_packets)?;
    if fields.discipline == Discipline::Droptail {
        if fields.target_ns.is_some() || fields.interval_ns.is_some() {
            let message =
                "a droptail queue has no target_ns and interval_ns; set discipline to codel or leave them out";
            return Err(ConfigError::new(field, message));
        }
        return Ok(Impairment::Rate(Rate::new(fields.bits_per_s, limit)));
    }
    let target_ns = time(field, "target_ns", fields.target_ns.unwrap_or(5_000_000))?;
    let interval_ns = time(field, "interval_ns", fields.interval_ns.unwrap_or(100_000_000))?;
    if target_ns == 0 || target_ns >= interval_ns {
        return Err(ConfigError::new(
            format!("{field}.target_ns"),
            "must lie between 0 and interval_ns; make it smaller",
        ));
    }
    Ok(Impairment::Codel(Codel::new(fields.bits_per_s, limit, target_ns, interval_ns)))
}

fn trace(field: &str, fields: TraceFields, start_ns: u64) -> Result<Impairment, ConfigError> {
    let times = fields.opportunities_ms;
    let problem = match times.last() {
        None => Some("is empty; give at least one time in ms"),
        Some(0) => Some("ends at 0 ms and could not repeat; let it end later"),
        Some(last) if *last > MAX_TIME_NS / 1_000_000 => Some("is longer than an hour; check the unit"),
        Some(_) if !times.is_sorted() => Some("goes back in time; sort it"),
        Some(_) => None,
    };
    if let Some(problem) = problem {
        return Err(ConfigError::new(format!("{field}.opportunities_ms"), problem));
    }
    Ok(Impairment::Trace(Trace::new(times, limit(field, fields.queue_bytes, fields.queue_packets)?, start_ns)))
}
