"""The tables of a report: what a sceptic asks for after the verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.conclude import catalogue, evidence_queries
from trifecta.conclude.facts import RunFacts
from trifecta.design import naming, phrases
from trifecta.report import tables
from trifecta.report.content import QueryResults
from trifecta.report.tables import Column, Table

CELL_NOTES = (
    "Comparisons: the ratio is the median over blocks; its confidence sequence is valid under continuous monitoring. "
    "Next to it, from six blocks on, a fixed-size analysis: the Hodges–Lehmann ratio, the interval that Wilcoxon's "
    "signed-rank test does not reject, and its p. That is valid only if the number of blocks was fixed beforehand, and "
    "for this comparison alone.",
    "Percentiles: all requests of all valid trials, warm-up excluded. They are descriptive; verdicts rest on trials, "
    "not on requests. ∞: that large a share of requests failed.",
    "Phases: means over successful requests. A dash is a phase that the protocol does not have.",
    "Cost: CPU time of the processes, and octets received and sent as transport payload, per request. The start of a "
    "client that is not Trifecta's own is subtracted where it could be measured: once per trial, in the next column.",
)


_BROWSER_NOTES = (
    CELL_NOTES[0],
    "Percentiles: visits of all valid trials together, unmeasured ones excluded. They are descriptive; verdicts rest "
    "on trials. ∞: that large a share of visits failed.",
    "Metrics: as the browser itself reports each visit. A dash: it did not happen, or this browser does not report it.",
)


def cell_notes(facts: RunFacts) -> tuple[str, ...]:
    """How to read the tables of a cell."""
    return _BROWSER_NOTES if facts.is_browser else CELL_NOTES


def percentiles(facts: RunFacts, answers: QueryResults, cell: str, number: int) -> Table:
    """Percentiles of a cell's requests."""
    columns = [
        Column("done", "succeeded", "count"),
        Column("failed", "failed", "count"),
        Column("p50", "p50_ns", "duration"),
        Column("p90", "p90_ns", "duration"),
        Column("p95", "p95_ns", "duration"),
        Column("p99", "p99_ns", "duration"),
        Column("p99.9", "p999_ns", "duration"),
        Column("max", "max_ns", "duration"),
    ]
    answer, identity = answers[catalogue.PERCENTILES], f"percentiles-{number}"
    return tables.build(
        answer, identity, facts.latency_word.capitalize(), ("protocol", "arm"), columns, cell=cell, order=facts.arms
    )


def phases(facts: RunFacts, answers: QueryResults, cell: str, number: int) -> Table:
    """Mean time of each phase of a request."""
    columns = [
        Column("late start", "late_start_ns", "duration"),
        Column("TCP connect", "tcp_connect_ns", "duration"),
        Column("TLS handshake", "tls_ns", "duration"),
        Column("QUIC handshake", "quic_handshake_ns", "duration"),
        Column("send", "send_ns", "duration"),
        Column("wait", "wait_ns", "duration"),
        Column("transfer", "transfer_ns", "duration"),
        Column("total", "total_ns", "duration"),
    ]
    answer, identity = answers[catalogue.PHASES], f"phases-{number}"
    return tables.build(
        answer, identity, "Mean time by phase", ("protocol", "arm"), columns, cell=cell, order=facts.arms
    )


def cost(facts: RunFacts, answers: QueryResults, cell: str, number: int) -> Table:
    """What each arm sustained and cost."""
    columns = [
        Column("trials", "trials", "count"),
        Column("requests per second", "requests_per_s", "per_second"),
        Column("success", "success_rate", "percent"),
        Column("client CPU", "client_cpu_ns", "duration"),
        Column("client's start", "client_start_ns", "duration"),
        Column("server CPU", "server_cpu_ns", "duration"),
        Column("received", "wire_in_per_request", "size"),
        Column("sent", "wire_out_per_request", "size"),
    ]
    answer, identity = answers[catalogue.COST], f"cost-{number}"
    return tables.build(
        answer, identity, "Throughput and cost", ("protocol", "arm"), columns, cell=cell, order=facts.arms
    )


