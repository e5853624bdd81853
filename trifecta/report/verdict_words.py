"""Verdicts, the order in which arms come in, and cells, in words."""

from __future__ import annotations

from trifecta.conclude.comparisons import UNTOLD, CellRanking, Comparison, levels
from trifecta.design import naming, numbers
from trifecta.design.arms import level_words, server_words
from trifecta.design.model import PROTOCOL_FACTOR, PROTOCOL_NAMES
from trifecta.design.phrases import counted

_BRACES = str.maketrans("[]", "{}")


def headline(comparison: Comparison, times: str = "×") -> str:
    """``1.43× faster`` (by the metric: ``1.43× higher``), ``same``, ``likely 1.43× faster`` or ``undecided``."""
    if comparison.likely is not None:
        return f"likely {_quantified(comparison, comparison.likely, times)}"
    return _quantified(comparison, comparison.kind, times)


def _quantified(comparison: Comparison, kind: str, times: str) -> str:
    if kind in ("faster", "slower") and comparison.row["factor"] is not None:
        return f"{numbers.ratio(comparison.row['factor'])}{times} {comparison.metric.word(kind)}"
    return kind


def interval(comparison: Comparison) -> str:
    """The confidence sequence in prose, in the direction of the headline: ``[1.38, 1.49]``."""
    return numbers.interval((comparison.row["factor_low"], comparison.row["factor_high"]))


def ratio_interval(comparison: Comparison) -> str:
    """The confidence sequence in a column, where all are of the ratio arm / reference: ``[0.67, 0.72]``."""
    return numbers.interval((comparison.row["low"], comparison.row["high"]))


def family_interval(comparison: Comparison) -> str:
    """The same among all comparisons of the study, on which the verdict rests: ``{0.66, 0.73}``."""
    return numbers.interval((comparison.row["family_low"], comparison.row["family_high"])).translate(_BRACES)


def needed_short(comparison: Comparison) -> str:
    """The range in short: ``2 to 9 more``, ``8 or more``, ``far off``, ``too early``, ``no block`` or ``not begun``."""
    if not comparison.row["blocks"]:
        return "no block" if comparison.begun else "not begun"
    if comparison.blocks_more is None:
        return "too early" if comparison.too_early else "far off"
    low, high = comparison.blocks_more
    if high is None:
        return f"{numbers.count(low)}+ more"
    return f"{numbers.count(low)} more" if low == high else f"{numbers.count(low)}-{numbers.count(high)} more"


def statement(comparison: Comparison, metric: str) -> str:
    """In full: ``HTTP/3 has 0.70 × the median latency of HTTP/2: 1.43× faster [1.38, 1.49]``."""
    arm, reference = naming.name(comparison.arm), naming.name(comparison.reference)
    if not comparison.decided:
        return f"{arm} against {reference}: {headline(comparison)} {interval(comparison)}, {needed_blocks(comparison)}"
    ratio = numbers.ratio(comparison.row["ratio"])
    return f"{arm} has {ratio} × the {metric} of {reference}: {headline(comparison)} {interval(comparison)}"


def needed_blocks(comparison: Comparison) -> str:
    """What an open verdict still needs: ``needs 2 to 9 more blocks``; empty when decided."""
    if comparison.decided:
        return ""
    if not comparison.row["blocks"]:
        return "no valid block" if comparison.begun else "not measured yet"
    if comparison.blocks_more is None:
        return "too few blocks for a forecast" if comparison.too_early else "not within reach"
    low, high = comparison.blocks_more
    if high is None:
        return f"needs {numbers.count(low)} or more further blocks"
    if low == high:
        return f"needs {counted(low, 'more block')}"
    return f"needs {numbers.count(low)} to {numbers.count(high)} more blocks"


def ranks(ranking: CellRanking) -> list[tuple[str, tuple[str, ...]]]:
    """(``1st``, its arms) in order; arms that share places come once, as ``2nd–3rd``; open places have no arm.

    Where every place is open there is one entry, without a rank.
    """
    if not any(ranking.places):
        return [("", ())]
    rank_rows: list[tuple[str, tuple[str, ...]]] = []
    for place, arms in enumerate(ranking.places):
        if len(arms) != 1 and place and ranking.places[place - 1] == arms:
            first = rank_rows.pop()[0].split("–")[0]
            rank_rows.append((f"{first}–{ordinal(place + 1)}", arms))
        else:
            rank_rows.append((ordinal(place + 1), arms))
    return rank_rows


def standing_words(ranking: CellRanking) -> list[str]:
    """``1st HTTP/3`` and so on; ``2nd–3rd open`` where verdicts do not report, ``open`` where they tell nothing."""
    return [
        f"{rank} {' = '.join(naming.name(arm) for arm in arms) if arms else 'open'}".strip()
        for rank, arms in ranks(ranking)
    ]


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``11th``."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"


def place_words(cell: str, without: str = "path") -> str:
    """A cell in words: ``new connections, caddy``; the factor ``without`` is said elsewhere."""
    if "=" not in cell:
        return cell  # the name of a trial, or "run"
    there = {name: value for name, value in levels(cell).items() if (name, value) not in UNTOLD}
    level_names = [_level_words(name, value) for name, value in there.items() if name != without]
    return ", ".join(level_names) or cell


def _level_words(factor: str, level: str) -> str:
    if factor == PROTOCOL_FACTOR:
        return PROTOCOL_NAMES.get(level, level)
    if factor == "connection" and level in ("new", "reused"):
        return f"{level} connections"
    if factor in ("page", "clip"):
        return f"{factor} {level.rstrip('/').rsplit('/', 1)[-1]}"  # which may be a path
    if factor == "server":
        return server_words(level)
    return level if factor in ("path", "connection") else level_words(factor, level)
