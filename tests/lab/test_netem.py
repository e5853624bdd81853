"""The kernel's netem as the link's emulator: in a virtual machine with Debian's kernel, and its refusals anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import virtual_hosts
from tests.lab.inside import run_inside

WHY = virtual_hosts.missing("ethtool")
PATHS = {
    "lossy": ["--rtt", "20 ms", "--loss", "1 %"],
    "narrow": ["--rtt", "40 ms", "--rate", "20 Mbit/s"],
    "bursty": [
        *("--rtt", "40 ms", "--rate", "20 Mbit/s"),
        *("--jitter", "{distribution: normal, sigma: 2 ms, reorder: true}"),
        *("--gilbert-elliott", "{good_to_bad: 1 %, bad_to_good: 30 %}"),
    ],
    "codel": ["--rtt", "40 ms", "--rate", "5 Mbit/s", "--discipline", "codel"],
    "queued": ["--delay", "{forward: 10 ms, backward: 30 ms}", "--rate", "10 Mbit/s", "--queue", "50 packets"],
}


@pytest.mark.long
@pytest.mark.lab
@pytest.mark.timeout(600)
@pytest.mark.skipif(bool(WHY), reason=WHY or "there")
def test_netem_passes_what_our_own_link_passes(tmp_path: Path) -> None:
    """The same five paths, probed from outside: delay, loss, rate, jitter, within the limits of the check `path`."""
    lines = [virtual_hosts.HEAD, f"cd {virtual_hosts.REPOSITORY}"]
    for emulator in ("engine", "netem"):
        for name, options in PATHS.items():
            words = " ".join(f"'{option}'" for option in [*options, "--emulator", emulator, "--json"])
            lines.append(f"echo; echo BEGIN {emulator} {name}; {sys.executable} -m trifecta link measure {words}")
            lines.append("echo; echo END $?")
    script = tmp_path / "start.sh"
    script.write_text("\n".join([*lines, virtual_hosts.OFF]))
    told = virtual_hosts.run_alone(script, within_s=500)
    found = {}
    for part in told.replace("\r", "").split("BEGIN ")[1:]:
        head, _, rest = part.partition("\n")
        text, _, code = rest.partition("\nEND ")
        found[head] = (int(code.split()[0]), json.loads(text))
    assert len(found) == 2 * len(PATHS), told[-3000:]
    for name in PATHS:
        probes = {who: found[f"{who} {name}"][1]["probe"] for who in ("engine", "netem")}
        for who, probe in probes.items():
            print(
                name, who, {key: probe[key] for key in ("rtt_ns", "loss_forward", "loss_backward", "rate_bits_per_s")}
            )
        _, document = found[f"netem {name}"]
        assert document["as_asked"], (name, document["findings"])
        assert any("netem limit" in command for command in document["link"]["netem"]["commands"])
        medians = [probe["rtt_ns"]["p50"] for probe in probes.values()]
        assert abs(medians[0] - medians[1]) < 1_000_000, (name, medians)
    jittered = {who: found[f"{who} bursty"][1]["probe"]["one_way_forward_ns"] for who in ("engine", "netem")}
    for quantiles in jittered.values():  # two standard deviations above the median, and an interpreter's share
        assert 3_000_000 < quantiles["p99"] - quantiles["p50"] < 7_000_000, jittered


@pytest.mark.lab
def test_a_kernel_without_netem_is_one_line_with_the_remedy() -> None:
    code = """
    import subprocess
    subprocess.run(["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"], check=True)
    """
    if run_inside(code).returncode == 0:
        pytest.skip("this kernel has netem")
    command = [sys.executable, "-m", "trifecta", "link", "measure", "--rtt", "20 ms", "--emulator", "netem"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "netem" in line
    assert "sudo modprobe -a sch_netem" in line or "apt-get install ethtool" in line, line


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--duplicate", "1 %"], "duplicate: netem does not do it, or does not count it; leave the emulator out"),
        (["--jitter", "{distribution: normal, sigma: 1 ms}"], "jitter: netem reorders packets"),
        (
            ["--jitter", "{distribution: pareto, scale: 1 ms, shape: 2, reorder: true}"],
            "jitter: netem has no pareto distribution",
        ),
        (
            ["--loss", "1 %", "--gilbert-elliott", "{good_to_bad: 1 %, bad_to_good: 30 %}"],
            "gilbert_elliott: netem allows only one kind of loss",
        ),
    ],
)
def test_what_netem_does_not_do_is_refused_before_anything_is_raised(options: list[str], said: str) -> None:
    command = [sys.executable, "-m", "trifecta", "link", "measure", "--rtt", "20 ms", "--emulator", "netem", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert said in line
