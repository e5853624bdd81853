//! The load generator: HTTP/1.1, HTTP/2 and HTTP/3 clients behind one trait, driven by one epoll loop a worker.

pub mod config;
mod cycle;
pub mod driver;
mod fields;
pub mod lag;
pub mod pacer;
pub mod run;
pub mod summary;
mod worker;

pub use run::{Report, execute, run};
