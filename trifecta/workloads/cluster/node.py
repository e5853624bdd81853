"""``python -m trifecta.workloads.cluster.node``: a lab of its own that runs the blocks it is given.

It is an ordinary run in a folder of the node's, whose planner is a pipe: what to run next comes on standard input, what
came of it goes to standard output. It ends when standard input is closed.
"""

from __future__ import annotations

import fcntl
import os
import queue
import re
import select
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trifecta.design.errors import CannotError, TrifectaError
from trifecta.workloads.cluster import wire
from trifecta.workloads.cluster.uploader import Uploader
from trifecta.workloads.cluster.wire import Message, NodeTask

if TYPE_CHECKING:
    from trifecta.analysis.planner import Decision, Stop
    from trifecta.contract.trial import TrialRow
    from trifecta.design.model import Cell, Study, Verdict

_BEAT_S = 5.0
_LOCK_S = 60.0  # so long another may need to end
_END_S = 15.0  # so long everything may take to come down
_LONGEST_LINE = 1 << 26
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class HeadGone(BaseException):
    """Standard input was closed: nobody waits for anything any more. No error that a trial could take for its own."""


class Pipe:
    """Standard input and output of the node, for orders and messages. What else is written goes to standard error."""

    def __init__(self) -> None:
        """Take standard output away from everybody else."""
        self._out = os.dup(1)
        os.dup2(2, 1)
        self._rest = b""
        self._writing = threading.Lock()
        self._orders: queue.Queue[bytes | None] = queue.Queue()
        self._closed = False

    def line(self) -> bytes:
        """The next line, before `listen`; HeadGone at the end."""
        while b"\n" not in self._rest:
            read = os.read(0, 1 << 16)
            if not read or len(self._rest) > _LONGEST_LINE:
                raise HeadGone
            self._rest += read
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def gone(self) -> bool:
        """Whether standard input was closed, before `listen`, where nothing is to come yet."""
        return bool(select.select([0], [], [], 0)[0]) and not self._rest

    def listen(self) -> None:
        """From now on orders are waited for, and the head is told that this process lives. Threads start here."""
        for target in (self._hear, self._beat):
            threading.Thread(target=target, daemon=True).start()

    def stop(self) -> bool:
        """Asked often while trials run: raises HeadGone once nobody waits."""
        if self._closed:
            raise HeadGone
        return False

    def order(self) -> bytes:
        """The next order, waited for; HeadGone at the end."""
        line = self._orders.get()
        if line is None:
            raise HeadGone
        return line

    def send(self, message: Message) -> None:
        """Say something to the head."""
        octets = memoryview(wire.encode(message))
        try:
            with self._writing:
                while octets:
                    octets = octets[os.write(self._out, octets) :]
        except BrokenPipeError:
            raise HeadGone from None

    def _hear(self) -> None:
        try:
            while True:
                self._orders.put(self.line())
        except HeadGone:
            self._closed = True
            self._orders.put(None)
        time.sleep(_END_S)
        os._exit(3)  # whatever hangs: everything of the sandbox goes with this process

    def _beat(self) -> None:
        try:
            while not self._closed:
                self.send(Message("beat"))
                time.sleep(_BEAT_S)
        except HeadGone:
            return


@dataclass(frozen=True)
class OutsideSandbox:
    """What a node has from before it was in its sandbox."""

    machine: str
    """See `_machine`."""
    putter: Uploader | None
    """What puts files of trials into an object store; None where the head takes them."""


