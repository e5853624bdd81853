"""``manifest.sha256``: what every file of a run held when it was written, as ``sha256sum`` writes it.

A line is added before a file gets its name, and is on the disk by then. Whoever is killed in between leaves a draft
that the last line fits: then the line before it counts. While a run goes on a file can have several lines, the last
counts; at its end there is one a file, so that ``sha256sum --check manifest.sha256`` says the same as Trifecta.

It shows that files are not what the run wrote: edited, cut short, mixed up, gone. Whoever edits a file and writes the
manifest anew is not found out: no key is in play.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trifecta.contract.digest import sha256_of
from trifecta.design.errors import UserError
from trifecta.store import digest_cache, files
from trifecta.store.digest_cache import digest

FILE = "manifest.sha256"
RESULTS = ("verdicts.parquet", "checks.parquet")
"""What is worked out of the trials: where it was changed, it is worked out again."""
TABLES = ("trials", "samples", "spans", "link", "resources", "visits", "fetches", "playback", "captures")
"""Folders in which every file is of a trial."""
NESTED = ("har", "frames", "qlog")
"""Those in which every trial has a folder."""
CAPTURED = ("captures", "qlog")
"""Those of both that only captured trials have; captures hold keys."""
DECISIONS = "planner.jsonl"
LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")
_TRIAL = re.compile(r"t\d{5,9}")


@dataclass(frozen=True)
class Fault:
    """A file of a run that is not what the run wrote: ``changed``, ``missing``, or ``added``."""

    name: str
    what: str


class Manifest:
    """The manifest of one run's folder."""

    def __init__(self, folder: Path) -> None:
        """Of the run in ``folder``, which need not have one."""
        self.folder = folder
        self.path = folder / FILE

    def exists(self) -> bool:
        """Whether there is one."""
        return self.path.is_file()

    def add(self, entries: Mapping[str, str]) -> None:
        """Add lines, by name from the folder; the caller brings them to the disk before the files get their names."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(f"{one}  {name}\n" for name, one in entries.items()))

    def entries(self) -> dict[str, list[str]]:
        """The digests of every file, in the order they were written; a line that a crash cut off is left out."""
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{self.path}: cannot be read ({_error_in_words(error)}); {COPY}") from None
        names_by_digest: dict[str, list[str]] = {}
        for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), 1):
            matched = LINE.fullmatch(line)
            if matched is None:
                raise UserError(f"{self.path}: line {number} is not a SHA-256 and a name; {COPY}")
            names_by_digest.setdefault(matched[2], []).append(matched[1])
        return names_by_digest

    def faults(self, unlisted: Collection[str] = ()) -> list[Fault]:
        """What is not as it was written; `RESULTS` too. UserError where the manifest itself cannot be read.

        ``unlisted``: folders and files of which the run that wrote it kept no lines.
        """
        entries = self.entries()
        found_faults = list(self._faults(entries, unlisted))
        # A run that still writes may have got on since the manifest was read.
        while found_faults and (now := self.entries()) != entries:
            entries = now
            found_faults = list(self._faults(entries, unlisted))
        return found_faults

    def _faults(self, entries: Mapping[str, list[str]], unlisted: Collection[str]) -> Iterator[Fault]:
        undone = {trial for name, known in entries.items() if (trial := _row(name)) and self._begun(name, known)}
        for name, known in entries.items():
            if trial_of(name) not in undone and (what := self._fault(name, known)):
                yield Fault(name, what)
        for name in self._stored_files():
            if name in entries or name.partition("/")[0] in unlisted:
                continue
            trial = trial_of(name)
            row = f"trials/{trial}.parquet"
            if trial is None or (trial not in undone and (name == row or row in entries)):
                yield Fault(name, "added")

    def _fault(self, name: str, known: list[str]) -> str | None:
        path = self.folder / name
        for _ in range(2):  # between the two looks a draft may have got its name
            try:
                if digest(path) == known[-1]:
                    return None
                what = "changed"
            except OSError:
                what = "missing"
            if self._draft_fits(name, known[-1]):
                before = known[-2] if len(known) > 1 else None
                return None if before is None or (what == "changed" and digest(path) == before) else what
        return what

    def _begun(self, row: str, known: list[str]) -> bool:
        """Whether a trial was to be committed, and was not."""
        return not (self.folder / row).exists() and self._draft_fits(row, known[-1])

    def _draft_fits(self, name: str, wanted: str) -> bool:
        try:
            return digest(files.temporary(self.folder / name)) == wanted
        except OSError:
            return False

    def _stored_files(self) -> Iterator[str]:
        """The files that lie in the folders of trials, and what the planner decided."""
        for table in (*TABLES, *NESTED):
            place = self.folder / table
            for entry in place.iterdir() if place.is_dir() else ():
                if entry.name.startswith(files.TEMPORARY_PREFIX):
                    continue
                if _TRIAL.match(entry.name) or table == "captures":  # of any name, they are dissected
                    yield from below(entry, f"{table}/{entry.name}") if table in NESTED else (f"{table}/{entry.name}",)
        if (self.folder / DECISIONS).exists():
            yield DECISIONS

    def gone(self) -> list[str]:
        """The trials that were committed and whose rows are gone."""
        entries = self.entries()
        rows = {trial: (name, known) for name, known in entries.items() if (trial := _row(name))}
        missing = {trial: row for trial, row in rows.items() if not (self.folder / row[0]).exists()}
        return [trial for trial, row in missing.items() if not self._begun(*row)]

    def mend(self) -> None:
        """Before this process writes the run: take back what was begun, forget trials whose rows are gone, and leave
        one line a file.

        Call it while the drafts of an interrupted trial are still there.
        """
        digests: dict[str, str] = {}
        for name, known in self.entries().items():
            trial = trial_of(name)
            if trial is not None and not (self.folder / f"trials/{trial}.parquet").exists():
                continue
            if not (self._draft_fits(name, known[-1]) and self._differs(name, known[-1])):
                digests[name] = known[-1]
            elif len(known) > 1:
                digests[name] = known[-2]
        self._write(digests)

    def _differs(self, name: str, wanted: str) -> bool:
        path = self.folder / name
        return not path.is_file() or digest(path) != wanted

    def compact(self) -> None:
        """One line a file, the last."""
        self._write({name: known[-1] for name, known in self.entries().items()})

    def _write(self, entries: Mapping[str, str]) -> None:
        files.write_text(self.path, "".join(f"{entries[name]}  {name}\n" for name in sorted(entries)))


COPY = "copy the run's folder again from where it was made"


def check(run: Path, *, resuming: bool = False, rows_only: bool = False) -> None:
    """UserError where a run's evidence is not what the run wrote; `RESULTS` are left to who reads them.

    A run of schema 1 has no manifest and passes. ``resuming``: trials that are gone are no fault, they are measured
    again. With it, and with ``rows_only``, what is still in the run's object store need not be here.
    """
    from trifecta.store import facts

    about = facts.read(run)
    manifest = Manifest(run)
    if not manifest.exists():
        if about["schema"] >= facts.WITH_MANIFEST:
            raise UserError(f"{manifest.path}: is missing; {COPY}")
        return
    digest_cache.load(run)
    unlisted = ("qlog", DECISIONS) if about["schema"] < facts.WITH_ALL_LINES else ()
    faults = [one for one in manifest.faults(unlisted) if one.name not in RESULTS]
    if resuming:
        gone = {_row(one.name) for one in faults if one.what == "missing"} - {None}
        faults = [one for one in faults if trial_of(one.name) not in gone]
    if (stored := about.get("stored")) is not None:
        away = [one for one in faults if one.what == "missing" and belongs(one.name)]
        faults = [one for one in faults if one not in away]
        if away and not faults and not resuming and not rows_only:
            many = "a file is" if len(away) == 1 else f"{len(away)} files are"
            raise UserError(f"{run}: {many} still in {stored}; `trifecta resume {run}` brings what is missing")
    if faults:
        raise UserError(_words(run, faults))
    digest_cache.keep(run, manifest.entries())


def absent(run: Path) -> dict[str, str]:
    """The files of committed trials that are in the run's store and not here: what each holds (SHA-256), by name."""
    from trifecta.store import facts

    if "stored" not in facts.read(run):
        return {}
    held = {name: known[-1] for name, known in Manifest(run).entries().items()}
    return {name: one for name, one in held.items() if belongs(name) and not (run / name).exists()}


