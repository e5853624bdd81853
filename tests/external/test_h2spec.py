"""h2spec, which nobody here wrote, asks the origin what RFC 7540 (now RFC 9113) and RFC 7541 ask of a server."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.netns import ENGINE
from trifecta.design.errors import CannotError
from trifecta.implementations.recipes.go_program import GoProgram
from trifecta.lab.certificates import make_certificates

SOURCE = Path(__file__).parent / "h2spec"
# A stream that depends on itself (RFC 7540, 5.3.1), said in HEADERS and in PRIORITY. RFC 9113, 5.3.2 took the scheme
# back, the origin announces SETTINGS_NO_RFC7540_PRIORITIES (RFC 9218, 2.1) and reads no dependencies.
OF_RFC_7540_PRIORITIES = {
    "http2/5.3.1: Sends HEADERS frame that depend on itself",
    "http2/5.3.1: Sends PRIORITY frame that depend on itself",
}

pytestmark = [
    pytest.mark.skipif(not ENGINE.exists(), reason="the engine is not built"),
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def h2spec() -> Path:
    """The program, built once from go.mod and go.sum beside this file into the cache."""
    recipe = GoProgram("h2spec", SOURCE)
    if not recipe.installed():
        try:
            recipe.install(print)
        except CannotError as error:
            if not any(said in str(error) for said in ("go is not installed", "requires go")):
                raise
            pytest.skip(str(error))
    return recipe.program()


@pytest.fixture
def origin(tmp_path: Path) -> Iterator[int]:
    """The port of a running origin."""
    pki = make_certificates(tmp_path, ["localhost"], ["127.0.0.1"])
    document = {
        "address": "127.0.0.1", "port": 0, "certificate_file": str(pki.chain), "key_file": str(pki.key),
        "protocols": ["h2"],
    }  # fmt: skip
    process = subprocess.Popen([str(ENGINE), "origin", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    try:
        process.stdin.write(json.dumps(document) + "\n")
        process.stdin.flush()
        yield json.loads(process.stdout.readline())["ready"]["port"]
        assert process.poll() is None, "the origin ended under h2spec"
        process.stdin.close()
        summary = json.loads(process.stdout.read().splitlines()[-1])["summary"]
        assert process.wait(30) == 0
        assert summary["connections"]
    finally:
        process.kill()
        process.wait()


def test_all_but_the_priorities_of_rfc_7540_pass(h2spec: Path, origin: int, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    command = [str(h2spec), "-port", str(origin), "-path", "/bytes/1000", "-timeout", "2s", "-report", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    cases = list(ET.parse(report).getroot().iter("testcase"))
    # a case that failed, was skipped or could not be run has an element that says so
    failed = {f"{case.get('package')}: {case.get('classname')}" for case in cases if len(case)}
    assert failed == OF_RFC_7540_PRIORITIES, done.stdout[-4000:]
    # 145 of a plain run and the one that h2spec calls strict
    assert (len(cases), sum(not len(case) for case in cases)) == (146, 144)
