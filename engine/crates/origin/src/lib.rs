//! The origin server: one handler behind HTTP/1.1, HTTP/2 and HTTP/3 on one port (docs/architecture.md 1.2).

pub mod answer;
pub mod config;
mod config_error;
mod connection;
pub mod content;
mod context;
pub mod folder;
mod h1;
mod h2;
pub mod h3;
pub mod handler;
mod live;
pub mod range;
pub mod relay;
pub mod replay;
mod serve;
mod session;
pub mod stats;
pub mod summary;
mod worker;

pub use serve::{Failure, Origin};

use trifecta_wire::process;

/// Runs the origin until it is told to end; the exit code is that of the process.
pub fn run(config_text: &str) -> i32 {
    let result = match config::Config::parse(config_text) {
        Ok(config) => serve::serve(config),
        Err(error) => return process::fail(process::exit::BAD_INPUT, &error.field, &error.message),
    };
    match result {
        Ok(()) => process::exit::DONE,
        Err(failure) => process::fail(failure.code, &failure.field, &failure.message),
    }
}
