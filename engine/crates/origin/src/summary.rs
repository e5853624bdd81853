//! What the origin says: the lines `ready` and `summary`, and the classes of what went wrong.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;
use trifecta_session::options;
use trifecta_session::transport_stats::{QuicSummary, TcpSummary};
use trifecta_wire::{ErrorClass, text_enum};

use crate::config::{Faults, Protocol};

/// The `ready` line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Ready {
    pub address: IpAddr,
    pub port: u16,
    pub protocols: Vec<Protocol>,
    pub workers: usize,
    /// As read back; `None` without TCP.
    pub tcp_congestion_control: Option<String>,
    pub tcp_nodelay: Option<bool>,
    /// Those that are on.
    pub faults: Faults,
    pub relay: Option<RelayReady>,
}

/// Where the services were found that this one calls.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RelayReady {
    pub service: String,
    pub services: BTreeMap<String, FoundService>,
}

/// Where one service is, and how it is spoken to.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FoundService {
    pub address: IpAddr,
    pub port: u16,
    pub protocol: options::Protocol,
}

/// The `summary` line. Times in ns, `started_ns` and `ended_ns` on CLOCK_MONOTONIC.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Summary {
    #[serde(flatten)]
    pub counts: Counts,
    pub started_ns: u64,
    pub ended_ns: u64,
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    pub max_rss_bytes: u64,
    /// Those that were on.
    pub faults: Faults,
}

/// What the workers counted.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Counts {
    /// Responses by status.
    pub requests: ByProtocol<BTreeMap<u16, u64>>,
    pub connections: ByProtocol<u64>,
    pub resumed: ByProtocol<u64>,
    /// Before TLS.
    pub tcp_accepted: u64,
    /// Requests that came as 0-RTT data.
    pub early_requests: u64,
    /// Content octets (RFC 9110 6.4).
    pub content_bytes_out: u64,
    pub content_bytes_in: u64,
    /// After encryption, transport payload, towards clients.
    pub wire_bytes_out: u64,
    pub wire_bytes_in: u64,
    pub udp_receive_drops: u64,
    /// Connections by the name of their group.
    pub key_exchanges: BTreeMap<&'static str, u64>,
    pub tcp_congestion_control: Option<String>,
    pub tcp_nodelay: Option<bool>,
    pub workers_cpu_ns: u64,
    pub errors: BTreeMap<Mishap, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relay: Option<RelaySummary>,
}

/// A value for each protocol, also those that are not served.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ByProtocol<T> {
    pub h1: T,
    pub h2: T,
    pub h3: T,
}

/// What a relay did, over its workers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RelaySummary {
    pub service: String,
    /// By the name of the service called.
    pub calls: BTreeMap<String, CallsSummary>,
    /// Of all calls, after encryption, transport payload.
    pub wire_bytes_out: u64,
    pub wire_bytes_in: u64,
    /// Answers whose client was gone.
    pub answers_dropped: u64,
    /// Cycles under way at the end.
    pub unfinished: u64,
}

/// The calls of one service.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CallsSummary {
    pub protocol: &'static str,
    /// Calls by the protocol that their connection had agreed on.
    pub protocols_spoken: BTreeMap<&'static str, u64>,
    pub status: BTreeMap<u16, u64>,
    pub errors: BTreeMap<ErrorClass, u64>,
    pub connections: u64,
    pub connections_lost_idle: u64,
    pub wire_bytes_out: u64,
    pub wire_bytes_in: u64,
    pub udp_receive_errors: u64,
    pub key_exchange: Option<&'static str>,
    pub tcp: Option<TcpSummary>,
    pub quic: Option<QuicSummary>,
}

text_enum! {
    /// What goes wrong in a server only.
    pub enum ServerFault {
        /// No more descriptors or memory for a connection.
        Accept = "accept",
        ClosedInHandshake = "closed_in_handshake",
        /// A peer used too much of something.
        ExcessHttp3 = "excess:http3",
        /// Content could not be read any more.
        File = "file",
        IdleTimeout = "idle_timeout",
        Qlog = "qlog",
        /// A stream beyond the limit.
        RefusedStream = "refused_stream",
        /// The peer did not want the rest of an answer.
        Stopped = "stopped",
        UdpReceive = "udp:receive",
        UdpRefused = "udp:refused",
        UdpSend = "udp:send",
    }
}

/// Something that went wrong, with a client or in the server itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Mishap {
    Class(ErrorClass),
    Fault(ServerFault),
}

impl Mishap {
    /// Its text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Class(class) => class.as_str(),
            Self::Fault(fault) => fault.as_str(),
        }
    }
}

impl From<ErrorClass> for Mishap {
    fn from(class: ErrorClass) -> Self {
        Self::Class(class)
    }
}

impl From<ServerFault> for Mishap {
    fn from(fault: ServerFault) -> Self {
        Self::Fault(fault)
    }
}

/// By text, so that counts stand in the order of the alphabet.
impl Ord for Mishap {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for Mishap {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
