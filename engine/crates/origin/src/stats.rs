//! What a worker counts; the summary is the sum over workers.

use crate::config::Protocol;
use crate::relay::RelayStats;
use crate::summary::{ByProtocol, Counts, Mishap};
use std::collections::BTreeMap;

/// Counts of one protocol.
#[derive(Clone, Debug, Default)]
struct ProtocolStats {
    connections: u64,
    resumed: u64,
    /// Answers by status; there are few, so a row is searched.
    statuses: Vec<(u16, u64)>,
}

/// Counts of one worker.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    protocols: [ProtocolStats; 3],
    errors: BTreeMap<Mishap, u64>,
    key_exchanges: BTreeMap<&'static str, u64>,
    /// TCP connections accepted, before TLS.
    pub tcp_accepted: u64,
    /// Requests that came as 0-RTT data.
    pub early_requests: u64,
    /// Content octets of responses (RFC 9110 6.4).
    pub content_bytes_out: u64,
    /// Content octets of requests.
    pub content_bytes_in: u64,
    /// Octets given to and taken from sockets (after TLS; UDP payload for QUIC).
    pub wire_bytes_out: u64,
    pub wire_bytes_in: u64,
    /// TCP_CONGESTION as read back from an accepted socket.
    pub tcp_congestion_control: Option<String>,
    /// TCP_NODELAY as read back from an accepted socket.
    pub tcp_nodelay: Option<bool>,
    /// Datagrams that the kernel dropped at the UDP socket, mostly for want of receive buffer.
    pub udp_receive_drops: u64,
    /// CPU time of the worker's thread.
    pub thread_cpu_ns: u64,
    /// What the relay counted, where there is one.
    pub relay: Option<RelayStats>,
}

impl Stats {
    /// A connection whose handshake is done.
    pub fn connection(&mut self, protocol: Protocol, resumed: bool, key_exchange: Option<&'static str>) {
        let counts = &mut self.protocols[protocol as usize];
        counts.connections += 1;
        counts.resumed += u64::from(resumed);
        if let Some(name) = key_exchange {
            *self.key_exchanges.entry(name).or_default() += 1;
        }
    }

    /// A response that was begun.
    #[inline]
    pub fn response(&mut self, protocol: Protocol, status: u16) {
        let statuses = &mut self.protocols[protocol as usize].statuses;
        match statuses.iter_mut().find(|(known, _)| *known == status) {
            Some((_, count)) => *count += 1,
            None => statuses.push((status, 1)),
        }
    }

    /// Something that went wrong.
    pub fn error(&mut self, mishap: impl Into<Mishap>) {
        *self.errors.entry(mishap.into()).or_default() += 1;
    }

    /// Adds what another worker counted.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.protocols.iter_mut().zip(&other.protocols) {
            mine.connections += theirs.connections;
            mine.resumed += theirs.resumed;
            for &(status, count) in &theirs.statuses {
                match mine.statuses.iter_mut().find(|(known, _)| *known == status) {
                    Some((_, sum)) => *sum += count,
                    None => mine.statuses.push((status, count)),
                }
            }
        }
        for (mishap, count) in &other.errors {
            *self.errors.entry(*mishap).or_default() += count;
        }
        for (name, count) in &other.key_exchanges {
            *self.key_exchanges.entry(name).or_default() += count;
        }
        self.tcp_accepted += other.tcp_accepted;
        self.early_requests += other.early_requests;
        self.content_bytes_out += other.content_bytes_out;
        self.content_bytes_in += other.content_bytes_in;
        self.wire_bytes_out += other.wire_bytes_out;
        self.wire_bytes_in += other.wire_bytes_in;
        self.udp_receive_drops += other.udp_receive_drops;
        self.tcp_congestion_control =
            self.tcp_congestion_control.take().or_else(|| other.tcp_congestion_control.clone());
        self.tcp_nodelay = self.tcp_nodelay.or(other.tcp_nodelay);
        self.thread_cpu_ns += other.thread_cpu_ns;
        if let Some(theirs) = &other.relay {
            self.relay.get_or_insert_default().add(theirs);
        }
    }

    /// The part of the summary that is counted here.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            requests: self.by_protocol(|counts| counts.statuses.iter().copied().collect()),
            connections: self.by_protocol(|counts| counts.connections),
            resumed: self.by_protocol(|counts| counts.resumed),
            tcp_accepted: self.tcp_accepted,
            early_requests: self.early_requests,
            content_bytes_out: self.content_bytes_out,
            content_bytes_in: self.content_bytes_in,
            wire_bytes_out: self.wire_bytes_out,
            wire_bytes_in: self.wire_bytes_in,
            udp_receive_drops: self.udp_receive_drops,
            key_exchanges: self.key_exchanges.clone(),
            tcp_congestion_control: self.tcp_congestion_control.clone(),
            tcp_nodelay: self.tcp_nodelay,
            workers_cpu_ns: self.thread_cpu_ns,
            errors: self.errors.clone(),
            relay: self.relay.as_ref().map(RelayStats::summary),
        }
    }

    fn by_protocol<T>(&self, value: impl Fn(&ProtocolStats) -> T) -> ByProtocol<T> {
        let [h1, h2, h3] = &self.protocols;
        ByProtocol { h1: value(h1), h2: value(h2), h3: value(h3) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use trifecta_wire::ErrorClass;

    #[test]
    fn workers_add_up() {
        let mut first = Stats::default();
        first.connection(Protocol::H2, true, Some("X25519"));
        first.response(Protocol::H2, 200);
        first.response(Protocol::H2, 404);
        first.error(ErrorClass::Reset);
        let mut second = first.clone();
        second.response(Protocol::H1, 200);
        second.tcp_nodelay = Some(true);
        first.add(&second);
        let fields = serde_json::to_value(first.counts()).unwrap();
        assert_eq!(fields["requests"], json!({"h1": {"200": 1}, "h2": {"200": 2, "404": 2}, "h3": {}}));
        assert_eq!(fields["connections"], json!({"h1": 0, "h2": 2, "h3": 0}));
        assert_eq!(fields["errors"], json!({"reset": 2}));
        assert_eq!(fields["tcp_nodelay"], json!(true));
    }
}
