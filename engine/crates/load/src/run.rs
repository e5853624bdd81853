//! The subcommand: reads the configuration, runs the workers, writes samples and summary.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use trifecta_record::{SampleStore, SpanStore};
use trifecta_session::Session;
use trifecta_session::h1::H1Session;
use trifecta_session::h2::H2Session;
use trifecta_session::h3::H3Session;
use trifecta_wire::clock::now_ns;
use trifecta_wire::process::{self, Usage, exit, fail};
use trifecta_wire::resolve::Resolved;

use crate::config::{Config, FieldError, Protocol};
use crate::driver::Shared;
use crate::summary::{Ready, Summary, summary};
use crate::worker::{Outcome, Worker};

/// Files and descriptors besides those of the connections, amply.
const OTHER_DESCRIPTORS: u64 = 64;

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
    let mut config = Config::parse(text)?;
    process::prepare().map_err(|error| Failure::cannot("process", error))?;
    let resolved = config.resolve().map_err(|error| {
        Failure::cannot("server_name", format!("{} cannot be resolved: {error}", config.server_name))
    })?;
    allow_descriptors(&config)?;
    let config = Arc::new(config);
    match config.protocol {
        Protocol::H1 => run_protocol::<H1Session>(&config, resolved.as_ref()),
        Protocol::H2 => run_protocol::<H2Session>(&config, resolved.as_ref()),
        Protocol::H3 => run_protocol::<H3Session>(&config, resolved.as_ref()),
    }
}

/// A connection takes a descriptor, and a qlog file another.
fn allow_descriptors(config: &Config) -> Result<(), Failure> {
    let each = if config.qlog_dir.is_some() { 2 } else { 1 };
    let wanted = config.concurrency() * each + OTHER_DESCRIPTORS;
    process::allow_descriptors(wanted).map_err(|most| {
        let message = format!(
            "{} connections at a time need {wanted} descriptors, {most} are allowed; raise the limit (ulimit -Hn)",
            config.concurrency()
        );
        Failure::cannot("connections", message)
    })
}

/// What a run brought.
pub struct Report {
    pub summary: Summary,
    /// The samples of each worker, if the configuration names a file for them.
    pub samples: Vec<SampleStore>,
    /// The hops of cycles of each worker, if the configuration names a file for them.
    pub spans: Vec<SpanStore>,
}

fn run_protocol<S: Session>(config: &Arc<Config>, resolved: Option<&Resolved>) -> Result<(), Failure> {
    // What cannot work is said before any traffic.
    let (run, shareds) = share::<S>(config)?;
    let named = |field: &'static str, path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| Failure::cannot(field, format!("{path}: {error}"))
    };
    for (field, path) in [("samples_file", &config.samples_file), ("spans_file", &config.spans_file)] {
        if let Some(path) = path {
            File::create(path).map_err(named(field, path))?;
        }
    }
    let ready = Ready {
        protocol: config.protocol,
        address: config.socket_address().ip(),
        port: config.port,
        process: std::process::id(),
    };
    process::write_ready(&ready).map_err(|error| Failure::cannot("stdout", error))?;
    let mut report = measure::<S>(config, run, shareds, process::stdin_is_watched())?;
    report.summary.resolved = resolved.map(|found| found.all.clone());
    report.summary.dns_ns = resolved.map(|found| found.elapsed_ns);
    if let Some(path) = &config.samples_file {
        trifecta_record::write_samples(path, &config.trial, &report.samples).map_err(named("samples_file", path))?;
    }
    if let Some(path) = &config.spans_file {
        trifecta_record::write_spans(path, &config.trial, &report.spans).map_err(named("spans_file", path))?;
    }
    process::write_summary(&report.summary).map_err(|error| Failure::cannot("stdout", error))
}

/// Runs a session type of this process's own choice without writing anything; for tests and benchmarks.
///
/// # Errors
/// The field, or the part of the system, that stands in the way.
pub fn execute<S: Session>(config: &Arc<Config>) -> Result<Report, FieldError> {
    share::<S>(config)
        .and_then(|(run, shareds)| measure::<S>(config, run, shareds, false))
        .map_err(|failure| FieldError::new(failure.field, failure.message))
}

fn share<S: Session>(config: &Config) -> Result<(Arc<Shared>, Vec<S::Shared>), Failure> {
    let options = config.options();
    let run = Arc::new(Shared::new(config)?);
    Ok((run, (0..config.workers).map(|_| S::shared(&options)).collect::<Result<Vec<_>, _>>()?))
}

fn measure<S: Session>(
    config: &Arc<Config>,
    run: Arc<Shared>,
    shareds: Vec<S::Shared>,
    watches_stdin: bool,
) -> Result<Report, Failure> {
    let before = Usage::now();
    let mut outcomes = run_workers::<S>(config, run, shareds, watches_stdin)?;
    let usage = Usage::now().since(before);
    let summary = summary(config, &outcomes, usage);
    let spans = outcomes.iter_mut().map(|outcome| outcome.driver.take_spans()).collect();
    let samples = outcomes.into_iter().map(|outcome| outcome.driver.samples).collect();
    Ok(Report { summary, samples, spans })
}

fn run_workers<S: Session>(
    config: &Arc<Config>,
    run: Arc<Shared>,
    shareds: Vec<S::Shared>,
    watches_stdin: bool,
) -> Result<Vec<Outcome>, Failure> {
    let work = |index: u32, shared: S::Shared| -> Result<Outcome, Failure> {
        if let Some(cpu) = config.cpu {
            let cpu = cpu + index as usize;
            process::pin_to_cpu(cpu).map_err(|error| Failure::cannot("cpu", format!("{cpu}: {error}")))?;
        }
        Worker::<S>::new(config, run.clone(), shared, index, watches_stdin && index == 0)
            .and_then(Worker::run)
            .map_err(|error: io::Error| Failure::cannot("epoll", error))
    };
    // The others must not wait for one that will never begin.
    let work = |index: u32, shared: S::Shared| work(index, shared).inspect_err(|_| run.arrive(now_ns()));
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
