"""A server whose adapter is data: a command line, and what a study file or ``server.yaml`` says of it."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from trifecta.contract.common import Declared, Word
from trifecta.design import ip
from trifecta.design.builds import ServerProgram, fill
from trifecta.design.model import RequestsWorkload
from trifecta.design.transports import over
from trifecta.implementations.server import Command, ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.implementations.servers.replaying import refuse_pages
from trifecta.lab import sandbox

ASKED = ("--version",)
_AMBIGUOUS = "{address}:{port}"  # of IPv6, where the address ends cannot be told
_VERSION_TIMEOUT_S = 5.0
_LONGEST_VERSION = 200


class FromData(ServerAdapter):
    """Does what the data says, in the words that it has; no shell reads them."""

    def __init__(self, name: str, given: ServerProgram) -> None:
        """``name``: the level."""
        self.name = name
        self.given = given
        self.source = f"given with the study: {shlex.join(given.command)}"
        self.protocols = frozenset(given.protocols)
        self.says_ready = given.ready_says.encode() or None
        self.ready_within_s = None if given.ready_within_ns is None else given.ready_within_ns / 1e9

    def find(self) -> str:
        """What the program says of its version, on one line; its digest where it is not asked or does not know."""
        program = Path(self.given.command[0])
        if not program.is_file() or not os.access(program, os.X_OK):
            raise Unsupported(f"{self.name}: {program} is no program that can be run; build it, or run chmod +x")
        unknown = f"sha256 {(self.identity() or 'unknown')[:12]}"
        version_command = self.given.version
        if version_command == () or (version_command is None and not sandbox.entered()):
            return unknown  # one that does not know the option may begin to serve, which it does in the lab only
        try:
            done = subprocess.run(
                [program, *(version_command or ASKED)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True,
                stdin=subprocess.DEVNULL, timeout=_VERSION_TIMEOUT_S,
            )  # fmt: skip
            words = " ".join(done.stdout.decode(errors="replace").split("\n", 1)[0].split())[:_LONGEST_VERSION]
            if not words:
                raise ValueError("it says nothing")
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            if version_command is None:
                return unknown
            why = " ".join(str(error).split())
            raise Unsupported(f"{self.name} does not tell its version ({why}); correct `version`") from None
        return words

    def program_files(self) -> tuple[Path, ...]:
        """The program, and what it is given in full: the script of an interpreter is what is compared."""
        paths = [Path(word) for word in self.given.command if word.startswith("/")]
        return (paths[0], *(path for path in paths[1:] if path.is_file()))

    def check_workload(self, workload: RequestsWorkload) -> None:
        """What the data does not say that it can do is not asked of it."""
        refuse_pages(workload, self.name)
        if workload.method not in self.given.methods:
            named = ", ".join(self.given.methods)
            raise Unsupported(f"{self.name} answers {named}; if it answers {workload.method}, list that in `methods`")
        if workload.zero_rtt and not self.given.zero_rtt:
            raise Unsupported(f"{self.name} is not known to accept 0-RTT; leave out zero_rtt, or write zero_rtt: true")
        if workload.ip is not None and any(_AMBIGUOUS in text for text in self.given.texts()):
            raise Unsupported(f"{self.name} is told {_AMBIGUOUS}, which {ip.IPV6} has in brackets; write {{endpoint}}")
        control, requested = self.given.congestion_control, over(workload.congestion_control, "h3")
        if "h3" in self.protocols and not isinstance(control, str) and requested not in control:
            remedy = "name it in `congestion_control`, or ask for one of these"
            raise Unsupported(f"{self.name} cannot be told {requested} for QUIC, but {', '.join(control)}; {remedy}")

    def command(self, site: Site, options: ServerOptions) -> Command:
        """The command line, and its files in ``site.state``, with what they stand for."""
        control = self.given.congestion_control
        own = control if isinstance(control, str) else control.get(options.congestion_control, "")
        values = {
            "address": site.address,
            "port": str(site.port),
            "endpoint": site.endpoint,
            "cert": str(site.certificates.chain),
            "key": str(site.certificates.key),
            "root": str(site.folder),
            "state": str(site.state),
            "tls_version": options.tls_version,
            "congestion_control": own,
            "streams": str(options.max_streams),
        }
        for name, text in self.given.files.items():
            (site.state / name).write_text(fill(text, values), encoding="utf-8", errors="surrogateescape")
        words = tuple(fill(word, values) for word in self.given.command)
        return Command(words, {name: fill(text, values) for name, text in self.given.environment.items()})

    def declared(self, options: ServerOptions) -> Declared:
        """TCP follows the lab's routes; of the rest no more than the data says, so that checks say ``unknown``."""
        control: Mapping[str, Word] = {"tcp": options.congestion_control}
        own = self.given.congestion_control
        if own:
            control = {**control, "quic": own if isinstance(own, str) else options.congestion_control}
        words: dict[str, Word | Mapping[str, Word]] = {"congestion_control": control}
        if self.given.tcp_nodelay is not None:
            words["tcp_nodelay"] = self.given.tcp_nodelay
        if self.given.tls_library:
            words["tls_library"] = self.given.tls_library
        return words
