//! The configuration document of the link: section 1.3 of docs/architecture.md.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

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

/// What is wrong with a field, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub field: String,
    pub message: String,
}

impl ConfigError {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        ConfigError { field: field.into(), message: message.into() }
    }
}

/// Whether the survivors of a super-packet that fall due together leave as one super-packet or each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    Merge,
    Real,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    a_device: String,
    b_device: String,
    #[serde(default)]
    seed: u64,
    #[serde(default = "merge")]
    split: Split,
    #[serde(default)]
    a_to_b: Vec<Value>,
    #[serde(default)]
    b_to_a: Vec<Value>,
    #[serde(default)]
    log_file: Option<String>,
    #[serde(default = "yes")]
    realtime: bool,
    #[serde(default = "default_spin_ns")]
    spin_ns: u64,
    #[serde(default)]
    cpu: Option<usize>,
    #[serde(default = "default_memory_bytes")]
    memory_bytes: u64,
}

fn merge() -> Split {
    Split::Merge
}

fn yes() -> bool {
    true
}

fn default_spin_ns() -> u64 {
    60_000
}

fn default_memory_bytes() -> u64 {
    1 << 30
}

/// A checked configuration.
#[derive(Debug)]
pub struct Config {
    pub a_device: String,
    pub b_device: String,
    pub seed: u64,
    pub split: Split,
    /// The impairments of the directions a to b and b to a.
    pub directions: [Vec<Spec>; 2],
    pub log_file: Option<String>,
    /// Ask for SCHED_FIFO and locked memory.
    pub realtime: bool,
    /// Longest time to poll actively before a packet is due.
    pub spin_ns: u64,
    pub cpu: Option<usize>,
    /// Most octets of packets in flight; beyond it packets are dropped and counted.
    pub memory_bytes: u64,
}

/// Names of the directions in the configuration and the summary.
pub const DIRECTIONS: [&str; 2] = ["a_to_b", "b_to_a"];

