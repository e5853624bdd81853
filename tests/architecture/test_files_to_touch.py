"""What is added to Trifecta touches few of its files: those that name one that is there, outside of docs and tests.

A server, client, browser, check, threat, exporter, metric, workload and section need none: `test_plugins.py`,
`tests/implementations/test_registry.py` and `tests/docs/test_outside.py` add one of each from another package.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = "trifecta/design/impairments.py"
GENERATED = "trifecta/contract/impairments.py"
"""Which `scripts/contract_types.py` writes."""
ENGINE = "engine/crates/link/src"


def naming(kind: str, folder: str, ending: str) -> set[str]:
    """The files that name an impairment, as a word of a document or as a type, but for tests."""
    camel = "".join(part.title() for part in kind.split("_"))
    quoted = re.compile(rf"[\"'`]{kind}[\"'`]|\b{camel}\b")
    return {
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / folder).rglob(f"*.{ending}"))
        if not path.stem.endswith("tests") and quoted.search(path.read_text("utf-8"))
    }


@pytest.mark.parametrize("kind", ["gilbert_elliott", "loss_schedule"])
def test_an_impairment_is_named_where_it_is_made(kind: str) -> None:
    assert naming(kind, "trifecta", "py") <= {TABLE, GENERATED}
    assert naming(kind, "engine/crates", "rs") == {f"{ENGINE}/impair/{kind}.rs", f"{ENGINE}/impair/mod.rs"}


def test_a_name_is_seen_wherever_it_stands() -> None:
    assert TABLE in naming("gilbert_elliott", "trifecta", "py")
    assert "trifecta/cli/link.py" in naming("duplicate", "trifecta", "py")
