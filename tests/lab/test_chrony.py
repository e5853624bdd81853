"""What chronyd says of a clock is read as chronyc(1) has it, and bounds nothing where it knows nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from trifecta.lab import chrony

# `chronyc -n -c tracking` of chrony 4.
SAID = (
    "C0A80101,192.168.1.1,3,1764202000.123456789,-0.000012345,0.000001,0.00002,-12.345,0.001,0.05,"
    "0.030000001,0.002,64.2,"
)


def test_the_bound_is_correction_dispersion_and_half_of_the_delay() -> None:
    assert chrony.read(f"{SAID}Normal\n") == {
        "said": "",
        "stratum": 3,
        "correction_ns": -12_345,
        "root_delay_ns": 30_000_001,
        "root_dispersion_ns": 2_000_000,
        "bound_ns": 12_345 + 2_000_000 + 15_000_001,
    }


@pytest.mark.parametrize("leap", ["Insert second", "Delete second"])
def test_a_leap_second_to_come_is_no_fault(leap: str) -> None:
    assert chrony.read(SAID + leap)["bound_ns"] is not None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (f"{SAID}Not synchronised\n", "chronyd has no time yet (Not synchronised)"),
        (f"7F7F0101{SAID[8:]}Normal\n", "chronyd uses the machine's own clock as its reference"),
    ],
)
def test_a_chronyd_without_servers_bounds_nothing(said: str, why: str) -> None:
    found = chrony.read(said)
    assert (found["said"], found["bound_ns"], found["stratum"]) == (why, None, 3)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("no chronyc\n", "chrony is not installed"),
        ("506 Cannot talk to daemon\n", "chronyc says: 506 Cannot talk to daemon"),
        ("", "chronyc prints nothing"),
        (f"{SAID.replace('0.002,64.2', 'nan,64.2')}Normal\n", None),
        (f"{SAID.replace('-0.000012345', 'soon')}Normal\n", None),
        (f"{SAID.replace('0.030000001', 'inf')}Normal\n", None),
        (f"{SAID.replace('0.030000001', '-0.1')}Normal\n", None),
    ],
)
def test_without_an_answer_that_is_understood_the_words_are_kept(said: str, why: str | None) -> None:
    found = chrony.read(said)
    assert (found["bound_ns"], found["stratum"]) == (None, None)
    assert found["said"] == why if why else found["said"].startswith("chronyc says: C0A80101,")


@pytest.mark.parametrize("there", [True, False])
def test_a_host_is_asked_for_one_line(tmp_path: Path, there: bool) -> None:
    program = tmp_path / "chronyc"
    if there:
        program.write_text(f'#!/bin/sh\n[ "$*" = "-n -c tracking" ] && echo "{SAID}Normal"\n')
        program.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", chrony.ASK],
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (chrony.read(done.stdout)["stratum"] is not None) is there
