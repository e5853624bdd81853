"""A study written in Python: the same fields, units and checks as a study file.

>>> from trifecta.design.study import path, requests, study
>>> rough = path("rough", rtt="50 ms", rate="20 Mbit/s", queue="1 bdp", loss="2 %")
>>> race = study(
...     "my-race",
...     workload=requests(response="10 kB", in_flight=10, requests=200),
...     paths=[rough],
...     factors={"path": ["rough"], "connection": ["new", "reused"]},
...     budget="3 min",
... )
>>> race.paths["rough"].rtt_ns
50000000

``to_yaml(race)`` is the study as a file; reading that file gives an equal study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trifecta.design.document import Document
from trifecta.design.model import PathSpec, Study
from trifecta.design.paths import read_path
from trifecta.design.resolve import Surroundings, resolve


@dataclass(frozen=True)
class Workload:
    """The fields of a workload, as in a study file; made by :func:`requests`, :func:`chain`, ..."""

    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Path:
    """The name and the fields of a path, as in a study file; made by :func:`path`."""

    name: str
    fields: Mapping[str, Any]

    def spec(self) -> PathSpec:
        """The path alone, validated: what a link is asked to do."""
        document = Document(tree=dict(self.fields), name=f"path {self.name}")
        return read_path(self.name, document.root())[0]


def requests(**fields: Any) -> Workload:
    """The workload ``requests``: ``response="10 kB"``, ``in_flight=10``, ``requests=400``, ``duration="1 s"``, ..."""
    return Workload({"kind": "requests", **fields})


def chain(**fields: Any) -> Workload:
    """The workload ``chain``: ``depth=4``, ``request="1 kB"``, ``inside="HTTP/2"``, ``hosts=4``, ..."""
    return Workload({"kind": "chain", **fields})


def fan_in(**fields: Any) -> Workload:
    """The workload ``fan-in``: ``clients=50``, ``response="128 B"``, ``requests=2000`` (of each client), ..."""
    return Workload({"kind": "fan-in", **fields})


def sba_registration(**fields: Any) -> Workload:
    """The workload ``sba-registration``: ``loop="open"``, ``rate="100/s"``, ``hosts=2``, ``requests=500``, ..."""
    return Workload({"kind": "sba-registration", **fields})


def path(name: str, **fields: Any) -> Path:
    """A path: ``rtt="50 ms"``, ``rate="20 Mbit/s"``, ``queue="1 bdp"``, ``loss="2 %"``, ...

    A value for each direction is a mapping: ``loss={"forward": "1 %", "backward": "2 %"}``.
    """
    return Path(name, fields)


def study(
    name: str,
    *,
    workload: Workload,
    factors: Mapping[str, Sequence[Any]] | None = None,
    paths: Sequence[Path] = (),
    surroundings: Surroundings | None = None,
    **fields: Any,
) -> Study:
    """A validated study; ``fields`` are the other fields of a study file (``title``, ``budget``, ``blocks``, ...).

    Raises :class:`~trifecta.design.errors.UserError` with one line for the first fault.
    """
    tree: dict[str, Any] = {"study": name, **fields, "workload": _as_document(workload.fields)}
    if factors is not None:
        tree["factors"] = _as_document(factors)
    if paths:
        tree["paths"] = {each.name: _as_document(each.fields) for each in paths}
    return resolve(Document(tree=tree, name=f"study {name}"), surroundings)


def to_yaml(of: Study) -> str:
    """The study as the text of a study file, every default written out."""
    return of.source


def _as_document(value: Any) -> Any:
    """Mappings and sequences as the dicts and lists of a document."""
    if isinstance(value, Mapping):
        return {str(key): _as_document(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_as_document(item) for item in value]
    return value
