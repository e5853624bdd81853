"""What the run says about itself in ``run.json``: the study, versions, the machine, how it was started."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from trifecta.analysis.betting import fewest_blocks
from trifecta.conclude import results, work_words
from trifecta.conclude.work_words import WorkloadDocument
from trifecta.contract.far import Look
from trifecta.design import duration, naming, path_words, plan
from trifecta.design.arms import factor_words
from trifecta.design.builds import alike
from trifecta.design.conformance import ConformanceResult
from trifecta.design.machine import MIDDLE
from trifecta.design.metric import Metric
from trifecta.design.metrics import METRICS
from trifecta.design.model import PROTOCOL_FACTOR, PROTOCOLS
from trifecta.design.phrases import listed
from trifecta.design.plan import level_text
from trifecta.design.study_file import parse_study
from trifecta.store.run import RunDirectory


@dataclass(frozen=True)
class RunFacts:
    """The parts of ``run.json`` that a report shows."""

    folder: Path
    study: dict[str, Any]
    seed: int
    argv: list[str]
    left_out: list[dict[str, Any]] = field(
        default_factory=list
    )  # levels this machine could not do: factor, level, reason
    faults: dict[str, Any] = field(default_factory=dict)  # deliberate faults, in tests of the checks only
    ending: str = ""  # why the run ended; empty while it runs, or when it was killed
    conformance: list[ConformanceResult] = field(default_factory=list)  # what was probed before the trials
    removed: list[str] = field(default_factory=list)  # trials that were finished, and taken out of the folder
    doubts: list[str] = field(default_factory=list)  # why stored results are not taken as they are
    alike: list[str] = field(default_factory=list)  # levels of one server that are one program, in words
    looks: list[Look] = field(default_factory=list)  # at servers elsewhere, before, after and between
    block_ns: dict[str, int] = field(default_factory=dict)  # by cell, how long a block was expected to take
    rest: dict[str, Any] = field(default_factory=dict)  # versions, machine, parity, ... as they stand in run.json

    @property
    def title(self) -> str:
        """The study's title, or its name."""
        return str(self.study.get("title") or self.study.get("name") or self.folder.name)

    @property
    def metric(self) -> str:
        """The metric that the verdicts are about."""
        return str(self.study.get("metric", "latency_p50_ns"))

    @property
    def workload(self) -> WorkloadDocument:
        """The workload's fields."""
        return cast(WorkloadDocument, dict(self.study.get("workload") or {}))

    @property
    def closed_loop(self) -> bool:
        """Whether the next request waits for the last: then a latency is a service time."""
        return str(self.workload.get("loop", "closed")) == "closed"

    @property
    def lower_is_better(self) -> bool:
        """Whether a smaller value of the metric is the better one."""
        return self.of.lower_is_better

    @property
    def of(self) -> Metric:
        """The metric that the study compares by."""
        return METRICS[self.metric]

    @property
    def sides(self) -> tuple[str, str]:
        """What a ratio below 1 and one above it say, at the ends of an axis."""
        below, above = ("faster", "slower") if self.lower_is_better else ("slower", "faster")
        return f"← {self.of.word(below)}", f"{self.of.word(above)} →"

    @property
    def is_video(self) -> bool:
        """Whether a browser plays a video."""
        return self.workload.get("kind") == "video"

    @property
    def is_browser(self) -> bool:
        """Whether a browser loads a page or plays a video: then a sample is a visit."""
        return self.is_video or self.workload.get("kind") in ("page", "far-page")

    @property
    def is_map(self) -> bool:
        """Whether the cells are places of a map (docs/map.md): a block or two at each, judged all together."""
        return "map" in self.rest

    @property
    def is_outside(self) -> bool:
        """Whether a server elsewhere was asked, over the path as it was: then nothing is emulated."""
        return self.workload.get("kind") in ("far", "far-page")

    @property
    def is_between_hosts(self) -> bool:
        """Whether client and server ran on machines of the study's own."""
        return bool(self.study.get("hosts"))

    @property
    def is_as_it_was(self) -> bool:
        """Whether nothing was emulated: elsewhere, and between hosts without one in the middle."""
        return self.is_outside or (self.is_between_hosts and MIDDLE not in self.study["hosts"])

    @property
    def is_captured(self) -> bool:
        """Whether the packets of every trial were kept."""
        return bool(self.study.get("capture"))

    @property
    def sample_word(self) -> str:
        """What a sample is: ``request``, ``page load`` or ``watch``."""
        return "watch" if self.is_video else "page load" if self.is_browser else "request"

    @property
    def verb_phrase(self) -> str:
        """What the protocols do, as a verb with its object: ``load the page``; empty where they are just faster."""
        if not self.is_browser or not self.metric.startswith("latency_"):
            return ""
        return "start the video" if self.is_video else "load the page"

    @property
    def latency_word(self) -> str:
        """``service time`` or ``latency`` in a closed or an open loop; of browsers ``load time``, ``startup time``."""
        if self.is_browser:
            return "startup time" if self.is_video else "load time"
        return "service time" if self.closed_loop else "latency"

    @property
    def metric_label(self) -> str:
        """The metric in words."""
        return self.of.label.replace("latency", self.latency_word) if self.of.over_failures else self.of.label

    @property
    def baseline(self) -> str:
        """The arm that runs twice in every block."""
        return str((self.study.get("baseline") or {}).get("level", "h2"))

    @property
    def compare(self) -> str:
        """The factor whose levels are the arms."""
        return str(self.study.get("compare") or PROTOCOL_FACTOR)

    def naming(self) -> AbstractContextManager[None]:
        """Within it arms are called, and look, as levels of what this run compares."""
        return naming.arms_of(self.compare, self.arms)

    @property
    def margin(self) -> float:
        """Differences smaller than this ratio - 1 do not matter to the study."""
        return float(self.study.get("margin", 0.05))

    @property
    def confidence(self) -> float:
        """Confidence level of the intervals."""
        return float(self.study.get("confidence", 0.95))

    @property
    def fewest_blocks(self) -> int:
        """The blocks before which no verdict is possible at that level, were every block to say the same."""
        return fewest_blocks(self.confidence)

    @property
    def arms(self) -> list[str]:
        """What the study compares: protocols, the oldest first, or levels of another factor in its order."""
        levels = (self.study.get("factors") or {}).get(self.compare) or PROTOCOLS
        if self.compare != PROTOCOL_FACTOR:
            return [level_text(level) for level in levels]
        return [protocol for protocol in PROTOCOLS if protocol in levels]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Comparisons to show: (arm, reference), the newest protocol first, or each level to the baseline first."""
        chosen = self.arms
        if self.compare != PROTOCOL_FACTOR:
            others = [arm for arm in chosen if arm != self.baseline]
            among = [(later, earlier) for i, earlier in enumerate(others) for later in others[i + 1 :]]
            return [*((arm, self.baseline) for arm in others), *among]
        order = [("h3", "h2"), ("h3", "h1"), ("h1", "h2")]
        return [pair for pair in order if pair[0] in chosen and pair[1] in chosen]

    @property
    def factors(self) -> list[str]:
        """Factors that make the cells: all but the compared one, in the study's order."""
        return [name for name in (self.study.get("factors") or {}) if name != self.compare]

    @property
    def factors_in_words(self) -> str:
        """The same in words: ``path, TLS version and server``."""
        return listed([factor_words(name) for name in self.factors])

    @property
    def varied(self) -> list[str]:
        """All factors, the compared one too: what they say is no part of what was asked of all."""
        return list(self.study.get("factors") or {})

    def path_words(self, name: str) -> str:
        """What a path was asked to be: ``80 ms round trip, 100 Mbit/s``; empty for one that the study lacks."""
        if self.is_outside:
            return "from this machine, nothing emulated"
        spec = (self.study.get("paths") or {}).get(name)
        return path_words.in_words(spec) if spec else ""

    @property
    def by_netem(self) -> list[str]:
        """The paths whose packets the kernel's netem loses and delays, which no seed repeats."""
        paths = (self.study.get("paths") or {}).items()
        return [name for name, spec in paths if spec.get("emulator") == "netem"]

    def workload_words(self) -> str:
        """What was asked of the network: ``GET of 10 kB, 10 in flight, closed loop``."""
        return work_words.in_words(self.workload, self.varied, browsing=self.is_browser, closed=self.closed_loop)


