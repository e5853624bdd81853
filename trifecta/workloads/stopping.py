"""Ctrl-C and its kin: the first asks a run to end cleanly, the second ends it at once."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopFlag:
    """Whether the user asked to stop; call it to know. Use as a context manager to listen to the signals."""

    def __init__(self) -> None:
        """Not stopped."""
        self.number: int | None = None

    def __call__(self) -> bool:
        """Whether to stop."""
        return self.number is not None

    def request(self, number: int = signal.SIGINT) -> None:
        """Ask to stop, as if the signal had come."""
        self.number = number

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.number is not None:
            raise KeyboardInterrupt
        self.number = number

    def __enter__(self) -> StopFlag:
        """Listen."""
        self._before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave signals as they were."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
