//! What a relay counts: the calls of each service, and the answers.

use std::collections::BTreeMap;

use trifecta_session::caller::Totals;
use trifecta_wire::ErrorClass;

use crate::summary::{CallsSummary, RelaySummary};

/// What one worker counted of the calls of one service.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallStats {
    pub(super) protocol: &'static str,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) errors: BTreeMap<ErrorClass, u64>,
    /// Calls by the protocol that their connection had agreed on.
    pub(super) spoken: BTreeMap<&'static str, u64>,
    pub(crate) totals: Totals,
}

impl CallStats {
    /// Adds what another worker counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.protocol = other.protocol;
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (class, count) in &other.errors {
            *self.errors.entry(*class).or_default() += count;
        }
        for (protocol, count) in &other.spoken {
            *self.spoken.entry(protocol).or_default() += count;
        }
        self.totals.merge(&other.totals);
    }

    /// The object of the summary.
    pub(crate) fn summary(&self) -> CallsSummary {
        CallsSummary {
            protocol: self.protocol,
            protocols_spoken: self.spoken.clone(),
            status: self.statuses.clone(),
            errors: self.errors.clone(),
            connections: self.totals.connections_opened,
            connections_lost_idle: self.totals.connections_lost_idle,
            wire_bytes_out: self.totals.wire_bytes_out,
            wire_bytes_in: self.totals.wire_bytes_in,
            udp_receive_errors: self.totals.udp_receive_errors,
            key_exchange: self.totals.key_exchange,
            tcp: self.totals.tcp.summary(),
            quic: self.totals.quic.summary(),
        }
    }
}

/// What a relay counted, over its workers.
#[derive(Clone, Debug, Default)]
pub struct RelayStats {
    pub(super) service: String,
    pub(super) calls: BTreeMap<String, CallStats>,
    /// Answers whose client was gone.
    pub answers_dropped: u64,
    /// Cycles that were under way at the end.
    pub(super) unfinished: u64,
}

impl RelayStats {
    /// Adds what another worker counted.
    pub fn add(&mut self, other: &Self) {
        self.service.clone_from(&other.service);
        for (name, stats) in &other.calls {
            self.calls.entry(name.clone()).or_default().add(stats);
        }
        self.answers_dropped += other.answers_dropped;
        self.unfinished += other.unfinished;
    }

    /// The object `relay` of the summary.
    #[must_use]
    pub fn summary(&self) -> RelaySummary {
        let sum = |value: fn(&CallStats) -> u64| self.calls.values().map(value).sum::<u64>();
        RelaySummary {
            service: self.service.clone(),
            calls: self.calls.iter().map(|(name, stats)| (name.clone(), stats.summary())).collect(),
            wire_bytes_out: sum(|stats| stats.totals.wire_bytes_out),
            wire_bytes_in: sum(|stats| stats.totals.wire_bytes_in),
            answers_dropped: self.answers_dropped,
            unfinished: self.unfinished,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn workers_add_up() {
        let mut calls = CallStats { protocol: "h2", ..CallStats::default() };
        calls.statuses.insert(200, 2);
        calls.errors.insert(ErrorClass::Timeout, 1);
        calls.spoken.insert("h2", 3);
        calls.totals.connections_opened = 1;
        calls.totals.wire_bytes_out = 10;
        let one = RelayStats {
            service: "B".into(),
            calls: BTreeMap::from([("C".to_owned(), calls)]),
            answers_dropped: 1,
            unfinished: 2,
        };
        let mut sum = RelayStats::default();
        sum.add(&one);
        sum.add(&one);
        let told = serde_json::to_value(sum.summary()).unwrap();
        let calls = &told["calls"]["C"];
        assert_eq!((&calls["protocol"], &calls["status"]), (&json!("h2"), &json!({"200": 4})));
        assert_eq!((&calls["errors"], &calls["protocols_spoken"]), (&json!({"timeout": 2}), &json!({"h2": 6})));
        assert_eq!((&calls["connections"], &told["wire_bytes_out"]), (&json!(2), &json!(20)));
        assert_eq!((&told["service"], &told["answers_dropped"]), (&json!("B"), &json!(2)));
        assert_eq!(told["unfinished"], 4);
    }
}
