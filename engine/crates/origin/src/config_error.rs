//! What is wrong with a configuration.

/// A field that cannot be used, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub field: String,
    pub message: String,
}
