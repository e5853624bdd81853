//! The queueing disciplines of tc(8) that do to a direction what its impairments ask, as far as the kernel's own can.
//!
//! tc-netem(8) loses and delays, and counts what it lost; tc-tbf(8) behind it limits the rate, with a queue of
//! tc-pfifo(8) or tc-codel(8). What netem does without counting it (copies, damage, packets ahead of others) is refused:
//! nobody could tell afterwards whether it was done.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::Spec;
use crate::place::ConfigError;

/// Room for the packets on their way; netem counts those that it delays as queued, 1,000 by default.
const PACKETS_ON_THE_WAY: u64 = 1_000_000;
/// MTU 1500 and the Ethernet header, without FCS.
const FRAME_BYTES: u64 = 1_514;
/// tbf sends what it saved up at once: two frames, or what the rate carries while a timer is this late.
const BURST_NS: u64 = 1_000_000;

/// One `tc qdisc add dev DEVICE ...`, without its first four words.
pub type Words = Vec<String>;

fn words(text: &str) -> Words {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The disciplines of a direction, the root first; `field` is the direction's, for messages.
///
/// # Errors
/// An impairment that the kernel's disciplines lack, or do not count.
pub fn of_direction(field: &str, specs: &[Spec]) -> Result<Vec<Words>, ConfigError> {
    let mut root = format!("root handle 1: netem limit {PACKETS_ON_THE_WAY}");
    let mut behind = Vec::new();
    let mut delay_ns = 0;
    let mut jitter = None;
    let mut lossy = false;
    for (index, spec) in specs.iter().enumerate() {
        let at = At { field: format!("{field}[{index}]"), spec };
        match spec.kind.as_str() {
            "delay" => delay_ns += at.get::<u64>("delay_ns")?,
            "jitter" if jitter.is_none() => jitter = Some(of_jitter(&at)?),
            "loss" | "gilbert_elliott" if !lossy => {
                lossy = true;
                root += &of_loss(&at)?;
            }
            "rate" if behind.is_empty() => behind = of_rate(&at)?,
            "jitter" | "loss" | "gilbert_elliott" | "rate" => {
                return Err(at.refused("can be there once; put them together"));
            }
            _ => return Err(at.refused("is not done by netem, or not counted; use the engine's own link")),
        }
    }
    match jitter {
        Some((ns, shape)) => root += &format!(" delay {} {}{shape}", time(delay_ns), time(ns)),
        None if delay_ns > 0 => root += &format!(" delay {}", time(delay_ns)),
        None => {}
    }
    Ok(std::iter::once(words(&root)).chain(behind).collect())
}

/// As tc(8) reads a time; it knows no ns.
fn time(ns: u64) -> String {
    format!("{}us", ns as f64 / 1e3)
}

struct At<'a> {
    field: String,
    spec: &'a Spec,
}

impl At<'_> {
    fn refused(&self, why: &str) -> ConfigError {
        ConfigError::new(&self.field, format!("{} {why}", self.spec.kind))
    }

    /// A field that the impairment has been checked to have, or its default.
    fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, ConfigError> {
        let value = self.spec.asked().get(name).cloned().unwrap_or(Value::Null);
        serde_json::from_value(value).map_err(|error| self.refused(&format!("has no {name} for netem: {error}")))
    }

    fn or<T: DeserializeOwned>(&self, name: &str, default: T) -> Result<T, ConfigError> {
        Ok(self.get::<Option<T>>(name)?.unwrap_or(default))
    }
}

fn of_jitter(at: &At<'_>) -> Result<(u64, &'static str), ConfigError> {
    if !at.or("reorder", false)? {
        return Err(at.refused("of netem lets packets overtake each other; say that it may, reorder: true"));
    }
    match at.get::<String>("distribution")?.as_str() {
        "normal" => Ok((at.get("sigma_ns")?, " distribution normal")),
        "uniform" => Ok((at.get("range_ns")?, "")),
        other => Err(at.refused(&format!("by {other} is another one in netem; use normal or uniform"))),
    }
}

fn of_loss(at: &At<'_>) -> Result<String, ConfigError> {
    let percent = |share: f64| format!("{}%", 100.0 * share);
    if at.spec.kind == "loss" {
        return Ok(format!(" loss {}", percent(at.get("probability")?)));
    }
    let (to_bad, to_good) = (at.get("good_to_bad")?, at.get("bad_to_good")?);
    let (lost_good, lost_bad) = (at.or("loss_good", 0.0)?, at.or("loss_bad", 1.0)?);
    // 'loss gemodel p r 1-h 1-k': h and k are the chances to pass, in the bad and in the good state.
    Ok(format!(" loss gemodel {} {} {} {}", percent(to_bad), percent(to_good), percent(lost_bad), percent(lost_good)))
}

