"""``trifecta link``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import click

from trifecta.cli.options import as_json, complete_study, ip_version

# The options and the fields of a path that they set, with the help of each.
_FIELDS: dict[str, str] = {
    "rtt": "Round-trip delay: '50 ms'.",
    "delay": "One-way delay of each direction: '25 ms', or '{forward: 10 ms, backward: 30 ms}'.",
    "rate": "Rate: '20 Mbit/s'.",
    "queue": "Queue before the rate: '1 bdp', '100 packets', '125 kB'.",
    "discipline": "Discipline of the queue: droptail or codel.",
    "loss": "Independent loss: '2 %'.",
    "gilbert-elliott": "Bursty loss: '{good_to_bad: 1 %, bad_to_good: 30 %}'.",
    "corrupt": "Share of packets with a flipped bit: '0.1 %'.",
    "duplicate": "Share of packets sent twice: '0.1 %'.",
    "reorder": "Reordering: '{probability: 1 %, gap: 2 ms}'.",
    "jitter": "Jitter: '{distribution: normal, sigma: 2 ms}'.",
    "emulator": "The emulator to use: engine, or netem if the kernel has it.",
}


@click.group(
    epilog="""\
\b
Example:
  trifecta link measure --rtt "50 ms" --loss "2 %"
"""
)
def command() -> None:
    """Work with the path emulator alone, without a study."""


def _path_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for name, text in reversed(_FIELDS.items()):
        function = click.option(f"--{name}", metavar="VALUE", help=text)(function)
    return function


@command.command(
    epilog="""\
\b
Examples:
  trifecta link measure --rtt "50 ms" --loss "2 %" --rate "20 Mbit/s"
  trifecta link measure --study race --path rough --json
  trifecta link measure --rtt "50 ms" --ip IPv6
"""
)
@_path_options
@click.option("--study", metavar="STUDY", shell_complete=complete_study, help="Use a path of this study.")
@click.option("--path", "path_name", metavar="NAME", help="With --study: which of its paths.")
@click.option("--packets", type=click.IntRange(1, 1_000_000), default=1000, show_default=True, help="Packets to send.")
@click.option(
    "--interval", metavar="TIME", help="Time between packets.  [default: 2 ms, or longer where the rate is low]"
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the losses and delays.")
@ip_version("that of the study, else IPv4")
@as_json
def measure(
    *,
    study: str | None,
    path_name: str | None,
    packets: int,
    interval: str | None,
    seed: int,
    ip: str | None,
    as_json: bool,
    **fields: str | None,
) -> None:
    """Create a lab with a path, send packets across, and compare what was delivered with what was requested.

    The limits are those of the check `path` (docs/checks.md). The exit code is 1 if the path was not as requested.
    """
    from trifecta.cli import option_parsing
    from trifecta.design import probe_packets
    from trifecta.design.ip import IPV4, IPV6
    from trifecta.lab import sandbox

    spec = option_parsing.path_of(study, path_name, fields)
    ipv6 = option_parsing.is_ipv6(ip, study)
    version = IPV6 if ipv6 else IPV4
    given_ns = None if interval is None else option_parsing.time_ns("--interval", interval)
    interval_ns = probe_packets.least_interval_ns(spec, version, 2_000_000) if given_ns is None else given_ns
    sandbox.enter()

    from trifecta.contract.codec import plain
    from trifecta.workloads import path_probe

    measured = path_probe.measure(spec, packets=packets, interval_ns=interval_ns, seed=seed, ipv6=ipv6)
    lines = path_probe.compare(measured)
    findings = path_probe.judge(measured)
    wrong = [finding for finding in findings if finding.status == "fail"]
    if as_json:
        document = {
            "path": dataclasses.asdict(measured.path),
            "seed": measured.seed,
            "ip": measured.ip,
            "probe": plain(measured.probe),
            "link": plain(measured.link),
            "comparison": [dataclasses.asdict(line) for line in lines],
            "as_asked": not wrong,
            "findings": [dataclasses.asdict(finding) for finding in findings],
        }
        click.echo(json.dumps(document, indent=2))
        if wrong:
            raise SystemExit(1)
        return
    click.echo(f"{measured.probe.received} of {measured.probe.sent} packets came back, seed {seed}")
    for line in lines:
        requested = "" if line.asked is None else f"requested {line.asked:.6g} {line.unit}"
        given = "unknown" if line.given is None else f"{line.given:.6g} {line.unit}"
        note = f"  ({line.note})" if line.note else ""
        click.echo(f"  {line.name:32} {given:>16}  {requested:24}{note}".rstrip())
    for finding in wrong:
        click.echo(f"not as requested: {finding.text}" + (f"; {finding.remedy}" if finding.remedy else ""))
    if wrong:
        raise SystemExit(1)
    click.echo(f"as requested: {len(findings)} properties are within their limits")
