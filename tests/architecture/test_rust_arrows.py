"""No circle of modules in the engine."""

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.architecture.rust_modules import arrows

ENGINE = Path(__file__).parents[2] / "engine"
CRATES = sorted(path.name for path in (ENGINE / "crates").iterdir() if (path / "src").is_dir())


@pytest.mark.parametrize("crate", CRATES)
def test_no_modules_name_each_other_in_a_circle(crate):
    found = arrows(ENGINE / "crates" / crate / "src")
    assert any(found.values()) or len(found) == 1
    TopologicalSorter(found).prepare()  # CycleError names the circle


def _crate(folder, **files):
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.rs"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return arrows(folder)


def test_arrows_are_read_as_the_compiler_reads_them(tmp_path):
    found = _crate(
        tmp_path,
        lib="mod a; mod b; mod c; pub use b::{inner::{Deep, Other as Another}, Thing};",
        a="use crate::{b::Thing, c};\nfn f() -> super::b::inner::Deep { c::made() } // crate::lib",
        b='pub mod inner;\nuse std::fmt;\nuse inner::Deep;\nlet text = "crate::a::nothing";',
        b__inner="use super::Thing;\nuse super::super::c::made;\n#[cfg(test)]\nmod tests { use crate::a::{x}; }",
        c="#[cfg(test)]\nmod tests;\n",
        c__tests="use crate::a;",
    )
    assert found == {
        (): {("b", "inner"), ("b",)},
        ("a",): {("b",), ("c",), ("b", "inner")},
        ("b",): {("b", "inner")},
        ("b", "inner"): {("c",)},
        ("c",): set(),
    }


def test_a_circle_is_found(tmp_path):
    found = _crate(tmp_path, lib="mod a; mod b;", a="use crate::b::{self, Thing};", b="fn f(x: &crate::a::X) {}")
    with pytest.raises(CycleError):
        TopologicalSorter(found).prepare()