def read(run: Path) -> RunFacts:
    """Read ``run.json`` and ``study.yaml``; a folder that is no run, or a damaged one, is a ``UserError``."""
    directory = RunDirectory.open(run)
    document = directory.facts
    written = parse_study(directory.study_text, str(run / "study.yaml"))
    study = asdict(written)
    shown = (
        *("study", "seed", "argv", "unsupported", "failed", "not_found", "faults", "state", "ended_because"),
        *("cells", "removed", "elsewhere"),
    )
    rest = {name: value for name, value in document.items() if name not in shown}
    return RunFacts(
        folder=run,
        study=study,
        seed=int(document.get("seed", study["seed"])),
        argv=[str(word) for word in document.get("argv") or []],
        left_out=[
            dict(item)
            for items in (document.get("unsupported"), document.get("not_found"), document.get("failed"))
            for item in items or []
        ],
        faults=dict(document.get("faults") or {}),
        ending=str(document.get("ended_because") or ""),
        conformance=directory.conformance(),
        removed=list(document.get("removed") or []),
        doubts=results.of(run).said,
        alike=alike(written.servers, document.get("servers") or {}),
        looks=list(document.get("elsewhere") or []),
        block_ns={} if "map" in rest else {cell.key: duration.block_ns(written, cell) for cell in plan.cells(written)},
        rest=rest,
    )
