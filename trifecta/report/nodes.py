"""The nodes of a cluster in words: how many, how much they differ, and which do not count."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence

from trifecta.conclude import nodes
from trifecta.conclude.comparisons import Comparison
from trifecta.conclude.nodes import Nodes
from trifecta.contract.run import RunDocument
from trifecta.design.arms import node_words


def sentences(comparisons: Sequence[Comparison], run: RunDocument) -> list[str]:
    """Sentences, from the verdicts and what stands in ``run.json`` besides; none of a run on one machine."""
    known = nodes.of(comparisons)
    return [*([] if known is None else _sentences(known)), *_happened(run, {} if known is None else known.left_out)]


def _happened(run: RunDocument, listed_nodes: Container[str]) -> Iterable[str]:
    """What came about while it ran; ``listed_nodes`` are nodes of which it is said already that they are left out."""
    if run.get("nodes_share_machine"):
        yield "These nodes share a machine and disturb each other: do not rely on these verdicts."
    lost = run.get("lost_blocks") or []
    if lost:
        why = dict.fromkeys(f"{node_words(one['node'])}: {one['reason']}" for one in lost)
        yield f"{len(lost)} {'block was' if len(lost) == 1 else 'blocks were'} lost, and run again ({'; '.join(why)})."
    for node, reason in (run.get("nodes_left_out") or {}).items():
        if node not in listed_nodes:
            yield f"Not used: {node_words(node)}, because {reason}."


def left_out(comparisons: Sequence[Comparison]) -> dict[str, str]:
    """The nodes that do not count, with the reason."""
    known = nodes.of(comparisons)
    return {} if known is None else known.left_out


def _sentences(known: Nodes) -> Iterable[str]:
    if not known.most:
        yield "No comparison has a usable block on any node."
    else:
        yield from _differences(known)
    for node, why in known.left_out.items():
        yield f"Left out: {node_words(node)}, because {why}. Its trials are kept and marked."


def _differences(known: Nodes) -> Iterable[str]:
    count = f"{known.most}" if known.fewest == known.most else f"{known.fewest} to {known.most}"
    yield (
        f"Measured on {count} {'node' if known.most == 1 else 'nodes'}: intervals hold for nodes like these, and no "
        "verdict rests on one node alone."
    )
    if known.least_sd is not None and known.most_sd is not None:
        low, high = _percent(known.least_sd), _percent(known.most_sd)
        spread = low if low == high else f"{low} to {high}, depending on the comparison"
        most = "nothing bounds it from above" if known.most_high is None else f"at most {_percent(known.most_high)}"
        yield f"Standard deviation of the ratios between nodes: {spread} (95 % interval: {most})."
    if known.few:
        yield (
            "So few nodes show little about how nodes differ: the intervals are wider, and assume that differences "
            "between nodes are roughly normal."
        )
    yield (
        "Verdicts, their intervals, maps and comparisons of two runs account for nodes; all other intervals treat the "
        "blocks as if one machine had measured them."
    )


def _percent(log: float) -> str:
    return f"{100 * math.expm1(log):.1f} %"
