"""A machine whose share of dropped frames is not known: the trials go on, and it is said why."""

from types import SimpleNamespace
from typing import Any

import pytest

from trifecta.design.errors import CannotError
from trifecta.design.model import VideoWorkload
from trifecta.lab.engine import EngineError
from trifecta.workloads.visits.floors import Floors


def floors(monkeypatch: pytest.MonkeyPatch, answer: Any) -> tuple[Floors, list[int]]:
    workload = VideoWorkload.__new__(VideoWorkload)
    video = SimpleNamespace(local="folder")
    session = SimpleNamespace(workload=lambda _: workload, material=lambda _: SimpleNamespace(video=video))
    made = Floors(session)  # type: ignore[arg-type]
    asked: list[int] = []

    def measure(*_: object) -> list[float]:
        asked.append(1)
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    monkeypatch.setattr(made, "_measure", measure)
    return made, asked


TRIAL: Any = SimpleNamespace(client="chromium")
PLACE: Any = None


def test_the_answer_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, asked = floors(monkeypatch, [0.01, 0.02])
    assert [made.shares(TRIAL, PLACE) for _ in range(2)] == [([0.01, 0.02], None)] * 2
    assert len(asked) == 1


@pytest.mark.parametrize(
    "error", [CannotError("the video cannot be served\nto its own host"), EngineError("driver", 1, "did not come up")]
)
def test_why_it_is_not_known_is_kept(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    made, asked = floors(monkeypatch, error)
    shares, reason = made.shares(TRIAL, PLACE)
    assert shares is None
    assert reason and reason == " ".join(str(error).split())
    assert made.shares(TRIAL, PLACE) == (None, reason)
    assert len(asked) == 1
