"""Starts runs from a script or a notebook, with progress, and opens what was measured.

The command line measures, in a process of its own: a lab's namespaces are entered by a process that has one thread, and
a notebook has many. So what is measured here is what ``trifecta run`` measures, and its options are the same.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from trifecta.api import reading
from trifecta.design.errors import CannotError, TrifectaError, UserError
from trifecta.design.model import Study

Names = str | Sequence[str]
"""One name, or several."""
Change = str | int | float | bool | Sequence[str | int | float] | Mapping[str, str | int | float]
"""What a factor or a field is set to; a sequence is several levels, a mapping a table."""
_COMMAND = (sys.executable, "-m", "trifecta.cli.child_process")
# A notebook's kernel asks for colours, which would be control characters in what is read here line by line.
_COLOURS = ("FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
_OF_PYTHON = "study.yaml"
_LOOK_S = 0.5  # between two looks for an interrupt
_UNSEEDED = 1  # of a study in which no seed was named
_NOTHING_COUNTS, _BAD_INPUT, _CANNOT, _INTERRUPTED = 1, UserError.exit_code, CannotError.exit_code, 130


def run(
    study: str | os.PathLike[str] | Study,
    *,
    out: str | os.PathLike[str] | None = None,
    changes: Mapping[str, Change] | None = None,
    compare: str | None = None,
    baseline: str | None = None,
    blocks: int | None = None,
    budget: str | None = None,
    seed: int | None = None,
    server: Names = (),
    client: Names = (),
    host: Names = (),
    cluster: str | None = None,
    store: str | None = None,
    with_threats: Names = (),
    without_threats: Names = (),
    capture: bool = False,
    yes: bool = False,
    quiet: bool = False,
) -> reading.Run:
    """Run a study, as ``trifecta run`` does, and open the run.

    ``study``: a file, the name of a bundled study, or a `Study` made by `trifecta.design.study`. ``changes`` is what
    ``--set`` takes, ``{"path": "clean", "paths.rough.loss": "5 %"}``; a list is several levels. The other options are
    those of the command, by their names; without a seed, here or in the study, one is drawn and recorded in the run.
    Progress goes to standard error, line by line, unless ``quiet``.

    UserError for bad input and CannotError where this machine cannot, in one line; a warning when no trial counts.
    An interrupt ends the run cleanly: what was finished is kept, and KeyboardInterrupt is raised after it.
    """
    with _as_argument(study) as (argument, display_name):
        _refuse_campaign(argument)
        if isinstance(study, Study) and study.seed == _UNSEEDED and seed is None and "seed" not in (changes or {}):
            seed = secrets.randbelow(2**31)  # as the command does for a file: equal seeds lose the same packets
        words = _common(
            out, changes, yes=yes, quiet=quiet, compare=compare, baseline=baseline, budget=budget, blocks=blocks,
            seed=seed,
        )  # fmt: skip
        words += _of_lab(
            server=server, client=client, host=host, cluster=cluster, store=store, with_threats=with_threats,
            without_threats=without_threats, capture=capture,
        )  # fmt: skip
        return _measure(["run", *words, "--", argument], display_name, quiet=quiet)


def race(
    *urls: str,
    out: str | os.PathLike[str] | None = None,
    changes: Mapping[str, Change] | None = None,
    compare: str | None = None,
    baseline: str | None = None,
    blocks: int | None = None,
    budget: str | None = None,
    seed: int | None = None,
    server: Names = (),
    client: Names = (),
    host: Names = (),
    cluster: str | None = None,
    store: str | None = None,
    with_threats: Names = (),
    without_threats: Names = (),
    capture: bool = False,
    ca: str | os.PathLike[str] | None = None,
    address: Names = (),
    i_own_this: bool = False,
    page: bool = False,
    browser: Names = (),
    yes: bool = False,
    quiet: bool = False,
) -> reading.Run:
    """Run the bundled study ``race``, or race the protocols of the servers at these URLs, and open the run.

    As `run`, with the options of ``trifecta race``. Of URLs ``yes=True`` is your consent to send what the command
    says that it sends: nobody is asked here.
    """
    words = _common(
        out, changes, yes=yes, quiet=quiet, compare=compare, baseline=baseline, budget=budget, blocks=blocks, seed=seed
    )
    words += _of_lab(
        server=server, client=client, host=host, cluster=cluster, store=store, with_threats=with_threats,
        without_threats=without_threats, capture=capture,
    )  # fmt: skip
    words += [] if ca is None else [f"--ca={os.fspath(ca)}"]
    words += _named("--address", address)
    words += ["--i-own-this"] if i_own_this else []
    words += ["--page"] if page else []
    words += _named("--browser", browser)
    return _measure(["race", *words, "--", *urls], quiet=quiet)


def _common(
    out: str | os.PathLike[str] | None,
    changes: Mapping[str, Change] | None,
    *,
    yes: bool,
    quiet: bool,
    **given: str | int | None,
) -> list[str]:
    """The options that every run has, as words of a command line."""
    words = [f"--set={name}={_written(value)}" for name, value in (changes or {}).items()]
    words += [] if out is None else [f"--out={os.fspath(out)}"]
    words += [f"--{name}={value}" for name, value in given.items() if value is not None]
    words += ["--yes"] if yes else []
    words += ["--quiet"] if quiet else []
    return [*words, "--json"]


def _of_lab(*, capture: bool, with_threats: Names, without_threats: Names, **given: Names | None) -> list[str]:
    """The options of studies whose server is ours."""
    given |= {"with": with_threats, "without": without_threats}
    words = [word for option, names in given.items() for word in _named(f"--{option}", names)]
    return words + (["--capture"] if capture else [])


def _named(option: str, names: Names | None) -> list[str]:
    every: Iterable[str] = [names] if isinstance(names, str) else names or ()
    return [f"{option}={name}" for name in every]


def _written(value: Change) -> str:
    """A value as ``--set`` reads it: several levels by commas, a table as JSON, which YAML holds."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return ",".join(_written(one) for one in value)
    return str(value)


