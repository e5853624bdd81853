//! The summary line: what the workers saw, added up.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;
use trifecta_session::caller::Totals;
use trifecta_session::handshakes::HandshakesSummary;
use trifecta_session::options::Protocol;
use trifecta_session::transport_stats::{QuicSummary, TcpSummary};
use trifecta_wire::Tuning;
use trifecta_wire::process::Usage;

use crate::config::{Config, Loop};
use crate::driver::{Beginnings, Counters};
use crate::fields::{Fields, SeenField};
use crate::lag::LagHistogram;
pub use crate::worker::Ended;
use crate::worker::Outcome;

/// The `ready` line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Ready {
    pub protocol: Protocol,
    pub address: IpAddr,
    pub port: u16,
    /// Process id, in the namespace of this process.
    pub process: u32,
}

/// The `summary` line. Times are in ns, those that end in `started_ns` and `ended_ns` on CLOCK_MONOTONIC.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Summary {
    pub trial: String,
    pub samples: u64,
    pub errors: u64,
    pub ended: Ended,
    pub started_ns: u64,
    pub ended_ns: u64,
    /// Since the first measured request; 0 without one.
    pub measured_ns: u64,
    pub clients: ClientsSummary,
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    pub max_rss_bytes: u64,
    /// Of an open loop: how late requests started.
    pub schedule_lag_ns: Option<ScheduleLag>,
    /// Slots of an open loop that could not be started before the end.
    pub missed_slots: u64,
    /// From when an event loop had to come round until it did, while requests were measured.
    pub longest_gap_ns: u64,
    /// Requests asked for by number that never began.
    pub not_started: u64,
    pub connections_opened: u64,
    /// Broke or could not be opened while no request needed them.
    pub connections_lost_idle: u64,
    /// After encryption, transport payload.
    pub wire_bytes_out: u64,
    pub wire_bytes_in: u64,
    pub key_exchange: Option<&'static str>,
    pub handshakes: HandshakesSummary,
    pub tcp: Option<TcpSummary>,
    pub quic: Option<QuicSummary>,
    /// What was set of it.
    pub tuning: Tuning,
    /// The fields that were to be recorded, with what the responses had in them.
    pub response_fields: BTreeMap<String, SeenField>,
    pub udp_receive_errors: u64,
    pub versions: Versions,
    /// CPU by wall time of the threads with the event loops.
    pub busy_ratio: f64,
    /// All addresses of `server_name`, when it had to be resolved.
    pub resolved: Option<Vec<IpAddr>>,
    /// How long that took.
    pub dns_ns: Option<u64>,
}

/// When clients began their first requests.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ClientsSummary {
    pub begun: u32,
    pub first_begun_ns: u64,
    pub last_begun_ns: u64,
}

/// Quantiles in ns.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ScheduleLag {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub max: u64,
}

/// Of the engine and of the libraries that speak for it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Versions {
    pub engine: &'static str,
    pub rustls: &'static str,
    pub quinn_proto: &'static str,
}

/// The `summary` object. `usage`: what the process used while the loops ran.
pub(crate) fn summary(config: &Config, outcomes: &[Outcome], usage: Usage) -> Summary {
    let mut counters = Counters::default();
    let mut lag = LagHistogram::default();
    let mut totals = Totals::default();
    let mut fields = Fields::new(&config.record_fields);
    let mut beginnings = Beginnings::default();
    let (mut missed_slots, mut thread_cpu_ns, mut thread_wall_ns) = (0, 0, 0);
    let longest_gap_ns = outcomes.iter().map(|outcome| outcome.longest_gap_ns).max().unwrap_or(0);
    for outcome in outcomes {
        let driver = &outcome.driver;
        add(&mut counters, &driver.counters);
        lag.merge(&driver.lag);
        totals.merge(&driver.totals);
        fields.merge(&driver.fields);
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
    Summary {
        trial: config.trial.clone(),
        samples: counters.samples,
        errors: counters.errors,
        ended: ended(outcomes),
        started_ns,
        ended_ns,
        measured_ns: first_measured_ns.map_or(0, |first_ns| ended_ns - first_ns),
        clients: ClientsSummary {
            begun: beginnings.clients,
            first_begun_ns: beginnings.first_ns,
            last_begun_ns: beginnings.last_ns,
        },
        cpu_user_ns: usage.cpu_user_ns,
        cpu_system_ns: usage.cpu_system_ns,
        max_rss_bytes: usage.max_rss_bytes,
        schedule_lag_ns: (is_open && lag.total() > 0).then(|| ScheduleLag {
            p50: lag.quantile_ns(0.5),
            p90: lag.quantile_ns(0.9),
            p99: lag.quantile_ns(0.99),
            max: lag.max_ns(),
        }),
        missed_slots,
        longest_gap_ns,
        not_started: outcomes.iter().map(|outcome| outcome.driver.not_started()).sum(),
        connections_opened: totals.connections_opened,
        connections_lost_idle: totals.connections_lost_idle,
        wire_bytes_out: totals.wire_bytes_out,
        wire_bytes_in: totals.wire_bytes_in,
        key_exchange: totals.key_exchange,
        handshakes: totals.handshakes.summary(),
        tcp: totals.tcp.summary(),
        quic: totals.quic.summary(),
        tuning: config.tuning,
        response_fields: fields.summary(),
        udp_receive_errors: totals.udp_receive_errors,
        versions: Versions {
            engine: env!("CARGO_PKG_VERSION"),
            rustls: env!("TRIFECTA_RUSTLS_VERSION"),
            quinn_proto: env!("TRIFECTA_QUINN_PROTO_VERSION"),
        },
        busy_ratio: if thread_wall_ns > 0 { thread_cpu_ns as f64 / thread_wall_ns as f64 } else { 0.0 },
        resolved: None,
        dns_ns: None,
    }
}

/// The gravest reason of all workers.
fn ended(outcomes: &[Outcome]) -> Ended {
    let order = [
        Ended::Stdin,
        Ended::Signal,
        Ended::Status,
        Ended::NoResponse,
        Ended::TotalTimeout,
        Ended::Duration,
        Ended::Requests,
    ];
    let found = |reason: &Ended| outcomes.iter().any(|outcome| outcome.ended == *reason);
    order.into_iter().find(found).unwrap_or(Ended::Requests)
}

fn add(total: &mut Counters, part: &Counters) {
    total.samples += part.samples;
    total.errors += part.errors;
}
