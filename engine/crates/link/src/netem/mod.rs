//! netem instead of the link's own clockwork: a bridge of the kernel's joins the two devices, and the disciplines of
//! `qdiscs` sit where packets leave it. The link sets them up with ip(8), tc(8) and ethtool(8), counts, and takes them
//! away again.
//!
//! What takes them away is a shell of its own that waits for the end of a pipe: it comes whatever ends the link.

use std::time::Duration;

use trifecta_wire::clock::now_ns;
use trifecta_wire::process::{self, Usage};

use crate::config::Config;
use crate::summary::{Ended, NetemSummary, Ready, Summary};
use crate::{Failure, cannot};

mod bridge;
pub mod counters;
pub mod qdiscs;

use bridge::Bridge;
pub(crate) use bridge::await_free;

const LOOKED_AT_MS: i32 = 100;

/// Has the kernel carry packets until the process is asked to end.
pub(crate) fn carry(config: &Config) -> Result<(), Failure> {
    let start_ns = now_ns();
    let mut bridge = Bridge::build(config)?;
    let ready = Ready {
        a_device: config.a_device.clone(),
        b_device: config.b_device.clone(),
        realtime: false,
        memory_locked: false,
        short_slice: false,
        receive_buffer_bytes: 0,
    };
    process::write_ready(&ready).map_err(|error| cannot("stdout", format!("{error}; keep it open")))?;
    let before = Usage::now();
    let ended = wait(config);
    let usage = Usage::now().since(before);
    let ended_ns = now_ns();
    let counted = [bridge.counted(config, 0)?, bridge.counted(config, 1)?];
    let [a_to_b, b_to_a] = counted;
    let summary = Summary {
        started_ns: start_ns,
        ended_ns,
        ended,
        wall_ns: ended_ns - start_ns,
        cpu_user_ns: usage.cpu_user_ns,
        cpu_system_ns: usage.cpu_system_ns,
        max_rss_bytes: usage.max_rss_bytes,
        realtime: false,
        memory_locked: false,
        short_slice: false,
        spin_ns: config.spin_ns,
        split: config.split,
        seed: config.seed,
        a_to_b,
        b_to_a,
        log: None,
        capture: None,
        bridge: None,
        netem: Some(NetemSummary { kernel: kernel(), commands: std::mem::take(&mut bridge.commands) }),
    };
    process::write_summary(&summary).map_err(|error| cannot("stdout", format!("{error}; keep it open")))?;
    if config.linger_ns > 0 && ended != Ended::Device {
        std::thread::sleep(Duration::from_nanos(config.linger_ns));
    }
    bridge.remove().map_err(|error| cannot("netem", format!("what takes its bridge away failed: {error}")))?;
    if ended == Ended::Device {
        return Err(cannot("a_device", "a device went away; both must stay until the link has ended"));
    }
    Ok(())
}

fn wait(config: &Config) -> Ended {
    let watched = process::stdin_is_watched();
    loop {
        if process::stop_requested() {
            return Ended::Signal;
        }
        if watched && process::stdin_closed() {
            return Ended::Stdin;
        }
        if [&config.a_device, &config.b_device].iter().any(|name| !there(name)) {
            return Ended::Device;
        }
        // poll(2) ignores negative descriptors; a signal ends the wait.
        let mut poll = libc::pollfd { fd: if watched { 0 } else { -1 }, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        unsafe { libc::poll(&raw mut poll, 1, LOOKED_AT_MS) };
    }
}

/// The number of a device of this network namespace, which /sys may not show; 0: there is none (if_nametoindex(3)).
fn index(device: &str) -> u32 {
    std::ffi::CString::new(device).map_or(0, |name| {
        // SAFETY: `name` ends with a zero octet and lives over the call.
        unsafe { libc::if_nametoindex(name.as_ptr()) }
    })
}

fn there(device: &str) -> bool {
    index(device) > 0
}

fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}
