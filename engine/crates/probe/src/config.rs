//! The configuration document of the probe: section 1.4 of docs/architecture.md.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Deserialize;

/// A train and the list of round trips stay in memory: this many packets at most.
pub const MAX_PACKETS: u32 = 10_000_000;
pub const MAX_TRAIN_PACKETS: u32 = 10_000;
/// Largest UDP payload over IPv4.
const MAX_PAYLOAD_BYTES: usize = 65_507;

/// What to do at which address.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "lowercase", deny_unknown_fields)]
pub enum Config {
    /// Answer probes until asked to stop.
    Reflect { address: IpAddr, port: u16 },
    /// Measure the path to a reflector.
    Measure(Measure),
}

/// A measurement.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    pub address: IpAddr,
    pub port: u16,
    #[serde(default = "default_packets")]
    pub packets: u32,
    #[serde(default = "default_interval_ns")]
    pub interval_ns: u64,
    #[serde(default = "default_payload_bytes")]
    pub payload_bytes: usize,
    /// How long to wait for the last replies, and at least for the count of the far end.
    #[serde(default = "default_timeout_ns")]
    pub timeout_ns: u64,
    #[serde(default)]
    pub train_packets: u32,
    #[serde(default)]
    pub largest: bool,
    #[serde(default)]
    pub samples_file: Option<String>,
}

fn default_packets() -> u32 {
    200
}

fn default_interval_ns() -> u64 {
    2_000_000
}

fn default_payload_bytes() -> usize {
    64
}

fn default_timeout_ns() -> u64 {
    2_000_000_000
}

/// What is wrong with a field, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub field: &'static str,
    pub message: String,
}

impl Config {
    /// Reads and checks the document.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let fail = |field, message: String| Err(ConfigError { field, message });
        let config: Config = match serde_json::from_str(text) {
            Ok(config) => config,
            Err(error) => return fail("config", format!("{error}; see docs/architecture.md, section 1.4")),
        };
        if let Config::Measure(measure) = &config {
            if measure.port == 0 {
                return fail("port", "is 0; give the reflector's port".into());
            }
            if measure.packets > MAX_PACKETS {
                return fail("packets", format!("is above {MAX_PACKETS}; give fewer"));
            }
            if measure.train_packets == 1 || measure.train_packets > MAX_TRAIN_PACKETS {
                let train = measure.train_packets;
                return fail("train_packets", format!("{train} make no train; give 0, or 2 to {MAX_TRAIN_PACKETS}"));
            }
            let least = crate::packet::HEADER_BYTES;
            if !(least..=MAX_PAYLOAD_BYTES).contains(&measure.payload_bytes) {
                return fail("payload_bytes", format!("is out of range; give {least} to {MAX_PAYLOAD_BYTES}"));
            }
            if measure.timeout_ns == 0 || measure.timeout_ns > 600_000_000_000 {
                return fail("timeout_ns", "is out of range; give 1 ns to 600 s".into());
            }
            if measure.interval_ns > 60_000_000_000 {
                return fail("interval_ns", "is above a minute; check the unit".into());
            }
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_contract_are_read() {
        let reflect = r#"{"role": "reflect", "address": "10.77.0.2", "port": 9}"#;
        assert!(matches!(Config::parse(reflect), Ok(Config::Reflect { port: 9, .. })));
        let measure = r#"{"role": "measure", "address": "10.77.0.2", "port": 9, "packets": 200,
"interval_ns": 2000000, "payload_bytes": 64, "timeout_ns": 2000000000, "train_packets": 0, "largest": true, "samples_file": null}"#;
        assert!(matches!(Config::parse(measure), Ok(Config::Measure(Measure { largest: true, packets: 200, .. }))));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_field() {
        for (fields, field) in [
            (r#""port": 0"#, "port"),
            (r#""port": 9, "payload_bytes": 8"#, "payload_bytes"),
            (r#""port": 9, "train_packets": 1"#, "train_packets"),
            (r#""port": 9, "timeout_ns": 0"#, "timeout_ns"),
            (r#""port": 9, "packets": 99999999"#, "packets"),
            (r#""port": 9, "interval_ns": 99999999999999"#, "interval_ns"),
            (r#""port": 9, "colour": 1"#, "config"),
            (r#""port": 70000"#, "config"),
        ] {
            let text = format!(r#"{{"role": "measure", "address": "::1", {fields}}}"#);
            assert_eq!(Config::parse(&text).unwrap_err().field, field, "{text}");
        }
    }
}
