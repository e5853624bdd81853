//! The link: carries packets between two network devices through impairments, and says what it did to them.
//!
//! `device` reads and writes frames, `frame` and `segment` take super-packets apart and put them together, `impair` and
//! `chain` decide what happens to each wire packet, `traffic` keeps what is on its way, `clockwork` is the loop.

use std::path::Path;

use trifecta_wire::clock::now_ns;
use trifecta_wire::process::{self, Usage, exit};

pub mod buffer;
pub mod busy;
pub mod capture;
pub mod chain;
pub mod checksum;
pub mod clockwork;
pub mod config;
pub mod device;
pub mod frame;
pub mod histogram;
pub mod impair;
pub mod leaving;
pub mod log;
pub mod neighbours;
pub mod netem;
pub mod place;
pub mod privileges;
pub mod random;
pub mod realtime;
pub mod schedule;
pub mod segment;
pub mod statistics;
pub mod summary;
pub mod traffic;
pub mod wait;

use capture::Capture;
use chain::Chain;
use clockwork::Clockwork;
use config::Config;
use device::Device;
use log::Log;
use neighbours::Neighbours;
use place::ConfigError;
use statistics::OfDevices;
use summary::{BridgeSummary, CaptureSummary, DirectionSummary, Ended, LogSummary, Ready, Summary};
use traffic::Traffic;

/// Why the link cannot do what it is asked to: exit code, field, message.
struct Failure(i32, String, String);

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure(exit::BAD_INPUT, error.field, error.message)
    }
}

/// Runs the link with this configuration until it is asked to stop; the exit code is that of the process.
#[must_use]
pub fn run(config_text: &str) -> i32 {
    match carry(config_text) {
        Ok(()) => exit::DONE,
        Err(Failure(code, field, message)) => process::fail(code, &field, &message),
    }
}

fn cannot(field: &str, message: impl Into<String>) -> Failure {
    Failure(exit::CANNOT, field.to_owned(), message.into())
}