class Ordered:
    """The planner of a node: what the head orders, and nothing else."""

    def __init__(self, study: Study, cells: Sequence[Cell], run: Path, pipe: Pipe, outside: OutsideSandbox) -> None:
        """``cells`` are those that can run here; ``run`` is the folder of its run."""
        self._machine = outside.machine
        self._study = study
        self._cells = {cell.key: cell for cell in cells}
        self._run = run
        self._pipe = pipe
        self._putter = outside.putter
        self._last: tuple[str, int] | None = None
        self._greeted = False

    def next(
        self, rows: Sequence[TrialRow], elapsed_ns: int, judged: Sequence[Verdict] | None = None
    ) -> Decision | Stop:
        """The next block that is ordered, after telling what came of the last."""
        from trifecta.analysis.planner import Decision, Stop

        if not self._greeted:
            self._greet()
        if self._last is not None and (short := self._tell(*self._last, rows)) is not None:
            self._pipe.send(Message("cannot", text=short))
            return Stop(short, "unmeasurable")
        order = wire.read_order(self._pipe.order())
        if order.cell not in self._cells:
            sentence = f"it cannot run the cell {order.cell}"
            self._pipe.send(Message("cannot", text=sentence))
            return Stop(sentence, "unmeasurable")
        self._last = order.cell, order.block
        return Decision(self._cells[order.cell], order.block, order.reason, order.first_trial)

    def _greet(self) -> None:
        from trifecta.store import facts

        self._greeted = True
        self._pipe.send(Message("ready", text=self._machine, facts=facts.read(self._run)))

    def _tell(self, cell: str, block: int, rows: Sequence[TrialRow]) -> str | None:
        """Send what a block left; why not, where it lacks a trial."""
        from trifecta.design import plan
        from trifecta.store import facts, node_blocks

        own = [row for row in rows if (row["cell"], row["block"]) == (cell, block)]
        if {row["arm"] for row in own} != set(plan.arms(self._study)):
            failed = facts.read(self._run).get("failed", [])
            return "; ".join(item["reason"] for item in failed) or "a block ended before its last trial"
        left = node_blocks.of_trials(self._run, [row["trial"] for row in own])
        try:
            stored = self._put(left) if self._putter is not None else {}
        except CannotError as error:
            return str(error)
        files = {name: path.read_bytes() for name, path in left if name not in stored}
        self._pipe.send(Message("ran", cell=cell, block=block, files=files, stored=stored))
        return None

    def _put(self, left: Sequence[tuple[str, Path]]) -> dict[str, str]:
        """Have what trials left, but for their rows, in the object store; what is there, SHA-256 by name."""
        from trifecta.store import manifest
        from trifecta.store.remote_files import object_name

        assert self._putter is not None
        own = [(path, name) for name, path in left if manifest.belongs(name)]
        stored = manifest.digests(own)
        self._putter.put({object_name(name, stored[name]): path for path, name in own})
        return stored


def _machine() -> str:
    """What tells this machine from others: the kernel's own name for this boot (random(4)); empty where it has none."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def main() -> int:
    """Run blocks until nobody wants any; the exit code."""
    try:
        pipe = Pipe()
        task = wire.read_asked(pipe.line())
        _as_here()
        place = Path(tempfile.gettempdir()) / f"trifecta-node-{os.getuid()}-{re.sub('[^A-Za-z0-9.-]', '_', task.node)}"
        lock = _locked(place.with_name(f"{place.name}.lock"), pipe)
        try:
            _work(task, place, pipe)
        finally:
            os.close(lock)
    except HeadGone:
        return 0
    except TrifectaError as error:
        print(f"trifecta: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _as_here() -> None:
    """Have programs the priority that they have in a run on one machine; CannotError where the kernel refuses.

    Ray starts its workers with niceness 15, which all that they start inherits.
    """
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    if nice <= 0:
        return
    try:
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    except PermissionError:
        sentence = f"its programs would run with niceness {nice}, which an ordinary user cannot lower"
        raise CannotError(f"{sentence}; start Ray there with RAY_worker_niceness=0 in its environment") from None


def _locked(path: Path, pipe: Pipe) -> int:
    """Have this node to ourselves: never two trials at a time. CannotError where another does not end."""
    until = time.monotonic() + _LOCK_S
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if pipe.gone():
                raise HeadGone from None
            if time.monotonic() > until:
                sentence = f"another trial runs there ({path} is locked)"
                raise CannotError(f"{sentence}; wait for it, or stop it") from None
            time.sleep(0.2)
        else:
            return descriptor


def _work(task: NodeTask, place: Path, pipe: Pipe) -> None:
    from trifecta.design.plan import leaves_groups
    from trifecta.design.study_file import parse_study
    from trifecta.lab import cgroups, sandbox

    machine = _machine()  # as it is outside of the sandbox
    study = parse_study(task.study, "study.yaml")
    shutil.rmtree(place, ignore_errors=True)  # of one that was killed
    place.mkdir(mode=0o700)
    putter = Uploader(task.store) if task.store else None
    if putter is not None:
        putter.expect(task.study)
    sandbox.enter(cgroups.forget if leaves_groups(study) else None)
    try:
        pipe.listen()
        _run(task.node, study, place / "run", pipe, OutsideSandbox(machine, putter))
    finally:
        if putter is not None:
            putter.close()
        shutil.rmtree(place, ignore_errors=True)


def _run(node: str, study: Study, folder: Path, pipe: Pipe, outside: OutsideSandbox) -> None:
    from trifecta.workloads.progress import NoProgress
    from trifecta.workloads.runner import run_study

    class Telling(NoProgress):
        """What a user should know goes to the head; the rest it sees by the blocks."""

        def note(self, text: str) -> None:
            """As `Progress.note`."""
            pipe.send(Message("told", text=text))

    ordered: list[Ordered] = []

    def planner(of: Study, cells: Sequence[Cell], _began_ns: int) -> Ordered:
        if not ordered:  # one that is given up leaves the planner as it is: the head is told by the block that fails
            ordered.append(Ordered(of, cells, folder, pipe, outside))
        return ordered[0]

    stop: Callable[[], bool] = pipe.stop
    run_study(study, folder, Telling(), stop, planner=planner, node=node)


if __name__ == "__main__":
    sys.exit(main())
