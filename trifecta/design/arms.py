"""What the arms of a study are called: protocols by their names, other levels so that they say of what they are."""

from __future__ import annotations

import re

from trifecta.design.builds import COMPOSE
from trifecta.design.model import AA_SUFFIX, PROTOCOL_FACTOR, PROTOCOL_NAMES

NAMES = ("server", "client", "path")  # factors whose levels are names and speak for themselves
_UPPER = {word: word.upper() for word in ("tls", "cpu", "tcp", "rtt", "ip", "mtu")}
_FACTORS = {"zero_rtt": "0-RTT"}  # as RFC 8446 writes it
_FLAGS = {"true": "on", "false": "off"}
_WORD = re.compile(r"[A-Za-z](?:[A-Za-z]{2}|[\w-]{3}).*")  # "cubic", "X25519", not "10", "1.3", "10 kB" nor "h3"
_OF = {"connection": "connection", "inside": "inside"}  # "HTTP/2" alone would be what the client speaks
_UNTOLD = ("none", "off", "all", "same", "full", "open")
_LONGEST = 40  # characters of a server's name in a table


def factor_words(factor: str) -> str:
    """A factor in words: ``congestion control``, ``TLS version``."""
    return _FACTORS.get(factor) or " ".join(_UPPER.get(word, word) for word in factor.split("_"))


def arm_words(compare: str, arm: str) -> str:
    """An arm in words: ``HTTP/3``, ``caddy``, ``resumption on``, ``in flight 10``; the A/A mark is left as it is."""
    level, mark = arm.removesuffix(AA_SUFFIX), AA_SUFFIX * arm.endswith(AA_SUFFIX)
    if compare == PROTOCOL_FACTOR:
        return PROTOCOL_NAMES.get(level, level) + mark
    if compare in _OF:
        return f"{level} {_OF[compare]}{mark}"
    if compare in NAMES:
        return (server_words(level) if compare == "server" else level) + mark
    if compare in ("page", "clip", "messages"):
        return level.rstrip("/").rsplit("/", 1)[-1] + mark  # which may be a path
    if _WORD.fullmatch(level) and level not in (*_FLAGS, *_UNTOLD):
        return level + mark
    return level_words(compare, level) + mark


def level_words(factor: str, level: str) -> str:
    """A level of a factor that is no name: ``in flight 10``, ``resumption on``."""
    return f"{factor_words(factor)} {_FLAGS.get(level, level)}"


def node_words(node: str) -> str:
    """A node of a cluster in words; empty is this machine."""
    return f"node {node}" if node else "this machine"


def server_words(level: str) -> str:
    """A server as it is written; of one with a long path, the end of it: ``nginx@…/build-a/objs/nginx``."""
    mark = ":" if level.startswith(COMPOSE) else "@"
    server, _, path = level.partition(mark)
    if len(level) <= _LONGEST or not path:
        return level
    end = path[-max(8, _LONGEST - len(server) - 2) :]
    return f"{server}{mark}…{end[end.find('/') :] if '/' in end else end}"
