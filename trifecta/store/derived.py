"""Schemas of what a report works out of the trials and leaves in the run's folder, so that its SQL finds it."""

from __future__ import annotations

from trifecta.design.tables import BOOL, DOUBLE, INT32, INT64, TEXT, Schema, make_schema

_TEXT, _NUMBER, _COUNT = TEXT, DOUBLE, INT32


def _with_interval(name: str) -> tuple[tuple[str, str], ...]:
    return (name, _NUMBER), (f"{name}_low", _NUMBER), (f"{name}_high", _NUMBER)


DERIVED: dict[str, Schema] = {
    # One row a place, arm and part of its effect (analysis/decomposition.py); the part is null when nothing could be
    # split.
    "decomposition": make_schema(
        ("place", _TEXT),
        ("arm", _TEXT),
        ("reference", _TEXT),
        ("part", _TEXT),
        ("share", _NUMBER),
        ("low", _NUMBER),
        ("high", _NUMBER),
        ("population_low", _NUMBER),
        ("population_high", _NUMBER),
        ("without_low", _NUMBER),
        ("without_high", _NUMBER),
        ("ratio", _NUMBER),
        ("elsewhere_low", _NUMBER),
        ("elsewhere_high", _NUMBER),
        ("servers", _COUNT),
        ("clients", _COUNT),
        ("cells", _COUNT),
        ("blocks", _COUNT),
        ("left_out", _TEXT),
        ("pooled", BOOL),
        ("weighs", _TEXT),
    ),
    # One row a place, protocol and program (analysis/league.py).
    "league": make_schema(
        ("place", _TEXT),
        ("arm", _TEXT),
        ("server", _TEXT),
        ("client", _TEXT),
        ("proxy", BOOL),
        ("best", _COUNT),
        ("worst", _COUNT),
        ("value", _NUMBER),
        ("low", _NUMBER),
        ("high", _NUMBER),
        ("blocks", _COUNT),
        ("censored", _COUNT),
        ("starts", _COUNT),
    ),
    # One row a cell, arm and part of a cycle, in the order of time: geometric mean over blocks of the trials' medians.
    "hops": make_schema(
        ("cell", _TEXT),
        ("arm", _TEXT),
        ("position", _COUNT),
        ("name", _TEXT),
        ("value_ns", _NUMBER),
        ("low_ns", _NUMBER),
        ("high_ns", _NUMBER),
        ("blocks", _COUNT),
    ),
    # One row a cell and arm (analysis/success.py).
    "success": make_schema(
        ("cell", _TEXT),
        ("arm", _TEXT),
        ("requests", INT64),
        ("failed", INT64),
        ("trials", _COUNT),
        ("rate", _NUMBER),
        ("low", _NUMBER),
        ("high", _NUMBER),
        ("design_effect", _NUMBER),
        ("excluded_requests", INT64),
        ("excluded_failed", INT64),
    ),
    # One row a cell, arm and service: geometric mean over blocks.
    "service_costs": make_schema(
        ("cell", _TEXT),
        ("arm", _TEXT),
        ("service", _TEXT),
        ("host", _TEXT),
        *_with_interval("cpu_ns_per_1000"),
        *_with_interval("cpu_ns_per_mb"),
        *_with_interval("rss_bytes"),
        *_with_interval("cgroup_memory_bytes"),
        ("blocks", _COUNT),
    ),
    # One row a comparison of two cells that differ in one factor (analysis/contrasts.py). With a reference the ratio is
    # that of the arm's ratio to it: what the change does to the arm beyond what it does to the reference.
    "contrasts": make_schema(
        ("factor", _TEXT),
        ("level", _TEXT),
        ("against", _TEXT),
        ("place", _TEXT),
        ("metric", _TEXT),
        ("arm", _TEXT),
        ("reference", _TEXT),
        ("ratio", _NUMBER),
        ("low", _NUMBER),
        ("high", _NUMBER),
        ("p_holm", _NUMBER),
        ("outcome", _TEXT),
        ("blocks", _COUNT),
        ("against_blocks", _COUNT),
    ),
    # One row a factor, place, arm and level: the study's metric, in its unit.
    "curves": make_schema(
        ("factor", _TEXT),
        ("place", _TEXT),
        ("arm", _TEXT),
        ("level", _NUMBER),
        ("text", _TEXT),
        ("value", _NUMBER),
        ("low", _NUMBER),
        ("high", _NUMBER),
        ("blocks", _COUNT),
    ),
    # One row a place and pair of protocols, at the edge and inside (analysis/mixing.py).
    "combinations": make_schema(
        ("place", _TEXT),
        ("edge", _TEXT),
        ("inside", _TEXT),
        ("best", _COUNT),
        ("worst", _COUNT),
        ("value", _NUMBER),
        ("low", _NUMBER),
        ("high", _NUMBER),
        ("ratio", _NUMBER),
        ("ratio_low", _NUMBER),
        ("ratio_high", _NUMBER),
        ("p_holm", _NUMBER),
        ("blocks", _COUNT),
    ),
    # One row a cell, arm and metric of browsers' visits: over blocks the geometric mean of the trials' medians with a
    # ratio to the baseline, of what can be zero the mean with a difference.
    "visit_metrics": make_schema(
        ("cell", _TEXT),
        ("arm", _TEXT),
        ("metric", _TEXT),
        ("label", _TEXT),
        ("unit", _TEXT),
        ("place", _COUNT),
        ("value", _NUMBER),
        ("low", _NUMBER),
        ("high", _NUMBER),
        ("ratio", _NUMBER),
        ("ratio_low", _NUMBER),
        ("ratio_high", _NUMBER),
        ("difference", _NUMBER),
        ("difference_low", _NUMBER),
        ("difference_high", _NUMBER),
        ("noise", _NUMBER),
        ("blocks", _COUNT),
    ),
    # One row a sweep of rates, arm and rate (analysis/knee.py); the knee lies between knee_low and knee_high.
    "rate_sweep": make_schema(
        ("place", _TEXT),
        ("arm", _TEXT),
        ("rate_per_s", _NUMBER),
        *_with_interval("latency_ns"),
        ("against", _TEXT),
        ("against_ns", _NUMBER),
        *_with_interval("ratio"),
        ("done_per_s", _NUMBER),
        ("used", _NUMBER),
        ("loud", _COUNT),
        ("trials", _COUNT),
        ("state", _TEXT),
        ("knee_low", _NUMBER),
        ("knee_high", _NUMBER),
        *_with_interval("most_per_s"),
    ),
    # Of requests made one after the other (analysis/sequential.py). One row a cell, arm and number of requests that
    # were answered: requests per second so far.
    "progress": make_schema(
        ("cell", _TEXT),
        ("arm", _TEXT),
        ("place", _COUNT),
        ("value", _NUMBER),
        ("low", _NUMBER),
        ("high", _NUMBER),
        ("smallest", _NUMBER),
        ("largest", _NUMBER),
        ("trials", _COUNT),
    ),
    # One row a cell and pair: the tests of no difference, by blocks and by samples.
    "trip_tests": make_schema(
        ("cell", _TEXT),
        ("arm", _TEXT),
        ("reference", _TEXT),
        ("hypothesis", _TEXT),
        ("metric", _TEXT),
        *_with_interval("ratio"),
        ("difference_ns", _NUMBER),
        ("difference_low_ns", _NUMBER),
        ("difference_high_ns", _NUMBER),
        ("p_blocks", _NUMBER),
        ("blocks", _COUNT),
        ("faster", _NUMBER),
        ("distance", _NUMBER),
        ("p_samples", _NUMBER),
        ("samples", INT64),
        ("reference_samples", INT64),
    ),
    # The same of captured trials (docs/packets.md).
    "packet_metrics": make_schema(
        ("cell", _TEXT),
        ("arm", _TEXT),
        ("metric", _TEXT),
        ("label", _TEXT),
        ("unit", _TEXT),
        ("place", _COUNT),
        ("value", _NUMBER),
        ("low", _NUMBER),
        ("high", _NUMBER),
        *_with_interval("ratio"),
        *_with_interval("difference"),
        ("noise", _NUMBER),
        ("blocks", _COUNT),
    ),
    # One row a cell, arm and part of what a figure of packets stacks, of the trial that is shown.
    "packet_parts": make_schema(
        ("cell", _TEXT),
        ("arm", _TEXT),
        ("kind", _TEXT),  # overhead (octets), blocking (ns a request), stalls (ns)
        ("part", _TEXT),
        ("label", _TEXT),
        ("unit", _TEXT),
        ("place", _COUNT),
        ("value", _NUMBER),
        ("share", _NUMBER),
    ),
    # One row a cell, arm and part of a request's time, and one for the whole: means over blocks, and how much more
    # than the baseline's.
    "packet_times": make_schema(
        ("cell", _TEXT),
        ("arm", _TEXT),
        ("part", _TEXT),
        ("label", _TEXT),
        ("unit", _TEXT),
        ("place", _COUNT),
        ("value", _NUMBER),
        ("share", _NUMBER),
        *_with_interval("difference"),
        ("blocks", _COUNT),
    ),
    # One row a comparison to the baseline and part of the time of a request, cycle or page load (analysis/causes.py);
    # the part ``whole`` is all of it.
    "causes": make_schema(
        ("cell", _TEXT),
        ("arm", _TEXT),
        ("reference", _TEXT),
        ("source", _TEXT),
        ("part", _TEXT),
        ("place", _COUNT),
        ("arm_ns", _NUMBER),
        ("reference_ns", _NUMBER),
        ("difference_ns", _NUMBER),
        ("low_ns", _NUMBER),
        ("high_ns", _NUMBER),
        *_with_interval("share"),
        ("blocks", _COUNT),
    ),
    # One row a cell, number that a study published, and arm (trifecta/studies/published).
    "published": make_schema(
        ("cell", _TEXT),
        ("study", _TEXT),
        ("subject", _TEXT),
        ("metric", _TEXT),
        ("label", _TEXT),
        ("unit", _TEXT),
        ("place", _COUNT),
        ("arm", _TEXT),
        ("published", _NUMBER),
        ("published_ratio", _NUMBER),
        ("value", _NUMBER),
        ("ratio", _NUMBER),
        ("ratio_low", _NUMBER),
        ("ratio_high", _NUMBER),
        ("relation", _TEXT),
    ),
}
"""View and file name (``hops.parquet``) -> columns."""
