//! What the sessions of one destination are configured with.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trifecta_wire::Tuning;
use trifecta_wire::quic::Adaptations;

/// A field that cannot be used: its name, what is wrong and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub field: String,
    pub message: String,
}

impl FieldError {
    /// An error of `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// The application protocol that is asked for, and enforced by offering nothing else in ALPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    H1,
    H2,
    H3,
}

impl Protocol {
    /// `h1`, `h2` or `h3`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::H1 => "h1",
            Self::H2 => "h2",
            Self::H3 => "h3",
        }
    }

    /// The ALPN identifier (RFC 7301, RFC 9113 3.1, RFC 9114 3.2).
    #[must_use]
    pub fn alpn(self) -> &'static [u8] {
        match self {
            Self::H1 => b"http/1.1",
            Self::H2 => b"h2",
            Self::H3 => b"h3",
        }
    }
}

/// Whether a request gets a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionMode {
    New,
    Reused,
}

/// The methods of RFC 9110 (and RFC 5789) that can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// As it stands in the request.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether content has a meaning in its request (RFC 9110 9.3, RFC 5789 2).
    #[must_use]
    pub fn has_content(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }
}

/// Where the sessions go, how they are secured, and what is asked. All has been validated.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names the run in qlog files.
    pub trial: String,
    pub protocol: Protocol,
    pub address: SocketAddr,
    /// The name in certificates, SNI and `:authority`.
    pub server_name: String,
    pub ca_file: PathBuf,
    pub connection_mode: ConnectionMode,
    /// Requests that may be in flight on one connection.
    pub streams: u32,
    pub method: Method,
    pub path: String,
    /// The `user-agent` of each request; `None`: [`crate::USER_AGENT`] over HTTP/1.1 and HTTP/2, none over HTTP/3.
    pub user_agent: Option<String>,
    /// Octets of the pattern that each request carries.
    pub request_body_bytes: u64,
    pub connect_timeout_ns: u64,
    pub request_timeout_ns: u64,
    pub resumption: bool,
    pub zero_rtt: bool,
    /// `None`: TCP as the kernel has it, QUIC with cubic.
    pub congestion_control: Option<String>,
    pub tcp_nodelay: bool,
    pub tls_version: String,
    pub key_exchange: String,
    pub cipher: Option<String>,
    pub udp_receive_buffer_bytes: usize,
    pub max_udp_payload_bytes: u16,
    /// 0: the kernel's automatic tuning.
    pub tcp_receive_buffer_bytes: usize,
    pub keylog_file: Option<PathBuf>,
    pub qlog_dir: Option<PathBuf>,
    /// What is done otherwise than quinn-proto does it.
    pub quic_adaptations: Adaptations,
    /// What a study exchanges of the transports.
    pub tuning: Tuning,
}

impl Options {
    /// The `:authority` or Host of each request.
    #[must_use]
    pub fn authority(&self) -> String {
        let name =
            if self.server_name.contains(':') { format!("[{}]", self.server_name) } else { self.server_name.clone() };
        if self.address.port() == 443 { name } else { format!("{name}:{}", self.address.port()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_names_all_but_the_default_port() {
        let mut options = crate::testing::options(Protocol::H2);
        for (name, port, authority) in [("b.lab", 8443, "b.lab:8443"), ("b.lab", 443, "b.lab"), ("::1", 80, "[::1]:80")]
        {
            options.server_name = name.into();
            options.address.set_port(port);
            assert_eq!(options.authority(), authority);
        }
    }
}
