"""InfluxDB, 1.x and 2

## Writes
The points that the format `lines` has, with the run's name, in batches of 5,000 over two connections at a time (in
gzip, unless the server is on this machine). A point that is sent again is the same point: exported twice, or cut and
exported again, all is there once.

## For
InfluxDB with Chronograf or Grafana, as bourbon2020 kept its CPU and memory.

## Needs
`influxdb://HOST:8086/DATABASE`: the write interface of 1.x, INFLUX_USERNAME and INFLUX_PASSWORD where the server asks.

`influxdb://HOST:8086/ORGANISATION/BUCKET`: that of 2, INFLUX_TOKEN.

`influxdbs://` is the same over TLS. Database or bucket have to be there.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import os
from dataclasses import dataclass
from queue import SimpleQueue
from urllib.parse import unquote, urlencode, urlsplit

import duckdb

from trifecta.design.errors import CannotError, UserError
from trifecta.store.exports import error_messages, line_protocol, parallel, tables
from trifecta.store.exports.exporter import Source
from trifecta.store.exports.http_post import HttpResponse, Poster

SCHEMES = ("influxdb", "influxdbs")
_PORT = 8086
_WRITTEN = (200, 204)


@dataclass(frozen=True)
class Server:
    """Where points are sent: a connection, and the path of what takes them."""

    poster: Poster
    path: str


def send(source: Source, url: str) -> list[str]:
    """All points of a run, over two connections; a line at the end."""
    idle: SimpleQueue[Server] = SimpleQueue()
    servers = [of_url(url) for _ in range(parallel.AT_A_TIME)]
    where, run = servers[0].poster.where, tables.identity(source.path)
    for one in servers:
        idle.put(one)

    def sent(cursor: duckdb.DuckDBPyConnection, piece: str) -> int:
        """A piece over a connection that no other one uses meanwhile: how many points."""
        server, points = idle.get(), 0
        try:
            for batch in line_protocol.batches(cursor, piece):
                _require_success(where, server.poster.post(server.path, batch))
                points += batch.count(b"\n")
        finally:
            idle.put(server)
        return points

    try:
        points = sum(parallel.map_pieces(source.connection, sent, list(line_protocol.pieces(source))))
    finally:
        for one in servers:
            one.poster.close()
    return [f"{where}: {points} points, study={run.study}, run={run.run}"]


def of_url(url: str) -> Server:
    """What a URL and the environment say; UserError for a URL of another form or a token that is missing."""
    parted = urlsplit(url)
    names = [unquote(name) for name in parted.path.split("/") if name]
    if not parted.hostname or len(names) not in (1, 2) or parted.query or parted.username is not None:
        form = f"{parted.scheme}://HOST:{_PORT}/DATABASE, or /ORGANISATION/BUCKET of InfluxDB 2"
        raise UserError(f"--to {parted.scheme}://: the URL has the form {form}")
    fields = {"Content-Type": "text/plain; charset=utf-8"}
    if len(names) == 2:
        token = os.environ.get("INFLUX_TOKEN")
        if not token:
            raise UserError("INFLUX_TOKEN is not set: InfluxDB 2 takes points with a token (`influx auth create`)")
        fields["Authorization"] = f"Token {token}"
        path = "/api/v2/write?" + urlencode({"org": names[0], "bucket": names[1], "precision": "ns"})
    else:
        user, password = os.environ.get("INFLUX_USERNAME"), os.environ.get("INFLUX_PASSWORD", "")
        if user:
            fields["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        path = "/write?" + urlencode({"db": names[0], "precision": "ns"})
    tls = parted.scheme == "influxdbs"
    packed = not _is_here(parted.hostname)  # on one machine it costs both sides time, and saves nothing
    return Server(Poster(error_messages.place(url), parted.hostname, parted.port or _PORT, tls, fields, packed), path)


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _require_success(where: str, answer: HttpResponse) -> None:
    if answer.status not in _WRITTEN:
        raise _refused(where, answer)


def _refused(where: str, answer: HttpResponse) -> CannotError:
    remedy = {
        401: "set INFLUX_USERNAME and INFLUX_PASSWORD, or INFLUX_TOKEN of InfluxDB 2",
        403: "the user or token may not write there",
        404: "make the database (`influx -execute 'CREATE DATABASE ...'`) or bucket first",
    }.get(answer.status, "fix it and run this again: points that are there already are not duplicated")
    return CannotError(f"{where}: refused with {answer.status} ({_error_message(answer)}); {remedy}")


def _error_message(answer: HttpResponse) -> str:
    try:
        document = json.loads(answer.content)
    except ValueError:
        return answer.message
    message = document.get("error") or document.get("message") if isinstance(document, dict) else None
    return error_messages.line(message or answer.reason)
