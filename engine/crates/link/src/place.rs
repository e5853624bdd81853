//! What is wrong with a configuration and where, and the limits that fields of several kinds of impairments share.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::random::Draws;

/// What is wrong with a field, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub field: String,
    pub message: String,
}

impl ConfigError {
    #[must_use]
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        ConfigError { field: field.into(), message: message.into() }
    }
}

/// No delay is longer (an hour): a longer one is a mistake in the unit.
pub const MAX_TIME_NS: u64 = 3_600_000_000_000;

/// Where an impairment stands in a document, with what that place gives it besides its fields.
pub struct Place<'a> {
    /// For messages: `a_to_b[0]`.
    pub field: &'a str,
    pub draws: Draws,
    /// When traces begin.
    pub start_ns: u64,
}

impl Place<'_> {
    /// What is wrong with the impairment as a whole, and what to do.
    #[must_use]
    pub fn wrong(&self, message: impl Into<String>) -> ConfigError {
        ConfigError::new(self.field, message)
    }

    /// What is wrong with a field of the impairment, and what to do.
    #[must_use]
    pub fn wrong_in(&self, name: &str, message: impl Into<String>) -> ConfigError {
        ConfigError::new(format!("{}.{name}", self.field), message)
    }

    /// The fields of the impairment, read from its document.
    pub(crate) fn read<T: DeserializeOwned>(&self, kind: &str, document: &Value) -> Result<T, ConfigError> {
        serde_json::from_value(document.clone())
            .map_err(|error| self.wrong(format!("{kind}: {error}; see docs/architecture.md, section 1.3")))
    }

    /// The value of field `name`, if it is a probability.
    pub fn probability(&self, name: &str, value: f64) -> Result<f64, ConfigError> {
        if (0.0..=1.0).contains(&value) {
            return Ok(value);
        }
        Err(self.wrong_in(name, format!("{value} is no probability; give 0 to 1")))
    }

    /// The value of field `name`, if it is at most `MAX_TIME_NS`.
    pub fn time_ns(&self, name: &str, value_ns: u64) -> Result<u64, ConfigError> {
        if value_ns <= MAX_TIME_NS {
            return Ok(value_ns);
        }
        Err(self.wrong_in(name, format!("{value_ns} ns is more than an hour; check the unit")))
    }
}
