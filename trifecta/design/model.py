"""Plain records that every package shares.

Times are integers in nanoseconds (``_ns``), rates in bits per second, sizes in octets, probabilities in 0..1.
Words follow ``docs/architecture.md``: study, factor, treatment, cell, block, trial, check, verdict.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from trifecta.contract.values import Level
from trifecta.design.builds import ServerDefinition
from trifecta.design.machine import Machine
from trifecta.design.path_spec import PathSpec, TrialLength
from trifecta.design.protocols import PROTOCOL_NAMES, PROTOCOLS, Protocol
from trifecta.design.workloads.browsers import BrowserWorkload, PageWorkload, VideoWorkload
from trifecta.design.workloads.far_base import FarBaseWorkload
from trifecta.design.workloads.requests import RequestsWorkload
from trifecta.design.workloads.services import ServicesWorkload

__all__ = [
    "AA_SUFFIX",
    "CLIENT_FACTOR",
    "DEFAULT_CLIENT",
    "PROTOCOLS",
    "PROTOCOL_FACTOR",
    "PROTOCOL_NAMES",
    "Baseline",
    "BrowserWorkload",
    "Cell",
    "CheckResult",
    "CheckStatus",
    "FarBaseWorkload",
    "Levelled",
    "Machine",
    "PageWorkload",
    "PathSpec",
    "Protocol",
    "RequestsWorkload",
    "ServicesWorkload",
    "Study",
    "Treatment",
    "Trial",
    "TrialLength",
    "Verdict",
    "VerdictKind",
    "VideoWorkload",
]

AA_SUFFIX = "#aa"  # arm name of the baseline's second run in a block: "h2#aa"
PROTOCOL_FACTOR = "protocol"  # what a study compares unless it says otherwise
CLIENT_FACTOR = "client"  # in a study, and in the keys of its cells, only when it is named
DEFAULT_CLIENT = "load"  # the engine's own

CheckStatus = Literal["pass", "warn", "fail", "unknown"]
VerdictKind = Literal["faster", "slower", "same", "undecided"]


@dataclass(frozen=True)
class Baseline:
    """The arm the others are compared with, a level of the compared factor; it runs twice in every block."""

    level: str = "h2"


@dataclass(frozen=True)
class Study:
    """A validated study: what is compared, how long, and how it is judged.

    ``compare`` is the factor whose levels are the arms; all others make the cells.
    """

    name: str
    title: str
    workload: RequestsWorkload
    factors: dict[str, tuple[Any, ...]]  # name -> levels, in order; "protocol", "path", "connection", "server", ...
    paths: dict[str, PathSpec]
    baseline: Baseline = field(default_factory=Baseline)
    compare: str = PROTOCOL_FACTOR
    metric: str = "latency_p50_ns"
    margin: float = 0.05
    confidence: float = 0.95
    min_blocks: int = 6
    max_blocks: int = 200
    budget_ns: int | None = None
    seed: int = 1
    description: str = ""
    conformance: Literal["off", "quick", "full"] = "quick"  # how much is probed before the trials
    capture: bool = False  # keep the packets of every trial, with the keys that open them
    give_up: bool = True  # end a cell none of whose first blocks can count, instead of giving it all of them
    captured_trials_count: bool = False  # let trials that were captured decide verdicts
    cells: tuple[str, ...] = ()  # keys of the cells that are run; empty: every combination of the factors
    servers: Mapping[str, ServerDefinition] = field(default_factory=dict)  # those that it brings itself, by level
    hosts: Mapping[str, Machine] = field(default_factory=dict)  # by role; empty: a lab on this machine
    source: str = ""  # canonical YAML of the study as resolved

    @property
    def gives_verdicts(self) -> bool:
        """Whether its trials may count: capturing costs time, so captured ones do only where the study says so."""
        return not self.capture or self.captured_trials_count

    @property
    def by_netem(self) -> bool:
        """Whether the kernel's netem carries the packets of a path, whose losses no seed repeats."""
        return any(path.emulator == "netem" for path in self.paths.values())


@dataclass(frozen=True)
class Cell:
    """One combination of all factors but the compared one: the place in which arms are compared."""

    key: str  # "path=far,connection=new,server=caddy", keys in factor order; identity of the cell
    levels: dict[str, Level] = field(hash=False)


