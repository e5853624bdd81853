"""Files of a run that nodes of a cluster put into an object store themselves, while only rows of trials came here.

``run.json`` names the place (``stored``), the manifest says what each file holds. An object is called after its file
and what that holds, so a node that was given up for lost and puts a block late overwrites nothing that counts. In the
end `bring` fetches what is missing here, and `complete` makes the place hold the whole run and nothing else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath

from trifecta.design.errors import CannotError
from trifecta.store import facts, files, manifest
from trifecta.store.exports import error_messages, object_store, tables
from trifecta.store.exports.object_store import Place

_AT_A_TIME = 8  # they wait for the network
_BATCH = 64  # files that share their waits for the disk
_ABOUT = ("study.yaml", facts.FILE, manifest.FILE)
"""What is no file of a trial and has no line in the manifest; the last is put last: with it the run is whole there."""
_OF_TRIAL = re.compile(r"[a-z]+/t\d{5,9}\b.*-[0-9a-f]{16}(\.[A-Za-z0-9]+)?")


def place_of(url: str, run: Path) -> str:
    """Where in a store a run's files go: below a name of its own, which no other run has."""
    return f"{url.rstrip('/')}/{tables.identity(run).run}"


def prepare(where: str, study: str) -> None:
    """Have a run's study there, as it is now, by which nodes know the place; CannotError where that cannot be."""
    with object_store.clear(where, "fix it, then continue with `trifecta resume`"):
        object_store.opened(where, patient=True).put("study.yaml", study.encode())


def object_name(name: str, digest: str) -> str:
    """What the object of a trial's file is called: ``samples/t00012-0123456789abcdef.parquet``."""
    path = PurePosixPath(name)
    return path.with_name(f"{path.stem}-{digest[:16]}{path.suffix}").as_posix()


def put_all(place: Place, what: Sequence[tuple[str, Path]]) -> None:
    """Put files under these names, several at a time; raises what the first raises that cannot be put."""
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        for _ in pool.map(lambda one: place.put(*one), what):
            pass


def bring(run: Path) -> int:
    """Have every file of a run here; how many came. The caller holds the run's lock.

    CannotError where the store does not give one, or gives another than was measured.
    """
    wanted = manifest.absent(run)
    if not wanted:
        return 0
    url = facts.read(run)["stored"]
    with (
        object_store.clear(url, f"see to it, then `trifecta resume {run}` brings the rest"),
        files.disk_errors(run),
        ThreadPoolExecutor(_AT_A_TIME) as pool,
    ):
        place = _place_of_run(url)
        every = list(wanted.items())
        for begin in range(0, len(every), _BATCH):
            pairs = list(pool.map(partial(_fetched, place, run), every[begin : begin + _BATCH]))
            files.sync_all([draft for draft, _ in pairs])
            for draft, final in pairs:
                draft.replace(final)
            files.sync_all({final.parent for _, final in pairs})
    return len(wanted)


def _place_of_run(url: str) -> Place:
    """The run's place; CannotError where it is not found: what is not there now need not be gone."""
    place = object_store.opened(url, patient=True, make=False)
    try:
        place.get("study.yaml")
    except FileNotFoundError:
        sentence = "the run's files are not found there; see that it is the same store (is it mounted? AWS_ENDPOINT?)"
        raise CannotError(f"{error_messages.place(url)}: {sentence}") from None
    return place


def _fetched(place: Place, run: Path, one: tuple[str, str]) -> tuple[Path, Path]:
    """A file as a draft, and the name that it gets."""
    name, digest = one
    stored = object_name(name, digest)
    trial = manifest.trial_of(name)
    remedy = f"remove {run / 'trials' / f'{trial}.parquet'} and measure that trial again with `trifecta resume {run}`"
    try:
        content = place.get(stored)
    except FileNotFoundError:
        raise CannotError(f"{error_messages.place(place.url)}/{stored}: is gone; {remedy}") from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise CannotError(f"{error_messages.place(place.url)}/{stored}: is not what the node measured; {remedy}")
    final = run / name
    final.parent.mkdir(parents=True, exist_ok=True)
    # Not the draft of that name: a manifest whose last line fits a draft takes the file for one that was never written.
    draft = final.with_name(f"{files.TEMPORARY_PREFIX}brought-{final.name}")
    draft.write_bytes(content)
    return draft, final


def is_complete(run: Path) -> bool:
    """Whether the run's store has its manifest as it is here: that is put there last."""
    url = facts.read(run)["stored"]
    with object_store.clear(url, f"see to it, then `trifecta resume {run}` goes on"):
        place = _place_of_run(url)
        try:
            return place.get(manifest.FILE) == (run / manifest.FILE).read_bytes()
        except FileNotFoundError:
            return False


def complete(run: Path) -> None:
    """Have the run's store hold all of the run, and none of what lost nodes left there. It is whole here."""
    url = facts.read(run)["stored"]
    listed = manifest.Manifest(run)
    listed.compact()  # as it is when the run is closed
    entries = listed.entries()
    with object_store.clear(url, f"see to it, then `trifecta resume {run}` puts the rest"):
        place = _place_of_run(url)
        there = place.names("")
        wanted = {object_name(name, known[-1]): run / name for name, known in entries.items() if manifest.belongs(name)}
        put_all(place, [(name, path) for name, path in wanted.items() if name not in there])
        put_all(place, [(name, run / name) for name in entries if not manifest.belongs(name) and (run / name).exists()])
        strays = sorted(name for name in there - set(wanted) if _OF_TRIAL.fullmatch(name))
        place.delete(strays)
        for name in _ABOUT:
            place.put(name, run / name)
