"""Draws many figures at once, some of them in a process beside this one: matplotlib keeps a core busy by itself.

The other process is this module run as a program. It gets pickled functions on its standard input, one at a time, and
answers each with the figure or with what went wrong. (A pool of ``multiprocessing`` would run the caller's own script
again, or copy DuckDB's locks without the threads that hold them.)
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread
from typing import IO

from trifecta.design import naming
from trifecta.report.figures import svg
from trifecta.store import cpu_count

Draw = Callable[[], str]
"""Draws one figure: a function of a module with its arguments bound, which can be pickled."""
FEWEST = 60
"""Figures below which the start of a process (1 s: it imports matplotlib) is not worth it."""


class Drawer:
    """Draws figures, in this process alone where there is no other."""

    def __init__(self, other: subprocess.Popen[bytes] | None = None) -> None:
        """With another process, which knows what arms are called."""
        self._other = other

    def draw(self, figures: Sequence[Draw]) -> list[str]:
        """The figures, in their order; what fails in the other process is raised here."""
        left, drawn, failed = deque(enumerate(figures)), dict[int, str](), list[Exception]()

        def beside() -> None:
            with suppress(IndexError):
                while True:
                    number, draw = left.popleft()
                    try:
                        drawn[number] = self._ask(draw)
                    except Exception as error:
                        failed.append(error)
                        left.clear()

        thread = Thread(target=beside) if self._other else None
        if thread:
            thread.start()
        try:
            with suppress(IndexError):
                while True:
                    number, draw = left.pop()
                    drawn[number] = draw()
        finally:
            left.clear()
            if thread:
                thread.join()
        if failed:
            raise failed[0]
        return [drawn[number] for number in range(len(figures))]

    def _ask(self, draw: Draw) -> str:
        assert self._other is not None
        assert self._other.stdin is not None
        assert self._other.stdout is not None
        _send(self._other.stdin, draw)
        answer = pickle.load(self._other.stdout)  # noqa: S301 - of the process that we started
        if isinstance(answer, Exception):
            raise answer
        return str(answer)


@contextmanager
def drawer(figures: int, compare: str, arms: Sequence[str]) -> Iterator[Drawer]:
    """What draws about so many ``figures`` in which arms are levels of ``compare`` (`naming.arms_of`)."""
    if figures < FEWEST or cpu_count.usable() < 2:
        yield Drawer()
        return
    command = [sys.executable, "-m", __name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()) as other:
        assert other.stdin is not None
        _send(other.stdin, (compare, tuple(arms)))  # it imports what it draws with while the first queries run
        try:
            yield Drawer(other)
        finally:
            with suppress(BrokenPipeError):  # it is gone, which whoever wanted a figure of it was told
                other.stdin.close()  # its end, as that of this process would be


def _environment() -> dict[str, str]:
    """Where this process finds its modules the other one does, too."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}


def _send(stream: IO[bytes], what: object) -> None:
    pickle.dump(what, stream)
    stream.flush()


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    compare, arms = pickle.load(requests)  # noqa: S301 - of the process that started this one
    with naming.arms_of(compare, arms), svg.drawing(), suppress(EOFError):
        while True:
            draw: Draw = pickle.load(requests)  # noqa: S301
            try:
                answer: object = draw()
            except Exception as error:
                answer = error
            _send(answers, answer)


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
