"""A machine on which programs of a study run: this one, or one by SSH, as a study and the command line write it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from trifecta.contract.values import JsonValue
from trifecta.design.document import parse_text
from trifecta.design.quantity import QuantityError

HERE = "here"
CLIENT = "client"
ROLES = (CLIENT, "server")
"""Who has a machine; of services the client, and each behind it by its name."""
MIDDLE = "middle"
"""The role of a host between client and server, on which the emulator is."""
WRITTEN = f"write ssh://HOST, ssh://USER@HOST:PORT, or {HERE} for this machine"
_URL = re.compile(
    r"ssh://(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9._-]*)@)?"
    r"(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?\])"
    r"(?::(?P<port>[0-9]{1,5}))?/?"
)
_PASSWORD = re.compile(r"ssh://[^@/]*:[^@/]*@.*")
_DEVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}")  # IFNAMSIZ, if_nametoindex(3)


@dataclass(frozen=True)
class Machine:
    """This machine in its own network (``here``), or one by SSH."""

    at: str
    """``here``, or ``ssh://USER@HOST:PORT``; user and port are those of the user's configuration where left out."""
    address: str | None = None
    """The IP address at which the other one finds it; None: that to which the connection of SSH was made."""
    devices: tuple[str, str] | None = None
    """Of a host in the middle: its devices towards the client and towards the server."""

    @property
    def is_here(self) -> bool:
        """Whether it is this machine."""
        return self.at == HERE

    @property
    def host(self) -> str:
        """The name of the host, or its address without brackets."""
        return self._part("host").strip("[]")

    @property
    def user(self) -> str | None:
        """The user, where one is named."""
        return self._part("user") or None

    @property
    def port(self) -> int | None:
        """The port, where one is named."""
        return int(port) if (port := self._part("port")) else None

    @property
    def command(self) -> str:
        """What a user types to get there."""
        who = f"{self.user}@{self.host}" if self.user else self.host
        return f"ssh -p {self.port} {who}" if self.port else f"ssh {who}"

    def as_data(self) -> JsonValue:
        """As it is written in a study."""
        more: dict[str, JsonValue] = {}
        if self.address is not None:
            more["address"] = self.address
        if self.devices is not None:
            more["devices"] = [*self.devices]
        return {"at": self.at, **more} if more else self.at

    def _part(self, name: str) -> str:
        match = _URL.fullmatch(self.at)
        return "" if match is None else match[name] or ""


def parse_device(value: Any) -> str:
    """The name of a network device; QuantityError for anything else."""
    text = parse_text(value).strip()
    if not _DEVICE.fullmatch(text):
        raise QuantityError(f"{text!r} is not the name of a network device; write one as `ip link` shows it, like eth1")
    return text


def from_where(vantage: str | None) -> str:
    """Behind an address: that it was asked there from a host by SSH; nothing for this machine, which may be None."""
    return "" if vantage in (None, HERE) else f" from {vantage}"


def parse_machine(value: Any) -> Machine:
    """``here`` or ``ssh://USER@HOST:PORT``; QuantityError for anything else, a password among it."""
    text = parse_text(value).strip()
    if text == HERE:
        return Machine(HERE)
    if _PASSWORD.fullmatch(text):  # which is not repeated in the message
        raise QuantityError(f"a password has no place in a study or on a command line; use a key, and {WRITTEN}")
    match = _URL.fullmatch(text)
    if match is None:
        raise QuantityError(f"{text!r} is not a host; {WRITTEN}")
    if match["port"] and not 1 <= int(match["port"]) <= 65_535:
        raise QuantityError(f"{text!r} has port {match['port']}; give 1 to 65535")
    return Machine(text.rstrip("/"))
