"""The run directory: where the numbers go (docs/architecture.md, section 2.1).

A trial is committed when its one-row file in ``trials/`` has its name; everything that belongs to it is on the disk
before that, its lines in the manifest (`trifecta.store.manifest`) too. After a crash or a power cut, finished trials
are whole and the rest is leftovers.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from trifecta.contract.codec import plain
from trifecta.contract.link import Links, LinkSummary
from trifecta.contract.resources import Reading
from trifecta.contract.run import Decision, RunDocument
from trifecta.contract.trial import TrialRow
from trifecta.contract.values import JsonObject
from trifecta.design.conformance import ConformanceResult
from trifecta.design.errors import CannotError, UserError
from trifecta.design.model import CheckResult, Verdict
from trifecta.design.tables import Schema
from trifecta.store import documents, files, manifest, node_blocks
from trifecta.store import facts as run_facts

_TRIAL_NAME = re.compile(r"t\d{5,9}")
_ALWAYS = ("trials", "samples", "spans", "link", "resources")  # other folders are made when a trial writes there
_FOLDERS = (*_ALWAYS, "logs", "pki")


@dataclasses.dataclass
class TrialFiles:
    """What a trial leaves besides its row; paths are the drafts the engine wrote, None when there is none."""

    samples: Path | None = None
    spans: Path | None = None
    visits: Path | None = None
    fetches: Path | None = None
    playback: Path | None = None
    har: Path | None = None
    """A folder of HAR files, one a visit."""
    frames: Path | None = None
    """A folder of film strips, a folder a visit."""
    link_summary: LinkSummary | Links | None = None
    link_logs: Mapping[str, Path] = dataclasses.field(default_factory=dict)
    """By the name of the wire; empty where there is only one."""
    captures: Mapping[str, Path] = dataclasses.field(default_factory=dict)
    """As ``link_logs``."""
    resources: Sequence[Reading] = ()


class RunDirectory:
    """A folder that holds one run. One process writes it at a time; any number read it."""

    def __init__(self, path: Path) -> None:
        """Use ``create`` or ``open`` instead."""
        self.path = path
        self.manifest = manifest.Manifest(path)
        self._lock: int | None = None

    @classmethod
    def create(cls, path: Path, facts: RunDocument, study_text: str) -> RunDirectory:
        """Make a new run directory; UserError when the folder holds something already, CannotError on a bad disk."""
        path = path.resolve()
        files.make_empty(path)
        run = cls(path)
        run._acquire()
        try:
            files.check_room(path)
            with files.disk_errors(path):
                for name in _FOLDERS:
                    (path / name).mkdir(mode=0o700 if name == "pki" else 0o777)
            files.write_text(path / "study.yaml", study_text)
            run.manifest.add({})
            run.write_facts({**facts, "schema": run_facts.SCHEMA_VERSION})
        except BaseException:
            with suppress(OSError):
                clear_unmade(path)  # so that the same command finds the folder empty again
            run.close()
            raise
        return run

    @classmethod
    def open(cls, path: Path, *, write: bool = False) -> RunDirectory:
        """Open an existing run; with ``write`` leftovers of an interrupted trial are removed and the run is locked.

        UserError where there is none, or one that this version cannot read.
        """
        path = path.resolve()
        if not (path / "run.json").is_file():
            from trifecta.store import folder_kinds

            raise UserError(f"{path} holds no run (no run.json); {folder_kinds.instead(path)}")
        run_facts.read(path)
        run = cls(path)
        if write:
            run._acquire()
            try:
                run._take_back()
                run._remove_leftovers()
                run._adopt()
                node_blocks.finish(path, run.is_committed, run.take_trial)
                files.check_room(path)
            except BaseException:
                run.close()
                raise
        return run

    def close(self) -> None:
        """Release the lock; the manifest of what was written has one line a file then."""
        if self._lock is not None:
            with suppress(OSError, CannotError, UserError):  # it says the same before
                if self.manifest.exists():
                    self.manifest.compact()
            os.close(self._lock)
            self._lock = None

    @property
    def facts(self) -> RunDocument:
        """The content of ``run.json``."""
        return run_facts.read(self.path)

    def write_facts(self, facts: RunDocument) -> None:
        """Replace ``run.json``."""
        with self._replacing("run.json") as (draft,):
            text = json.dumps(facts, indent=2, sort_keys=True, allow_nan=False) + "\n"
            draft.write_text(text, encoding="utf-8")

    @property
    def study_text(self) -> str:
        """The study as resolved, in YAML."""
        path = self.path / "study.yaml"
        if not path.exists():
            raise UserError(f"{path} is missing; the run's folder is damaged, copy it again")
        return documents.read_text(path, run_facts.REMEDY)

    def draft(self, folder: str, trial: str, suffix: str) -> Path:
        """The temporary name under which a file of a trial is written."""
        if not _TRIAL_NAME.fullmatch(trial):
            raise ValueError(f"not a trial name: {trial!r}")
        if folder not in _ALWAYS:
            with files.disk_errors(self.path):
                (self.path / folder).mkdir(mode=0o700 if folder == "captures" else 0o777, exist_ok=True)
        return files.temporary(self.path / folder / f"{trial}{suffix}")

    def commit_trial(self, row: TrialRow, attached: TrialFiles) -> None:
        """Commit a trial: all of its files on the disk first, the row last. CannotError when the disk refuses."""
        from trifecta.store import parquet, schema

        trial = row["trial"]
        row_path = self.path / "trials" / f"{trial}.parquet"
        if row_path.exists():
            raise RuntimeError(f"trial {trial} is committed already")
        drafts: list[tuple[Path, Path]] = []
        with files.disk_errors(self.path):
            for folder in ("samples", "spans", "visits", "fetches", "playback"):
                written: Path | None = getattr(attached, folder)
                if written is not None:
                    drafts.append((written, self.path / folder / f"{trial}.parquet"))
            by_wire_files = (("link", attached.link_logs, ".parquet"), ("captures", attached.captures, ".pcapng"))
            for folder, by_wire, suffix in by_wire_files:
                for wire, written in by_wire.items():
                    drafts.append((written, self.path / folder / f"{trial}{wire and '-' + wire}{suffix}"))
            keys = self.path / "captures" / f"{trial}.keys"
            if keys.exists():  # kept for themselves: the client wrote them under their own name
                drafts.append((keys, keys))
            if attached.link_summary is not None:
                draft = self.draft("link", trial, ".json")
                draft.write_text(files.to_json(plain(attached.link_summary)), encoding="utf-8")
                drafts.append((draft, self.path / "link" / f"{trial}.json"))
            if attached.resources:
                draft = self.draft("resources", trial, ".parquet")
                parquet.write(attached.resources, schema.RESOURCES, draft)
                drafts.append((draft, self.path / "resources" / f"{trial}.parquet"))
            row_draft = self.draft("trials", trial, ".parquet")
            parquet.write([row], schema.trials_of(row), row_draft)
            logs = self.path / "qlog" / trial  # as keys; those of servers come later (`add_files`)
            of_client = logs if logs.is_dir() else None
            for folder, document in (("har", attached.har), ("frames", attached.frames), ("qlog", of_client)):
                if document is not None:
                    files.sync_all([entry for entry in document.rglob("*") if entry.is_file()])
                    drafts.append((document, self.path / folder / trial))
            files.sync_all([row_draft, *(draft for draft, _ in drafts)])
            announced = self._announce([(row_draft, row_path), *drafts])
            for draft, final in drafts:
                draft.replace(final)
            files.sync_all({final.parent for _, final in drafts} | announced)
            files.replace_synced(row_draft, row_path)

    def take_trial(
        self, trial: str, drafts: Sequence[tuple[Path, Path]], stored: Mapping[str, str] | None = None
    ) -> None:
        """Commit a trial that was run elsewhere: its files, of which its row is one, lie beside their names as drafts.

        ``stored``: its files that are in the run's object store and not here, SHA-256 by name.

        CannotError when the disk refuses.
        """
        row_path = self.path / "trials" / f"{trial}.parquet"
        with files.disk_errors(self.path):
            files.sync_all([draft for draft, _ in drafts])
            if stored:
                self.manifest.add(stored)
            files.sync_all(self._announce(drafts))
            for draft, final in drafts:
                if final != row_path:
                    draft.replace(final)
            files.sync_all({final.parent for _, final in drafts})
            files.replace_synced(files.temporary(row_path), row_path)

    def rewrite_row(self, row: TrialRow) -> None:
        """Replace the row of a committed trial, which the run as a whole has judged since; its files stay."""
        from trifecta.store import parquet, schema

        with files.disk_errors(self.path):
            draft = self.draft("trials", row["trial"], ".parquet")
            parquet.write([row], schema.trials_of(row), draft)
            final = self.path / "trials" / f"{row['trial']}.parquet"
            files.sync_all([draft])
            files.sync_all(self._announce([(draft, final)]))
            files.replace_synced(draft, final)

    def add_files(self, drafts: Sequence[tuple[Path, Path]]) -> None:
        """Give files of committed trials their names that are whole only after them: qlog of servers."""
        if not drafts:
            return
        with files.disk_errors(self.path):
            files.sync_all([draft for draft, _ in drafts])
            announced = self._announce(drafts)
            files.sync_all(announced)
            for draft, final in drafts:
                draft.replace(final)
            files.sync_all({final.parent for _, final in drafts})

    def is_committed(self, trial: str) -> bool:
        """Whether a trial of that name is whole."""
        return (self.path / "trials" / f"{trial}.parquet").exists()

    def discard_trial(self, trial: str) -> None:
        """Remove what an abandoned trial left; its name may be used again."""
        if (self.path / "trials" / f"{trial}.parquet").exists():
            raise RuntimeError(f"trial {trial} is committed, it cannot be discarded")
        for name, entry in self._of_trials():
            if name == trial:
                _remove(entry)

    def trial_names(self) -> list[str]:
        """Names of the committed trials, in order."""
        try:
            entries = list(os.scandir(self.path / "trials"))
        except FileNotFoundError:
            raise UserError(f"{self.path / 'trials'} is missing; the run's folder is damaged, copy it again") from None
        names = (entry.name.removesuffix(".parquet") for entry in entries)
        return sorted((name for name in names if _TRIAL_NAME.fullmatch(name)), key=lambda name: (len(name), name))

    def rows(self) -> list[TrialRow]:
        """The rows of all committed trials, in order of their names; UserError where they are not as written."""
        from trifecta.store import damage, parquet, schema

        manifest.check(self.path, rows_only=True)
        paths = [self.path / "trials" / f"{name}.parquet" for name in self.trial_names()]
        if not paths:
            return []
        with damage.naming_damaged_file(self.path):
            return cast(list[TrialRow], parquet.select(schema.trials_select(parquet.sql_list(paths))))

    def write_checks(self, checks: Iterable[CheckResult]) -> None:
        """Replace ``checks.parquet``: every check of every trial and of the run."""
        from trifecta.store import schema

        self._write_records("checks.parquet", checks, schema.CHECKS)

    def write_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Replace ``verdicts.parquet``."""
        from trifecta.store import schema

        self._write_records("verdicts.parquet", verdicts, schema.VERDICTS)

    def end_block(self, verdicts: Iterable[Verdict], decision: JsonObject) -> None:
        """What `write_verdicts` and `log_decision` do, in one wait for the disk: trials may be a tenth of a second."""
        from trifecta.store import schema

        with self._replacing("verdicts.parquet", manifest.DECISIONS) as (judged, decisions):
            self._draft_records(judged, verdicts, schema.VERDICTS)
            self._draft_decision(decisions, decision)

    def verdicts(self) -> list[Verdict]:
        """The verdicts last written; none before the first block."""
        return [Verdict(**record) for record in self._read_records("verdicts.parquet")]

    def checks(self) -> list[CheckResult]:
        """The checks last written."""
        return [CheckResult(**record) for record in self._read_records("checks.parquet")]

    def write_conformance(self, results: Iterable[ConformanceResult]) -> None:
        """Replace ``conformance.parquet``: what the probe before the trials found; its evidence is whole by then."""
        from trifecta.store import schema

        evidence = self.path / "conformance"
        if evidence.is_dir():
            with files.disk_errors(self.path):
                files.sync_all([entry for entry in evidence.rglob("*") if entry.is_file()])
                files.sync_all(self._announce([(evidence, evidence)]))
        self._write_records("conformance.parquet", results, schema.CONFORMANCE)

    def conformance(self) -> list[ConformanceResult]:
        """What the probe before the trials found; none when there was no probe."""
        return [ConformanceResult(**record) for record in self._read_records("conformance.parquet")]

    def log_decision(self, decision: JsonObject) -> None:
        """Add what the planner decided, and why, to ``planner.jsonl``."""
        with self._replacing(manifest.DECISIONS) as (draft,):
            self._draft_decision(draft, decision)

    def _draft_decision(self, draft: Path, decision: JsonObject) -> None:
        # Written anew, not appended to: its line in the manifest is of the file as a whole. A line takes 200 octets,
        # and 300 for each comparison that the block changed.
        path = self.path / manifest.DECISIONS
        known = path.read_bytes() if path.exists() else b""
        draft.write_bytes(known[: known.rfind(b"\n") + 1] + files.to_json(decision).encode() + b"\n")

    def decisions(self) -> list[Decision]:
        """What the planner decided so far; a line cut off by a crash is left out."""
        path = self.path / manifest.DECISIONS
        if not path.exists():
            return []
        remedy = "copy it again, or remove it: only the time that the run took so far is lost with it"
        all_decisions: list[Decision] = []
        for number, line in enumerate(documents.read_text(path, remedy).splitlines(), 1):
            try:
                decision = json.loads(line)
            except (ValueError, RecursionError):
                continue  # cut off by a crash; its block is in the trials
            if not isinstance(decision, dict) or type(decision.get("elapsed_ns")) is not int:
                raise UserError(f"{path}: line {number} is not a decision with a whole number elapsed_ns; {remedy}")
            all_decisions.append(cast(Decision, decision))
        return all_decisions

    def _write_records(
        self, name: str, records: Iterable[CheckResult | Verdict | ConformanceResult], table_schema: Schema
    ) -> None:
        with self._replacing(name) as (draft,):
            self._draft_records(draft, records, table_schema)

    def _draft_records(
        self, draft: Path, records: Iterable[CheckResult | Verdict | ConformanceResult], table_schema: Schema
    ) -> None:
        from trifecta.store import parquet

        parquet.write((dataclasses.asdict(record) for record in records), table_schema, draft)

    def _read_records(self, name: str) -> list[dict[str, Any]]:
        from trifecta.store import damage, parquet, schema

        path = self.path / name
        if not path.exists():
            return []
        with damage.naming_damaged_file(self.path):
            records = parquet.read(path)
        columns = {"verdicts": schema.VERDICTS, "checks": schema.CHECKS, "conformance": schema.CONFORMANCE}
        names = columns[path.stem].names
        return [{column: record.get(column) for column in names} for record in records]

    @contextmanager
    def _replacing(self, *names: str) -> Iterator[Sequence[Path]]:
        """As `files.drafts_of`, with lines in the manifest."""
        paths = [self.path / name for name in names]

        def announce(drafts: Sequence[Path]) -> None:
            for waiting in self._announce(list(zip(drafts, paths, strict=True))):
                files.sync(waiting)

        with files.drafts_of(paths, announce) as drafts:
            yield drafts

    def _announce(self, drafts: Sequence[tuple[Path, Path]]) -> set[Path]:
        """Add what is about to get its name to the manifest; what must be on the disk before it does."""
        if not self.manifest.exists():  # of a run of schema 1
            return set()
        named = [(draft, final.relative_to(self.path).as_posix()) for draft, final in drafts]
        self.manifest.add(manifest.digests(named))
        return {self.manifest.path}

    def _take_back(self) -> None:
        """Take out of the manifest what was begun when the run was killed; keep in mind what trials were removed."""
        if not self.manifest.exists():
            return
        manifest.check(self.path, resuming=True)
        if gone := self.manifest.gone():
            known = self.facts
            self.write_facts(known | {"removed": list(dict.fromkeys([*known.get("removed", []), *gone]))})
        self.manifest.mend()

    def _acquire(self) -> None:
        """Lock the folder for this process; the kernel releases the lock when the process ends, however it ends."""
        import fcntl

        with files.disk_errors(self.path):
            descriptor = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise CannotError(f"{self.path} is being written by another run; wait for it to end") from error
        self._lock = descriptor

    def _remove_leftovers(self) -> None:
        """Remove drafts, and files of trials that were not committed; make folders that earlier versions had not."""
        committed = set(self.trial_names())
        with files.disk_errors(self.path):
            for folder in _ALWAYS:
                (self.path / folder).mkdir(exist_ok=True)
            for draft in self.path.glob(files.TEMPORARY_PREFIX + "*"):
                _remove(draft)
            for name, entry in self._of_trials():
                if entry.name.startswith(files.TEMPORARY_PREFIX) or (
                    _TRIAL_NAME.fullmatch(name) and name not in committed
                ):
                    _remove(entry)

    def _adopt(self) -> None:
        """Keep what servers logged of committed trials when the run was killed: they have ended, it is whole."""
        drafts = (self.path / "qlog").glob(f"t*/*/{files.TEMPORARY_PREFIX}*")
        self.add_files([(one, one.with_name(one.name.removeprefix(files.TEMPORARY_PREFIX))) for one in sorted(drafts)])

    def _of_trials(self) -> list[tuple[str, Path]]:
        """What lies in the folders of trials, drafts too, with the name of its trial."""
        places = (self.path / name for name in (*manifest.TABLES, *manifest.NESTED))
        entries = [entry for place in places if place.is_dir() for entry in place.iterdir()]
        return [(re.split(r"[.-]", entry.name.removeprefix(files.TEMPORARY_PREFIX))[0], entry) for entry in entries]


def clear_unmade(path: Path) -> None:
    """Remove what `RunDirectory.create` left when it was killed before there was a run: empty folders and the study.

    For folders below one of our own; what holds anything else stays as it is.
    """
    if not path.is_dir() or (path / "run.json").exists():
        return
    entries = list(path.iterdir())
    known = {*_FOLDERS, "study.yaml", manifest.FILE, ".lock"}
    for entry in entries:
        ours = entry.name in known or entry.name.startswith(files.TEMPORARY_PREFIX)
        if not ours or (entry.is_dir() and any(entry.iterdir())):
            return
    for entry in entries:
        _remove(entry)


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
