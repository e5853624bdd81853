//! The rows that the engine records, in memory and as Parquet files.

mod columns;
mod file;
pub mod link_log;
pub mod probe_samples;
mod sample;
pub mod schema;
mod spans;
mod store;

pub use file::write_samples;
pub use sample::Sample;
pub use spans::{Span, SpanStore, write_spans};
pub use store::{Iter, SampleStore};
