"""The driver with an adapter of the test's own: ``python -m tests.implementations.driven SCRIPT``.

SCRIPT is Python that the client runs in its working folder; it prints rows as JSON, one a line, with times relative to
its start. ``@`` before it stands for a program that is not there, ``!`` for an adapter that refuses.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from trifecta.implementations.client import ClientAdapter, Job, Output, Row
from trifecta.implementations.clients import driver
from trifecta.implementations.clients.content import whole_lines
from trifecta.implementations.server import Command, Unsupported


class Scripted(ClientAdapter):
    """Runs a script and takes its lines for rows."""

    name = "scripted"
    source = "a test"

    def __init__(self, script: str) -> None:
        self.script = script

    def find(self) -> str:
        return "1"

    def declared(self) -> dict[str, str]:
        return {"tls_library": "none"}

    def command(self, job: Job) -> Command:
        if self.script.startswith("!"):
            raise Unsupported("scripted is not here; run: trifecta get scripted")
        if self.script.startswith("@"):
            return Command(("/nowhere/at-all",))
        return Command((sys.executable, "-c", self.script), {"FOR_THE_CLIENT": "told"})

    def start_only(self, job: Job) -> Command | None:
        return self.command(job)

    def rows(self, job: Job, output: Output) -> Iterator[Row]:
        for line in whole_lines(output.stdout, output):
            row = json.loads(line)
            yield {k: v + output.began_ns if k.endswith("_ns") and isinstance(v, int) else v for k, v in row.items()}


if __name__ == "__main__":
    driver.CLIENTS = {"scripted": Scripted(sys.argv[1])}  # type: ignore[assignment]
    sys.exit(driver.main(["scripted"]))
