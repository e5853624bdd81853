"""What `trifecta doctor` says of the kernel's netem, on a machine of stubs: no kernel of ours is like every other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from trifecta.lab import netem

_PROGRAMS = ("ip", "tc", "ethtool", "unshare", "id")


def _told(folder: Path, **scripts: str) -> str:
    """What `netem.ASK` says where programs do this, and the others do well; an empty script: it is not there."""
    do_well = {"unshare": 'shift 2; exec /bin/sh "$@"', "id": "echo me"}
    for name in _PROGRAMS:
        script = scripts.get(name, do_well.get(name, "exit 0"))
        if script:
            file = folder / name
            file.write_text(f"#!/bin/sh\n{script}\n")
            file.chmod(0o755)
    ask = netem.ASK.replace("PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin", "")
    assert ask != netem.ASK
    shell = ["/bin/sh", "-c", ask]
    env = {"PATH": str(folder)}
    return subprocess.run(shell, env=env, capture_output=True, text=True, check=True, timeout=20).stdout


@pytest.mark.parametrize(
    ("scripts", "said", "remedy"),
    [
        ({"ethtool": ""}, "not installed: ethtool", "sudo apt-get install -y ethtool"),
        ({"tc": "", "unshare": ""}, "not installed: tc, unshare", "sudo apt-get install -y iproute2 util-linux"),
        ({"unshare": "exit 1"}, "me may not set up networks", "log in as root"),
        (
            {"tc": 'case "$*" in *netem|*codel) exit 2;; esac'},
            "the kernel lacks sch_netem, sch_codel",
            "sudo modprobe -a sch_netem sch_codel",
        ),
        ({"ip": "exit 2"}, "the kernel lacks bridge", "sudo modprobe -a bridge"),
    ],
)
def test_the_first_thing_that_is_missing_is_named(
    tmp_path: Path, scripts: dict[str, str], said: str, remedy: str
) -> None:
    assert netem.missing_support(_told(tmp_path, **scripts)) == netem.MissingSupport(said, remedy)


def test_a_firewall_that_bridges_ask_matters_on_a_host_alone() -> None:
    told = "filter net.bridge.bridge-nf-call-iptables\n"
    found = netem.missing_support(told)
    assert found is not None
    assert found.remedy == "sudo sysctl -w net.bridge.bridge-nf-call-iptables=0"
    assert netem.missing_support(told, own_network=True) is None


def test_nothing_is_missing_where_all_of_it_works(tmp_path: Path) -> None:
    told = _told(tmp_path, tc='case "$*" in *netem|*"tbf rate "*|*codel) exit 0;; esac; exit 1')
    assert netem.missing_support(told) is None
