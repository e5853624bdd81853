//! The hops of cycles: rows in memory while a run goes on, and their Parquet file.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::columns::{optional, required};
use crate::file::to_io;

const SCHEMA: &str = "message span {
    REQUIRED BYTE_ARRAY trial (STRING);
    REQUIRED INT64 request (INTEGER(64,false));
    REQUIRED INT32 connection (INTEGER(32,false));
    REQUIRED INT32 client (INTEGER(32,false));
    REQUIRED BOOLEAN warmup;
    REQUIRED INT32 ordinal (INTEGER(16,false));
    REQUIRED INT32 depth (INTEGER(8,false));
    REQUIRED BYTE_ARRAY caller (STRING);
    REQUIRED BYTE_ARRAY callee (STRING);
    REQUIRED BYTE_ARRAY method (STRING);
    REQUIRED BYTE_ARRAY path (STRING);
    REQUIRED INT64 started_ns;
    OPTIONAL INT64 secured_ns;
    OPTIONAL INT64 arrived_ns;
    OPTIONAL INT64 replied_ns;
    OPTIONAL INT64 returned_ns;
    OPTIONAL INT32 status (INTEGER(16,false));
    OPTIONAL BYTE_ARRAY error (STRING);
}";

/// Columns whose values grow slowly: differences pack them best.
const DELTA_COLUMNS: [&str; 6] = ["request", "started_ns", "secured_ns", "arrived_ns", "replied_ns", "returned_ns"];

/// Rows in one row group, as in the sample file.
const ROW_GROUP_ROWS: usize = 1 << 14;

/// One hop of a cycle: a call of one service to another. Times are nanoseconds on CLOCK_MONOTONIC; 0 means that it did not
/// happen, or that nobody said when, and becomes null in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span<'a> {
    /// Ordinal of the cycle's request in the run, as in its sample.
    pub request: u64,
    pub connection: u32,
    pub client: u32,
    pub warmup: bool,
    /// Order of the calls in the cycle; 0 is that of the load generator.
    pub ordinal: u16,
    /// How many calls lead to the caller.
    pub depth: u8,
    pub caller: &'a str,
    pub callee: &'a str,
    pub method: &'a str,
    pub path: &'a str,
    /// The call began, before any connecting.
    pub started_ns: u64,
    /// Its handshake was done; 0 on a connection that stood.
    pub secured_ns: u64,
    /// The callee had the whole request.
    pub arrived_ns: u64,
    /// The callee gave its answer away.
    pub replied_ns: u64,
    /// The caller had the whole answer.
    pub returned_ns: u64,
    /// 0: no answer.
    pub status: u16,
    pub error: Option<&'a str>,
}

/// A row with its texts replaced by their numbers; 0 is none.
#[derive(Clone, Copy, Debug)]
struct Row {
    request: u64,
    started_ns: u64,
    secured_ns: u64,
    arrived_ns: u64,
    replied_ns: u64,
    returned_ns: u64,
    connection: u32,
    client: u32,
    caller: u32,
    callee: u32,
    method: u32,
    path: u32,
    error: u32,
    status: u16,
    ordinal: u16,
    depth: u8,
    warmup: bool,
}

/// Spans in the order in which they were added, 88 octets each.
#[derive(Clone, Debug, Default)]
pub struct SpanStore {
    rows: Vec<Row>,
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl SpanStore {
    /// Number of spans.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no span.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a span.
    pub fn push(&mut self, span: &Span<'_>) {
        let row = Row {
            request: span.request,
            started_ns: span.started_ns,
            secured_ns: span.secured_ns,
            arrived_ns: span.arrived_ns,
            replied_ns: span.replied_ns,
            returned_ns: span.returned_ns,
            connection: span.connection,
            client: span.client,
            caller: self.number(span.caller),
            callee: self.number(span.callee),
            method: self.number(span.method),
            path: self.number(span.path),
            error: span.error.map_or(0, |error| self.number(error)),
            status: span.status,
            ordinal: span.ordinal,
            depth: span.depth,
            warmup: span.warmup,
        };
        self.rows.push(row);
    }

    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        let number = self.texts.len() as u32;
        self.numbers.insert(text, number);
        number
    }

