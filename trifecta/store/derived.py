"""Schemas of what is concluded of a run and left in its folder, so that the SQL of its report finds it."""

from __future__ import annotations

from trifecta.design.tables import BOOL, DOUBLE, INT32, INT64, TEXT, Schema, make_schema

_TEXT, _NUMBER, _COUNT = TEXT, DOUBLE, INT32


def _schema(*columns: tuple[str, str]) -> Schema:
    """Columns in order: a type, and the names that have it."""
    return make_schema(*((name, kind) for kind, names in columns for name in names.split()))


DERIVED: dict[str, Schema] = {
    # One row a place, arm and part of its effect (analysis/decomposition.py); the part is null when nothing could be
    # split.
    "decomposition": _schema(
        (_TEXT, "place arm reference part"),
        (_NUMBER, "share low high population_low population_high without_low without_high ratio elsewhere_low"),
        (_NUMBER, "elsewhere_high"),
        (_COUNT, "servers clients cells blocks"),
        (_TEXT, "left_out"),
        (BOOL, "pooled"),
        (_TEXT, "weighs"),
    ),
    # One row a place, protocol and program (analysis/league.py).
    "league": _schema(
        (_TEXT, "place arm server client"),
        (BOOL, "proxy"),
        (_COUNT, "best worst"),
        (_NUMBER, "value low high"),
        (_COUNT, "blocks censored starts"),
    ),
    # One row a cell, arm and part of a cycle, in the order of time: geometric mean over blocks of the trials' medians.
    "hops": _schema(
        (_TEXT, "cell arm"),
        (_COUNT, "position"),
        (_TEXT, "name"),
        (_NUMBER, "value_ns low_ns high_ns"),
        (_COUNT, "blocks"),
    ),
    # One row a cell and arm (analysis/success.py).
    "success": _schema(
        (_TEXT, "cell arm"),
        (INT64, "requests failed"),
        (_COUNT, "trials"),
        (_NUMBER, "rate low high design_effect"),
        (INT64, "excluded_requests excluded_failed"),
    ),
    # One row a cell, arm and service: geometric mean over blocks.
    "service_costs": _schema(
        (_TEXT, "cell arm service host"),
        (_NUMBER, "cpu_ns_per_1000 cpu_ns_per_1000_low cpu_ns_per_1000_high cpu_ns_per_mb cpu_ns_per_mb_low"),
        (_NUMBER, "cpu_ns_per_mb_high rss_bytes rss_bytes_low rss_bytes_high cgroup_memory_bytes"),
        (_NUMBER, "cgroup_memory_bytes_low cgroup_memory_bytes_high"),
        (_COUNT, "blocks"),
    ),
    # One row a comparison of two cells that differ in one factor (analysis/contrasts.py). With a reference the ratio is
    # that of the arm's ratio to it: what the change does to the arm beyond what it does to the reference.
    "contrasts": _schema(
        (_TEXT, "factor level against place metric arm reference"),
        (_NUMBER, "ratio low high p_holm"),
        (_TEXT, "outcome"),
        (_COUNT, "blocks against_blocks"),
    ),
    # One row a factor, place, arm and level: the study's metric, in its unit.
    "curves": _schema(
        (_TEXT, "factor place arm"),
        (_NUMBER, "level"),
        (_TEXT, "text"),
        (_NUMBER, "value low high"),
        (_COUNT, "blocks"),
    ),
    # One row a place and pair of protocols, at the edge and inside (analysis/mixing.py).
    "combinations": _schema(
        (_TEXT, "place edge inside"),
        (_COUNT, "best worst"),
        (_NUMBER, "value low high ratio ratio_low ratio_high p_holm"),
        (_COUNT, "blocks"),
    ),
    # One row a cell, arm and metric of browsers' visits: over blocks the geometric mean of the trials' medians with a
    # ratio to the baseline, of what can be zero the mean with a difference.
    "visit_metrics": _schema(
        (_TEXT, "cell arm metric label unit"),
        (_COUNT, "place"),
        (_NUMBER, "value low high ratio ratio_low ratio_high difference difference_low difference_high noise"),
        (_COUNT, "blocks"),
    ),
    # One row a sweep of rates, arm and rate (analysis/knee.py); the knee lies between knee_low and knee_high.
    "rate_sweep": _schema(
        (_TEXT, "place arm"),
        (_NUMBER, "rate_per_s latency_ns latency_ns_low latency_ns_high"),
        (_TEXT, "against"),
        (_NUMBER, "against_ns ratio ratio_low ratio_high done_per_s used"),
        (_COUNT, "loud trials"),
        (_TEXT, "state"),
        (_NUMBER, "knee_low knee_high most_per_s most_per_s_low most_per_s_high"),
    ),
    # One row a look at a server elsewhere, place and protocol (conclude/far.py).
    "looks": _schema(
        (_COUNT, "number"),
        (_TEXT, "moment utc url address protocol"),
        (_COUNT, "status"),
        (_TEXT, "error"),
        (INT64, "content_bytes connect_ns handshake_ns wait_ns transfer_ns min_rtt_ns lost udp_payload_bytes"),
        (INT64, "idle_rtt_ns loaded_rtt_ns"),
        (_TEXT, "udp announced vantage"),
    ),
    # Of requests made one after the other (analysis/sequential.py). One row a cell, arm and number of requests that
    # were answered: requests per second so far.
    "progress": _schema(
        (_TEXT, "cell arm"),
        (_COUNT, "place"),
        (_NUMBER, "value low high smallest largest"),
        (_COUNT, "trials"),
    ),
    # One row a cell and pair: the tests of no difference, by blocks and by samples.
    "trip_tests": _schema(
        (_TEXT, "cell arm reference hypothesis metric"),
        (_NUMBER, "ratio ratio_low ratio_high difference_ns difference_low_ns difference_high_ns p_blocks"),
        (_COUNT, "blocks"),
        (_NUMBER, "faster distance p_samples"),
        (INT64, "samples reference_samples"),
    ),
    # The same of captured trials (docs/packets.md).
    "packet_metrics": _schema(
        (_TEXT, "cell arm metric label unit"),
        (_COUNT, "place"),
        (_NUMBER, "value low high ratio ratio_low ratio_high difference difference_low difference_high noise"),
        (_COUNT, "blocks"),
    ),
    # One row a cell, arm and part of what a figure of packets stacks, of the trial that is shown.
    # ``kind``: overhead (octets), blocking (ns a request), stalls (ns)
    "packet_parts": _schema(
        (_TEXT, "cell arm kind part label unit"),
        (_COUNT, "place"),
        (_NUMBER, "value share"),
    ),
    # One row a cell, arm and part of a request's time, and one for the whole: means over blocks, and how much more
    # than the baseline's.
    "packet_times": _schema(
        (_TEXT, "cell arm part label unit"),
        (_COUNT, "place"),
        (_NUMBER, "value share difference difference_low difference_high"),
        (_COUNT, "blocks"),
    ),
    # One row a comparison to the baseline and part of the time of a request, cycle or page load (analysis/causes.py);
    # the part ``whole`` is all of it.
    "causes": _schema(
        (_TEXT, "cell arm reference source part"),
        (_COUNT, "place"),
        (_NUMBER, "arm_ns reference_ns difference_ns low_ns high_ns share share_low share_high"),
        (_COUNT, "blocks"),
    ),
    # One row a cell, number that a study published, and arm (trifecta/studies/published).
    "published": _schema(
        (_TEXT, "cell study subject metric label unit"),
        (_COUNT, "place"),
        (_TEXT, "arm"),
        (_NUMBER, "published published_ratio value ratio ratio_low ratio_high"),
        (_TEXT, "relation"),
    ),
}
"""View and file name (``hops.parquet``) -> columns."""
