//! What the workers of a run know of each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::config::{Config, FieldError};
use crate::cycle::Messages;

/// Failures in a row, with no response ever, after which a run ends by itself; as many as there are clients, if these are more.
pub const DEAD_PATH_FAILURES: u64 = 20;
/// How long after the last worker has come to the barrier all go on: long enough for those that wait to be told.
pub(super) const BARRIER_NS: u64 = 2_000_000;

/// What the workers of a run know of each other.
#[derive(Debug)]
pub struct Shared {
    responded: AtomicBool,
    failures: AtomicU64,
    dead_path_failures: u64,
    messages: Option<Arc<Messages>>,
    workers: u32,
    /// Workers that are ready to begin.
    arrived: AtomicU32,
    /// When all begin; 0 before that is known.
    begin_ns: AtomicU64,
}

impl Shared {
    /// What the workers of a run share; reads the messages of cycles.
    ///
    /// # Errors
    /// The field of the configuration that cannot be used.
    pub fn new(config: &Config) -> Result<Self, FieldError> {
        Ok(Self {
            responded: AtomicBool::new(false),
            failures: AtomicU64::new(0),
            dead_path_failures: DEAD_PATH_FAILURES.max(config.clients()),
            messages: Messages::of(config)?.map(Arc::new),
            workers: config.workers,
            arrived: AtomicU32::new(0),
            begin_ns: AtomicU64::new(0),
        })
    }

    /// Whether the run has failed often enough, with no response ever, to end.
    #[must_use]
    pub fn is_dead_path(&self) -> bool {
        !self.responded.load(Ordering::Relaxed) && self.failures.load(Ordering::Relaxed) >= self.dead_path_failures
    }

    /// A response has come: the path is alive.
    pub(super) fn note_response(&self) {
        self.responded.store(true, Ordering::Relaxed);
    }

    /// A request has failed without one.
    pub(super) fn note_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// The messages of cycles, if there are any.
    pub(super) fn messages(&self) -> Option<Arc<Messages>> {
        self.messages.clone()
    }

    /// A worker is ready to begin, or will never be. To be called once by each.
    pub fn arrive(&self, now_ns: u64) {
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.workers {
            let wait_ns = if self.workers == 1 { 0 } else { BARRIER_NS };
            self.begin_ns.store(now_ns + wait_ns, Ordering::Release);
        }
    }

    /// When all workers begin together, once they all have arrived.
    #[must_use]
    pub fn begin_ns(&self) -> Option<u64> {
        Some(self.begin_ns.load(Ordering::Acquire)).filter(|begin_ns| *begin_ns > 0)
    }
}
