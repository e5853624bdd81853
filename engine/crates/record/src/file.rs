//! Writes samples to a Parquet file, one row group at a time, so that memory stays bounded.

use std::fs::File;
use std::io;
use std::path::Path;

use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use trifecta_wire::ErrorClass;

use crate::schema::{sample_properties, sample_schema};
use crate::{Sample, SampleStore};

/// Rows in one row group: large enough for readers that share groups out to threads (DuckDB's own have 122,880), small
/// enough that the rows of one stay in the cache while they are turned into columns.
const ROW_GROUP_ROWS: usize = 1 << 14;

/// Writes the samples of `workers`, in that order, to a new file at `path`, and syncs it.
///
/// # Errors
/// As open(2), write(2) and fsync(2): a full disk, a folder that is read-only or missing.
pub fn write_samples(path: &Path, trial: &str, workers: &[SampleStore]) -> io::Result<()> {
    let file = File::create(path)?;
    let schema = sample_schema().map_err(to_io)?;
    let mut writer = SerializedFileWriter::new(file.try_clone()?, schema, sample_properties()).map_err(to_io)?;
    let mut rows = workers.iter().zip(0u16..).flat_map(|(store, worker)| store.iter().map(move |row| (worker, row)));
    let mut batch: Vec<(u16, Sample)> = Vec::new();
    let total: u64 = workers.iter().map(SampleStore::len).sum();
    batch.reserve_exact((total as usize).min(ROW_GROUP_ROWS));
    loop {
        batch.clear();
        batch.extend(rows.by_ref().take(ROW_GROUP_ROWS));
        if batch.is_empty() {
            break;
        }
        let mut group = writer.next_row_group().map_err(to_io)?;
        write_group(&mut group, trial, &batch).map_err(to_io)?;
        group.close().map_err(to_io)?;
    }
    writer.close().map_err(to_io)?;
    file.sync_all()
}

pub(crate) fn to_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

/// Reused between the columns of a group.
#[derive(Default)]
struct Scratch {
    longs: Vec<i64>,
    ints: Vec<i32>,
    flags: Vec<bool>,
    texts: Vec<ByteArray>,
    levels: Vec<i16>,
}

type Rows<'a> = &'a [(u16, Sample)];

fn write_group(
    group: &mut SerializedRowGroupWriter<'_, File>,
    trial: &str,
    rows: Rows<'_>,
) -> Result<(), ParquetError> {
    let mut scratch = Scratch::default();
    let trial = ByteArray::from(trial.as_bytes().to_vec());
    let mut column = 0;
    while let Some(mut writer) = group.next_column()? {
        match column {
            0 => scratch.texts(rows, writer.untyped(), false, |_| Some(trial.clone()))?,
            1 => scratch.ints(rows, writer.untyped(), false, |(worker, _)| i32::from(*worker))?,
            2 => scratch.ints(rows, writer.untyped(), false, |(_, row)| row.connection as i32)?,
            3 => scratch.ints(rows, writer.untyped(), false, |(_, row)| row.client as i32)?,
            4 => scratch.streams(rows, writer.untyped())?,
            5 => scratch.longs(rows, writer.untyped(), false, |row| row.request)?,
            6 => scratch.flags(rows, writer.untyped(), |row| row.warmup)?,
            7 => scratch.longs(rows, writer.untyped(), true, |row| row.intended_ns)?,
            8 => scratch.longs(rows, writer.untyped(), false, |row| row.started_ns)?,
            9 => scratch.longs(rows, writer.untyped(), true, |row| row.connect_start_ns)?,
            10 => scratch.longs(rows, writer.untyped(), true, |row| row.tcp_connected_ns)?,
            11 => scratch.longs(rows, writer.untyped(), true, |row| row.secured_ns)?,
            12 => scratch.longs(rows, writer.untyped(), true, |row| row.request_sent_ns)?,
            13 => scratch.longs(rows, writer.untyped(), true, |row| row.first_byte_ns)?,
            14 => scratch.longs(rows, writer.untyped(), true, |row| row.done_ns)?,
            15 => scratch.labels(rows, writer.untyped(), |row| row.protocol)?,
            16 => scratch.labels(rows, writer.untyped(), |row| row.tls_version)?,
            17 => scratch.labels(rows, writer.untyped(), |row| row.cipher)?,
            18 => scratch.flags(rows, writer.untyped(), |row| row.resumed)?,
            19 => scratch.flags(rows, writer.untyped(), |row| row.zero_rtt)?,
            20 => scratch.ints(rows, writer.untyped(), true, |(_, row)| i32::from(row.status))?,
            21 => scratch.longs(rows, writer.untyped(), false, |row| row.bytes_out)?,
            22 => scratch.longs(rows, writer.untyped(), false, |row| row.bytes_in)?,
            23 => scratch.longs(rows, writer.untyped(), false, |row| row.header_bytes_in)?,
            24 => scratch.labels(rows, writer.untyped(), |row| row.error.map(ErrorClass::as_str))?,
            _ => return Err(ParquetError::General(format!("column {column} of the schema has no values"))),
        }
        writer.close()?;
        column += 1;
    }
    Ok(())
}

