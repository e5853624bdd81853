"""What a quick reproduction of all studies found, small enough to be kept: ``python -m bench.kept FOLDER``.

``python -m bench.kept --again`` judges what is kept by today's rules: statements that were withdrawn or mean something
else since are left out (``no_longer`` names them), the others get today's words and state from their intervals.

Machines go, and with them the folders of their runs. What is kept of one in ``bench/reproductions/`` is what
``trifecta reproduce --compare`` reads, so that a reproduction of another day or another machine can be held against it.
Of every answer it has the cells with the values of their blocks, so that each can be judged again from the file alone,
the arms and the checks that spoke up; of every run its name and trials. Left out are resampled conclusions, and
everything that names a folder or a command of the machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from trifecta import studies
from trifecta.analysis.published import Evaluation
from trifecta.conclude.reproduction import rejudge
from trifecta.conclude.reproduction.rows import evaluation_data

FOLDER = Path(__file__).resolve().parent / "reproductions"
_ABOUT = ("studies", "depth", "began", "elapsed_s", "version", "machine", "programs")
_STATEMENT = (
    "id", "study", "kind", "defined", "text", "source", "quote", "state", "reason", "metric", "over", "is", "of",
    "form", "ratio", "difference", "low", "high", "blocks", "margin", "confidence", "look", "published",
    "published_range", "size", "depends", "arms", "run", "cell", "cells", "rates", "checks",
)  # fmt: skip
_RUN = ("study", "name", "trials", "valid")
_THREAT = ("threat", "title", "outcome")
_EFFECT = ("title", "factor", "on", "metric", "metric_label", "margin")
_ROW = ("arm", "reference", "place", "outcome", "ratio", "low", "high", "blocks")
_DIGITS = 6
_DEEP = ("cells", "arms")


def kept(document: Mapping[str, Any]) -> dict[str, Any]:
    """Of a ``reproduction.json`` that which another can be compared with; numbers to six digits."""
    return {
        "reproduction": _of(document["reproduction"], _ABOUT) | _part(document["reproduction"]),
        "claims": [_of(one, _STATEMENT) for one in document["claims"]],
        "figures": [_of(one, _STATEMENT) for one in document["figures"]],
        "threats": [
            _of(threat, _THREAT)
            | {
                "effects": [
                    _of(effect, _EFFECT) | {"rows": [_of(row, _ROW) for row in effect["rows"]]}
                    for effect in threat["effects"]
                ]
            }
            for threat in document["threats"]
        ],
        "runs": [_of(run, _RUN) for run in document.get("runs", ())],
        **({"budget": document["budget"]} if "budget" in document else {}),
        "missing": document["missing"],
        "no_longer": [],
    }


def rejudged(document: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a reproduction, by today's statements and rules."""
    today = {one.id: one for study in studies.published().values() for one in study.statements}
    made, gone = dict(document), list(document.get("no_longer", ()))
    for kind in ("claims", "figures"):
        rows = []
        for row in document[kind]:
            statement = today.get(row["id"])
            if statement is None or row.get("defined") != statement.defined:
                gone.append(row["id"])
                continue
            told = evaluation_data(Evaluation(statement, row["state"], row["reason"]), (row["state"], ""), None)
            words = {name: told[name] for name in ("text", "source", "quote", "published", "published_range")}
            judged = rejudge.rejudge(cast(Any, {**row, **words}), statement)
            rows.append({name: _shorter(value) for name, value in judged.items()})
        made[kind] = [_of(row, _STATEMENT) for row in rows]
    return {**made, "no_longer": gone}


def _part(about: Mapping[str, Any]) -> dict[str, Any]:
    """Which runs were asked for, where not all were."""
    argv = list(about.get("argv", ()))
    only = [argv[place + 1] for place, word in enumerate(argv) if word == "--only"]
    return {"only": [name for names in only for name in names.split(",")]} if only else {}


def _of(one: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: _deep(one[name]) if name in _DEEP else _shorter(one[name]) for name in names if name in one}


def _deep(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _deep(one) for name, one in value.items()}
    return [_deep(one) for one in value] if isinstance(value, list) else _shorter(value)


def _shorter(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def main(arguments: Sequence[str]) -> int:
    """Write the file, named after when the reproduction began (UTC), or judge all again; 2 when there is none."""
    if list(arguments) == ["--again"]:
        for path in sorted(FOLDER.glob("*.json")):
            _write(path, rejudged(json.loads(path.read_text(encoding="utf-8"))))
        return 0
    if len(arguments) != 1:
        print("give the folder of one `trifecta reproduce all --quick`", file=sys.stderr)
        return 2
    source = Path(arguments[0]) / "reproduction.json"
    try:
        made = kept(json.loads(source.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{source}: {error}; give a folder of `trifecta reproduce`", file=sys.stderr)
        return 2
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{made['reproduction']['began'].replace(':', '')}.json"
    _write(path, made)
    return 0


def _write(path: Path, made: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(made, ensure_ascii=False, indent=0, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"bench/reproductions/{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
