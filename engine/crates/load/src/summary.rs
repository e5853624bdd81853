//! The summary line: what the workers saw, added up.

use serde_json::{Value, json};
use trifecta_session::caller::Totals;
use trifecta_wire::process::Usage;

use crate::config::{Config, Loop};
use crate::driver::{Beginnings, Counters};
use crate::lag::LagHistogram;
use crate::worker::{Ended, Outcome};

/// The `summary` object. `usage`: what the process used while the loops ran.
pub(crate) fn summary(config: &Config, outcomes: &[Outcome], usage: Usage) -> Value {
    let mut counters = Counters::default();
    let mut lag = LagHistogram::default();
    let mut totals = Totals::default();
    let mut beginnings = Beginnings::default();
    let (mut missed_slots, mut thread_cpu_ns, mut thread_wall_ns) = (0, 0, 0);
    let longest_gap_ns = outcomes.iter().map(|outcome| outcome.longest_gap_ns).max().unwrap_or(0);
    for outcome in outcomes {
        let driver = &outcome.driver;
        add(&mut counters, &driver.counters);
        lag.merge(&driver.lag);
        totals.merge(&driver.totals);
        beginnings.merge(driver.beginnings());
        missed_slots += outcome.missed_slots;
        thread_cpu_ns += outcome.thread_cpu_ns;
        thread_wall_ns += outcome.ended_ns.saturating_sub(outcome.started_ns);
    }
    let started_ns = outcomes.iter().map(|outcome| outcome.started_ns).min().unwrap_or(0);
    let ended_ns = outcomes.iter().map(|outcome| outcome.ended_ns).max().unwrap_or(0);
    let first_measured_ns =
        outcomes.iter().map(|outcome| outcome.driver.first_measured_ns()).filter(|ns| *ns > 0).min();
    let is_open = matches!(config.load, Loop::Open { .. });
    let schedule_lag = (is_open && lag.total() > 0).then(|| {
        json!({"p50": lag.quantile_ns(0.5), "p90": lag.quantile_ns(0.9), "p99": lag.quantile_ns(0.99), "max": lag.max_ns()})
    });
    json!({
        "trial": config.trial,
        "samples": counters.samples,
        "errors": counters.errors,
        "ended": ended(outcomes).name(),
        "started_ns": started_ns,
        "ended_ns": ended_ns,
        "measured_ns": first_measured_ns.map_or(0, |first_ns| ended_ns - first_ns),
        "clients": {
            "begun": beginnings.clients,
            "first_begun_ns": beginnings.first_ns,
            "last_begun_ns": beginnings.last_ns,
        },
        "cpu_user_ns": usage.cpu_user_ns,
        "cpu_system_ns": usage.cpu_system_ns,
        "max_rss_bytes": usage.max_rss_bytes,
        "schedule_lag_ns": schedule_lag,
        "missed_slots": missed_slots,
        "longest_gap_ns": longest_gap_ns,
        "not_started": outcomes.iter().map(|outcome| outcome.driver.not_started()).sum::<u64>(),
        "connections_opened": totals.connections_opened,
        "connections_lost_idle": totals.connections_lost_idle,
        "wire_bytes_out": totals.wire_bytes_out,
        "wire_bytes_in": totals.wire_bytes_in,
        "key_exchange": totals.key_exchange,
        "handshakes": totals.handshakes.to_json(),
        "tcp": totals.tcp.to_json(),
        "quic": totals.quic.to_json(),
        "udp_receive_errors": totals.udp_receive_errors,
        "versions": {
            "engine": env!("CARGO_PKG_VERSION"),
            "rustls": env!("TRIFECTA_RUSTLS_VERSION"),
            "quinn_proto": env!("TRIFECTA_QUINN_PROTO_VERSION"),
        },
        "busy_ratio": if thread_wall_ns > 0 { thread_cpu_ns as f64 / thread_wall_ns as f64 } else { 0.0 },
    })
}

/// The gravest reason of all workers.
fn ended(outcomes: &[Outcome]) -> Ended {
    let order = [Ended::Stdin, Ended::Signal, Ended::NoResponse, Ended::TotalTimeout, Ended::Duration, Ended::Requests];
    let found = |reason: &Ended| outcomes.iter().any(|outcome| outcome.ended == *reason);
    order.into_iter().find(found).unwrap_or(Ended::Requests)
}

fn add(total: &mut Counters, part: &Counters) {
    total.samples += part.samples;
    total.errors += part.errors;
}
