"""What head and node say to each other: lines of JSON to the node, messages with files to the head."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from trifecta.contract.run import RunDocument
from trifecta.design.errors import CannotError
from trifecta.workloads.cluster.dispatch import Content, Order

Kind = Literal["beat", "ready", "ran", "told", "cannot"]
KINDS: Final[tuple[Kind, ...]] = ("beat", "ready", "ran", "told", "cannot")
_HEAD: Final = struct.Struct(">4sI")  # a mark, and the length of the header, which is JSON
_MARK: Final = b"tfn1"
_MOST_HEADER_BYTES: Final = 1 << 26
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class NodeTask:
    """What a node is to measure, in its first line."""

    node: str
    study: str
    """Its canonical text."""
    store: str = ""
    """URL of where in an object store it puts what trials leave; empty where the head takes it."""


def _no_facts() -> RunDocument:
    return {}


@dataclass(frozen=True)
class Message:
    """What a node says.

    ``beat``: it is alive; ``ready``: it stands, on the machine of ``text``; ``ran``: the block of this cell is done,
    with its files, and with those that it has put into an object store (SHA-256 by name); ``told``: for the user;
    ``cannot``: it can run nothing more, and why.
    """

    kind: Kind
    text: str = ""
    cell: str = ""
    block: int = 0
    facts: RunDocument = field(default_factory=_no_facts)
    files: Content = field(default_factory=dict)
    stored: Mapping[str, str] = field(default_factory=dict)


def encode(message: Message) -> bytes:
    """A message as octets."""
    header = {
        "kind": message.kind,
        "text": message.text,
        "cell": message.cell,
        "block": message.block,
        "facts": message.facts,
        "files": [[name, len(octets)] for name, octets in message.files.items()],
        "stored": message.stored,
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    return b"".join((_HEAD.pack(_MARK, len(text)), text, *message.files.values()))


class Decoder:
    """Takes octets as they come, gives messages."""

    def __init__(self) -> None:
        """Nothing has come."""
        self._pieces: list[bytes] = []
        self._many = 0
        self._needed = _HEAD.size

    def feed(self, octets: bytes) -> Iterator[Message]:
        """The messages that are whole now; CannotError for what is none."""
        self._pieces.append(octets)
        self._many += len(octets)
        while self._many >= self._needed:
            buffered = b"".join(self._pieces)
            message, used, self._needed = _decode(buffered)
            self._pieces, self._many = [buffered[used:]], self._many - used
            if message is not None:
                yield message


def _decode(octets: bytes) -> tuple[Message | None, int, int]:
    """The first message, how long it is, and how many octets the next one needs; None where it is not whole yet."""
    mark, length = _HEAD.unpack_from(octets)
    if mark != _MARK or length > _MOST_HEADER_BYTES:
        raise CannotError(f"it sent {octets[:20]!r}, which is no message; install the same version there as here")
    begin = _HEAD.size + length
    if len(octets) < begin:
        return None, 0, begin
    try:
        header = json.loads(octets[_HEAD.size : begin])
        sizes = [(str(name), int(size)) for name, size in header["files"]]
        kind, block = header["kind"], int(header["block"])
        text, cell, facts = str(header["text"]), str(header["cell"]), dict(header["facts"])
        stored = _digests(header["stored"])
        if kind not in KINDS or any(size < 0 for _, size in sizes):
            raise ValueError(kind)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CannotError("it sent a message that cannot be read; install the same version there as here") from error
    end = begin + sum(size for _, size in sizes)
    if len(octets) < end:
        return None, 0, end
    files: dict[str, bytes] = {}
    at = begin
    for name, size in sizes:
        files[name] = octets[at : at + size]
        at += size
    return Message(cast(Kind, kind), text, cell, block, cast(RunDocument, facts), files, stored), end, _HEAD.size


def _digests(read: Mapping[str, object]) -> dict[str, str]:
    """SHA-256 by name; ValueError for what is none."""
    digests = {str(name): str(one) for name, one in read.items()}
    if not all(_SHA256.fullmatch(one) for one in digests.values()):
        raise ValueError("a digest")
    return digests


def asked_line(task: NodeTask) -> bytes:
    """The first line that a node reads."""
    return json.dumps({"node": task.node, "study": task.study, "store": task.store}).encode() + b"\n"


def read_asked(line: bytes) -> NodeTask:
    """The first line of a node; ValueError or KeyError for what is none."""
    read: Mapping[str, str] = json.loads(line)
    return NodeTask(read["node"], read["study"], read["store"])


def order_line(order: Order) -> bytes:
    """A line that orders a block."""
    fields = {"cell": order.cell, "block": order.block, "first_trial": order.first_trial, "reason": order.reason}
    return json.dumps(fields).encode() + b"\n"


def read_order(line: bytes) -> Order:
    """The order of a line; ValueError, KeyError or TypeError for what is none."""
    return Order(**json.loads(line))
