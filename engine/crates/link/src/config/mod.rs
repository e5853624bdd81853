//! The configuration document of the link: section 1.3 of docs/architecture.md.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::impair::{Form, Impair, Impairment, KINDS, build};
use crate::place::{ConfigError, Place};
use crate::random::Draws;

/// Whether the survivors of a super-packet that fall due together leave as one super-packet or each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    Merge,
    Real,
}

/// Who does to packets what is asked: the link itself, or the kernel's netem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Emulator {
    #[default]
    Engine,
    Netem,
}

/// The document as it is written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    a_device: String,
    b_device: String,
    #[serde(default)]
    seed: u64,
    #[serde(default = "merge")]
    split: Split,
    #[serde(default)]
    #[schemars(with = "Vec<Form>")]
    a_to_b: Vec<Value>,
    #[serde(default)]
    #[schemars(with = "Vec<Form>")]
    b_to_a: Vec<Value>,
    #[serde(default)]
    log_file: Option<String>,
    #[serde(default)]
    capture_file: Option<String>,
    #[serde(default)]
    linger_ns: u64,
    #[serde(default = "yes")]
    realtime: bool,
    #[serde(default = "default_spin_ns")]
    spin_ns: u64,
    #[serde(default)]
    cpu: Option<usize>,
    #[serde(default = "default_memory_bytes")]
    memory_bytes: u64,
    #[serde(default)]
    bridge: bool,
    #[serde(default)]
    emulator: Emulator,
}

fn merge() -> Split {
    Split::Merge
}

fn yes() -> bool {
    true
}

fn default_spin_ns() -> u64 {
    60_000
}

const MOST_LINGER_NS: u64 = 10_000_000_000;

fn default_memory_bytes() -> u64 {
    1 << 30
}

/// A checked configuration.
#[derive(Debug)]
pub struct Config {
    pub a_device: String,
    pub b_device: String,
    pub seed: u64,
    pub split: Split,
    /// The impairments of the directions a to b and b to a.
    pub directions: [Vec<Spec>; 2],
    pub log_file: Option<String>,
    /// Where to write every wire packet, on both sides of the impairments.
    pub capture_file: Option<String>,
    /// How long to go on carrying packets after it was asked to end and has said its summary, which they are not in.
    pub linger_ns: u64,
    /// Ask for SCHED_FIFO and locked memory.
    pub realtime: bool,
    /// Longest time to poll actively before a packet is due.
    pub spin_ns: u64,
    pub cpu: Option<usize>,
    /// Most octets of packets in flight; beyond it packets are dropped and counted.
    pub memory_bytes: u64,
    /// Stand between two networks: devices take in what is for others, and neighbour discovery passes.
    pub bridge: bool,
    pub emulator: Emulator,
}

/// Names of the directions in the configuration and the summary.
pub const DIRECTIONS: [&str; 2] = ["a_to_b", "b_to_a"];

/// One impairment as asked for.
#[derive(Clone, Debug)]
pub struct Spec {
    pub kind: String,
    document: Value,
}

impl Spec {
    /// Its fields as they were read; of a list, which may be a whole trace, how long it is.
    #[must_use]
    pub fn asked(&self) -> Map<String, Value> {
        let fields = self.document.as_object().into_iter().flatten();
        let short = |value: &Value| value.as_array().map_or_else(|| value.clone(), |list| Value::from(list.len()));
        fields.map(|(name, value)| (name.clone(), short(value))).collect()
    }
}

impl Config {
    /// Reads and checks the document.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let document: Document = serde_json::from_str(text)
            .map_err(|error| ConfigError::new("config", format!("{error}; see docs/architecture.md, section 1.3")))?;
        for (field, name) in [("a_device", &document.a_device), ("b_device", &document.b_device)] {
            // IFNAMSIZ, if_nametoindex(3)
            if name.is_empty() || name.len() > 15 || name.contains(['/', '\0']) {
                return Err(ConfigError::new(field, format!("'{name}' is no device name; give 1 to 15 characters")));
            }
        }
        if document.a_device == document.b_device {
            return Err(ConfigError::new("b_device", "is the same as a_device; name the other end"));
        }
        if document.spin_ns > 1_000_000 {
            return Err(ConfigError::new("spin_ns", "is above 1 ms; give at most 1000000"));
        }
        if document.linger_ns > MOST_LINGER_NS {
            return Err(ConfigError::new("linger_ns", format!("is above 10 s; give at most {MOST_LINGER_NS}")));
        }
        if document.linger_ns > 0 && (document.log_file.is_some() || document.capture_file.is_some()) {
            return Err(ConfigError::new("linger_ns", "is for a link that keeps no log and no capture; leave it out"));
        }
        if document.memory_bytes < 1 << 20 {
            return Err(ConfigError::new("memory_bytes", "is below 1 MiB; give at least 1048576"));
        }
        let config = Config {
            directions: [specs("a_to_b", document.a_to_b)?, specs("b_to_a", document.b_to_a)?],
            a_device: document.a_device,
            b_device: document.b_device,
            seed: document.seed,
            split: document.split,
            log_file: document.log_file,
            capture_file: document.capture_file,
            realtime: document.realtime,
            linger_ns: document.linger_ns,
            spin_ns: document.spin_ns,
            cpu: document.cpu,
            memory_bytes: document.memory_bytes,
            bridge: document.bridge,
            emulator: document.emulator,
        };
        for direction in 0..DIRECTIONS.len() {
            config.impairments(direction, 0)?;
        }
        if config.emulator == Emulator::Netem {
            for (field, file) in [("log_file", &config.log_file), ("capture_file", &config.capture_file)] {
                if file.is_some() {
                    let message = "netem shows no packets; leave it out, or use the engine's own link";
                    return Err(ConfigError::new(field, message));
                }
            }
        }
        Ok(config)
    }

    /// The impairments of a direction, ready to use; `start_ns` is the time at which traces begin.
    pub fn impairments(&self, direction: usize, start_ns: u64) -> Result<Vec<Impairment>, ConfigError> {
        let specs = &self.directions[direction];
        let mut delayed = false;
        let mut built: Vec<Impairment> = Vec::with_capacity(specs.len());
        for (index, spec) in specs.iter().enumerate() {
            let field = format!("{}[{index}]", DIRECTIONS[direction]);
            let occurrence = specs[..index].iter().filter(|earlier| earlier.kind == spec.kind).count() as u64;
            let draws = Draws::new(self.seed, direction as u8, &spec.kind, occurrence);
            let place = Place { field: &field, draws, start_ns };
            let impairment = build(&spec.kind, &spec.document, place)?;
            if impairment.overtakes() && !delayed {
                let message = "has no delay before it in which to overtake; put it behind a delay or jitter";
                return Err(ConfigError::new(field, message));
            }
            delayed |= impairment.can_be_overtaken();
            built.push(impairment);
        }
        Ok(built)
    }
}

fn specs(field: &str, documents: Vec<Value>) -> Result<Vec<Spec>, ConfigError> {
    let spec = |(index, mut document): (usize, Value)| {
        let field = format!("{field}[{index}]");
        let object = document
            .as_object_mut()
            .ok_or_else(|| ConfigError::new(&field, "is no object; write for example {\"kind\": \"delay\", ...}"))?;
        match object.remove("kind") {
            Some(Value::String(kind)) => Ok(Spec { kind, document }),
            _ => Err(ConfigError::new(format!("{field}.kind"), format!("is missing; use one of {}", KINDS.join(", ")))),
        }
    };
    documents.into_iter().enumerate().map(spec).collect()
}

#[cfg(test)]
mod tests;