    fn text(&self, number: u32) -> Option<&str> {
        self.texts.get((number as usize).checked_sub(1)?).map(AsRef::as_ref)
    }

    /// All spans in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Span<'_>> {
        let text = |number| self.text(number).unwrap_or_default();
        self.rows.iter().map(move |row| Span {
            request: row.request,
            connection: row.connection,
            client: row.client,
            warmup: row.warmup,
            ordinal: row.ordinal,
            depth: row.depth,
            caller: text(row.caller),
            callee: text(row.callee),
            method: text(row.method),
            path: text(row.path),
            started_ns: row.started_ns,
            secured_ns: row.secured_ns,
            arrived_ns: row.arrived_ns,
            replied_ns: row.replied_ns,
            returned_ns: row.returned_ns,
            status: row.status,
            error: self.text(row.error),
        })
    }
}

/// Writes the spans of `workers`, in that order, to a new file at `path`, and syncs it.
///
/// # Errors
/// As open(2), write(2) and fsync(2): a full disk, a folder that is read-only or missing.
pub fn write_spans(path: &Path, trial: &str, workers: &[SpanStore]) -> io::Result<()> {
    let file = File::create(path)?;
    let schema = parse_message_type(SCHEMA).map(Arc::new).map_err(to_io)?;
    let mut writer = SerializedFileWriter::new(file.try_clone()?, schema, properties()).map_err(to_io)?;
    let trial = ByteArray::from(trial.as_bytes().to_vec());
    for store in workers {
        // A ByteArray is a counted reference: one for each text, not for each row.
        let texts: Vec<ByteArray> = store.texts.iter().map(|text| ByteArray::from(text.as_bytes().to_vec())).collect();
        for rows in store.rows.chunks(ROW_GROUP_ROWS) {
            let mut group = writer.next_row_group().map_err(to_io)?;
            write_group(&mut group, &trial, &texts, rows).map_err(to_io)?;
            group.close().map_err(to_io)?;
        }
    }
    writer.close().map_err(to_io)?;
    file.sync_all()
}

