use std::fs::File;
use std::path::PathBuf;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::*;

struct Scrap(PathBuf);

impl Scrap {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("trifecta-record-{}-{name}.parquet", std::process::id())))
    }
}

impl Drop for Scrap {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn store(rows: u64) -> SampleStore {
    let mut store = SampleStore::default();
    for row in 0..rows {
        store.push(&Sample {
            connection: 3,
            client: row as u32 + 40,
            stream: (row % 2 == 1).then_some(row),
            request: row,
            started_ns: 1_000 + row,
            done_ns: if row == 0 { 0 } else { 2_000 + row },
            status: if row == 0 { 0 } else { 200 },
            protocol: Some("h2"),
            error: (row == 0).then_some(ErrorClass::Timeout),
            warmup: row == 1,
            ..Sample::default()
        });
    }
    store
}

fn column(row: &parquet::record::Row, name: &str) -> Field {
    row.get_column_iter().find(|(column, _)| column.as_str() == name).unwrap().1.clone()
}

#[test]
fn rows_come_back_with_real_nulls() {
    let scrap = Scrap::new("rows");
    write_samples(&scrap.0, "t00012", &[store(3), store(2)]).unwrap();
    let reader = SerializedFileReader::new(File::open(&scrap.0).unwrap()).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 5);
    assert_eq!(column(&rows[0], "trial"), Field::Str("t00012".into()));
    assert_eq!(column(&rows[0], "worker"), Field::UShort(0));
    assert_eq!(column(&rows[4], "worker"), Field::UShort(1));
    assert_eq!((column(&rows[1], "connection"), column(&rows[1], "client")), (Field::UInt(3), Field::UInt(41)));
    assert_eq!(column(&rows[0], "done_ns"), Field::Null);
    assert_eq!(column(&rows[0], "status"), Field::Null);
    assert_eq!(column(&rows[0], "stream"), Field::Null);
    assert_eq!(column(&rows[0], "error"), Field::Str("timeout".into()));
    assert_eq!(column(&rows[1], "stream"), Field::ULong(1));
    assert_eq!(column(&rows[1], "done_ns"), Field::Long(2_001));
    assert_eq!(column(&rows[1], "status"), Field::UShort(200));
    assert_eq!(column(&rows[1], "error"), Field::Null);
    assert_eq!(column(&rows[1], "warmup"), Field::Bool(true));
    assert_eq!(column(&rows[2], "connect_start_ns"), Field::Null);
    assert_eq!(column(&rows[2], "cipher"), Field::Null);
}

#[test]
fn no_samples_make_a_file_without_rows() {
    let scrap = Scrap::new("empty");
    write_samples(&scrap.0, "t", &[SampleStore::default()]).unwrap();
    let reader = SerializedFileReader::new(File::open(&scrap.0).unwrap()).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), 0);
    assert_eq!(reader.metadata().file_metadata().schema().get_fields().len(), 25);
}

#[test]
fn many_rows_make_several_groups() {
    let scrap = Scrap::new("groups");
    let rows = ROW_GROUP_ROWS as u64 + 10;
    write_samples(&scrap.0, "t", &[store(rows)]).unwrap();
    let reader = SerializedFileReader::new(File::open(&scrap.0).unwrap()).unwrap();
    let metadata = reader.metadata();
    assert_eq!((metadata.num_row_groups(), metadata.file_metadata().num_rows()), (2, rows as i64));
    let size = std::fs::metadata(&scrap.0).unwrap().len();
    assert!(size < rows * 8, "{size} octets for {rows} rows");
}

#[test]
fn a_folder_that_is_missing_is_an_error() {
    let error = write_samples(&std::env::temp_dir().join("no-such-folder-x/y.parquet"), "t", &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_full_disk_is_an_error_of_the_system() {
    let error = write_samples(std::path::Path::new("/dev/full"), "t", &[store(100_000)]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc_enospc()), "{error}");
}

fn libc_enospc() -> i32 {
    28
}
