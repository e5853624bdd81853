"""Files that nobody has written on purpose, read by every parser in Python: one line, or a result; nothing else.

``make test-long`` runs them for FUZZ_SECONDS each; `fuzzing` says how totals are counted.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.design.test_compose import WHOLE as COMPOSE
from tests.design.test_servers import MINE
from tests.fuzz.fuzzing import fuzz
from tests.pages.test_folder_and_har import SITE
from tests.pages.test_har_writers import zipped
from tests.report.synthetic import Shape, write_run
from tests.trace import rewrite
from tests.trace.test_foreign import FORMS
from tests.trace.test_fuzz import CAPTURES, SMALL, as_pcap
from tests.trace.test_qlog import HEAD, LOST, METRICS, SENT, write
from trifecta.cli.option_parsing import own_servers
from trifecta.cli.tables import ask
from trifecta.design.document import Document
from trifecta.design.errors import TrifectaError
from trifecta.design.resolve import Surroundings, resolve
from trifecta.design.study_file import parse_study
from trifecta.pages.har import read_har
from trifecta.report.html import write_report
from trifecta.store import damage, views
from trifecta.store.run import RunDirectory
from trifecta.trace.capture_file import read_capture
from trifecta.trace.dissect import dissect
from trifecta.trace.flows import find_flows
from trifecta.trace.headers import parse_headers
from trifecta.trace.qlog import mend
from trifecta.trace.segments import number_segments, read_sacks
from trifecta.workloads.qlogs import began_ns

pytestmark = [pytest.mark.long, pytest.mark.timeout(7200)]


def one_line(read: Callable[[], object]) -> None:
    """What cannot be read is a TrifectaError of one line."""
    try:
        read()
    except TrifectaError as error:
        assert "\n" not in str(error), error


def test_captures(tmp_path: Path) -> None:
    """The reader of capture files and of their headers, without tshark."""
    file = tmp_path / "x"

    def target(data: bytes) -> None:
        file.write_bytes(data)

        def read() -> None:
            capture = read_capture(file)
            headers = parse_headers(capture)
            assert bool((headers.payload_captured <= headers.payload).all())
            if len(headers.index):
                flows = find_flows(capture, headers)
                read_sacks(capture, headers, number_segments(capture, headers, flows))

        one_line(read)

    whole = [data[:3000] for data in SMALL.values()]
    packets = rewrite.read(CAPTURES / "h2.pcapng")[:6]
    for link_type, change, _ in FORMS.values():  # one after the other, as anybody captures them
        whole.append(rewrite.pcapng(rewrite.again(packets, change), (link_type,)))
    whole += [rewrite.pcap(packets, link_type) for link_type in (8, 10, 100, 104, 107, 117, 119, 163, 192, 239, 258)]
    assert fuzz("captures", [*whole, *map(as_pcap, whole[:3])], target)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_dissections(tmp_path: Path) -> None:
    """Whole captures through tshark: a second each."""
    file = tmp_path / "x.pcapng"

    def target(data: bytes) -> None:
        file.write_bytes(data)
        one_line(lambda: dissect([file], CAPTURES / "h2.keys"))

    assert fuzz("dissections", [SMALL["h2"]], target)


def test_hars(tmp_path: Path) -> None:
    file = tmp_path / "x.har"
    body = {"mimeType": "text/html; charset=utf-8", "text": "<p>hello", "size": 8, "encoding": "utf-8"}
    entry = {
        "request": {"method": "GET", "url": "https://mine.example/", "headers": [], "httpVersion": "h2"},
        "response": {
            "status": 200, "headers": [{"name": "Content-Encoding", "value": "gzip"}, {"name": "X", "value": "y"}],
            "content": body, "bodySize": 30,
        },
        "startedDateTime": "2026-11-24T00:00:00Z", "time": 3.5, "_resourceType": "document",
    }  # fmt: skip
    png = {"mimeType": "image/png", "text": "iVBORw0KGgo=", "encoding": "base64"}
    image = {
        **entry, "request": {"method": "GET", "url": "https://mine.example/a.png"},
        "response": {"status": 200, "headers": [], "content": png},
    }  # fmt: skip
    log = {"log": {"version": "1.2", "pages": [{"title": "Mine", "id": "p"}], "entries": [entry, image]}}

    def target(data: bytes) -> None:
        file.write_bytes(data)

        def read() -> None:
            har = read_har(file, "x")
            har.page.page(har.start, har.title, har.facts)

        one_line(read)

    texts = [json.dumps(log).encode(), json.dumps(SITE).encode()]
    wrapped = [gzip.compress(texts[0]), zipped(("har.har", texts[0]), ("1f.html", b"x"))]
    assert fuzz("HARs", [*texts, *texts, *wrapped], target)


def test_adapters_as_data_and_command_lines() -> None:
    """What a server is started with: words, or one line; the same again from the canonical study."""
    line = b'cmd:./srv --port {port} --cert {cert} --key {key} \'two words\' "a\\"b"'

    def target(data: bytes) -> None:
        text = data.decode(errors="replace")

        def read() -> None:
            written = {"m": text if text.startswith("cmd:") else "server.yaml"}
            tree = {"study": "s", "workload": {"requests": "20"}, "factors": {"server": ["m"]}, "servers": written}
            finders = {
                "find_program": lambda name, near="": f"/{name}",
                "read_server": lambda _: (text, "/server.yaml"),
            }
            made = resolve(Document(tree=tree, name="s"), Surroundings(**finders))
            assert parse_study(made.source, "again.yaml") == made

        one_line(read)
        one_line(lambda: own_servers([text]))

    assert fuzz("adapters", [MINE.encode(), line], target)


def test_compose_files() -> None:
    """A service as a server: whatever a file says, it is one, or one line."""

    def target(data: bytes) -> None:
        text = data.decode(errors="replace")

        def read() -> None:
            tree = {"study": "s", "workload": {"requests": "20"}, "factors": {"server": ["m"]}}
            document = Document(tree={**tree, "servers": {"m": "compose:./compose.yaml#web"}}, name="s")
            made = resolve(document, Surroundings(read_server=lambda _: (text, "/there/compose.yaml")))
            assert parse_study(made.source, "again.yaml") == made

        one_line(read)

    assert fuzz("compose files", [COMPOSE.encode()], target)


def test_qlogs(tmp_path: Path) -> None:
    file = tmp_path / "x.sqlog"
    reference = {"clock_type": "monotonic", "epoch": "unknown", "wall_clock_time": "2023-11-14T22:13:20.5Z"}
    go = {"qlog_version": "0.3", "qlog_format": "JSON-SEQ", "trace": {"common_fields": {"reference_time": reference}}}
    trace = {"common_fields": {"ODCID": "ab"}, "events": [{"time": 1.7e12, "name": "x"}], "vantage_point": {}}
    aioquic = {"qlog_format": "JSON", "qlog_version": "0.3", "traces": [trace]}

    def target(data: bytes) -> None:
        file.write_bytes(data)
        told = began_ns(file)
        assert told is None or isinstance(told, int)

    assert fuzz("qlogs", [f"\x1e{json.dumps(go)}\n\x1e{{}}\n".encode(), json.dumps(aioquic).encode()], target)


def test_mended_qlogs(tmp_path: Path) -> None:
    """Those of the engine are put right whatever became of them; others stay as they are, octet by octet."""
    file = write(tmp_path / "x.sqlog", HEAD, SENT, METRICS, LOST)
    sample = file.read_bytes()

    def target(data: bytes) -> None:
        file.write_bytes(data)
        if not mend(file, "client"):
            assert file.read_bytes() == data
        assert list(tmp_path.iterdir()) == [file]

    assert fuzz("mended qlogs", [sample], target)


def test_run_folders(tmp_path: Path) -> None:
    """One file of a run is damaged: what opens it, asks it and reports it says so in a line, or it still is a run."""
    shape = Shape(blocks=2, samples_per_trial=20, paths=("far",), connections=("new",), servers=("origin",))
    shape.troubles = False
    whole = write_run(tmp_path / "whole", shape)
    files = sorted(file for file in whole.rglob("*") if file.is_file() and "logs" not in file.parts)
    samples = [f"{number:04d}".encode() + file.read_bytes() for number, file in enumerate(files)]
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    count = 0

    def read() -> None:
        directory = RunDirectory.open(run)
        directory.rows()
        with damage.naming_damaged_file(run), views.connect(run) as connection:
            for view in ("trials", "samples", "checks", "verdicts", "link", "resources"):
                ask(connection, f"SELECT * FROM {view}")

    def report() -> None:
        with damage.naming_damaged_file(run):
            write_report(run)

    def target(data: bytes) -> None:
        nonlocal count
        place = int(data[:4]) if data[:4].isdigit() and int(data[:4]) < len(files) else count % len(files)
        damaged = run / files[place].relative_to(whole)
        damaged.write_bytes(data[4:])
        try:
            one_line(read)
            if count % 50 == 0:
                one_line(report)
        finally:
            shutil.copy(files[place], damaged)
            count += 1

    assert fuzz("run folders", samples, target)
