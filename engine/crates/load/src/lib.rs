//! The load generator: HTTP/1.1, HTTP/2 and HTTP/3 clients behind one trait, driven by one epoll loop a worker.

pub mod config;
pub mod content;
pub mod driver;
pub mod error;
pub mod lag;
pub mod pacer;

pub mod session;
pub mod transport_stats;

/// Runs this part of the engine; the exit code is that of the process.
pub fn run(_config_text: &str) -> i32 {
    eprintln!("error: command: not built yet");
    127
}
