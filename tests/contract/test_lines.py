"""Real lines of the engine: their keys in order, their types, and that `trifecta.contract` reads them whole.

`lines.json` was recorded of the engine before its lines were typed (`recording.shape` of `recording.record`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.contract.recording import record, shape
from tests.contract.test_schemas import LINES
from tests.engine.netns import ENGINE, can_make_namespaces
from trifecta.contract.codec import Misfit, convert, plain

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(not ENGINE.exists(), reason="the engine is not built"),
    pytest.mark.skipif(not can_make_namespaces(), reason="network namespaces are not allowed here"),
]
KEPT = json.loads(Path(__file__).with_name("lines.json").read_text())


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return record(tmp_path_factory.mktemp("lines"))


@pytest.mark.parametrize("name", KEPT)
def test_a_line_has_the_keys_and_types_that_it_had(said: dict[str, dict[str, Any]], name: str) -> None:
    assert json.dumps(shape(said[name]), indent=1) == json.dumps(KEPT[name], indent=1)


@pytest.mark.parametrize("name", KEPT)
def test_a_line_is_read_whole(said: dict[str, dict[str, Any]], name: str) -> None:
    part = name.partition(" ")[0]
    for key, value in said[name].items():
        read = plain(convert(LINES[f"{part}.{key}"], value))
        assert {key: inner for key, inner in value.items() if inner is not None or key in read} == read


def test_a_line_of_another_form_is_refused_by_its_field(said: dict[str, dict[str, Any]]) -> None:
    summary = said["load h3"]["summary"]
    with pytest.raises(Misfit, match=r"^quic\.sent_packets: expected `int`, got `str`"):
        convert(LINES["load.summary"], summary | {"quic": summary["quic"] | {"sent_packets": "many"}})
    with pytest.raises(Misfit, match=r"^samples: is missing"):
        convert(LINES["load.summary"], {key: value for key, value in summary.items() if key != "samples"})
