"""The digests by which two runs tell whether the same code made them."""

from __future__ import annotations

from pathlib import Path

import pytest

from trifecta.workloads import code


def made(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


FILES = {"a.py": "1", "sub/b.yaml": "2"}


def test_the_same_files_elsewhere_are_the_same_code(tmp_path: Path) -> None:
    first, second = made(tmp_path / "x", FILES), made(tmp_path / "y", dict(reversed(FILES.items())))
    compiled = made(tmp_path / "z", FILES | {"__pycache__/a.cpython-311.pyc": "?"})
    assert len({code.of_folder(first), code.of_folder(second), code.of_folder(compiled)}) == 1
    assert len(code.of_folder(first)) == 12


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "1", "sub/b.yaml": "3"},
        {"a.py": "1", "b.yaml": "2"},
        {"a.py": "1"},
        FILES | {"c": ""},
        {"a.py": "12", "sub/b.yaml": ""},
    ],
)
def test_any_change_is_another_code(tmp_path: Path, files: dict[str, str]) -> None:
    assert code.of_folder(made(tmp_path / "x", FILES)) != code.of_folder(made(tmp_path / "y", files))


def test_of_this_package_and_an_engine(tmp_path: Path) -> None:
    engine = made(tmp_path, {"engine": "binary"}) / "engine"
    found = code.digests(engine)
    assert found["engine"] == code.of_file(engine)
    assert found["trifecta"] == code.of_folder(Path(code.__file__).parents[1])
