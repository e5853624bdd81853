//! The origin server: one handler behind HTTP/1.1, HTTP/2 and HTTP/3 on one port (docs/architecture.md 1.2).

pub mod config;
pub mod content;
pub mod folder;
pub mod h3;
pub mod handler;
pub mod stats;

use trifecta_wire::process;

/// Runs the origin until it is told to end; the exit code is that of the process.
pub fn run(config_text: &str) -> i32 {
    match config::Config::parse(config_text) {
        Ok(_) => process::fail(process::exit::UNSUPPORTED, "command", "not built yet"),
        Err(error) => process::fail(process::exit::BAD_INPUT, &error.field, &error.message),
    }
}
