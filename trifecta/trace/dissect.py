"""Dissect captures into the four tables of `trifecta.store.trace_schema`."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from trifecta.design.errors import UserError
from trifecta.store.trace_schema import SCHEMAS, TABLES
from trifecta.trace import missing_packets, tables, tshark
from trifecta.trace.capture_file import Ints, read_capture
from trifecta.trace.dissection import Dissection
from trifecta.trace.flows import find_flows
from trifecta.trace.headers import TCP, parse_headers
from trifecta.trace.rows import Packed, Part, Trace, pack
from trifecta.trace.segments import number_segments, read_sacks
from trifecta.trace.tcp import dissect_tcp
from trifecta.trace.udp import dissect_udp

_SMALL = 20_000  # packets: below, one process is quicker than several
_PART = 60_000  # packets of one tshark: it keeps what it has put together, some 6 kB a packet
_ETHERNET = 1522  # octets of the longest frame with a tag
_READABLE = "name a capture with TCP or UDP over IP (docs/trace.md has the link types)"


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[Trace, list[int], bytes], Part]
    connections: list[int]
    packets: int


def dissect(
    files: Sequence[Path],
    keys: Path | None = None,
    out: Path | None = None,
    *,
    csv: bool = False,
    link_logs: Mapping[Path, Path] | None = None,
) -> Dissection:
    """Dissect ``files``, with the TLS keys in them and those of ``keys`` (an NSS key log), into one set of tables.

    ``link_logs`` names the log of the link (docs/architecture.md, 1.3) for a capture of it. With ``out`` the tables are
    written there as Parquet, with ``csv`` as CSV too. What cannot be known is null in the tables; ``notes`` say why.
    """
    tshark.find()
    key_log = _read_keys(keys)
    file_tables: list[dict[str, pa.Table]] = []
    notes: list[str] = []
    first = 0
    for file in files:
        one, file_notes = _dissect_file(file, key_log, first, (link_logs or {}).get(file))
        first += one["connections"].num_rows
        file_tables.append(one)
        prefix = f"{file.name}: " if len(files) > 1 else ""
        notes += [prefix + note for note in dict.fromkeys(file_notes)]
    joined_tables = {name: pa.concat_tables([one[name] for one in file_tables]) for name in TABLES}
    if out is not None:
        tables.write(joined_tables, out, csv=csv)
    return Dissection(**joined_tables, notes=notes)


def _read_keys(keys: Path | None) -> bytes:
    if keys is None:
        return b""
    try:
        content = keys.read_bytes()
    except OSError as error:
        raise UserError(f"{keys}: {error.strerror or error}; name the key log that SSLKEYLOGFILE wrote") from error
    if content and not any(
        b"TRAFFIC_SECRET" in line or line.startswith(b"CLIENT_RANDOM") for line in content.split(b"\n")
    ):
        raise UserError(f"{keys}: is not a TLS key log; name the file that SSLKEYLOGFILE wrote")
    return content.rstrip(b"\n") + b"\n"


def _dissect_file(file: Path, keys: bytes, first: int, log: Path | None) -> tuple[dict[str, pa.Table], list[str]]:
    capture = read_capture(file)
    notes = list(capture.notes)
    headers = parse_headers(capture) if len(capture.offset) else None
    notes += ["there is no packet in it"] if headers is None else headers.notes
    if headers is None or not len(headers.index):
        notes += missing_packets.notes_on(capture, None)
        if not _of_a_run(file):
            why = "; ".join(note.partition(": they are")[0] for note in notes)
            raise UserError(f"{file}: nothing in it can be read: {why}; {_READABLE}")
        return {name: SCHEMAS[name].arrow().empty_table() for name in TABLES}, notes
    flows = find_flows(capture, headers)
    numbers = number_segments(capture, headers, flows)
    read_sacks(capture, headers, numbers)
    trace = Trace(capture, headers, flows, numbers)
    _note_sizes(trace, notes)
    parts = _run(trace, _jobs(trace), capture.secrets + keys)
    for part in parts:
        notes += part.notes
    result, table_notes = tables.build(trace, parts, file, first, log)
    notes += table_notes
    rows = zip(*(result["connections"][name].to_pylist() for name in ("decrypted", "truncated")), strict=True)
    encrypted = sum(opened is False and "keys" in (lacks or "") and "start" not in lacks for opened, lacks in rows)
    if encrypted:
        why = "no TLS keys were given or embedded" if not capture.secrets + keys else "the TLS keys are not theirs"
        count = "1 encrypted connection" if encrypted == 1 else f"{encrypted} encrypted connections"
        notes.append(f"{count} could not be opened ({why}): only headers tell of them")
    return result, notes


def _of_a_run(file: Path) -> bool:
    """Whether a run of ours has it: nothing was sent in some trials, and that is no fault of the file."""
    return file.parent.name == "captures" and (file.parent.parent / "run.json").is_file()


def _note_sizes(trace: Trace, notes: list[str]) -> None:
    headers, capture = trace.headers, trace.capture
    if not len(headers.index):
        return
    largest = int(headers.ip_bytes.max())
    if largest > _ETHERNET:
        largest_frame = int(capture.wire[headers.index].max())
        notes.append(
            f"frames are not wire packets here: the largest has {largest_frame} octets, put together or not yet cut by "
            "the system (segmentation offload, loopback); counts and gaps of packets cannot be compared"
        )
    cut = int((headers.payload_captured < headers.payload).sum())
    if cut:
        notes.append(f"{cut} packets were captured without their end (snapshot length): their octets are not known")


def _jobs(trace: Trace) -> list[_Job]:
    """Parts that know nothing of each other. A QUIC connection that moved needs all its packets in one of them."""
    flows, headers = trace.flows, trace.headers
    count = np.bincount(flows.connection[flows.view], minlength=flows.count)
    representative = np.unique(flows.connection, return_index=True)[1]
    is_tcp = headers.transport[representative] == TCP
    jobs: list[_Job] = []
    jobs += _pack(dissect_tcp, [[one] for one in np.flatnonzero(is_tcp).tolist()], count)
    jobs += _pack(dissect_udp, _groups(trace, np.flatnonzero(~is_tcp), representative), count)
    return sorted(jobs, key=lambda job: -job.packets)


def _pack(work: Callable[[Trace, list[int], bytes], Part], groups: Iterable[list[int]], count: Ints) -> list[_Job]:
    jobs: list[_Job] = []
    for group in groups:
        size = int(count[group].sum())
        if jobs and jobs[-1].packets + size <= _PART:
            jobs[-1] = _Job(work, jobs[-1].connections + group, jobs[-1].packets + size)
        else:
            jobs.append(_Job(work, group, size))
    return jobs


def _groups(trace: Trace, connections: Ints, representative: Ints) -> list[list[int]]:
    headers, flows = trace.headers, trace.flows
    rows = representative[connections]
    up = flows.direction[rows] == 0
    server = np.where(up, headers.destination[rows] << 16 | headers.destination_port[rows], 0)
    server = np.where(up, server, headers.source[rows] << 16 | headers.source_port[rows])
    at = np.where(headers.payload_captured[rows] > 0, headers.payload_offset[rows], 0)
    begins = (trace.capture.data[at] & 0xC0 == 0xC0) & (headers.payload_captured[rows] > 0)
    groups: list[list[int]] = []
    for one in np.unique(server):
        mine = server == one
        if bool(begins[mine].all()):
            groups += [[flow] for flow in connections[mine].tolist()]
        else:
            groups.append(connections[mine].tolist())
    return groups


_trace: Trace | None = None  # what the worker processes inherit: the positions of a million packets are 100 MB
_keys = b""


def _run(trace: Trace, jobs: list[_Job], keys: bytes) -> list[Packed]:
    global _trace, _keys
    if sum(job.packets for job in jobs) <= _SMALL or len(jobs) < 2:
        return [pack(job.work(trace, job.connections, keys)) for job in jobs]
    _trace, _keys = trace, keys
    try:
        # fork: no other thread runs here, and the workers need the whole trace.
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork"), max_tasks_per_child=None) as pool:
            return list(pool.map(_job, jobs))
    finally:
        _trace, _keys = None, b""


def _job(job: _Job) -> Packed:
    assert _trace is not None
    return pack(job.work(_trace, job.connections, _keys))
