//! What is asked beside the request itself: its pace, who asks, what is kept of answers, and when to leave off.

use super::{Config, FieldError, Loop};

impl Config {
    pub(super) fn validate_loop(&self) -> Result<(), FieldError> {
        let refuse = |field: &str, message: &str| Err(FieldError::new(field, message));
        match self.load {
            Loop::Open { rate_per_s, .. } if !(rate_per_s.is_finite() && rate_per_s > 0.0 && rate_per_s <= 1e8) => {
                refuse("loop.rate_per_s", "must be above 0 and at most 1e8 requests per second")
            }
            Loop::Closed { least_gap_ns } if least_gap_ns > 3_600_000_000_000 => {
                refuse("loop.least_gap_ns", "must be at most one hour")
            }
            // Several in flight would have to share the gap, and nobody asks for that.
            Loop::Closed { least_gap_ns } if least_gap_ns > 0 && self.clients() != 1 => {
                refuse("loop.least_gap_ns", "needs one connection with one stream, so one request at a time")
            }
            _ => Ok(()),
        }
    }

    pub(super) fn validate_asking(&self) -> Result<(), FieldError> {
        let refuse = |field: &str, message: &str| Err(FieldError::new(field, message));
        let is_token = |name: &String| {
            (1..=64).contains(&name.len())
                && name.bytes().all(|octet| octet == b'-' || octet.is_ascii_digit() || octet.is_ascii_lowercase())
        };
        if self.record_fields.len() > 32 || !self.record_fields.iter().all(is_token) {
            return refuse("record_fields", "must be at most 32 field names in lower case, of 1 to 64 characters");
        }
        if self.end_on_statuses.iter().any(|status| !(100..=999).contains(status)) {
            return refuse("end_on_statuses", "must be status codes, 100 to 999");
        }
        let visible = |agent: &String| {
            (1..=256).contains(&agent.len())
                && agent.bytes().all(|octet| octet == b' ' || octet.is_ascii_graphic())
                && agent.trim() == agent
        };
        if !self.user_agent.as_ref().is_none_or(visible) {
            return refuse("user_agent", "must have 1 to 256 visible ASCII characters, with spaces between");
        }
        Ok(())
    }
}