fn of_rate(at: &At<'_>) -> Result<Vec<Words>, ConfigError> {
    let rate: u64 = at.get("bits_per_s")?;
    let codel = at.or("discipline", "droptail".to_owned())? == "codel";
    let burst = (2 * FRAME_BYTES).max((u128::from(rate) * u128::from(BURST_NS) / 8_000_000_000) as u64);
    let packets: Option<u64> = at.get("queue_packets")?;
    let bytes: Option<u64> = at.get("queue_bytes")?;
    let most = bytes.unwrap_or(packets.unwrap_or(PACKETS_ON_THE_WAY) * FRAME_BYTES);
    let mut made = vec![words(&format!("parent 1:1 handle 10: tbf rate {rate}bit burst {burst} limit {most}"))];
    if codel {
        let packets = packets.unwrap_or(most.div_ceil(FRAME_BYTES));
        let (target, interval): (u64, u64) =
            (at.or("target_ns", 5_000_000)? / 1_000, at.or("interval_ns", 100_000_000)? / 1_000);
        let text =
            format!("parent 10:1 handle 20: codel limit {packets} target {target}us interval {interval}us noecn");
        made.push(words(&text));
    } else if let Some(packets) = packets {
        made.push(words(&format!("parent 10:1 handle 20: pfifo limit {packets}")));
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn tree(impairments: &str) -> Result<Vec<String>, String> {
        let document = format!(r#"{{"a_device": "a", "b_device": "b", "a_to_b": {impairments}}}"#);
        let config = Config::parse(&document).unwrap();
        of_direction("a_to_b", &config.directions[0])
            .map(|all| all.iter().map(|one| one.join(" ")).collect())
            .map_err(|error| format!("{}: {}", error.field, error.message))
    }

    #[test]
    fn nothing_asked_still_counts() {
        assert_eq!(tree("[]").unwrap(), ["root handle 1: netem limit 1000000"]);
    }

    #[test]
    fn losses_delay_and_jitter_are_netems_and_a_rate_is_behind_them() {
        let asked = r#"[{"kind": "loss", "probability": 0.015},
            {"kind": "rate", "bits_per_s": 20000000, "queue_bytes": 50000},
            {"kind": "delay", "delay_ns": 12500000},
            {"kind": "jitter", "distribution": "normal", "sigma_ns": 2000000, "reorder": true}]"#;
        assert_eq!(
            tree(asked).unwrap(),
            [
                "root handle 1: netem limit 1000000 loss 1.5% delay 12500us 2000us distribution normal",
                "parent 1:1 handle 10: tbf rate 20000000bit burst 3028 limit 50000",
            ]
        );
    }

    #[test]
    fn queues_in_packets_and_codel_have_a_discipline_of_their_own() {
        let queue = tree(r#"[{"kind": "rate", "bits_per_s": 100000000, "queue_packets": 30}]"#).unwrap();
        assert_eq!(queue[1], "parent 1:1 handle 10: tbf rate 100000000bit burst 12500 limit 45420");
        assert_eq!(queue[2], "parent 10:1 handle 20: pfifo limit 30");
        let codel = r#"[{"kind": "rate", "bits_per_s": 8000000, "queue_bytes": 15140, "discipline": "codel",
            "target_ns": 5000000, "interval_ns": 100000000}]"#;
        assert_eq!(
            tree(codel).unwrap()[2],
            "parent 10:1 handle 20: codel limit 10 target 5000us interval 100000us noecn"
        );
    }

    #[test]
    fn bursts_are_the_gilbert_elliott_model() {
        let asked = r#"[{"kind": "gilbert_elliott", "good_to_bad": 0.01, "bad_to_good": 0.25, "loss_bad": 0.5}]"#;
        assert_eq!(tree(asked).unwrap(), ["root handle 1: netem limit 1000000 loss gemodel 1% 25% 50% 0%"]);
    }

    #[test]
    fn what_netem_does_not_do_or_count_is_refused() {
        for (asked, said) in [
            (
                r#"[{"kind": "duplicate", "probability": 0.1}]"#,
                "a_to_b[0]: duplicate is not done by netem, or not counted",
            ),
            (r#"[{"kind": "loss_schedule", "drop": [1]}]"#, "a_to_b[0]: loss_schedule is not done by netem"),
            (
                r#"[{"kind": "loss", "probability": 0.1}, {"kind": "loss", "probability": 0.1}]"#,
                "a_to_b[1]: loss can be",
            ),
            (
                r#"[{"kind": "jitter", "distribution": "uniform", "range_ns": 5, "reorder": false}]"#,
                "a_to_b[0]: jitter of netem lets packets overtake",
            ),
            (
                r#"[{"kind": "jitter", "distribution": "pareto", "scale_ns": 5, "shape": 2.0, "reorder": true}]"#,
                "a_to_b[0]: jitter by pareto is another one",
            ),
        ] {
            let told = tree(asked).unwrap_err();
            assert!(told.starts_with(said), "{told}");
        }
    }
}
