//! The configuration document of the origin (docs/architecture.md 1.2).

pub use crate::config_error::ConfigError;
use crate::relay::config::RelayConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use trifecta_wire::Tuning;
use trifecta_wire::quic::Adaptations;

/// What the origin serves, where and how. Unknown fields are refused.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub address: IpAddr,
    /// 0 takes a free port, which the ready line names.
    pub port: u16,
    pub certificate_file: PathBuf,
    pub key_file: PathBuf,
    /// Of `h1`, `h2`, `h3`, in any order.
    #[serde(default = "all_protocols")]
    pub protocols: Vec<Protocol>,
    /// Folder to serve read-only.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    /// A page archive to replay: every response of it, and nothing else.
    #[serde(default)]
    pub replay: Option<PathBuf>,
    /// Folder to serve under `/live/`, whose files change meanwhile.
    #[serde(default)]
    pub live: Option<PathBuf>,
    /// Event loops, a thread each.
    #[serde(default = "one")]
    pub workers: usize,
    /// `cubic`, `bbr` or `reno`, for TCP and for QUIC.
    #[serde(default = "cubic")]
    pub congestion_control: String,
    #[serde(default = "yes")]
    pub tcp_nodelay: bool,
    /// `1.2`, `1.3`; QUIC always uses 1.3.
    #[serde(default = "tls_1_3")]
    pub tls_versions: Vec<String>,
    /// In order of preference.
    #[serde(default = "key_exchanges")]
    pub key_exchanges: Vec<String>,
    /// Whether each response says how long the server took, in a Server-Timing field.
    #[serde(default)]
    pub server_timing: bool,
    /// Whether TCP responses name HTTP/3 on this port in an Alt-Svc field.
    #[serde(default)]
    pub alt_svc: bool,
    #[serde(default = "yes")]
    pub zero_rtt: bool,
    #[serde(default = "thirty_seconds")]
    pub idle_timeout_ns: u64,
    #[serde(default = "ethernet_payload")]
    pub max_udp_payload_bytes: u16,
    /// 0: as the kernel has it.
    #[serde(default)]
    pub udp_receive_buffer_bytes: usize,
    #[serde(default = "streams")]
    pub max_concurrent_streams: u32,
    #[serde(default)]
    pub keylog_file: Option<PathBuf>,
    /// Folder for a qlog file a QUIC connection.
    #[serde(default)]
    pub qlog_dir: Option<PathBuf>,
    /// What is done otherwise than quinn-proto does it, towards clients and towards other services.
    #[serde(default)]
    pub quic_adaptations: Adaptations,
    /// What a study exchanges of the transports, towards clients and towards other services.
    #[serde(default)]
    pub tuning: Tuning,
    /// CPUs to pin the workers to, in turn.
    #[serde(default)]
    pub cpus: Vec<usize>,
    #[serde(default)]
    pub faults: Faults,
    /// What this service passes on to others.
    #[serde(default)]
    pub relay: Option<RelayConfig>,
}

/// A protocol of the sample rows.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    H1,
    H2,
    H3,
}

impl Protocol {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::H1, Self::H2, Self::H3];

    /// `h1`, `h2` or `h3`.
    pub fn name(self) -> &'static str {
        match self {
            Self::H1 => "h1",
            Self::H2 => "h2",
            Self::H3 => "h3",
        }
    }

    /// The ALPN identifier (RFC 7301).
    pub fn alpn(self) -> &'static [u8] {
        match self {
            Self::H1 => b"http/1.1",
            Self::H2 => b"h2",
            Self::H3 => b"h3",
        }
    }
}

/// Misbehaviour for the tests of the checks. What is off is left out where they are told.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Octets of content left out of what was announced; then the connection (HTTP/1.1) or the stream ends.
    #[serde(skip_serializing_if = "is_off")]
    pub truncate_bytes: u64,
    /// Handshakes and reads, never answers.
    #[serde(skip_serializing_if = "is_off")]
    pub stall: bool,
    /// Answers that many requests on a connection, then closes it without a word; 0 is off.
    #[serde(skip_serializing_if = "is_off")]
    pub close_after_requests: u64,
    /// Each answer waits that long.
    #[serde(skip_serializing_if = "is_off")]
    pub delay_ns: u64,
    /// The chain has that many certificates more, copies of the first, which only make it longer.
    #[serde(skip_serializing_if = "is_off")]
    pub extra_certificates: u32,
    /// Waits, stalls and certificates concern this protocol alone; of HTTP/1.1 and HTTP/2 both have the certificates.
    #[serde(skip_serializing_if = "is_off")]
    pub only: Option<Protocol>,
}

impl Faults {
    /// What of them concerns a protocol.
    #[inline]
    #[must_use]
    pub fn over(self, protocol: Protocol) -> Self {
        if self.only.is_none_or(|only| only == protocol) { self } else { Self::default() }
    }
}

