"""What a gate asks: a candidate and a baseline, two levels of one factor, and how much worse the candidate may be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from trifecta.design import metric_availability, plan, quantity
from trifecta.design.arms import arm_words
from trifecta.design.document import Document, did_you_mean
from trifecta.design.errors import UserError
from trifecta.design.factors import CLIENT_FACTOR, KNOWN_FACTORS
from trifecta.design.metric import Metric
from trifecta.design.metrics import METRICS, PACKETS, asked_for
from trifecta.design.model import AA_SUFFIX, DEFAULT_CLIENT, Cell, Study
from trifecta.design.overrides import apply_overrides, refuse_twice
from trifecta.design.quantity import QuantityError
from trifecta.design.services import SERVER_LEVEL

SERVER_FACTOR = "server"  # of a level that is given without its factor
DEFAULT_CONDITION = "slower:3%"
SLOWER, MORE_BYTES, MORE_CPU = "slower", "more-bytes", "more-cpu"
WIRE_BYTES = replace(
    next(one for one in PACKETS if one.name == "wire_bytes"), label="octets on the wire per request", margin=None
)
_TOLD = ("protocol", "path", "connection")  # factors that a cell is named by even where they have one level


@dataclass(frozen=True)
class Condition:
    """What fails the gate: ``metric`` worse than the baseline's by more than ``limit``, a ratio - 1."""

    name: str
    metric: Metric
    limit: float

    @property
    def text(self) -> str:
        """As it is asked for: ``slower:3 %``."""
        return f"{self.name}:{quantity.format_ratio(self.limit)}"


@dataclass(frozen=True)
class Refs:
    """The two levels as they were asked for; the same twice is the baseline against itself.

    ``servers``: what those of them are that the study has to be given, by name (`servers` of a study).
    """

    factor: str
    baseline: str
    candidate: str
    servers: Mapping[str, str] = field(default_factory=dict)

    def change(self, document: Document) -> None:
        """Make the two levels the arms of a study, before it is resolved."""
        levels = dict.fromkeys((self.baseline, self.candidate))
        # In quotes, and with a comma behind each: so a command line may hold commas, and one level is a list, too.
        quoted = [json.dumps(level, ensure_ascii=False) for level in levels]
        listed = "".join(f"{level}," for level in quoted)
        overrides = [
            f"servers.{name}={json.dumps(written, ensure_ascii=False)}" for name, written in self.servers.items()
        ]
        overrides += [f"compare={self.factor}", f"{self.factor}=[{listed}]", f"baseline={quoted[0]}"]
        apply_overrides(document, overrides, self._option)

    def refuse_twice(self, overrides: Sequence[str]) -> None:
        """UserError where one of ``--set`` asks for what the two levels do."""
        refuse_twice(overrides, dict.fromkeys((self.factor, "compare", "baseline"), self._option))

    @property
    def _option(self) -> str:
        return f"--baseline {self.baseline} --candidate {self.candidate}"


