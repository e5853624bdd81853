//! The subcommand: reads the configuration, runs the workers, writes samples and summary.

use std::fs::File;
use std::io;
use std::sync::Arc;

use serde_json::{Value, json};
use trifecta_record::SampleStore;
use trifecta_session::Session;
use trifecta_session::h1::H1Session;
use trifecta_session::h2::H2Session;
use trifecta_session::h3::H3Session;
use trifecta_wire::process::{self, Usage, exit, fail};

use crate::config::{Config, FieldError, Protocol};
use crate::driver::Shared;
use crate::summary::summary;
use crate::worker::{Outcome, Worker};

/// Why the load generator gives up: an exit code and the line for standard error.
struct Failure {
    code: i32,
    field: String,
    message: String,
}

impl From<FieldError> for Failure {
    fn from(error: FieldError) -> Self {
        Self { code: exit::BAD_INPUT, field: error.field, message: error.message }
    }
}

impl Failure {
    fn cannot(field: &str, message: impl std::fmt::Display) -> Self {
        Self { code: exit::CANNOT, field: field.to_owned(), message: message.to_string() }
    }
}

/// Runs the load generator with a configuration document (docs/architecture.md, section 1.1); the exit code is that of the
/// process.
pub fn run(config_text: &str) -> i32 {
    match run_config(config_text) {
        Ok(()) => exit::DONE,
        Err(failure) => fail(failure.code, &failure.field, &failure.message),
    }
}

fn run_config(text: &str) -> Result<(), Failure> {
    let config = Arc::new(Config::parse(text)?);
    process::prepare().map_err(|error| Failure::cannot("process", error))?;
    match config.protocol {
        Protocol::H1 => run_protocol::<H1Session>(&config),
        Protocol::H2 => run_protocol::<H2Session>(&config),
        Protocol::H3 => run_protocol::<H3Session>(&config),
    }
}

/// What a run brought.
pub struct Report {
    /// The summary object.
    pub summary: Value,
    /// The samples of each worker, if the configuration names a file for them.
    pub samples: Vec<SampleStore>,
}

fn run_protocol<S: Session>(config: &Arc<Config>) -> Result<(), Failure> {
    // What cannot work is said before any traffic.
    let shareds = share::<S>(config)?;
    if let Some(path) = &config.samples_file {
        File::create(path).map_err(|error| Failure::cannot("samples_file", format!("{}: {error}", path.display())))?;
    }
    let ready = json!({
        "protocol": config.protocol.name(),
        "address": config.address.to_string(),
        "port": config.port,
        "process": std::process::id(),
    });
    process::write_ready(&ready).map_err(|error| Failure::cannot("stdout", error))?;
    let report = measure::<S>(config, shareds, process::stdin_is_watched())?;
    if let Some(path) = &config.samples_file {
        trifecta_record::write_samples(path, &config.trial, &report.samples)
            .map_err(|error| Failure::cannot("samples_file", format!("{}: {error}", path.display())))?;
    }
    process::write_summary(&report.summary).map_err(|error| Failure::cannot("stdout", error))
}

/// Runs a session type of this process's own choice without writing anything; for tests and benchmarks.
///
/// # Errors
/// The field, or the part of the system, that stands in the way.
pub fn execute<S: Session>(config: &Arc<Config>) -> Result<Report, FieldError> {
    share::<S>(config)
        .and_then(|shareds| measure::<S>(config, shareds, false))
        .map_err(|failure| FieldError::new(failure.field, failure.message))
}

fn share<S: Session>(config: &Arc<Config>) -> Result<Vec<S::Shared>, Failure> {
    let options = config.options();
    Ok((0..config.workers).map(|_| S::shared(&options)).collect::<Result<Vec<_>, _>>()?)
}

fn measure<S: Session>(config: &Arc<Config>, shareds: Vec<S::Shared>, watches_stdin: bool) -> Result<Report, Failure> {
    let before = Usage::now();
    let outcomes = run_workers::<S>(config, shareds, watches_stdin)?;
    let usage = Usage::now().since(before);
    let summary = summary(config, &outcomes, usage);
    let samples = outcomes.into_iter().map(|outcome| outcome.driver.samples).collect();
    Ok(Report { summary, samples })
}

fn run_workers<S: Session>(
    config: &Arc<Config>,
    shareds: Vec<S::Shared>,
    watches_stdin: bool,
) -> Result<Vec<Outcome>, Failure> {
    let run = Arc::new(Shared::default());
    let work = |index: u32, shared: S::Shared| -> Result<Outcome, Failure> {
        if let Some(cpu) = config.cpu {
            let cpu = cpu + index as usize;
            process::pin_to_cpu(cpu).map_err(|error| Failure::cannot("cpu", format!("{cpu}: {error}")))?;
        }
        Worker::<S>::new(config, run.clone(), shared, index, watches_stdin && index == 0)
            .and_then(Worker::run)
            .map_err(|error: io::Error| Failure::cannot("epoll", error))
    };
    let mut shareds = (0u32..).zip(shareds);
    let Some((_, first)) = shareds.next() else { return Ok(Vec::new()) };
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = shareds.map(|(index, shared)| scope.spawn(move || work(index, shared))).collect();
        // The first worker is this thread, so that the usual single one needs no other.
        let mut outcomes = vec![work(0, first)];
        outcomes.extend(threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(Failure::cannot("worker", "a thread has ended unexpectedly")))
        }));
        outcomes.into_iter().collect()
    })
}
