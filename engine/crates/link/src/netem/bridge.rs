//! The kernel's bridge between the two devices, with netem where packets leave it, and who takes it away.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::counters::{Counters, Discipline};
use super::{index, qdiscs, there};
use crate::chain::Chain;
use crate::config::{Config, DIRECTIONS};
use crate::statistics::{OfDevices, Statistics};
use crate::summary::DirectionSummary;
use crate::{Failure, cannot};

const OWN_LINK: &str = "or use the engine's own link";

/// How the bridges of links are named, before the number of the device that leads to the client.
const NAMED: &str = "tf-netem";
/// A bridge that is not gone by then is in use: a link may linger after it has said its summary.
const GONE_WITHIN: Duration = Duration::from_secs(9);

/// A device as `ip` shows it.
#[derive(Deserialize)]
struct Shown {
    #[serde(default)]
    ifalias: String,
    #[serde(default)]
    master: String,
}

fn devices(config: &Config) -> [&str; 2] {
    [&config.a_device, &config.b_device]
}

fn named(config: &Config) -> String {
    format!("{NAMED}{}", index(&config.a_device))
}

/// Waits until no link of netem's is between the devices, as one that was killed, whose guard is still at it. One that
/// was killed together with its guard is removed.
///
/// # Errors
/// Another link is at work there.
pub(crate) fn await_free(config: &Config) -> Result<(), Failure> {
    let (name, begun) = (named(config), Instant::now());
    while there(&name) {
        let Some(guard) = shown(&name)?.map(|bridge| bridge.ifalias) else { continue };
        if !guard.is_empty() && !Path::new("/proc").join(&guard).exists() {
            for device in devices(config) {
                if shown(device)?.is_some_and(|shown| shown.master == name) {
                    let _ = run(&["tc", "qdisc", "del", "dev", device, "root"]); // or the guard had come so far
                }
            }
            let _ = run(&["ip", "link", "del", &name]);
        } else if begun.elapsed() > GONE_WITHIN {
            let message = format!("'{}': another link is at work there ({name}, process {guard})", config.a_device);
            return Err(cannot("a_device", format!("{message}; wait until it has ended, or end that process")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// What `ip` shows of a device; none where it is gone.
fn shown(device: &str) -> Result<Option<Shown>, Failure> {
    match run(&["ip", "-j", "link", "show", "dev", device]) {
        Ok(told) => read("ip", &told).map(|all: Vec<Shown>| all.into_iter().next()),
        Err(_) if !there(device) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The JSON that a program printed.
fn read<T: serde::de::DeserializeOwned>(program: &str, told: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(told).map_err(|error| {
        cannot(
            "netem",
            format!("{program} did not answer in JSON ({error}); it takes iproute2 5.6 or newer, {OWN_LINK}"),
        )
    })
}

fn disciplines(device: &str) -> Result<Vec<Discipline>, Failure> {
    read("tc", &run(&["tc", "-s", "-j", "qdisc", "show", "dev", device])?)
}

/// Refuses a device that somebody gave a discipline, not the kernel: it would be lost.
fn refuse_occupied(device: &str) -> Result<(), Failure> {
    match disciplines(device)?.iter().find(|one| one.root && !one.handle.is_empty() && one.handle != "0:") {
        Some(Discipline { kind, handle, .. }) => Err(cannot(
            "netem",
            format!(
                "{device} has a discipline of its own ({kind} {handle}); remove it: sudo tc qdisc del dev {device} root"
            ),
        )),
        None => Ok(()),
    }
}

/// Refuses a host whose bridges ask its firewall about each packet.
fn refuse_filtered() -> Result<(), Failure> {
    for name in ["iptables", "ip6tables", "arptables"] {
        let setting = format!("net/bridge/bridge-nf-call-{name}");
        if std::fs::read_to_string(format!("/proc/sys/{setting}")).is_ok_and(|value| value.trim() == "1") {
            let setting = setting.replace('/', ".");
            let why = "bridged packets go through this host's firewall";
            return Err(cannot("netem", format!("{why}; end that: sudo sysctl -w {setting}=0, {OWN_LINK}")));
        }
    }
    Ok(())
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
        let trees = [tree(config, 0)?, tree(config, 1)?];
        for (field, name) in ["a_device", "b_device"].into_iter().zip(devices(config)) {
            if !there(name) {
                return Err(cannot(field, format!("'{name}': no such device; name an Ethernet device of this host")));
            }
            refuse_occupied(name)?;
        }
        if config.bridge {
            refuse_filtered()?; // in a lab the namespace is its own, without a firewall
        }
        let merged = [merging(&config.a_device)?, merging(&config.b_device)?];
        let mut bridge = Bridge { name: named(config), commands: Vec::new(), guard: None };
        bridge.guard = Some(bridge.guarded(config, &merged)?);
        bridge.raise(config, &merged, &trees)?; // where it fails, the bridge is dropped, and with it taken away
        Ok(bridge)
    }

    fn guarded(&self, config: &Config, merged: &[Vec<&str>; 2]) -> Result<Child, Failure> {
        use std::os::unix::process::CommandExt as _;
        let on = |names: &[&str]| names.iter().map(|name| format!("{name} on")).collect::<Vec<_>>().join(" ");
        let mut guard = program("sh");
        guard.args(["-c", GUARD, "trifecta-netem"]).args(devices(config)).arg(&self.name);
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
        for (device, names) in devices(config).into_iter().zip(merged) {
            if !names.is_empty() {
                let off = names.iter().flat_map(|name| [*name, "off"]);
                self.done(["ethtool", "-K", device].into_iter().chain(off))?;
            }
        }
        // It learns at once and sends nothing by itself: no spanning tree, no queries for multicast, no IPv6 address.
        let kind = "type bridge stp_state 0 forward_delay 0 mcast_snooping 0";
        self.done(["ip", "link", "add", &name].into_iter().chain(kind.split(' ')))?;
        let guard = self.guard.as_ref().map_or(0, Child::id);
        self.done(["ip", "link", "set", &name, "alias", &guard.to_string()])?;
        let silent = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
        if Path::new(&silent).exists() {
            std::fs::write(&silent, "1").map_err(|error| cannot("netem", format!("{silent}: {error}")))?;
        }
        // Packets leave towards b where they came from a. The disciplines are there before a first packet can pass.
        for (device, tree) in devices(config).into_iter().rev().zip(trees) {
            for words in tree {
                self.done(["tc", "qdisc", "add", "dev", device].into_iter().chain(words.iter().map(String::as_str)))?;
            }
        }
        for device in devices(config) {
            self.done(["ip", "link", "set", device, "master", &name])?;
        }
        self.done(["ip", "link", "set", &name, "up"])
    }

    fn done<'a>(&mut self, words: impl IntoIterator<Item = &'a str>) -> Result<(), Failure> {
        let words: Vec<&str> = words.into_iter().collect();
        self.commands.push(words.join(" "));
        run(&words).map(|_| ())
    }

    pub(super) fn counted(&self, config: &Config, direction: usize) -> Result<DirectionSummary, Failure> {
        let device = devices(config)[1 - direction];
        let told = if there(device) {
            Counters::of(&disciplines(device)?).map_err(|error| cannot("netem", format!("{device}: {error}")))?
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
        "run the link as root (CAP_NET_ADMIN)".to_owned()
    } else {
        match words[0] {
            "tc" => format!("load what it needs (sudo modprobe -a sch_netem sch_tbf sch_codel), {OWN_LINK}"),
            "ip" => format!(
                "load the bridge (sudo modprobe bridge), and see that the devices belong to no other, {OWN_LINK}"
            ),
            _ => format!("see that the device can do that, {OWN_LINK}"),
        }
    };
    Err(cannot("netem", format!("{}: {told}; {remedy}", words.join(" "))))
}
