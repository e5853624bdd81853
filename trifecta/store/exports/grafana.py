"""A dashboard of Grafana over the metrics that `openmetrics` writes.

The model: https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/.
"""

from __future__ import annotations

from trifecta.contract.values import JsonObject

REQUESTS = "trifecta_request_duration_seconds"
_SCHEMA = 39  # of Grafana 10 and 11; younger ones take it
_SOURCE: JsonObject = {"type": "prometheus", "uid": "${source}"}
_CHOSEN = '{study=~"$study",run=~"$run",cell=~"$cell"}'


def exported_name(column: str) -> tuple[str, float, str]:
    """By what name a column of ``trials`` is exported, times what, and in which unit (empty: none)."""
    for ending, unit_suffix, scale in (
        ("_ns_per_request", "_per_request_seconds", 1e-9),
        ("_ns", "_seconds", 1e-9),
        ("_bits_per_s", "_bits_per_second", 1.0),
        ("_per_s", "_per_second", 1.0),
    ):
        if column.endswith(ending):
            return f"trifecta_{column.removesuffix(ending)}{unit_suffix}", scale, "seconds" if scale < 1 else ""
    return f"trifecta_{column}", 1.0, ""


def dashboard() -> JsonObject:
    """The whole: variables for source, study, run and cell, and a panel a question."""
    median, _, _ = exported_name("latency_p50_ns")
    rate, _, _ = exported_name("requests_per_s")
    success, _, _ = exported_name("success_rate")
    quantile = f"histogram_quantile(0.95, sum by (le, arm) ({REQUESTS}_bucket{_CHOSEN}))"
    ends = [f"trifecta_verdict_{end}{_CHOSEN}" for end in ("family_low", "ratio", "family_high")]
    panels = [
        _panel(1, "Median latency of each trial", "timeseries", "s", [f"{median}{_CHOSEN}"], at=(0, 0)),
        _panel(2, "95 % of requests were answered within", "timeseries", "s", [quantile], at=(12, 0)),
        _panel(3, "Requests answered per second", "timeseries", "reqps", [f"{rate}{_CHOSEN}"], at=(0, 9)),
        _panel(4, "Share of requests answered", "timeseries", "percentunit", [f"{success}{_CHOSEN}"], at=(12, 9)),
        _panel(5, "Verdicts: arm : reference, and its interval", "table", "none", ends, at=(0, 18), instant=True),
    ]
    return {
        "title": "Trifecta",
        "uid": "trifecta",
        "tags": ["http", "trifecta"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "time": {"from": "now-30d", "to": "now"},
        "templating": {"list": [_source(), *(_variable(name, median) for name in ("study", "run", "cell"))]},
        "annotations": {"list": []},
        "panels": panels,
    }


def _panel(
    number: int, title: str, kind: str, unit: str, queries: list[str], *, at: tuple[int, int], instant: bool = False
) -> JsonObject:
    targets: list[JsonObject] = [
        {
            "refId": "ABC"[place],
            "datasource": _SOURCE,
            "expr": query,
            "legendFormat": "{{arm}}",
            "instant": instant,
            "range": not instant,
            "format": "table" if instant else "time_series",
        }
        for place, query in enumerate(queries)
    ]
    return {
        "id": number,
        "title": title,
        "type": kind,
        "datasource": _SOURCE,
        "gridPos": {"x": at[0], "y": at[1], "w": 24 if instant else 12, "h": 9},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "options": {},
        "targets": targets,
    }


def _source() -> JsonObject:
    return {"name": "source", "label": "Source", "type": "datasource", "query": "prometheus"}


def _variable(name: str, metric: str) -> JsonObject:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": f"label_values({metric}, {name})", "refId": name},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "sort": 1,
    }
