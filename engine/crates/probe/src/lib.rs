//! The probe: what a path does to packets, measured from both of its ends on one clock.
//!
//! A reflector answers; a measurer sends, times each direction, and counts. Receive times are the kernel's
//! (SO_TIMESTAMPNS), send times are read immediately before the system call. One-way delays mean something only when both
//! ends run on the same machine, as the hosts of a lab do.

use std::net::SocketAddr;
use std::path::Path;

use trifecta_record::probe_samples::{ProbeRow, write_probe_samples};
use trifecta_wire::clock::realtime_offset;
use trifecta_wire::process::{self, exit};

pub mod config;
pub mod measure;
pub mod packet;
pub mod reflect;
pub mod sequence;
pub mod socket;
pub mod summary;

use config::{Config, Measure};
use measure::Measurement;
use reflect::Reflector;
use socket::Socket;
use summary::{Ready, Summary};

struct Failure(i32, &'static str, String);

fn cannot(field: &'static str, message: String) -> Failure {
    Failure(exit::CANNOT, field, message)
}

/// Runs the probe with this configuration; the exit code is that of the process.
#[must_use]
pub fn run(config_text: &str) -> i32 {
    match probe(config_text) {
        Ok(()) => exit::DONE,
        Err(Failure(code, field, message)) => process::fail(code, field, &message),
    }
}

fn probe(config_text: &str) -> Result<(), Failure> {
    let config = Config::parse(config_text).map_err(|error| Failure(exit::BAD_INPUT, error.field, error.message))?;
    process::prepare().map_err(|error| cannot("process", format!("cannot be prepared: {error}")))?;
    match config {
        Config::Reflect { address, port } => reflect(SocketAddr::new(address, port)),
        Config::Measure(config) => measure(config),
    }
}

fn say_ready(ready: &Ready) -> Result<(), Failure> {
    process::write_ready(ready).map_err(no_listener)
}

fn say_summary(summary: &Summary) -> Result<(), Failure> {
    process::write_summary(summary).map_err(no_listener)
}

fn no_listener(error: std::io::Error) -> Failure {
    cannot("stdout", format!("{error}; keep it open"))
}

fn reflect(address: SocketAddr) -> Result<(), Failure> {
    let socket = Socket::bind(address).map_err(|error| {
        cannot("address", format!("{address}: {error}; give an address of this host and a free port"))
    })?;
    let wall = realtime_offset();
    say_ready(&Ready::Reflect {
        address: address.ip(),
        port: address.port(),
        realtime_offset_ns: wall.offset_ns,
        realtime_bound_ns: wall.bound_ns,
    })?;
    let mut reflector = Reflector::default();
    let ended = reflector.run(&socket);
    say_summary(&Summary::Reflect(reflector.summary()))?;
    ended.map_err(|error| cannot("socket", error.to_string()))
}

fn measure(config: Measure) -> Result<(), Failure> {
    let (address, port) = (config.address, config.port);
    let samples_file = config.samples_file.clone();
    let mut measurement = Measurement::new(config)
        .map_err(|error| cannot("address", format!("{address}: {error}; give an address this host has a route to")))?;
    say_ready(&Ready::Measure { address, port })?;
    let summary = measurement.run().map_err(|error| cannot("socket", error.to_string()))?;
    if let Some(path) = samples_file {
        let rows: Vec<ProbeRow> = measurement
            .round_trips
            .iter()
            .map(|trip| ProbeRow {
                sequence: trip.sequence,
                sent_ns: trip.sent_ns,
                reflected_in_ns: trip.reflected_in_ns,
                reflected_out_ns: trip.reflected_out_ns,
                received_ns: trip.received_ns,
            })
            .collect();
        write_probe_samples(Path::new(&path), &rows)
            .map_err(|error| cannot("samples_file", format!("'{path}': {error}; name a file that can be written")))?;
    }
    say_summary(&Summary::Measure(Box::new(summary)))
}