fn carry(config_text: &str) -> Result<(), Failure> {
    let config = Config::parse(config_text)?;
    process::prepare().map_err(|error| cannot("process", format!("cannot be prepared: {error}")))?;
    if let Some(cpu) = config.cpu {
        process::pin_to_cpu(cpu)
            .map_err(|error| cannot("cpu", format!("{cpu}: {error}; name a CPU this process may use")))?;
    }
    netem::await_free(&config)?;
    if config.emulator == config::Emulator::Netem {
        return netem::carry(&config);
    }
    let log = match &config.log_file {
        Some(path) => {
            let log = Log::create(Path::new(path));
            Some(
                log.map_err(|error| cannot("log_file", format!("'{path}': {error}; name a file that can be written")))?,
            )
        }
        None => None,
    };
    let capture = match &config.capture_file {
        Some(path) => {
            Some(Capture::create(Path::new(path), [&config.a_device, &config.b_device]).map_err(|error| {
                cannot("capture_file", format!("'{path}': {error}; name a file that can be written"))
            })?)
        }
        None => None,
    };
    let devices =
        [open("a_device", &config.a_device, config.bridge)?, open("b_device", &config.b_device, config.bridge)?];
    // After the threads that write were started, so that they do not inherit real-time scheduling.
    if config.bridge {
        if config.realtime {
            realtime::first_in_first_out();
        }
        // Before memory is locked: what only a capability lets lock would find no room once it is gone.
        privileges::give_up()
            .map_err(|error| cannot("process", format!("cannot give up its capabilities: {error}")))?;
    }
    let granted = realtime::ask(config.realtime);
    let start_ns = now_ns();
    let chains = [Chain::new(config.impairments(0, start_ns)?), Chain::new(config.impairments(1, start_ns)?)];
    let mut traffic = Traffic::new(chains, config.memory_bytes, log, capture);
    traffic.neighbours = config.bridge.then(Neighbours::default);
    let mut clockwork = Clockwork::new(devices, config.split, traffic);
    let ready = Ready {
        a_device: config.a_device.clone(),
        b_device: config.b_device.clone(),
        realtime: granted.fifo,
        memory_locked: granted.memory_locked,
        short_slice: granted.short_slice,
        receive_buffer_bytes: clockwork.devices()[0].receive_buffer_bytes(),
    };
    process::write_ready(&ready).map_err(|error| cannot("stdout", format!("{error}; keep it open")))?;

    let before = Usage::now();
    let ended = clockwork.run(config.spin_ns, None);
    let usage = Usage::now().since(before);
    let ended_ns = now_ns();
    let log = clockwork.traffic.log.take().map(Log::finish).transpose();
    let capture = clockwork.traffic.capture.take().map(Capture::finish).transpose();
    let log_summary = |&(log_rows, log_rows_dropped): &(u64, u64)| LogSummary { log_rows, log_rows_dropped };
    let summary = Summary {
        started_ns: start_ns,
        ended_ns,
        ended: *ended.as_ref().unwrap_or(&Ended::Device),
        wall_ns: ended_ns - start_ns,
        cpu_user_ns: usage.cpu_user_ns,
        cpu_system_ns: usage.cpu_system_ns,
        max_rss_bytes: usage.max_rss_bytes,
        realtime: granted.fifo,
        memory_locked: granted.memory_locked,
        short_slice: granted.short_slice,
        spin_ns: config.spin_ns,
        split: config.split,
        seed: config.seed,
        a_to_b: direction_summary(&clockwork, &config, 0),
        b_to_a: direction_summary(&clockwork, &config, 1),
        log: log.as_ref().ok().and_then(Option::as_ref).map(log_summary),
        capture: capture.as_ref().ok().and_then(Option::as_ref).map(|told| CaptureSummary {
            captured_packets: told.packets,
            capture_missed: told.missed,
            realtime_offset_ns: told.realtime_offset_ns,
        }),
        bridge: clockwork.traffic.neighbours.as_ref().map(|neighbours| BridgeSummary {
            neighbours_a_to_b: neighbours.carried[0],
            neighbours_b_to_a: neighbours.carried[1],
        }),
        netem: None,
    };
    process::write_summary(&summary).map_err(|error| cannot("stdout", format!("{error}; keep it open")))?;
    if ended.is_ok() && config.linger_ns > 0 {
        // Whoever waits for it learns of a device that failed meanwhile from the next link.
        let _ = clockwork.run(config.spin_ns, Some(ended_ns + config.linger_ns));
        process::close_stdout();
    }
    let remedy = if clockwork.traffic.in_a_circle() {
        "both are on one network: join each to one side alone"
    } else {
        "the device must be up and stay until the link has ended"
    };
    clockwork.close();
    if let Err(error) = log {
        return Err(cannot("log_file", format!("{error}; free some space or leave the log out")));
    }
    if let Err(error) = capture {
        return Err(cannot("capture_file", format!("{error}; free some space or leave the capture out")));
    }
    ended.map(|_| ()).map_err(|(device, error)| cannot(&device, format!("{error}; {remedy}")))
}

fn open(field: &str, name: &str, promiscuous: bool) -> Result<Device, Failure> {
    Device::open(name, promiscuous).map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::PermissionDenied => "run as root or in a user namespace of your own (CAP_NET_RAW)",
            _ => "name an Ethernet device of the network namespace the link runs in",
        };
        cannot(field, format!("'{name}': {error}; {remedy}"))
    })
}

fn direction_summary(clockwork: &Clockwork, config: &Config, direction: usize) -> DirectionSummary {
    let traffic = &clockwork.traffic;
    let of = &traffic.directions[direction];
    let (input, output) = (&clockwork.devices()[direction], &clockwork.devices()[1 - direction]);
    let (truncated, timestamps_replaced) = clockwork.receive_anomalies(direction);
    let of_devices = OfDevices {
        in_flight: traffic.in_flight(direction),
        receive_drops: input.receive_drops(),
        transmit_drops: output.transmit_drops(),
        truncated,
        timestamps_replaced,
    };
    of.statistics.summary(&config.directions[direction], &of.chain, of_devices)
}
