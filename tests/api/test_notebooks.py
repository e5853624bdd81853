"""``trifecta notebook``: what it writes is executed, as marimo and Jupyter do, and by itself."""

from __future__ import annotations

import ast
import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import trifecta
from tests.browsing import PATIENCE_MS, chromium, needs_chromium, until_open
from tests.report.synthetic import Shape
from trifecta.api import notebooks
from trifecta.cli import main
from trifecta.store.run import RunDirectory

__all__ = ["chromium"]


@pytest.mark.parametrize("compares", [True, False])
def test_the_cells_run_one_after_the_other(folder: Path, compares: bool) -> None:
    names: dict[str, Any] = {}
    shown: list[object] = []
    for cell in notebooks.cells(folder, compares=compares):
        if not cell.code:
            assert cell.text.startswith("#")
            continue
        assert set(cell.takes) <= set(names)
        before = {name: value for name, value in names.items() if name != "__builtins__"}
        parsed = ast.parse(cell.text)
        last = parsed.body[-1]
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(parsed.body[:-1], []), "cell", "exec"), names)
            shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
        else:
            exec(compile(parsed, "cell", "exec"), names)
        made = {name for name in names if name not in before and name != "__builtins__"}
        assert made == set(cell.gives), "marimo goes by these"
        read = {node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)} - set(cell.gives)
        assert read == set(cell.takes)
    pictures = [one for one in shown if hasattr(one, "savefig")]
    assert len(pictures) == (3 if compares else 2)
    frames = [one for one in shown if hasattr(one, "columns") and hasattr(one, "iloc")]
    assert len(frames) == 2 and all(len(frame) for frame in frames)  # type: ignore[arg-type]


def test_three_questions_are_asked(folder: Path) -> None:
    for compares in (True, False):
        asked = [one.text for one in notebooks.cells(folder, compares=compares) if one.text.startswith("## ")]
        assert len(asked) == 3
        assert all(text.partition("\n")[0].endswith("?") for text in asked)


def executed(command: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=240)


def test_a_notebook_of_marimo_is_a_program_that_runs(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("marimo")
    run = Path(shutil.copytree(folder, tmp_path / "it's a run"))
    assert main.run(["notebook", str(run)]) == 0
    file = run / "notebook.py"
    done = executed([sys.executable, file], tmp_path)
    assert done.returncode == 0, done.stderr
    page = tmp_path / "page.html"
    done = executed([sys.executable, "-m", "marimo", "export", "html", file, "-o", page], tmp_path)
    assert done.returncode == 0, done.stderr
    assert page.read_text().count("image/png") >= 3
    check = executed([sys.executable, "-m", "marimo", "check", file], tmp_path)
    assert check.returncode == 0, check.stdout + check.stderr


@needs_chromium
def test_a_notebook_of_marimo_draws_in_a_browser(chromium: Any, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("marimo")
    file = tmp_path / "notebook.py"
    assert main.run(["notebook", str(folder), "--out", str(file)]) == 0
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "run", file, "--headless", "--port", str(port), "--no-token"]
    with subprocess.Popen(command, cwd=tmp_path) as server:
        try:
            until_open(port, lambda: server.poll() is None, PATIENCE_MS / 1000)
            page = chromium.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.goto(f"http://127.0.0.1:{port}/")
            page.locator("img[src^='data:image/png']").nth(2).wait_for()
            wide = page.eval_on_selector_all("img[src^='data:image/png']", "all => all.map(e => e.naturalWidth)")
            assert len(wide) == 3 and min(wide) > 300
            assert page.locator("h2").count() == 3, "its three questions"
            assert page.locator(".marimo-error, [data-testid='marimo-error']").count() == 0
        finally:
            server.terminate()


def test_a_notebook_of_jupyter_is_executed(folder: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    file = tmp_path / "it.ipynb"
    assert main.run(["notebook", str(folder), "--jupyter", "--out", str(file)]) == 0
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 3
    assert sum("text/html" in output.get("data", {}) for output in outputs) >= 2


def test_what_is_written_is_what_its_readers_take(folder: Path, tmp_path: Path) -> None:
    made = notebooks.write(folder, tmp_path / "a.py")
    compile(made.read_text(), "a.py", "exec")
    assert made.read_text().startswith("import marimo\n\n__generated_with = ")
    document = json.loads(notebooks.write(folder, tmp_path / "a.ipynb").read_text())
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    for cell in document["cells"]:
        code = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert set(cell) == {"cell_type", "id", "metadata", "source"} | code
        assert "".join(cell["source"])


def test_the_command_says_where_it_is(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "here.py"
    assert main.run(["notebook", str(folder), "--out", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"notebook": str(file)}
    assert file.is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "a.txt"], "does not end with .py; name it FILE.py"),
        (["--out", "a.ipynb"], "does not end with .py; add --jupyter"),
        (["--jupyter", "--out", "a.py"], "does not end with .ipynb; leave --jupyter out"),
        (["--out", "nowhere/a.py"], "nowhere is no folder"),
        (["--out", "there.py"], "there.py is there, and may have been worked on; choose another with --out"),
    ],
)
def test_what_cannot_be_written_is_one_line(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    words: list[str], said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("there.py").write_text("mine")
    assert main.run(["notebook", str(folder), *words]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"there.py"}
    assert Path("there.py").read_text() == "mine"


def test_a_run_without_a_trial_and_a_folder_that_is_no_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(trifecta.UserError, match="holds no run"):
        notebooks.write(tmp_path, tmp_path / "a.py")
    RunDirectory.create(tmp_path / "run", {}, Shape().study.source).close()
    with pytest.raises(trifecta.UserError, match="has no finished trial yet"):
        notebooks.write(tmp_path / "run", tmp_path / "a.py")
    assert not (tmp_path / "a.py").exists()
