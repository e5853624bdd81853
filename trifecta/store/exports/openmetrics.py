"""OpenMetrics for Prometheus, and a dashboard for Grafana

## Writes
`metrics.txt`: of each trial its metrics in seconds and a histogram `trifecta_request_duration_seconds`, of each
comparison ratio and interval, with the time at which the trial or the run ended; `dashboard.json`, which Grafana
imports.

## For
`promtool tsdb create-blocks-from openmetrics metrics.txt DATA`, VictoriaMetrics' import, and Grafana on top.
"""
# A statement has names of our own columns.
# ruff: noqa: S608

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from trifecta.design.metrics import METRICS
from trifecta.store import files
from trifecta.store.exports import grafana, otlp_metrics, tables
from trifecta.store.exports.exporter import Source
from trifecta.store.exports.exposition import END, Durations, family, histogram, labelled, number

LABELS = ("trial", "cell", "arm", "protocol", "path", "connection", "server", "client")
"""Of a trial, columns of ``trials``."""
_ENDED_S = f"({tables.WALL} + t.ended_ns - t.started_ns) / 1e9"
_NO_LABEL = re.compile(r"[^a-z0-9_]")
VERDICT = ("cell", "metric", "arm", "reference", "verdict")
"""Labels of a verdict, columns of ``verdicts``."""
RATIOS = {
    "ratio": "arm : reference",
    "family_low": "lower end of its interval among all comparisons",
    "family_high": "upper end of its interval among all comparisons",
}
"""What a verdict has: by column what it is."""


def gather(source: Source, folder: Path) -> list[Path]:
    """Two files. UserError where trials do not say when they began."""
    tables.refuse_untimed(source.connection)
    run = tables.identity(source.path)
    of_run = {"study": run.study, "run": run.run}
    metrics = folder / "metrics.txt"
    with metrics.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in _lines(source, of_run))
    dashboard = folder / "dashboard.json"
    dashboard.write_text(files.to_document(grafana.dashboard()), encoding="utf-8")
    return [metrics, dashboard]


def _lines(source: Source, of_run: Mapping[str, str]) -> Iterator[str]:
    yield from _trials(source, of_run)
    yield from _requests(source, of_run)
    yield from _verdicts(source, of_run)
    yield END


def _trials(source: Source, of_run: Mapping[str, str]) -> Iterator[str]:
    described = source.connection.execute("DESCRIBE SELECT * FROM trials").fetchall()
    there = {name for name, *_ in described}
    for one in METRICS.values():
        if one.name not in there:
            continue
        name, scale, unit = grafana.exported_name(one.name)
        labels = ", ".join(f"t.{label}" for label in LABELS)
        query = f"SELECT {labels}, t.valid, {_ENDED_S}, t.{one.name} FROM trials AS t"
        rows = source.connection.execute(f"{query} WHERE t.{one.name} IS NOT NULL ORDER BY t.trial").fetchall()
        if rows:
            yield from family(name, "gauge", one.label, unit)
        for *levels, valid, time, value in rows:
            labels_of_trial = dict(zip(LABELS, levels, strict=True)) | {"valid": "true" if valid else "false"}
            yield f"{name}{labelled({**of_run, **labels_of_trial})} {number(float(value) * scale)} {time:.3f}"


def _requests(source: Source, of_run: Mapping[str, str]) -> Iterator[str]:
    name, begun = grafana.REQUESTS, False
    for point in otlp_metrics.points(source):
        if not point.durations:
            continue
        if not begun:
            yield from family(name, "histogram", "Duration of requests", "seconds")
            begun = True
        of_point = point.attributes.items()
        point_attributes = {_NO_LABEL.sub("_", key.removeprefix("trifecta.")): value for key, value in of_point}
        labels = {**of_run, **{key: _label_value(value) for key, value in point_attributes.items()}}
        held = Durations(otlp_metrics.BOUNDS_S, point.counts, point.sum_s)
        yield from histogram(name, labels, held, f" {point.ended_ns / 1e9:.3f}")


def _verdicts(source: Source, of_run: Mapping[str, str]) -> Iterator[str]:
    ((time,),) = source.connection.execute(f"SELECT max({_ENDED_S}) FROM trials AS t").fetchall()
    for column, about in RATIOS.items():
        name = f"trifecta_verdict_{column}"
        query = f"SELECT {', '.join(VERDICT)}, {column} FROM verdicts WHERE {column} IS NOT NULL ORDER BY ALL"
        rows = source.connection.execute(query).fetchall()
        if rows:
            yield from family(name, "gauge", about)
        for *labels, value in rows:
            labels_of_verdict = dict(zip(VERDICT, labels, strict=True))
            yield f"{name}{labelled({**of_run, **labels_of_verdict})} {number(value)} {time:.3f}"


def _label_value(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
