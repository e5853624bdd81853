//! The section `relay` of the configuration: which service this is, what it calls, and how it reaches the others.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use trifecta_session::options::{ConnectionMode, Method, Protocol};
use trifecta_wire::resolve::Ip;
use trifecta_wire::tls::{TlsVersion, key_exchange_names};

use super::message::MAX_MESSAGE_OCTETS;
use crate::config_error::ConfigError;

/// A service that answers routes, by calling others or by itself. Unknown fields are refused.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RelayConfig {
    /// Its name, as in the entries of the message's meta.
    pub service: String,
    /// By path.
    pub routes: BTreeMap<String, RouteConfig>,
    /// Whom it calls, by name.
    #[serde(default)]
    pub services: BTreeMap<String, ServiceConfig>,
    /// Of the addresses that a name stands for those of this version count; `None`: the first of IPv4, else the first.
    #[serde(default)]
    pub ip: Option<Ip>,
    /// PEM file of the authority that the others' certificates are verified against.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    #[serde(default = "tls13")]
    pub tls_version: String,
    #[serde(default = "x25519")]
    pub key_exchange: String,
    #[serde(default)]
    pub cipher: Option<String>,
    #[serde(default = "ten_seconds")]
    pub connect_timeout_ns: u64,
    #[serde(default = "ten_seconds")]
    pub request_timeout_ns: u64,
}

/// What a path brings about.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// Made one after the other.
    #[serde(default)]
    pub calls: Vec<CallConfig>,
    #[serde(default)]
    #[schemars(with = "AnswerForm")]
    pub answer: AnswerConfig,
}

/// One call of another service.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallConfig {
    pub to: String,
    #[serde(default)]
    #[schemars(with = "MethodForm")]
    pub method: MethodConfig,
    pub path: String,
    #[serde(default)]
    #[schemars(with = "BodyForm")]
    pub body: BodyConfig,
}

/// The method of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum MethodConfig {
    /// The one that came in.
    #[default]
    Same,
    Fixed(Method),
}

impl TryFrom<String> for MethodConfig {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if name == "same" {
            return Ok(Self::Same);
        }
        let method = method_of(name.as_bytes());
        method.map(Self::Fixed).ok_or_else(|| format!("`relay.routes.calls.method` is {name}; use same or a method"))
    }
}

/// How [`MethodConfig`] is written.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is wanted")]
enum MethodForm {
    Same(Same),
    Fixed(Method),
}

#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is wanted")]
enum Same {
    Same,
}

/// The body of a call's message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub enum BodyConfig {
    /// As it came.
    #[default]
    Forward,
    None,
    /// That many octets of filler.
    Octets(usize),
}

impl TryFrom<serde_json::Value> for BodyConfig {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        match (value.as_str(), octets_of(&value)) {
            (Some("forward"), _) => Ok(Self::Forward),
            (Some("none"), _) => Ok(Self::None),
            (_, Some(octets)) => Ok(Self::Octets(octets)),
            _ => Err(format!("`relay.routes.calls.body` is {value}; use forward, none or up to 10000000 octets")),
        }
    }
}

/// How [`BodyConfig`] is written.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is wanted")]
enum BodyForm {
    Word(BodyWord),
    Octets(#[schemars(range(max = 10_000_000))] u64),
}

#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is wanted")]
enum BodyWord {
    Forward,
    None,
}

/// What an answer has besides the meta.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub enum AnswerConfig {
    #[default]
    Meta,
    /// That many octets of filler.
    Octets(usize),
}

impl TryFrom<serde_json::Value> for AnswerConfig {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        match (value.as_str(), octets_of(&value)) {
            (Some("meta"), _) => Ok(Self::Meta),
            (_, Some(octets)) => Ok(Self::Octets(octets)),
            _ => Err(format!("`relay.routes.answer` is {value}; use meta or up to 10000000 octets")),
        }
    }
}

