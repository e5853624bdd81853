"""The panels of bourbon2020's figures: scenarios down, tests across, a mark a protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from trifecta.analysis.statements import Published
from trifecta.conclude.reproduction import own_bourbon2020 as own
from trifecta.conclude.reproduction import own_bourbon2020_published as said
from trifecta.conclude.reproduction.own_bourbon2020 import Cell, Scenario, ServiceUsage
from trifecta.conclude.reproduction.own_bourbon2020_published import PublishedRange
from trifecta.design import numbers
from trifecta.report.figures import scales
from trifecta.report.figures.small_multiples import Group, Mark, Panel, Row, Scale

Rows = Callable[[Sequence[Cell], Published], list[Row]]
Panels = Callable[[Scenario, Sequence[Cell]], Sequence[Panel]]
PARTS = {"whole": "A → B → A", "there": "A → B", "back": "B → A"}
_TIME = Scale("time", "box", scales.time_label)
_RATE = Scale("success", "point", lambda share: f"{share * 100:.0f} %", top=1.0)
_CPU = Scale("CPU", "bar", numbers.percent)
_MEMORY = Scale("memory", "bar", lambda octets: numbers.without_zeros(numbers.size(octets)) if octets else "0")
_NETWORKS = {"normal": "normal network", "lag": "lag", "lossy": "loss"}


def elapsed(cells: Sequence[Cell], about: Published) -> list[Row]:
    """Figure 14: boxes of whole cycles."""

    def mark(cell: Cell) -> Mark:
        return _box(cell, "whole", said.elapsed(cell, about))

    def panels(scenario: Scenario, here: Sequence[Cell]) -> list[Panel]:
        theirs = said.elapsed(here[0], about)
        title = f"{_title(scenario)} (published: {_between(theirs)})" if theirs else _title(scenario)
        return [Panel(title, _TIME, _groups(here, mark))]

    return _networks(cells, panels)


def success(cells: Sequence[Cell], about: Published) -> list[Row]:
    """Figure 15: success rates with their intervals."""

    def mark(cell: Cell) -> Mark:
        return _point(cell, said.success(cell, about))

    return _networks(cells, lambda scenario, here: [Panel(_title(scenario), _RATE, _groups(here, mark))])


def parts(cells: Sequence[Cell], _: Published) -> list[Row]:
    """Figure 18: boxes of the whole, of the way there and of the way back."""

    def panels(scenario: Scenario, here: Sequence[Cell]) -> list[Panel]:
        groups = [Group([_box(one, part) for one in here], name, _note(here)) for part, name in PARTS.items()]
        return [Panel(_title(scenario), _TIME, groups)]

    return _networks(cells, panels)


def distributed(cells: Sequence[Cell], _: Published) -> list[Row]:
    """Figure 19: times of both scenarios of a network, then their success rates."""

    def panels(scenario: Scenario, here: Sequence[Cell]) -> list[Panel]:
        return [
            Panel(f"{scenario.name}: time", _TIME, _groups(here, lambda one: _box(one, "whole"))),
            Panel(f"{scenario.name}: success", _RATE, _groups(here, _point)),
        ]

    return _networks(cells, panels)


def cpu(cells: Sequence[Cell], _: Published) -> list[Row]:
    """Figures 16 and 20: bars of each service's share of a core."""
    return _services(cells, _CPU, lambda one: one.cpu, lambda _: None)


def memory(cells: Sequence[Cell], about: Published) -> list[Row]:
    """Figures 17 and 21: bars of each service's memory."""
    return _services(cells, _MEMORY, lambda one: one.memory, lambda one: said.memory(one, about))


def _title(scenario: Scenario) -> str:
    return f"{scenario.name}: {'containers' if scenario.containers else 'native'}, {_NETWORKS[scenario.path]}"


def _between(theirs: PublishedRange) -> str:
    """``above 1.2 s``, ``200 ms to 1.2 s``."""
    low, high = (None if end is None else scales.time_label(end) for end in (theirs.low, theirs.high))
    return f"above {low}" if high is None else f"{low} to {high}"


