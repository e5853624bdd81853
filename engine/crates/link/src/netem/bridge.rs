//! The kernel's bridge between the two devices, with netem where packets leave it, and who takes it away.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::counters::Counters;
use super::{qdiscs, there};
use crate::chain::Chain;
use crate::config::{Config, DIRECTIONS};
use crate::statistics::{OfDevices, Statistics};
use crate::summary::DirectionSummary;
use crate::{Failure, cannot};

const NO_NETEM: &str = "load it (sudo modprobe sch_netem sch_tbf), or use the engine's own link";
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
pub(super) struct Bridge {
    name: String,
    pub(super) commands: Vec<String>,
    guard: Option<Child>,
}

fn tree(config: &Config, direction: usize) -> Result<Vec<qdiscs::Words>, Failure> {
    let kinds: Vec<&str> = config.directions[direction].iter().map(|spec| spec.kind.as_str()).collect();
    Ok(qdiscs::of_direction(DIRECTIONS[direction], &kinds, &config.impairments(direction, 0)?)?)
}

/// Takes it away once standard input ends, the bridge last: whoever finds no bridge finds nothing of it.
const GUARD: &str = r#"trap '' TERM INT HUP; cat >/dev/null
[ -z "$4" ] || ethtool -K "$1" $4; [ -z "$5" ] || ethtool -K "$2" $5
tc qdisc del dev "$1" root; tc qdisc del dev "$2" root; ip link del "$3"; :"#;
/// Receive offloads, which make super-packets of packets, of which netem would lose and delay several at a time.
const MERGING: [(&str, &str); 3] =
    [("generic-receive-offload", "gro"), ("large-receive-offload", "lro"), ("rx-gro-hw", "rx-gro-hw")];

impl Bridge {
    pub(super) fn build(config: &Config) -> Result<Self, Failure> {
        let devices = [config.a_device.as_str(), config.b_device.as_str()];
        let trees = [tree(config, 0)?, tree(config, 1)?];
        for (field, name) in ["a_device", "b_device"].into_iter().zip(devices) {
            if !there(name) {
                return Err(cannot(field, format!("'{name}': no such device; name an Ethernet device of this host")));
            }
        }
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

    pub(super) fn counted(&self, config: &Config, direction: usize) -> Result<DirectionSummary, Failure> {
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
        for (one, (stage, _)) in summary.impairments.iter_mut().zip(chain.stages()) {
            one.met = met;
            one.hit = if qdiscs::loses(stage) { told.lost } else { 0 };
        }
        Ok(summary)
    }

    /// Ends the guard, which takes everything away, and waits for it.
    pub(super) fn remove(&mut self) -> io::Result<()> {
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