def check_study(run: Path) -> None:
    """UserError where ``study.yaml`` is not the study that ``run.json`` names by its digest.

    It has no line in the manifest: a run that is given more blocks replaces both.
    """
    from trifecta.store import facts

    about, path = facts.read(run), run / "study.yaml"
    wanted = about.get("study", {}).get("sha256")
    if wanted is None or not path.exists() or not Manifest(run).exists():
        return
    if not path.is_file() or digest(path) != wanted:
        raise UserError(f"{path}: is not the study of this run (run.json, study.sha256); {COPY}")


def results_changed(run: Path) -> dict[str, str]:
    """Which of `RESULTS` are not what the run wrote, and what befell them; nothing where there is no manifest."""
    manifest = Manifest(run)
    if not manifest.exists():
        return {}
    entries = manifest.entries()
    changed = {name: what for name in RESULTS if name in entries and (what := manifest._fault(name, entries[name]))}
    return changed | {name: "added" for name in RESULTS if name not in entries and (run / name).exists()}


def _words(run: Path, faults: list[Fault]) -> str:
    """All of it in one line: the first by name with what to do, how many more there are."""
    rows = {_row(one.name) for one in faults if one.what == "missing"} - {None}
    # What lies beside a row that is gone is no news.
    shown_faults = [one for one in faults if one.name.startswith("trials/") or trial_of(one.name) not in rows]
    first = shown_faults[0]
    same = [one.name for one in shown_faults if one.what == first.what]
    names = ", ".join(str(run / name) if not i else name for i, name in enumerate(same[:3]))
    more = len(shown_faults) - len(same[:3])
    others = f", and {more} more that {'is' if more == 1 else 'are'} not what the run wrote" if more else ""
    return f"{names}{others}: {_fault_in_words(run, first, len(same))}; {_remedy(run, first, same)}"


