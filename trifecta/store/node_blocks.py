"""Blocks that a node of a cluster ran: kept in the head's run as a whole, or not at all.

A block is first staged: all files of its trials, under the names they get in the run, in a folder below ``gathered/``
that is synced before it has its own name. That is the commit point of the block. Then its trials are committed one by
one, as those of a run on one machine are, and the staged folder goes. Who was killed in between left the folder, and
whoever opens the run for writing goes on with it (`finish`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import cast

from trifecta.contract.trial import TrialRow
from trifecta.design.errors import CannotError
from trifecta.design.model import Trial
from trifecta.store import files, manifest

FOLDER = "gathered"
_KEPT = tuple(name for name in (*manifest.TABLES, *manifest.NESTED) if name not in manifest.CAPTURED)
Content = Mapping[str, bytes]
"""Files by their names from the run's folder."""
Take = Callable[[str, Sequence[tuple[Path, Path]], Mapping[str, str]], None]
_STORED = "stored.json"
"""In a staged folder: what the node has put into the run's object store, SHA-256 by name."""


def of_trials(run: Path, trials: Iterable[str]) -> list[tuple[str, Path]]:
    """The files of committed trials, by their names from the run's folder."""
    wanted = set(trials)
    entries: list[tuple[str, Path]] = []
    for folder in _KEPT:
        for entry in sorted((run / folder).iterdir()) if (run / folder).is_dir() else ():
            if _trial_of(entry.name) in wanted:
                name = f"{folder}/{entry.name}"
                entries += [(one, run / one) for one in (manifest.below(entry, name) if entry.is_dir() else [name])]
    return entries


def stage(
    run: Path, trials: Sequence[Trial], content: Content, node: str, stored: Mapping[str, str] | None = None
) -> list[TrialRow]:
    """Have a block of these trials on the disk as a whole; their rows, in order, which name their node.

    ``stored``: the files that the node has put into the run's object store itself, SHA-256 by name.

    CannotError where a file is none of a trial's, a trial is not as it was asked, or the disk refuses.
    """
    from trifecta.store import parquet, schema

    folder = run / FOLDER / trials[0].trial
    draft = files.temporary(folder)
    with files.disk_errors(run):
        shutil.rmtree(draft, ignore_errors=True)
        for name in stored or {}:
            _checked(name, trials, node)
        for name, octets in content.items():
            path = draft / _checked(name, trials, node)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(octets)
        paths = sorted((draft / "trials").iterdir(), key=lambda one: (len(one.name), one.name))
        rows = cast(list[TrialRow], parquet.select(schema.trials_select(parquet.sql_list(paths))))
        expected = [(one.trial, one.cell.key, one.block, one.arm, one.seed, node) for one in trials]
        actual = [(row["trial"], row["cell"], row["block"], row["arm"], row["seed"], row["node"]) for row in rows]
        if actual != expected or [path.stem for path in paths] != [one.trial for one in trials]:
            which = f"block {trials[0].block + 1} of {trials[0].cell.key}"
            raise CannotError(f"node {node} ran {which} otherwise than it was asked; install the same version there")
        if stored:
            (draft / _STORED).write_text(files.to_json(dict(stored)), encoding="utf-8")
        every = list(draft.rglob("*"))
        files.sync_all([draft, *every])
        draft.replace(folder)
        files.sync(folder.parent)
    return rows


def finish(run: Path, is_committed: Callable[[str], bool], take: Take) -> None:
    """Commit the trials of all blocks that are staged, those that are not committed yet, and clear what was staged."""
    place = run / FOLDER
    if not place.is_dir():
        return
    with files.disk_errors(run):
        for folder in sorted(place.iterdir(), key=lambda one: (len(one.name), one.name)):
            if not folder.name.startswith(files.TEMPORARY_PREFIX):
                _finish_block(run, folder, is_committed, take)
            shutil.rmtree(folder)
        place.rmdir()


def _finish_block(run: Path, staged: Path, is_committed: Callable[[str], bool], take: Take) -> None:
    by_trial: dict[str, list[str]] = {}
    listed = staged / _STORED
    stored: dict[str, str] = json.loads(listed.read_text(encoding="utf-8")) if listed.exists() else {}
    for path in sorted(staged.rglob("*")):
        if path.is_file() and path != listed:
            relative = path.relative_to(staged)
            by_trial.setdefault(_trial_of(relative.parts[1]), []).append(relative.as_posix())
    for trial in sorted(by_trial, key=lambda name: (len(name), name)):
        if is_committed(trial):
            continue
        pairs = []
        for name in by_trial[trial]:
            final = run / name
            final.parent.mkdir(parents=True, exist_ok=True)
            draft = files.temporary(final)
            shutil.copyfile(staged / name, draft)  # what is staged stays until the whole block is committed
            pairs.append((draft, final))
        take(trial, pairs, {name: one for name, one in stored.items() if _trial_of(name.split("/")[1]) == trial})


def _trial_of(name: str) -> str:
    """``t00012`` of ``t00012.parquet``, ``t00012-A.parquet`` or ``t00012``."""
    return name.partition(".")[0].partition("-")[0]


def _checked(name: str, trials: Sequence[Trial], node: str) -> PurePosixPath:
    """A name that a node gave; CannotError where it is no file of one of these trials."""
    path, known = PurePosixPath(name), {one.trial for one in trials}
    inside = not path.is_absolute() and ".." not in path.parts and len(path.parts) > 1 and path.parts[0] in _KEPT
    if not inside or _trial_of(path.parts[1]) not in known:
        raise CannotError(f"node {node} sent a file {name!r}, which is none of a trial; install the same version there")
    return path