/// How [`AnswerConfig`] is written.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is wanted")]
enum AnswerForm {
    Word(AnswerWord),
    Octets(#[schemars(range(max = 10_000_000))] u64),
}

#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(dead_code, reason = "only its schema is wanted")]
enum AnswerWord {
    Meta,
}

/// Filler that leaves room for the meta below [`MAX_MESSAGE_OCTETS`].
const MAX_FILLER_OCTETS: usize = 10_000_000;
const _: () = assert!(MAX_FILLER_OCTETS < MAX_MESSAGE_OCTETS);

fn octets_of(value: &serde_json::Value) -> Option<usize> {
    let octets = usize::try_from(value.as_u64()?).ok()?;
    (octets <= MAX_FILLER_OCTETS).then_some(octets)
}

/// Where another service is, and how it is spoken to.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceConfig {
    /// The name in its certificate.
    pub name: String,
    /// `None`: `name` is resolved at the start.
    #[serde(default)]
    pub address: Option<IpAddr>,
    pub port: u16,
    pub protocol: Protocol,
    pub connection_mode: ConnectionMode,
    /// Kept connections at most.
    #[serde(default = "one")]
    pub connections: u32,
    /// Calls in flight on one connection; always 1 with h1.
    #[serde(default = "hundred")]
    pub streams: u32,
}

fn tls13() -> String {
    "1.3".into()
}
fn x25519() -> String {
    "X25519".into()
}
fn ten_seconds() -> u64 {
    10_000_000_000
}
fn one() -> u32 {
    1
}
fn hundred() -> u32 {
    100
}

/// The method of a request, `None` when a relay knows no such.
pub(crate) fn method_of(name: &[u8]) -> Option<Method> {
    Some(match name {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        b"POST" => Method::Post,
        b"PUT" => Method::Put,
        b"PATCH" => Method::Patch,
        b"DELETE" => Method::Delete,
        _ => return None,
    })
}

impl RelayConfig {
    /// Checks what the document's form does not.
    ///
    /// # Errors
    /// Names the first field that is wrong.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field: String, message: &str| Err(ConfigError { field, message: message.into() });
        let is_name = |name: &str| {
            (1..=64).contains(&name.len())
                && name.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet))
        };
        let is_path = |path: &str| {
            path.starts_with('/') && path.len() <= 4096 && path.bytes().all(|octet| octet.is_ascii_graphic())
        };
        let path_form = "must begin with '/' and have at most 4096 visible ASCII characters";
        if !is_name(&self.service) {
            return wrong("relay.service".into(), "must have 1 to 64 letters, digits, '-', '_' or '.'");
        }
        if self.routes.is_empty() {
            return wrong("relay.routes".into(), "is empty; name at least one path");
        }
        for (path, route) in &self.routes {
            if !is_path(path) || path.contains(['?', '#']) {
                return wrong(format!("relay.routes.{path}"), &format!("{path_form}, no query"));
            }
            for (number, call) in route.calls.iter().enumerate() {
                if !self.services.contains_key(&call.to) {
                    let message = format!("is {}, which relay.services does not have; add it there", call.to);
                    return wrong(format!("relay.routes.{path}.calls.{number}.to"), &message);
                }
                if !is_path(&call.path) {
                    return wrong(format!("relay.routes.{path}.calls.{number}.path"), path_form);
                }
            }
        }
        for (name, service) in &self.services {
            let field = |what: &str| format!("relay.services.{name}{what}");
            if !is_name(name) {
                return wrong(field(""), "must have 1 to 64 letters, digits, '-', '_' or '.'");
            }
            if rustls::pki_types::ServerName::try_from(service.name.as_str()).is_err() {
                return wrong(field(".name"), "is neither a DNS name nor an IP address");
            }
            if service.port == 0 {
                return wrong(field(".port"), "is 0; give the service's port");
            }
            if !(1..=65_536).contains(&service.connections) || !(1..=65_536).contains(&service.streams) {
                return wrong(field(".connections"), "and streams must be 1 to 65536");
            }
            if service.protocol == Protocol::H3 && self.tls_version != "1.3" {
                return wrong("relay.tls_version".into(), "must be 1.3 with h3 (RFC 9001 4.2)");
            }
        }
        if self.ca_file.is_none() && !self.services.is_empty() {
            return wrong("relay.ca_file".into(), "is missing; give the authority of the services' certificates");
        }
        if TlsVersion::from_name(&self.tls_version).is_none() {
            return wrong("relay.tls_version".into(), "must be 1.2 or 1.3");
        }
        if !key_exchange_names().contains(&self.key_exchange.as_str()) {
            let message = format!("must be one of {}", key_exchange_names().join(", "));
            return wrong("relay.key_exchange".into(), &message);
        }
        for (field, value) in
            [("connect_timeout_ns", self.connect_timeout_ns), ("request_timeout_ns", self.request_timeout_ns)]
        {
            if value == 0 || value > 86_400_000_000_000 {
                return wrong(format!("relay.{field}"), "must be above 0 and at most one day");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
