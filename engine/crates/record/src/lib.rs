//! The rows that the engine records, in memory and as Parquet files.

mod file;
pub mod link_log;
pub mod probe_samples;
mod sample;
pub mod schema;
mod store;

pub use file::write_samples;
pub use sample::Sample;
pub use store::{Iter, SampleStore};
