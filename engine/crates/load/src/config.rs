//! The configuration document of section 1.1 of docs/architecture.md, read and validated.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use trifecta_session::options::Options;
pub use trifecta_session::options::{ConnectionMode, FieldError, Method, Protocol};
use trifecta_wire::Tuning;
use trifecta_wire::quic::Adaptations;
use trifecta_wire::resolve::{Ip, Resolved, resolve};
use trifecta_wire::tls::{TlsVersion, key_exchange_names};

mod asking;
mod cycle;

pub use cycle::MessageSource;

/// When requests start.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", tag = "kind", deny_unknown_fields)]
pub enum Loop {
    /// The next one when one has ended, and not sooner than `least_gap_ns` after the one before began.
    Closed {
        /// Of one worker; 0: at once. With it there is one request in flight at a time.
        #[serde(default)]
        least_gap_ns: u64,
    },
    /// At times that do not depend on responses.
    Open {
        rate_per_s: f64,
        #[serde(default)]
        arrivals: Arrivals,
    },
}

/// The times of an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    #[default]
    Constant,
    Poisson,
}

/// The configuration, as in the document.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub trial: String,
    pub protocol: Protocol,
    /// `None`: what `server_name` stands for, see [`Config::resolve`].
    pub address: Option<IpAddr>,
    /// Only addresses of this version count of what `server_name` stands for; `None`: the first of IPv4, else of all.
    #[serde(default)]
    pub ip: Option<Ip>,
    pub port: u16,
    pub server_name: String,
    pub ca_file: PathBuf,
    #[serde(default = "one")]
    pub workers: u32,
    #[serde(default = "one")]
    pub connections: u32,
    #[serde(default = "one")]
    pub streams: u32,
    pub connection_mode: ConnectionMode,
    #[serde(rename = "loop")]
    pub load: Loop,
    /// Measured requests after the warm-up; 0: no limit.
    #[serde(default)]
    pub requests: u64,
    /// Measured requests of each client, that is of each connection and stream; 0: no limit.
    #[serde(default)]
    pub requests_per_client: u64,
    /// Measured time after the warm-up; 0: no limit.
    #[serde(default)]
    pub duration_ns: u64,
    #[serde(default)]
    pub warmup_requests: u64,
    #[serde(default)]
    pub warmup_ns: u64,
    pub method: Method,
    pub path: String,
    #[serde(default)]
    pub request_body_bytes: u64,
    /// What a cycle carries; with methods that have content.
    #[serde(default)]
    pub message: Option<MessageSource>,
    /// The name of this client among the services.
    #[serde(default = "service_a")]
    pub service: String,
    /// The service that is called. Requests are cycles if it is there.
    #[serde(default)]
    pub to: Option<String>,
    /// `None`: not checked. With HEAD the content is always expected to be empty. In cycles: octets of filler in the answer.
    #[serde(default)]
    pub expect_body_bytes: Option<u64>,
    /// `None`: not checked.
    #[serde(default)]
    pub expect_status: Option<u16>,
    /// Statuses after which no further request begins: the server asks for patience.
    #[serde(default)]
    pub end_on_statuses: Vec<u16>,
    /// Fields of responses whose values the summary has, by name in lower case.
    #[serde(default)]
    pub record_fields: Vec<String>,
    /// `None`: `trifecta/VERSION` over HTTP/1.1 and HTTP/2, none over HTTP/3.
    #[serde(default)]
    pub user_agent: Option<String>,
    /// Whether content octets are compared with the pattern; by default for paths that begin with `/bytes/`.
    #[serde(default)]
    pub verify_content: Option<bool>,
    #[serde(default = "ten_seconds_ns")]
    pub connect_timeout_ns: u64,
    #[serde(default = "ten_seconds_ns")]
    pub request_timeout_ns: u64,
    #[serde(default = "one_minute_ns")]
    pub total_timeout_ns: u64,
    #[serde(default)]
    pub resumption: bool,
    #[serde(default)]
    pub zero_rtt: bool,
    /// Null: TCP as the kernel has it, QUIC with cubic.
    #[serde(default = "cubic")]
    pub congestion_control: Option<String>,
    #[serde(default = "yes")]
    pub tcp_nodelay: bool,
    #[serde(default = "tls13")]
    pub tls_version: String,
    #[serde(default = "x25519")]
    pub key_exchange: String,
    #[serde(default)]
    pub cipher: Option<String>,
    #[serde(default = "four_mib")]
    pub udp_receive_buffer_bytes: usize,
    #[serde(default = "udp_payload")]
    pub max_udp_payload_bytes: u16,
    /// 0: the kernel's automatic tuning.
    #[serde(default)]
    pub tcp_receive_buffer_bytes: usize,
    #[serde(default = "one_u64")]
    pub seed: u64,
    /// The first worker's CPU; worker n is bound to `cpu + n`.
    #[serde(default)]
    pub cpu: Option<usize>,
    /// `None`: no rows are written, the summary still counts them.
    #[serde(default)]
    pub samples_file: Option<PathBuf>,
    /// `None`: the hops of cycles are not kept.
    #[serde(default)]
    pub spans_file: Option<PathBuf>,
    #[serde(default)]
    pub keylog_file: Option<PathBuf>,
    #[serde(default)]
    pub qlog_dir: Option<PathBuf>,
    /// What is done otherwise than quinn-proto does it.
    #[serde(default)]
    pub quic_adaptations: Adaptations,
    /// What a study exchanges of the transports.
    #[serde(default)]
    pub tuning: Tuning,
}

