"""Whether the trials of a study can have a value of a metric, as far as its plan tells: before anything is measured."""

from __future__ import annotations

from trifecta.design import percentiles, plan
from trifecta.design.metric import Metric
from trifecta.design.model import RequestsWorkload, Study

_LIVE = ("live_latency_p50_ns",)
_OF_VIDEOS = (*_LIVE, "bitrate_mean_bits_per_s")
_OF_FILMS = ("speed_index_p50_ns",)
_OF_VISITS = ("dom_content_loaded_p50_ns", "fcp_p50_ns", "lcp_p50_ns", *_OF_FILMS, *_OF_VIDEOS)


def short_of(study: Study, metric: Metric) -> str:
    """Where a percentile needs more samples than the trials of a cell have, and the remedy; empty where none does.

    How many there are is not known where time ends the trials.
    """
    if metric.quantile is None or metric.quantile in (0.5, 1.0):
        return ""
    needs = percentiles.needed(metric.quantile)
    for one in plan.treatments(study):
        work = plan.workload_for(study, one)
        if 0 < work.samples < needs:
            return (
                f"the {metric.label} needs {needs} {work.noun} a trial, {one.cell.key} has {work.samples}; "
                f"ask for more (--set {work.noun}={needs}) or for another metric"
            )
    return ""


def no_value(study: Study, metric: Metric) -> str:
    """Why trials of a cell will never have a value of the metric; empty where nothing is known against it."""
    works = (plan.workload_for(study, one) for one in plan.treatments(study))
    lacking = next((problem for work in works if (problem := _lacking(work, metric))), "")
    return f"{metric.label} {lacking}; give another metric" if lacking else short_of(study, metric)


def _lacking(work: RequestsWorkload, metric: Metric) -> str:
    if metric.name in _OF_VISITS and not work.visiting:
        return f"is of visits, and the workload {work.kind} has none"
    if metric.name in _OF_VIDEOS and not work.plays:
        return f"is of videos, and the workload {work.kind} plays none"
    if metric.name in _LIVE and not work.live:
        return "is of live videos, and this one is on demand"
    if metric.name in _OF_FILMS and not work.films:
        return "is of film strips, and these visits are not filmed"
    return ""
