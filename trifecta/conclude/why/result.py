"""What the runs without causes say: what remains without each, which are named, and the largest two together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trifecta.analysis import why as analysis
from trifecta.analysis.ladder import Logs
from trifecta.analysis.places import Place, censored, log_ratios
from trifecta.analysis.why import Search, Share
from trifecta.conclude.ladder import ends_of
from trifecta.conclude.reproduction import places
from trifecta.contract.why import CauseDocument, JointRemovalDocument, ShareDocument, WhyDocument, WhyRequest
from trifecta.design import metrics, plan, quinn
from trifecta.design.model import Study
from trifecta.design.study_file import parse_study
from trifecta.design.why.rungs import Case, Rung
from trifecta.design.why.search_plan import case_asked, goes_together, rungs_of, together_of
from trifecta.design.why.table import CAUSES
from trifecta.store.run import RunDirectory

SEARCH, PAIR = "causes", "together"
"""The runs: every cause alone, and the largest two, and all that are named, together."""
OTHER_WINDOWS = "parity: initial congestion window"
"""How the check begins what it says of two initial windows (`analysis.checks.parity`)."""


def pair_of(folder: Path, request: WhyRequest) -> tuple[tuple[str, ...], list[str]] | None:
    """The two causes that explain most, the first of them named, and all that are named and go together with it; the
    first alone where no other goes with it. None where no cause is named.
    """
    case = case_asked(request)
    return _pair(_search(_Run(folder / SEARCH, case, rungs_of(request), request), request), case, request)


def read(folder: Path, request: WhyRequest, problem: str = "") -> WhyDocument:
    """Everything measured in ``folder``; of what was interrupted, what its finished rounds say.

    ``problem``: why the largest two could not be measured together here.
    """
    case = case_asked(request)
    run = _Run(folder / SEARCH, case, rungs_of(request), request)
    search = _search(run, request)
    nearest = analysis.search(run.values[1], [], run.rounds, confidence=run.confidence, margin=run.margin).effect
    joint, no_both = _joint_removal(folder, case, request, search, problem)
    trials, valid, checks = run.counts(0)
    return {
        "run": request["run"],
        "study": case.study.name,
        "cell": request["cell"],
        "compare": case.study.compare,
        "arm": request["arm"],
        "to": request["to"],
        "metric": case.study.metric,
        "lower_is_better": metrics.METRICS[case.study.metric].lower_is_better,
        "effect": ends_of(search.effect),
        "nearest": ends_of(nearest) if _first_cause(request) == 2 else None,
        "told_apart": search.told_apart,
        "causes": [_cause(run, case, request, search, place) for place in _ranked(search, request)],
        "not_switched": request["not_switched"],
        "not_measured": request["not_measured"],
        "together": joint,
        "no_together": no_both,
        "rounds": run.done(_first_cause(request)),
        "planned": request["rounds"],
        "trials": trials,
        "valid": valid,
        "checks": checks,
        "censored": sum(run.censored[: _first_cause(request)]),
        "margin": run.margin,
        "confidence": run.confidence,
        "budget_s": request["budget_s"],
        "seed": request["seed"],
        "runs": [name for name in (SEARCH, PAIR) if (folder / name / "run.json").is_file()],
    }


class _Run:
    """The log ratios of rungs in a run, by block."""

    def __init__(self, run: Path, case: Case, rungs: Sequence[Rung], request: WhyRequest) -> None:
        study = _study(run)
        keys = [cell.key for cell in plan.cells(study)]
        own = dict(zip([case.key(rung) for rung in case.distinct(rungs)], keys, strict=True))
        tolerated = [_tolerated(case, rung, request) for rung in rungs]
        read = {checks: places.read(run, run.name, checks) for checks in dict.fromkeys(tolerated)}
        here = {checks: {place.cell: place for place in places_of_rung} for checks, places_of_rung in read.items()}
        self.places: list[Place | None] = [
            here[checks].get(own[case.key(rung)]) for checks, rung in zip(tolerated, rungs, strict=True)
        ]
        self.values: list[Logs] = [
            {} if place is None else log_ratios(place, study.metric, request["arm"], request["to"])
            for place in self.places
        ]
        self.censored = [
            0 if place is None else censored(place, study.metric, request["arm"], request["to"])
            for place in self.places
        ]
        self.rounds, self.confidence, self.margin = study.min_blocks, study.confidence, study.margin
        self.arms = len(plan.arms(study))

    def done(self, twice: int) -> int:
        """How many rounds are whole; the first ``twice`` rungs have two blocks in each."""
        trials = [0 if one is None else one.trials for one in self.places]
        whole_blocks = [number // (self.arms * (2 if at < twice else 1)) for at, number in enumerate(trials)]
        return min(whole_blocks)

    def counts(self, place: int) -> tuple[int, int, dict[str, int]]:
        """Trials of a rung, how many count, and which checks spoke up."""
        one = self.places[place]
        return (0, 0, {}) if one is None else (one.trials, len(one.rows), dict(one.checks))


def tolerated_in(
    case: Case, rungs: Sequence[Rung], request: WhyRequest, keys: Sequence[str]
) -> dict[str, frozenset[str]]:
    """By cell, whose ``keys`` are in the order of the distinct rungs: the checks that exclude no trial there."""
    distinct = case.distinct(rungs)
    return {key: _tolerated(case, rung, request) for key, rung in zip(keys, distinct, strict=True)}


def _tolerated(case: Case, rung: Rung, request: WhyRequest) -> frozenset[str]:
    """The checks that see a cause at work which a rung still has; of a QUIC library that sets its own initial window
    only that it is another than TCP's: what was asked for and did not take place excludes a trial everywhere.
    """
    every = [CAUSES[one["cause"]] for one in request["causes"]]
    checks = {one.check for one in every if one.check and one.id not in rung.causes}
    library = case.levels(rung).get("quinn", case.library)
    return frozenset(checks if "settings" in quinn.names(library) else {*checks, OTHER_WINDOWS})


def _study(run: Path) -> Study:
    return parse_study(RunDirectory.open(run).study_text, str(run / "study.yaml"))


def _first_cause(request: WhyRequest) -> int:
    """The place of the first cause among the rungs: before it is the cell as it is, perhaps the nearest stack too."""
    return 2 if any(one["nearest"] for one in request["causes"]) else 1


def _search(run: _Run, request: WhyRequest) -> Search:
    nearest = [one["nearest"] for one in request["causes"]]
    without = run.values[_first_cause(request) :]
    removed = [(run.values[int(base)], values) for base, values in zip(nearest, without, strict=True)]
    own = run.censored[_first_cause(request) :]
    lost = [at for at, base in enumerate(nearest) if run.censored[0] or run.censored[int(base)] or own[at]]
    return analysis.search(
        run.values[0], removed, run.rounds, confidence=run.confidence, margin=run.margin, censored=lost
    )


def _ranked(search: Search, request: WhyRequest) -> list[int]:
    return analysis.ranked(search, [one["nearest"] for one in request["causes"]])


def _pair(search: Search, case: Case, request: WhyRequest) -> tuple[tuple[str, ...], list[str]] | None:
    order, causes = _ranked(search, request), request["causes"]
    named = [place for place in order if search.removed[place].state == "explains"]
    if not named:
        return None
    first = causes[named[0]]
    sign = search.removed[named[0]].base.value or 0.0
    alike = [place for place in order if causes[place]["nearest"] == first["nearest"] and place != named[0]]
    most = sorted(alike, key=lambda place: (place not in named, -sign * (search.removed[place].change.value or 0.0)))
    for place in most:
        pair = (first["cause"], causes[place]["cause"])
        if not goes_together(case, request, pair):
            continue
        every = [first["cause"]]
        for each in [place, *(one for one in named[1:] if one != place)]:
            if each in named and each in alike and goes_together(case, request, (*every, causes[each]["cause"])):
                every.append(causes[each]["cause"])
        return pair, every
    return (first["cause"],), [first["cause"]]


def _joint_removal(
    folder: Path, case: Case, request: WhyRequest, search: Search, problem: str
) -> tuple[JointRemovalDocument | None, str]:
    pair = _pair(search, case, request)
    if pair is None:
        return None, "no cause is named"
    if not (folder / PAIR / "run.json").is_file():
        return None, problem or "not measured yet"
    ids, every = pair
    run = _Run(folder / PAIR, case, together_of(case, request, ids, every), request)
    # A block a round, of even number (`ladder_planner.block_of`).
    joint = analysis.joint_removal(run.values, run.confidence)
    return {
        "effect": ends_of(joint.effect),
        "orders": [
            {"cause": one, "remains": ends_of(alone), "before": ends_of(turn.before), "after": ends_of(turn.after)}
            for one, alone, turn in zip(ids, joint.alone, joint.orders, strict=False)
        ],
        "both": None if joint.both is None else ends_of(joint.both),
        "interaction": ends_of(joint.orders[0].difference) if joint.orders else None,
        "causes": every,
        "remains": ends_of(joint.remains),
        "censored": sum(run.censored),
        "left": _share(joint.share.rest()),
        **_share(joint.share),
    }, problem or ("" if joint.orders else "no other cause that was measured can be removed with it")


def _share(share: Share) -> ShareDocument:
    return {"share": share.value, "share_low": share.low, "share_high": share.high}


def _cause(run: _Run, case: Case, request: WhyRequest, search: Search, place: int) -> CauseDocument:
    at = _first_cause(request) + place
    one, removed = request["causes"][place], search.removed[place]
    cause, rung = CAUSES[one["cause"]], rungs_of(request)[at]
    trials, valid, checks = run.counts(at)
    among, remains = ends_of(removed.among), ends_of(removed.remains_among)
    return {
        "cause": cause.id,
        "title": cause.title,
        "exchange": case.exchanged(rung),
        "only": case.only(rung.change),
        "suspicion": one["suspicion"],
        "suspected": one["suspected"],
        "cannot": " ".join(cause.documentation["Cannot"].split()),
        "nearest": one["nearest"],
        "change": ends_of(removed.change),
        "remains_low": remains["low"],
        "remains_high": remains["high"],
        "family_low": among["low"],
        "family_high": among["high"],
        "state": removed.state,
        "trials": trials,
        "valid": valid,
        "checks": checks,
        "censored": run.censored[at],
        **ends_of(removed.remains),
        **_share(removed.share),
    }
