"""tshark (Wireshark's dissector) as a subprocess: packets in by a pipe, fields out as lines."""

from __future__ import annotations

import contextlib
import functools
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
_RECORD = struct.Struct("<IIII")


def find() -> str:
    """The path of tshark."""
    found = shutil.which("tshark")
    if found is None:
        raise CannotError("tshark is not installed; install it with: apt-get install tshark")
    return found


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
            asked = [part for name in names if name for part in ("-e", name)]
            command = [find(), "-n", "-r", str(empty), "-T", "fields", *asked]
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


def record(packet: bytes | memoryview, number: int, length: int) -> bytes:
    """One packet of a capture with link type RAW_IP. The time only keeps the order: the real ones are in the index."""
    return _RECORD.pack(number // 1_000_000, number % 1_000_000 * 1000, len(packet), length)


def dissect(
    packets: Iterable[bytes | memoryview], fields: Sequence[str], keys: bytes, options: Sequence[str] = ()
) -> Iterator[list[str]]:
    """Give tshark the octets of a capture after its file header; one list of fields for each packet it tells of.

    The user's own preferences and plugins have no part in it.
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
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=_environment(folder)
            )
        assert process.stdin is not None
        assert process.stdout is not None
        feeder = threading.Thread(target=_feed, args=(process.stdin, packets), daemon=True)
        feeder.start()
        gaps = [place for place, name in enumerate(names) if not name]
        try:
            for line in process.stdout:
                row = line.rstrip(b"\n").decode("utf-8", "replace").split(SEPARATOR)
                for place in gaps:
                    row.insert(place, "")
                if len(row) == len(names):
                    yield row
            code = process.wait()
            if code != 0:
                said = " ".join(errors.read_text(errors="replace").split())[-300:]
                raise CannotError(f"tshark ended with {code}: {said or 'no word'}; try fewer packets (editcap -c)")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdout.close()
            feeder.join(timeout=10)


def _feed(pipe: object, packets: Iterable[bytes | memoryview]) -> None:
    descriptor = pipe.fileno()  # type: ignore[attr-defined]
    with contextlib.suppress(BrokenPipeError, OSError):
        _write(descriptor, [_PCAP_HEADER])
        chunk: list[bytes | memoryview] = []
        for packet in packets:
            chunk.append(packet)
            if len(chunk) >= 512:
                _write(descriptor, chunk)
                chunk = []
        _write(descriptor, chunk)
    with contextlib.suppress(OSError):
        pipe.close()  # type: ignore[attr-defined]


def _write(descriptor: int, chunk: list[bytes | memoryview]) -> None:
    data = memoryview(b"".join(chunk))
    while data:
        data = data[os.write(descriptor, data) :]


def _environment(folder: str) -> dict[str, str]:
    return {**os.environ, "WIRESHARK_CONFIG_DIR": folder, "WIRESHARK_PLUGIN_DIR": folder, "LC_ALL": "C.UTF-8"}
