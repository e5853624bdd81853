//! The log of packets: rows are handed in blocks to a thread of their own, so that writing never holds up the link.

use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use trifecta_record::link_log::{LinkLogWriter, LinkRow};

const ROWS_IN_BLOCK: usize = 16_384;
/// Blocks that may wait for the disk: two million rows. Beyond that rows are left out, and counted.
const BLOCKS_WAITING: usize = 128;

/// Takes rows while the link runs.
pub struct Log {
    block: Vec<LinkRow>,
    to_writer: SyncSender<Vec<LinkRow>>,
    writer: JoinHandle<Result<u64, String>>,
    dropped_rows: u64,
}

impl Log {
    /// Creates the file and starts the thread that writes it.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path) -> Result<Self, String> {
        let mut file = LinkLogWriter::create(path).map_err(|error| error.to_string())?;
        let (to_writer, blocks) = sync_channel::<Vec<LinkRow>>(BLOCKS_WAITING);
        let write = move || {
            let mut rows = 0;
            for block in blocks {
                rows += block.len() as u64;
                file.write(&block).map_err(|error| error.to_string())?;
            }
            file.finish().map_err(|error| error.to_string())?;
            Ok(rows)
        };
        let writer =
            std::thread::Builder::new().name("link-log".into()).spawn(write).map_err(|error| error.to_string())?;
        Ok(Log { block: Vec::with_capacity(ROWS_IN_BLOCK), to_writer, writer, dropped_rows: 0 })
    }

    pub fn push(&mut self, row: LinkRow) {
        self.block.push(row);
        if self.block.len() == ROWS_IN_BLOCK {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(ROWS_IN_BLOCK));
        if let Err(TrySendError::Full(block) | TrySendError::Disconnected(block)) = self.to_writer.try_send(block) {
            self.dropped_rows += block.len() as u64;
        }
    }

    /// Writes what is left and closes the file: rows written, and rows left out because the disk was too slow.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn finish(self) -> Result<(u64, u64), String> {
        let Log { block, to_writer, writer, dropped_rows } = self;
        // The link has stopped: now waiting is allowed. A writer that has failed says so below.
        let _ = to_writer.send(block);
        drop(to_writer);
        let rows = writer.join().map_err(|_| "the writer of the log panicked".to_owned())??;
        Ok((rows, dropped_rows))
    }
}
