"""The packages that the documentation shows, installed beside Trifecta from the page's own text, and measured."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.examples import ROOT, blocks

PAGES = {"server": ROOT / "docs/add-a-server.md", "client": ROOT / "docs/add-a-client.md"}
BLOCKS = 2  # the pages ask for six; whether a run gets there is not asked here
COMMAND = f"{sys.executable} -P -m trifecta.cli.main"


def install(page: Path, folder: Path) -> None:
    """What an installer makes of the page's files: the modules, and metadata with the entry points."""
    files = {block.marks["file"]: block.text for block in blocks(page) if "file" in block.marks}
    project = tomllib.loads(files.pop("pyproject.toml"))
    modules = {f"{module}.py" for module in project["tool"]["setuptools"]["py-modules"]}
    assert modules == {name for name in files if name.endswith(".py")}
    for name, text in files.items():
        (folder / name).write_text(text)
    about = project["project"]
    info = folder / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n")
    groups = about["entry-points"].items()
    entries = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in each.items()) for group, each in groups
    )
    (info / "entry_points.txt").write_text("\n".join(entries))


def trifecta(command: str, site: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.replace("trifecta", COMMAND, 1)],
        capture_output=True, text=True, check=False, cwd=folder, stdin=subprocess.DEVNULL, timeout=250,
        env={**os.environ, "PYTHONPATH": str(site)},
    )  # fmt: skip


def shown(page: Path) -> list[str]:
    """The trifecta commands of the block that installs the package."""
    (block,) = [block for block in blocks(page) if block.language == "sh" and "pip install" in block.text]
    return [line for line in block.text.splitlines() if line.startswith("trifecta")]


@pytest.mark.parametrize("kind", PAGES)
def test_it_is_listed_as_found(kind, tmp_path):
    install(PAGES[kind], tmp_path)
    listed, _ = shown(PAGES[kind])
    done = trifecta(f"{listed} --json", tmp_path, tmp_path)
    found = {each["name"]: each for each in json.loads(done.stdout)}[f"stdlib-{kind}"]
    assert (found["kind"], found["found"], found["protocols"]) == (kind, True, ["h1"])
    assert found["package"] == f"stdlib-{kind} 1.0"
    assert found["declared"]["tls_library"].startswith("OpenSSL")


@pytest.mark.parametrize("kind", PAGES)
def test_an_adapter_is_short(kind):
    for block in blocks(PAGES[kind]):
        if block.language == "python":
            assert sum(bool(line.strip()) for line in block.text.splitlines()) <= 80


@pytest.mark.lab
@pytest.mark.parametrize("kind", PAGES)
def test_it_is_measured_as_any_other(kind, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    install(PAGES[kind], site)
    _, race = shown(PAGES[kind])
    done = trifecta(re.sub("--blocks [0-9]+", f"--blocks {BLOCKS}", race) + " --out run --quiet", site, tmp_path)
    assert done.returncode in (0, 1), done.stderr  # 1: too few blocks for a verdict
    query = (
        "SELECT t.trial, t.server, t.client, t.connection, t.error, t.success_rate, count(*) AS samples, "
        "count(s.error) AS errors, count(DISTINCT s.connection) AS connections, any_value(s.protocol) AS protocol, "
        "max(s.bytes_in) AS bytes, any_value(s.tls_version) AS tls, "
        "count(s.secured_ns) AS handshakes FROM trials t JOIN samples s USING (trial) GROUP BY ALL"
    )
    answer = trifecta(f'trifecta sql run --json "{query}"', site, tmp_path)
    rows = json.loads(answer.stdout)
    assert len(rows) == 2 * 2 * BLOCKS, "new and reused connections, HTTP/1.1 and its second run"
    for row in rows:
        assert row[kind] == f"stdlib-{kind}"
        assert (row["error"], row["errors"], row["success_rate"]) == (None, 0, 1.0), row
        assert (row["protocol"], row["tls"], row["bytes"]) == ("h1", "1.3", 10_000), row
        expected = 10 if row["connection"] == "reused" else row["samples"]
        assert (row["connections"], row["handshakes"]) == (expected, expected), row
    failed = trifecta(
        'trifecta sql run --csv "SELECT DISTINCT \\"check\\" FROM checks WHERE status = \'fail\'"', site, tmp_path
    )
    assert not re.search("protocol|same_work|parity", failed.stdout), failed.stdout


@pytest.mark.lab
def test_an_adapter_as_data_is_measured_as_any_other(tmp_path):
    for block in blocks(PAGES["server"]):
        if "file" in block.marks:
            (tmp_path / block.marks["file"]).write_text(block.text)
    (race,) = re.findall(r"^(trifecta race --server mine=.*)$", PAGES["server"].read_text(), re.MULTILINE)
    done = trifecta(f"{race} --out run --quiet", tmp_path, tmp_path)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads((tmp_path / "run/run.json").read_text())["servers"]["mine"]
    assert found["version"].startswith("Python 3.")
    asked = "SELECT DISTINCT server, protocol, errors FROM trials"
    rows = json.loads(trifecta(f'trifecta sql run "{asked}" --json', tmp_path, tmp_path).stdout)
    assert rows == [{"server": "mine", "protocol": "h1", "errors": 0}]