/// One impairment as asked for.
#[derive(Clone, Debug)]
pub struct Spec {
    pub kind: String,
    document: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DelayFields {
    delay_ns: u64,
}

#[derive(Deserialize)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
enum JitterFields {
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbabilityFields {
    probability: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GilbertElliottFields {
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LossScheduleFields {
    drop: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReorderFields {
    probability: f64,
    gap_ns: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Discipline {
    #[default]
    Droptail,
    Codel,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RateFields {
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceFields {
    opportunities_ms: Vec<u64>,
    #[serde(default)]
    queue_bytes: Option<u64>,
    #[serde(default)]
    queue_packets: Option<u64>,
}

impl Config {
    /// Reads and checks the document.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let document: Document = serde_json::from_str(text)
            .map_err(|error| ConfigError::new("config", format!("{error}; see docs/architecture.md, section 1.3")))?;
        for (field, name) in [("a_device", &document.a_device), ("b_device", &document.b_device)] {
            // IFNAMSIZ, if_nametoindex(3)
            if name.is_empty() || name.len() > 15 || name.contains(['/', '\0']) {
                return Err(ConfigError::new(field, format!("'{name}' is no device name; give 1 to 15 characters")));
            }
        }
        if document.a_device == document.b_device {
            return Err(ConfigError::new("b_device", "is the same as a_device; name the other end"));
        }
        if document.spin_ns > 1_000_000 {
            return Err(ConfigError::new("spin_ns", "is above 1 ms; give at most 1000000"));
        }
        if document.memory_bytes < 1 << 20 {
            return Err(ConfigError::new("memory_bytes", "is below 1 MiB; give at least 1048576"));
        }
        let config = Config {
            directions: [specs("a_to_b", document.a_to_b)?, specs("b_to_a", document.b_to_a)?],
            a_device: document.a_device,
            b_device: document.b_device,
            seed: document.seed,
            split: document.split,
            log_file: document.log_file,
            realtime: document.realtime,
            spin_ns: document.spin_ns,
            cpu: document.cpu,
            memory_bytes: document.memory_bytes,
        };
        for direction in 0..DIRECTIONS.len() {
            config.impairments(direction, 0)?;
        }
        Ok(config)
    }

    /// The impairments of a direction, ready to use; `start_ns` is the time at which traces begin.
    pub fn impairments(&self, direction: usize, start_ns: u64) -> Result<Vec<Impairment>, ConfigError> {
        let specs = &self.directions[direction];
        let mut delayed = false;
        let mut built: Vec<Impairment> = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            let field = format!("{}[{index}]", DIRECTIONS[direction]);
            let occurrence = specs[..index].iter().filter(|earlier| earlier.kind == spec.kind).count() as u64;
            let draws = Draws::new(self.seed, direction as u8, &spec.kind, occurrence);
            let impairment = build(&field, spec, draws, start_ns)?;
            if matches!(impairment, Impairment::Reorder(_)) && !delayed {
                let message = "has no delay before it in which to overtake; put it behind a delay or jitter";
                return Err(ConfigError::new(field, message));
            }
            delayed |= matches!(impairment, Impairment::Delay(_) | Impairment::Jitter(_));
            built.push(impairment);
        }
        Ok(built)
    }
}

fn specs(field: &str, documents: Vec<Value>) -> Result<Vec<Spec>, ConfigError> {
    let spec = |(index, mut document): (usize, Value)| {
        let field = format!("{field}[{index}]");
        let object = document
            .as_object_mut()
            .ok_or_else(|| ConfigError::new(&field, "is no object; write for example {\"kind\": \"delay\", ...}"))?;
        match object.remove("kind") {
            Some(Value::String(kind)) => Ok(Spec { kind, document }),
            _ => Err(ConfigError::new(format!("{field}.kind"), format!("is missing; use one of {KINDS}"))),
        }
    };
    documents.into_iter().enumerate().map(spec).collect()
}

const KINDS: &str = "delay, jitter, loss, gilbert_elliott, loss_schedule, corrupt, duplicate, reorder, rate, trace";

fn fields<T: DeserializeOwned>(field: &str, spec: &Spec) -> Result<T, ConfigError> {
    serde_json::from_value(spec.document.clone()).map_err(|error| {
        ConfigError::new(field, format!("{}: {error}; see docs/architecture.md, section 1.3", spec.kind))
    })
}

/// The table of impairments.
fn build(field: &str, spec: &Spec, draws: Draws, start_ns: u64) -> Result<Impairment, ConfigError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn with(a_to_b: &str) -> Result<Config, ConfigError> {
        Config::parse(&format!(r#"{{"a_device": "ra", "b_device": "rb", "a_to_b": {a_to_b}}}"#))
    }

    #[test]
    fn the_example_of_the_contract_is_read() {
        let config = Config::parse(
            r#"{"a_device": "ra", "b_device": "rb", "seed": 7, "split": "merge",
 "a_to_b": [{"kind": "loss", "probability": 0.02}, {"kind": "rate", "bits_per_s": 20000000, "queue_bytes": 125000},
            {"kind": "delay", "delay_ns": 25000000}],
 "b_to_a": [], "log_file": null, "realtime": true, "spin_ns": 60000, "cpu": null}"#,
        )
        .unwrap();
        assert_eq!((config.seed, config.split, config.realtime), (7, Split::Merge, true));
        assert_eq!(config.impairments(0, 0).unwrap().len(), 3);
    }

    #[test]
    fn every_kind_is_in_the_table() {
        let documents = [
            r#"{"kind": "delay", "delay_ns": 1}"#,
            r#"{"kind": "jitter", "distribution": "normal", "sigma_ns": 5}"#,
            r#"{"kind": "jitter", "distribution": "uniform", "range_ns": 5, "reorder": true}"#,
            r#"{"kind": "jitter", "distribution": "pareto", "scale_ns": 5, "shape": 2.5, "reorder": false}"#,
            r#"{"kind": "jitter", "distribution": "table", "table_ns": [0, 5, -5]}"#,
            r#"{"kind": "loss", "probability": 1}"#,
            r#"{"kind": "gilbert_elliott", "good_to_bad": 0.1, "bad_to_good": 0.5}"#,
            r#"{"kind": "loss_schedule", "drop": [0, 5]}"#,
            r#"{"kind": "corrupt", "probability": 0.1}"#,
            r#"{"kind": "duplicate", "probability": 0.1}"#,
            r#"{"kind": "reorder", "probability": 0.1, "gap_ns": 1000}"#,
            r#"{"kind": "rate", "bits_per_s": 1000000, "queue_packets": 10}"#,
            r#"{"kind": "rate", "bits_per_s": 1000000, "discipline": "codel", "target_ns": 5, "interval_ns": 10}"#,
            r#"{"kind": "trace", "opportunities_ms": [0, 1, 1, 3], "queue_bytes": 15000}"#,
        ];
        assert_eq!(with(&format!("[{}]", documents.join(","))).unwrap().directions[0].len(), documents.len());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field() {
        let cases = [
            (r#"[{"kind": "loss", "probability": 1.5}]"#, "a_to_b[0].probability"),
            (r#"[{"kind": "loss", "probability": 0.5, "chance": 1}]"#, "a_to_b[0]"),
            (r#"[{"kind": "delay", "delay_ns": 1}, {"kind": "vanish"}]"#, "a_to_b[1].kind"),
            (r#"[{"kind": "delay", "delay_ns": -1}]"#, "a_to_b[0]"),
            (r#"[{"kind": "delay", "delay_ns": 99999999999999}]"#, "a_to_b[0].delay_ns"),
            (r#"[{"delay_ns": 1}]"#, "a_to_b[0].kind"),
            (r#"[5]"#, "a_to_b[0]"),
            (r#"[{"kind": "jitter", "distribution": "cauchy"}]"#, "a_to_b[0]"),
            (r#"[{"kind": "jitter", "distribution": "normal", "sigma_ns": 1, "range_ns": 1}]"#, "a_to_b[0]"),
            (r#"[{"kind": "jitter", "distribution": "table", "table_ns": []}]"#, "a_to_b[0].table_ns"),
            (r#"[{"kind": "reorder", "probability": 0.1, "gap_ns": 1000}]"#, "a_to_b[0]"),
            (r#"[{"kind": "rate", "bits_per_s": 0}]"#, "a_to_b[0].bits_per_s"),
            (r#"[{"kind": "rate", "bits_per_s": 1000, "queue_bytes": 0}]"#, "a_to_b[0].queue_bytes"),
            (r#"[{"kind": "rate", "bits_per_s": 1000, "target_ns": 5}]"#, "a_to_b[0]"),
            (r#"[{"kind": "trace", "opportunities_ms": [3, 1]}]"#, "a_to_b[0].opportunities_ms"),
            (r#"[{"kind": "trace", "opportunities_ms": []}]"#, "a_to_b[0].opportunities_ms"),
            (r#"[{"kind": "trace", "opportunities_ms": [0]}]"#, "a_to_b[0].opportunities_ms"),
        ];
        for (impairments, field) in cases {
            let error = with(impairments).unwrap_err();
            assert_eq!(error.field, field, "{impairments}: {}", error.message);
        }
        for (document, field) in [
            (r#"{"a_device": "ra", "b_device": "ra"}"#, "b_device"),
            (r#"{"a_device": "", "b_device": "rb"}"#, "a_device"),
            (r#"{"a_device": "ra", "b_device": "a-name-that-is-too-long"}"#, "b_device"),
            (r#"{"a_device": "ra", "b_device": "rb", "colour": 1}"#, "config"),
            (r#"{"a_device": "ra", "b_device": "rb", "spin_ns": 2000000}"#, "spin_ns"),
            ("not json", "config"),
        ] {
            assert_eq!(Config::parse(document).unwrap_err().field, field, "{document}");
        }
    }
}
