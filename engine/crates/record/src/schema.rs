//! The columns of the sample file.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::errors::Result;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, TypePtr};

/// One row a request; see docs/architecture.md, section 1.1. Times are nanoseconds on CLOCK_MONOTONIC.
pub const SAMPLE_SCHEMA: &str = "message sample {
    REQUIRED BYTE_ARRAY trial (STRING);
    REQUIRED INT32 worker (INTEGER(16,false));
    REQUIRED INT32 connection (INTEGER(32,false));
    REQUIRED INT32 client (INTEGER(32,false));
    OPTIONAL INT64 stream (INTEGER(64,false));
    REQUIRED INT64 request (INTEGER(64,false));
    REQUIRED BOOLEAN warmup;
    OPTIONAL INT64 intended_ns;
    REQUIRED INT64 started_ns;
    OPTIONAL INT64 connect_start_ns;
    OPTIONAL INT64 tcp_connected_ns;
    OPTIONAL INT64 secured_ns;
    OPTIONAL INT64 request_sent_ns;
    OPTIONAL INT64 first_byte_ns;
    OPTIONAL INT64 done_ns;
    OPTIONAL BYTE_ARRAY protocol (STRING);
    OPTIONAL BYTE_ARRAY tls_version (STRING);
    OPTIONAL BYTE_ARRAY cipher (STRING);
    REQUIRED BOOLEAN resumed;
    REQUIRED BOOLEAN zero_rtt;
    OPTIONAL INT32 status (INTEGER(16,false));
    REQUIRED INT64 bytes_out (INTEGER(64,false));
    REQUIRED INT64 bytes_in (INTEGER(64,false));
    REQUIRED INT64 header_bytes_in (INTEGER(64,false));
    OPTIONAL BYTE_ARRAY error (STRING);
}";

/// Columns whose values grow slowly or spread widely: differences pack them best.
const DELTA_COLUMNS: [&str; 10] = [
    "stream",
    "request",
    "intended_ns",
    "started_ns",
    "connect_start_ns",
    "tcp_connected_ns",
    "secured_ns",
    "request_sent_ns",
    "first_byte_ns",
    "done_ns",
];

/// The schema as the writer wants it.
///
/// # Errors
/// Never for the text above; a test reads it.
pub fn sample_schema() -> Result<TypePtr> {
    parse_message_type(SAMPLE_SCHEMA).map(Arc::new)
}

/// Snappy; dictionaries for what repeats, differences for times.
#[must_use]
pub fn sample_properties() -> WriterPropertiesPtr {
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("trifecta-engine ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(true);
    for column in DELTA_COLUMNS {
        let path = ColumnPath::from(column);
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Arc::new(builder.build())
}
