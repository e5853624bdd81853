//! The log of the link, one row a wire packet: schema and Parquet writer.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::columns::{optional, required};

const SCHEMA: &str = "message link {
    required int32 direction (INTEGER(8, false));
    required int64 ordinal (INTEGER(64, false));
    required int64 arrived_ns;
    optional int64 due_ns;
    optional int64 left_ns;
    required int32 bytes (INTEGER(32, false));
    required binary fate (UTF8);
    required int32 flow_hash (INTEGER(32, false));
}";

/// Rows kept in memory before a row group is written.
const ROWS_IN_GROUP: usize = 256 * 1024;

/// What became of a wire packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Delivered,
    Lost,
    QueueDropped,
    /// Delivered with a flipped bit.
    Corrupted,
    /// A delivered copy.
    Duplicate,
    /// The device did not take it.
    SendError,
    /// Dropped because too much was in flight for the memory allowed.
    MemoryDropped,
}

impl Fate {
    const fn name(self) -> &'static str {
        match self {
            Fate::Delivered => "delivered",
            Fate::Lost => "lost",
            Fate::QueueDropped => "queue_dropped",
            Fate::Corrupted => "corrupted",
            Fate::Duplicate => "duplicate",
            Fate::SendError => "send_error",
            Fate::MemoryDropped => "memory_dropped",
        }
    }
}

/// One wire packet. Times are on CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRow {
    /// 0: a to b, 1: b to a.
    pub direction: u8,
    /// Counts the wire packets of the direction from 0; a duplicate has the ordinal of its original.
    pub ordinal: u64,
    pub arrived_ns: u64,
    /// When it was to leave; none when it was dropped before that was known.
    pub due_ns: Option<u64>,
    /// When it left; none when it did not.
    pub left_ns: Option<u64>,
    /// Ethernet frame without FCS, in octets.
    pub bytes: u32,
    pub fate: Fate,
    /// Names the flow: addresses, protocol and ports.
    pub flow_hash: u32,
}

/// Writes rows to a Parquet file, one row group at a time.
pub struct LinkLogWriter {
    writer: SerializedFileWriter<File>,
    rows: Vec<LinkRow>,
}

impl LinkLogWriter {
    /// Creates the file; one that exists is replaced.
    ///
    /// # Errors
    /// When the file cannot be created or written.
    pub fn create(path: &Path) -> Result<Self> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let writer = SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?;
        Ok(LinkLogWriter { writer, rows: Vec::new() })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, rows: &[LinkRow]) -> Result<()> {
        self.rows.extend_from_slice(rows);
        if self.rows.len() >= ROWS_IN_GROUP { self.write_group() } else { Ok(()) }
    }

    /// Writes the last rows and the footer, and waits until the file is on the disk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.writer.into_inner()?.sync_all()?;
        Ok(())
    }

    fn write_group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let mut group = self.writer.next_row_group()?;
        required::<Int32Type>(&mut group, rows.iter().map(|row| i32::from(row.direction)))?;
        required::<Int64Type>(&mut group, rows.iter().map(|row| row.ordinal as i64))?;
        required::<Int64Type>(&mut group, rows.iter().map(|row| row.arrived_ns as i64))?;
        optional::<Int64Type>(&mut group, rows.iter().map(|row| row.due_ns.map(|ns| ns as i64)))?;
        optional::<Int64Type>(&mut group, rows.iter().map(|row| row.left_ns.map(|ns| ns as i64)))?;
        required::<Int32Type>(&mut group, rows.iter().map(|row| row.bytes as i32))?;
        required::<ByteArrayType>(&mut group, rows.iter().map(|row| ByteArray::from(row.fate.name())))?;
        required::<Int32Type>(&mut group, rows.iter().map(|row| row.flow_hash as i32))?;
        group.close()?;
        self.rows = rows;
        self.rows.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    #[test]
    fn rows_are_read_back_as_they_were_written() {
        let path = std::env::temp_dir().join(format!("trifecta-link-log-{}.parquet", std::process::id()));
        let row = |ordinal: u64| LinkRow {
            direction: (ordinal % 2) as u8,
            ordinal,
            arrived_ns: 1_000 + ordinal,
            due_ns: (!ordinal.is_multiple_of(3)).then_some(2_000 + ordinal),
            left_ns: (ordinal % 3 == 1).then_some(3_000 + ordinal),
            bytes: 1514,
            fate: if ordinal.is_multiple_of(3) { Fate::Lost } else { Fate::Delivered },
            flow_hash: u32::MAX,
        };
        let rows: Vec<LinkRow> = (0..ROWS_IN_GROUP as u64 + 10).map(row).collect();
        let mut writer = LinkLogWriter::create(&path).unwrap();
        rows.chunks(70_000).for_each(|chunk| writer.write(chunk).unwrap());
        writer.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut seen = 0;
        for (expected, read) in rows.iter().zip(reader.get_row_iter(None).unwrap()) {
            let read = read.unwrap();
            assert_eq!(read.get_ubyte(0).unwrap(), expected.direction);
            assert_eq!(read.get_ulong(1).unwrap(), expected.ordinal);
            assert_eq!(read.get_long(2).unwrap(), expected.arrived_ns as i64);
            assert_eq!(read.get_long(3).ok(), expected.due_ns.map(|ns| ns as i64));
            assert_eq!(read.get_long(4).ok(), expected.left_ns.map(|ns| ns as i64));
            assert_eq!(read.get_uint(5).unwrap(), expected.bytes);
            assert_eq!(read.get_string(6).unwrap(), expected.fate.name());
            assert_eq!(read.get_uint(7).unwrap(), expected.flow_hash);
            seen += 1;
        }
        assert_eq!(seen, rows.len());
    }
}