def _fault_in_words(run: Path, fault: Fault, many: int) -> str:
    are = "is" if many == 1 else "are"
    if fault.what == "missing":
        return f"{are} missing, and {FILE} lists {'it' if many == 1 else 'them'}"
    if fault.what == "added":
        return f"{are} not in {FILE}: this run did not write {'it' if many == 1 else 'them'}"
    from trifecta.store import damage

    problem = damage.of_file(run / fault.name, fault.name.partition("/")[0]) if many == 1 else None
    return problem or f"{'was' if many == 1 else 'were'} changed after the run wrote {'it' if many == 1 else 'them'}"


def _remedy(run: Path, fault: Fault, same: list[str]) -> str:
    """What to do about a fault, and about the other files that are as it is: ``same``, it among them."""
    trial, them = trial_of(fault.name), "it" if len(same) == 1 else "them"
    if fault.what == "added":
        return f"remove {them}"
    if trial is None:
        return COPY
    row = f"trials/{trial}.parquet"
    one = len({trial_of(name) for name in same}) == 1
    again = f"measure {'that trial' if one else 'those trials'} again with `trifecta resume {run}`"
    if fault.what == "missing" and fault.name == row:
        return f"copy {them} again, or {again}"
    rows = str(run / row) if one else f"their rows in {run / 'trials'}"
    return f"copy {them} again, or remove {rows} and {again}"


def trial_of(name: str) -> str | None:
    """``t00012`` of ``samples/t00012.parquet``, ``captures/t00012-A-B.pcapng`` or ``har/t00012/0.har``."""
    matched = _TRIAL.match(name.partition("/")[2])
    return matched.group() if matched else None


def belongs(name: str) -> bool:
    """Whether it is a file of a trial beside its row: what a node may put into an object store itself."""
    return trial_of(name) is not None and not name.startswith("trials/")


def _row(name: str) -> str | None:
    """``t00012`` of ``trials/t00012.parquet``."""
    return trial_of(name) if name.startswith("trials/") else None


def digests(drafts: Iterable[tuple[Path, str]]) -> dict[str, str]:
    """By name the digests of files, and of every file of folders, that get their names next."""
    digest_by_name: dict[str, str] = {}
    for draft, name in drafts:
        if draft.is_dir():
            names = below(draft, name)
            digest_by_name |= {one: sha256_of(draft / one.removeprefix(f"{name}/")) for one in names}
        else:
            digest_by_name[name] = sha256_of(draft)
    return digest_by_name


def below(folder: Path, name: str) -> list[str]:
    """The files below a folder that is called ``name``, but for drafts."""
    there = (entry for entry in folder.rglob("*") if not entry.name.startswith(files.TEMPORARY_PREFIX))
    return sorted(f"{name}/{entry.relative_to(folder).as_posix()}" for entry in there if entry.is_file())


def _error_in_words(error: OSError | UnicodeDecodeError) -> str:
    return str(error.strerror) if isinstance(error, OSError) else "it is not UTF-8"
