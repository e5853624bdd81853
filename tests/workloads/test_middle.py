"""Where a link stands that lost every packet: what its counts say of the network, without a network."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trifecta.contract.codec import changed
from trifecta.contract.link import LinkConfig
from trifecta.design.errors import CannotError
from trifecta.design.machine import Machine
from trifecta.design.model import PathSpec
from trifecta.workloads.hosts.emulator_host import NOTHING_PASSES, EmulatorHost, _detour

DEVICES = ("eth1", "eth2")


def seen(forward: int, backward: int) -> Any:
    return SimpleNamespace(a_to_b=SimpleNamespace(wire_packets=forward), b_to_a=SimpleNamespace(wire_packets=backward))


def probe(received: int = 0) -> Any:
    return SimpleNamespace(sent=20, received=received)


@pytest.mark.parametrize(("forward", "backward"), [(20, 0), (1, 0), (20, 3)])
def test_packets_that_come_by_the_clients_device_alone_are_well(forward: int, backward: int) -> None:
    assert _detour(DEVICES, "192.0.2.1", probe(), seen(forward, backward)) is None


@pytest.mark.parametrize(
    ("forward", "backward", "received", "said"),
    [
        (0, 20, 0, "the client's packets come by eth2; write devices: [eth2, eth1]"),
        (0, 0, 0, "none of 20 packets of the client to 192.0.2.1 came by eth1 or eth2; join eth1"),
        (20, 20, 0, "packets come by eth1 and eth2 alike; join one"),
        (0, 0, 20, "the client reaches 192.0.2.1 without crossing this host; give the server an address"),
        (20, 0, 20, "the client reaches 192.0.2.1 without crossing this host"),
    ],
)
def test_what_is_wrong_is_told_with_its_remedy(forward: int, backward: int, received: int, said: str) -> None:
    problem = _detour(DEVICES, "192.0.2.1", probe(received), seen(forward, backward))
    assert problem is not None
    assert said in problem


class _Standing:
    """As much of a machine as is asked before a link is started."""

    def __init__(self, files: dict[str, str]) -> None:
        self.machine = Machine("ssh://c", devices=DEVICES)
        self._files = files

    def read(self, *files: str) -> dict[str, str]:
        return {name: text for name, text in self._files.items() if name in files}


def middle(files: dict[str, str], lying: Callable[[LinkConfig], LinkConfig] = lambda config: config) -> EmulatorHost:
    standing: Any = _Standing(files)
    return EmulatorHost(standing, Path("link.log"), lambda: False, lying)


def test_a_port_of_a_bridge_is_refused() -> None:
    middle({}).refuse_bridged()
    with pytest.raises(CannotError) as error:
        middle({"/sys/class/net/eth2/brport/bridge/uevent": "INTERFACE=br0\nIFINDEX=3\n"}).refuse_bridged()
    assert "hosts.middle (ssh://c): eth2 is a port of a bridge" in str(error.value)
    assert str(error.value).endswith("sudo ip link set eth2 nomaster")


def test_a_link_there_is_a_bridge_between_the_devices_that_the_study_names() -> None:
    config = middle({})._config(PathSpec("far", forward=({"kind": "delay", "delay_ns": 5},)), 7)
    assert isinstance(config, LinkConfig)
    assert (config.a_device, config.b_device, config.bridge, config.seed) == ("eth1", "eth2", True, 7)
    assert len(config.a_to_b) == 1
    lying = middle({}, lambda config: changed(config, {"seed": 8}))._config(NOTHING_PASSES, 7)
    assert (lying.seed, len(lying.a_to_b), len(lying.b_to_a)) == (8, 1, 1)