fn is_off<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Config {
    /// Reads and checks a document.
    ///
    /// # Errors
    /// Names the first field that is wrong.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config: Self = serde_json::from_str(text).map_err(|error| {
            let message = error.to_string();
            // serde names the field in backquotes: "unknown field `x`, expected ...", "missing field `port`".
            let field = message.split('`').nth(1).unwrap_or("config").to_owned();
            ConfigError { field, message: format!("{message}; see docs/architecture.md 1.2") }
        })?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field: &str, message: &str| Err(ConfigError { field: field.into(), message: message.into() });
        if self.protocols.is_empty() {
            return wrong("protocols", "is empty; name at least one of h1, h2, h3");
        }
        if (1..self.protocols.len()).any(|place| self.protocols[..place].contains(&self.protocols[place])) {
            return wrong("protocols", "names a protocol twice; name each once");
        }
        if !(1..=256).contains(&self.workers) {
            return wrong("workers", "is out of range; use 1 to 256");
        }
        if !["cubic", "bbr", "reno"].contains(&self.congestion_control.as_str()) {
            return wrong("congestion_control", "is unknown; use cubic, bbr or reno");
        }
        if self.tls_versions.is_empty() || self.tls_versions.iter().any(|name| name != "1.2" && name != "1.3") {
            return wrong("tls_versions", "must list 1.2, 1.3 or both");
        }
        if self.key_exchanges.is_empty() {
            return wrong("key_exchanges", "is empty; name at least one group, as X25519");
        }
        if self.idle_timeout_ns < 1_000_000 {
            return wrong("idle_timeout_ns", "is below a millisecond; use 30000000000 for 30 s");
        }
        if !(1200..=65_527).contains(&self.max_udp_payload_bytes) {
            return wrong("max_udp_payload_bytes", "is out of range; use 1200 to 65527 (RFC 9000 14)");
        }
        if self.max_concurrent_streams == 0 {
            return wrong("max_concurrent_streams", "is 0; use at least 1");
        }
        self.tuning.check().map_err(|(field, message)| ConfigError { field, message })?;
        self.relay.as_ref().map_or(Ok(()), RelayConfig::check)
    }

    /// Whether a protocol is served.
    pub fn serves(&self, protocol: Protocol) -> bool {
        self.protocols.contains(&protocol)
    }

    /// Whether pages are served to browsers, whose load times hang on the order of responses (RFC 9218).
    pub fn serves_pages(&self) -> bool {
        self.replay.is_some() || self.live.is_some()
    }

    /// Address and port.
    pub fn socket_address(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }
}

fn all_protocols() -> Vec<Protocol> {
    Protocol::ALL.to_vec()
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

fn cubic() -> String {
    "cubic".into()
}

fn tls_1_3() -> Vec<String> {
    vec!["1.3".into()]
}

fn key_exchanges() -> Vec<String> {
    ["X25519MLKEM768", "X25519", "secp256r1", "secp384r1"].map(String::from).into()
}

fn thirty_seconds() -> u64 {
    30_000_000_000
}

fn ethernet_payload() -> u16 {
    1452
}

fn streams() -> u32 {
    250
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = r#""address": "127.0.0.1", "port": 0, "certificate_file": "c", "key_file": "k""#;

    fn parse(more: &str) -> Result<Config, ConfigError> {
        Config::parse(&format!("{{{BASE}{more}}}"))
    }

    #[test]
    fn the_document_of_the_contract_is_read() {
        let config = parse(
            r#", "protocols": ["h1","h2","h3"], "folder": null, "workers": 1, "congestion_control": "cubic",
               "tcp_nodelay": true, "tls_versions": ["1.3"], "key_exchanges": ["X25519MLKEM768","X25519","secp256r1","secp384r1"],
               "server_timing": false, "zero_rtt": true, "idle_timeout_ns": 30000000000,
               "max_udp_payload_bytes": 1452, "max_concurrent_streams": 250, "keylog_file": null, "faults": {}"#,
        )
        .unwrap();
        assert_eq!(config.protocols, Protocol::ALL);
        assert_eq!(config.faults, Faults::default());
        assert_eq!(serde_json::to_string(&config.faults).unwrap(), "{}");
        let faults = parse(r#", "faults": {"truncate_bytes": 1, "stall": true}"#).unwrap().faults;
        assert_eq!(serde_json::to_string(&faults).unwrap(), r#"{"truncate_bytes":1,"stall":true}"#);
    }

    #[test]
    fn the_wrong_field_is_named() {
        for (more, field) in [
            (r#", "protocols": []"#, "protocols"),
            (r#", "protocols": ["h2","h2"]"#, "protocols"),
            (r#", "protocols": ["spdy"]"#, "spdy"),
            (r#", "workers": 0"#, "workers"),
            (r#", "congestion_control": "vegas""#, "congestion_control"),
            (r#", "tls_versions": ["1.1"]"#, "tls_versions"),
            (r#", "idle_timeout_ns": 5"#, "idle_timeout_ns"),
            (r#", "max_udp_payload_bytes": 100"#, "max_udp_payload_bytes"),
            (r#", "max_concurrent_streams": 0"#, "max_concurrent_streams"),
            (r#", "nonsense": 0"#, "nonsense"),
            (r#", "faults": {"explode": true}"#, "explode"),
            (r#", "tuning": {"initial_window_packets": 1}"#, "tuning.initial_window_packets"),
            (r#", "tuning": {"window": 1}"#, "window"),
        ] {
            assert_eq!(parse(more).unwrap_err().field, field, "{more}");
        }
        assert_eq!(Config::parse("{}").unwrap_err().field, "address");
        assert_eq!(Config::parse("nonsense").unwrap_err().field, "config");
    }
}