def fixed(facts: RunFacts, answers: QueryResults, cell: str, number: int) -> Table:
    """The comparisons of a cell with the fixed-size analysis beside the sequential one."""
    columns = [
        Column("against", "against"),
        Column("verdict", "verdict"),
        Column("ratio", "ratio", "ratio"),
        Column("alone", "low,high", "interval"),
        Column("among all", "family_low,family_high", "interval"),
        Column("mean ratio", "mean_ratio", "ratio"),
        Column("of the mean", "mean_low,mean_high", "interval"),
        Column("blocks", "blocks", "count"),
        Column("e-value", "e_value", "evidence"),
        Column("Hodges–Lehmann", "fixed_ratio", "ratio"),
        Column("signed rank", "fixed_low,fixed_high", "interval"),
        Column("p", "fixed_p", "p_value"),
    ]
    answer = answers[catalogue.VERDICTS]
    ordered = [
        row
        for pair in facts.pairs
        for row in answer.where(cell=cell, metric=facts.metric)
        if (row["arm"], row["reference"]) == pair
    ]
    answer, caption = tables.with_rows(answer, ordered), f"Comparisons of {facts.metric_label}"
    return tables.build(answer, f"verdicts-{number}", caption, ("protocol", "arm"), columns, cell=cell)


TABLES = (fixed, percentiles, phases, cost)
"""The tables of a cell."""

BROWSER_TABLES = (fixed, percentiles)
"""Those of a cell of browsers; ``report.visits`` has more."""


def delivered(answers: QueryResults) -> list[Table]:
    """What the paths gave against what was requested: by the link's own account, and by the probe from outside."""
    link = [
        Column("direction", "direction"),
        Column("packets", "packets", "count"),
        Column("delay requested", "delay_asked_ns", "duration"),
        Column("given p50", "delay_p50_ns", "duration"),
        Column("given p99", "delay_p99_ns", "duration"),
        Column("loss requested", "loss_asked", "percent"),
        Column("given", "loss_given", "percent"),
        Column("queue drops", "queue_dropped", "count"),
        Column("rate requested", "rate_asked", "bit_rate"),
        Column("given", "rate_given", "bit_rate"),
        Column("lateness p99", "lateness_p99_ns", "duration"),
        Column("worst", "lateness_max_ns", "duration"),
        Column("device drops", "device_drops", "count"),
    ]
    probe = [
        Column("probes", "probes", "count"),
        Column("packets", "sent", "count"),
        Column("round trip min", "rtt_min_ns", "duration"),
        Column("p50", "rtt_p50_ns", "duration"),
        Column("p99", "rtt_p99_ns", "duration"),
        Column("max", "rtt_max_ns", "duration"),
        Column("lost forward", "loss_forward", "percent"),
        Column("lost backward", "loss_backward", "percent"),
    ]
    lateness = (
        "Lateness is how long after its due time a packet left the emulator. Percentiles are medians over trials; "
        "worst is over all of them."
    )
    return [
        tables.build(
            answers[evidence_queries.PATHS], "paths", "The link's own account", ("path", "path"), link, notes=[lateness]
        ),
        tables.build(
            answers[evidence_queries.PROBES], "probes", "Seen from outside by the probe", ("path", "path"), probe
        ),
    ]


def parity(answers: QueryResults) -> list[Table]:
    """What each arm really used."""
    order, over = naming.order(), [] if naming.of_protocols() else [Column("protocol", "protocol", "protocol")]
    used = [
        *over,
        Column("server", "server"),
        Column("trials", "trials", "count"),
        Column("key exchange", "key_exchange"),
        Column("congestion control, client", "client_congestion"),
        Column("server", "server_congestion"),
        Column("initial window", "initial_window_bytes"),
        Column("largest segment", "largest_segment_bytes"),
        Column("TCP_NODELAY", "tcp_nodelay"),
        Column("certificates", "certificates"),
        Column("server's flights", "flights"),
        Column("quinn-proto adapted in", "adaptations"),
        Column("server version", "server_version"),
        Column("engine", "engine_version"),
    ]
    tls = [
        *over,
        Column("server", "server"),
        Column("negotiated", "negotiated"),
        Column("TLS", "tls_version"),
        Column("cipher", "cipher"),
        Column("samples", "samples", "count"),
        Column("resumed", "resumed", "count"),
        Column("0-RTT", "zero_rtt", "count"),
    ]
    note = (
        "Read back from the sockets and handshakes of every trial; what the server uses is what its configuration "
        "says. Several values in one field mean a mixture. Windows and segments in octets; QUIC's segment is its "
        "path MTU. Certificates are those of a handshake, octets in DER. "
        "Versions and machine explains each adaptation of quinn-proto."
    )
    return [
        tables.build(
            answers[evidence_queries.PARITY],
            "parity",
            "Transport",
            ("protocol", "level"),
            used,
            order=order,
            notes=[note],
        ),
        tables.build(
            answers[evidence_queries.TLS],
            "tls",
            "TLS and negotiated protocol, in every sample",
            ("protocol", "level"),
            tls,
            order=order,
        ),
    ]


