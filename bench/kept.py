"""What a quick reproduction of all studies found, small enough to be kept: ``python -m bench.kept FOLDER``.

Machines go, and with them the folders of their runs. What is kept of one in ``bench/reproductions/`` is what
``trifecta reproduce --compare`` reads, so that a reproduction of another day or another machine can be held against it.
Left out are cells, resampled conclusions, and everything that names a folder or a command of the machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "reproductions"
_ABOUT = ("studies", "depth", "began", "elapsed_s", "version", "machine", "programs")
_STATEMENT = (
    "id", "study", "kind", "text", "source", "state", "reason", "metric", "is", "of", "form", "ratio", "difference",
    "low", "high", "blocks", "published",
)  # fmt: skip
_THREAT = ("threat", "title", "outcome")
_EFFECT = ("title", "factor", "on", "metric", "metric_label", "margin")
_ROW = ("arm", "reference", "place", "outcome", "ratio", "low", "high", "blocks")
_DIGITS = 6


def kept(document: Mapping[str, Any]) -> dict[str, Any]:
    """Of a ``reproduction.json`` that which another can be compared with; numbers to six digits."""
    return {
        "reproduction": _of(document["reproduction"], _ABOUT),
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
        "missing": document["missing"],
    }


def _of(one: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: _shorter(one[name]) for name in names if name in one}


def _shorter(value: Any) -> Any:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def main(arguments: Sequence[str]) -> int:
    """Write the file, named after when the reproduction began (UTC); 2 when there is none to be kept."""
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
    path.write_text(json.dumps(made, ensure_ascii=False, indent=0, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"bench/reproductions/{path.name}: {path.stat().st_size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
