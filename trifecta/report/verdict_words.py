"""Verdicts, the order in which arms come in, and cells, in words."""

from __future__ import annotations

from trifecta.conclude.comparisons import UNTOLD, Comparison, Standing, levels
from trifecta.design import naming, numbers
from trifecta.design.arms import server_words
from trifecta.design.model import PROTOCOL_FACTOR, PROTOCOL_NAMES
from trifecta.design.phrases import counted

_BRACES = str.maketrans("[]", "{}")


def headline(one: Comparison, times: str = "×") -> str:
    """``1.43× faster`` (by the metric: ``1.43× higher``), ``same``, ``likely 1.43× faster`` or ``undecided``."""
    if one.likely is not None:
        return f"likely {_said(one, one.likely, times)}"
    return _said(one, one.kind, times)


def _said(one: Comparison, kind: str, times: str) -> str:
    if kind in ("faster", "slower") and one.row["factor"] is not None:
        return f"{numbers.ratio(one.row['factor'])}{times} {one.metric.word(kind)}"
    return kind


def interval(one: Comparison) -> str:
    """The confidence sequence in prose, in the direction of the headline: ``[1.38, 1.49]``."""
    return numbers.interval((one.row["factor_low"], one.row["factor_high"]))


def ratio_interval(one: Comparison) -> str:
    """The confidence sequence in a column, where all are of the ratio arm / reference: ``[0.67, 0.72]``."""
    return numbers.interval((one.row["low"], one.row["high"]))


def family_interval(one: Comparison) -> str:
    """The same among all comparisons of the study, on which the verdict rests: ``{0.66, 0.73}``."""
    return numbers.interval((one.row["family_low"], one.row["family_high"])).translate(_BRACES)


def more(one: Comparison) -> str:
    """The range in short: ``2 to 9 more``, ``8 or more``, ``far off``, ``too early`` or ``no block``."""
    if not one.row["blocks"]:
        return "no block"
    if one.blocks_more is None:
        return "too early" if one.too_early else "far off"
    low, high = one.blocks_more
    if high is None:
        return f"{numbers.count(low)}+ more"
    return f"{numbers.count(low)} more" if low == high else f"{numbers.count(low)}-{numbers.count(high)} more"


def statement(one: Comparison, metric: str) -> str:
    """In full: ``HTTP/3 has 0.70 × the median latency of HTTP/2: 1.43× faster [1.38, 1.49]``."""
    arm, reference = naming.name(one.arm), naming.name(one.reference)
    if not one.decided:
        return f"{arm} against {reference}: {headline(one)} {interval(one)}, {needs(one)}"
    ratio = numbers.ratio(one.row["ratio"])
    return f"{arm} has {ratio} × the {metric} of {reference}: {headline(one)} {interval(one)}"


def needs(one: Comparison) -> str:
    """What an open verdict still needs: ``needs 2 to 9 more blocks``; empty when decided."""
    if one.decided:
        return ""
    if not one.row["blocks"]:
        return "no valid block"
    if one.blocks_more is None:
        return "too few blocks for a forecast" if one.too_early else "not within reach"
    low, high = one.blocks_more
    if high is None:
        return f"needs {numbers.count(low)} or more further blocks"
    if low == high:
        return f"needs {counted(low, 'more block')}"
    return f"needs {numbers.count(low)} to {numbers.count(high)} more blocks"


def ranks(found: Standing) -> list[tuple[str, tuple[str, ...]]]:
    """(``1st``, its arms) in order; arms that share places come once, as ``2nd–3rd``; open places have no arm.

    Where every place is open there is one entry, without a rank.
    """
    if not any(found.places):
        return [("", ())]
    made: list[tuple[str, tuple[str, ...]]] = []
    for place, arms in enumerate(found.places):
        if len(arms) != 1 and place and found.places[place - 1] == arms:
            first = made.pop()[0].split("–")[0]
            made.append((f"{first}–{ordinal(place + 1)}", arms))
        else:
            made.append((ordinal(place + 1), arms))
    return made


def standing_words(found: Standing) -> list[str]:
    """``1st HTTP/3`` and so on; ``2nd–3rd open`` where verdicts do not report, ``open`` where they tell nothing."""
    return [
        f"{rank} {' = '.join(naming.name(arm) for arm in arms) if arms else 'open'}".strip()
        for rank, arms in ranks(found)
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
    said = [_level_words(name, value) for name, value in there.items() if name != without]
    return ", ".join(said) or cell


def _level_words(factor: str, level: str) -> str:
    if factor == PROTOCOL_FACTOR:
        return PROTOCOL_NAMES.get(level, level)
    if factor == "connection" and level in ("new", "reused"):
        return f"{level} connections"
    if factor in ("page", "clip"):
        return f"{factor} {level.rstrip('/').rsplit('/', 1)[-1]}"  # which may be a path
    if factor == "server":
        return server_words(level)
    return level if factor in ("path", "connection") else f"{factor.replace('_', ' ')} {level}"
