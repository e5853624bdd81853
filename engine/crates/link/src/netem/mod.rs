//! netem instead of the link's own clockwork: a bridge of the kernel's joins the two devices, and the disciplines of
//! `qdiscs` sit where packets leave it. The link sets them up with ip(8), tc(8) and ethtool(8), counts, and takes them
//! away again.
//!
//! What takes them away is a shell of its own that waits for the end of a pipe: it comes whatever ends the link.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use trifecta_wire::clock::now_ns;
use trifecta_wire::process::{self, Usage};

use crate::chain::Chain;
use crate::config::{Config, DIRECTIONS};
use crate::statistics::{OfDevices, Statistics};
use crate::summary::{DirectionSummary, Ended, NetemSummary, Ready, Summary};
use crate::{Failure, cannot};

pub mod counters;
pub mod qdiscs;

use counters::Counters;

const NO_NETEM: &str = "load it (sudo modprobe sch_netem sch_tbf), or use the engine's own link";
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

/// How the bridges of links are named, before the number of the process.
const NAMED: &str = "tf-netem";
/// A link before this one is given the time to go: it may linger for 10 s after it has said its summary.
const GONE_WITHIN: Duration = Duration::from_secs(12);

/// Waits until the devices belong to no other link; what does not go was killed together with its guard, and is removed.
fn await_free(devices: [&str; 2]) -> Result<(), Failure> {
    let begun = Instant::now();
    while let Some(bridge) = bridge_of(devices[0])?.or(bridge_of(devices[1])?) {
        if begun.elapsed() > GONE_WITHIN {
            for device in devices {
                // Whatever of it is gone already, the next steps tell.
                let _ = run(&["tc", "qdisc", "del", "dev", device, "root"]);
            }
            return run(&["ip", "link", "del", &bridge]).map(|_| ());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The bridge of another link that a device is a port of.
fn bridge_of(device: &str) -> Result<Option<String>, Failure> {
    #[derive(Deserialize)]
    struct Device {
        #[serde(default)]
        master: String,
    }
    let told = run(&["ip", "-j", "link", "show", "dev", device])?;
    let told: Vec<Device> = serde_json::from_slice(&told)
        .map_err(|error| cannot("netem", format!("ip -j link show dev {device}: {error}")))?;
    Ok(told.into_iter().map(|one| one.master).find(|name| name.starts_with(NAMED)))
}

/// The bridge with its disciplines, and who takes it away.
struct Bridge {
    name: String,
    commands: Vec<String>,
    guard: Option<Child>,
}

/// Takes it away once standard input ends, the bridge last: whoever finds no bridge finds nothing of it.
const GUARD: &str = r#"trap '' TERM INT HUP; cat >/dev/null
[ -z "$4" ] || ethtool -K "$1" $4; [ -z "$5" ] || ethtool -K "$2" $5
tc qdisc del dev "$1" root; tc qdisc del dev "$2" root; ip link del "$3"; :"#;
/// Receive offloads, which make super-packets of packets, of which netem would lose and delay several at a time.
const MERGING: [(&str, &str); 3] =
    [("generic-receive-offload", "gro"), ("large-receive-offload", "lro"), ("rx-gro-hw", "rx-gro-hw")];

impl Bridge {
    fn build(config: &Config) -> Result<Self, Failure> {
        let devices = [config.a_device.as_str(), config.b_device.as_str()];
        for (field, name) in ["a_device", "b_device"].into_iter().zip(devices) {
            if !there(name) {
                return Err(cannot(field, format!("'{name}': no such device; name an Ethernet device of this host")));
            }
        }
        let trees = [
            qdiscs::of_direction(DIRECTIONS[0], &config.directions[0])?,
            qdiscs::of_direction(DIRECTIONS[1], &config.directions[1])?,
        ];
        await_free(devices)?;
        let name = format!("{NAMED}{}", std::process::id());
        let merged = [merging(&config.a_device)?, merging(&config.b_device)?];
        let mut bridge = Bridge { name, commands: Vec::new(), guard: None };
        bridge.guard = Some(bridge.guarded(config, &merged)?);
        let done = bridge.raise(config, &merged, &trees);
        if done.is_err() {
            let _ = bridge.remove();
        }
        done.map(|()| bridge)
    }

    fn guarded(&self, config: &Config, merged: &[Vec<&str>; 2]) -> Result<Child, Failure> {
        use std::os::unix::process::CommandExt as _;
        let on = |names: &[&str]| names.iter().map(|name| format!("{name} on")).collect::<Vec<_>>().join(" ");
        let mut guard = program("sh");
        guard.args(["-c", GUARD, "trifecta-netem", &config.a_device, &config.b_device, &self.name]);
        guard.args([on(&merged[0]), on(&merged[1])]).current_dir("/").process_group(0);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        guard.spawn().map_err(|error| cannot("netem", format!("sh: {error}")))
    }

    fn raise(
        &mut self,
        config: &Config,
        merged: &[Vec<&str>; 2],
        trees: &[Vec<qdiscs::Words>; 2],
    ) -> Result<(), Failure> {
        let name = self.name.clone();
        for (device, names) in [&config.a_device, &config.b_device].into_iter().zip(merged) {
            if !names.is_empty() {
                let off = names.iter().flat_map(|name| [*name, "off"]);
                self.done(&["ethtool", "-K", device].into_iter().chain(off).collect::<Vec<_>>())?;
            }
        }
        // It learns at once and sends nothing by itself: no spanning tree, no queries for multicast, no IPv6 address.
        let kind = "type bridge stp_state 0 forward_delay 0 mcast_snooping 0";
        self.done(&["ip", "link", "add", &name].into_iter().chain(kind.split(' ')).collect::<Vec<_>>())?;
        let silent = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        if Path::new(&silent).exists() {
            std::fs::write(&silent, "1").map_err(|error| cannot("netem", format!("{silent}: {error}")))?;
        }
        // Packets leave towards b where they came from a. The disciplines are there before a first packet can pass.
        for (device, tree) in [&config.b_device, &config.a_device].into_iter().zip(trees) {
            for words in tree {
                let add = ["tc", "qdisc", "add", "dev", device].into_iter();
                self.done(&add.chain(words.iter().map(String::as_str)).collect::<Vec<_>>())?;
            }
        }
        for device in [&config.a_device, &config.b_device] {
            self.done(&["ip", "link", "set", device, "master", &name])?;
        }
        self.done(&["ip", "link", "set", &name, "up"])
    }

    fn done(&mut self, words: &[&str]) -> Result<(), Failure> {
        self.commands.push(words.join(" "));
        run(words).map(|_| ())
    }

    fn counted(&self, config: &Config, direction: usize) -> Result<DirectionSummary, Failure> {
        let device = [&config.b_device, &config.a_device][direction];
        let told = if there(device) {
            let told = run(&["tc", "-s", "-j", "qdisc", "show", "dev", device])?;
            Counters::read(&told).map_err(|error| cannot("netem", format!("tc qdisc show dev {device}: {error}")))?
        } else {
            Counters::default()
        };
        let chain = Chain::new(config.impairments(direction, 0)?);
        let met = told.delivered + told.lost + told.queue_dropped + told.in_flight;
        let mut statistics = Statistics::default();
        statistics.wire_packets = met;
        statistics.wire_bytes = told.delivered_bytes + told.in_flight_bytes;
        statistics.delivered = told.delivered;
        statistics.delivered_bytes = told.delivered_bytes;
        statistics.lost = told.lost;
        statistics.queue_dropped = told.queue_dropped;
        let of_devices = OfDevices { in_flight: told.in_flight, ..OfDevices::default() };
        let mut summary = statistics.summary(&config.directions[direction], &chain, of_devices);
        for one in &mut summary.impairments {
            one.met = met;
            one.hit = if matches!(one.kind.as_str(), "loss" | "gilbert_elliott") { told.lost } else { 0 };
        }
        Ok(summary)
    }

    /// Ends the guard, which takes everything away, and waits for it.
    fn remove(&mut self) -> io::Result<()> {
        let Some(mut guard) = self.guard.take() else { return Ok(()) };
        drop(guard.stdin.take());
        guard.wait().map(|_| ())
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.remove();
    }
}

/// The receive offloads of a device that are on and can be turned off.
fn merging(device: &str) -> Result<Vec<&'static str>, Failure> {
    let told = run(&["ethtool", "-k", device])?;
    let told = String::from_utf8_lossy(&told);
    let on = |name: &str| {
        let value = told.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        value.is_some_and(|value| value.trim() == "on")
    };
    Ok(MERGING.iter().filter(|(name, _)| on(name)).map(|(_, short)| *short).collect())
}

/// A program with the folders of administration in its path, which those of ordinary users lack.
fn program(name: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).env("LC_ALL", "C");
    command
}

fn run(words: &[&str]) -> Result<Vec<u8>, Failure> {
    let said = program(words[0]).args(&words[1..]).stdin(Stdio::null()).output().map_err(|error| {
        let remedy = "install iproute2 and ethtool, or use the engine's own link";
        cannot("netem", format!("{}: {error}; {remedy}", words[0]))
    })?;
    if said.status.success() {
        return Ok(said.stdout);
    }
    let told = String::from_utf8_lossy(&said.stderr);
    let told = told.lines().find(|line| !line.trim().is_empty()).unwrap_or("no reason given").trim().to_owned();
    let remedy = if told.contains("ermission") || told.contains("not permitted") {
        "run the link as root (CAP_NET_ADMIN)"
    } else if told.contains("xclusivity") || told.contains("File exists") {
        "the device has a discipline of its own: take it away (sudo tc qdisc del dev DEVICE root)"
    } else {
        NO_NETEM
    };
    Err(cannot("netem", format!("{}: {told}; {remedy}", words.join(" "))))
}
