"""What verdicts hold for: this traffic, these paths, programs and machines, this session, this seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.facts import RunFacts
from trifecta.conclude.far import arms_over_places
from trifecta.design import naming
from trifecta.design.metric import TIME
from trifecta.design.metrics import METRICS
from trifecta.design.phrases import counted, listed
from trifecta.report.far import words as far
from trifecta.report.figures.style import name


def seed(facts: RunFacts) -> str:
    """What the seed repeats, and what not."""
    sentence, drawn = (
        f"Seed {facts.seed}. `--seed {facts.seed}` repeats the same orders",
        "Without it a new seed is drawn.",
    )
    if facts.is_as_it_was:
        return f"{sentence} and arrivals; what the network does is not repeated. {drawn}"
    if facts.by_netem:
        where = f"on {listed(facts.by_netem)}, where the kernel's netem draws its own"
        return (
            f"{sentence} and arrivals, but not the losses {where}; such a run is not an independent repetition. {drawn}"
        )
    return f"{sentence}, losses and arrivals, so such a run is not an independent repetition. {drawn}"


def elsewhere(facts: RunFacts, comparisons: Sequence[Comparison]) -> list[str]:
    """Of a server elsewhere: over which path, and, where it was asked from several places, what each of them says."""
    by_place = arms_over_places(one for one in comparisons if one.reference == facts.baseline)
    return [*far.here_lines(facts.looks, _hours(facts)), *far.together_lines(by_place, METRICS[facts.metric])]


def hosts(facts: RunFacts) -> Iterable[str]:
    """Of a run between hosts: where the programs were, as the study has it, and at which addresses."""
    if not facts.is_between_hosts:
        return
    known = facts.rest.get("hosts") or {}
    sentences = []
    for role, machine in facts.study["hosts"].items():
        address = (known.get(role) or {}).get("address")
        sentences.append(f"{role} on {machine['at']}{f' ({address})' if address else ''}")
    if facts.is_as_it_was:
        yield f"Nothing is emulated: {listed(sentences)}, over the network between them as it was."
        return
    yield f"Between machines: {listed(sentences)}, where the paths are emulated. What the network adds is part of them."


def scope(facts: RunFacts, totals: dict[str, int]) -> str:
    """Say what was measured, how much of it, and for what the verdicts hold."""
    where = facts.factors_in_words or "place"
    better = "smaller" if facts.lower_is_better else "larger"
    best = "faster" if METRICS[facts.metric].wording is TIME else "better"
    of = "" if facts.is_browser else " of a request"
    samples = counted(totals["samples"], facts.sample_word)
    single = len(facts.arms) == 1
    sentence = (
        f"{_levels(facts)}Metric: {facts.metric_label}{of} ({better} is {best}), for {facts.workload_words()}. "
        f"A cell is one combination of {where}. {counted(totals['trials'], 'trial')} in up to "
        f"{counted(totals['blocks'] or 0, 'block')} per cell, {samples}. "
        f"The {'numbers' if single else 'verdicts'} hold for this traffic, {conditions(facts)}, "
        f"{_machines(facts)} and this session, and for no others."
    )
    if not facts.is_outside:
        sentence += (
            " Starts of the same program differ by about 1 %, which "
            f"the {'numbers' if single else 'verdicts'} include only where the server was restarted for every block."
        )
    if facts.ending:
        sentence += f" The run ended because {facts.ending[0].lower()}{facts.ending[1:].rstrip('.')}."
    for entry in facts.rest.get("extended") or []:
        extension = f"`{entry['asked']}`" if entry.get("asked") else "more"
        sentence += (
            f" It had ended after {counted(entry['after_trials'], 'trial')} and was extended by {extension}, "
            "which intervals that stay valid at any time allow."
        )
    if facts.closed_loop and not facts.is_browser and facts.metric.startswith("latency"):
        sentence += (
            " In a closed loop the next request waits for the previous one, so this is service time: "
            "a user behind a queue would wait longer."
        )
    return sentence


def _levels(facts: RunFacts) -> str:
    """What the arms are, where they are no protocols."""
    if naming.of_protocols():
        return ""
    others = [name(arm) for arm in facts.arms if arm != facts.baseline]
    return f"The arms are levels of {naming.factor()}: {listed(others)} against {name(facts.baseline)}. "


def _machines(facts: RunFacts) -> str:
    """Whose machines verdicts hold for."""
    if facts.is_between_hosts:
        return "these hosts"
    return "these places" if _is_distant(facts) else "this machine"


def _is_distant(facts: RunFacts) -> bool:
    """Whether a server elsewhere was asked from hosts by SSH."""
    return any("vantage" in place for look in facts.looks for place in look["places"])


def conditions(facts: RunFacts) -> str:
    """What of path and programs verdicts hold for."""
    if facts.is_between_hosts and facts.is_as_it_was:
        return "the network between these hosts at that time, these programs"
    if _is_distant(facts):
        return "these paths at that time, this server"
    return "this path at that time, this server" if facts.is_outside else "these paths as emulated, these programs"


def _hours(facts: RunFacts) -> tuple[str, str] | None:
    """From when to when a run went on, in UTC; None while it does."""
    began, took_ns = facts.rest.get("started_utc"), facts.rest.get("elapsed_ns")
    if not began or took_ns is None:
        return None
    first = datetime.fromisoformat(str(began))
    last = first + timedelta(microseconds=int(took_ns) // 1000)
    same_day = "%H:%M" if first.date() == last.date() else "%Y-%m-%d %H:%M"
    return f"{first:%Y-%m-%d %H:%M}", f"{last:{same_day}}"
