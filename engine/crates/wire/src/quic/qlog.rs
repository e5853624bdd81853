//! qlog files (draft-ietf-quic-qlog-main-schema), one a connection.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::time::Instant;

use quinn_proto::{QlogConfig, QlogStream};

/// A stream that writes the events of one connection to `path`, times counted from `start`. The file is complete once
/// the connection has been dropped.
pub fn qlog_stream(path: &Path, title: &str, start: Instant) -> io::Result<QlogStream> {
    let writer = BufWriter::with_capacity(64 * 1024, File::create(path)?);
    let mut config = QlogConfig::default();
    config.writer(Box::new(writer)).title(Some(title.to_owned())).start_time(start);
    config.into_stream().ok_or_else(|| io::Error::other("the qlog header could not be written"))
}