def _band(theirs: PublishedRange | None) -> tuple[float | None, float | None] | None:
    return (theirs.low, theirs.high) if theirs and (theirs.low, theirs.high) != (None, None) else None


def _box(cell: Cell, part: str, theirs: PublishedRange | None = None) -> Mark:
    times = cell.elapsed.get(part)
    if times is None:
        return Mark(cell.arm, cell.test)
    tenth, quarter, middle, three, ninth = times.shares
    return Mark(cell.arm, cell.test, middle, (quarter, three), (tenth, ninth), band=_band(theirs))


def _point(cell: Cell, theirs: PublishedRange | None = None) -> Mark:
    rate = cell.success
    if rate is None or rate.rate is None:
        return Mark(cell.arm, cell.test)
    return Mark(cell.arm, cell.test, rate.rate, whisker=(rate.low, rate.high), band=_band(theirs))


def _bar(cell: Cell, use: ServiceUsage | None, theirs: PublishedRange | None) -> Mark:
    if use is None:
        return Mark(cell.arm, cell.test)
    return Mark(cell.arm, cell.test, use.middle, whisker=(use.least, use.most), band=_band(theirs))


def _groups(cells: Sequence[Cell], mark: Callable[[Cell], Mark]) -> list[Group]:
    """A group a payload of suite A, a number of clients of suite B."""
    groups = []
    for key in dict.fromkeys((one.payload_bytes, one.clients) for one in cells):
        here = [one for one in cells if (one.payload_bytes, one.clients) == key]
        name = f"{key[0]:,} B" if here[0].suite == "A" else f"{key[1]} clients"
        groups.append(Group([mark(one) for one in here], name, _note(here)))
    return groups


def _note(cells: Sequence[Cell]) -> str:
    """What stands where nothing was measured; the reason is in the table."""
    if not all(one.missing for one in cells):
        return ""
    return "not run" if cells[0].missing.startswith("not run") else cells[0].missing


def _networks(cells: Sequence[Cell], panels: Panels) -> list[Row]:
    """A row a network: in containers, and native beside it; panels of one axis together."""
    by_scenario = _by_scenario(cells)
    names = list(by_scenario)
    rows = []
    for pair in zip(names[::2], names[1::2], strict=True):
        sides = [by_scenario[one] for one in pair]
        shown = [panel for one, side in zip(pair, sides, strict=True) for panel in panels(one, side)]
        axes = list(dict.fromkeys(panel.scale for panel in shown))
        missing = _note([one for side in sides for one in side])
        said_so = f"{pair[0].name}, {pair[1].name}: {missing}" if missing else ""
        rows.append(Row(sorted(shown, key=lambda panel: axes.index(panel.scale)), said_so))
    return rows


def _services(
    cells: Sequence[Cell],
    scale: Scale,
    used: Callable[[Cell], Mapping[str, ServiceUsage]],
    theirs: Callable[[Cell], PublishedRange | None],
) -> list[Row]:
    """A row a scenario, a panel a service."""

    def bars(service: str) -> Callable[[Cell], Mark]:
        return lambda one: _bar(one, used(one).get(service), theirs(one))

    rows = []
    for scenario, here in _by_scenario(cells).items():
        missing = _note(here)
        panels: list[Panel] = []
        for service in own.SERVICES[here[0].suite]:
            title = f"ms{service}" if panels else f"{scenario.name}: ms{service}"
            panels.append(Panel(title, scale, _groups(here, bars(service))))
        rows.append(Row(panels, f"{scenario.name}: {missing}" if missing else ""))
    return rows


def _by_scenario(cells: Sequence[Cell]) -> dict[Scenario, list[Cell]]:
    by_name: dict[str, list[Cell]] = {}
    for one in cells:
        by_name.setdefault(one.scenario.name, []).append(one)
    return {here[0].scenario: here for here in by_name.values()}