def instrument(facts: RunFacts, answers: QueryResults, cells: Sequence[str]) -> list[Table]:
    """Whether the instruments had room, and which requests failed."""
    headroom = [
        *([] if naming.of_protocols() else [Column("protocol", "protocol", "protocol")]),
        Column("trials", "trials", "count"),
        Column("client busy, median", "busy_median", "percent"),
        Column("worst", "busy_max", "percent"),
        Column("link CPU, worst", "link_cpu_max", "percent"),
        Column("schedule lag p99, worst", "schedule_lag_p99_ns", "duration"),
        Column("missed slots", "missed_slots", "count"),
        Column("UDP receive errors", "udp_receive_errors", "count"),
    ]
    evidence_tables = [
        tables.build(
            answers[evidence_queries.HEADROOM],
            "headroom",
            "Headroom of the instruments",
            ("protocol", "level"),
            headroom,
            order=naming.order(),
        )
    ]
    if answers[evidence_queries.ERRORS]:
        errors = [
            Column(naming.factor(), "arm", "protocol"),
            Column("error", "error"),
            Column(phrases.plural(facts.sample_word), "requests", "count"),
        ]
        evidence_tables.append(
            tables.build(
                answers[evidence_queries.ERRORS],
                "errors",
                f"Failed {phrases.plural(facts.sample_word)} by class",
                ("cell", "cell"),
                errors,
                order=cells,
            )
        )
    return evidence_tables


def checks(answers: QueryResults) -> Table:
    """How often each check passed, warned, failed or could not be made."""
    columns = [
        Column(word, column, "count")
        for word, column in (("failed", "failed"), ("warned", "warned"), ("unknown", "unknown"), ("passed", "passed"))
    ]
    return tables.build(
        answers[evidence_queries.CHECK_MATRIX], "checks", "Checks by outcome", ("check", "check_name"), columns
    )


def noise(answers: QueryResults, cells: Sequence[str]) -> Table:
    """The baseline against itself."""
    columns = [
        Column("blocks", "blocks", "count"),
        Column("ratio", "ratio", "ratio"),
        Column("smallest block", "smallest", "ratio"),
        Column("largest block", "largest", "ratio"),
        Column("floor within a block", "floor", "ratio"),
        Column("floor between blocks", "weather_floor", "ratio"),
    ]
    note = (
        "ratio: median of the second run against the first. floor within a block: the smallest ratio that these blocks "
        "could have distinguished from 1, from both runs of a block, which lose the same packets: the noise of the "
        "instrument. floor between blocks: the same from the first run of a block and the second of every other, which "
        "lose other packets: what a difference from another cell or run of as many blocks must exceed. Both rest on "
        "medians, so one outlier does not change them."
    )
    return tables.build(
        answers.small[evidence_queries.NOISE.name],
        "noise",
        "The baseline against itself",
        ("cell", "cell"),
        columns,
        order=cells,
        notes=[note],
    )


def totals(facts: RunFacts, answers: QueryResults) -> Table:
    """The run in figures."""
    columns = [
        Column("trials", "trials", "count"),
        Column("valid", "valid_trials", "count"),
        Column("excluded", "excluded_trials", "count"),
        Column(phrases.plural(facts.sample_word), "samples", "count"),
        Column("failed", "errors", "count"),
        Column("cells", "cells", "count"),
        Column("most blocks", "blocks", "count"),
        Column("from first to last trial", "elapsed_ns", "duration"),
        Column("in trials", "in_trials_ns", "duration"),
    ]
    return tables.build(answers[catalogue.TOTALS], "totals", "The run in figures", ("", "scope"), columns)
