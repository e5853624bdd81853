"""curl with HTTP/3: one process a trial, its transfers in parallel, a line of times for each (docs/clients.md)."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from string import Template

from trifecta.design.model import Protocol, RequestsWorkload
from trifecta.implementations.client import ClientAdapter, Job, Output, Row
from trifecta.implementations.clients import content, curl_times
from trifecta.implementations.recipes import PROGRAMS
from trifecta.implementations.recipes.debian import CURL
from trifecta.implementations.server import Command, Unsupported

_ASKED = {"h1": "http1.1", "h2": "http2", "h3": "http3-only"}


class Curl(ClientAdapter):
    """The curl of the private root, or that on PATH when it is new enough and has HTTP/3."""

    name, source = "curl", "https://curl.se; a newer Debian suite has it with HTTP/3"

    def find(self) -> str:
        """Version and libraries, as ``curl -V`` tells; %time, the end of a transfer, came with 8.16."""
        output = subprocess.run(
            [*_program(), "-q", "-V"], capture_output=True, text=True, check=False, timeout=30
        ).stdout
        match = re.match(r"curl (\d+)\.(\d+)", output)
        if not match or "HTTP3" not in output.split() or (int(match[1]), int(match[2])) < (8, 16):
            raise Unsupported(f"{_program()[-1]} is not curl 8.16 or newer with HTTP/3; run: trifecta get curl")
        return output.splitlines()[0].split(" ", 1)[1]

    def check_workload(self, workload: RequestsWorkload, protocol: Protocol, connection: str) -> None:
        """All streams to one host go over one connection; there is no option for more of them."""
        if connection == "reused" and protocol != "h1" and (workload.connections or 1) > 1:
            raise Unsupported("curl has one connection for all streams of HTTP/2 and HTTP/3; leave out 'connections'")

    def compares_content(self, job: Job) -> bool:
        """Responses are stored as far as they may be."""
        return job.requests * (job.expect_body_bytes or 0) <= content.MOST_STORED_BYTES

    def command(self, job: Job) -> Command:
        """Options and URLs of all transfers in a file; with new connections each transfer has options of its own."""
        options = Template((PROGRAMS / "curl" / "transfer.conf").read_text(encoding="utf-8")).safe_substitute(
            protocol=_ASKED[job.protocol], tls=job.tls_version, curves=job.key_exchange,
            ca_file=content.quoted(str(job.ca_file)), endpoint=job.endpoint,
            connect_timeout=f"{job.connect_timeout_ns / 1e9:f}",
            max_time=f"{(job.connect_timeout_ns + job.request_timeout_ns) / 1e9:f}",
            method="head" if job.method == "HEAD" else f"request = {job.method}",
        )  # fmt: skip
        (job.state / "body").write_bytes(b"a" * job.request_body_bytes)
        upload = "upload-file = body\n" if job.method in ("POST", "PUT", "PATCH") else ""
        with (job.state / "transfers").open("w", encoding="utf-8") as file:
            for number in range(job.requests):
                if number == 0 or job.connection_mode == "new":
                    file.write("next\n" * bool(number) + Template(options).substitute(group=f"G{number}"))
                response_file = f"got-{number}" if self.compares_content(job) else "/dev/null"
                file.write(f'url = "{job.url}"\noutput = "{response_file}"\n{upload}')
        logs = {"SSLKEYLOGFILE": job.keylog_file, "QLOGDIR": job.qlog_dir}
        environment = (CURL.environment() if CURL.installed() else {}) | {n: str(p) for n, p in logs.items() if p}
        arguments = ["-q", "-sS", "-Z", "--parallel-max", str(job.connections * job.streams), "-K", "transfers"]
        at_once = ["--parallel-immediate"] * (job.connection_mode == "new")  # else each waits to share the last one's
        return Command((*_program(), *arguments, *at_once), environment)

    def start_only(self, job: Job) -> Command:
        """Libraries are loaded and made ready to tell their versions."""
        return Command((*_program(), "-q", "-V"), CURL.environment() if CURL.installed() else {})

    def rows(self, job: Job, output: Output) -> Iterator[Row]:
        """One for each line; what its times mean is in ``curl_times.py``."""
        for line in content.whole_lines(output.stdout, output):
            report = json.loads(line)
            response = job.state / f"got-{report['number']}"
            wrong = job.method != "HEAD" and response.exists() and not content.is_pattern(response)
            row = curl_times.row(job, output, report)
            if wrong and report["exit"] == "0":
                row["error"] = "content"
            yield row


def _program() -> list[str]:
    """The command that runs it; Unsupported when there is none."""
    own, other = CURL.program("usr/bin/curl"), shutil.which("curl")
    if own is None and other is None:
        raise Unsupported("curl with HTTP/3 is not here; run: trifecta get curl")
    return own or [str(other)]


def curl_command() -> tuple[list[str], dict[str, str]]:
    """The command that runs a curl with HTTP/3, and what its environment needs; Unsupported when there is none."""
    Curl().find()
    return _program(), CURL.environment() if CURL.installed() else {}
