"""Commands that were started from the page: what they are, whether they still run, what they said last."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from trifecta.contract.values import JsonObject
from trifecta.design.errors import CannotError

_TOLD_BYTES = 4000
_TOLD_LINES = 12


@dataclass(frozen=True)
class Job:
    """A command. ``code`` None: it still runs."""

    id: str
    words: tuple[str, ...]
    run: str
    log: Path
    code: int | None = None


class Jobs:
    """Starts commands by `ui.starter`; a context manager, at whose end all of them are stopped."""

    def __init__(self, cwd: Path, command: Sequence[str] = (sys.executable, "-m", "trifecta")) -> None:
        """Before the server lowers its priority; ``command`` is run in ``cwd``."""
        self._cwd, self._command = cwd, tuple(command)
        self._logs = tempfile.TemporaryDirectory(prefix="trifecta-ui-")
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._starter = subprocess.Popen(
            [sys.executable, "-m", "trifecta.ui.starter"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Jobs:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._starter.stdin is not None
        with suppress(OSError):
            self._starter.stdin.close()
        self._starter.wait()
        self._logs.cleanup()

    def start(self, words: Sequence[str], run: str) -> Job:
        """Start ``trifecta WORDS``, which writes the run of this name; CannotError where nothing can be started."""
        assert self._starter.stdin is not None
        with self._lock:
            name = str(len(self._jobs) + 1)
            job = Job(name, tuple(words), run, Path(self._logs.name) / f"{name}.log")
            self._jobs[name] = job
            argv = [*self._command, *words]
            order = {"id": name, "argv": argv, "cwd": str(self._cwd), "log": str(job.log)}
            try:
                self._starter.stdin.write(json.dumps(order).encode() + b"\n")
                self._starter.stdin.flush()
            except OSError as error:
                raise CannotError("the starter of runs has ended; start `trifecta ui` again") from error
        return job

    def running(self) -> int:
        """How many still run."""
        with self._lock:
            return sum(one.code is None for one in self._jobs.values())

    def shown(self) -> list[JsonObject]:
        """All of them, the last first, each with the last lines that it said."""
        with self._lock:
            known = list(self._jobs.values())
        return [
            {"id": one.id, "command": " ".join(["trifecta", *one.words]), "run": one.run, "code": one.code,
             "said": _last_lines(one.log)}
            for one in reversed(known)
        ]  # fmt: skip

    def _listen(self) -> None:
        assert self._starter.stdout is not None
        for line in self._starter.stdout:
            message = json.loads(line)
            with self._lock:
                self._jobs[message["id"]] = replace(self._jobs[message["id"]], code=message["code"])


def _last_lines(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TOLD_BYTES))
            return file.read().decode(errors="replace").splitlines()[-_TOLD_LINES:]
    except OSError:
        return []
