"""What is kept of a failure: log, configuration, keys, qlog, and a capture of a second attempt."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from trifecta.design.conformance import ConformanceResult
from trifecta.lab.host import Host
from trifecta.lab.network import DEVICE
from trifecta.store import files

LOG_TAIL_BYTES = 1 << 20
_LARGEST_CONFIGURATION_BYTES = 1 << 20
_CAPTURE_READY_S = 3.0
NO_TCPDUMP = "no capture: tcpdump is not installed; apt-get install tcpdump"


def safe_name(*parts: str) -> str:
    """A file name made of these parts: adapters come from anywhere, a name never leads out of its folder."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(parts)).lstrip(".") or "_"


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner reads: keys and captures lie in it."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def keep_configuration(state: Path, folder: Path) -> None:
    """Copy what an implementation was configured with; sockets and large files are left out."""
    for source in sorted(state.rglob("*")) if state.is_dir() else ():
        if source.is_symlink() or not source.is_file() or source.stat().st_size > _LARGEST_CONFIGURATION_BYTES:
            continue
        target = folder / "configuration" / source.relative_to(state)
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # it still runs, and removes files of its own
            shutil.copyfile(source, target)


def keep_log(log: Path, target: Path, start: int = 0) -> None:
    """Copy the end of a log, of what was written since ``start``."""
    if not log.exists():
        return
    with log.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(start, end - LOG_TAIL_BYTES))
        target.write_bytes(file.read(LOG_TAIL_BYTES))


def write_result(folder: Path, result: ConformanceResult, second: dict[str, Any] | None) -> None:
    """Write the row, and what came of the second attempt, beside the evidence."""
    document = {"result": dataclasses.asdict(result), "second_attempt": second}
    files.write_text(folder / "result.json", json.dumps(document, indent=2, ensure_ascii=False) + "\n")


class Capture:
    """tcpdump(8) on the client's interface while something is tried again; a context manager."""

    def __init__(self, host: Host, port: int, file: Path) -> None:
        """Prepare to write what ``host`` exchanges with ``port`` into ``file``."""
        self._host = host
        self._port = port
        self._file = file
        self._process: subprocess.Popen[bytes] | None = None
        self.problem: str | None = None
        """Why there is no capture, with the remedy; None while there is one."""

    def __enter__(self) -> Capture:
        """Start it and wait until it listens."""
        program = shutil.which("tcpdump", path=_search_path())
        if program is None:
            self.problem = NO_TCPDUMP
            return self
        # -Z root: it must not become a user that may not write here; -U and --immediate-mode: a packet is in the file
        # as soon as it was seen, else the kernel hands packets over up to a second later, when nobody looks any more.
        command = [
            program,
            "-i",
            DEVICE,
            "-n",
            "-s",
            "0",
            "-U",
            "--immediate-mode",
            "-Z",
            "root",
            "-w",
            str(self._file),
        ]
        self._words = self._file.with_suffix(".log")
        with self._words.open("wb") as words:
            self._process = self._host.start(
                [*command, "port", str(self._port)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=words,
            )
        deadline = time.monotonic() + _CAPTURE_READY_S
        while b"listening on" not in self._words.read_bytes():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = " ".join(self._words.read_text(errors="replace").split())[-200:]
                self.problem = f"no capture: tcpdump does not start here ({said or 'it says nothing'}); run as root"
                break
            time.sleep(0.01)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it; what came so far is in the file."""
        if self._process is None:
            return
        if self._process.poll() is None:
            time.sleep(0.1)  # the last packets are still on their way to it
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(timeout=3)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()


def _search_path() -> str:
    """PATH, and where distributions put programs for administrators."""
    import os

    return os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"))
