//! The fields of cycles: what is sent to services, by whom, and how often.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Config, FieldError, Loop};

/// Where the bodies of messages come from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageSource {
    /// So many octets of filler.
    BodyBytes(u64),
    /// The files `*.json` of a folder in turn, in the order of their names.
    Folder(PathBuf),
}

impl Config {
    pub(super) fn validate_cycle(&self) -> Result<(), FieldError> {
        let refuse = |field: &str, message: &str| Err(FieldError::new(field, message));
        if self.requests_per_client > 0 {
            if self.requests > 0 {
                return refuse("requests", "must be 0 with requests_per_client, which says how many there are");
            }
            if !matches!(self.load, Loop::Closed { .. }) {
                return refuse("requests_per_client", "needs a closed loop; an open one belongs to no client");
            }
            if self.requests_per_client.checked_mul(self.clients()).is_none() {
                return refuse("requests_per_client", "times the number of clients is more than can be counted");
            }
        }
        for (field, name) in [("service", Some(&self.service)), ("to", self.to.as_ref())] {
            let fits =
                |name: &String| (1..=64).contains(&name.len()) && name.bytes().all(|octet| octet.is_ascii_graphic());
            if !name.is_none_or(fits) {
                return refuse(field, "must have 1 to 64 visible ASCII characters");
            }
        }
        if self.to.is_none() {
            let present = [("message", self.message.is_some()), ("spans_file", self.spans_file.is_some())];
            return match present.into_iter().find(|(_, is_there)| *is_there) {
                Some((field, _)) => refuse(field, "needs `to`, the name of the service that is called"),
                None => Ok(()),
            };
        }
        if self.message.is_some() != self.method.has_content() {
            return refuse("message", "belongs to POST, PUT and PATCH, which need it, and to no other method");
        }
        if self.request_body_bytes > 0 {
            return refuse("request_body_bytes", "must be 0 with `to`; message says what is sent");
        }
        if self.verify_content == Some(true) {
            return refuse("verify_content", "compares with the pattern, which is not what a service answers");
        }
        Ok(())
    }
}
