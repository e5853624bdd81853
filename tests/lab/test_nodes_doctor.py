"""What is said of a cluster's nodes: each is asked, and one that cannot answer is missing in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.engine.netns import ENGINE
from tests.workloads.local_launcher import LocalLauncher
from trifecta.design.errors import CannotError
from trifecta.lab import nodes_doctor
from trifecta.lab.doctor import able

pytestmark = pytest.mark.skipif(not ENGINE.exists(), reason="the engine is not built")
FINE = """import json
print(json.dumps({"able": True, "findings": [{"name": "cores", "status": "ok", "evidence": "2 usable"}],
                  "code": {"trifecta": "a", "engine": "b"}}))"""
CODE = {"trifecta": "a", "engine": "b"}


class Nodes(LocalLauncher):
    """Nodes whose `trifecta doctor` says what a test wants; what else is started there is real."""

    def __init__(self, said: str = FINE) -> None:
        super().__init__(2)
        self.said = said

    def start(self, place: str, arguments: Sequence[str]) -> None:
        super().start(place, ["-c", self.said] if "doctor" in arguments else arguments)


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    launcher = Nodes()
    yield launcher
    launcher.close()


def test_every_node_is_asked_and_starts_the_engine(nodes: Nodes, tmp_path: Path) -> None:
    found = nodes_doctor.examine(nodes, tmp_path / "log", CODE)
    assert sorted(found) == ["n1", "n2"]
    for findings in found.values():
        assert [(one.name, one.status) for one in findings] == [
            ("cores", "ok"),
            ("same code", "ok"),
            ("engine program", "ok"),
        ]
    assert not nodes.hands, "nothing runs there any more"


def test_one_without_trifecta_is_missing_in_one_line(nodes: Nodes, tmp_path: Path) -> None:
    nodes.said = "import no_such_module"
    for findings in nodes_doctor.examine(nodes, tmp_path / "log", CODE).values():
        assert not able(findings)
        assert findings[0].name == "doctor"
        assert "No module named 'no_such_module'" in findings[0].evidence
        assert "\n" not in findings[0].evidence


def test_another_build_of_the_engine_runs_no_blocks(nodes: Nodes, tmp_path: Path) -> None:
    for findings in nodes_doctor.examine(nodes, tmp_path / "log", {**CODE, "engine": "c"}).values():
        assert not able(findings)
        assert findings[1].evidence == "no run takes it: it has engine b, not c"


def test_a_priority_that_a_run_refuses_is_missing(nodes: Nodes, tmp_path: Path) -> None:
    nodes.said = FINE.replace('"cores", "status": "ok"', '"priority", "status": "warn"')
    for findings in nodes_doctor.examine(nodes, tmp_path / "log", CODE).values():
        assert (findings[0].name, findings[0].status) == ("priority", "missing")
        assert not able(findings)


def test_what_is_not_understood_is_told(nodes: Nodes, tmp_path: Path) -> None:
    nodes.said = "print('{}')"
    for findings in nodes_doctor.examine(nodes, tmp_path / "log", CODE).values():
        assert "cannot be read" in findings[0].evidence
        assert not able(findings)


def test_a_node_whose_engine_is_not_there_runs_no_blocks(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIFECTA_ENGINE", "/nowhere/engine")
    for findings in nodes_doctor.examine(nodes, tmp_path / "log", CODE).values():
        assert not able(findings)
        assert "/nowhere/engine is not a program" in findings[-1].evidence


def test_no_nodes_is_one_line(nodes: Nodes, tmp_path: Path) -> None:
    nodes.there.clear()
    with pytest.raises(CannotError, match="no node that offers a CPU"):
        nodes_doctor.examine(nodes, tmp_path / "log", CODE)