fn wrong_type() -> ParquetError {
    ParquetError::General("the schema and the values of a column differ in type".into())
}

impl Scratch {
    /// 0 becomes null in optional columns.
    fn longs(
        &mut self,
        rows: Rows<'_>,
        writer: &mut ColumnWriter<'_>,
        optional: bool,
        value: impl Fn(&Sample) -> u64,
    ) -> Result<(), ParquetError> {
        let ColumnWriter::Int64ColumnWriter(writer) = writer else { return Err(wrong_type()) };
        self.longs.clear();
        self.levels.clear();
        for (_, row) in rows {
            let value = value(row) as i64;
            if optional {
                self.levels.push(i16::from(value != 0));
            }
            if !optional || value != 0 {
                self.longs.push(value);
            }
        }
        writer.write_batch(&self.longs, optional.then_some(&self.levels[..]), None).map(|_| ())
    }

    fn streams(&mut self, rows: Rows<'_>, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let ColumnWriter::Int64ColumnWriter(writer) = writer else { return Err(wrong_type()) };
        self.longs.clear();
        self.levels.clear();
        for (_, row) in rows {
            self.levels.push(i16::from(row.stream.is_some()));
            self.longs.extend(row.stream.map(|stream| stream as i64));
        }
        writer.write_batch(&self.longs, Some(&self.levels), None).map(|_| ())
    }

    fn ints(
        &mut self,
        rows: Rows<'_>,
        writer: &mut ColumnWriter<'_>,
        optional: bool,
        value: impl Fn(&(u16, Sample)) -> i32,
    ) -> Result<(), ParquetError> {
        let ColumnWriter::Int32ColumnWriter(writer) = writer else { return Err(wrong_type()) };
        self.ints.clear();
        self.levels.clear();
        for row in rows {
            let value = value(row);
            if optional {
                self.levels.push(i16::from(value != 0));
            }
            if !optional || value != 0 {
                self.ints.push(value);
            }
        }
        writer.write_batch(&self.ints, optional.then_some(&self.levels[..]), None).map(|_| ())
    }

    fn flags(
        &mut self,
        rows: Rows<'_>,
        writer: &mut ColumnWriter<'_>,
        value: impl Fn(&Sample) -> bool,
    ) -> Result<(), ParquetError> {
        let ColumnWriter::BoolColumnWriter(writer) = writer else { return Err(wrong_type()) };
        self.flags.clear();
        self.flags.extend(rows.iter().map(|(_, row)| value(row)));
        writer.write_batch(&self.flags, None, None).map(|_| ())
    }

    fn labels(
        &mut self,
        rows: Rows<'_>,
        writer: &mut ColumnWriter<'_>,
        value: impl Fn(&Sample) -> Option<&'static str>,
    ) -> Result<(), ParquetError> {
        // A ByteArray is a counted reference: one for each label, not for each row.
        let mut known: Vec<(&'static str, ByteArray)> = Vec::new();
        let mut arrays = |label: &'static str| {
            if let Some((_, array)) = known.iter().find(|(text, _)| std::ptr::eq(*text, label) || *text == label) {
                return array.clone();
            }
            let array = ByteArray::from(label.as_bytes().to_vec());
            known.push((label, array.clone()));
            array
        };
        self.levels.clear();
        self.texts.clear();
        for (_, row) in rows {
            let label = value(row);
            self.levels.push(i16::from(label.is_some()));
            self.texts.extend(label.map(&mut arrays));
        }
        let ColumnWriter::ByteArrayColumnWriter(writer) = writer else { return Err(wrong_type()) };
        writer.write_batch(&self.texts, Some(&self.levels), None).map(|_| ())
    }

    fn texts(
        &mut self,
        rows: Rows<'_>,
        writer: &mut ColumnWriter<'_>,
        optional: bool,
        value: impl Fn(&(u16, Sample)) -> Option<ByteArray>,
    ) -> Result<(), ParquetError> {
        let ColumnWriter::ByteArrayColumnWriter(writer) = writer else { return Err(wrong_type()) };
        self.levels.clear();
        self.texts.clear();
        for row in rows {
            let text = value(row);
            self.levels.push(i16::from(text.is_some()));
            self.texts.extend(text);
        }
        writer.write_batch(&self.texts, optional.then_some(&self.levels[..]), None).map(|_| ())
    }
}

#[cfg(test)]
mod tests;
