"""tshark (Wireshark's dissector) as a subprocess: packets in by a pipe, fields out as lines."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import itertools
import os
import re
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from trifecta.design.errors import CannotError

SEPARATOR, AGGREGATOR = "\x1f", "\x1e"
RAW_IP = 101  # LINKTYPE_RAW
INFO = "_ws.col.Info"
_INFO_LATER = "_ws.col.info"  # as later versions name it
_PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, RAW_IP)
_BUFFER = 1 << 20


def find() -> str:
    """The path of tshark."""
    path = shutil.which("tshark")
    if path is None:
        raise CannotError("tshark is not installed; install it with: apt-get install tshark")
    return path


@functools.lru_cache(maxsize=1)
def version() -> str:
    """Its version, '4.0.17'."""
    done = subprocess.run([find(), "--version"], capture_output=True, text=True, check=False, timeout=60)
    match = re.search(r"\b(\d+\.\d+\.\d+)\b", done.stdout)
    return match[1] if match else "unknown"


@functools.lru_cache(maxsize=8)
def usable_fields(fields: tuple[str, ...]) -> tuple[str, ...]:
    """The names as this version has them; '' for a field that it does not have."""
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.pcap"
        empty.write_bytes(_PCAP_HEADER)
        names = list(fields)
        for _ in range(2):
            arguments = [part for name in names if name for part in ("-e", name)]
            command = [find(), "-n", "-r", str(empty), "-T", "fields", *arguments]
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=60, env=_environment(folder)
            )
            if done.returncode == 0:
                return tuple(names)
            missing = set(re.findall(r"^\s+(\S+)\s*$", done.stderr, re.MULTILINE))
            if not missing & set(names):
                break
            names = [(_INFO_LATER if name == INFO else "") if name in missing else name for name in names]
    raise CannotError(f"tshark {version()} does not start: {' '.join(done.stderr.split())[:200]}; install 4.0 or later")


def dissect(
    packets: Iterable[bytes], fields: Sequence[str], keys: bytes, options: Sequence[str] = (), *, empty: bool = True
) -> Iterator[list[str]]:
    """Give tshark the octets of a capture after its file header; one list of fields for each packet it tells of.

    Without ``empty`` packets are left out of which it tells nothing but the first and the last field. The user's own
    preferences and plugins have no part in it.
    """
    names = usable_fields(tuple(fields))
    with tempfile.TemporaryDirectory(prefix="trifecta-trace-") as folder:
        command = [find(), "-n", "-r", "-", "-T", "fields", "-E", f"separator={SEPARATOR}"]
        command += ["-E", f"aggregator={AGGREGATOR}", *options]
        if keys:
            key_log = Path(folder) / "keys"
            key_log.touch(mode=0o600)
            key_log.write_bytes(keys)
            command += ["-o", f"tls.keylog_file:{key_log}"]
        command += [part for name in names if name for part in ("-e", name)]
        errors = Path(folder) / "errors"
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                command,
                bufsize=_BUFFER,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=_environment(folder),
            )
        assert process.stdin is not None
        assert process.stdout is not None
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # the system allows a user so much only
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _BUFFER)
        feeder = threading.Thread(target=_feed, args=(process.stdin, packets), daemon=True)
        feeder.start()
        gaps = [place for place, name in enumerate(names) if not name]
        nothing = SEPARATOR.encode() * (len(names) - len(gaps) - 1)
        try:
            for line in process.stdout:
                if not empty and nothing in line:
                    continue
                row = line.rstrip(b"\n").decode("utf-8", "replace").split(SEPARATOR)
                for place in gaps:
                    row.insert(place, "")
                if len(row) == len(names):
                    yield row
            code = process.wait()
            if code != 0:
                message = " ".join(errors.read_text(errors="replace").split())[-300:]
                raise CannotError(f"tshark ended with {code}: {message or 'no word'}; try fewer packets (editcap -c)")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdout.close()
            feeder.join(timeout=10)


def _feed(pipe: object, packets: Iterable[bytes]) -> None:
    descriptor = pipe.fileno()  # type: ignore[attr-defined]
    with contextlib.suppress(BrokenPipeError, OSError):
        for chunk in itertools.chain((_PCAP_HEADER,), packets):
            data = memoryview(chunk)
            while data:
                data = data[os.write(descriptor, data) :]
    with contextlib.suppress(OSError):
        pipe.close()  # type: ignore[attr-defined]


def _environment(folder: str) -> dict[str, str]:
    return {**os.environ, "WIRESHARK_CONFIG_DIR": folder, "WIRESHARK_PLUGIN_DIR": folder, "LC_ALL": "C.UTF-8"}
