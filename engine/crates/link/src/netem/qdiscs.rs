//! The queueing disciplines of tc(8) that do to a direction what its impairments ask, as far as the kernel's own can.
//!
//! tc-netem(8) loses and delays, and counts what it lost; tc-tbf(8) behind it limits the rate, with a queue of
//! tc-pfifo(8) or tc-codel(8). What netem does without counting it (copies, damage, packets ahead of others) is refused:
//! nobody could tell afterwards whether it was done.

use crate::impair::queue::Limit;
use crate::impair::{ByKernel, Impair, Impairment};
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

/// The disciplines of a direction, the root first; `field` is the direction's and `kinds` its impairments', for messages.
///
/// # Errors
/// An impairment that the kernel's disciplines lack, or do not count, or a second one of the same sort.
pub fn of_direction(field: &str, kinds: &[&str], impairments: &[Impairment]) -> Result<Vec<Words>, ConfigError> {
    let (mut loss, mut delay_ns, mut jitter, mut behind) = (None, 0, None, None);
    for (index, impairment) in impairments.iter().enumerate() {
        let refused = |why: &str| {
            ConfigError::new(format!("{field}[{index}]"), format!("{} {why}", kinds.get(index).unwrap_or(&"")))
        };
        let had_one = match impairment.by_kernel().map_err(refused)? {
            ByKernel::Delay { delay_ns: more_ns } => {
                delay_ns += more_ns;
                false
            }
            ByKernel::Jitter { jitter_ns, distribution } => jitter.replace((jitter_ns, distribution)).is_some(),
            ByKernel::Loss(words) => loss.replace(words).is_some(),
            ByKernel::Rate { bits_per_s, limit, codel } => behind.replace(of_rate(bits_per_s, limit, codel)).is_some(),
        };
        if had_one {
            return Err(refused("is the second one, and netem has room for one; leave one out"));
        }
    }
    let mut root = format!("root handle 1: netem limit {PACKETS_ON_THE_WAY}");
    root += &loss.map_or_else(String::new, |loss| format!(" {loss}"));
    match jitter {
        Some((jitter_ns, distribution)) => {
            root += &format!(" delay {} {}{distribution}", time(delay_ns), time(jitter_ns));
        }
        None if delay_ns > 0 => root += &format!(" delay {}", time(delay_ns)),
        None => {}
    }
    Ok(std::iter::once(words(&root)).chain(behind.unwrap_or_default()).collect())
}

/// Whether netem's losses are this impairment's.
#[must_use]
pub fn loses(impairment: &Impairment) -> bool {
    matches!(impairment.by_kernel(), Ok(ByKernel::Loss(_)))
}

/// As tc(8) reads a time; it knows no ns.
fn time(ns: u64) -> String {
    format!("{}us", ns as f64 / 1e3)
}

fn of_rate(bits_per_s: u64, limit: Limit, codel: Option<(u64, u64)>) -> Vec<Words> {
    let burst = (2 * FRAME_BYTES).max((u128::from(bits_per_s) * u128::from(BURST_NS) / 8_000_000_000) as u64);
    let most = limit.bytes.unwrap_or(limit.packets.unwrap_or(PACKETS_ON_THE_WAY) * FRAME_BYTES);
    let mut made = vec![words(&format!("parent 1:1 handle 10: tbf rate {bits_per_s}bit burst {burst} limit {most}"))];
    if let Some((target_ns, interval_ns)) = codel {
        let packets = limit.packets.unwrap_or(most.div_ceil(FRAME_BYTES));
        let (target, interval) = (time(target_ns), time(interval_ns));
        let text = format!("parent 10:1 handle 20: codel limit {packets} target {target} interval {interval} noecn");
        made.push(words(&text));
    } else if let Some(packets) = limit.packets {
        made.push(words(&format!("parent 10:1 handle 20: pfifo limit {packets}")));
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn tree(impairments: &str) -> Result<Vec<String>, String> {
        let document = format!(r#"{{"a_device": "a", "b_device": "b", "a_to_b": {impairments}}}"#);
        let config = Config::parse(&document).unwrap();
        let kinds: Vec<&str> = config.directions[0].iter().map(|spec| spec.kind.as_str()).collect();
        of_direction("a_to_b", &kinds, &config.impairments(0, 0).unwrap())
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
    fn what_netem_does_not_do_or_count_is_refused() {
        for (asked, said) in [
            (
                r#"[{"kind": "duplicate", "probability": 0.1}]"#,
                "a_to_b[0]: duplicate is not done by netem, or not counted",
            ),
            (r#"[{"kind": "corrupt", "probability": 0.1}]"#, "a_to_b[0]: corrupt is not done by netem"),
            (
                r#"[{"kind": "loss", "probability": 0.1}, {"kind": "loss", "probability": 0.1}]"#,
                "a_to_b[1]: loss is the second one",
            ),
            (
                r#"[{"kind": "jitter", "distribution": "uniform", "range_ns": 5, "reorder": false}]"#,
                "a_to_b[0]: jitter of netem reorders packets",
            ),
            (
                r#"[{"kind": "jitter", "distribution": "pareto", "scale_ns": 5, "shape": 2.0, "reorder": true}]"#,
                "a_to_b[0]: jitter of netem has no such distribution",
            ),
        ] {
            let told = tree(asked).unwrap_err();
            assert!(told.starts_with(said), "{told}");
        }
    }
}
