"""How the time of a request over one protocol differs from that over another, in a sentence."""

from __future__ import annotations

from trifecta.analysis.transport.differences import Difference, PartDifference
from trifecta.analysis.transport.parts import CPU


def sentence(difference: Difference, arm: str, reference: str) -> str:
    """One sentence: which is faster by how much, and the parts that make most of it, with their intervals."""
    total = difference.whole
    write = _Writer(max(total.arm_ns, total.reference_ns))
    if total.low_ns is not None and total.high_ns is not None and total.low_ns <= 0 <= total.high_ns:
        opening = f"A request over {arm} cannot be told from one over {reference}: {write.signed(total)}"
    elif write.number(total.difference_ns) == write.number(0):
        return f"A request took the same time over {arm} and {reference}, {write.number(total.arm_ns)} {write.unit}."
    else:
        more = "less" if total.difference_ns < 0 else "more"
        size = f"{write.number(abs(total.difference_ns))} {write.unit}"
        opening = f"A request took {size} {more} over {arm} than over {reference}{write.interval(total)}"
    largest = sorted(difference.parts, key=lambda one: -abs(one.difference_ns))
    least = max(0.1 * abs(total.difference_ns), 0.01 * total.reference_ns)
    shown = [one for one in largest[:4] if abs(one.difference_ns) >= least]
    words = ", ".join(f"{'CPU' if one.part == CPU else one.part} {write.signed(one)}" for one in shown)
    return f"{opening}{': ' if words else ''}{words}."


class _Writer:
    """Writes times in one unit, with a decimal: ms, or us where requests take less than 10 ms."""

    def __init__(self, longest_ns: float) -> None:
        self.unit, self.ns = ("ms", 1e6) if longest_ns >= 1e7 else ("µs", 1e3)

    def number(self, ns: float) -> str:
        return f"{ns / self.ns:.1f}"

    def signed(self, part: PartDifference) -> str:
        return f"{self._sign(part.difference_ns)} {self.unit}{self.interval(part)}"

    def interval(self, part: PartDifference) -> str:
        """`` [−12.1, −8.0]``; nothing with one block."""
        if part.low_ns is None or part.high_ns is None:
            return ""
        return f" [{self._sign(part.low_ns)}, {self._sign(part.high_ns)}]"

    def _sign(self, ns: float) -> str:
        return f"{ns / self.ns:+.1f}".replace("-", "\N{MINUS SIGN}")
