"""With which programs, and with which code of Trifecta, the runs of a reproduction were made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trifecta.store import facts as run_facts

CODE = "code: "


def programs_of(folder: Path, folders: Iterable[str]) -> dict[str, str]:
    """The versions of servers, clients and the engine, and digests of the code, as the runs that lie there say.

    Runs that are not there, or not in ``folder``, say nothing. UserError when one is damaged.
    """
    versions: dict[str, str] = {}
    codes: dict[str, set[str]] = {}
    root = folder.resolve()
    for run in folders:
        file = (root / run / "run.json").resolve()
        if not file.is_relative_to(root) or not file.is_file():
            continue
        facts = run_facts.read(file.parent)
        for name, value in (facts.get("engine") or {}).items():
            versions[f"engine: {name}"] = str(value)
        for name, value in (facts.get("code") or {}).items():
            codes.setdefault(CODE + name, set()).add(str(value))
        for part in (facts.get("servers"), facts.get("clients"), facts.get("browsers")):
            for name, one in (part or {}).items():
                versions[name] = str(one.get("version")) if isinstance(one, dict) else str(one)
    # Runs of one reproduction that was gone on with may be of several.
    return versions | {name: " and ".join(sorted(values)) for name, values in codes.items()}
