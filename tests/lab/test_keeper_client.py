"""This end of a host by SSH: nothing is waited for without an end, and no error tells where the user's files lie."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from trifecta.design.machine import Machine
from trifecta.lab.ssh import keeper_client
from trifecta.lab.ssh.callbacks import Callbacks
from trifecta.lab.ssh.connection import CommandResult, HostLost
from trifecta.lab.ssh.host import SshHost
from trifecta.lab.ssh.keeper_client import KeeperClient


class Talkative:
    """A connection to a host that goes on talking, whatever it is told."""

    machine = Machine("ssh://a")
    lost = None

    def __init__(self) -> None:
        self.over = threading.Event()

    def begin(self, command: str, ears: Callbacks) -> SimpleNamespace:
        ears.output(b"connection 192.0.2.1 50000 192.0.2.2 22\nready /tmp/trifecta-x\n")

        def talk() -> None:
            while not self.over.is_set():
                ears.output(b"more\n")
                time.sleep(0.001)

        threading.Thread(target=talk, daemon=True).start()
        return SimpleNamespace(say=lambda _: None, end_input=lambda: None)

    def error(self, reason: str) -> HostLost:
        return HostLost(reason)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[KeeperClient]:
    monkeypatch.setattr(keeper_client, "_ANSWER_S", 0.2)
    monkeypatch.setattr(keeper_client, "_LEAVE_S", 0.2)
    host = Talkative()
    yield KeeperClient(host, [])
    host.over.set()


@pytest.mark.timeout(20)
def test_a_host_that_goes_on_talking_without_an_answer_is_lost(kept: KeeperClient) -> None:
    assert (kept.folder, kept.peer, kept.address) == ("/tmp/trifecta-x", "192.0.2.1", "192.0.2.2")
    with pytest.raises(HostLost, match="no answer in time"):
        kept.ask("show", "/proc/loadavg")
    assert kept.lost is not None
    assert kept.leave() is False


@pytest.mark.timeout(20)
def test_a_host_that_goes_on_talking_is_left_all_the_same(kept: KeeperClient) -> None:
    assert kept.leave() is False


def test_an_error_of_the_configuration_does_not_tell_where_the_home_is() -> None:
    from trifecta.lab.ssh import wire

    error = ValueError(f"{Path.home()}/.ssh/config line 3: Port must be a number")
    assert wire.words(error) == "~/.ssh/config line 3: Port must be a number"
    said = wire.refusal(Machine("ssh://a"), error)
    assert said == f"host ssh://a: your SSH configuration cannot be used ({wire.words(error)}); correct it"


def test_an_error_of_the_other_end_does_not_tell_where_a_run_lies_here() -> None:
    host = SshHost("client", Machine("ssh://a"), Path("/none"))
    words = "mkdir: cannot create directory '/tmp/trifecta-x/files/./home/me': No space left on device\n"
    error = host._no_room(Path("/home/me/runs/a/samples"), "cannot be put there", CommandResult(1, b"", words))
    assert str(error) == (
        "host ssh://a: samples cannot be put there (mkdir: cannot create directory '/tmp/trifecta-x/files/...': "
        "No space left on device); give its user room in ${TMPDIR:-/tmp}"
    )
