"""A captured trial: where its links write, and what is kept of that (docs/capture.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from trifecta.contract.link import CaptureFacts, LinkConfig, LinkSummary
from trifecta.design.model import RequestsWorkload, Study, Trial
from trifecta.store.files import disk_errors
from trifecta.store.run import RunDirectory
from trifecta.trace.assemble import NotOfLink, assemble
from trifecta.trace.qlog import mend

LONGEST_LINGER_NS = 10_000_000_000  # of a link (docs/architecture.md, 1.3)
ONLY = ""  # the name of the wire of a lab that has only one


class TrialCapture:
    """The drafts of one trial; without ``capture`` in the study there are none, but keys and qlog where it asks."""

    def __init__(self, run: RunDirectory, study: Study, trial: Trial, workload: RequestsWorkload) -> None:
        """Make the folders: a container is given those that are there when it starts."""
        self._run = run
        self._trial = trial.trial
        self._on = study.capture
        self._keep_keys = workload.keylog
        self._wires: dict[str, tuple[Path, Path, Path]] = {}
        self._keylogs: list[Path] = []
        self.captures: dict[str, Path] = {}
        self.logs: dict[str, Path] = {}
        self.qlog_dir: Path | None = None
        self.keylog()
        if (self._on or workload.qlog) and trial.protocol == "h3":
            self.qlog_dir = run.path / "qlog" / trial.trial / trial.client
            with disk_errors(run.path):
                self.qlog_dir.mkdir(parents=True, exist_ok=True)

    def keylog(self, of: str = "client") -> Path | None:
        """Where the keys of a program go; None: nowhere. Kept for themselves only where the workload asks for them."""
        if not (self._on or (self._keep_keys and of == "client")):
            return None
        if self._keep_keys and of == "client":
            path = self._run.draft("captures", self._trial, ".keys").with_name(f"{self._trial}.keys")
        else:
            path = self._run.draft("captures", self._trial, f"-{of}.keys")
        if path not in self._keylogs:
            self._keylogs.append(path)
        return path

    def on_link(self, config: LinkConfig, wire: str = ONLY) -> LinkConfig:
        """The configuration of the link of a wire, with the files that it writes for a capture."""
        if not self._on:
            return config
        end = f"-{wire}" if wire else ""
        raw = self._run.draft("captures", self._trial, f"{end}.raw")
        pcapng = self._run.draft("captures", self._trial, f"{end}.pcapng")
        log = self._run.draft("link", self._trial, f"{end}.parquet")
        self._wires[wire] = raw, pcapng, log
        return replace(config, capture_file=str(raw), log_file=str(log))

    def lingering(self, config: LinkConfig, linger_ns: int) -> LinkConfig:
        """The configuration of a link that has its say and then goes on for so long, unless the rest is captured.

        For longer than it can, it does not at all: then the trial waits.
        """
        records_packets = config.capture_file or config.log_file
        return config if records_packets or linger_ns > LONGEST_LINGER_NS else replace(config, linger_ns=linger_ns)

    def finish(self, summaries: Mapping[str, LinkSummary | None], errors: list[str]) -> None:
        """Put the captures together, once the links have ended; what is in them is added to their summaries."""
        with disk_errors(self._run.path):
            for wire, (raw, pcapng, log) in self._wires.items():
                summary = summaries.get(wire)
                if summary is not None and log.exists():  # a link that died leaves a log without its end
                    self.logs[wire] = log
                if raw.exists():
                    self._assemble(wire, raw, pcapng, summary, errors)
                raw.unlink(missing_ok=True)
                if wire not in self.logs:
                    log.unlink(missing_ok=True)
            for keylog in self._keylogs:
                if keylog.name.startswith("."):
                    keylog.unlink(missing_ok=True)
            if self.qlog_dir is not None:
                for file in self.qlog_dir.glob("*.sqlog"):
                    mend(file, "client")
                for folder in (self.qlog_dir, self.qlog_dir.parent):
                    if not any(folder.iterdir()):
                        folder.rmdir()

    def _assemble(self, wire: str, raw: Path, pcapng: Path, summary: LinkSummary | None, errors: list[str]) -> None:
        try:
            assembled = assemble(raw, pcapng, keys=self._keylogs, log=self.logs.get(wire))
        except NotOfLink as error:
            pcapng.unlink(missing_ok=True)
            errors.append(f"the capture{f' of {wire}' if wire else ''} cannot be used: {error}")
            return
        self.captures[wire] = pcapng
        if summary is not None:
            written = None if self.qlog_dir is None else sum(1 for _ in self.qlog_dir.iterdir())
            summary.capture = CaptureFacts(
                packets=assembled.packets,
                comments=assembled.comments,
                keys=assembled.keys,
                whole=assembled.whole,
                client_qlog=written,
            )