@contextmanager
def _as_argument(study: str | os.PathLike[str] | Study) -> Iterator[tuple[str, str]]:
    """A study as the command line takes it, and what the run tells of it in its place: one made in Python is a file for
    as long as it runs, and of the name that it has in the run's folder.
    """
    if not isinstance(study, Study):
        yield os.fspath(study), ""
        return
    with tempfile.TemporaryDirectory(prefix="trifecta-study-") as folder:
        file = Path(folder) / _OF_PYTHON
        file.write_text(study.source, encoding="utf-8")
        yield str(file), _OF_PYTHON


def _refuse_campaign(argument: str) -> None:
    """UserError for many studies at once, which are no run that could be opened."""
    from trifecta import studies
    from trifecta.design.campaign import is_campaign

    if is_campaign(studies.read_text(studies.find(argument))):
        what = f"{argument} is a campaign, many studies one after the other"
        raise UserError(f"{what}; run it by `trifecta run {argument}`, and open the runs below its folder")


def _measure(words: Sequence[str], display_name: str = "", *, quiet: bool) -> reading.Run:
    """Carry out a command that measures, and open the run that it says it made."""
    environment = {name: value for name, value in os.environ.items() if name not in _COLOURS}
    with (
        _interrupts() as counted,
        tempfile.TemporaryFile("w+", encoding="utf-8") as answer,
        subprocess.Popen(
            [*_COMMAND, display_name, *words], stdin=subprocess.DEVNULL, stdout=answer, stderr=subprocess.PIPE,
            text=True, encoding="utf-8", errors="replace", env=environment | {"NO_COLOR": "1"}, start_new_session=True,
        ) as process,
    ):  # fmt: skip
        # A session of its own: an interrupt reaches this process only, which hands it on once.
        stderr, interrupted = _follow(process, counted, quiet=quiet)
        answer.seek(0)
        document = answer.read()
    if interrupted or process.returncode == _INTERRUPTED:
        raise KeyboardInterrupt(f"{_folder(document)} keeps what was finished; open it" if document.strip() else stderr)
    if process.returncode not in (0, _NOTHING_COUNTS) or not document.strip():
        raise _error(process.returncode, stderr)
    opened = reading.open(_folder(document))
    if process.returncode == _NOTHING_COUNTS:
        warnings.warn(f"{opened.path}: no trial is fit for a verdict; run.checks says why", stacklevel=3)
    return opened


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Interrupts that come meanwhile, one item each, in place of a KeyboardInterrupt wherever this process is then:
    one between two lines of this file would leave the run to itself, and wait for its end.

    Nothing of it in a thread, which gets none, and where somebody else handles them.
    """
    counted: list[int] = []
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield counted
        return
    signal.signal(signal.SIGINT, lambda number, _: counted.append(number))
    try:
        yield counted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _follow(process: subprocess.Popen[str], counted: Sequence[int], *, quiet: bool) -> tuple[str, bool]:
    """Show what a command says while it runs; its last line, and whether the user interrupted it.

    The first interrupt lets it end cleanly, the second ends it at once, as on a terminal.
    """
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_hear, args=(process, lines), daemon=True).start()
    last, interrupted, passed_on = "", False, 0
    while True:
        for _ in range(passed_on, len(counted)):
            passed_on += 1
            process.send_signal(signal.SIGINT)
        try:
            try:  # never waited for without an end: an interrupt just before one waits would be noticed only after it
                line = lines.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if line is None:
                return last, interrupted or bool(counted)
            last = line.strip() or last
            if not quiet:
                print(line, end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:  # of a handler that is not Python's own
            interrupted = True
            process.send_signal(signal.SIGINT)


def _hear(process: subprocess.Popen[str], lines: queue.SimpleQueue[str | None]) -> None:
    """Every line of its standard error, and None once it has ended."""
    assert process.stderr is not None
    for line in process.stderr:
        lines.put(line)
    process.wait()
    lines.put(None)


def _error(code: int, stderr: str) -> TrifectaError:
    """The error of a command as it would be of a function, with the line that it ended with."""
    message = stderr.removeprefix("trifecta: ") or f"the run ended without a word (exit code {code})"
    kinds: dict[int, type[TrifectaError]] = {_BAD_INPUT: UserError, _CANNOT: CannotError}
    return kinds.get(code, TrifectaError)(message)


def _folder(stdout: str) -> Path:
    """The run's folder, of the JSON that a command ends with."""
    document = json.loads(stdout)
    return Path(document["run"])