@dataclass(frozen=True)
class GatePlan:
    """A gate: its study, the two arms of it that are held against each other, and what fails it."""

    study: Study
    conditions: tuple[Condition, ...]

    @property
    def baseline(self) -> str:
        """The arm that runs twice in every block."""
        return self.study.baseline.level

    @property
    def candidate(self) -> str:
        """The other arm; of one level against itself the baseline's second run."""
        others = plan.other_levels(self.study)
        return others[0] if others else self.baseline + AA_SUFFIX

    @property
    def asked_sha256(self) -> str:
        """The identity of what is asked of a candidate: work, paths, cells and metrics; not its name, nor how long."""
        study = self.study
        paths = {name: asdict(path) for name, path in study.paths.items()}
        cells, metrics = [cell.key for cell in plan.cells(study)], [one.metric.name for one in self.conditions]
        text = json.dumps([asdict(study.workload), paths, cells, metrics], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def name(self, arm: str) -> str:
        """An arm in words."""
        level = arm.removesuffix(AA_SUFFIX)
        return arm_words(self.study.compare, level) + (" again" if arm.endswith(AA_SUFFIX) else "")

    def place(self, cell: Cell) -> str:
        """A cell in words: its protocol, path and connections, and whatever else is not the same in all cells."""
        varied = {name for name, levels in self.study.factors.items() if len(levels) > 1}
        names = [name for name in cell.levels if name in varied or name in _TOLD]
        levels = {name: plan.level_text(cell.levels[name]) for name in names}
        words = (level if name == "connection" else arm_words(name, level) for name, level in levels.items())
        return ", ".join(words) or cell.key


def read_refs(baseline: str, candidate: str) -> Refs:
    """The levels that two options name, of one factor. UserError otherwise."""
    factor, first = _ref("--baseline", baseline)
    other, second = _ref("--candidate", candidate)
    if factor != other:
        raise UserError(
            f"options --baseline {baseline} and --candidate {candidate}: levels of two factors, {factor} and {other}; "
            "give two levels of one, the others stay as the study has them"
        )
    return Refs(factor, first, second)


def _ref(option: str, text: str) -> tuple[str, str]:
    head, equals, level = (part.strip() for part in text.partition("="))
    if not equals or head not in KNOWN_FACTORS:  # a server, which may hold a '=' of its own: a command line, NAME=FILE
        meant = did_you_mean(head, KNOWN_FACTORS) if equals and not {*"/.: "} & {*text.strip()} else ""
        if meant.startswith("did"):
            raise UserError(f"option {option}: no factor {head!r}; {meant} A server is written server={text.strip()}")
        head, level = SERVER_FACTOR, text.strip()
    if not level:
        raise UserError(f"option {option}: {text!r} names no level; write FACTOR=LEVEL, or a server's name")
    return head, level


def read_conditions(texts: Sequence[str], study: Study) -> tuple[Condition, ...]:
    """What options ask, ``slower:3%`` or ``latency_p95:5%``, in the metrics of a study. UserError otherwise."""
    conditions: dict[str, Condition] = {}
    for text in texts or (DEFAULT_CONDITION,):
        name, colon, share = (part.strip() for part in text.partition(":"))
        if not colon:
            raise UserError(f"option --fail-on: {text!r} has no limit; write for example {DEFAULT_CONDITION}")
        try:
            limit = quantity.parse_ratio(share)
        except QuantityError as error:
            raise UserError(f"option --fail-on {text}: {error}") from None
        if not share.endswith("%") or not 0 < limit <= 1:  # 3 alone would be 300 %
            raise UserError(f"option --fail-on {text}: {share!r} is no limit; give more than 0% and at most 100%")
        if name in conditions:
            raise UserError(
                f"option --fail-on {text}: {name} has a limit already, {conditions[name].text}; leave one out"
            )
        conditions[name] = Condition(name, _metric(name, text, study), limit)
    return tuple(conditions.values())


def _metric(name: str, text: str, study: Study) -> Metric:
    cpu = "client_cpu_ns_per_request" if study.compare == CLIENT_FACTOR else "server_cpu_ns_per_request"
    words = {SLOWER: METRICS[study.metric], MORE_BYTES: WIRE_BYTES, MORE_CPU: METRICS[cpu]}
    metric = words.get(name) or asked_for(name.removesuffix("_ns"))
    if metric is None:
        known = [*words, *(one.asked for one in METRICS.values() if one.asked and not one.by_difference)]
        raise UserError(f"option --fail-on {text}: nothing is called {name!r}; {did_you_mean(name, known)}")
    if metric.by_difference:
        raise UserError(f"option --fail-on {text}: a ratio of {metric.label} says nothing; give another metric")
    lacking = _uncounted(study) if metric == WIRE_BYTES else metric_availability.no_value(study, metric)
    if lacking:  # else the gate would be open to its end, whatever the candidate is
        raise UserError(f"option --fail-on {text}: {lacking}")
    return metric


def _uncounted(study: Study) -> str:
    """Why a cell's client will not tell the octets on the wire, which the engine's own clients count; else empty."""
    for one in plan.treatments(study):
        work = plan.workload_for(study, one)
        foreign = "" if one.client == DEFAULT_CLIENT else one.client
        if work.family == "services" and one.server != SERVER_LEVEL:
            foreign = one.server
        if foreign:
            return f"{foreign} does not count {WIRE_BYTES.label}, only the engine's own client does; leave it out"
    return ""