class Levelled:
    """What has a level of every factor; a study that does not name a client has the engine's own."""

    @property
    def levels(self) -> Mapping[str, Level]:
        """Every factor with its level."""
        raise NotImplementedError

    @property
    def protocol(self) -> Protocol:
        """The protocol."""
        return cast(Protocol, self.levels[PROTOCOL_FACTOR])

    @property
    def path(self) -> str:
        """The name of the path."""
        return str(self.levels["path"])

    @property
    def connection(self) -> str:
        """``new`` or ``reused``."""
        return str(self.levels.get("connection", "reused"))

    @property
    def server(self) -> str:
        """The name of the server."""
        return str(self.levels["server"])

    @property
    def client(self) -> str:
        """The name of the client."""
        return str(self.levels.get(CLIENT_FACTOR, DEFAULT_CLIENT))


@dataclass(frozen=True)
class Treatment(Levelled):
    """A cell and an arm: what is done to a trial. ``level`` is that of the compared factor, ``arm`` its text."""

    cell: Cell
    arm: str
    level: Level
    compare: str = PROTOCOL_FACTOR

    @property
    def levels(self) -> Mapping[str, Level]:
        """Every factor with its level, the compared one first."""
        return {self.compare: self.level, **self.cell.levels}


@dataclass(frozen=True)
class Trial(Levelled):
    """One treatment in one block: the unit of replication."""

    trial: str  # "t00012"
    block: int  # of its cell, from 0
    cell: Cell
    arm: str  # a level of the compared factor ("h1", "caddy"), or "<baseline>#aa"
    position: int  # order within the block
    seed: int  # impairment and arrival seed, the same for every arm of the block
    compare: str = PROTOCOL_FACTOR
    level: Level | None = None  # of the compared factor; None: the arm's name is the level

    @property
    def levels(self) -> Mapping[str, Level]:
        """Every factor with its level, the compared one first."""
        own = self.arm.removesuffix(AA_SUFFIX) if self.level is None else self.level
        return {self.compare: own, **self.cell.levels}

    @property
    def is_aa(self) -> bool:
        """Whether this is the baseline's second run."""
        return self.arm.endswith(AA_SUFFIX)


@dataclass(frozen=True)
class CheckResult:
    """A measured condition of validity with its evidence in words and, where there is one, as a number."""

    check: str  # "protocol", "path", "headroom", ...
    scope: str  # trial id, cell key, or "run"
    status: CheckStatus
    evidence: str  # one sentence with the measured numbers and units
    value: float | None = None
    limit: float | None = None
    remedy: str = ""


@dataclass(frozen=True)
class Verdict:
    """What can be said of one arm against another in one cell, for one metric.

    ``ratio`` is the median over blocks of arm / reference run; ``low`` and ``high`` its confidence sequence (valid at
    any stopping time) for this comparison by itself, ``family_low`` and ``family_high`` that among all comparisons of
    the study, on which the verdict rests. For a latency a ratio below 1 is *faster*. ``likely`` is what an undecided
    comparison would be by itself. ``mean_ratio`` is the geometric mean over blocks, with its own interval.
    """

    cell: str
    metric: str
    arm: str
    reference: str
    verdict: VerdictKind
    ratio: float | None
    low: float | None
    high: float | None
    blocks: int
    margin: float  # the margin in force (never below the noise floor), as a ratio - 1
    noise_floor: float | None  # ratio - 1 that this lab could have seen within a block of this cell
    e_value: float | None  # evidence against "no difference"
    weather_floor: float | None = None  # the same between cells or runs of as many blocks
    family_low: float | None = None
    family_high: float | None = None
    likely: Literal["faster", "slower", "same"] | None = None
    blocks_needed: int | None = None  # estimate, when undecided
    blocks_needed_low: int | None = None  # the range of that estimate, which holds in four of five cases
    blocks_needed_high: int | None = None
    mean_ratio: float | None = None
    mean_low: float | None = None
    mean_high: float | None = None
    modes: str = ""  # what trials stand apart from the others of their arm, in words
    fixed_ratio: float | None = None
    fixed_low: float | None = None
    fixed_high: float | None = None
    fixed_p: float | None = None
    invalid_trials: int = 0
    reason: str = ""  # one sentence: why this verdict
    nodes: int | None = None  # of a cluster, that the usable blocks lie on; None for a run on one machine
    node_sd: float | None = None  # standard deviation of the log ratio between nodes
    node_sd_low: float | None = None
    node_sd_high: float | None = None
    left_out_nodes_json: str | None = None  # [{node, reason}]: nodes that do not count