fn properties() -> WriterPropertiesPtr {
    let mut builder = WriterProperties::builder().set_compression(Compression::SNAPPY).set_dictionary_enabled(true);
    for column in DELTA_COLUMNS {
        let path = ColumnPath::from(column);
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    Arc::new(builder.build())
}

fn write_group(
    group: &mut SerializedRowGroupWriter<'_, File>,
    trial: &ByteArray,
    texts: &[ByteArray],
    rows: &[Row],
) -> Result<()> {
    let text = |number: u32| (number as usize).checked_sub(1).and_then(|index| texts.get(index)).cloned();
    let known = |number: u32| text(number).unwrap_or_else(|| ByteArray::from(""));
    let time = |time_ns: u64| (time_ns != 0).then_some(time_ns as i64);
    required::<ByteArrayType>(group, rows.iter().map(|_| trial.clone()))?;
    required::<Int64Type>(group, rows.iter().map(|row| row.request as i64))?;
    required::<Int32Type>(group, rows.iter().map(|row| row.connection as i32))?;
    required::<Int32Type>(group, rows.iter().map(|row| row.client as i32))?;
    required::<BoolType>(group, rows.iter().map(|row| row.warmup))?;
    required::<Int32Type>(group, rows.iter().map(|row| i32::from(row.ordinal)))?;
    required::<Int32Type>(group, rows.iter().map(|row| i32::from(row.depth)))?;
    required::<ByteArrayType>(group, rows.iter().map(|row| known(row.caller)))?;
    required::<ByteArrayType>(group, rows.iter().map(|row| known(row.callee)))?;
    required::<ByteArrayType>(group, rows.iter().map(|row| known(row.method)))?;
    required::<ByteArrayType>(group, rows.iter().map(|row| known(row.path)))?;
    required::<Int64Type>(group, rows.iter().map(|row| row.started_ns as i64))?;
    optional::<Int64Type>(group, rows.iter().map(|row| time(row.secured_ns)))?;
    optional::<Int64Type>(group, rows.iter().map(|row| time(row.arrived_ns)))?;
    optional::<Int64Type>(group, rows.iter().map(|row| time(row.replied_ns)))?;
    optional::<Int64Type>(group, rows.iter().map(|row| time(row.returned_ns)))?;
    optional::<Int32Type>(group, rows.iter().map(|row| (row.status != 0).then_some(i32::from(row.status))))?;
    optional::<ByteArrayType>(group, rows.iter().map(|row| text(row.error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    fn spans() -> Vec<Span<'static>> {
        let whole = Span {
            request: 7,
            connection: 2,
            client: 5,
            warmup: true,
            ordinal: 0,
            depth: 0,
            caller: "A",
            callee: "B",
            method: "POST",
            path: "/chain",
            started_ns: 1_000,
            secured_ns: 1_500,
            arrived_ns: 2_000,
            replied_ns: 3_000,
            returned_ns: 4_000,
            status: 200,
            error: None,
        };
        let lost = Span {
            request: 8,
            warmup: false,
            ordinal: 1,
            depth: 1,
            caller: "B",
            callee: "C",
            secured_ns: 0,
            arrived_ns: 0,
            replied_ns: 0,
            returned_ns: 0,
            status: 0,
            error: Some("timeout"),
            ..whole
        };
        vec![whole, lost]
    }

    fn store() -> SpanStore {
        let mut store = SpanStore::default();
        spans().iter().for_each(|span| store.push(span));
        store
    }

    #[test]
    fn spans_come_back_as_they_were() {
        assert_eq!(store().iter().collect::<Vec<_>>(), spans());
        assert!(size_of::<Row>() <= 88);
    }

    #[test]
    fn the_file_has_the_rows_of_all_workers_with_real_nulls() {
        let path = std::env::temp_dir().join(format!("trifecta-spans-{}.parquet", std::process::id()));
        let mut many = SpanStore::default();
        for request in 0..ROW_GROUP_ROWS as u64 + 5 {
            many.push(&Span { request, ..spans()[0] });
        }
        write_spans(&path, "t00012", &[store(), many]).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(std::result::Result::unwrap).collect();
        assert_eq!(rows.len(), ROW_GROUP_ROWS + 7);
        let values = |row: usize| rows[row].get_column_iter().map(|(_, field)| field.clone()).collect::<Vec<_>>();
        let text = |text: &str| Field::Str(text.into());
        let common = |request, warmup, order, hop: [&str; 2]| {
            vec![
                text("t00012"),
                Field::ULong(request),
                Field::UInt(2),
                Field::UInt(5),
                Field::Bool(warmup),
                Field::UShort(order),
                Field::UByte(order as u8),
                text(hop[0]),
                text(hop[1]),
                text("POST"),
                text("/chain"),
                Field::Long(1_000),
            ]
        };
        let mut whole = common(7, true, 0, ["A", "B"]);
        whole.extend([1_500, 2_000, 3_000, 4_000].map(Field::Long));
        whole.extend([Field::UShort(200), Field::Null]);
        assert_eq!(values(0), whole);
        let mut lost = common(8, false, 1, ["B", "C"]);
        lost.extend([Field::Null, Field::Null, Field::Null, Field::Null, Field::Null, text("timeout")]);
        assert_eq!(values(1), lost);
    }

    #[test]
    fn a_full_disk_is_an_error_of_the_system() {
        let mut many = SpanStore::default();
        for request in 0..100_000 {
            many.push(&Span { request, started_ns: request * request, ..spans()[0] });
        }
        let error = write_spans(Path::new("/dev/full"), "t", &[many]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(28), "{error}");
    }
}
