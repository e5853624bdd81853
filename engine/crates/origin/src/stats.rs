//! What a worker counts; the summary is the sum over workers.

use crate::config::Protocol;
use crate::relay::RelayStats;
use serde_json::{Map, Value, json};
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
    errors: BTreeMap<&'static str, u64>,
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

    /// Something that went wrong, by class (`tls:alert`, `malformed:http2`, `reset`, `idle_timeout`, ...).
    pub fn error(&mut self, class: &'static str) {
        *self.errors.entry(class).or_default() += 1;
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
        for (class, count) in &other.errors {
            *self.errors.entry(class).or_default() += count;
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

    /// The fields of the summary that are counted here.
    pub fn to_json(&self) -> Map<String, Value> {
        let of_protocols = |value: &dyn Fn(&ProtocolStats) -> Value| -> Value {
            Protocol::ALL.iter().map(|&p| (p.name().to_owned(), value(&self.protocols[p as usize]))).collect()
        };
        let requests = of_protocols(&|counts| {
            let mut statuses = counts.statuses.clone();
            statuses.sort_unstable();
            statuses.iter().map(|(status, count)| (status.to_string(), json!(count))).collect()
        });
        let fields = json!({
            "requests": requests,
            "connections": of_protocols(&|counts| counts.connections.into()),
            "resumed": of_protocols(&|counts| counts.resumed.into()),
            "tcp_accepted": self.tcp_accepted,
            "early_requests": self.early_requests,
            "content_bytes_out": self.content_bytes_out,
            "content_bytes_in": self.content_bytes_in,
            "wire_bytes_out": self.wire_bytes_out,
            "wire_bytes_in": self.wire_bytes_in,
            "udp_receive_drops": self.udp_receive_drops,
            "key_exchanges": self.key_exchanges,
            "tcp_congestion_control": self.tcp_congestion_control,
            "tcp_nodelay": self.tcp_nodelay,
            "workers_cpu_ns": self.thread_cpu_ns,
            "errors": self.errors,
        });
        let mut fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        if let Some(relay) = &self.relay {
            fields.insert("relay".into(), relay.to_json());
        }
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_add_up() {
        let mut first = Stats::default();
        first.connection(Protocol::H2, true, Some("X25519"));
        first.response(Protocol::H2, 200);
        first.response(Protocol::H2, 404);
        first.error("reset");
        let mut second = first.clone();
        second.response(Protocol::H1, 200);
        second.tcp_nodelay = Some(true);
        first.add(&second);
        let fields = first.to_json();
        assert_eq!(fields["requests"], json!({"h1": {"200": 1}, "h2": {"200": 2, "404": 2}, "h3": {}}));
        assert_eq!(fields["connections"], json!({"h1": 0, "h2": 2, "h3": 0}));
        assert_eq!(fields["errors"], json!({"reset": 2}));
        assert_eq!(fields["tcp_nodelay"], json!(true));
    }
}