fn one() -> u32 {
    1
}
fn one_u64() -> u64 {
    1
}
fn yes() -> bool {
    true
}
fn ten_seconds_ns() -> u64 {
    10_000_000_000
}
fn one_minute_ns() -> u64 {
    60_000_000_000
}
fn cubic() -> Option<String> {
    Some("cubic".into())
}
fn tls13() -> String {
    "1.3".into()
}
fn x25519() -> String {
    "X25519".into()
}
fn service_a() -> String {
    "A".into()
}
fn four_mib() -> usize {
    4 << 20
}
fn udp_payload() -> u16 {
    1452
}

impl Config {
    /// Reads and validates a document.
    ///
    /// # Errors
    /// The first field that cannot be used.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let config: Self = serde_json::from_str(text).map_err(|error| {
            // serde names the field in its message: "unknown field `x`, expected ..." or "missing field `x`".
            let message = error.to_string();
            let field =
                message.split('`').nth(1).filter(|_| message.contains("field `")).unwrap_or("config").to_owned();
            FieldError::new(field, format!("{message}; see docs/architecture.md, section 1.1"))
        })?;
        config.validate()?;
        Ok(config)
    }

    fn validate(&self) -> Result<(), FieldError> {
        let refuse = |field: &str, message: &str| Err(FieldError::new(field, message));
        for (field, value) in [("workers", self.workers), ("connections", self.connections), ("streams", self.streams)]
        {
            if value == 0 {
                return refuse(field, "is 0; give at least 1");
            }
        }
        if self.workers > 256 {
            return refuse("workers", "is above 256; one per core is enough");
        }
        if self.concurrency() < u64::from(self.workers) {
            return refuse("workers", "is more than there are connections; give each worker at least one");
        }
        if self.port == 0 {
            return refuse("port", "is 0; give the server's port");
        }
        if self.protocol == Protocol::H1 && self.connection_mode == ConnectionMode::Reused && self.streams != 1 {
            return refuse("streams", "must be 1 with h1, where nothing is pipelined; raise connections instead");
        }
        if self.requests == 0 && self.duration_ns == 0 && self.requests_per_client == 0 {
            return refuse("requests", "and duration_ns are both 0; give one of them");
        }
        self.validate_cycle()?;
        self.validate_loop()?;
        self.validate_asking()?;
        let times = [
            ("connect_timeout_ns", self.connect_timeout_ns),
            ("request_timeout_ns", self.request_timeout_ns),
            ("total_timeout_ns", self.total_timeout_ns),
        ];
        for (field, value) in times {
            // A day bounds every sum of times far below an overflow.
            if value == 0 || value > 86_400_000_000_000 {
                return refuse(field, "must be above 0 and at most one day");
            }
        }
        if self.duration_ns > 86_400_000_000_000 || self.warmup_ns > 86_400_000_000_000 {
            return refuse("duration_ns", "and warmup_ns are at most one day");
        }
        if !self.path.starts_with('/') || !self.path.bytes().all(|octet| octet.is_ascii_graphic()) {
            return refuse("path", "must begin with '/' and hold visible ASCII characters only; encode others with %");
        }
        if rustls::pki_types::ServerName::try_from(self.server_name.as_str()).is_err() {
            return refuse("server_name", "is neither a DNS name nor an IP address");
        }
        if self.request_body_bytes > 0 && matches!(self.method, Method::Get | Method::Head | Method::Delete) {
            return refuse("request_body_bytes", "needs POST, PUT or PATCH");
        }
        if TlsVersion::from_name(&self.tls_version).is_none() {
            return refuse("tls_version", "must be 1.2 or 1.3");
        }
        if self.protocol == Protocol::H3 && self.tls_version != "1.3" {
            return refuse("tls_version", "must be 1.3 with h3 (RFC 9001 4.2)");
        }
        if !key_exchange_names().contains(&self.key_exchange.as_str()) {
            return refuse("key_exchange", &format!("must be one of {}", key_exchange_names().join(", ")));
        }
        if !matches!(self.congestion_control.as_deref(), None | Some("cubic" | "bbr" | "reno")) {
            return refuse("congestion_control", "must be cubic, bbr or reno");
        }
        if self.zero_rtt && !self.resumption {
            return refuse("zero_rtt", "needs resumption");
        }
        if self.zero_rtt && self.tls_version != "1.3" {
            return refuse("zero_rtt", "needs tls_version 1.3");
        }
        if self.zero_rtt && !matches!(self.method, Method::Get | Method::Head) {
            return refuse("zero_rtt", "needs a safe method, GET or HEAD (RFC 8470 4)");
        }
        if !(1200..=65_527).contains(&self.max_udp_payload_bytes) {
            return refuse("max_udp_payload_bytes", "must be 1200 to 65527 (RFC 9000 14.1, 18.2)");
        }
        if self.trial.is_empty() || self.trial.len() > 256 {
            return refuse("trial", "must have 1 to 256 octets");
        }
        self.tuning.check().map_err(|(field, message)| FieldError { field, message })
    }

    /// The least time between the starts of two requests, 0 for none.
    #[must_use]
    pub fn least_gap_ns(&self) -> u64 {
        if let Loop::Closed { least_gap_ns } = self.load { least_gap_ns } else { 0 }
    }

    /// Resolves `server_name` when the document gives no address, and returns what was found then.
    ///
    /// # Errors
    /// As [`resolve`].
    pub fn resolve(&mut self) -> std::io::Result<Option<Resolved>> {
        if self.address.is_some() {
            return Ok(None);
        }
        let found = resolve(&self.server_name, self.ip)?;
        self.address = Some(found.address);
        Ok(Some(found))
    }

    /// Where the server is.
    ///
    /// # Panics
    /// When there is no address, and [`Config::resolve`] has not found one.
    #[must_use]
    pub fn socket_address(&self) -> SocketAddr {
        SocketAddr::new(self.address.expect("names are resolved before the sessions are made"), self.port)
    }

    /// Sockets that are open at a time.
    #[must_use]
    pub fn concurrency(&self) -> u64 {
        match self.connection_mode {
            ConnectionMode::New => u64::from(self.connections) * u64::from(self.streams),
            ConnectionMode::Reused => u64::from(self.connections),
        }
    }

    /// Requests that may be in flight on one connection.
    #[must_use]
    pub fn streams_per_connection(&self) -> u32 {
        match self.connection_mode {
            ConnectionMode::New => 1,
            ConnectionMode::Reused => self.streams,
        }
    }

    /// Requests that may be in flight at a time, each of a client of its own.
    #[must_use]
    pub fn clients(&self) -> u64 {
        u64::from(self.connections) * u64::from(self.streams)
    }

    /// The number of content octets that each response must have, if that is checked. Those of a cycle are no fixed number.
    #[must_use]
    pub fn expected_content(&self) -> Option<u64> {
        if self.method == Method::Head { Some(0) } else { self.expect_body_bytes.filter(|_| self.to.is_none()) }
    }

    /// Whether content is compared with the pattern.
    #[must_use]
    pub fn verifies_content(&self) -> bool {
        self.verify_content.unwrap_or_else(|| self.to.is_none() && self.path.starts_with("/bytes/"))
    }

    /// What the sessions have to know.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            trial: self.trial.clone(),
            protocol: self.protocol,
            address: self.socket_address(),
            server_name: self.server_name.clone(),
            ca_file: self.ca_file.clone(),
            connection_mode: self.connection_mode,
            streams: self.streams_per_connection(),
            method: self.method,
            path: self.path.clone(),
            user_agent: self.user_agent.clone(),
            request_body_bytes: self.request_body_bytes,
            connect_timeout_ns: self.connect_timeout_ns,
            request_timeout_ns: self.request_timeout_ns,
            resumption: self.resumption,
            zero_rtt: self.zero_rtt,
            congestion_control: self.congestion_control.clone(),
            tcp_nodelay: self.tcp_nodelay,
            tls_version: self.tls_version.clone(),
            key_exchange: self.key_exchange.clone(),
            cipher: self.cipher.clone(),
            udp_receive_buffer_bytes: self.udp_receive_buffer_bytes,
            max_udp_payload_bytes: self.max_udp_payload_bytes,
            tcp_receive_buffer_bytes: self.tcp_receive_buffer_bytes,
            keylog_file: self.keylog_file.clone(),
            qlog_dir: self.qlog_dir.clone(),
            quic_adaptations: self.quic_adaptations,
            tuning: self.tuning,
        }
    }
}

#[cfg(test)]
mod tests;
