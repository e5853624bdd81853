//! The probe's round trips: schema and Parquet writer.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::Int64Type;
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::columns::required;

const SCHEMA: &str = "message probe {
    required int64 sequence (INTEGER(64, false));
    required int64 sent_ns;
    required int64 reflected_in_ns;
    required int64 reflected_out_ns;
    required int64 received_ns;
}";

/// One probe that came back. Times are on CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeRow {
    pub sequence: u64,
    pub sent_ns: u64,
    pub reflected_in_ns: u64,
    pub reflected_out_ns: u64,
    pub received_ns: u64,
}

/// Writes all rows; a file that exists is replaced.
///
/// # Errors
/// When the file cannot be created or written.
pub fn write_probe_samples(path: &Path, rows: &[ProbeRow]) -> Result<()> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?;
    let columns: [fn(&ProbeRow) -> u64; 5] = [
        |row| row.sequence,
        |row| row.sent_ns,
        |row| row.reflected_in_ns,
        |row| row.reflected_out_ns,
        |row| row.received_ns,
    ];
    let mut group = writer.next_row_group()?;
    for column in columns {
        required::<Int64Type>(&mut group, rows.iter().map(|row| column(row) as i64))?;
    }
    group.close()?;
    writer.into_inner()?.sync_all()?;
    Ok(())
}
